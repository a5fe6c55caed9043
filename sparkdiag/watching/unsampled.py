"""What can still be said of a server of which no stack can be taken: its own counters, and that they lie. Pure."""

from collections.abc import Sequence

from sparkdiag.evidence.diagnosis import Diagnosis, Finding, Reason, Traffic
from sparkdiag.evidence.timeline import MetricPoint
from sparkdiag.watching.traffic import metrics_words, traffic_of

NO_STACK = "no stack was taken: "
_LIE = (
    "metrics alone decide nothing: during one long prefill step no token is counted, and requests_running can read 0 "
    "in a wedged server"
)


def diagnosis_without_stacks(points: Sequence[MetricPoint], *, why: str, remedy: str | None) -> Diagnosis:
    """Never a stall, and healthy only where the server was seen to do work; ``why`` names what stands in the way."""
    traffic = traffic_of(points)
    return Diagnosis(
        kind="not-an-engine",
        finding=_finding(traffic),
        confidence="low",
        reasons_for=(Reason(source="metrics", text=metrics_words(points)),),
        caveats=(_LIE,),
        next_step=remedy or "let sparkdiag look at the server's processes: sparkdiag doctor",
        reason=f"{NO_STACK}{why.removeprefix(NO_STACK)}",
    )


def _finding(traffic: Traffic | None) -> Finding:
    return "moving" if traffic is not None and traffic.moved else "unknown"
