"""What is tried next, and what is concluded: the rules of the search, played through without a disk."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.bisecting.question.journal import Finished
from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.bisecting.search.history import History
from sparkdiag.evidence.bisection import Bisection, Commit, Purpose, Target, TrialResult
from tests.unit.bisecting.simulated import (
    OTHER_STALL,
    SimulatedRunner,
    chain,
    completed,
    play,
    random_history,
    request_for,
    sha_of,
    skipped,
    stalled,
)

HISTORY = chain(16)
OLD, NEW = sha_of(0), sha_of(15)
Override = Callable[[str, Purpose], TrialResult]


def skip(sha: str, _purpose: Purpose) -> TrialResult:
    return skipped(sha)


def shas(answer: Bisection) -> list[str]:
    return [commit.sha for commit in answer.commits]


def reason(answer: Bisection) -> str:
    assert answer.reason is not None
    return answer.reason


@given(seed=st.integers(0, 10**9), length=st.integers(2, 60), fix=st.booleans(), controls=st.booleans())
def test_every_monotone_history_gives_its_culprit(seed: int, length: int, fix: bool, controls: bool) -> None:
    chance = random.Random(seed)
    history = random_history(chance, length)
    culprit = sha_of(chance.randrange(1, length))
    predicted = tuple(sha_of(chance.randrange(length)) for _ in range(chance.randrange(3)))
    request = request_for(history, controls=controls, predicted=predicted, repeat=chance.choice([1, 1, 2]))
    answer, _ = play(request, SimulatedRunner(history, culprit, fix=fix))
    assert (answer.outcome, shas(answer)) == ("found", [culprit])
    assert answer.direction == ("fix" if fix else "regression")


@given(seed=st.integers(0, 10**9), length=st.integers(3, 60), share=st.floats(0, 0.9))
def test_skips_never_lead_to_a_wrong_culprit(seed: int, length: int, share: float) -> None:
    chance = random.Random(seed)
    history = random_history(chance, length)
    culprit = sha_of(chance.randrange(1, length))
    cannot = {sha_of(number): skip for number in range(1, length - 1) if chance.random() < share}
    answer, _ = play(request_for(history), SimulatedRunner(history, culprit, overrides=cannot))
    assert culprit in shas(answer)
    assert (answer.outcome == "found") == (len(answer.commits) == 1)
    assert sorted(shas(answer), key=history.index.__getitem__) == shas(answer)
    if answer.outcome == "candidates":
        assert "does not start" in reason(answer)


@pytest.mark.parametrize("controls", [True, False])
@pytest.mark.parametrize("both", ["yes", "no"])
def test_ends_that_do_not_differ_tell_which_lever_to_pull(both: str, controls: bool) -> None:
    here: Override = (lambda sha, _: stalled(sha)) if both == "yes" else (lambda sha, _: completed(sha))
    runner = SimulatedRunner(HISTORY, sha_of(5), overrides={OLD: here, NEW: here})
    answer, _ = play(request_for(HISTORY, controls=controls), runner)
    assert (answer.outcome, answer.commits, answer.direction) == ("inconclusive", (), None)
    assert ("both ends have it" if both == "yes" else "neither end has it") in reason(answer)
    assert "--dcp" in reason(answer)
    assert runner.ran == [(OLD, "end"), (NEW, "end")]


def test_ends_that_stall_in_different_ways() -> None:
    overrides: dict[str, Override] = {OLD: lambda sha, _: stalled(sha, OTHER_STALL)}
    answer, _ = play(request_for(HISTORY), SimulatedRunner(HISTORY, sha_of(5), overrides=overrides))
    assert answer.outcome == "inconclusive"
    assert "stall in different ways" in reason(answer)


@pytest.mark.parametrize(("end", "name"), [(OLD, "older"), (NEW, "newer")])
def test_an_end_that_cannot_be_judged_is_named(end: str, name: str) -> None:
    runner = SimulatedRunner(HISTORY, sha_of(5), overrides={end: skip})
    answer, _ = play(request_for(HISTORY), runner)
    assert answer.outcome == "inconclusive"
    assert f"the {name} end {end[:10]} cannot be judged: does not start" in reason(answer)
    assert f"name another {name} end" in reason(answer)
    assert runner.ran == ([(OLD, "end")] if end == OLD else [(OLD, "end"), (NEW, "end")])


def undecided(sha: str, _purpose: Purpose) -> TrialResult:
    return TrialResult(sha=sha, outcome="inconclusive", reason="slow; no baseline", minutes=9)


def test_an_end_that_lacked_a_baseline_is_run_again_with_the_other_ends_time() -> None:
    runner = SimulatedRunner(HISTORY, sha_of(5), fix=True)
    blind = {OLD: lambda sha, purpose: undecided(sha, purpose) if runner.healthy[-1] is None else stalled(sha)}
    runner._overrides = blind
    answer, _ = play(request_for(HISTORY), runner)
    assert shas(answer) == [sha_of(5)]
    assert runner.ran[:3] == [(OLD, "end"), (NEW, "end"), (OLD, "end")]
    assert [healthy and healthy.sha for healthy in runner.healthy[:3]] == [None, None, NEW]
    assert any("run again once the other end gave a healthy time" in note for note in answer.notes)


def test_it_is_run_again_once_and_no_more() -> None:
    runner = SimulatedRunner(HISTORY, sha_of(5), fix=True, overrides={OLD: undecided})
    answer, _ = play(request_for(HISTORY), runner)
    assert answer.outcome == "inconclusive"
    assert "older end" in reason(answer)
    assert runner.ran == [(OLD, "end"), (NEW, "end"), (OLD, "end")]


@pytest.mark.parametrize("repeat", [1, 3])
def test_an_end_that_completed_slowly_without_a_baseline_is_run_again_too(repeat: int) -> None:
    """With nothing to compare it with, a crawl that comes to its end looks healthy, and would even be the baseline."""

    def crawls(sha: str, _purpose: Purpose) -> TrialResult:
        known = runner.healthy[-1] is not None and runner.healthy[-1].sha == NEW
        return stalled(sha) if known else completed(sha).model_copy(update={"first_token_s": 118.0})

    runner = SimulatedRunner(HISTORY, sha_of(5), fix=True, overrides={OLD: crawls})
    answer, _ = play(request_for(HISTORY, repeat=repeat), runner)
    assert (answer.outcome, answer.direction, shas(answer)) == ("found", "fix", [sha_of(5)])
    assert runner.ran[:3] == [(OLD, "end"), (NEW, "end"), (OLD, "end")]
    assert all(healthy is not None and healthy.sha == NEW for healthy in runner.healthy[2:])
    assert any("run again once the other end gave a healthy time" in note for note in answer.notes)


def test_an_end_that_stays_slow_is_not_taken_for_healthy() -> None:
    def slow(sha: str, _purpose: Purpose) -> TrialResult:
        healthy = runner.healthy[-1]
        return completed(sha).model_copy(
            update={"first_token_s": 30.0, "times_healthy": None if healthy is None else 30.0 / 4.0}
        )

    runner = SimulatedRunner(HISTORY, sha_of(5), fix=True, overrides={OLD: slow})
    answer, _ = play(request_for(HISTORY), runner)
    assert answer.outcome == "inconclusive"
    assert "older end 0000000000 cannot be judged: completed, but after 7.5 times" in reason(answer)
    assert runner.ran == [(OLD, "end"), (NEW, "end"), (OLD, "end")]


def test_a_stall_that_came_to_its_end_is_no_fix_and_no_baseline() -> None:
    """Seen on a busy machine: 243 s with a healthy time of 20 s, as the kernel alone was timed."""

    def came_to_its_end(sha: str, _purpose: Purpose) -> TrialResult:
        return completed(sha).model_copy(update={"first_token_s": 243.0, "times_healthy": 12.2})

    runner = SimulatedRunner(HISTORY, sha_of(5), fix=True, overrides={NEW: came_to_its_end})
    answer, _ = play(request_for(HISTORY), runner)
    assert answer.outcome == "inconclusive"
    assert "completed, but after 12.2 times the healthy time" in reason(answer)
    assert set(runner.healthy) == {None}


@pytest.mark.parametrize("end", [OLD, NEW])
@pytest.mark.parametrize("fix", [True, False])
def test_a_stall_that_watching_brings_or_hides_is_refused(end: str, fix: bool) -> None:
    has_it = (end == OLD) == fix

    def otherwise(sha: str, purpose: Purpose) -> TrialResult:
        stalls = has_it != (purpose == "control")
        return (stalled if stalls else completed)(sha, watched=purpose != "control")

    runner = SimulatedRunner(HISTORY, sha_of(5), fix=fix, overrides={end: otherwise})
    answer, _ = play(request_for(HISTORY, controls=True), runner)
    assert (answer.outcome, answer.commits) == ("inconclusive", ())
    assert "when nobody samples" in reason(answer)
    assert ("vanishes" in reason(answer)) == has_it
    assert runner.searched() == []


def test_a_control_that_tells_nothing_is_noted_and_holds_nobody_up() -> None:
    def no_control(sha: str, purpose: Purpose) -> TrialResult:
        return skipped(sha, "the port was taken") if purpose == "control" else stalled(sha)

    runner = SimulatedRunner(HISTORY, sha_of(5), overrides={NEW: no_control})
    answer, _ = play(request_for(HISTORY, controls=True), runner)
    assert shas(answer) == [sha_of(5)]
    assert f"the unwatched run of {NEW[:10]} tells nothing: the port was taken" in answer.notes


def test_a_frame_cannot_be_looked_for_unwatched() -> None:
    target = Target(what="frame", frame="mqa_logits_torch")
    runner = SimulatedRunner(HISTORY, sha_of(5))
    answer, _ = play(request_for(HISTORY, controls=True, target=target), runner)
    assert (answer.outcome, shas(answer), answer.reference) == ("found", [sha_of(5)], None)
    assert all(purpose != "control" for _, purpose in runner.ran)
    assert any("a frame is seen only by who samples" in note for note in answer.notes)


@pytest.mark.parametrize("what", ["wrong-needle", "crash"])
def test_other_targets(what: str) -> None:
    target = Target.model_validate({"what": what})

    def shows(sha: str, purpose: Purpose) -> TrialResult:
        watched = purpose != "control"
        if HISTORY.index[sha] < 5:
            return completed(sha, watched=watched)
        if what == "crash":
            return TrialResult(sha=sha, outcome="crashed", reason="ValueError: no", watched=watched)
        return completed(sha, watched=watched).model_copy(update={"needle": "wrong"})

    runner = SimulatedRunner(HISTORY, sha_of(5), overrides={commit.sha: shows for commit in HISTORY.commits})
    answer, _ = play(request_for(HISTORY, controls=True, target=target), runner)
    assert (answer.outcome, shas(answer)) == ("found", [sha_of(5)])
    assert sum(purpose == "control" for _, purpose in runner.ran) == 2


def test_another_stall_is_no_evidence() -> None:
    """Whoever counted it as the stall would blame 6; whoever counted it as none would be right by luck only."""
    overrides: dict[str, Override] = {
        sha_of(number): lambda sha, _: stalled(sha, OTHER_STALL) for number in range(6, 11)
    }
    runner = SimulatedRunner(HISTORY, sha_of(9), overrides=overrides)
    answer, _ = play(request_for(HISTORY), runner)
    assert answer.outcome == "candidates"
    assert shas(answer) == [sha_of(number) for number in range(6, 12)]
    assert "another stall" in reason(answer)
    assert all(trial.mark == "skip" for trial in answer.trials if trial.result.sha in overrides)


def test_runs_that_disagree_make_a_point_flaky() -> None:
    runs: dict[str, int] = {}

    def flaky(sha: str, _purpose: Purpose) -> TrialResult:
        runs[sha] = runs.get(sha, 0) + 1
        return stalled(sha) if runs[sha] % 2 else completed(sha)

    runner = SimulatedRunner(HISTORY, sha_of(8), overrides={sha_of(8): flaky})
    answer, _ = play(request_for(HISTORY, repeat=3), runner)
    assert answer.outcome == "candidates"
    assert shas(answer) == [sha_of(8), sha_of(9)]
    assert "flaky: 1 of 2 runs had it" in reason(answer)
    judged = [sha for sha, purpose in runner.ran if purpose == "search"]
    assert all(judged.count(sha) == (2 if sha == sha_of(8) else 3) for sha in judged)
    assert [sha for sha, purpose in runner.ran if purpose == "end"].count(OLD) == 3


def test_an_end_whose_runs_disagree_ends_the_search() -> None:
    runs: list[str] = []

    def flaky(sha: str, _purpose: Purpose) -> TrialResult:
        runs.append(sha)
        return stalled(sha) if len(runs) == 1 else completed(sha)

    answer, _ = play(request_for(HISTORY, repeat=2), SimulatedRunner(HISTORY, sha_of(8), overrides={NEW: flaky}))
    assert answer.outcome == "inconclusive"
    assert "newer end" in reason(answer)
    assert "flaky" in reason(answer)


@pytest.mark.parametrize("right", [True, False])
def test_predictions_come_first_and_a_wrong_one_is_told_of(right: bool) -> None:
    history = chain(200)
    culprit = sha_of(37)
    predicted = culprit if right else sha_of(120)
    runner = SimulatedRunner(history, culprit)
    because = {predicted: "route: a -> b"}
    answer, _ = play(request_for(history, predicted=(predicted,), predicted_because=because), runner)
    assert shas(answer) == [culprit]
    assert runner.searched()[0] == predicted
    if right:
        assert runner.searched() == [culprit, sha_of(36)]
        assert f"{culprit[:10]} was predicted (route: a -> b)" in answer.notes
    else:
        assert len(runner.searched()) <= 8 + 2
        assert f"{predicted[:10]} was predicted (route: a -> b), and is not it" in answer.notes


@pytest.mark.parametrize("fix", [True, False])
@pytest.mark.parametrize("again", [True, False])
def test_the_culprits_stall_is_confirmed_before_its_kernel_is_named(fix: bool, again: bool) -> None:
    def shows(sha: str, purpose: Purpose) -> TrialResult:
        if purpose == "confirm" and not again:
            return stalled(sha, OTHER_STALL)
        return runner.truth(sha, purpose)

    confirmed = sha_of(7) if fix else sha_of(8)
    runner = SimulatedRunner(HISTORY, sha_of(8), fix=fix, overrides={confirmed: shows})
    answer, _ = play(request_for(HISTORY, confirm=True), runner)
    assert (answer.outcome, shas(answer)) == ("found", [sha_of(8)])
    assert runner.ran[-1] == (confirmed, "confirm")
    assert sum(purpose == "confirm" for _, purpose in runner.ran) == 1
    expected = "confirmed: mqa_logits_torch stalls" if again else "which kernel is slow is not known"
    assert any(expected in note for note in answer.notes)


def test_a_stated_confidence_is_reached_although_verdicts_lie() -> None:
    history = chain(64)
    lies = random.Random(5)

    def noisy(sha: str, purpose: Purpose) -> TrialResult:
        truth = runner.truth(sha, purpose)
        if purpose != "search" or lies.random() > 0.1:
            return truth
        return completed(sha) if truth.outcome == "stalled" else truth

    runner = SimulatedRunner(history, sha_of(23), overrides={commit.sha: noisy for commit in history.commits})
    answer, _ = play(request_for(history, confidence=0.95), runner)
    assert (answer.outcome, shas(answer)) == ("found", [sha_of(23)])
    assert answer.confidence is not None
    assert answer.confidence >= 0.95
    assert len(runner.searched()) > 6
    assert any("taken for certain" in note for note in answer.notes)


def test_where_verdicts_are_mere_noise_the_search_ends_with_candidates() -> None:
    chance = random.Random(3)
    history = chain(32)

    def noise(sha: str, purpose: Purpose) -> TrialResult:
        if purpose == "end":
            return runner.truth(sha, purpose)
        return stalled(sha) if chance.random() < 0.5 else completed(sha)

    runner = SimulatedRunner(history, sha_of(9), overrides={commit.sha: noise for commit in history.commits})
    answer, _ = play(request_for(history, confidence=0.999999), runner)
    assert answer.outcome == "candidates"
    assert len(answer.commits) > 1
    assert len(runner.searched()) <= 3 * 5 + 20
    assert "no point has" in reason(answer)


def test_with_a_confidence_skips_hide_the_answer_too() -> None:
    overrides: dict[str, Override] = {sha_of(number): skip for number in (7, 8)}
    runner = SimulatedRunner(HISTORY, sha_of(8), overrides=overrides)
    answer, _ = play(request_for(HISTORY, confidence=0.9), runner)
    assert answer.outcome == "candidates"
    assert shas(answer) == [sha_of(7), sha_of(8), sha_of(9)]
    assert "2 could not be judged" in reason(answer)


def test_the_first_results_stand_whatever_comes_later(request_with_all: BisectRequest) -> None:
    """Any beginning of a search leads to its end: nothing is decided outside of what the journal holds."""
    runner = SimulatedRunner(HISTORY, sha_of(9), overrides={sha_of(7): skip})
    answer, finished = play(request_with_all, runner)
    for number in range(len(finished)):
        again = SimulatedRunner(HISTORY, sha_of(9), overrides={sha_of(7): skip})
        resumed, everything = play(request_with_all, again, given=finished[:number])
        assert resumed == answer
        assert everything == finished


@pytest.fixture
def request_with_all() -> BisectRequest:
    return request_for(HISTORY, controls=True, confirm=True, repeat=2)


def test_an_earlier_run_stands_for_all_runs_of_an_end() -> None:
    given = [Finished(at="", purpose="end", result=completed(OLD).model_copy(update={"reused_from": "runs/before"}))]
    runner = SimulatedRunner(HISTORY, sha_of(9))
    answer, _ = play(request_for(HISTORY, repeat=3), runner, given=given)
    assert shas(answer) == [sha_of(9)]
    assert (OLD, "end") not in runner.ran
    assert runner.healthy[0] == given[0].result
    assert any("an earlier run stands for it (runs/before)" in note for note in answer.notes)


def test_a_culprit_whose_parent_was_never_run_is_told_of() -> None:
    """The first commit of a branch that is older than the older end: what is before it is taken on trust."""
    parents: dict[int, tuple[int, ...]] = {0: (), 1: (), 2: (1,), 3: (0, 2), 4: (3,)}
    history = History.of(
        Commit(sha=sha_of(number), parents=tuple(map(sha_of, before))) for number, before in parents.items()
    )
    for culprit, told in ((1, True), (2, False), (3, False), (4, False)):
        answer, _ = play(request_for(history), SimulatedRunner(history, sha_of(culprit)))
        assert (answer.outcome, shas(answer)) == ("found", [sha_of(culprit)])
        assert any("its own parent was not run" in note for note in answer.notes) == told
