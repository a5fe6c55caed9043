"""What the child is told to do: ``inside/main.py`` reads it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sparkdiag.kernels.grid import CPU_BENCH_SHAPES, Call, Shape, bench_calls, check_calls
from sparkdiag.kernels.sources import RevisionKernels

Device = Literal["auto", "cpu", "cuda"]


def check_order(
    *, device: Device, seed: int, tolerance: float | None, revision: RevisionKernels | None
) -> dict[str, Any]:
    """sparkdiag's own pair where no revision is named, else that revision's; DeepGEMM beside them on a GPU."""
    return {
        "what": "check",
        "device": device,
        "seed": seed,
        "tolerance": tolerance,
        "own": revision is None,
        "deepgemm": revision is None,
        "revision": _told(revision),
        "cases": {kind: _cases(check_calls(kind)) for kind in ("cpu", "cuda")},
    }


def bench_order(
    *,
    device: Device,
    seed: int,
    shapes: Sequence[Shape],
    repeat: int,
    budget_s: float,
    revision: RevisionKernels | None,
) -> dict[str, Any]:
    """Every kernel that is to be had, on the same rows."""
    return {
        "what": "bench",
        "device": device,
        "seed": seed,
        "repeat": repeat,
        "budget_s": budget_s,
        "own": True,
        "deepgemm": True,
        "revision": _told(revision),
        "cases": dict.fromkeys(("cpu", "cuda"), _cases(bench_calls(shapes))),
    }


def cpu_shapes(shapes: Sequence[Shape]) -> tuple[Shape, ...]:
    """Those asked for, else a tiny grid."""
    return tuple(shapes) or CPU_BENCH_SHAPES


def _cases(calls: Sequence[Call]) -> list[dict[str, Any]]:
    return [call.as_json() for call in calls]


def _told(revision: RevisionKernels | None) -> Mapping[str, Any] | None:
    if revision is None:
        return None
    return {"texts": {name: list(text) for name, text in revision.texts.items()}, "places": dict(revision.places)}
