"""``sparkdiag repro`` when the server does not live: while loading, under the request, with its port taken."""

import os
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest

from tests.integration.bad_case import BadCase, until

GUARDIAN_KILLED = "sparkdiag's guardian was killed from outside; the server was ended with it"

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

HUB = (
    "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached "
    "files."
)


def test_a_server_that_dies_while_loading_is_shown_with_its_last_lines(tmp_path: Path) -> None:
    case = BadCase(tmp_path, "crash-while-loading")
    ended = case.refused(*case.repro_arguments(), code=5)
    assert "ended while it was starting (exit code 1)" in ended.error
    assert "  RuntimeError: fake: cannot load the model" in ended.err.splitlines()
    assert "server.log" in ended.next
    record = case.record()
    assert record["status"] == "failed" and record["verdict"] is None
    assert "cannot load the model" in record["error"]
    assert "cannot load the model" in (case.run_folder() / "server.log").read_text(encoding="utf-8")


def test_a_hub_that_cannot_be_reached_is_the_servers_to_say(tmp_path: Path) -> None:
    case = BadCase(tmp_path, BAD_LAST_WORDS=HUB)
    ended = case.refused(*case.repro_arguments("--model", "org/model"), code=5)
    assert "could not download the model" in ended.error
    assert f"  {HUB}" in ended.err.splitlines()
    assert "--model /path" in ended.next


def test_a_server_that_dies_before_the_prompt_is_shown_with_its_last_lines(tmp_path: Path) -> None:
    case = BadCase(tmp_path, BAD_DIES_AT="/tokenize")
    ended = case.refused(*case.repro_arguments(), code=5)
    assert ended.error == "error: the server ended before the prompt was sent (exit code 3)"
    assert "  ERROR fake: the tokenizer crashed" in ended.err.splitlines()
    assert case.record()["status"] == "failed"


def kill_guardians(case: BadCase, *, keeper: bool) -> None:
    """kill -9 the guardian of the case's server, and its keeper first where that is asked for."""
    guardian = psutil.Process(case.events("api started")[0]).parent()
    assert guardian is not None and "guardian.py" in " ".join(guardian.cmdline())
    above = guardian.parent()
    assert above is not None and above.cmdline() == guardian.cmdline()
    for victim in [above, guardian] if keeper else [guardian]:
        victim.kill()


@pytest.mark.parametrize("keeper", [False, True])
def test_a_guardian_that_is_killed_under_the_request_is_no_crash_of_the_server(keeper: bool, tmp_path: Path) -> None:
    case = BadCase(tmp_path, "crawling,shm", FAKE_VLLM_PASS="20000")
    child = case.start(*case.repro_arguments("--baseline-s", "9999"))
    until(lambda: case.events("worker execute"))
    kill_guardians(case, keeper=keeper)
    ended = case.finish(child)
    assert ended.code == 3, ended
    assert GUARDIAN_KILLED in ended.out and "crashed" not in ended.out
    assert "SIGTERM" not in ended.out + ended.err
    verdict = case.record()["verdict"]
    assert (verdict["outcome"], verdict["reason"]) == ("inconclusive", GUARDIAN_KILLED)
    assert "ended by" not in (case.run_folder() / "report.md").read_text()


@pytest.mark.parametrize("keeper", [False, True])
def test_a_guardian_that_is_killed_while_the_server_loads_is_no_fault_of_the_server(
    keeper: bool, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)  # nobody opens it: the server loads for ever
    case = BadCase(tmp_path, "slow-start", FAKE_VLLM_GATE=str(gate))
    child = case.start(*case.repro_arguments())
    until(lambda: case.events("api started"))
    kill_guardians(case, keeper=keeper)
    ended = case.finish(child)
    assert ended.code == 4, ended
    assert ended.error == f"error: {GUARDIAN_KILLED} while it was starting"
    assert "run it again" in ended.next
    assert case.record()["status"] == "failed"


@pytest.mark.parametrize(
    ("who", "event"), [("the API server", "api request"), ("EngineCore", "engine up"), ("a worker", "worker up")]
)
def test_one_process_that_is_killed_under_the_request_is_a_crash(who: str, event: str, tmp_path: Path) -> None:
    case = BadCase(tmp_path, "crawling,shm", FAKE_VLLM_PASS="20000")
    # A healthy time as long as this makes no crawl of it: the request is in flight when the process dies.
    child = case.start(*case.repro_arguments("--baseline-s", "9999"))
    until(lambda: case.events("worker execute") and case.events(event))
    os.kill(case.events(event)[0], signal.SIGKILL)
    ended = case.finish(child)
    assert ended.code == 5, ended
    assert "crashed" in ended.out
    record = case.record()
    assert record["status"] == "finished"
    assert record["verdict"]["outcome"] == "crashed"
    assert (case.run_folder() / "report.md").is_file()
    assert case.events("worker shm")
    assert [path for path in Path("/dev/shm").glob("psm_fake_*") if int(path.name[9:]) in case.events("worker")] == []


def test_a_kernel_that_aborts_a_worker_is_a_crash(tmp_path: Path) -> None:
    case = BadCase(tmp_path, "crash-in-request")
    ended = case.run(*case.repro_arguments("--json"))
    assert ended.code == 5
    assert case.record()["verdict"]["outcome"] == "crashed"


class Other(BaseHTTPRequestHandler):
    """Another program on the port, which answers everything with 200."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        pass


class Occupant:
    """Takes the port of every start up to ``times``, between its choice and the server's bind."""

    def __init__(self, knock: Path, *, times: int) -> None:
        self.ports: list[int] = []
        self._servers: list[ThreadingHTTPServer] = []
        for name in ("port", "taken"):
            os.mkfifo(f"{knock}.{name}")
        self._thread = threading.Thread(target=self._occupy, args=(knock, times), daemon=True)
        self._thread.start()

    def _occupy(self, knock: Path, times: int) -> None:
        for number in range(2):
            self.ports.append(int(Path(f"{knock}.port").read_text()))
            if number < times:
                server = ThreadingHTTPServer(("127.0.0.1", self.ports[-1]), Other)
                threading.Thread(target=server.serve_forever, daemon=True).start()
                self._servers.append(server)
            Path(f"{knock}.taken").write_text("now")

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()


def test_a_port_that_is_taken_meanwhile_is_left_to_its_owner_and_another_used(tmp_path: Path) -> None:
    knock = tmp_path / "knock"
    occupant = Occupant(knock, times=1)
    case = BadCase(tmp_path, BAD_PORT_KNOCK=str(knock))
    ended = case.run(*case.repro_arguments())
    occupant.close()
    assert ended.code == 0, ended
    assert "port was taken by another program meanwhile" in ended.err
    assert len(set(occupant.ports)) == 2
    assert case.record()["verdict"]["outcome"] == "completed"


def test_a_port_that_is_taken_again_is_an_error_that_says_so(tmp_path: Path) -> None:
    knock = tmp_path / "knock"
    occupant = Occupant(knock, times=2)
    case = BadCase(tmp_path, BAD_PORT_KNOCK=str(knock))
    ended = case.refused(*case.repro_arguments(), code=5)
    occupant.close()
    assert "its port was taken by another program" in ended.error
    assert "Address already in use" in ended.err
    assert case.record()["status"] == "failed"
