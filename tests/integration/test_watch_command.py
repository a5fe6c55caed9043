"""``sparkdiag watch`` on a server that somebody else started: what is said, written, and sent."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.integration.watch_case import Foreign, eventually, watched_at

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

SUSPECT = "_fp8_mqa_logits_torch"
WITHOUT_PTRACE = ("setpriv", "--bounding-set=-sys_ptrace")
DROPS_CAPABILITIES = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None, reason="drops a capability: needs root"
)


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Foreign]:
    started = Foreign(tmp_path, getattr(request, "param", "healthy"), FAKE_VLLM_PASS="2000000")
    try:
        yield started.wait_up()
    finally:
        started.end()


def run_folders(server: Foreign) -> list[Path]:
    return sorted(path for path in (server.folder / "runs").iterdir() if path.is_dir())


@pytest.mark.parametrize("server", ["crawling"], indirect=True)
def test_a_fallback_in_somebody_elses_request_is_named_with_its_ranks_and_loops(server: Foreign) -> None:
    server.ask(16_000)
    eventually(lambda: " worker execute" in server.told(), "the prompt is under way")
    answer = server.watch("--pid", str(server.titled("VLLM::Worker_TP1").pid), "--for-s", "15", "--json")
    document = answer.document
    diagnosis = document["diagnosis"]
    assert (diagnosis["kind"], diagnosis["function"]) == ("torch-fallback", SUSPECT), answer
    ranks = {one["rank"]: one for one in diagnosis["processes"] if one["role"] == "worker"}
    assert set(ranks) == {"TP0_DCP0", "TP1_DCP1"}
    assert all(one["kind"] == "torch-fallback" for one in ranks.values())
    assert any(one["movement"]["loops"] for one in ranks.values())
    assert diagnosis["finding"] != "stalled", "15 s show no stall"
    assert (answer.code, document["verdict"]["outcome"]) == (3, "inconclusive")
    assert (document["dcp_world_size"], document["revision"]["proved"]) == (2, False)
    assert document["needle"] is None and document["sampling"]["taken"] > 4
    assert "api request" in server.told() and server.told().count("api request") == 1, "only the other client's"
    again = _report(server, document["run_dir"])
    assert (again["verdict"], again["diagnosis"]) == (document["verdict"], diagnosis)
    assert "judged_again" not in again, "the folder tells what was seen live"
    screen = (Path(document["run_dir"]) / "report.md").read_text(encoding="utf-8").split("<details>")[0]
    assert "sparkdiag: watch: torch-fallback" in screen and "not proved" in screen


def _report(server: Foreign, run_dir: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "sparkdiag", "report", run_dir, "--json"],
        capture_output=True,
        text=True,
        check=True,
        cwd=server.folder,
        timeout=60,
    )
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_an_idle_server_is_called_no_stall_and_gets_no_request(server: Foreign) -> None:
    answer = server.watch("--url", server.base_url, "--for-s", "4")
    assert answer.code in (0, 3), answer
    assert "stalled" not in answer.out
    assert (
        "nothing is sent, paused or signalled" in answer.err and "looking may cost 1.0% of this machine" in answer.err
    )
    assert "api request" not in server.told()
    (folder,) = run_folders(server)
    assert (folder / "client.jsonl").read_text(encoding="utf-8").count("\n") == 1, "nothing was sent"


def test_a_needle_is_answered_and_told_apart_from_others_and_its_key_is_kept_nowhere(server: Foreign) -> None:
    key = "sk-watch-only-4f9a7c21d0"
    needle = ("--send-needle", "--prompt-tokens", "3000", "--api-key-env", "WATCHED_KEY", "--json")
    alone = server.watch("--url", server.base_url, *needle, WATCHED_KEY=key)
    assert alone.code == 0, alone
    assert (alone.document["verdict"]["outcome"], alone.document["needle"]) == ("completed", "retrieved")
    assert "estimate: one prompt of 3000 tokens" in alone.err
    assert "nobody else used the server meanwhile" in alone.err
    assert key not in alone.out + alone.err
    assert "judged_again" not in _report(server, alone.document["run_dir"])
    kept = b"".join(path.read_bytes() for path in run_folders(server)[0].iterdir())
    assert key.encode() not in kept and b"--send-needle" in kept


@pytest.mark.parametrize("server", ["crawling"], indirect=True)
def test_a_needle_beside_other_traffic_says_that_its_time_is_shared(server: Foreign) -> None:
    server.ask(30_000)
    eventually(lambda: " worker execute" in server.told(), "the other prompt is under way")
    child = server.start("--url", server.base_url, "--send-needle", "--prompt-tokens", "600", "--for-s", "4", "--json")
    out, err = child.communicate(timeout=120)
    assert child.returncode == 3, (out, err)
    words = "its time to first token is shared with other traffic: 1 requests ran before it"
    assert words in err
    assert words in json.dumps(json.loads(out)["verdict"]["against"])
    assert "closing the connection" in err
    eventually(lambda: "api abort" in server.told(), "our own request is taken back")


@DROPS_CAPABILITIES
@pytest.mark.parametrize("server", ["healthy,undumpable"], indirect=True)
def test_without_permission_the_metrics_speak_alone_and_without_them_nobody(server: Foreign) -> None:
    answer = server.watch("--url", server.base_url, "--for-s", "3", before=WITHOUT_PTRACE)
    assert answer.code == 3, answer
    assert "permission denied (SYS_PTRACE is missing)" in answer.out and "--cap-add SYS_PTRACE" in answer.out
    assert "0 requests running; 0 requests waiting; KV cache use 0.0%, which did not move" in answer.out
    pid = str(server.process.pid)
    answer = server.watch("--pid", pid, "--metrics-url", "http://127.0.0.1:9", "--for-s", "2", before=WITHOUT_PTRACE)
    assert answer.code == 4, answer
    assert "SYS_PTRACE" in answer.err and "cap-add" in answer.err


def test_a_watch_that_is_cut_short_answers_with_what_it_has(server: Foreign) -> None:
    child = server.start("--url", server.base_url, "--for-s", "600", "--json")
    eventually(lambda: any((server.folder / "runs").glob("*/stacks.jsonl")), "the folder is there")
    (folder,) = run_folders(server)
    eventually(lambda: (folder / "stacks.jsonl").read_text().count("\n") > 3, "some looks were taken")
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    document = json.loads(out)
    assert (document["status"], document["verdict"]["outcome"]) == ("interrupted", "inconclusive")
    assert document["diagnosis"]["looks"] >= 2
    assert "the server was left as it is" in err
    assert (folder / "report.md").is_file()
    assert len(server.members()) >= 4


class Counting(BaseHTTPRequestHandler):
    """What stands before a server elsewhere: it answers, and none of its processes is an engine's."""

    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        lines = (f"sglang:num_running_reqs 1.0\nsglang:generation_tokens_total {100.0 + type(self).asked}\n").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(lines)))
        self.end_headers()
        self.wfile.write(lines)

    def log_message(self, *_args: object) -> None:
        """Not shown."""


def test_where_only_a_proxy_is_seen_its_counters_speak_alone(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Counting) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{proxy.server_address[1]}"
        answer = watched_at(tmp_path, "--url", url, "--for-s", "3")
        proxy.shutdown()
    assert answer.code == 0, answer
    assert "which is no vLLM or SGLang server: a proxy, perhaps" in answer.err
    assert "at work, by its own counters (no stack was taken)" in answer.out
    assert "metrics alone decide nothing" in answer.out
