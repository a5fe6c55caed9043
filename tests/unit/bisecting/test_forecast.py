"""What a search is said to take, against what it takes."""

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkdiag.bisecting.question.journal import Finished
from sparkdiag.bisecting.question.request import ImportedMark
from sparkdiag.bisecting.steps.forecast import forecast, minutes_left, possible_next
from sparkdiag.bisecting.steps.state import TrialStep, fold
from sparkdiag.bisecting.steps.step import next_step
from sparkdiag.evidence.bisection import Target
from tests.unit.bisecting.simulated import SimulatedRunner, chain, play, random_history, request_for, sha_of


def two(_sha: str) -> float:
    return 2.0


@settings(max_examples=30)
@given(seed=st.integers(0, 10**9), length=st.integers(2, 20), reuse=st.booleans(), repeat=st.integers(1, 2))
def test_no_search_takes_more_or_less_than_was_said(seed: int, length: int, reuse: bool, repeat: int) -> None:
    chance = random.Random(seed)
    history = random_history(chance, length)
    predicted = (sha_of(chance.randrange(length)),) if chance.random() < 0.5 else ()
    request = request_for(history, controls=True, confirm=True, reuse=reuse, repeat=repeat, predicted=predicted)
    said = forecast(request, minutes=two)
    assert said.exact
    took = []
    for culprit in range(1, length):
        runner = SimulatedRunner(history, sha_of(culprit), fix=chance.random() < 0.5)
        play(request, runner)
        took.append(len(runner.ran))
    assert (said.trials_least, said.trials_most) == (min(took), max(took))
    assert (said.minutes_least, said.minutes_most) == (2.0 * min(took), 2.0 * max(took))


def test_the_points_that_come_first_are_named() -> None:
    history = chain(64)
    said = forecast(request_for(history), minutes=two)
    assert said.first[0] in (sha_of(31), sha_of(32))
    assert len(said.first) == 3
    assert forecast(request_for(history, predicted=(sha_of(50),)), minutes=two).first[0] == sha_of(50)
    assert forecast(request_for(chain(2)), minutes=two).first == ()


def test_ends_that_are_given_cost_nothing() -> None:
    request = request_for(chain(16), old_run="runs/a", repeat=2)
    assert (forecast(request, minutes=two).ends, forecast(request, minutes=two).controls) == (2, 0)
    assert forecast(request_for(chain(16), controls=True), minutes=two).controls == 2


@pytest.mark.parametrize("changes", [{}, {"reuse": True}, {"predicted": (sha_of(700),)}, {"confidence": 0.9}])
def test_a_long_history_has_bounds(changes: dict[str, object]) -> None:
    history = chain(3000, blobs=lambda number: "x" if number < 700 else "y")
    said = forecast(request_for(history, **changes), minutes=two)
    runner = SimulatedRunner(history, sha_of(700))
    play(request_for(history, **changes), runner)
    assert not said.exact
    assert said.trials_least <= len(runner.ran) <= said.trials_most
    assert said.search_least >= 2


def test_what_is_left_falls_to_nothing() -> None:
    request, history = request_for(chain(40), controls=True, confirm=True), chain(40)
    runner = SimulatedRunner(history, sha_of(17))
    _, finished = play(request, runner)
    left = [minutes_left(request, fold(request, finished[:number]), minutes=two) for number in range(len(finished) + 1)]
    assert left[0] == 2.0 * (2 + 2 + 1 + 6)
    assert all(before is not None and after is not None and before >= after for before, after in pairwise(left))
    assert left[-1] == 0


def test_what_took_longer_than_expected_is_expected_to_again() -> None:
    request = request_for(chain(40))
    slow = [
        Finished(at="", purpose=step.purpose, result=step.result.model_copy(update={"minutes": 30.0}))
        for step in play(request, SimulatedRunner(chain(40), sha_of(17)))[1][:2]
    ]
    assert minutes_left(request, fold(request, slow), minutes=two) == 30.0 * 6


def test_marks_that_contradict_each_other_leave_nothing_to_tell() -> None:
    marks = (ImportedMark(sha=sha_of(5), mark="new", word="new"), ImportedMark(sha=sha_of(9), mark="old", word="old"))
    request = request_for(chain(16), imported=marks)
    _, finished = play(request, SimulatedRunner(chain(16), sha_of(3)))
    assert minutes_left(request, fold(request, finished), minutes=two) is None
    assert forecast(request, minutes=two).first == ()


@pytest.mark.parametrize("target", [Target(), Target(what="frame", frame="mqa_logits_torch")])
@pytest.mark.parametrize("repeat", [1, 2])
def test_both_possible_next_points_are_known_while_a_trial_runs(target: Target, repeat: int) -> None:
    request = request_for(chain(40), repeat=repeat, target=target)
    _, finished = play(request, SimulatedRunner(chain(40), sha_of(17)))
    seen = 0
    for number in range(len(finished)):
        state = fold(request, finished[:number])
        step = next_step(request, state, minutes=two)
        assert isinstance(step, TrialStep)
        following = possible_next(request, state, step, minutes=two)
        after = next((later.result.sha for later in finished[number + 1 :] if later.result.sha != step.sha), None)
        assert len(following) <= 2
        assert after is None or after in following
        seen += after is not None
    assert seen >= 4


def test_an_imported_log_counts_whatever_words_it_is_in() -> None:
    """Which way the change goes is not known yet; that a log fits it is found out at the ends."""
    foreseen = [
        forecast(
            request_for(chain(16), imported=(ImportedMark(sha=sha_of(8), mark="old", word=word),)),
            minutes=lambda _sha: 2.0,
        )
        for word in ("good", "broken", "quick")
    ]
    assert foreseen[0] == foreseen[1] == foreseen[2]
    assert foreseen[0].search_most == 3
    assert foreseen[0].first
