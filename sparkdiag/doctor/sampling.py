"""What a trial look at a process of our own says about looking at a server. Pure."""

from sparkdiag.doctor.finding import Finding
from sparkdiag.evidence.base import Value
from sparkdiag.observing.faults import SamplingFault
from sparkdiag.observing.permission import PtraceFacts

SEEN_IN_TIME_S = 5.0

_WHY = {
    "sample-child": "stacks and loop variables of the launched server are the evidence that a verdict rests on",
    "sample-other": "only a server that sparkdiag did not start would need it; `sparkdiag repro` starts its own",
    "sample-environment": "the server runs on this very interpreter, and py-spy must know its version",
}
_INSTEAD = "in `sparkdiag repro` the probe inside the server samples instead (coarser: it waits for the GIL)"


class Look(Value):
    """One trial look."""

    who: str
    """For people: ``a child``."""
    fault: SamplingFault | None = None
    function_seen: bool = False
    locals_seen: bool = False
    took_s: float = 0.0
    looks: int = 1
    """More than one where the busy process changed while it was read."""


def judge_look(name: str, look: Look, facts: PtraceFacts, *, remedy: str) -> Finding:
    """One finding from one trial look; ``remedy`` is what to type where permission is what lacks."""
    why = _WHY[name]
    if look.fault is not None:
        return _refused(name, look, look.fault, reason=_reason(facts), remedy=remedy)
    if not look.function_seen:
        return Finding(
            name=name,
            status="fail",
            seen=f"py-spy read {look.who} but did not show the function that it was in",
            why=why,
            next_step="pip install -U py-spy, then: sparkdiag doctor",
        )
    if not look.locals_seen:
        return Finding(
            name=name,
            status="warn",
            seen=f"py-spy saw the function of {look.who}, but not its loop variables",
            why="the forecast has to do without loop variables, so a verdict takes longer",
            next_step="pip install -U py-spy, then: sparkdiag doctor",
        )
    if look.took_s > SEEN_IN_TIME_S:
        return Finding(
            name=name,
            status="warn",
            seen=f"py-spy needed {look.took_s:.1f} s for {look.who}",
            why="samples this late do not count as evidence",
            next_step="end what else uses the machine's cores (top), then: sparkdiag doctor",
        )
    again = f" (look {look.looks})" if look.looks > 1 else ""
    return Finding(
        name=name,
        status="ok",
        seen=f"function and locals of {look.who} seen in {look.took_s * 1000:.0f} ms{again}",
        why=why,
    )


def _refused(name: str, look: Look, fault: SamplingFault, *, reason: str, remedy: str) -> Finding:
    why = _WHY[name]
    instead = why if name == "sample-other" else f"{why}; {_INSTEAD}"
    match fault.cause:
        case "permission":
            seen = f"py-spy may not read {look.who}: permission denied ({reason})"
            return Finding(name=name, status="warn", seen=seen, why=instead, next_step=remedy)
        case "no-py-spy":
            step = fault.remedy or "pip install py-spy"
            return Finding(name=name, status="warn", seen=fault.line, why=instead, next_step=step)
        case "timeout":
            step = "end what else uses the machine's cores (top), then: sparkdiag doctor"
            return Finding(name=name, status="warn", seen=fault.line, why=why, next_step=step)
        case _:
            return Finding(
                name=name,
                status="warn" if name == "sample-other" else "fail",
                seen=f"{fault.line} ({look.who})",
                why=why,
                next_step=fault.remedy or "pip install -U py-spy, then: sparkdiag doctor",
            )


def _reason(facts: PtraceFacts) -> str:
    """What the kernel decided by."""
    words = [f"CAP_SYS_PTRACE is {'there' if facts.effective else 'missing'}"]
    words += [f"kernel.yama.ptrace_scope={facts.yama_scope}"] if facts.yama_scope else []
    return ", ".join(words)
