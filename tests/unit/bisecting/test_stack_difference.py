"""Where the time goes with and without what is looked for."""

from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.bisecting.trials.stack_difference import difference, stack_difference
from sparkdiag.evidence.stacks import StackSample, ThreadStack
from sparkdiag.judging.shares import MOST_SHARES, innermost_shares
from tests.unit.bisecting.stored_trials import WORKER, sample

NAMES = st.lists(st.sampled_from([f"f{number}" for number in range(30)]), max_size=60)


def samples(names: Sequence[str]) -> list[StackSample]:
    return [sample(WORKER, name, "outer") for name in names]


def test_the_largest_difference_comes_first() -> None:
    found = difference(samples(["slow"] * 9 + ["both"]), samples(["fast"] * 4 + ["both"] * 6))
    assert [(share.function, share.share_with, share.share_without) for share in found] == [
        ("slow", 0.9, 0.0),
        ("both", 0.1, 0.6),
        ("fast", 0.0, 0.4),
    ]


def test_only_the_main_threads_innermost_function_counts_without_its_class() -> None:
    other = ThreadStack(thread_name="Other", frames=sample(WORKER, "waiting").threads[0].frames)
    one = sample(WORKER, "Kernels.slow", "outer")
    both = one.model_copy(update={"threads": (other, *one.threads)})
    assert innermost_shares([both]) == {"slow": 1.0}
    assert innermost_shares([sample(WORKER)]) == {}


@given(NAMES, NAMES)
def test_shares_are_shares_and_no_side_without_samples_is_compared(one: list[str], other: list[str]) -> None:
    found = difference(samples(one), samples(other))
    assert len(found) <= MOST_SHARES
    if not one or not other:
        assert found == ()
    sizes = [abs(share.share_with - share.share_without) for share in found]
    assert sizes == sorted(sizes, reverse=True)
    assert all(0 <= share.share_with <= 1 and 0 <= share.share_without <= 1 for share in found)
    flipped = difference(samples(other), samples(one))
    assert {share.function for share in flipped} == {share.function for share in found} or len(found) == MOST_SHARES


def test_runs_that_cannot_be_read_differ_in_nothing(tmp_path: Path) -> None:
    assert stack_difference(tmp_path / "one", tmp_path / "other") == ()
