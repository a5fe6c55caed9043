"""Movement and loops in real recordings (tests/recordings/README.md), found without a scenario, beside what the judge
finds with one."""

import json
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import pytest
from h200_recordings import FOLDER, LOOP_FUNCTION, rows, sample, scenario, threads_of_json, threads_of_text

from sparkdiag.diagnosing.diagnose import diagnose
from sparkdiag.diagnosing.loops import loops_in
from sparkdiag.diagnosing.movement import movement_of
from sparkdiag.evidence.diagnosis import LoopFinding
from sparkdiag.evidence.dump import DumpFrame, DumpThread, ProcessDump
from sparkdiag.evidence.stacks import StackSample, ThreadStack
from sparkdiag.judging.progress import CallPosition, position_of
from sparkdiag.judging.signature import look_at
from sparkdiag.watching.looks import looks_of

RATE_TOLERANCE = 0.05
HEADS = 64
BUDGET = 2**24
"""Scores a pass of the recorded loop holds: keys of a pass are the budget by the rows."""
LAB = FOLDER.parent / "lab"


def with_locals(threads: Sequence[ThreadStack], change: Callable[[str], dict[str, int]]) -> tuple[ThreadStack, ...]:
    return tuple(
        thread.model_copy(
            update={
                "frames": tuple(
                    frame.model_copy(update={"locals": frame.locals | change(frame.name)}) for frame in thread.frames
                )
            }
        )
        for thread in threads
    )


def recorded_samples(worker: int, *, layer_shown: bool) -> list[StackSample]:
    """The recorded dump at the recorded positions of one worker. Its caller holds the layer as text, which a paste does
    not keep; ``layer_shown``: as an integer, as the lab's and other models' callers hold it."""
    dump = threads_of_json("dcp2slow-worker0-locals.json")
    found = []
    for row in rows("dcp2slow-250k-loop-positions.jsonl"):
        if row["worker"] != worker or row["total"] % HEADS:
            continue

        def change(function: str, row: dict[str, Any] = row) -> dict[str, int]:
            if function == "sparse_attn_indexer":
                return {"layer": row["layer"]} if layer_shown else {}
            if function != LOOP_FUNCTION:
                return {}
            head, k_pass = divmod(row["passed"], row["total"] // HEADS)
            k_chunk = BUDGET // row["rows"]
            return {
                "num_rows": row["rows"],
                "num_keys": row["keys"],
                "k_chunk_size": k_chunk,
                "head_start": head,
                "k_start": k_pass * k_chunk,
                "k_end": min((k_pass + 1) * k_chunk, row["keys"]),
                "matmuls": row["passed"] + 1,
            }

        found.append(sample(2182 + worker, row["t"], with_locals(dump, change)))
    return found


def named_positions(samples: Sequence[StackSample]) -> list[CallPosition]:
    settings = scenario(tokens=250_000, dcp=2)
    found = [position_of(look_at(each, settings.signatures), settings.layer_clock) for each in samples]
    return [position for position in found if position is not None]


def named_rate(samples: Sequence[StackSample]) -> float:
    """Heads a second, from neighbours that the named judge takes for the same call."""
    layers = [row["layer"] for row in map(_layer_of, samples)]
    positions = named_positions(samples)
    pairs = zip(positions, positions[1:], layers, layers[1:], strict=False)
    return median(
        (after.fraction - before.fraction) * HEADS / (after.at_s - before.at_s)
        for before, after, layer, next_layer in pairs
        if before.call == after.call and layer == next_layer and after.passed >= before.passed
    )


def _layer_of(each: StackSample) -> dict[str, Any]:
    found = (
        each.threads[0].find("sparse_attn_indexer")
        if each.main_thread is None
        else each.main_thread.find("sparse_attn_indexer")
    )
    assert found is not None
    return dict(found[1].locals)


@pytest.mark.parametrize("worker", [0, 1])
def test_the_recorded_calls_show_exactly_the_named_loops_at_the_named_rate(worker: int) -> None:
    """Calls of about a second, a look each half, five of 251 positions misread: most calls have one look."""
    samples = recorded_samples(worker, layer_shown=True)
    found = {one.variable: one for one in loops_in(looks_of(samples, ())) if one.function == LOOP_FUNCTION}
    assert {name for name, one in found.items() if one.scope != "calls"} == {"head_start", "k_start"}
    head, k = found["head_start"], found["k_start"]
    assert (head.stop_variable, head.stop, k.stop_variable, k.around) == ("num_heads", 64, "num_keys", "head_start")
    assert head.per_s == pytest.approx(named_rate(samples), rel=RATE_TOLERANCE)


@pytest.mark.parametrize("worker", [0, 1])
def test_where_nothing_tells_calls_apart_no_rate_within_one_is_claimed(worker: int) -> None:
    """The keys of a rank grow with the prompt, which is what the judge's own clock, the plan, rests on."""
    samples = recorded_samples(worker, layer_shown=False)
    (grown,) = loops_in(looks_of(samples, ()))
    assert (grown.variable, grown.scope) == ("num_keys", "calls")
    assert grown.last == max(position.keys or 0 for position in named_positions(samples))
    assert grown.per_s is not None
    seconds = samples[-1].at_s - samples[0].at_s
    assert grown.per_s == pytest.approx((grown.last - grown.first) / seconds, rel=0.25)


HEALTHY = ("dcp1-worker0-locals.txt", "dcp2fast-worker0.txt", "dcp1-engine.txt", "tp1fast-engine.txt", "dcp1-api.txt")


@pytest.mark.parametrize("name", [*HEALTHY, "dcp2slow-worker0.txt", "dcp2slow-worker0-locals.txt"])
def test_the_same_dump_again_moves_nothing(name: str) -> None:
    threads = threads_of_text(name)
    movement = movement_of(looks_of([sample(1, 3.0 * n, threads) for n in range(4)], ()))
    assert movement is not None
    assert (movement.what, movement.loops, movement.over_s) == ("nothing", (), 9.0)


@pytest.mark.parametrize("name", HEALTHY)
def test_no_healthy_recording_is_a_stall_however_often_it_is_seen_again(name: str) -> None:
    """A server at work passes through the same frames and lines all the time."""
    threads = threads_of_text(name)
    found = diagnose(looks_of([sample(1, 35.0 * n, threads) for n in range(5)], ()))
    assert found.finding != "stalled", found.reasons_for


def test_two_dumps_of_one_healthy_worker_move_without_a_loop() -> None:
    dumps = [threads_of_text("dcp1-worker0-locals.txt"), threads_of_text("dcp2fast-worker0.txt")]
    movement = movement_of(looks_of([sample(1, 3.0 * n, dumps[n % 2]) for n in range(6)], ()))
    assert movement is not None
    assert movement.loops == ()


def lab_looks(name: str) -> dict[int, list[ProcessDump]]:
    """Workers of the lab's server (real vLLM on CPU) during a prefill, about one look a second."""
    found: dict[int, list[ProcessDump]] = {}
    for line in (LAB / name).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        frames = tuple(
            DumpFrame(function=function, path=path, line=at, locals=values)
            for function, path, at, values in row["frames"]
        )
        thread = DumpThread(name="MainThread", frames=frames)
        found.setdefault(row["pid"], []).append(ProcessDump(pid=row["pid"], at_s=row["t"], threads=(thread,)))
    return found


def found_in_lab(name: str) -> list[tuple[LoopFinding, ...]]:
    return [loops_in(looks) for looks in lab_looks(name).values() if len(looks) > 2]


def test_a_crawling_lab_server_shows_its_keys_grow() -> None:
    found = found_in_lab("crawling-workers.jsonl")
    assert len(found) == 2
    for findings in found:
        assert [(one.variable, one.scope, one.last) for one in findings] == [("seq_len_kv", "calls", 4352)]


def test_a_healthy_lab_server_shows_no_loops_and_does_move() -> None:
    for looks in lab_looks("healthy-workers.jsonl").values():
        movement = movement_of(looks)
        assert movement is not None
        assert movement.what == "call"
        assert movement.loops == ()
        # Nor in any part of it.
        for first in range(len(looks)):
            for last in range(first + 2, len(looks) + 1):
                assert loops_in(looks[first:last]) == ()
