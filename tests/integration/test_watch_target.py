"""Finding a server that somebody else started: by port, by process, in a container, orphaned."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sparkdiag.errors import NoServerFound, UsageError
from sparkdiag.watching.target import Target, find_target
from tests.integration.watch_case import IN_A_CONTAINER, WITH_LOOPBACK, Foreign, can_unshare, command, eventually

pytestmark = pytest.mark.integration

WHOLE = ["APIServer", "EngineCore", "Worker_TP0_DCP0", "Worker_TP1_DCP1"]
UNDER_A_SHELL = ("sh", "-c", '"$@"; true', "sh")


def found_by(*, url: str | None = None, pid: int | None = None) -> Target:
    return find_target(url=url, pid=pid, metrics_url=None, remote=False)


def names(target: Target) -> list[str]:
    return [process.name for process in target.processes if process.role != "other"]


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Foreign]:
    started = Foreign(tmp_path, before=getattr(request, "param", ()))
    try:
        yield started.wait_up()
    finally:
        started.end()


@pytest.mark.parametrize("server", [UNDER_A_SHELL], indirect=True)
def test_port_and_every_process_lead_to_the_whole_tree_and_not_to_the_shell(server: Foreign) -> None:
    by_port = found_by(url=server.base_url)
    assert names(by_port) == WHOLE
    (root,) = by_port.roots
    assert "fake_vllm.py" in command(psutil.Process(root))
    assert command(psutil.Process(root)).startswith("sh") is False
    assert (by_port.base_url, by_port.metrics_url, by_port.notes, by_port.inner_pids) == (
        server.base_url,
        server.base_url,
        (),
        {},
    )
    for pid in [process.pid for process in by_port.processes] + [server.process.pid]:
        by_process = found_by(pid=pid)
        assert (by_process.roots, names(by_process)) == ((root,), WHOLE), command(psutil.Process(pid))
        assert by_process.base_url == server.base_url


def test_what_a_dead_api_server_left_is_found_by_its_titles(server: Foreign) -> None:
    pid = server.titled("VLLM::Worker_TP1").pid
    server.process.kill()
    server.process.wait()
    with pytest.raises(NoServerFound) as refused:
        found_by(url=server.base_url)  # nothing ties them to that port: whoever mistypes one gets nobody else's
    assert "--pid" in refused.value.message and "VLLM::EngineCore" in refused.value.message
    target = found_by(pid=pid)
    assert names(target) == WHOLE[1:]
    assert "no API server lives above these processes" in target.notes
    assert target.base_url is None
    engine = server.titled("VLLM::EngineCore")
    engine.kill()
    eventually(lambda: not engine.is_running() or engine.status() == psutil.STATUS_ZOMBIE, "it ends")
    target = found_by(pid=pid)
    assert names(target) == WHOLE[2:], "two orphans of one process group"
    assert len(target.roots) == 2


@pytest.mark.skipif(not can_unshare(), reason="needs to make namespaces")
@pytest.mark.parametrize("server", [(*IN_A_CONTAINER, *WITH_LOOPBACK)], indirect=True)
def test_a_server_in_namespaces_of_its_own_is_found_from_outside(server: Foreign) -> None:
    by_port = found_by(url=server.base_url)
    assert names(by_port) == WHOLE
    assert by_port.base_url is None, "its loopback is not ours"
    assert any("another network namespace" in note for note in by_port.notes)
    inner = [by_port.inner_pids[process.pid] for process in by_port.processes if process.role != "other"]
    assert inner[0] == 1 and inner == sorted(inner) and max(inner) < 50
    by_process = found_by(pid=server.titled("VLLM::Worker_TP0").pid)
    assert by_process.roots == by_port.roots
    assert any(f"port {server.port} in a network namespace of its own" in note for note in by_process.notes)
    answer = server.watch("--url", server.base_url, "--for-s", "3", "--json")
    assert answer.code == 3, answer
    looked = {one["name"] for one in answer.document["diagnosis"]["processes"]}
    assert {"Worker_TP0_DCP0", "Worker_TP1_DCP1"} <= looked
    assert answer.document["watched"]["pids_in_their_namespace"]
    assert f"({inner[1]} in its container)" in answer.err


def test_what_is_no_server_is_said_with_those_that_are(server: Foreign) -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            with pytest.raises(UsageError, match="of no vLLM or SGLang server") as refused:
                found_by(pid=stranger.pid)
        finally:
            stranger.kill()
    assert "sparkdiag watch --pid" in (refused.value.remedy or "")
    assert str(server.process.pid) in (refused.value.remedy or "")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(NoServerFound, match="does not answer; it is held by"):
            found_by(url=f"http://127.0.0.1:{port}")
