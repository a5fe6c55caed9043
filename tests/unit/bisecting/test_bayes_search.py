"""The posterior, what is tried next, when it ends, and that a stated confidence is reached."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from scripts.calibrate_bisect import calibrate, interval
from sparkdiag.bisecting.search.bayes import (
    Noise,
    credible,
    most_telling,
    next_noisy_trial,
    settled,
    shares_new,
    told_bits,
    uniform,
    updated,
)
from sparkdiag.bisecting.search.candidates import halving_bound, information_bits
from sparkdiag.bisecting.search.history import History, places
from sparkdiag.bisecting.steps.simulation import is_new, merging, noisy_search, repeated_search, straight

QUIET = Noise(missed=1e-9, false=1e-9)


@st.composite
def histories(draw: st.DrawFn, most: int = 30) -> History:
    candidates = draw(st.integers(2, most))
    return straight(candidates) if draw(st.booleans()) else merging(candidates, rng=random.Random(draw(st.integers())))


def shas(found: History) -> list[str]:
    return [commit.sha for commit in found.commits]


@given(histories(), st.data())
def test_the_posterior_is_bayes_rule_over_every_candidate(found: History, data: st.DataObject) -> None:
    noise = Noise(missed=0.07, false=0.02)
    trials = data.draw(st.lists(st.tuples(st.sampled_from(shas(found)), st.booleans()), max_size=12))
    posterior = uniform(found, shas(found)[1:])
    for sha, says_new in trials:
        posterior = updated(posterior, found, sha=sha, is_new=says_new, noise=noise)
    missed, false = 0.14, 0.04  # doubted
    likelihoods = [0.0]
    for culprit in shas(found)[1:]:
        each = [
            (1 - missed if says_new else missed)
            if is_new(found, sha, culprit=culprit)
            else (false if says_new else 1 - false)
            for sha, says_new in trials
        ]
        likelihoods.append(math.prod(each))
    total = math.fsum(likelihoods)
    assert posterior.weights == pytest.approx([likelihood / total for likelihood in likelihoods], abs=1e-12)
    assert math.fsum(posterior.weights) == pytest.approx(1)
    assert posterior.best()[1] == max(posterior.weights)
    share = shares_new(posterior, found)
    for sha in shas(found):
        inside = math.fsum(posterior.weights[place] for place in places(found.ancestors_of(sha)))
        assert share(sha) == pytest.approx(inside, abs=1e-12)


@given(st.floats(0, 1), st.floats(0.001, 0.49), st.floats(0.001, 0.49))
def test_a_noisy_verdict_tells_no_more_than_a_sure_one(share: float, missed: float, false: float) -> None:
    told = told_bits(share, Noise(missed=missed, false=false))
    assert 0 <= told <= information_bits(share) + 1e-9


def test_the_commit_in_the_middle_tells_most_and_of_two_the_cheaper() -> None:
    found = straight(64)
    start = uniform(found, shas(found)[1:])
    testable = shas(found)[1:-1]
    assert most_telling(start, found, testable=testable, noise=QUIET) == "00032"
    cheap = most_telling(start, found, testable=testable, noise=QUIET, minutes=lambda sha: 1 if sha == "00030" else 9)
    assert cheap == "00030"


@given(histories(), st.data())
def test_with_verdicts_that_are_never_wrong_it_is_halving(found: History, data: st.DataObject) -> None:
    culprit = data.draw(st.sampled_from(shas(found)[1:]))
    rng = random.Random(1)
    ended = noisy_search(found, culprit=culprit, stated=QUIET, truth=QUIET, confidence=0.999, rng=rng)
    assert ended.answer == (culprit,)


@given(st.integers(2, 64), st.data())
def test_with_verdicts_that_are_never_wrong_a_chain_takes_what_halving_takes(size: int, data: st.DataObject) -> None:
    found, culprit = straight(size), f"{data.draw(st.integers(1, size)):05d}"
    rng = random.Random(1)
    ended = noisy_search(found, culprit=culprit, stated=QUIET, truth=QUIET, confidence=0.999, rng=rng)
    assert ended.trials <= halving_bound(size)


@given(histories(), st.data())
def test_what_skips_hide_ends_as_all_that_cannot_be_told_apart(found: History, data: st.DataObject) -> None:
    culprit = data.draw(st.sampled_from(shas(found)[1:]))
    skips = data.draw(st.sets(st.sampled_from(shas(found)[1:])))
    rng = random.Random(1)
    ended = noisy_search(found, culprit=culprit, stated=QUIET, truth=QUIET, confidence=0.99, rng=rng, skips=skips)
    assert culprit in ended.answer
    assert list(ended.answer) == sorted(ended.answer, key=found.index.__getitem__)
    if not skips:
        assert ended.answer == (culprit,)
    if culprit in skips:
        # Alone only where judged commits part it from all others: two new branches that have nothing else in common.
        left = (1 << len(found.commits)) - 1
        for sha in set(shas(found)) - skips | {shas(found)[-1]}:
            bits = found.ancestors_of(sha)
            left &= bits if is_new(found, sha, culprit=culprit) else ~bits
        assert len(ended.answer) > 1 or list(places(left)) == [found.index[culprit]]


def test_a_search_hidden_by_skips_does_not_go_round_in_circles() -> None:
    found = straight(16)
    skips = {"00007", "00008", "00009"}
    rng = random.Random(4)
    ended = noisy_search(found, culprit="00008", stated=Noise(), truth=QUIET, confidence=0.95, rng=rng, skips=skips)
    assert ended.answer == ("00007", "00008", "00009", "00010")
    assert ended.trials <= 12


def test_an_unlikely_verdict_is_asked_for_again_before_it_is_believed() -> None:
    found = straight(4)
    testable = shas(found)[1:-1]
    noise = Noise(missed=0.1, false=0.1)
    posterior = uniform(found, shas(found)[1:])
    asked = []
    for _ in range(20):
        sha = next_noisy_trial(posterior, found, testable=testable, noise=noise, confidence=0.95)
        if sha is None:
            break
        asked.append(sha)
        posterior = updated(posterior, found, sha=sha, is_new=sha >= "00002", noise=noise)
    assert settled(posterior, found, testable=testable, confidence=0.95) == ("00002",)
    assert asked.count("00001") > 1 and asked.count("00002") > 1


def test_the_credible_set_is_the_fewest_commits_that_have_the_confidence() -> None:
    found = straight(4)
    posterior = uniform(found, shas(found)[1:]).model_copy(update={"weights": (0.0, 0.1, 0.5, 0.1, 0.3)})
    assert credible(posterior, found, confidence=0.75) == ("00002", "00004")
    assert credible(posterior, found, confidence=0.85) == ("00002", "00004", "00001")
    assert credible(posterior, found, confidence=1.0) == ("00002", "00004", "00001", "00003")


@pytest.mark.parametrize("wrong", [0.0, 0.5, 1.0, -0.1, math.nan])
def test_noise_is_neither_nothing_nor_a_coin(wrong: float) -> None:
    with pytest.raises(ValidationError):
        Noise(missed=wrong)
    with pytest.raises(ValidationError):
        Noise(false=wrong)


def test_verdicts_are_doubted_more_than_stated_and_never_as_much_as_a_coin() -> None:
    assert Noise(missed=0.05, false=0.01).doubted() == Noise(missed=0.1, false=0.02)
    assert Noise(missed=0.4, false=0.3).doubted() == Noise(missed=0.45, false=0.45)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("times", [1.0, 2.0])
def test_a_stated_confidence_is_reached(times: float, confidence: float) -> None:
    """A short scripts/calibrate_bisect.py."""
    found = calibrate(Noise(), times=times, confidence=confidence, runs=160, seed=1)
    assert found.named + found.several == 160
    assert found.named > 120
    assert found.passed
    assert found.trials < 12


def test_the_calibration_notices_a_confidence_that_is_not_reached() -> None:
    found = calibrate(Noise(missed=0.01, false=0.01), times=20, confidence=0.95, runs=80, seed=1)
    assert not found.passed


def test_the_interval_of_a_rate_is_wilsons() -> None:
    assert interval(90, 100) == pytest.approx((0.8256, 0.9448), abs=1e-4)
    assert interval(0, 10) == pytest.approx((0, 0.2775), abs=1e-4)


@settings(max_examples=5)
@given(st.integers(0, 1 << 30))
def test_repeating_names_the_culprit_less_often_wrongly(seed: int) -> None:
    found, truth = straight(16), Noise(missed=0.1, false=0.05)
    culprits = shas(found)[1:]

    def wrong(repeat: int) -> int:
        rng = random.Random(seed)
        ended = [
            (culprit, repeated_search(found, culprit=culprit, truth=truth, repeat=repeat, rng=rng).answer)
            for culprit in culprits * 6
        ]
        return sum(len(answer) == 1 and answer != (culprit,) for culprit, answer in ended)

    assert wrong(3) < wrong(1)
