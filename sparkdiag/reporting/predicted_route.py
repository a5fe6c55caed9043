"""The predicted route beside what the stacks showed, in sentences: plain text, made safe by whoever shows it."""

from typing import Any

from sparkdiag.evidence.agreement import RouteAgreement
from sparkdiag.evidence.route import Guard
from sparkdiag.evidence.stored import StoredRun

PUZZLE = "that disagreement is the reviewer's puzzle: a guard is not what the source and the configuration make it"
_MOST_TOLD, _MOST_DOUBTED = 3, 4
_MOST_SOURCE = 80


def route_sentence(stored: StoredRun) -> str | None:
    """``source says: K (G is False: DCP 2); seen on the stacks: K in 41 of 43 worker samples: they agree``.

    None for a run of which no route was asked.
    """
    found = stored.agreement
    if found is None:
        return None
    said = f"source says: {_said(found)}"
    but = f" ({found.because})" if found.because else ""
    match found.answer:
        case "agree":
            return f"{said}; seen on the stacks: {_seen(found)}: they agree{but}"
        case "disagree":
            return f"{said}; seen on the stacks: {_seen(found)}: THEY DISAGREE{but}{_doubt(found)}; {PUZZLE}"
        case "not compared":
            seen = f"; seen on the stacks: {_seen(found)}" if found.seen else ""
            return f"{said}{seen}; not compared: {found.because}" if found.predicted else f"{said}: {found.because}"


def route_document(stored: StoredRun) -> dict[str, Any] | None:
    """The same for programs."""
    predicted, found = stored.record.predicted, stored.agreement
    if predicted is None or found is None:
        return None
    return {
        "predicted": list(found.predicted),
        "exact": predicted.route.exact if predicted.route is not None else False,
        "read_from": predicted.read_from,
        "config": predicted.route.config.model_dump(mode="json") if predicted.route is not None else None,
        "guards": [guard.model_dump(mode="json") for guard in found.guards],
        "seen": [kernel.model_dump(mode="json") for kernel in found.seen],
        "samples": found.samples,
        "samples_inside": found.inside,
        "answer": found.answer,
        "because": found.because,
        "doubted": [guard.model_dump(mode="json") for guard in found.doubted],
    }


def _said(found: RouteAgreement) -> str:
    if not found.predicted:
        return "nothing"
    kernels = " or ".join(found.predicted)
    guards = ", ".join(_guard(guard) for guard in found.guards[:_MOST_TOLD])
    return f"{kernels} ({guards})" if guards else kernels


def _guard(guard: Guard) -> str:
    """``dcp_world_size <= 1 is False: --dcp 2``."""
    source = guard.source if len(guard.source) <= _MOST_SOURCE else f"{guard.source[: _MOST_SOURCE - 2]} …"
    because = f": {guard.because}" if guard.because else ""
    value = "unknown" if guard.value == "unknown" else guard.value.capitalize()
    return f"{' '.join(source.split())} is {value}{because}"


def _seen(found: RouteAgreement) -> str:
    parts = [f"{kernel.function} in {kernel.samples}" for kernel in found.seen]
    return f"{', '.join(parts)} of {found.samples} worker samples"


def _doubt(found: RouteAgreement) -> str:
    if not found.doubted:
        return ""
    one = "this guard" if len(found.doubted) == 1 else "one of these guards"
    guards = ", or ".join(f"{_guard(guard)} ({guard.path}:{guard.line})" for guard in found.doubted[:_MOST_DOUBTED])
    more = len(found.doubted) - _MOST_DOUBTED
    return f": {one} would have to be otherwise: {guards}" + (f", or {more} more" if more > 0 else "")
