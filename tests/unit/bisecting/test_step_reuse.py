"""Results that are reused for points with the same watched files: what they save, and what they must not decide."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkdiag.bisecting.search.history import History
from sparkdiag.evidence.bisection import Bisection, Commit, Purpose, TrialResult
from tests.unit.bisecting.simulated import SimulatedRunner, chain, play, random_history, request_for, sha_of, skipped


def skip(sha: str, _purpose: Purpose) -> TrialResult:
    return skipped(sha)


def shas(answer: Bisection) -> list[str]:
    return [commit.sha for commit in answer.commits]


def random_blobs(chance: random.Random, history: History, *, culprit: str, share: float) -> History:
    """Watched files that change here and there, always at the culprit, and never in a merge unless both sides did."""
    blobs: dict[str, str] = {}
    for number, commit in enumerate(history.commits):
        before = [blobs[parent] for parent in commit.parents]
        same = bool(before) and len(set(before)) == 1 and commit.sha != culprit and chance.random() > share
        blobs[commit.sha] = before[0] if same else f"blob {number}"
    return History(
        commits=tuple(commit.model_copy(update={"suspect_blobs": (blobs[commit.sha],)}) for commit in history.commits)
    )


@given(seed=st.integers(0, 10**9), length=st.integers(2, 60), share=st.floats(0, 0.5), skips=st.floats(0, 0.3))
def test_reuse_where_only_the_watched_files_matter(seed: int, length: int, share: float, skips: float) -> None:
    chance = random.Random(seed)
    plain = random_history(chance, length)
    culprit = sha_of(chance.randrange(1, length))
    history = random_blobs(chance, plain, culprit=culprit, share=share)
    cannot = {sha_of(number): skip for number in range(1, length - 1) if chance.random() < skips}
    request = request_for(history, reuse=True)
    answer, finished = play(request, SimulatedRunner(history, culprit, overrides=cannot))
    assert culprit in shas(answer)
    assert (answer.outcome == "found") == (len(answer.commits) == 1)
    by_sha = {commit.sha: commit for commit in history.commits}
    for step in finished:
        if step.result.reused_from:
            source = by_sha[step.result.reused_from]
            assert source.suspect_blobs == by_sha[step.result.sha].suspect_blobs
            assert source.sha not in cannot
            assert step.result.minutes == 0


def test_reuse_saves_trials_and_is_told_of() -> None:
    history = chain(64, blobs=lambda number: "x" if number < 40 else "y" if number < 50 else "z")
    runner = SimulatedRunner(history, sha_of(40))
    answer, _ = play(request_for(history, reuse=True), runner)
    assert shas(answer) == [sha_of(40)]
    assert runner.searched() == [sha_of(40), sha_of(39)]
    reused = [trial for trial in answer.trials if trial.result.reused_from]
    assert {trial.result.reused_from for trial in reused} <= {sha_of(0), sha_of(63), sha_of(40)}
    assert all(trial.mark in ("old", "new") for trial in reused)
    assert any("reused from points with the same watched files" in note for note in answer.notes)
    assert shas(play(request_for(history, reuse=False), SimulatedRunner(history, sha_of(40)))[0]) == [sha_of(40)]


@pytest.mark.parametrize("fix", [True, False])
def test_where_other_files_matter_too_nobody_is_blamed_wrongly(fix: bool) -> None:
    """The watched files change at 4 and 12 only, the stall comes anywhere: reused results are wrong for some points,
    and what bounds the answer is therefore run."""
    history = chain(16, blobs=lambda number: "x" if number < 4 else "y" if number < 12 else "z")
    given_up = 0
    for culprit in range(1, 16):
        runner = SimulatedRunner(history, sha_of(culprit), fix=fix)
        answer, _ = play(request_for(history, reuse=True), runner)
        assert (answer.outcome, shas(answer)) == ("found", [sha_of(culprit)])
        assert {sha_of(culprit), sha_of(culprit - 1)} <= {sha for sha, _ in runner.ran}
        assert len(runner.ran) == len(set(runner.ran)), "a point was run twice"
        given_up += any("reused after all" in note for note in answer.notes)
        assert any("leaves the watched files" in note for note in answer.notes) == (culprit not in (4, 12))
    assert given_up == 13


@given(seed=st.integers(0, 10**9), length=st.integers(2, 40), share=st.floats(0, 0.6), skips=st.floats(0, 0.3))
def test_reuse_never_leads_to_a_wrong_culprit(seed: int, length: int, share: float, skips: float) -> None:
    """The watched files change here and there, and have nothing to do with the stall."""
    chance = random.Random(seed)
    history = random_blobs(chance, random_history(chance, length), culprit="", share=share)
    culprit = sha_of(chance.randrange(1, length))
    cannot = {sha_of(number): skip for number in range(1, length - 1) if chance.random() < skips}
    runner = SimulatedRunner(history, culprit, overrides=cannot)
    answer, _ = play(request_for(history, reuse=True), runner)
    assert culprit in shas(answer)
    assert (answer.outcome == "found") == (len(answer.commits) == 1)
    assert len(runner.ran) == len(set(runner.ran)), "a point was run twice"


def tangled(chance: random.Random, length: int) -> History:
    """Merges of up to three lines and several roots, whose watched files come and go as they like."""
    kinds = chance.randrange(1, 9)
    commits: list[Commit] = []
    heads: set[int] = set()
    for number in range(length):
        last = number == length - 1
        before = {chance.randrange(number) for _ in range(chance.choice((0, 1, 1, 1, 2, 3)))} if number else set()
        parents = sorted(heads if last else before)
        heads = (heads - set(parents)) | {number}
        blob = str(chance.randrange(kinds)) if chance.random() < 0.9 else "-"
        named = tuple(sha_of(parent) for parent in parents)
        commits.append(Commit(sha=sha_of(number), parents=named, suspect_blobs=(blob,)))
    return History(commits=tuple(commits))


@settings(max_examples=300)
@given(seed=st.integers(0, 10**9), length=st.integers(3, 20), skips=st.floats(0, 0.6), fix=st.booleans())
def test_nobody_is_blamed_by_a_reused_result_where_skips_hide_the_boundary(
    seed: int, length: int, skips: float, fix: bool
) -> None:
    chance = random.Random(seed)
    history = tangled(chance, length)
    culprit = sha_of(chance.randrange(1, length))
    cannot = {sha_of(number): skip for number in range(1, length - 1) if chance.random() < skips}
    predicted = tuple(sha_of(number) for number in chance.sample(range(1, length), chance.choice((0, 1, 2))))
    runner = SimulatedRunner(history, culprit, fix=fix, overrides=cannot)
    answer, _ = play(request_for(history, reuse=True, predicted=predicted), runner)
    assert culprit in shas(answer)
    assert (answer.outcome == "found") == (len(answer.commits) == 1)
    assert len(runner.ran) == len(set(runner.ran)), "a point was run twice"


def test_a_skipped_parent_stays_a_candidate_where_only_a_reused_result_clears_it() -> None:
    """The culprit does not start; a line off it has the watched files of the healthy end, and stalls all the same."""
    files = {0: "a", 1: "b", 2: "a", 3: "c", 4: "d"}
    parents = {0: (), 1: (0,), 2: (1,), 3: (1,), 4: (2, 3)}
    history = History.of(
        Commit(sha=sha_of(number), parents=tuple(map(sha_of, parents[number])), suspect_blobs=(files[number],))
        for number in files
    )
    answer, _ = play(request_for(history, reuse=True), SimulatedRunner(history, sha_of(1), overrides={sha_of(1): skip}))
    assert sha_of(1) in shas(answer)
    assert answer.outcome == "candidates"
