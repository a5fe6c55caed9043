"""A search that goes on is the search that was asked, and no secret is in what asks it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from sparkdiag.bisecting.question.begun import begun, check_same, resume_request
from sparkdiag.bisecting.question.journal import Journal
from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.errors import UsageError
from sparkdiag.evidence.bisection import Target
from sparkdiag.recording.bisection import BisectionFolder
from sparkdiag.scenario.load import load_scenario
from tests.unit.bisecting.simulated import chain, request_for

HISTORY = chain(9)
SECRET = "hf_abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.fixture
def folder(tmp_path: Path) -> BisectionFolder:
    return BisectionFolder.create(tmp_path / "runs", scenario_name="x", dcp=2, now=datetime.now(UTC))


def write(folder: BisectionFolder, request: BisectRequest) -> None:
    Journal(folder.journal).append(begun(request, at="now"))


def with_server(request: BisectRequest, **changes: object) -> BisectRequest:
    scenario = request.repro.scenario
    server = scenario.server.model_copy(update=changes)
    repro = request.repro.model_copy(update={"scenario": scenario.model_copy(update={"server": server})})
    return request.model_copy(update={"repro": repro})


@pytest.mark.parametrize("name", ["lab", "sm12x-mqa-prefill"])
def test_a_request_comes_back_from_the_journal(folder: BisectionFolder, name: str) -> None:
    request = request_for(HISTORY, target=Target(what="frame", frame="f"), repeat=2, command=("sparkdiag", "bisect"))
    repro = request.repro.model_copy(update={"scenario": load_scenario(name)})
    request = request.model_copy(update={"repro": repro})
    write(folder, request)
    again = resume_request(folder)
    assert again.repro.runs_dir == str(folder.trials)
    assert again.model_copy(update={"repro": request.repro}) == request
    assert again.repro.model_copy(update={"runs_dir": request.repro.runs_dir}) == request.repro
    check_same(again, begun(request, at="now"))


def test_a_secret_is_not_written_and_has_to_be_typed_again(folder: BisectionFolder) -> None:
    request = with_server(
        request_for(HISTORY, command=("bisect", "--", "--api-key", SECRET)), args=("--api-key", SECRET)
    )
    write(folder, request)
    assert SECRET not in folder.journal.read_text()
    with pytest.raises(UsageError, match="leaves out secrets") as raised:
        resume_request(folder)
    assert SECRET not in str(raised.value.remedy)
    check_same(request, begun(request, at="now"))
    other = with_server(request, args=("--api-key", SECRET, "--seed", "1"))
    with pytest.raises(UsageError, match=r"repro\.scenario\.server\.args"):
        check_same(other, begun(request, at="now"))


@pytest.mark.parametrize("args", [("--trust-remote-code",), ("--host", "0.0.0.0")])
def test_what_only_the_command_line_may_tell_the_server_is_typed_again(
    folder: BisectionFolder, args: tuple[str, ...]
) -> None:
    """A folder may come from somebody else."""
    write(folder, with_server(request_for(HISTORY, command=("sparkdiag", "bisect")), args=args))
    with pytest.raises(UsageError, match="from the command line only"):
        resume_request(folder)


def test_a_secret_in_what_decides_nothing_is_not_asked_for_again(folder: BisectionFolder) -> None:
    commits = [commit.model_copy(update={"subject": f"Use {SECRET}"}) for commit in HISTORY.commits]
    history = HISTORY.model_copy(update={"commits": tuple(commits)})
    request = request_for(history, command=("sparkdiag", "bisect", f"--token={SECRET}"))
    write(folder, request)
    assert SECRET not in folder.journal.read_text()
    check_same(resume_request(folder), begun(request, at="now"))
    check_same(request, begun(request, at="now"))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"repeat": 3}, "repeat"),
        ({"confidence": 0.9}, "confidence"),
        ({"target": Target(what="crash")}, "target.what"),
        ({"axis": request_for(chain(8)).axis}, "axis.history, axis.new"),
    ],
)
def test_another_question_is_refused(changes: dict[str, object], named: str) -> None:
    request = request_for(HISTORY)
    with pytest.raises(UsageError, match=f"different: {named}"):
        check_same(request.model_copy(update=changes), begun(request, at="now"))


def test_what_decides_nothing_may_differ() -> None:
    request = request_for(HISTORY)
    repro = request.repro.model_copy(update={"runs_dir": "elsewhere", "keep_priority": True, "command": ("x",)})
    check_same(
        request.model_copy(update={"repro": repro, "command": ("x",), "notes": ("n",)}), begun(request, at="now")
    )


def test_a_question_of_an_older_sparkdiag_lacks_newer_options(folder: BisectionFolder) -> None:
    request = request_for(HISTORY)
    line = begun(request, at="now")
    question = {name: value for name, value in line.question.items() if name != "imported"}
    check_same(request, line.model_copy(update={"question": question}))


@pytest.mark.parametrize("content", ["", '{"event":"begun","at":"","old_end":"a","new_end":"b","question":{}}\n'])
def test_a_journal_that_asks_nothing_cannot_be_resumed(folder: BisectionFolder, content: str) -> None:
    folder.journal.write_text(content)
    with pytest.raises(UsageError, match=r"tells of no question|cannot read"):
        resume_request(folder)
