"""The entry point: every way to fail has its documented exit code, and ``--json`` its one document."""

import json
from pathlib import Path

import pytest

from sparkdiag.cli import app as cli
from sparkdiag.cli import repro
from sparkdiag.errors import ServerError
from sparkdiag.reproducing import session


def run(monkeypatch: pytest.MonkeyPatch, *argv: str) -> int:
    monkeypatch.setattr("sys.argv", ["sparkdiag", *argv])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


@pytest.fixture(autouse=True)
def no_gpu_and_no_config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARKDIAG_CONFIG", str(tmp_path / "none.toml"))
    monkeypatch.setattr("sparkdiag.observing.gpu.gpu_names", lambda: ())


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("repro", "--nope"), "No such option: --nope"),
        (("repro", "--dcp", "two"), "--dcp"),
        (("repro", "--dcp", "3"), "--dcp 3 does not divide"),
        (("repro", "lab"), "repro takes no argument 'lab'"),
        (("repro", "--repo", "/no/such/clone"), "--repo /no/such/clone is no folder"),
        (("repro", "--baseline-s", "nan"), "--baseline-s: found nan"),
        (("repro", "--baseline-s", "-1"), "--baseline-s: found -1"),
        (("repro", "--baseline-s", "0"), "--baseline-s: found 0"),
        (("repro", "--timeout-s", "0"), "--timeout-s: patience.timeout_s: found 0"),
        (("report", "--format", "pdf", "x"), "--format': 'pdf' is not one of"),
        (("nonsense",), "nonsense"),
    ],
)
def test_what_makes_no_sense_is_said_once_and_in_json_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], message: str
) -> None:
    assert run(monkeypatch, *argv) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert shown.err.count("found") <= 1
    assert run(monkeypatch, argv[0], "--json", *argv[1:]) == 2
    document = json.loads(capsys.readouterr().out)
    assert message in document["error"]["message"]
    assert document["error"]["exit_code"] == 2


def test_git_bisect_never_takes_a_usage_error_for_a_bad_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "repro", "--git-bisect", "--nope") == 128
    assert run(monkeypatch, "repro", "--git-bisect", "--dcp", "3") == 128
    assert run(monkeypatch, "repro", "--git-bisect", "--scenario", "nope") == 128


@pytest.mark.parametrize(("more", "code"), [((), 70), (("--git-bisect",), 128)])
def test_a_defect_is_no_reproduced_stall(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], code: int
) -> None:
    def broken(*_args: object, **_kwargs: object) -> int:
        raise ZeroDivisionError("surprise")

    monkeypatch.setattr(repro, "_run", broken)
    assert run(monkeypatch, "repro", "--json", *more) == code
    shown = capsys.readouterr()
    assert json.loads(shown.out)["error"]["message"] == "sparkdiag failed by itself: ZeroDivisionError: surprise"
    assert "Traceback" in shown.err


def test_the_codes_of_commands_pass_through(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(repro, "_run", lambda *_args, **_kwargs: 6)
    assert run(monkeypatch, "repro") == 6
    assert run(monkeypatch, "--version") == 0
    assert run(monkeypatch, "scenario", "list", "--json") == 0
    assert run(monkeypatch, "env") in (0, 2)
    assert "Usage" in "".join(capsys.readouterr())


def test_a_closed_pipe_is_no_reproduced_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_args: object, **_kwargs: object) -> int:
        raise BrokenPipeError(32, "Broken pipe")

    stdout, stderr = __import__("sys").stdout, __import__("sys").stderr
    monkeypatch.setattr(repro, "_run", closed)
    try:
        assert run(monkeypatch, "repro") == 141
    finally:
        monkeypatch.setattr("sys.stdout", stdout)
        monkeypatch.setattr("sys.stderr", stderr)


@pytest.mark.parametrize(("more", "code"), [((), 130), (("--git-bisect",), 128)])
def test_an_interrupted_run_is_one_document_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], code: int
) -> None:
    def interrupted(*_args: object, **_kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "reproduce", interrupted)
    assert run(monkeypatch, "repro", "--json", *more) == code
    shown = capsys.readouterr()
    assert json.loads(shown.out)["error"] == {
        "kind": "SparkdiagError",
        "message": "interrupted",
        "details": [],
        "next": shown.err.rsplit("Run it again with: ", 1)[1].strip(),
        "exit_code": 130,
    }


def test_git_bisect_gets_the_code_of_what_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(*_args: object, **_kwargs: object) -> None:
        raise ServerError("the server was not ready", remedy="look", details=("a line",))

    monkeypatch.setattr(session, "reproduce", failing)
    assert run(monkeypatch, "repro", "--git-bisect") == 125
    assert "  a line\nnext: look" in capsys.readouterr().err
