"""Every kernel on every case: called with poisoned memory, held against float64, and what came of it said at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from sparkdiag.kernels.inside import failing
from sparkdiag.kernels.inside.dispatch import DoesNotFit
from sparkdiag.kernels.inside.inputs import Case, Inputs, make_inputs
from sparkdiag.kernels.inside.numerics import Judgement, judge, pair_difference
from sparkdiag.kernels.inside.poison import SENTINEL, poisoned
from sparkdiag.kernels.inside.reference import Reference, make_reference
from sparkdiag.kernels.inside.subjects import Subject

Say = Callable[..., None]


def check(
    subjects: Sequence[Subject],
    cases: Iterable[Case],
    *,
    seed: int,
    device: str,
    tolerance: float | None,
    pairs: Sequence[tuple[str, str]],
    say: Say,
) -> None:
    """Say one ``checked`` a call and one ``pair`` a pair and case.

    Raises ``EnvironmentTrouble`` where nothing can be said, ``DeviceLost`` after the call that lost it is told.
    """
    for number, case in enumerate(cases):
        say(progress=f"{case.label}: inputs and float64 reference")
        inputs = make_inputs(case, seed=seed + number, device=device)
        reference = make_reference(inputs)
        answers: dict[str, Any] = {}
        kept = inputs.copied()
        for subject in subjects:
            for clean in subject.cleans:
                say(progress=f"{case.label}: {subject.name}")
                limit = subject.tolerance if tolerance is None else tolerance
                got = _one(subject, case, clean, inputs, reference, limit, say, kept=kept)
                if clean:
                    answers[subject.key] = got
        for one, other in pairs:
            if answers.get(one) is not None and answers.get(other) is not None:
                off = pair_difference(answers[one], answers[other], reference=reference)
                say(pair={"subjects": [one, other], "case": _told(case), "difference": off})


def _one(
    subject: Subject,
    case: Case,
    clean: bool,
    inputs: Inputs,
    reference: Reference,
    tolerance: float,
    say: Say,
    *,
    kept: Inputs,
) -> Any:
    """The logits, None where there are none; what came of the call is said."""
    found: dict[str, Any] = {
        "subject": subject.key,
        "name": subject.name,
        "judged": subject.judged,
        "case": _told(case),
        "clean": clean,
        "tolerance": tolerance,
    }
    try:
        got = run_poisoned(subject, inputs, clean=clean, value=math.nan)
        judged = judge(got, reference=reference, inputs=inputs, clean=clean, tolerance=tolerance)
        problems = [*judged.problems, *_unwritten(subject, inputs, clean, judged)]
    except DoesNotFit as error:
        say(checked={**found, "skipped": f"this check cannot call it: {error}"})
        return None
    except (Exception, SystemExit) as error:
        if failing.is_out_of_memory(error):
            say(checked={**found, "skipped": f"out of memory: {failing.told(error)}"})
            inputs.restore(kept)
            return None
        failing.raise_trouble(error)
        say(checked={**found, "problems": [f"it raised {failing.told(error)}"]})
        if failing.is_lost(error):
            raise failing.DeviceLost(failing.told(error)) from error
        inputs.restore(kept)
        return None
    problems += [f"it changes its input {name}" for name in inputs.restore(kept)]
    difference = judged.difference
    say(
        checked={
            **found,
            "problems": problems,
            "difference": difference if difference is not None and math.isfinite(difference) else None,
            "worst": judged.worst,
        }
    )
    return got


def run_poisoned(subject: Subject, inputs: Inputs, *, clean: bool, value: float) -> Any:
    """Call the kernel where memory is full of ``value``, and wait for it."""
    device = str(inputs.q.device)
    shape = (inputs.q.shape[0], inputs.keys.shape[0])
    with poisoned(value, modules=subject.modules, spoil=(shape, device)):
        got = subject.run(inputs, clean)
        if device != "cpu":
            torch.cuda.synchronize()
    return got


def _unwritten(subject: Subject, inputs: Inputs, clean: bool, judged: Judgement) -> list[str]:
    """NaN may be calculated, or be what the memory held: another poison tells them apart."""
    if judged.unknown is None:
        return []
    again = run_poisoned(subject, inputs, clean=clean, value=SENTINEL)
    left = (again == SENTINEL) & judged.unknown
    count = int(left.sum())
    if not count:
        return []
    row, key = divmod(int(left.flatten().to(torch.uint8).argmax()), int(left.shape[1]))
    return [f"{count:,} element(s) are never written: they keep what the memory held, first at row {row}, key {key}"]


def _told(case: Case) -> Mapping[str, Any]:
    return {"rows": case.rows, "keys": case.keys, "heads": case.heads, "window": case.window}
