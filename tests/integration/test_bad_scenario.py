"""A malformed or hostile scenario file: one bounded, printable answer, exit 2, nothing started, nothing obeyed."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.bad_case import SCENARIO, BadCase

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]
GOOD = SCENARIO.format(server="")


def text(change: Callable[[str], str]) -> Callable[[Path], None]:
    return lambda path: path.write_text(change(GOOD), encoding="utf-8")


def data(content: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(content)


def env(line: str) -> Callable[[Path], None]:
    return text(lambda good: good.replace("[prompt]", f"[server.env]\n{line}\n[prompt]"))


def server(line: str) -> Callable[[Path], None]:
    return text(lambda good: good.replace("[prompt]", f"{line}\n[prompt]"))


def link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def listening(path: Path) -> None:
    holder = socket.socket(socket.AF_UNIX)
    here = os.open(path.parent, os.O_RDONLY)
    try:
        holder.bind(f"/proc/self/fd/{here}/{path.name}")  # a socket's own path may be too long for bind
    finally:
        os.close(here)
        holder.close()


CASES: dict[str, tuple[Callable[[Path], None], str]] = {
    "binary": (data(bytes(range(256)) * 40), "is not UTF-8"),
    "utf-16": (data(GOOD.encode("utf-16")), "is not UTF-8"),
    "null bytes": (data(b"\0" * 3000), "TOML syntax"),
    "huge": (data(b"#" * (64 << 20)), "is larger than 1024 KiB"),
    "empty": (data(b""), "name: found nothing"),
    "no TOML": (data(b"]["), "TOML syntax"),
    "a thousand arrays in each other": (data(b"x = " + b"[" * 100_000), "nested too deeply"),
    "deep tables": (text(lambda good: good + "[" + ".".join("a" * 60) + "]\n"), "a nest that is too deep"),
    "a number of 9,000 digits": (text(lambda good: good.replace("tp = 2", "tp = " + "9" * 9000)), "TOML syntax"),
    "a number of 80 digits": (text(lambda good: good.replace("tp = 2", "tp = " + "9" * 80)), "server.tp"),
    "wrong types": (text(lambda good: good.replace("tp = 2", 'tp = ["2"]')), "server.tp: found an array of 1"),
    "a table for a text": (text(lambda good: good.replace('name = "fake"', "[name]\nx = 1")), "name: found"),
    "not a number": (text(lambda good: good.replace("stuck_s = 6", "stuck_s = nan")), "patience.stuck_s: found nan"),
    "an unknown key": (server("tpp = 2"), "did you mean tp?"),
    "an escape in the title": (
        text(lambda good: good.replace("a fake tree", r"\u001b[2J\u001b]0;owned\u0007")),
        "title: found control characters",
    ),
    "an escape in a key": (text(lambda good: good + '"\\u001b[31mred" = 1\n'), "control characters in a key"),
    "a right-to-left override": (
        text(lambda good: good.replace("a fake tree", r"a \u202E fake")),
        "title: found control characters",
    ),
    "a name that leaves the folder": (
        text(lambda good: good.replace('name = "fake"', 'name = "../../../../tmp/out"')),
        "name: found '../../../../tmp/out'",
    ),
    "an absolute name": (
        text(lambda good: good.replace('name = "fake"', 'name = "/tmp/out"')),
        "name: found '/tmp/out'",
    ),
    "LD_PRELOAD": (env('LD_PRELOAD = "/tmp/evil.so"'), "server.env.LD_PRELOAD: found a variable that decides which"),
    "PATH": (env('PATH = "/tmp/evil"'), "server.env.PATH: found a variable that decides which"),
    "PYTHONSTARTUP": (env('PYTHONSTARTUP = "/tmp/e.py"'), "server.env.PYTHONSTARTUP"),
    "PYTHONPATH": (env('PYTHONPATH = "/tmp/evil"'), "server.env.PYTHONPATH"),
    "a proxy": (env('https_proxy = "http://evil.test"'), "server.env.https_proxy"),
    "another host": (env('VLLM_HOST_IP = "0.0.0.0"'), "server.env.VLLM_HOST_IP: found an address other than loopback"),
    "a key": (env('VLLM_API_KEY = "sk-planted"'), "server.env.VLLM_API_KEY: found the name of a secret"),
    "a variable's name with =": (env('"A=B" = "x"'), "server.env: found 'A=B'"),
    "a null byte in a variable": (env(r'VLLM_X = "a\u0000b"'), "server.env.VLLM_X: found control characters"),
    "a model that is an option": (
        text(lambda good: good.replace('model = "org/fake"', 'model = "--uds=/tmp/x"')),
        "server.model: found '--uds=/tmp/x'",
    ),
    "code in the server": (server('args = ["--middleware", "evil.Steal"]'), "if you trust it, give it after --"),
    "code of the model": (
        server('args = ["--trust_remote"]'),
        "server.args[0]: found '--trust-remote', which can load",
    ),
    "another hub": (env('HF_ENDPOINT = "http://evil.test"'), "server.env.HF_ENDPOINT: found a variable that leads"),
    "usage statistics": (env('VLLM_NO_USAGE_STATS = "0"'), "server.env.VLLM_NO_USAGE_STATS: found a value"),
    "a prompt without end": (
        text(lambda good: good.replace("tokens = 16384", "tokens = 1000000000000")),
        "prompt.tokens: found 1000000000000; allowed: an integer, at least 64, at most 10000000",
    ),
    "a folder": (lambda path: path.mkdir(), "is a folder"),
    "a pipe that nobody writes": (os.mkfifo, "is a pipe, socket or device"),
    "a socket": (listening, "cannot be opened"),
    "a link to itself": (link_to("bad.toml"), "cannot be opened (Too many levels of symbolic links)"),
    "a link to nothing": (link_to("none.toml"), "cannot be opened (No such file or directory)"),
    "a device without end": (link_to("/dev/zero"), "is a pipe, socket or device"),
    "a terminal": (link_to("/dev/tty"), "cannot be opened"),
    "a file of the kernel": (link_to("/proc/self/environ"), "TOML syntax"),
    "nothing": (lambda path: None, "cannot be opened (No such file or directory)"),
}


@pytest.mark.parametrize("what", CASES)
def test_it_is_refused_with_what_is_wrong(what: str, tmp_path: Path) -> None:
    make, said = CASES[what]
    case = BadCase(tmp_path)
    case.scenario = tmp_path / "bad.toml"
    make(case.scenario)
    ended = case.refused(*case.repro_arguments(), code=2)
    assert said in ended.err, ended.err
    assert "sk-planted" not in ended.err and "evil" not in ended.err
    assert len(ended.err) < 8000
    assert not case.runs.exists() and not case.events_path.exists()


def test_what_a_file_holds_is_not_repeated_as_an_answer(tmp_path: Path) -> None:
    """A link to somebody's secrets is no scenario, and the complaint must not print them."""
    case = BadCase(tmp_path)
    (tmp_path / "secrets").write_text("password-is-0815-planted\n" * 9, encoding="utf-8")
    case.scenario = tmp_path / "bad.toml"
    case.scenario.symlink_to("secrets")
    assert "0815" not in case.refused(*case.repro_arguments(), code=2).err
    assert "0815" not in case.refused("scenario", "check", "./bad.toml", code=2).err


def test_a_name_on_the_command_line_cannot_steer_the_terminal(tmp_path: Path) -> None:
    case = BadCase(tmp_path)
    for name in ("\x1b[2Jx.toml", "no\x07thing", "\u202e.toml", "a" * 5000, "../" * 1000 + "x.toml"):
        ended = case.refused("repro", "--scenario", name, "--env", "existing:/x", code=2)
        assert len(ended.err) < 20_000
