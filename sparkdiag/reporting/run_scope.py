"""Which configurations reach the stall, as one sentence: from the source, held against the run's ledger.

Plain text, made safe by whoever shows it.
"""

import re

from sparkdiag.evidence.ledger import RankLedger
from sparkdiag.evidence.route import Route
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.reporting.phrases import scenario_of
from sparkdiag.reporting.route_phrases import short

_MOST_GUARDS, _MOST_REASONS = 3, 3
_LONGEST_GUARD = 80
_SHA = re.compile(r"[0-9a-f]{40}")
_NOT_ASKED = "other configurations were not asked of the source"


def run_scope(stored: StoredRun) -> str | None:
    """``By its source at 03c767c50c a prefill of … reaches f only when DCP > 1 on SM12x (…); the ledger saw …``.

    None where the source was not read, or tells nothing.
    """
    predicted = stored.record.predicted
    if predicted is None or predicted.route is None or not predicted.route.reached:
        return None
    said = predicted.scope or _of_this_run(stored, predicted.route)
    if not said:
        return None
    seen = _seen(stored, predicted.route)
    return f"By its source at {_revision(predicted.route.revision)} {said}" + (f"; {seen}" if seen else "")


def _revision(revision: str) -> str:
    """The first digits of a commit; a released version as it is."""
    return short(revision) if _SHA.fullmatch(revision) else one_line(revision, limit=60)


def _of_this_run(stored: StoredRun, route: Route) -> str:
    """Of a run whose neighbours were not asked: what decided its own route; empty where that is not one kernel."""
    if not route.exact:
        return ""
    kernels = " or ".join(route.kernels)
    found = stored.agreement.guards if stored.agreement is not None else ()
    guards = [
        f"{one_line(guard.source, limit=_LONGEST_GUARD)} is {guard.value}"
        + (f" ({guard.because})" if guard.because else "")
        for guard in found[:_MOST_GUARDS]
    ]
    because = f" because {' and '.join(guards)}" if guards else ""
    return f"this run's configuration reaches {kernels}{because}; {_NOT_ASKED}"


def _seen(stored: StoredRun, route: Route) -> str:
    """What the ledger of the rank that came furthest says of it."""
    ranks = stored.ledger.ranks if stored.ledger is not None else ()
    rank = max(ranks, key=lambda one: one.chunks, default=None)
    if rank is None or not rank.chunks or rank.counted != "chunks":
        return ""
    return _against(stored, route, rank) or _fused(rank)


def _against(stored: StoredRun, route: Route, rank: RankLedger) -> str:
    """Where the ledger saw another kernel than the source says of this very configuration."""
    scenario = scenario_of(stored)
    stalls = {signature.function for signature in scenario.signatures} if scenario is not None else set()
    seen = [kernel.function for kernel in rank.kernels if kernel.function in stalls]
    if route.stall_path == "false" and seen:
        return f"but this run's ledger recorded {seen[0]}, so that the source does not tell this scope"
    if route.stall_path == "true" and rank.kernels and not seen and not rank.missing:
        return "but this run's ledger recorded another kernel, so that the source does not tell this scope"
    return ""


def _fused(rank: RankLedger) -> str:
    fused = rank.fused
    if fused is None:
        return ""
    if fused.not_tried == rank.chunks:
        facts = [f"{one.fact} = {one.value}" for one in fused.not_tried_because[:_MOST_REASONS]]
        because = f" because {' and '.join(facts)}" if facts and not fused.unexplained else ""
        return f"in this run the fused path was not tried in {fused.not_tried} of {rank.chunks} chunks{because}"
    if fused.accepted == rank.chunks:
        return f"in this run the fused path took {fused.accepted} of {rank.chunks} chunks"
    if fused.refused:
        return f"in this run the fused path was tried and returned False in {fused.refused} of {rank.chunks} chunks"
    return ""
