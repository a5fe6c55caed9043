"""Whether what the processes do is a stall, and who of them decides. Pure.

A stall needs time: the same place for longer than any healthy step takes, or the server's own counters that stand still
while a request is in flight. One look never shows one.
"""

from collections.abc import Sequence

from sparkdiag.diagnosing.process import Read
from sparkdiag.evidence.diagnosis import CANNOT_TELL, Confidence, DiagnosisKind, Finding, Traffic

STILL_S = 30.0
"""So long in one place without any advance is no step of a healthy engine (graph capture, compiling and weight loading
are told by their kinds)."""
SLOW_BY_NATURE: frozenset[DiagnosisKind] = frozenset(
    {"weight-load", "graph-capture", "warmup", "jit-compile", "collective-init", "shutdown"}
)
"""May stand for minutes in a healthy server."""
SLOW_BY_NATURE_S = 600.0

ALIKE_LOOKS: dict[DiagnosisKind, int] = {
    "collective-wait": 5,
    "dp-dummy": 5,
    "jit-compile": 3,
    "weight-load": 2,
    "graph-capture": 2,
    "warmup": 2,
    "collective-init": 2,
    "shutdown": 2,
}
"""How many looks that are all alike show by themselves that it is one and the same call. Of the kinds that are not here
no number does: a server that works without a pause passes through the same frames and lines thousands of times between
two looks (looks at healthy H200 servers do not differ in anything), and a hot function is found in all of them."""
KNOWN_SHARE = 0.8
"""Of the looks, in which a known fallback holds a step: it was 74 of 81 on two H200s whose prefill took 119 s in place
of 8, and none of the looks at the healthy one."""
MANY = 5
"""Looks in which a loop variable or a size was seen to grow."""
WAIT_STILL_S = 60.0
"""A chunk's kernels may run for longer than ``STILL_S`` on slow hardware, while the host waits in one place."""
_STEP = frozenset(
    {
        "execute_model",
        "sample_tokens",
        "_model_forward",
        "forward",
        "step_with_batch_queue",
        "_process_engine_step",
        "forward_batch_generation",
        "run_batch",
        "execute_dummy_batch",
    }
)
"""Functions of vLLM and SGLang that are on the stack only while there is work."""

_SAYS: dict[DiagnosisKind, int] = {
    "torch-fallback": 9,
    "jit-compile": 8,
    "gil": 8,
    "gc": 8,
    "kv-transfer": 7,
    "scheduler-loop": 7,
    "tokenizer": 7,
    "collective-init": 6,
    "graph-capture": 6,
    "weight-load": 6,
    "warmup": 6,
    "shutdown": 6,
    "dp-dummy": 5,
    "gpu-wait": 5,
    "forward": 4,
    "collective-wait": 3,
    "ray-wait": 2,
    "queue-wait": 2,
    "idle": 1,
    "helper-threads-only": 0,
    "not-an-engine": 0,
    "garbled": 0,
}
"""How much a kind says of the cause when several processes differ: who works says more than who waits."""
_LOOPS = frozenset({"worker_busy_loop", "run_busy_loop", "worker_main", "event_loop_normal", "event_loop_overlap"})
"""A stack that ends in one of these was quoted without its inner frames."""
_ROLES = {"worker": 3, "engine_core": 2, "api_server": 1}


def decider(reads: Sequence[Read], odd: frozenset[int]) -> int:
    """Index of the process whose state is the answer: the odd one out, else the one whose kind says most."""

    def weight(index: int) -> tuple[bool, bool, int, bool, int, int]:
        read = reads[index]
        found = read.found
        return (
            found.kind not in CANNOT_TELL,
            index in odd and not read.waits,
            1 if found.kind == "forward" and (found.function or "").rsplit(".", 1)[-1] in _LOOPS else _SAYS[found.kind],
            found.signature is not None,
            _ROLES.get(found.role or "", 0),
            -index,
        )

    return max(range(len(reads)), key=weight)


def finding_of(reads: Sequence[Read], decides: int, traffic: Traffic | None) -> tuple[Finding, str]:
    """What can be said of stalled or healthy, and why in one sentence."""
    read = reads[decides]
    kind, movement = read.found.kind, read.movement
    if kind in CANNOT_TELL:
        return "unknown", "the stacks do not show what the engine does"
    if all(one.found.kind == "idle" for one in reads):
        return _all_idle(reads, traffic)
    if movement is None:
        return "unknown", "one look only: whether it moves takes a second one"
    still_s = _still_s(read, traffic)
    if movement.loops or movement.what != "nothing":
        return _moves(read, movement.text, still_s, traffic)
    if still_s is None:
        return "unknown", f"{movement.text}; how much time lies between the looks is not known"
    limit_s = SLOW_BY_NATURE_S if kind in SLOW_BY_NATURE else WAIT_STILL_S if kind == "gpu-wait" else STILL_S
    if still_s < limit_s:
        return (
            "unknown",
            f"{movement.text}; {still_s:.0f} s are too short to call that a stall (from {limit_s:.0f} s on)",
        )
    if not (_in_step(read) or (traffic is not None and traffic.in_flight)):
        return "unknown", f"{movement.text} for {still_s:.0f} s; but so stands a server without work, too"
    if traffic is not None and traffic.moved:
        return "unknown", f"{movement.text} for {still_s:.0f} s; but the server's own counters moved meanwhile"
    if _may_be_load(read) and not _held(traffic) and not _waited_for(read, reads):
        return "unknown", (
            f"{movement.text} for {still_s:.0f} s; but a server at work may be found there in every look: its counters "
            "would tell"
        )
    return "stalled", f"{movement.text} for {still_s:.0f} s"


def _may_be_load(read: Read) -> bool:
    needed = ALIKE_LOOKS.get(read.found.kind)
    return needed is None or len(read.looks) < needed


def _held(traffic: Traffic | None) -> bool:
    """The server itself says that a request is in flight and nothing gets on."""
    return traffic is not None and bool(traffic.in_flight) and traffic.moved is False


def _waited_for(read: Read, reads: Sequence[Read]) -> bool:
    """Whether, in look after look, peers stand in a collective that this process has not joined."""
    stands = [
        one for one in reads if one.movement is not None and one.movement.what == "nothing" and len(one.looks) > 2
    ]
    return read in stands and not read.waits and any(one.found.kind == "collective-wait" for one in stands)


def _moves(read: Read, text: str, still_s: float | None, traffic: Traffic | None) -> tuple[Finding, str]:
    """It advances, which is no stall by itself: unless it does so in a place that is known to take forever."""
    kind = read.found.kind
    known = kind == "torch-fallback" and read.match.healthy is False
    lasts_s = _one_request_s(read, traffic)
    if known and read.agreeing >= KNOWN_SHARE * len(read.looks) and lasts_s >= STILL_S:
        return "stalled", (
            f"crawling: it advances, but was in {read.found.function} in {read.agreeing} of {len(read.looks)} looks, "
            f"and the same request goes on for {lasts_s:.0f} s"
        )
    if kind == "scheduler-loop" and _held(traffic) and still_s is not None and still_s >= WAIT_STILL_S:
        return "stalled", f"{text}; but no counter of the server moved for {still_s:.0f} s"
    return "moving", text


def _one_request_s(read: Read, traffic: Traffic | None) -> float:
    """Seconds for which it is shown that one request goes on, and not one after another: nobody got a token, or a loop
    or a size grew without a fall."""
    silent_s = traffic.silent_s if traffic is not None and traffic.in_flight else None
    if silent_s is not None:
        return silent_s
    loops = read.movement.loops if read.movement is not None else ()
    grown_s = [loop.over_s for loop in loops if loop.scope in ("call", "calls") and loop.over_s and loop.looks >= MANY]
    return max(grown_s, default=0.0)


def _still_s(read: Read, traffic: Traffic | None) -> float | None:
    """Seconds for which it is known to be where it is: between its looks, or since the server's counters moved."""
    over_s = read.movement.over_s if read.movement is not None else None
    stood_s = traffic.over_s if traffic is not None and traffic.in_flight and traffic.moved is False else None
    return max((one for one in (over_s, stood_s) if one is not None), default=None)


def _all_idle(reads: Sequence[Read], traffic: Traffic | None) -> tuple[Finding, str]:
    if traffic is not None and traffic.in_flight and traffic.moved is False and (traffic.over_s or 0) >= STILL_S:
        return "stalled", (
            f"every process is idle while a request is in flight and nothing moved for {traffic.over_s:.0f} s: "
            "a message was lost"
        )
    if traffic is not None and traffic.in_flight:
        return (
            "unknown",
            "every process is idle while a request is in flight; nothing moved for too short a time to tell",
        )
    if len(reads) == 1 and traffic is None:
        return "unknown", "an idle process may also be a victim: the others were not looked at"
    return "healthy", "every process is idle" + (" and no request is in flight" if traffic is not None else "")


def _in_step(read: Read) -> bool:
    """Whether a step of the engine is under way on the thread that decides: then somebody's request is in flight."""
    threads = [thread for thread in read.looks[-1].threads if thread.name == read.match.thread]
    main = read.looks[-1].main_thread
    threads = threads or ([main] if main is not None else [])
    return any(frame.name in _STEP for thread in threads for frame in thread.frames)


def confidence_of(reads: Sequence[Read], decides: int, odd: frozenset[int], finding: Finding) -> Confidence:
    """High needs agreement of two kinds: time and peers, or several looks with a signature."""
    own = reads[decides].found.confidence
    if reads[decides].found.kind in CANNOT_TELL:
        return "low"
    backed = decides in odd and any(one.waits for index, one in enumerate(reads) if index != decides)
    alike = len(reads) > 1 and all(one.found.kind == reads[decides].found.kind for one in reads)
    steps: tuple[Confidence, ...] = ("low", "medium", "high")
    raised = steps.index(own) + (1 if backed or alike or finding == "stalled" else 0)
    return steps[min(raised, 2)]
