"""Ctrl-C and SIGTERM in the middle of a search, and going on with it; what is refused before anything starts."""

import json
import os
import shlex
import signal
from pathlib import Path

import pytest

from tests.integration.bad_case import until
from tests.integration.bisect_command_case import BisectCommandCase, Planned

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
LIMIT_S = 400
HISTORY = (Planned("begin", "healthy"), Planned("say more"), Planned("fall back", "crawling"))


def finished(case: BisectCommandCase) -> int:
    """Trials whose end is in the journal."""
    return sum(
        path.read_text(encoding="utf-8").count('"event":"finished"') for path in case.runs.glob("*/journal.jsonl")
    )


def started(case: BisectCommandCase) -> int:
    return sum(
        path.read_text(encoding="utf-8").count('"event":"started"') for path in case.runs.glob("*/journal.jsonl")
    )


def test_ctrl_c_keeps_what_ended_and_the_printed_line_goes_on(tmp_path: Path) -> None:
    case = BisectCommandCase(tmp_path, HISTORY)
    child = case.start(*case.bisect_arguments("--no-controls"))
    until(lambda: started(case) == 2 and case.events("worker up")[2:], limit_s=LIMIT_S)
    os.kill(child.pid, signal.SIGINT)
    ended = case.finish(child)
    assert ended.code == 130, ended
    again = shlex.split(ended.err.splitlines()[-1])
    assert again[:4] == ["sparkdiag", "bisect", "--resume", "--folder"]
    assert finished(case) == 1
    (listed,) = json.loads(case.run("runs", "list", "--json").out)["runs"]
    assert (listed["state"], listed["because"], listed["trials"]) == ("interrupted", "it can be resumed", 1)

    page = case.run("report", str(case.bisection())).out
    assert page.startswith("## sparkdiag bisect: not finished\n")
    (case.bisection() / "bisection.json").unlink()
    rebuilt = case.run("report", str(case.bisection())).out
    assert rebuilt.startswith(page.split("<details>")[0])
    assert "rebuilt from the journal" in rebuilt

    resumed = case.run(*again[1:], limit_s=LIMIT_S)
    assert resumed.code == 0, resumed
    assert f"begins at {case.shas[2][:10]}" in resumed.out
    assert "1 trial is there" in resumed.err
    journal = (case.bisection() / "journal.jsonl").read_text(encoding="utf-8").splitlines()
    runs = [line for line in journal if '"event":"started"' in line and case.shas[0] in line]
    assert len(runs) == 1, "what had ended is not run again"


def test_sigterm_ends_it_as_tidily_with_one_json_document(tmp_path: Path) -> None:
    case = BisectCommandCase(tmp_path, HISTORY)
    child = case.start(*case.bisect_arguments("--no-controls", "--json"))
    until(lambda: case.events("worker up"), limit_s=LIMIT_S)
    os.kill(child.pid, signal.SIGTERM)
    ended = case.finish(child)
    assert ended.code == 143, ended
    error = json.loads(ended.out)["error"]
    assert (error["message"], error["exit_code"]) == ("interrupted", 143)
    assert error["next"].startswith("sparkdiag bisect --resume --folder ")


def test_a_resume_with_other_options_or_of_nothing_is_refused(tmp_path: Path) -> None:
    case = BisectCommandCase(tmp_path, HISTORY)
    case.refused("bisect", "--resume", code=2)
    case.refused("bisect", "--resume", "--folder", str(tmp_path), code=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--axis", "dcp=1,2", "--good", "HEAD"), "--axis searches values"),
        (("--confidence", "1.5"), "--confidence: found 1.5"),
        (("--looks-for", "slow"), "is not known"),
        (("--repo", "no/such"), "is no folder"),
        (("--good-run", "no/such"), "no/such"),
        (("--import", "no/such"), "no/such"),
        (("--good", "no-such-revision"), "no-such-revision"),
        (("lab",), "takes no argument 'lab'"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_starts(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    case = BisectCommandCase(tmp_path, HISTORY[:1])
    ended = case.refused("bisect", *arguments, code=2)
    assert words in ended.error
    assert not case.runs.exists()
