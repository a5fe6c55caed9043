"""The healthy time to first token, from outside the path under suspicion."""

from sparkdiag.evidence.verdict import Baseline
from sparkdiag.scenario.model import Reference, Scenario

GROWTH_PER_TOKEN = 1e-5
"""c in the healthy time k * (n + c * n^2) (prefill is linear layers plus attention). 1e-5 fits the healthy times of
the H200 recordings (tests/recordings): 0.14 s, 1.5 s and 6.57 s for 16,000, 100,000 and 250,000 tokens."""

STATED_RANGE = 4.0
"""A reference is scaled to prompts at most this many times longer or shorter; beyond it no baseline is made."""


def healthy_shape(tokens: int) -> float:
    """n + c * n^2."""
    return tokens + GROWTH_PER_TOKEN * tokens * tokens


def scaled_seconds(seconds: float, *, from_tokens: int, to_tokens: int) -> float | None:
    """A healthy time at another prompt length; None outside the stated range."""
    if from_tokens <= 0 or to_tokens <= 0:
        return None
    if not 1 / STATED_RANGE <= to_tokens / from_tokens <= STATED_RANGE:
        return None
    return seconds * healthy_shape(to_tokens) / healthy_shape(from_tokens)


def baseline_from_reference(reference: Reference, *, prompt_tokens: int) -> Baseline | None:
    """The reference as a baseline for this prompt; None where it lies too far away to be scaled."""
    seconds = scaled_seconds(reference.seconds, from_tokens=reference.prompt_tokens, to_tokens=prompt_tokens)
    if seconds is None:
        return None
    same = reference.prompt_tokens == prompt_tokens
    where = f"{reference.seconds:g} s for {reference.prompt_tokens:,} tokens on {reference.hardware}"
    note = "" if same else f", scaled to {prompt_tokens:,} tokens by k(n + {GROWTH_PER_TOKEN:g}n²)"
    return Baseline(
        kind="reference",
        seconds=seconds,
        source=f"{where} ({reference.source}){note}",
        scaled_from_tokens=None if same else reference.prompt_tokens,
    )


def reference_baseline(scenario: Scenario, *, prompt_tokens: int) -> Baseline | None:
    """The scenario's reference nearest in length, scaled; None where there is none near enough."""
    references = sorted(
        scenario.baseline.references,
        key=lambda reference: (abs(reference.prompt_tokens - prompt_tokens), reference.seconds),
    )
    for reference in references:
        found = baseline_from_reference(reference, prompt_tokens=prompt_tokens)
        if found is not None:
            return found
    return None
