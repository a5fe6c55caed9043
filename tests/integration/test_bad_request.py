"""What cannot be or must not be is refused before anything starts: no run folder, no process, a way out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.bad_case import BadCase, until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
SECRET = "sk-planted-0815"


@pytest.fixture
def case(tmp_path: Path) -> BadCase:
    return BadCase(tmp_path)


def assert_nothing_started(case: BadCase) -> None:
    assert not case.runs.exists()
    assert not case.events_path.exists()


@pytest.mark.parametrize("model", ["/no/such/model", "./no-such-model", "../x", "a/b/c", "~/model", "/dev/null/x", "."])
def test_a_model_path_that_is_not_there_is_refused_before_anything_starts(case: BadCase, model: str) -> None:
    ended = case.refused(*case.repro_arguments("--model", model), code=2)
    assert f"the model '{model}'" in ended.error or f"the model folder '{model}'" in ended.error
    assert "--model /path/to/the/model" in ended.next
    assert_nothing_started(case)


def test_dcp_that_does_not_divide_tp_is_refused_before_anything_starts(case: BadCase) -> None:
    ended = case.refused(*case.repro_arguments("--dcp", "3"), code=2)
    assert "--dcp 3 does not divide the scenario's tensor parallel size 2" in ended.error
    assert "--dcp 3 --tp 3" in ended.next
    ended = case.refused(*case.repro_arguments("--dcp", "3", "--tp", "100000000000000"), code=2)
    assert "at most 1024" in ended.err
    assert_nothing_started(case)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--host", "0.0.0.0"),
        ("--host=0.0.0.0",),
        ("--ho", "0.0.0.0"),
        ("--uds", "/tmp/x.sock"),
        ("--port", "8000"),
        ("--api-key", SECRET),
        (f"--api_key={SECRET}",),
        ("--seed", "1", "--ssl-keyfile", SECRET),
        ("--hf-token", SECRET),
        ("--config", "vllm.yaml"),
    ],
)
def test_an_address_or_a_key_of_the_servers_own_is_refused_at_once(case: BadCase, arguments: tuple[str, ...]) -> None:
    ended = case.refused(*case.repro_arguments("--", *arguments), code=2)
    assert "is sparkdiag's own to choose" in ended.error
    assert SECRET not in ended.err
    assert_nothing_started(case)


def test_a_scenario_without_a_model_is_refused_before_anything_starts(case: BadCase) -> None:
    case.scenario.write_text(case.scenario.read_text(encoding="utf-8").replace('model = "org/fake"\n', ""))
    ended = case.refused(*case.repro_arguments(), code=2)
    assert "scenario fake names no model" in ended.error
    assert "--model" in ended.next
    assert_nothing_started(case)


@pytest.mark.parametrize(
    "line", ['args = ["--host", "0.0.0.0"]', 'args = ["--uds=/x"]', 'args = ["--api-key", "k-815"]']
)
def test_a_scenario_cannot_set_them_either(case: BadCase, line: str) -> None:
    case.write_scenario(server=line)
    ended = case.refused(*case.repro_arguments(), code=2)
    assert "server.args[0]" in ended.err and "loopback" in ended.err
    assert "k-815" not in ended.err and "0.0.0.0" not in ended.err
    assert_nothing_started(case)


def test_a_repo_where_no_git_is_installed_names_git(case: BadCase, tmp_path: Path) -> None:
    (tmp_path / "clone").mkdir()
    ended = case.refused(*case.repro_arguments("--repo", "clone"), code=4, PATH=str(tmp_path))
    assert "git is not installed" in ended.error
    assert "install git" in ended.next
    assert_nothing_started(case)


def test_a_lock_that_cannot_be_made_is_named(case: BadCase) -> None:
    (case.folder / "a-file").write_text("", encoding="utf-8")
    ended = case.refused(*case.repro_arguments(), code=4, XDG_CACHE_HOME=str(case.folder / "a-file"))
    assert "lock" in ended.error and "cannot be made" in ended.error
    assert "XDG_CACHE_HOME=" in ended.next
    assert_nothing_started(case)


def test_a_second_run_waits_with_one_line_and_no_wait_ends_with_4(case: BadCase) -> None:
    gate = case.folder / "gate"
    os.mkfifo(gate)
    slow = {"FAKE_VLLM_MODE": "healthy,slow-start", "FAKE_VLLM_GATE": str(gate)}
    first = case.start(*case.repro_arguments(), **slow)
    until(lambda: case.events("api started"))
    held = f"repro fake at DCP 2 (pid {first.pid})"
    refused = subprocess.run(
        [sys.executable, "-m", "sparkdiag", *case.repro_arguments("--no-wait")],
        cwd=case.folder, env=case.env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert refused.returncode == 4
    assert refused.stderr.splitlines()[-2:] == [
        f"error: another run holds this machine: {held}",
        "next: run it without --no-wait to wait for its end",
    ]
    second = case.start(*case.repro_arguments())
    assert second.stderr is not None
    said = [second.stderr.readline(), second.stderr.readline()]
    assert said[1] == f"waiting for the machine (0 s): {held} holds it\n"
    gate.write_text("go")
    out, err = first.communicate(timeout=120)
    assert first.returncode == 0, (out, err)
    ended = case.finish(second)
    assert ended.code == 0, ended
    assert "waiting for the machine" not in ended.err  # it had been said once
    assert len(list(case.runs.iterdir())) == 3  # two runs and the .gitignore
