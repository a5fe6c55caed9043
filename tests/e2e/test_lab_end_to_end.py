"""The main job, for real: the lab server at DCP 1 and DCP 2, from the command line to the report."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from sparkdiag.recording.read import read_run

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500)]

SUSPECT = "_fp8_mqa_logits_torch"
ended: list[int] = []
"""Exit codes of runs that were ended by a signal."""


def start(*args: str, cwd: Path) -> "subprocess.Popen[str]":
    """Run the CLI as a user would."""
    return subprocess.Popen(
        [sys.executable, "-m", "sparkdiag", *args, "--json"],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(child: "subprocess.Popen[str]", *, expect: int) -> dict[str, Any]:
    """Check the exit code; return the JSON document."""
    try:
        out, err = child.communicate(timeout=1400)
    except BaseException:
        child.terminate()
        child.communicate(timeout=60)
        raise
    assert child.returncode == expect, f"exit {child.returncode}\n{err[-4000:]}\n{out[-2000:]}"
    document: dict[str, Any] = json.loads(out)
    return document


def sparkdiag(*args: str, cwd: Path, expect: int) -> dict[str, Any]:
    """``start`` and ``finish``."""
    return finish(start(*args, cwd=cwd), expect=expect)


def prompted_url(runs: Path, known: set[Path]) -> str:
    """The address of the server of the run that is not known yet, as soon as its prompt is under way."""
    until_s = time.monotonic() + 600
    while time.monotonic() < until_s:
        for folder in set(runs.iterdir()) - known if runs.is_dir() else ():
            client = folder / "client.jsonl"
            if client.is_file() and '"event":"sent"' in client.read_text(encoding="utf-8"):
                argv = json.loads((folder / "run.json").read_text(encoding="utf-8"))["server_argv"]
                return f"http://127.0.0.1:{argv[argv.index('--port') + 1]}"
        time.sleep(0.5)
    raise AssertionError("no prompt was sent")


def leftovers() -> list[str]:
    """Engine processes and shared memory of this user that a stopped server should not have left."""
    titles = [" ".join(p.info["cmdline"] or []) for p in psutil.process_iter(["cmdline"])]
    engines = [title for title in titles if title.startswith("VLLM::") or "vllm.entrypoints" in title]
    return engines + [str(path) for path in Path("/dev/shm").glob("psm_*") if path.stat().st_uid == os.getuid()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("user")


@pytest.fixture(scope="module")
def dcp1(folder: Path) -> dict[str, Any]:
    return sparkdiag("repro", "--dcp", "1", cwd=folder, expect=0)


@pytest.fixture(scope="module")
def dcp2(folder: Path, dcp1: dict[str, Any]) -> dict[str, Any]:
    return sparkdiag("repro", "--dcp", "2", cwd=folder, expect=1)


@pytest.fixture(scope="module")
def watched(folder: Path, dcp2: dict[str, Any]) -> dict[str, Any]:
    """What a ``watch`` said that looked at the server of another run at DCP 2, as at anybody's.

    A run of its own, whose verdict nobody waits for: two watchers on two cores would spoil a measured one. It is ended
    by SIGTERM in its prefill.
    """
    known = set((folder / "runs").iterdir())
    run = start("repro", "--dcp", "2", cwd=folder)
    try:
        url = prompted_url(folder / "runs", known)
        return sparkdiag("watch", "--url", url, "--for-s", "9", "--out", "watched", cwd=folder, expect=3)
    finally:
        run.terminate()
        run.communicate(timeout=180)
        ended.append(run.returncode)


def test_dcp_1_completes_and_retrieves_the_needle(dcp1: dict[str, Any]) -> None:
    assert dcp1["verdict"]["outcome"] == "completed"
    assert dcp1["needle"] == "retrieved"
    assert dcp1["dcp_world_size"] == 1
    assert dcp1["revision"]["proved"] is True
    assert dcp1["revision"]["contains_suspect_commit"] == "yes"
    assert leftovers() == []


def test_dcp_2_is_a_crawling_stall_in_the_fallback(dcp2: dict[str, Any]) -> None:
    verdict = dcp2["verdict"]
    assert (verdict["outcome"], verdict["mode"], verdict["kind"]) == ("stalled", "crawling", "torch-fallback")
    assert verdict["function"] == SUSPECT
    assert dcp2["dcp_world_size"] == 2
    assert dcp2["revision"]["proved"] is True
    assert dcp2["timings_s"]["prompt_to_verdict"] < 120  # 20 to 40 s on a quiet machine
    assert len({item["source"] for item in verdict["for"]}) >= 2
    assert leftovers() == []


def test_the_page_to_paste_narrows_the_claim(dcp2: dict[str, Any]) -> None:
    page = (Path(dcp2["run_dir"]) / "report.md").read_text(encoding="utf-8")
    first_screen = page.partition("<details")[0]
    assert "only when DCP > 1 (2 configurations asked: DCP 1 and 2; platform cpu)" in first_screen
    assert "chunks because `dcp_world_size` = 2" in first_screen
    assert "[pip] torch==" in page
    assert "<summary>Kernel numbers</summary>" in page
    assert f"{Path.home()}/" not in page


def test_both_runs_beside_each_other_tell_the_factor(dcp1: dict[str, Any], dcp2: dict[str, Any], folder: Path) -> None:
    found = sparkdiag("report", dcp1["run_dir"], dcp2["run_dir"], cwd=folder, expect=0)
    assert found["ratio"] > 5
    assert found["sentence"].startswith("DCP 2 takes ")
    differs = {row["what"]: (row["a"], row["b"]) for row in found["rows"] if row["differs"]}
    assert differs["DCP size"] == ("1", "2")
    assert differs["kernel"][1] == f"{SUSPECT} (ledger)"
    assert "revision" not in differs
    shares = {one["function"]: (one["a"], one["b"]) for one in found["stack_difference"]}
    assert shares[SUSPECT][0] == 0 < shares[SUSPECT][1]


def test_what_is_opened_and_posted_is_made_of_the_real_run(dcp2: dict[str, Any], folder: Path) -> None:
    html = _printed("report", dcp2["run_dir"], "--format", "html", cwd=folder)
    assert f"sparkdiag: stalled (crawling) in {SUSPECT}</h1>" in html
    assert 'class="curve measured"' in html
    shown = _printed("post", dcp2["run_dir"], "--pr", "octo/engine#5", "--dry-run", cwd=folder)
    assert SUSPECT in shown
    assert (
        sparkdiag("report", dcp2["run_dir"], "--show-redactions", cwd=folder, expect=0)["redactions"]["unclassified"]
        == []
    )


def _at_home(document: dict[str, Any]) -> str:
    return json.dumps(document).replace(f"{Path.home()}/", "~/")


def _printed(*args: str, cwd: Path) -> str:
    command = [sys.executable, "-m", "sparkdiag", *args]
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True, timeout=120).stdout


def test_the_dcp_1_run_serves_as_the_control(dcp2: dict[str, Any]) -> None:
    assert dcp2["verdict"]["baseline"]["kind"] == "control-run"


def test_both_ranks_are_seen_in_the_fallback_with_its_loop_variables(dcp2: dict[str, Any]) -> None:
    seen: dict[int, set[str]] = {}
    for sample in read_run(Path(dcp2["run_dir"])).observation.samples:
        for thread in sample.threads:
            for frame in thread.frames:
                if frame.function == SUSPECT:
                    seen.setdefault(sample.pid, set()).update(frame.locals)
    assert len(seen) == 2
    for names in seen.values():
        assert {"head_start", "k_start", "seq_len_kv", "num_heads"} <= names


def test_the_source_says_what_the_stacks_show(dcp1: dict[str, Any], dcp2: dict[str, Any]) -> None:
    assert (dcp2["route"]["predicted"], dcp2["route"]["answer"]) == ([SUSPECT], "agree")
    assert "dcp_world_size <= 1" in [guard["source"] for guard in dcp2["route"]["guards"]]
    assert dcp1["route"]["predicted"] == ["fp8_mqa_topk_triton"]
    assert dcp1["route"]["answer"] in ("agree", "not compared")  # a fast kernel may never be on a stack


def test_the_ledger_of_the_stall_tells_the_same_story_as_stacks_route_and_plan(dcp2: dict[str, Any]) -> None:
    ledger = dcp2["ledger"]
    assert ledger["expected_chunks"] == 64 and ledger["dropped"] == 0
    assert {rank["rank"] for rank in ledger["ranks"]} == {"TP0 DCP0", "TP1 DCP1"}
    for rank in ledger["ranks"]:
        chunks, fused = rank["chunks"], rank["fused"]
        assert (rank["dcp_world_size"], rank["whole_in"], rank["counted"]) == (2, SUSPECT, "chunks")
        assert 1 <= chunks <= 64 and fused["not_tried"] == chunks and fused["unexplained"] == 0
        assert fused["not_tried_because"] == [{"fact": "dcp_world_size", "value": 2, "chunks": chunks}]
        (kernel,) = rank["kernels"]
        assert (kernel["function"], kernel["head_chunk_size"], kernel["k_chunk_size"]) == (SUSPECT, 1, 1)
        assert kernel["clean_logits"] == [False]
    assert (
        f"because dcp_world_size = 2; every indexer layer of every chunk in {SUSPECT}, head_chunk_size 1"
        in (ledger["sentence"])
    )
    answers = {finding["question"]: finding["answer"] for finding in ledger["findings"]}
    assert set(answers) == {
        "DCP size",
        "why not fused",
        "which kernel",
        "which kernel by the source",
        f"shapes of {SUSPECT}",
        "heads a pass",
        "keys a pass",
    }
    assert set(answers.values()) == {"agree"}, ledger["findings"]


def test_the_ledger_of_the_healthy_run_shows_the_fused_path_accepted(dcp1: dict[str, Any]) -> None:
    ledger = dcp1["ledger"]
    assert "fused path accepted in 64 of 64 chunks" in ledger["sentence"]
    assert len(ledger["ranks"]) == 2
    for rank in ledger["ranks"]:
        assert (rank["chunks"], rank["layers"], rank["missing"]) == (64, 3, 0)
        assert (rank["fused"]["accepted"], rank["whole_in"]) == (64, "fp8_mqa_topk_triton")
    assert "disagree" not in {finding["answer"] for finding in ledger["findings"]}


def test_the_report_answers_the_two_questions_on_its_first_screen(dcp2: dict[str, Any]) -> None:
    screen = "\n".join((Path(dcp2["run_dir"]) / "report.md").read_text(encoding="utf-8").splitlines()[:40])
    assert SUSPECT in screen
    assert "DCP" in screen and "2" in screen
    assert dcp2["revision"]["sha"][:10] in screen
    assert "suspect commit" in screen.lower()


def test_an_old_run_is_judged_again_offline_and_comes_out_the_same(dcp2: dict[str, Any], folder: Path) -> None:
    again = sparkdiag("report", dcp2["run_dir"], cwd=folder, expect=0)
    for key in ("outcome", "mode", "kind", "function"):
        assert again["verdict"][key] == dcp2["verdict"][key]
    assert (again["route"], again["ledger"]) == (dcp2["route"], dcp2["ledger"])


def test_a_server_that_somebody_else_started_is_found_and_diagnosed(watched: dict[str, Any], folder: Path) -> None:
    """Nine seconds show the path and that it moves; a stall they do not show."""
    diagnosis = watched["diagnosis"]
    assert (diagnosis["kind"], diagnosis["function"]) == ("torch-fallback", SUSPECT)
    assert watched["verdict"]["outcome"] == "inconclusive"
    assert (watched["dcp_world_size"], watched["revision"]["proved"]) == (2, False)
    kinds = {one["name"]: one["kind"] for one in diagnosis["processes"]}
    assert {"APIServer", "EngineCore", "Worker_TP0_DCP0", "Worker_TP1_DCP1"} == set(kinds)
    assert "torch-fallback" in (kinds["Worker_TP0_DCP0"], kinds["Worker_TP1_DCP1"])
    again = sparkdiag("report", watched["run_dir"], cwd=folder, expect=0)
    assert _at_home(again["diagnosis"]) == _at_home(diagnosis), "a report may tell a home as ~"


def test_a_run_that_is_ended_in_its_prefill_leaves_nothing(watched: dict[str, Any]) -> None:
    """143, or 1 where its verdict came before the signal did."""
    assert ended in ([143], [1])
    assert leftovers() == []
