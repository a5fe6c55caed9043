"""Samples written once: what is read back is what was written, whatever lines were lost on the way."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack
from sparkdiag.recording.stack_lines import LINES_A_NUMBERING, StackLines
from sparkdiag.recording.stack_reader import StackReader

frames = st.builds(
    Frame,
    function=st.sampled_from(["f", "g", "Worker.h"]),
    filename=st.sampled_from(["a.py", "b.py"]),
    short_filename=st.sampled_from([None, "a.py"]),
    line=st.integers(1, 3),
    locals=st.dictionaries(st.sampled_from(["k", "head"]), st.sampled_from([0, 1, True, False, "layer", None, 2.5])),
)
threads = st.builds(
    ThreadStack,
    thread_id=st.sampled_from([None, 1, 2]),
    thread_name=st.sampled_from([None, "MainThread"]),
    active=st.booleans(),
    owns_gil=st.booleans(),
    frames=st.lists(frames, max_size=4).map(tuple),
)
samples = st.builds(
    StackSample,
    pid=st.integers(1, 3),
    started_s=st.floats(0, 100),
    ended_s=st.floats(0, 100),
    threads=st.lists(threads, max_size=3).map(tuple),
    error=st.sampled_from([None, "torn"]),
    late=st.booleans(),
)


def written(value: StackSample) -> dict[str, Any]:
    document: dict[str, Any] = value.model_dump(mode="json", by_alias=True)
    return document


@settings(max_examples=40)
@given(st.lists(samples, max_size=8))
def test_what_is_read_back_is_what_was_written(values: list[StackSample]) -> None:
    lines, reader = StackLines(), StackReader()
    for value in values:
        line = json.loads(json.dumps(lines.line(written(value))))
        assert reader.sample(line) == value


@settings(max_examples=40)
@given(st.lists(st.tuples(samples, st.booleans(), st.booleans()), max_size=10))
def test_a_lost_line_costs_others_and_changes_none(given_lines: list[tuple[StackSample, bool, bool]]) -> None:
    """``lost``: the reader never gets the line; ``told``: the writer knows of it (a full disk) and begins anew."""
    lines, reader = StackLines(), StackReader()
    for value, lost, told in given_lines:
        line = lines.line(written(value))
        if lost:
            if told:
                lines.lost()
            continue
        try:
            read = reader.sample(line)
        except ValueError:
            continue
        assert read == value


def test_a_loss_that_the_writer_knows_of_costs_no_other_line() -> None:
    lines, reader = StackLines(), StackReader()
    first, second = (StackSample(pid=pid, started_s=1, ended_s=2, threads=(ThreadStack(),)) for pid in (1, 2))
    lines.line(written(first))
    lines.lost()
    assert reader.sample(lines.line(written(second))) == second


def test_a_numbering_whose_beginning_was_lost_is_not_read_by_the_one_before() -> None:
    lines, reader = StackLines(), StackReader()
    before, after = (
        StackSample(pid=1, started_s=1, ended_s=2, threads=(ThreadStack(owns_gil=owns),)) for owns in (False, True)
    )
    assert reader.sample(lines.line(written(before))) == before
    lines.lost()
    lines.line(written(after))  # never read
    for _ in range(3):
        with pytest.raises(ValueError, match="cannot be read"):
            reader.sample(lines.line(written(after)))
    lines.lost()
    assert reader.sample(lines.line(written(after))) == after


def test_what_comes_after_a_lost_beginning_is_not_taken_for_something_else() -> None:
    lines, reader = StackLines(), StackReader()
    seen, other = (
        StackSample(pid=1, started_s=1, ended_s=2, threads=(ThreadStack(thread_id=number),)) for number in (1, 2)
    )
    lines.line(written(StackSample(pid=1, started_s=1, ended_s=2)))
    reader.sample(lines.line(written(seen)))
    lines.lost()
    lines.line(written(StackSample(pid=1, started_s=1, ended_s=2)))  # begins anew, and nobody reads it
    for _ in range(2):
        assert reader.sample(lines.line(written(other))) == other


def test_what_stands_in_many_samples_is_one_value() -> None:
    lines, reader = StackLines(), StackReader()
    frame = Frame(function="f", filename="a.py", line=1)
    first, second = (
        reader.sample(lines.line(written(StackSample(pid=pid, started_s=1, ended_s=2, threads=threads_of(frame)))))
        for pid in (1, 2)
    )
    assert first.threads[0] is second.threads[0]
    assert first.threads[0].frames[0] is first.threads[1].frames[0]


def threads_of(frame: Frame) -> tuple[ThreadStack, ...]:
    return ThreadStack(thread_id=1, frames=(frame,)), ThreadStack(thread_id=2, frames=(frame,))


@settings(max_examples=60)
@given(st.lists(samples, max_size=12), st.integers(0, 12))
def test_a_numbering_can_be_left_anywhere_for_the_beginning_of_the_next(values: list[StackSample], at: int) -> None:
    lines, reader = StackLines(), StackReader()
    for place, value in enumerate(values):
        line = lines.line(written(value))
        if place < at:
            assert reader.sample(line) == value
    lines.lost()
    for value in values:
        assert reader.sample(lines.line(written(value))) == value


def test_the_same_stack_is_not_written_again() -> None:
    lines = StackLines()
    deep = tuple(Frame(function=f"f{number}", filename="model.py", line=number) for number in range(100))
    sizes = [
        len(
            json.dumps(
                lines.line(
                    written(StackSample(pid=1, started_s=at_s, ended_s=at_s, threads=(ThreadStack(frames=deep),)))
                )
            )
        )
        for at_s in (1.0, 2.0, 3.0)
    ]
    assert sizes[0] > 5000
    assert max(sizes[1:]) < 150


def test_the_numbering_begins_again_so_that_nobody_remembers_a_whole_run() -> None:
    lines, reader = StackLines(), StackReader()
    fresh = 0
    for number in range(2 * LINES_A_NUMBERING + 2):
        frame = Frame(function="f", filename="a.py", line=1, locals={"k": number})
        value = StackSample(pid=1, started_s=number, ended_s=number, threads=(ThreadStack(frames=(frame,)),))
        line = lines.line(written(value))
        fresh += "fresh" in line
        assert reader.sample(line) == value
    assert fresh == 3


def test_a_whole_sample_of_an_older_run_is_read_as_it_is() -> None:
    whole = StackSample(pid=1, started_s=1, ended_s=2, threads=(ThreadStack(),))
    assert StackReader().sample(written(whole)) == whole


@given(
    st.dictionaries(
        st.sampled_from(["stack", "first", "fresh", "places", "frames", "heads", "threads", "process"]),
        st.recursive(st.none() | st.booleans() | st.integers(-2, 3), lambda inner: st.lists(inner, max_size=3)),
    )
)
def test_whatever_stands_in_a_line_is_refused_in_one_way(line: dict[str, Any]) -> None:
    reader = StackReader()
    with contextlib.suppress(ValueError):
        reader.sample(line)
