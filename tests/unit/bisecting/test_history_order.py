"""The DAG of commits: its order, its sets, and what is refused."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.bisecting.search.history import History, places, spans
from sparkdiag.bisecting.steps.simulation import merging, straight
from sparkdiag.evidence.bisection import Commit


def history(**parents: str) -> History:
    return History.of(Commit(sha=sha, parents=tuple(found.split())) for sha, found in parents.items())


@st.composite
def dags(draw: st.DrawFn, most: int = 24) -> list[Commit]:
    """Any DAG at all: several roots, several heads, octopus merges."""
    count = draw(st.integers(1, most))
    return [
        Commit(
            sha=f"c{place}",
            parents=tuple(
                f"c{parent}" for parent in sorted(draw(st.sets(st.integers(0, place - 1), max_size=3)) if place else ())
            ),
        )
        for place in range(count)
    ]


def walked(commits: list[Commit], sha: str) -> set[str]:
    """All ancestors, by walking."""
    by_sha = {commit.sha: commit for commit in commits}
    found: set[str] = set()
    waiting = [sha]
    while waiting:
        at = waiting.pop()
        if at in by_sha and at not in found:
            found.add(at)
            waiting += by_sha[at].parents
    return found


@given(dags(), st.randoms(use_true_random=False))
def test_parents_stand_before_children_in_whatever_order_they_come(
    commits: list[Commit], chance: random.Random
) -> None:
    given_order = list(commits)
    chance.shuffle(given_order)
    found = History.of(given_order)
    assert sorted(commit.sha for commit in found.commits) == sorted(commit.sha for commit in commits)
    for commit in found.commits:
        assert all(found.index[parent] < found.index[commit.sha] for parent in commit.parents)


@given(dags())
def test_an_order_that_is_right_is_kept(commits: list[Commit]) -> None:
    assert list(History.of(commits).commits) == commits


@given(dags())
def test_ancestors_are_those_that_walking_finds(commits: list[Commit]) -> None:
    found = History.of(commits)
    for commit in commits:
        bits = found.ancestors_of(commit.sha)
        assert set(found.members(bits)) == walked(commits, commit.sha)
        by_spans = [
            place for first, end in found.ancestor_spans[found.index[commit.sha]] for place in range(first, end)
        ]
        assert by_spans == places(bits)


@given(st.integers(0, 1 << 80))
def test_places_and_spans_are_the_set_bits(bits: int) -> None:
    assert sum(1 << place for place in places(bits)) == bits
    assert sum((1 << end) - (1 << first) for first, end in spans(bits)) == bits
    assert all(before[1] < after[0] for before, after in zip(spans(bits), spans(bits)[1:], strict=False))


def test_parents_outside_the_history_are_no_part_of_it() -> None:
    found = history(a="outside", b="a elsewhere")
    assert found.parents_of("b") == ("a",)
    assert found.members(found.ancestors_of("b")) == ("a", "b")


def test_circles_and_twins_are_refused() -> None:
    with pytest.raises(ValueError, match="its own ancestor"):
        history(a="c", b="a", c="b")
    with pytest.raises(ValueError, match="its own ancestor"):
        history(a="a")
    with pytest.raises(ValueError, match="given twice"):
        History.of([Commit(sha="a"), Commit(sha="a")])


def test_a_history_survives_json() -> None:
    found = merging(30, rng=random.Random(3))
    assert found.ancestors  # what is worked out from the commits is no part of the value
    again = History.model_validate_json(found.model_dump_json())
    assert again == found
    assert again.ancestors == found.ancestors


def test_thousands_of_commits_in_one_line_do_not_recurse() -> None:
    backwards = list(reversed(straight(20_000).commits))
    assert History.of(backwards).commits[0].sha == "00000"


@given(st.integers(1, 200), st.integers(0, 1 << 30))
def test_a_simulated_history_has_one_old_end_and_one_new(candidates: int, seed: int) -> None:
    for found in (straight(candidates), merging(candidates, rng=random.Random(seed))):
        assert len(found.commits) == candidates + 1
        assert found.ancestors[-1] == (1 << candidates + 1) - 1
        assert all(bits & 1 for bits in found.ancestors)
