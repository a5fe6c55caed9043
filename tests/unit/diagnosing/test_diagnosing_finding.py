"""When what processes do is called a stall: never from one look, never of a server that may be without work."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.diagnosing.finding import MANY, STILL_S, WAIT_STILL_S, confidence_of, decider, finding_of
from sparkdiag.diagnosing.next_step import next_step
from sparkdiag.diagnosing.process import Read
from sparkdiag.diagnosing.signatures import Match
from sparkdiag.evidence.diagnosis import DiagnosisKind, LoopFinding, Movement, ProcessDiagnosis, Traffic
from sparkdiag.evidence.dump import DumpFrame, DumpThread, ProcessDump

IN_STEP = ("all_gather", "execute_model", "worker_busy_loop")
NO_STEP = ("dequeue", "worker_busy_loop")
KINDS: tuple[DiagnosisKind, ...] = (
    "torch-fallback",
    "collective-wait",
    "gpu-wait",
    "queue-wait",
    "forward",
    "idle",
    "jit-compile",
)


def read(
    kind: DiagnosisKind,
    *,
    still_s: float | None = None,
    what: str | None = "nothing",
    names: tuple[str, ...] = IN_STEP,
    pid: int = 1,
    looks: int = 1,
    **more: Any,
) -> Read:
    thread = DumpThread(name="MainThread", frames=tuple(DumpFrame(function=name) for name in names))
    movement = Movement(looks=2, over_s=still_s, what=what, text="the same frames in both looks") if what else None  # type: ignore[arg-type]
    found = ProcessDiagnosis(name=f"p{pid}", pid=pid, kind=kind, movement=movement, **more)
    look = ProcessDump(pid=pid, threads=(thread,))
    match = Match(kind=kind, thread="MainThread")
    return Read(looks=(look,) * looks, match=match, movement=movement, agreeing=1, found=found)


@pytest.mark.parametrize("kind", KINDS)
def test_one_look_at_a_process_is_never_a_stall(kind: DiagnosisKind) -> None:
    assert finding_of([read(kind, what=None)], 0, None)[0] == "unknown"


def test_the_same_place_in_a_step_for_long_is_a_stall() -> None:
    held = Traffic(running=1, moved=False, over_s=STILL_S)
    for kind in ("torch-fallback", "collective-wait", "forward"):
        assert finding_of([read(kind, still_s=STILL_S)], 0, held)[0] == "stalled"
    assert finding_of([read("weight-load", still_s=3600.0, looks=2)], 0, None)[0] == "stalled"


HOT: tuple[DiagnosisKind, ...] = ("gpu-wait", "queue-wait", "forward", "torch-fallback", "kv-transfer", "tokenizer")
"""A server at work may be found there in every look, however many."""


@pytest.mark.parametrize("kind", [*HOT, "collective-wait"])
def test_where_a_server_under_load_is_always_found_its_counters_decide(kind: DiagnosisKind) -> None:
    stands = read(kind, still_s=3600.0)
    assert finding_of([stands], 0, None)[0] == "unknown"
    assert finding_of([stands], 0, Traffic(running=1, over_s=60))[0] == "unknown"
    often = replace(stands, looks=stands.looks * 5)
    assert finding_of([often], 0, None)[0] == ("unknown" if kind in HOT else "stalled")
    assert finding_of([stands], 0, Traffic(running=1, moved=False, over_s=60))[0] == "stalled"


def test_or_peers_that_stand_in_a_collective_it_has_not_joined() -> None:
    def thrice(kind: DiagnosisKind, pid: int) -> Read:
        one = read(kind, still_s=90.0, pid=pid)
        return replace(one, looks=one.looks * 3)

    reads = [thrice("collective-wait", 1), thrice("collective-wait", 2), thrice("gpu-wait", 3)]
    assert finding_of(reads, 2, None)[0] == "stalled"
    assert finding_of(reads[2:], 0, None)[0] == "unknown"
    assert finding_of([*reads[:2], read("gpu-wait", still_s=90.0, pid=3)], 2, None)[0] == "unknown"  # in one look


def test_too_short_or_unknown_a_time_is_no_stall() -> None:
    assert finding_of([read("torch-fallback", still_s=STILL_S - 1)], 0, None)[0] == "unknown"
    assert finding_of([read("torch-fallback", still_s=None)], 0, None)[0] == "unknown"
    assert finding_of([read("gpu-wait", still_s=WAIT_STILL_S - 1)], 0, None)[0] == "unknown"


def test_a_place_outside_a_step_is_no_stall_unless_a_request_is_in_flight() -> None:
    waits = read("collective-wait", still_s=3600.0, names=("broadcast", "recv_requests", "event_loop_normal"))
    assert finding_of([waits], 0, None)[0] == "unknown"
    assert finding_of([waits], 0, Traffic(running=1, moved=False, over_s=60))[0] == "stalled"


def test_counters_that_moved_speak_against_a_stall() -> None:
    found = finding_of([read("collective-wait", still_s=60.0)], 0, Traffic(running=1, moved=True, over_s=60))
    assert found[0] == "unknown" and "counters moved" in found[1]


@given(st.floats(0, 1e6), st.sampled_from(["line", "leaf", "call", "process"]), st.sampled_from(KINDS))
def test_what_moves_is_no_stall(still_s: float, what: str, kind: DiagnosisKind) -> None:
    if kind != "idle":
        assert finding_of([read(kind, still_s=still_s, what=what)], 0, None)[0] == "moving"


def test_a_known_fallback_that_crawls_for_long_is_a_stall_and_an_unknown_one_is_not() -> None:
    crawls = read("torch-fallback", still_s=STILL_S, what="line", function="_fp8_mqa_logits_torch")
    assert finding_of([crawls], 0, None)[0] == "moving"
    known = replace(crawls, match=Match(kind="torch-fallback", thread="MainThread", healthy=False))
    silent = Traffic(running=1, moved=True, over_s=STILL_S, silent_s=STILL_S)
    assert finding_of([known], 0, silent)[0] == "stalled"
    assert finding_of([crawls], 0, silent)[0] == "moving"
    assert finding_of([replace(known, looks=known.looks * 3)], 0, silent)[0] == "moving"  # seen in one of three looks


def test_looks_in_a_known_fallback_may_be_of_many_short_requests() -> None:
    """Unless nobody got a token for long, or a size was seen to grow."""
    known = read("torch-fallback", still_s=3600.0, what="line", function="_fp8_mqa_logits_torch")
    known = replace(known, match=Match(kind="torch-fallback", thread="MainThread", healthy=False))
    assert finding_of([known], 0, None)[0] == "moving"
    assert finding_of([known], 0, Traffic(running=1, moved=True, over_s=60, silent_s=2))[0] == "moving"
    grows = LoopFinding(
        pid=1, function="f", variable="seq_len_kv", first=1, last=9, looks=MANY, over_s=STILL_S, scope="calls"
    )
    assert known.movement is not None
    for loop, finding in ((grows, "stalled"), (grows.model_copy(update={"looks": 2}), "moving")):
        shown = replace(known, movement=known.movement.model_copy(update={"loops": (loop,)}))
        assert finding_of([shown], 0, None)[0] == finding


def test_a_scheduler_that_spins_while_no_counter_moves_is_a_stall() -> None:
    spins = read("scheduler-loop", still_s=5.0, what="line", names=("schedule", "step", "run_busy_loop"))
    assert finding_of([spins], 0, Traffic(running=0, waiting=3, moved=False, over_s=WAIT_STILL_S))[0] == "stalled"
    assert finding_of([spins], 0, Traffic(running=0, waiting=0, moved=False, over_s=WAIT_STILL_S))[0] == "moving"
    assert finding_of([spins], 0, Traffic(running=2, waiting=3, moved=True, over_s=WAIT_STILL_S))[0] == "moving"


@given(st.lists(st.sampled_from(["nothing", "line", "leaf", None]), min_size=1, max_size=5), st.floats(0, 1e6))
def test_idle_processes_are_never_stalled_without_a_request_in_flight(moves: list[str | None], over_s: float) -> None:
    reads = [read("idle", still_s=over_s, what=what, names=NO_STEP, pid=n) for n, what in enumerate(moves)]
    for traffic in (None, Traffic(running=0, waiting=0, moved=False, over_s=over_s), Traffic()):
        assert finding_of(reads, 0, traffic)[0] != "stalled"


def test_all_idle_with_a_request_in_flight_is_a_lost_message() -> None:
    reads = [read("idle", what=None, names=NO_STEP, pid=pid) for pid in (1, 2)]
    assert finding_of(reads, 0, Traffic(running=1, waiting=0, moved=False, over_s=STILL_S))[0] == "stalled"
    assert finding_of(reads, 0, Traffic(running=1, waiting=0, moved=False, over_s=STILL_S / 2))[0] == "unknown"
    assert finding_of(reads, 0, Traffic(running=0, waiting=0, moved=False, over_s=600))[0] == "healthy"


def test_who_works_decides_before_who_waits() -> None:
    reads = [read("queue-wait", pid=1), read("collective-wait", pid=2), read("torch-fallback", pid=3)]
    assert decider(reads, frozenset({2})) == 2
    assert decider(reads[:2], frozenset()) == 1


def test_a_process_that_cannot_be_told_never_decides_over_one_that_can() -> None:
    assert decider([read("helper-threads-only", pid=1), read("idle", pid=2)], frozenset()) == 1


def test_peers_that_wait_raise_the_confidence_and_a_lone_look_does_not() -> None:
    odd = read("torch-fallback", what=None, pid=3, confidence="medium")
    peers = [read("collective-wait", what=None, pid=pid) for pid in (1, 2)]
    assert confidence_of([*peers, odd], 2, frozenset({2}), "unknown") == "high"
    assert confidence_of([odd], 0, frozenset(), "unknown") == "medium"


def test_the_next_step_of_a_victim_is_to_look_at_the_others() -> None:
    assert "dump the others" in next_step([read("queue-wait", what=None)], 0, "unknown")


def test_the_next_step_of_one_look_is_a_second_one_of_that_process() -> None:
    step = next_step([read("forward", what=None, pid=4711)], 0, "unknown")
    assert "--nonblocking" in step and "--pid 4711" in step and "--over-time" in step


def test_a_stall_has_its_signatures_next_step() -> None:
    assert next_step([read("torch-fallback", next_step="run X")], 0, "stalled") == "run X"
