"""Which commit is tried next, what is left, and what predictions, skips and prices cost."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkdiag.bisecting.search.candidates import (
    MOST_EXTRA_TRIALS,
    Contradiction,
    halving_bound,
    in_history_order,
    longest_halving,
    next_trial,
    standing,
)
from sparkdiag.bisecting.search.history import History
from sparkdiag.bisecting.steps.simulation import is_new, merging, search, straight
from sparkdiag.evidence.bisection import Commit, Mark


def history(**parents: str) -> History:
    return History.of(Commit(sha=sha, parents=tuple(found.split())) for sha, found in parents.items())


DIAMOND = {"o": "", "a": "o", "b": "o", "m": "a b", "n": "m"}


@st.composite
def histories(draw: st.DrawFn, most: int = 40) -> History:
    candidates = draw(st.integers(1, most))
    if draw(st.booleans()):
        return straight(candidates)
    return merging(candidates, rng=random.Random(draw(st.integers(0, 1 << 30))))


def shas(found: History) -> list[str]:
    return [commit.sha for commit in found.commits]


# What is left


@given(histories(), st.data())
def test_the_culprit_is_found_or_among_the_candidates(found: History, data: st.DataObject) -> None:
    culprit = data.draw(st.sampled_from(shas(found)[1:]))
    skips = data.draw(st.sets(st.sampled_from(shas(found)[1:])))
    ended = search(found, culprit=culprit, skips=skips)
    assert culprit in ended.answer
    if not skips:
        assert ended.answer == (culprit,)
    # Nothing is left over that a trial could have told apart: all but the last were skipped.
    assert set(ended.answer[:-1]) <= skips


@given(histories(most=12), st.data())
def test_candidates_are_exactly_those_that_fit_every_verdict(found: History, data: st.DataObject) -> None:
    everybody = shas(found)
    culprit = data.draw(st.sampled_from(everybody[1:]))
    tried = data.draw(st.sets(st.sampled_from(everybody)))
    marks: dict[str, Mark] = {everybody[0]: "old", everybody[-1]: "new"}
    for sha in sorted(tried):
        marks[sha] = "new" if is_new(found, sha, culprit=culprit) else "old"
    now = standing(found, marks)
    news = [sha for sha, mark in marks.items() if mark == "new"]
    olds = [sha for sha, mark in marks.items() if mark == "old"]

    def fits(sha: str) -> bool:
        inside = lambda other: is_new(found, other, culprit=sha)  # noqa: E731
        return all(map(inside, news)) and not any(map(inside, olds))

    assert {sha for sha in everybody if fits(sha)} <= set(now.candidates)
    assert culprit in now.candidates
    assert now.candidates[-1] in news
    assert now.candidates == in_history_order(found, now.candidates)
    assert set(now.testable) < set(now.candidates) or now.testable == ()


def test_the_new_end_itself_and_the_child_of_the_old_end_can_be_the_culprit() -> None:
    assert search(straight(9), culprit="00009").answer == ("00009",)
    assert search(straight(9), culprit="00001").answer == ("00001",)
    assert search(straight(1), culprit="00001") == (("00001",), 0, 0)


def test_a_merge_whose_parents_are_both_old_is_the_culprit() -> None:
    found = history(**DIAMOND)
    assert standing(found, {"o": "old", "n": "new", "m": "new", "a": "old", "b": "old"}).found == "m"


def test_a_change_that_came_twice_never_names_their_old_common_ancestor() -> None:
    found = history(o="", p="o", a="p", b="p", m="a b")
    now = standing(found, {"o": "old", "m": "new", "a": "new", "b": "new"})
    assert now.candidates == ("p", "a")  # not p alone, though it is in both
    assert next_trial(found, {"o": "old", "m": "new", "a": "new", "b": "new"}) == "p"
    assert standing(found, {"o": "old", "m": "new", "a": "new", "b": "new", "p": "old"}).found == "a"


def test_a_contradiction_names_the_new_commit_and_the_nearest_old_one_that_contains_it() -> None:
    found = straight(6)
    marks: dict[str, Mark] = {"00000": "old", "00006": "new", "00002": "new", "00005": "old", "00004": "old"}
    with pytest.raises(Contradiction) as clash:
        standing(found, marks)
    assert (clash.value.new, clash.value.old) == ("00002", "00004")
    assert "00002" in str(clash.value) and "00004" in str(clash.value)
    with pytest.raises(Contradiction):
        next_trial(found, marks)


def test_without_a_new_commit_there_is_nothing_to_search() -> None:
    with pytest.raises(ValueError, match="nothing is known to be new"):
        standing(straight(3), {"00000": "old"})


def test_all_skipped_leaves_all_in_history_order() -> None:
    found = straight(4)
    marks: dict[str, Mark] = {"00000": "old", "00004": "new", "00001": "skip", "00002": "skip", "00003": "skip"}
    assert next_trial(found, marks) is None
    now = standing(found, marks)
    assert now.candidates == ("00001", "00002", "00003", "00004")
    assert now.found is None and now.testable == ()


# How many trials


@given(st.integers(1, 300), st.data())
def test_plain_halving_of_a_chain_keeps_to_its_bound(candidates: int, data: st.DataObject) -> None:
    culprit = data.draw(st.integers(1, candidates))
    ended = search(straight(candidates), culprit=f"{culprit:05d}")
    assert ended.trials <= halving_bound(candidates)


def most_trials(found: History) -> int:
    """Plain halving's worst case."""
    return max(search(found, culprit=sha).trials for sha in shas(found)[1:])


@given(histories())
def test_the_longest_halving_is_the_one_that_searching_for_every_culprit_meets(found: History) -> None:
    candidates = found.ancestors[-1] & ~1
    assert longest_halving(found, candidates) == most_trials(found)
    assert longest_halving(found, candidates) >= halving_bound(len(found.commits) - 1)


@settings(max_examples=60)
@given(histories(), st.data())
def test_wrong_predictions_cost_two_trials_beyond_plain_halvings_worst_case(
    found: History, data: st.DataObject
) -> None:
    everybody = shas(found)
    culprit = data.draw(st.sampled_from(everybody[1:]))
    predicted = data.draw(st.lists(st.sampled_from([*everybody, "not-in-here"]), max_size=4))
    ended = search(found, culprit=culprit, predicted=predicted)
    assert ended.answer == (culprit,)
    assert ended.trials <= most_trials(found) + MOST_EXTRA_TRIALS


@given(st.integers(1, 500), st.data())
def test_wrong_predictions_on_a_chain_cost_two_trials_beyond_the_bound(candidates: int, data: st.DataObject) -> None:
    places = st.integers(0, candidates)
    culprit = data.draw(places.filter(bool))
    predicted = data.draw(st.lists(places, max_size=6))
    ended = search(straight(candidates), culprit=f"{culprit:05d}", predicted=[f"{place:05d}" for place in predicted])
    assert ended.answer == (f"{culprit:05d}",)
    assert ended.trials <= halving_bound(candidates) + MOST_EXTRA_TRIALS


@given(histories(), st.data())
def test_a_right_prediction_takes_one_trial_and_one_for_each_parent(found: History, data: st.DataObject) -> None:
    everybody = shas(found)
    culprit = data.draw(st.sampled_from(everybody[1:]))
    ended = search(found, culprit=culprit, predicted=[culprit])
    assert ended.answer == (culprit,)
    assert ended.trials <= 1 + len(found.parents_of(culprit))


def test_the_predicted_commit_is_tried_first_and_then_its_parent() -> None:
    found = straight(64)
    marks: dict[str, Mark] = {"00000": "old", "00064": "new"}
    assert next_trial(found, marks, predicted=["00050"]) == "00050"
    assert next_trial(found, marks | {"00050": "new"}, predicted=["00050"]) == "00049"
    assert next_trial(found, marks | {"00050": "new", "00049": "old"}, predicted=["00050"]) is None
    # Both wrong, at the price of two: the third prediction is not followed.
    wrong: dict[str, Mark] = {"00050": "new", "00049": "new"}
    assert next_trial(found, marks | wrong, predicted=["00050", "00003"]) == "00024"


def test_a_predicted_new_end_costs_only_its_parent() -> None:
    found = straight(64)
    assert next_trial(found, {"00000": "old", "00064": "new"}, predicted=["00064"]) == "00063"


def test_where_the_predicted_commit_was_skipped_its_neighbours_are_tried() -> None:
    found = straight(64)
    marks: dict[str, Mark] = {"00000": "old", "00064": "new", "00030": "skip"}
    assert next_trial(found, marks, predicted=["00030"]) == "00031"
    assert next_trial(found, marks | {"00031": "new"}, predicted=["00030"]) == "00029"
    done: dict[str, Mark] = {"00031": "new", "00029": "old"}
    assert next_trial(found, marks | done, predicted=["00030"]) is None
    assert standing(found, marks | done).candidates == ("00030", "00031")


def test_marks_that_cost_no_trial_leave_predictions_their_budget() -> None:
    found = straight(64)
    ends: dict[str, Mark] = {"00000": "old", "00064": "new"}
    free: dict[str, Mark] = {f"{place:05d}": "old" for place in range(1, 6)}
    assert next_trial(found, ends | free, predicted=["00050"]) != "00050"
    assert next_trial(found, ends | free, predicted=["00050"], free=set(free)) == "00050"


@settings(max_examples=30)
@given(histories(most=24), st.data())
def test_the_search_is_the_same_whatever_the_order_of_the_marks(found: History, data: st.DataObject) -> None:
    everybody = shas(found)
    culprit = data.draw(st.sampled_from(everybody[1:]))
    predicted = data.draw(st.lists(st.sampled_from(everybody), max_size=2))
    skips = data.draw(st.sets(st.sampled_from(everybody[1:]), max_size=5))
    marks: dict[str, Mark] = {everybody[0]: "old", everybody[-1]: "new"}
    while (sha := next_trial(found, marks, predicted=predicted)) is not None:
        assert sha not in marks
        marks[sha] = "skip" if sha in skips else "new" if is_new(found, sha, culprit=culprit) else "old"
        shuffled = data.draw(st.permutations(sorted(marks)))
        again = {sha: marks[sha] for sha in shuffled}
        assert next_trial(found, again, predicted=predicted) == next_trial(found, marks, predicted=predicted)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("shape", ["straight", "merging"])
def test_thousands_of_commits_are_searched_in_no_time(shape: str) -> None:
    """A trial takes minutes; what comes next is known in well under a second."""
    found = straight(4096) if shape == "straight" else merging(4096, rng=random.Random(1))
    culprit = found.commits[1234].sha
    assert search(found, culprit=culprit).answer == (culprit,)
    wrong = [found.commits[place].sha for place in (3000, 20, 40)]
    assert search(found, culprit=culprit, predicted=wrong).trials <= 12 + MOST_EXTRA_TRIALS + (shape == "merging")


# What trials cost


def expected_minutes(found: History, prices: dict[str, float], *, known: bool) -> float:
    """Over all culprits, each as likely; ``known``: whether the search knows what trials cost."""
    total = 0.0
    for culprit in shas(found)[1:]:
        marks: dict[str, Mark] = {shas(found)[0]: "old", shas(found)[-1]: "new"}
        while (sha := next_trial(found, marks, minutes=prices.__getitem__ if known else lambda _sha: 1)) is not None:
            total += prices[sha]
            marks[sha] = "new" if is_new(found, sha, culprit=culprit) else "old"
    return total / (len(found.commits) - 1)


KINDS: dict[str, Callable[[random.Random, int], list[float]]] = {
    "few cached": lambda rng, n: [2 if rng.random() < 0.06 else 30 for _ in range(n)],
    "half cached": lambda rng, n: [2 if rng.random() < 0.5 else 30 for _ in range(n)],
    "few from source": lambda rng, n: [30 if rng.random() < 0.06 else 2 for _ in range(n)],
    "cheap at one edge": lambda _rng, n: [2.0] * (n // 4) + [30.0] * (n - n // 4),
    "slightly cheaper at one edge": lambda _rng, n: [2.0] * (n // 4) + [4.0] * (n - n // 4),
    "next to nothing at one edge": lambda _rng, n: [0.0] * (n // 4) + [500.0] * (n - n // 4),
    "any": lambda rng, n: [rng.lognormvariate(1, 1) for _ in range(n)],
}


@pytest.mark.parametrize("shape", ["straight", "merging"])
@pytest.mark.parametrize("kind", KINDS)
def test_weighing_prices_never_costs_more_than_not_knowing_them(kind: str, shape: str) -> None:
    weighed = unweighed = 0.0
    for seed in range(4):
        rng = random.Random(f"{kind} {seed}")
        found = straight(40) if shape == "straight" else merging(40, rng=rng)
        prices = dict(zip(shas(found), KINDS[kind](rng, len(found.commits)), strict=True))
        weighed += expected_minutes(found, prices, known=True)
        unweighed += expected_minutes(found, prices, known=False)
    assert weighed <= 1.001 * unweighed
    if kind in ("half cached", "any"):
        assert weighed < 0.9 * unweighed


def test_of_equal_tells_the_cheaper_is_tried() -> None:
    found = straight(8)
    ends: dict[str, Mark] = {"00000": "old", "00008": "new"}
    assert next_trial(found, ends) == "00004"
    assert next_trial(found, ends, minutes=lambda sha: 1 if sha == "00005" else 3) == "00005"


@given(histories(most=30), st.floats(0.001, 1000))
def test_only_the_relation_of_prices_matters(found: History, scale: float) -> None:
    ends: dict[str, Mark] = {shas(found)[0]: "old", shas(found)[-1]: "new"}
    prices = {sha: 20.0 * (1 + place % 7) for place, sha in enumerate(shas(found))}
    plain = next_trial(found, ends, minutes=prices.__getitem__)
    scaled = next_trial(found, ends, minutes=lambda sha: prices[sha] * scale)
    if plain is not None and scaled is not None:
        assert prices[plain] == prices[scaled] or plain == scaled


# Skips


@pytest.mark.parametrize(
    ("skipped", "trials"), [(range(0), 6), (range(32, 33), 7.1), (range(30, 35), 7.8), (range(24, 41), 10.5)]
)
def test_skips_away_from_the_culprit_cost_a_few_trials(skipped: range, trials: float) -> None:
    """The comparison with git's own skipping is in tests/integration/test_bisect_against_git.py."""
    found = straight(64)
    skips = [f"{place:05d}" for place in skipped]
    away = [sha for sha in shas(found)[1:] if sha not in skips and int(sha) - 1 not in skipped]
    assert sum(search(found, culprit=sha, skips=skips).trials for sha in away) / len(away) <= trials


def test_next_to_a_stretch_of_skips_the_search_goes_a_little_away() -> None:
    found = straight(100)
    ends: dict[str, Mark] = {"00000": "old", "00100": "new"}
    one = next_trial(found, ends | {"00050": "skip"})
    many = next_trial(found, ends | {f"{place:05d}": "skip" for place in range(45, 56)})
    assert one is not None and many is not None
    assert 1 <= abs(int(one) - 50) <= 4
    assert min(abs(int(many) - 45), abs(int(many) - 55)) >= 2
    # Judged on both sides of it, a skipped commit casts no doubt on those beyond.
    judged = next_trial(found, ends | {"00024": "skip", "00023": "old", "00025": "old"})
    assert judged == "00062"
