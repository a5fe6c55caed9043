"""A search that goes on is the search that was asked, and no secret is in what asks it."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from sparkdiag.bisecting.axes.axis import NAMED, SUSPECTED
from sparkdiag.bisecting.question.begun import begun, check_same, resume_request, with_kept_predictions
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


def test_a_search_that_goes_on_keeps_the_predictions_it_began_with() -> None:
    """What the source predicts may depend on how much time there was to read it: it is asked once."""
    route = {HISTORY.commits[3].sha: "route: a -> b", HISTORY.commits[5].sha: SUSPECTED}
    first = request_for(HISTORY, predicted=tuple(route), predicted_because=route)
    line = begun(first, at="now")
    assert not line.redacted
    again = request_for(HISTORY, predicted=(HISTORY.commits[5].sha,), predicted_because={})
    with pytest.raises(UsageError, match="predicted"):
        check_same(again, line)
    kept = with_kept_predictions(again, line)
    assert (kept.predicted, kept.predicted_because) == (first.predicted, route)
    check_same(kept, line)


def test_another_suspect_is_another_search_whatever_the_source_predicts() -> None:
    named, other = HISTORY.commits[2].sha, HISTORY.commits[4].sha
    route = HISTORY.commits[3].sha
    because = {named: NAMED, route: "route: a -> b"}
    line = begun(request_for(HISTORY, predicted=(named, route), predicted_because=because), at="now")
    same = request_for(HISTORY, predicted=(named,), predicted_because={named: NAMED})
    check_same(with_kept_predictions(same, line), line)
    different = request_for(HISTORY, predicted=(other,), predicted_because={other: NAMED})
    with pytest.raises(UsageError, match="predicted"):
        check_same(with_kept_predictions(different, line), line)


def test_a_journal_from_before_predictions_had_reasons_goes_on() -> None:
    old = request_for(HISTORY, predicted=(HISTORY.commits[5].sha,))
    line = begun(old, at="now")
    question = {key: value for key, value in line.question.items() if key != "predicted_because"}
    line = line.model_copy(update={"question": question})
    typed = old.model_copy(update={"predicted_because": {HISTORY.commits[5].sha: SUSPECTED}})
    check_same(with_kept_predictions(typed, line), line)
