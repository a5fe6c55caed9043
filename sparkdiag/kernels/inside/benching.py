"""Every kernel timed on every row of the grid, within the memory that is free."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from sparkdiag.kernels.inside import failing
from sparkdiag.kernels.inside.checking import Say
from sparkdiag.kernels.inside.fallback import BUDGET_BYTES
from sparkdiag.kernels.inside.inputs import Case, make_inputs
from sparkdiag.kernels.inside.subjects import Subject
from sparkdiag.kernels.inside.timing import FLUSH_BYTES, time_calls

SPARE_BYTES = 256 << 20


def bench(
    subjects: Sequence[Subject],
    cases: Iterable[Case],
    *,
    seed: int,
    device: str,
    repeat: int,
    budget_s: float,
    say: Say,
) -> None:
    """Say one ``timed`` a kernel and case: times in milliseconds, or why there are none.

    Raises ``EnvironmentTrouble``, ``DeviceLost``.
    """
    for case in cases:
        if device != "cpu":
            torch.cuda.empty_cache()
        short = _short_of(input_bytes(case), device)
        inputs = None if short else make_inputs(case, seed=seed, device=device)
        useful = int((inputs.ends - inputs.starts).sum()) if inputs is not None else None
        for subject in subjects:
            found: dict[str, Any] = {"subject": subject.key, "case": _told(case), "useful": useful}
            why = short or _short_of(work_bytes(case, fallback=subject.fallback), device)
            if why or inputs is None:
                say(timed={**found, "skipped": why})
                continue
            say(progress=f"{case.label}: {subject.name}")
            _one(subject, inputs, found, device=device, repeat=repeat, budget_s=budget_s, say=say)
        del inputs


def _one(
    subject: Subject, inputs: Any, found: dict[str, Any], *, device: str, repeat: int, budget_s: float, say: Say
) -> None:
    try:
        # Prefill asks without cleaning, as the incident does; a kernel that always cleans does not hear of it.
        times = time_calls(
            lambda: subject.run(inputs, False),
            device=device,
            repeat=repeat,
            budget_s=budget_s,
            tick=lambda: say(beat=True),
        )
    except Exception as error:
        if failing.is_out_of_memory(error):
            say(timed={**found, "skipped": "does not fit into the device's memory"})
            return
        if subject.judged:
            failing.raise_trouble(error)
        say(timed={**found, "skipped": f"raised {failing.told(error)}"})
        if failing.is_lost(error):
            raise failing.DeviceLost(failing.told(error)) from error
        return
    say(timed={**found, "times_ms": times})


def input_bytes(case: Case) -> int:
    """Of the inputs alone: FP8 queries and keys, scales, weights, windows."""
    return (case.rows * case.heads + case.keys) * case.head_dim + 4 * (case.keys + case.rows * (case.heads + 2))


def work_bytes(case: Case, *, fallback: bool) -> int:
    """What a call allocates beside its inputs: float32 logits, and in the fallback the keys in float32, twice."""
    logits = case.rows * case.keys * 4
    if not fallback:
        return logits + FLUSH_BYTES
    part = max(BUDGET_BYTES, case.rows * 4)
    return logits + FLUSH_BYTES + 2 * case.keys * case.head_dim * 4 + 3 * part + 8 * case.rows * 4 * case.head_dim


def _short_of(needed: int, device: str) -> str | None:
    """Why it does not fit, in words; None where it does. CPU cases are tiny."""
    if device == "cpu":
        return None
    free = torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    if needed + SPARE_BYTES <= free:
        return None
    return f"needs {needed / 1e9:.1f} GB, of which {free / 1e9:.1f} are free"


def _told(case: Case) -> dict[str, Any]:
    return {"rows": case.rows, "keys": case.keys, "heads": case.heads, "window": case.window}
