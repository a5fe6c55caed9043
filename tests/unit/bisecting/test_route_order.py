"""Which changes of the route are tried, in which order, and that following them stays cheap however wrong they are."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkdiag.bisecting.search.candidates import MOST_EXTRA_TRIALS, halving_bound, longest_halving
from sparkdiag.bisecting.search.history import History
from sparkdiag.bisecting.search.route_order import halving_order, on_axis, turning
from sparkdiag.bisecting.steps.simulation import merging, search, straight
from sparkdiag.evidence.bisection import Commit
from sparkdiag.evidence.route import RouteChange

TORCH, TRITON, FUSED = "_fp8_mqa_logits_torch", "fp8_mqa_logits_triton", "fp8_mqa_topk_triton"


def change(sha: str, before: tuple[str, ...], after: tuple[str, ...]) -> RouteChange:
    return RouteChange(sha=sha, before=before, after=after, exact=True)


def test_only_a_change_that_brings_or_takes_the_looked_for_kernel_predicts() -> None:
    comes, goes = change("a", (), (TORCH,)), change("b", (TORCH, TRITON), (TRITON,))
    stays, others = change("c", (TORCH,), (TORCH, TRITON)), change("d", (TRITON,), (FUSED,))
    assert turning([comes, stays, goes, others], [TORCH]) == (comes, goes)
    assert turning([comes, goes], []) == ()


def test_halves_come_before_quarters() -> None:
    found = straight(100)
    shas = [f"{place:05d}" for place in (10, 20, 30, 40, 50, 60, 70, 80, 90)]
    order = halving_order(shas, found, old="00000", new="00100")
    assert order[0] == "00050"
    assert set(order[1:3]) == {"00020", "00070"} or set(order[1:3]) == {"00030", "00080"}
    assert sorted(order) == shas


@st.composite
def marked(draw: st.DrawFn) -> tuple[History, list[str]]:
    count, seed = draw(st.integers(1, 60)), draw(st.integers(0, 1 << 30))
    found = straight(count) if draw(st.booleans()) else merging(count, rng=random.Random(seed))
    shas = [commit.sha for commit in found.commits]
    return found, draw(st.lists(st.sampled_from([*shas, "elsewhere"]), max_size=12))


@given(marked())
def test_the_order_holds_each_commit_between_the_ends_once(given_: tuple[History, list[str]]) -> None:
    found, shas = given_
    old, new = found.commits[0].sha, found.commits[-1].sha
    order = halving_order(shas, found, old=old, new=new)
    assert sorted(order) == sorted({sha for sha in shas if sha in found.index} - {old})
    assert halving_order(list(reversed(shas)), found, old=old, new=new) == order


@settings(max_examples=100)
@given(marked(), st.data())
def test_wrong_route_changes_cost_two_trials_at_most_whoever_else_is_suspected(
    given_: tuple[History, list[str]], data: st.DataObject
) -> None:
    found, shas = given_
    everybody = [commit.sha for commit in found.commits]
    culprit = data.draw(st.sampled_from(everybody[1:]))
    order = halving_order(shas, found, old=everybody[0], new=everybody[-1])
    suspects = data.draw(st.lists(st.sampled_from(everybody), max_size=2))
    predicted = [*order, *suspects] if data.draw(st.booleans()) else [*suspects, *order]
    ended = search(found, culprit=culprit, predicted=predicted)
    assert ended.answer == (culprit,)
    between = found.ancestors_of(everybody[-1]) & ~1
    assert ended.trials <= longest_halving(found, between) + MOST_EXTRA_TRIALS


@settings(max_examples=60)
@given(st.integers(8, 200), st.data())
def test_among_several_changes_one_of_which_is_it_halving_order_stays_within_the_bound_and_finds_it(
    candidates: int, data: st.DataObject
) -> None:
    found = straight(candidates)
    places = data.draw(st.sets(st.integers(1, candidates), min_size=1, max_size=6))
    culprit = f"{data.draw(st.sampled_from(sorted(places))):05d}"
    order = halving_order([f"{place:05d}" for place in places], found, old="00000", new=f"{candidates:05d}")
    ended = search(found, culprit=culprit, predicted=order)
    assert ended.answer == (culprit,)
    assert ended.trials <= halving_bound(candidates) + MOST_EXTRA_TRIALS
    if len(places) == 1:
        assert ended.trials <= 2


def test_a_change_on_a_merged_branch_is_its_merges_where_merges_count_as_one() -> None:
    """o - a - m - n, with x - y merged in m: a first-parent search has the points o, a, m and n."""
    parents = {"a": ("o",), "x": ("o",), "y": ("x",), "m": ("a", "y"), "n": ("m",), "z": ("n",)}
    points = History.of(
        [
            Commit(sha="o"),
            Commit(sha="a", parents=("o",)),
            Commit(sha="m", parents=("a",)),
            Commit(sha="n", parents=("m",)),
        ]
    )
    assert on_axis(["x", "a", "n", "z"], parents, points) == {"x": "m", "a": "a", "n": "n"}


@given(st.integers(2, 30), st.integers(0, 1 << 30), st.data())
def test_the_point_of_a_commit_is_the_oldest_that_contains_it(count: int, seed: int, data: st.DataObject) -> None:
    whole = merging(count, rng=random.Random(seed))
    parents = {commit.sha: commit.parents for commit in whole.commits[1:]}
    kept = data.draw(st.sets(st.sampled_from([commit.sha for commit in whole.commits])))
    points = History.of(commit.model_copy(update={"parents": ()}) for commit in whole.commits if commit.sha in kept)
    asked = [commit.sha for commit in whole.commits[1:]]
    found = on_axis(asked, parents, points)
    for sha in asked:
        bit = 1 << whole.index[sha]
        containing = [commit.sha for commit in points.commits if whole.ancestors_of(commit.sha) & bit]
        expected = sha if sha in kept else containing[0] if containing else None
        assert found.get(sha) == expected
