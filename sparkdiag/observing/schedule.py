"""How often to look, from what looking costs. Pure.

A dump of a vLLM process costs 24 to 29 ms of CPU, and on a saturated machine that CPU is taken from the server. The
scenario grants a share of the machine (``sampling.cpu_share``); the periods follow from it and from the measured cost.

The budget wins over ``min_period_s``: looking is never more frequent than it can be paid for. ``max_period_s`` wins
over the budget for the processes in which the model runs: a gap longer than it would leave the judge blind, so on a
machine where even that is too dear the budget is overspent, and ``predicted_share`` says by how much.
"""

from sparkdiag.evidence.base import Value
from sparkdiag.scenario.model import Sampling

FIRST_COST_S = 0.03
"""CPU seconds of one dump, until the first ones were measured."""
OTHERS_EVERY = 10
"""The model runs in the workers, and only they are judged: the other processes, which a person may want to see, are
looked at this many times less often."""
COST_WEIGHT = 0.2
"""Weight of the newest measurement in the running mean of a process's cost."""
BACK_OFF_FACTOR = 8
"""A process that cannot be sampled is tried this many times less often at most."""


class Periods(Value):
    """Seconds from the start of one look at a process to the start of the next."""

    focus_s: float
    """For the processes in which the model runs."""
    others_s: float


def periods(*, focus_cost_s: float, others_cost_s: float, cores: int, sampling: Sampling) -> Periods:
    """Periods that keep to the budget, for processes whose dumps cost so many CPU seconds in sum."""
    budget = sampling.cpu_share * max(1, cores)
    paid_s = (focus_cost_s + others_cost_s / OTHERS_EVERY) / budget
    longest_s = max(sampling.max_period_s, sampling.min_period_s)
    focus_s = min(max(paid_s, sampling.min_period_s), longest_s)
    return Periods(focus_s=focus_s, others_s=focus_s * OTHERS_EVERY)


def predicted_share(found: Periods, *, focus_cost_s: float, others_cost_s: float, cores: int) -> float:
    """Share of the machine that looking with these periods will cost."""
    return (focus_cost_s / found.focus_s + others_cost_s / found.others_s) / max(1, cores)


def smoothed_cost_s(before_s: float | None, measured_s: float) -> float:
    """Running mean of a dump's CPU seconds."""
    if before_s is None:
        return measured_s
    return before_s + COST_WEIGHT * (measured_s - before_s)


def backed_off_s(period_s: float, *, failures_in_a_row: int, longest_s: float) -> float:
    """A longer period for a process that keeps failing; never beyond ``longest_s`` unless the period already is."""
    factor = BACK_OFF_FACTOR if failures_in_a_row > 10 else min(1 << failures_in_a_row, BACK_OFF_FACTOR)
    return max(period_s, min(period_s * factor, longest_s))
