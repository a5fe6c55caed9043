"""``sparkdiag triage`` as typed: what is printed, with which exit code, from which files."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparkdiag.cli.app import app
from sparkdiag.cli.triage_asked import exit_code_of
from sparkdiag.errors import ExitCode, UsageError
from sparkdiag.evidence.diagnosis import Diagnosis
from tests.unit.reporting.page_case import PAGE, outline

STUCK = """Process {pid}: VLLM::Worker_TP{rank}_DCP{rank}
Python v3.12.3 (/usr/bin/python3.12)

Thread {pid} (active): "MainThread"
    {leaf}
    sparse_attn_indexer (vllm/v1/attention/sparse_attn_indexer.py:545)
    forward (vllm/model_executor/models/deepseek_v4.py:812)
    execute_model (vllm/v1/worker/gpu_model_runner.py:3100)
    execute_model (vllm/v1/worker/gpu_worker.py:600)
    worker_busy_loop (vllm/v1/executor/multiproc_executor.py:850)
    worker_main (vllm/v1/executor/multiproc_executor.py:650)
"""
FALLBACK = "_fp8_mqa_logits_torch (vllm/v1/attention/ops/sm12x_mqa_fallbacks.py:70)"
GATHER = "all_gather (torch/distributed/distributed_c10d.py:3900)"


def dump(folder: Path, name: str, *, pid: int = 11, rank: int = 0, leaf: str = FALLBACK) -> str:
    path = folder / name
    path.write_text(STUCK.format(pid=pid, rank=rank, leaf=leaf))
    return str(path)


def asked(*arguments: str, text: str | None = None) -> tuple[int, str, str]:
    ran = CliRunner().invoke(app, ["triage", *arguments], input=text)
    return ran.exit_code, ran.stdout, ran.stderr


def test_one_dump_names_kind_process_and_the_next_step(tmp_path: Path) -> None:
    code, out, _ = asked(dump(tmp_path, "a.txt"))
    assert code == 3
    assert out.startswith(
        "torch-fallback in _fp8_mqa_logits_torch, Worker_TP0_DCP0: whether it is a stall cannot be told"
    )
    assert "one look at one process" in out and "py-spy dump --nonblocking --locals --pid 11" in out


def test_the_same_from_standard_input_as_one_document(tmp_path: Path) -> None:
    code, out, err = asked("-", "--json", text=STUCK.format(pid=11, rank=0, leaf=FALLBACK))
    document = json.loads(out)
    assert (code, err) == (3, "")
    assert {"kind", "confidence", "processes", "next_step"} <= document.keys()
    assert document["kind"] == "torch-fallback"
    (process,) = document["processes"]
    assert (process["pid"], process["role"], process["rank"], process["kind"], process["function"]) == (
        11,
        "worker",
        "TP0_DCP0",
        "torch-fallback",
        "_fp8_mqa_logits_torch",
    )


def test_files_of_other_ranks_are_one_server_and_the_odd_rank_decides(tmp_path: Path) -> None:
    files = [dump(tmp_path, f"{rank}.txt", pid=11 + rank, rank=rank, leaf=GATHER) for rank in range(3)]
    files.append(dump(tmp_path, "3.txt", pid=20, rank=3))
    code, out, err = asked(*files, "--json")
    document = json.loads(out)
    assert "processes of one server" in err
    assert (document["kind"], document["process"]) == ("torch-fallback", "Worker_TP3_DCP3")
    assert [one["differs"] for one in document["processes"]] == [False, False, False, True]
    assert any("TP0" in one["text"] and "all_gather" in one["text"] for one in document["classes"])
    assert code == 3  # one look each: no stall is shown yet


def test_the_same_place_a_minute_later_is_a_stall_and_exits_1(tmp_path: Path) -> None:
    looks = [dump(tmp_path, f"{name}.txt", leaf=GATHER) for name in "abcde"]
    code, out, err = asked(*looks, "--apart-s", "60", "--json")
    document = json.loads(out)
    assert "over time" in err
    assert (code, document["finding"], document["looks"]) == (1, "stalled", 5)
    assert json.loads(asked(*looks, "--json")[1])["finding"] == "unknown"  # how far apart is not known
    # Of a server at work a few looks in one place are no wonder, and in a hot function no number of them is.
    assert json.loads(asked(*looks[:3], "--apart-s", "60", "--json")[1])["finding"] == "unknown"
    hot = [dump(tmp_path, f"hot-{name}.txt") for name in "abcde"]
    assert json.loads(asked(*hot, "--apart-s", "60", "--json")[1])["finding"] == "unknown"


def test_the_same_ranks_under_other_pids_are_compared(tmp_path: Path) -> None:
    good, bad = (
        dump(tmp_path, "good.txt", pid=5, leaf="flash_mla (vllm/v1/attention/flash.py:3)"),
        dump(tmp_path, "bad.txt"),
    )
    code, out, err = asked(good, bad)
    assert "a good server and a bad one" in err
    assert "differs:" in out and "flash_mla" in out and code == 3
    assert json.loads(asked(good, bad, "--together", "--json")[1])["differences"] == []


def test_text_without_a_stack_cannot_be_told_and_exits_3() -> None:
    code, out, _ = asked("-", text="the server hangs, please help\n")
    assert code == 3 and out.startswith("cannot tell: not-an-engine") and "next:" in out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--compare", "--over-time", "a", "b"], "exclude each other"),
        (["--compare", "a"], "takes two files"),
        (["-", "-"], "once only"),
        ([""], "is empty"),
        (["--apart-s", "inf", "a", "b"], "no number of seconds"),
        (["no-such-file"], "cannot be read"),
        (["."], "is a folder"),
    ],
)
def test_what_cannot_be_meant_is_one_line(options: list[str], words: str, tmp_path: Path) -> None:
    refused = CliRunner().invoke(app, ["triage", *options])
    assert isinstance(refused.exception, UsageError) and words in refused.exception.message
    assert refused.exception.remedy


def test_the_same_file_twice_is_no_second_look(tmp_path: Path) -> None:
    path = dump(tmp_path, "a.txt", leaf=GATHER)
    link = tmp_path / "b.txt"
    link.symlink_to(path)
    refused = CliRunner().invoke(app, ["triage", "--over-time", "--apart-s", "60", path, str(link)])
    assert isinstance(refused.exception, UsageError) and "given twice" in refused.exception.message


def test_a_good_and_a_bad_one_that_do_not_differ_are_said_not_to(tmp_path: Path) -> None:
    out = asked(dump(tmp_path, "good.txt", pid=5), dump(tmp_path, "bad.txt"))[1]
    assert "good and bad do not differ" in out


def test_utf_16_as_a_redirect_writes_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "wide.txt"
    path.write_bytes(STUCK.format(pid=11, rank=0, leaf=FALLBACK).encode("utf-16"))
    assert "torch-fallback" in asked(str(path))[1]


def test_nothing_in_a_dump_steers_the_terminal_or_breaks_out_of_the_page(tmp_path: Path) -> None:
    hostile = "f\x1b[2J</details>`|@everyone (vllm/<script>x\u202e.py:3)"
    path = tmp_path / "h.txt"
    path.write_text(STUCK.format(pid=11, rank=0, leaf=hostile).replace("Worker_TP0", "\x1b]0;x\x07Worker_TP0"))
    for form in ([], ["--format", "md"], ["--json"]):
        out = asked(str(path), *form)[1]
        assert "\x1b" not in out and "\u202e" not in out and "\x07" not in out
    page = asked(str(path), "--format", "md")[1]
    plain = asked(dump(tmp_path, "plain.txt", leaf="f (vllm/x.py:3)"), "--format", "md")[1]
    lists = {"list_item_open", "bullet_list_open"}  # a caveat more may stand there
    blocks = [[block for block in outline(one) if block[0] not in lists] for one in (page, plain)]
    assert blocks[0] == blocks[1]
    outside = re.sub(r"<code>.*?</code>", "", PAGE.render(page), flags=re.DOTALL)
    assert "everyone" not in outside and "script" not in outside


def test_secrets_in_titles_and_locals_do_not_come_out(tmp_path: Path) -> None:
    key = "sk-" + "a1B2c3D4" * 5
    text = STUCK.format(pid=11, rank=0, leaf=FALLBACK).replace("VLLM::Worker", f"python --api-key {key} VLLM::Worker")
    text += f'        Locals:\n            prompt: "{key}"\n            n: 3\n'
    for form in (["--json"], ["--format", "md"], []):
        assert key not in asked("-", *form, text=text)[1]


def test_only_a_finding_of_a_stall_exits_1() -> None:
    assert exit_code_of(Diagnosis(kind="idle", finding="healthy")) == ExitCode.DONE
    assert exit_code_of(Diagnosis(kind="forward", finding="moving")) == ExitCode.DONE
    assert exit_code_of(Diagnosis(kind="torch-fallback", finding="unknown")) == ExitCode.INCONCLUSIVE
    assert exit_code_of(Diagnosis(kind="collective-wait", finding="stalled")) == ExitCode.STALL
    assert exit_code_of(Diagnosis(kind="garbled")) == ExitCode.INCONCLUSIVE


def test_help_has_an_example() -> None:
    assert "Example: sparkdiag triage dump.txt" in asked("--help")[1]
