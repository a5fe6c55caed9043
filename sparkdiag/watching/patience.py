"""How long a vigil waits, how often it may look closer, and what it may keep. Pure.

A closer look costs CPU, and a sign is no stall: a cached prompt's prefill moves no counter for half an hour. So looks
back off, and a look's cost is spread over the time until the next. Only one thing overrides that: before the engine's
own timeout would destroy the evidence, one more look is taken.
"""

from dataclasses import dataclass, replace
from typing import Literal

from sparkdiag.evidence.diagnosis import CANNOT_TELL, Diagnosis

Label = Literal["stalled", "slow", "unsettled"]
"""What a capture is called. ``stalled``: its diagnosis says so and no counter moved meanwhile; ``slow``: it moves, but
no counter has moved for so long that the engine's own timeout may end it; ``unsettled``: the same, and the stacks do
not tell."""

ENGINE_TIMEOUT_S = 300.0
"""vLLM's ``VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS``: after that the engine ends itself, and with it what could be seen
(https://docs.vllm.ai/en/latest/configuration/env_vars/)."""
ROUNDS_S = (0.0, 4.0, 9.0, 14.0, 20.0, 27.0, 33.0)
"""When a closer look takes its rounds of stacks. They span more than ``STILL_S`` of ``diagnosing.finding``."""
SETTLED_FROM_S = 14.0
"""A look that shows movement by then is over."""
LONGEST_LOOK_S = 75.0
"""Where a scrape or a dump hangs until its own bound, a look ends with the rounds it has."""
MOST_LEVEL = 5


@dataclass(frozen=True, slots=True)
class Patience:
    """Times of a vigil, in seconds."""

    patience_s: float = 45.0
    """Nothing moves, requests wait, for so long: a sign."""
    poll_s: float = 5.0
    """Between two scrapes."""
    tree_every_s: float = 30.0
    """Between two looks at the process tree; without metrics, between two rounds of stacks."""
    failures_in_a_row: int = 3
    slow_answer_s: float = 4.0
    """``/metrics`` takes milliseconds; beyond this an answer counts as none."""
    gap_s: float = 60.0
    """A larger hole between two scrapes: the watcher slept (suspend, a stopped container), and knows nothing of it."""
    evidence_after_s: float = 180.0
    """Nothing moved for so long: kept even when the stacks do not show a stall, because the engine may end itself
    at ``ENGINE_TIMEOUT_S``."""
    look_again_s: float = 30.0
    """After the first look that showed no stall; twice as long after each further one."""
    look_again_most_s: float = 180.0
    """And no longer than that: what stops in the midst of a silent prefill is to be kept before the engine ends."""
    look_cpu_share: float = 0.02
    """Of one core, that closer looks may cost on average. It wins over the times above."""
    calm_after_s: float = 600.0
    """Without any sign for so long, the next one is looked at as the first was."""
    rounds_s: tuple[float, ...] = ROUNDS_S
    history_s: float = 600.0
    """Of what the server said of itself before a stall, kept in memory."""
    follow_s: float = 600.0
    """How long a capture is added to, unless things move again before."""
    follow_round_s: float = 60.0
    """Between two rounds of stacks meanwhile."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a vigil may keep, and when it ends by itself."""

    most_captures: int = 20
    most_bytes: int = 2**30
    """Of all captures together; each ends when it has its share."""
    end_after_s: float | None = None
    end_after_captures: int | None = None


@dataclass(frozen=True, slots=True)
class Looks:
    """The closer looks so far, as far as the next one depends on them."""

    level: int = 0
    ended_s: float | None = None
    cost_s: float = 0.0
    last_sign_s: float | None = None


def while_moving(patience: Patience) -> Patience:
    """For a server that moves and gives nothing: no timeout of the engine's is near, and a healthy prefill may do so
    for half an hour, so looks may lie further apart."""
    return replace(patience, look_again_s=2 * patience.look_again_s, look_again_most_s=1800.0)


def may_look(looks: Looks, *, at_s: float, patience: Patience) -> bool:
    """Whether a sign may be looked at again at ``at_s``."""
    if looks.ended_s is None or at_s < looks.ended_s:
        return True  # the first one, or the clock was set back
    doubled_s = patience.look_again_s * 2 ** (looks.level - 1) if looks.level else 0.0
    pause_s = max(min(doubled_s, patience.look_again_most_s), looks.cost_s / patience.look_cpu_share)
    return at_s >= looks.ended_s + pause_s


def after_look(looks: Looks, *, ended_s: float, cost_s: float) -> Looks:
    """A look is over. Whatever it showed, the next one waits longer: a stall is kept once, and no other is likelier."""
    return replace(looks, level=min(looks.level + 1, MOST_LEVEL), ended_s=ended_s, cost_s=cost_s)


def with_sign(looks: Looks, *, at_s: float, patience: Patience) -> Looks:
    """A sign is there at ``at_s``. After a long calm it is looked at as the first was."""
    calm = looks.last_sign_s is not None and at_s - looks.last_sign_s > patience.calm_after_s
    return replace(looks, level=0 if calm else looks.level, last_sign_s=at_s)


def stands(diagnosis: Diagnosis | None) -> bool:
    """Whether the process that decides is at work, and stood in one place in every look. A server at work may do so,
    too; where it tells nothing of its requests that is all there is, so it is kept, and not called stalled."""
    if diagnosis is None or diagnosis.kind == "idle" or diagnosis.kind in CANNOT_TELL:
        return False
    deciding = [one for one in diagnosis.processes if one.name == diagnosis.process]
    return any(one.movement is not None and one.movement.what == "nothing" for one in deciding)


def label_of(
    diagnosis: Diagnosis | None, *, still_s: float, in_flight: bool | None, patience: Patience
) -> Label | None:
    """What a closer look's result is kept as; None: not at all. ``in_flight``: None where the server does not say."""
    finding = "unknown" if diagnosis is None else diagnosis.finding
    if diagnosis is not None and finding == "stalled" and diagnosis.kind != "idle":
        return "stalled"
    if in_flight is None and stands(diagnosis):
        return "unsettled"
    if finding == "healthy" or not in_flight or still_s < patience.evidence_after_s:
        return None
    return "slow" if finding == "moving" else "unsettled"


def as_kept(diagnosis: Diagnosis | None, label: Label) -> Diagnosis | None:
    """The diagnosis of a capture that is called ``label``.

    That every process is idle shows a lost message only where the server's count of requests is right, and a count may
    be left over from a request that was aborted: so that is kept, and not called stalled.
    """
    if diagnosis is None or diagnosis.finding != "stalled" or label == "stalled":
        return diagnosis
    caveats = (*diagnosis.caveats, "every process is idle: a message was lost, or a count of requests is left over")
    return diagnosis.model_copy(update={"finding": "unknown", "caveats": caveats})
