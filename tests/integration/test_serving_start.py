"""Starting: ready, not ready, failed; and what the log says about it."""

import contextlib
import os
import socket
import sys
from pathlib import Path

import httpx
import pytest

from sparkdiag.errors import ServerError
from sparkdiag.serving.command import ServerCommand
from sparkdiag.serving.identity import read_identity
from sparkdiag.serving.launch import launch
from sparkdiag.serving.private_folder import MARKER, make_private_folder, remove, unused_path
from sparkdiag.serving.readiness import free_port
from tests.integration.serving_case import Case, alive, until

pytestmark = pytest.mark.integration


def test_waiting_shows_the_last_line_and_the_phase_until_the_server_is_ready(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    case = Case(tmp_path, "slow-start", FAKE_VLLM_GATE=str(gate))
    seen: list[tuple[float, str, str | None]] = []

    def on_wait(elapsed_s: float, line: str, phase: str | None) -> None:
        seen.append((elapsed_s, line, phase))
        if phase == "loading weights" and gate.exists():
            gate.write_text("go")  # blocks until the server has opened its end
            gate.unlink()

    with case.launch() as server:
        took_s = server.wait_ready(60, on_wait)
    assert took_s >= seen[-1][0]
    assert any("Starting to load model" in line for _, line, _ in seen)
    assert "Starting to load model" in case.log_path.read_text()


def test_a_crash_while_loading_gives_the_log_lines_and_leaves_nothing(tmp_path: Path) -> None:
    case = Case(tmp_path, "crash-while-loading")
    with case.launch() as server, pytest.raises(ServerError, match="exit code 1") as raised:
        server.wait_ready(30)
    assert raised.value.details[-1] == "RuntimeError: fake: cannot load the model"
    assert not case.private_dir.exists()


def test_a_crash_during_a_request_is_noticed_and_leaves_nothing(tmp_path: Path) -> None:
    case = Case(tmp_path, "crash-in-request")
    with case.launch() as server:
        server.wait_ready(30)
        with contextlib.suppress(httpx.HTTPError):
            httpx.post(f"{server.base_url}/v1/completions", json={"prompt": "x" * 100}, timeout=30, trust_env=False)
        ended = until(server.poll)
        assert ended.exit_code == 1
        assert any("a worker is gone" in line for line in ended.last_log_lines)
        assert server.wait_gone(10)


@pytest.mark.parametrize(("mode", "words"), [("oom", "out of memory"), ("no-dcp-backend", "attention backend")])
def test_a_known_cause_is_named(tmp_path: Path, mode: str, words: str) -> None:
    with Case(tmp_path, mode).launch() as server, pytest.raises(ServerError, match=words):
        server.wait_ready(30)


def test_not_ready_in_time(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    case = Case(tmp_path, "slow-start", FAKE_VLLM_GATE=str(gate))
    with case.launch() as server, pytest.raises(ServerError, match="not ready after 1 s"):
        server.wait_ready(1)
    assert not alive(server.root_pid)


def test_a_port_that_somebody_else_holds_is_named_and_their_health_is_not_believed(tmp_path: Path) -> None:
    with Case(tmp_path).launch() as first:
        first.wait_ready(30)
        (tmp_path / "second").mkdir()
        second_case = Case(tmp_path / "second")
        with second_case.launch(port=first.command.port) as second, pytest.raises(ServerError, match="port"):
            second.wait_ready(30)
        assert first.poll() is None


@pytest.mark.parametrize("made", [True, False])
def test_a_program_that_is_not_there(tmp_path: Path, made: bool) -> None:
    command = ServerCommand(argv=("/no/such/python", "-m", "x"), env={}, port=free_port())
    private_dir, make = (unused_path(), ("inside",)) if made else (make_private_folder(), None)
    with pytest.raises(ServerError, match="No such file") as raised:
        launch(command, log_path=tmp_path / "log", private_dir=private_dir, make=make)
    assert raised.value.remedy == "sparkdiag env list"
    assert not private_dir.exists()


def test_a_temporary_folder_is_made_for_the_server_before_it_runs(tmp_path: Path) -> None:
    code = "import os; print(*sorted(os.listdir(os.environ['TMPDIR'])))"
    private_dir = unused_path()
    command = ServerCommand(argv=(sys.executable, "-c", code), env={"TMPDIR": str(private_dir)}, port=free_port())
    with launch(command, log_path=tmp_path / "log", private_dir=private_dir, make=("inside",)) as server:
        until(server.poll)
        assert server.wait_gone(10)
        assert not private_dir.exists()
    assert (tmp_path / "log").read_text() == f"{MARKER} inside\n"


def test_a_temporary_folder_that_is_there_already_is_somebody_elses(tmp_path: Path) -> None:
    case = Case(tmp_path)
    case.private_dir.mkdir()
    try:
        (case.private_dir / MARKER).touch()
        with pytest.raises(ServerError, match=f"{case.private_dir} could not be made: File exists") as raised:
            case.launch()
        assert raised.value.remedy == "sparkdiag doctor"
        assert (case.private_dir / MARKER).exists()
        assert not case.events_path.exists()
    finally:
        remove(case.private_dir)


def test_the_log_is_redacted_before_it_is_written_or_shown(tmp_path: Path) -> None:
    code = "import sys; print('\\x1b[31mtoken hf_secret\\x1b[0m'); print('no newline', end=''); sys.exit(3)"
    command = ServerCommand(argv=(sys.executable, "-c", code), env={}, port=free_port())
    log_path = tmp_path / "log"
    with launch(
        command, log_path=log_path, private_dir=tmp_path, redact=lambda text: text.replace("hf_secret", "***")
    ) as server:
        ended = until(server.poll)
    assert ended.exit_code == 3
    assert ended.last_log_lines[0] == "token ***"
    assert log_path.read_text() == "token ***\nno newline\n"


def test_dropped_variables_do_not_reach_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "k")
    code = "import os; print(os.environ.get('VLLM_API_KEY'), os.environ['ADDED'])"
    command = ServerCommand(
        argv=(sys.executable, "-c", code), env={"ADDED": "yes"}, drop_env=("VLLM_API_KEY",), port=free_port()
    )
    with launch(command, log_path=tmp_path / "log", private_dir=tmp_path) as server:
        until(server.poll)
    assert (tmp_path / "log").read_text() == "None yes\n"


def test_identity_by_every_witness(tmp_path: Path) -> None:
    case = Case(tmp_path)
    with case.launch() as server:
        server.wait_ready(30)
        found = read_identity(
            base_url=server.base_url, root_pid=server.root_pid, probe_dir=case.probe_dir, workers=2, timeout_s=30
        )
    assert found.version_endpoint == "0.0.1+fake"
    assert "--decode-context-parallel-size" in found.argv
    ranked = [process for process in found.processes if process.dcp_world_size is not None]
    assert [(process.dcp_world_size, process.dcp_rank) for process in ranked] == [(2, 0), (2, 1)]
    assert all(proof.module == "vllm.utils.deep_gemm" for process in ranked for proof in process.files)


def test_silent_witnesses_are_no_error(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        found = read_identity(base_url=url, root_pid=2**22 - 1, probe_dir=tmp_path, timeout_s=0)
    assert (found.version_endpoint, found.argv, found.processes) == (None, (), ())
