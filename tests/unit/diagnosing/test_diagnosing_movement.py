"""What moved between looks at one process, and what is only the spin of a wait."""

import cProfile
import random

import pytest
from diagnosing_cases import NestedLoop, frame, in_function, look, series, thread
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.diagnosing.movement import movement_of
from sparkdiag.evidence.diagnosis import Movement
from sparkdiag.evidence.dump import DumpFrame, ProcessDump

LOOP = frame("worker_busy_loop", 973)
STEP = frame("execute_model", 1412)


def moved(*looks: ProcessDump) -> Movement:
    found = movement_of(looks)
    assert found is not None
    return found


def stacks(*stacks_of_frames: tuple[DumpFrame, ...]) -> list[ProcessDump]:
    return [look(thread(*frames), at_s=10.0 * n) for n, frames in enumerate(stacks_of_frames)]


def test_one_look_shows_no_movement() -> None:
    assert movement_of([]) is None
    assert movement_of(stacks((LOOP,))) is None
    assert movement_of([look(at_s=1.0), look(at_s=2.0)]) is None


def test_the_same_frames_and_lines_are_nothing() -> None:
    found = moved(*stacks(*[(LOOP, STEP, frame("forward", 7))] * 3))
    assert (found.what, found.looks, found.over_s, found.loops) == ("nothing", 3, 20.0, ())
    assert found.text == "the same 3 frames and lines in all 3 looks"


def test_lines_of_the_same_functions() -> None:
    found = moved(*stacks((LOOP, frame("forward", 7)), (LOOP, frame("forward", 9)), (LOOP, frame("forward", 7))))
    assert (found.what, found.text) == ("line", "the same functions down to forward, at 2 places in 3 looks")


def test_integers_alone_are_a_move_too() -> None:
    found = moved(*[in_function({"a_count": n * n % 5}, at_s=n) for n in range(4)])
    assert found.what == "line"
    assert "a_count changed in logits" in found.text


def test_one_misread_integer_of_many_looks_is_none() -> None:
    values = [3, 3, 3, 99, 3, 3]
    assert moved(*[in_function({"a_count": value}) for value in values]).what == "nothing"
    assert moved(*[in_function({"a_count": value}) for value in [3, 3, 3, 3, 3, 4]]).what == "line"
    assert moved(*[in_function({"a_count": value}) for value in [3, 4, 3]]).what == "line"


@pytest.mark.parametrize(
    ("inner", "what"), [(("softmax",), "leaf"), (("a", "b", "c", "d"), "leaf"), (("a", "b", "c", "d", "e"), "call")]
)
def test_how_far_in_the_stacks_part(inner: tuple[str, ...], what: str) -> None:
    outer = (LOOP, STEP, frame("forward", 7))
    found = moved(*stacks((*outer, frame("matmul")), (*outer, *[frame(name) for name in inner])))
    assert found.what == what
    assert "changed below forward" in found.text
    assert inner[0 if what == "call" else -1] in found.text


def test_the_spin_of_a_wait_is_nothing() -> None:
    """Real looks at an idle worker: the leaf changes all the time."""
    spins = [
        (frame("acquire_read", 600, n=n), *inner)
        for n, inner in enumerate(
            [
                (),
                (frame("sched_yield", 48),),
                (frame("wait", 196), frame("sched_yield", 48)),
                (frame("memory_fence", 72),),
            ]
        )
    ]
    found = moved(*stacks(*[(LOOP, frame("dequeue", 779), *spin) for spin in spins]))
    assert (found.what, found.loops) == ("nothing", ())
    assert found.text.endswith("waiting in dequeue")


def test_work_between_two_waits_is_a_move() -> None:
    assert (
        moved(*stacks((LOOP, frame("dequeue")), (LOOP, STEP, frame("forward")), (LOOP, frame("dequeue")))).what
        != "nothing"
    )


def test_helpers_do_not_count_and_other_threads_do() -> None:
    def pair(name: str, line: int) -> ProcessDump:
        return look(thread(LOOP, frame("dequeue")), thread(frame("run", 3), frame("work", line), name=name), at_s=line)

    assert moved(pair("heartbeat", 1), pair("heartbeat", 2)).what == "nothing"
    found = moved(pair("Thread-4 (forward_thread_func)", 1), pair("Thread-4 (forward_thread_func)", 2))
    assert found.what == "line"
    assert found.text.startswith("Thread-4 (forward_thread_func): the same functions down to work")
    assert "the main thread: the same 2 frames" in found.text


def test_no_other_thread_stands_in_for_a_main_thread_that_is_missing() -> None:
    other = thread(frame("work"), name="Thread-4")
    assert movement_of([look(other, thread(LOOP)), look(other)]) is None
    assert moved(look(other, thread(LOOP)), look(other), look(thread(LOOP))).what == "nothing"


def test_another_process_is_said() -> None:
    found = moved(look(thread(LOOP), pid=7), look(thread(LOOP), pid=9))
    assert (found.what, found.text) == ("process", "another process: pid 7, later 9")


def test_a_part_of_a_stack_is_compared_with_what_it_has() -> None:
    whole = thread(LOOP, STEP, frame("forward", 7))
    part = thread(STEP, frame("forward", 7), whole=False)
    assert moved(look(whole), look(part)).what == "nothing"
    assert moved(look(whole), look(thread(STEP, frame("forward", 8), whole=False))).what == "line"


def test_lines_and_paths_that_are_not_told_do_not_move() -> None:
    told, untold = frame("forward", 7), DumpFrame(function="forward")
    assert moved(look(thread(LOOP, told)), look(thread(LOOP, untold))).what == "nothing"


def test_loops_come_with_it() -> None:
    found = moved(*series(NestedLoop().at, [1.0, 4.0, 9.0, 15.0]))
    assert (found.what, [one.variable for one in found.loops]) == ("line", ["head_start", "k_start"])


def test_clocks_that_run_backwards_tell_no_time() -> None:
    assert moved(look(thread(LOOP), at_s=9.0), look(thread(LOOP), at_s=3.0)).over_s is None


FRAMES = st.builds(
    frame,
    st.sampled_from(["worker_busy_loop", "execute_model", "forward", "all_gather", "dequeue", "wait"]),
    st.one_of(st.none(), st.integers(1, 3)),
    i=st.integers(0, 3),
)
LOOKS = st.builds(
    lambda threads, at_s: look(*threads, at_s=at_s),
    st.lists(
        st.builds(
            lambda frames, name, whole: thread(*frames, name=name, whole=whole),
            st.lists(FRAMES, max_size=6),
            st.sampled_from(["MainThread", "Thread-4", None]),
            st.booleans(),
        ),
        max_size=3,
    ),
    st.one_of(st.none(), st.floats(0, 100)),
)


@given(st.lists(LOOKS, max_size=6))
def test_nothing_breaks_it(looks: list[ProcessDump]) -> None:
    found = movement_of(looks)
    if found is not None:
        assert found.text and found.looks == len(looks)


@given(LOOKS, st.integers(2, 6))
def test_identical_looks_are_nothing(one: ProcessDump, times: int) -> None:
    found = movement_of([one] * times)
    assert found is None or (found.what, found.loops) == ("nothing", ())


@given(LOOKS, LOOKS, st.randoms(use_true_random=False))
def test_the_order_of_threads_does_not_matter(one: ProcessDump, other: ProcessDump, dice: random.Random) -> None:
    def shuffled(each: ProcessDump) -> ProcessDump:
        # Threads that nothing tells apart keep their places: that is all that is known of them.
        if len({t.name for t in each.threads}) < len(each.threads) or not any(
            t.name == "MainThread" for t in each.threads
        ):
            return each
        threads = list(each.threads)
        dice.shuffle(threads)
        return each.model_copy(update={"threads": tuple(threads)})

    if any(t.name is None for each in (one, other) for t in each.threads):
        return
    found, again = movement_of([one, other]), movement_of([shuffled(one), shuffled(other)])
    assert (found and found.what) == (again and again.what)


def _calls(looks: int, depth: int) -> int:
    """Function calls that it takes: unlike time they are the same on any machine."""
    loop = NestedLoop()
    callers = [frame(f"caller_{n}", n, size=n) for n in range(depth)]
    series_of_looks = [
        look(thread(*callers, frame("logits", 40, **loop.at(at_s))), at_s=at_s)
        for at_s in [loop.seconds * n / looks for n in range(looks)]
    ]
    profile = cProfile.Profile()
    profile.runcall(movement_of, series_of_looks)
    return int(sum(entry.callcount for entry in profile.getstats()))


def test_work_grows_with_the_frames_and_no_faster() -> None:
    small = _calls(60, 20)
    assert _calls(240, 20) < 5 * small
    assert _calls(60, 80) < 5 * small
