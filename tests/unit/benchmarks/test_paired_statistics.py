"""Order, ratio and interval of paired measurements."""

import math
import random
from itertools import pairwise
from statistics import median

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.paired import (
    FEWEST_PAIRS,
    Interval,
    Pair,
    answer_of,
    at_quantile,
    bootstrap,
    compare,
    quantile_ratio,
    rounds,
    typical_ratio,
)

FIGURES = st.floats(min_value=1e-3, max_value=1e3)
PAIRS = st.lists(st.tuples(FIGURES, FIGURES), min_size=1, max_size=12)


def noisy(chance: random.Random, *, ratio: float, noise: float, count: int, drift: float = 0.0) -> list[Pair]:
    """Pairs taken in the order of ``rounds`` while the machine slows down steadily."""
    pairs, now_s = [], 0.0
    for order in rounds(("a", "b"), count=count):
        row = {}
        for name in order:
            row[name] = (1 + drift * now_s) * (ratio if name == "b" else 1) * math.exp(chance.gauss(0, noise))
            now_s += 1
        pairs.append((row["a"], row["b"]))
    return pairs


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4, unique=True), st.integers(min_value=0, max_value=9))
def test_every_round_holds_every_name_and_neighbours_are_the_same(names: list[str], count: int) -> None:
    found = list(rounds(names, count=count))
    assert len(found) == count
    assert all(sorted(order) == sorted(names) for order in found)
    assert all(one[-1] == other[0] for one, other in pairwise(found))


def test_a_steady_drift_cancels_over_two_rounds() -> None:
    pairs = noisy(random.Random(1), ratio=1.02, noise=0, count=10, drift=0.01)
    assert typical_ratio(pairs) == pytest.approx(1.02, rel=1e-3)
    assert median(b / a for a, b in pairs[::2]) > 1.021  # and would not, always in the same order


@given(PAIRS)
def test_the_ratio_lies_between_the_smallest_and_the_largest_pair(pairs: list[Pair]) -> None:
    ratios = [measured / reference for reference, measured in pairs]
    assert min(ratios) * (1 - 1e-9) <= typical_ratio(pairs) <= max(ratios) * (1 + 1e-9)


@given(PAIRS)
def test_the_other_way_round_is_the_inverse(pairs: list[Pair]) -> None:
    swapped = [(measured, reference) for reference, measured in pairs]
    assert typical_ratio(swapped) == pytest.approx(1 / typical_ratio(pairs))


def test_one_disturbed_pair_hardly_moves_the_ratio() -> None:
    calm = noisy(random.Random(2), ratio=1.01, noise=0.002, count=11)
    disturbed = [*calm, (1.0, 5.0)]
    assert typical_ratio(disturbed) == pytest.approx(typical_ratio(calm), abs=0.002)


@given(st.lists(FIGURES, min_size=1, max_size=9), st.floats(min_value=0, max_value=1))
def test_a_quantile_lies_within_and_the_half_is_the_median(figures: list[float], quantile: float) -> None:
    assert min(figures) <= at_quantile(figures, quantile) <= max(figures)
    assert at_quantile(figures, 0.5) == pytest.approx(median(figures))
    assert at_quantile(figures, 1) == max(figures)


def test_a_tail_is_compared_with_a_tail() -> None:
    pairs = [(1.0, 1.0)] * 18 + [(1.0, 9.0)] * 2
    assert quantile_ratio(0.5)(pairs) == 1
    assert quantile_ratio(0.95)(pairs) == 9


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    chance = random.Random(3)
    held = 0
    for _ in range(120):
        found = bootstrap(noisy(chance, ratio=1.01, noise=0.02, count=12), typical_ratio, resamples=200)
        assert found is not None
        held += found.low <= 1.01 <= found.high
    assert 0.88 <= held / 120 <= 1


def test_more_pairs_are_surer() -> None:
    few = bootstrap(noisy(random.Random(4), ratio=1, noise=0.02, count=8), typical_ratio)
    many = bootstrap(noisy(random.Random(4), ratio=1, noise=0.02, count=40), typical_ratio)
    assert few is not None and many is not None
    assert many.high - many.low < (few.high - few.low) / 1.5


@settings(max_examples=20)
@given(st.lists(st.tuples(FIGURES, FIGURES), min_size=FEWEST_PAIRS, max_size=8))
def test_the_same_pairs_give_the_same_interval_around_their_ratio(pairs: list[Pair]) -> None:
    one, other = (bootstrap(pairs, typical_ratio, resamples=60) for _ in range(2))
    assert one == other
    assert one is not None and one.low <= one.high


def test_too_few_pairs_have_no_interval_and_answer_nothing() -> None:
    found = compare([(1.0, 0.5)] * (FEWEST_PAIRS - 1), measured="b", reference="a", goal=1.01)
    assert (found.interval, found.answer) == (None, "not resolved")


@pytest.mark.parametrize(
    ("low", "high", "answer"),
    [
        (0.99, 1.005, "met"),
        (0.99, 1.01, "met"),
        (1.005, 1.02, "not resolved"),
        (1.02, 1.03, "missed"),
        (1.01, 1.02, "not resolved"),
    ],
)
def test_only_an_interval_on_one_side_of_the_goal_answers(low: float, high: float, answer: str) -> None:
    assert answer_of(Interval(low=low, high=high), goal=1.01) == answer
    assert answer_of(Interval(low=low, high=high), goal=None) == "no goal"


def test_a_real_slow_down_is_found_and_a_noisy_one_is_not_claimed() -> None:
    slow = noisy(random.Random(5), ratio=1.05, noise=0.005, count=12)
    noise = noisy(random.Random(6), ratio=1.005, noise=0.05, count=12)
    assert compare(slow, measured="b", reference="a", goal=1.01).answer == "missed"
    assert compare(noise, measured="b", reference="a", goal=1.01).answer == "not resolved"


@pytest.mark.parametrize("pairs", [[], [(0.0, 1.0)], [(1.0, -1.0)], [(1.0, math.nan)], [(math.inf, 1.0)]])
def test_what_cannot_be_a_duration_is_refused(pairs: list[Pair]) -> None:
    with pytest.raises(ValueError, match=r"measured|greater than 0"):
        compare(pairs, measured="b", reference="a")
