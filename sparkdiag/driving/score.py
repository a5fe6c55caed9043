"""Whether the answer is right. Pure."""

import re
from typing import Literal

from sparkdiag.driving.repetition import repetition
from sparkdiag.evidence.client import NeedleScore
from sparkdiag.scenario.shown import shown

_SEPARATED = re.compile(r"(?<=\d)[,_](?=\d{3})")
_STOPPED = frozenset({"stop", "eos", "end_turn"})

Kind = Literal["needle", "reasoning"]


def score_answer(text: str, *, expected: str, kind: Kind, finish_reason: str | None) -> tuple[NeedleScore, str]:
    """The score of a complete answer and the reason for it, in words.

    ``finish_reason`` is the server's; None says that the stream was cut. A needle counts as retrieved when it is the
    first number of its length in the answer, whatever follows: a base model asked to go on goes on. A ``reasoning``
    answer is searched for a loop first: text that degenerates was the incident's second symptom.
    """
    looping = repetition(text)
    if kind == "reasoning" and looping is not None:
        return "degenerate", looping
    numbers = _numbers(text, digits=len(expected))
    answers = numbers[:1] if kind == "needle" else numbers[-1:]
    if answers == [expected]:
        return "retrieved", f"the answer holds {expected}"
    if looping is not None:
        return "degenerate", looping
    if answers:
        return "wrong", f"the answer holds {answers[0]} instead of {expected}"
    if finish_reason in _STOPPED:
        return "wrong", f"the answer ended without {expected}: {shown(text.strip())}"
    cut = "the stream was cut" if finish_reason is None else f"finish_reason {shown(finish_reason)}"
    return "truncated", f"{cut} after {len(text)} characters, without {expected}"


def _numbers(text: str, *, digits: int) -> list[str]:
    """Whole numbers of exactly that many digits, in order; ``1,234,567`` counts as one."""
    plain = _SEPARATED.sub("", text)
    return re.findall(rf"(?<![0-9A-Za-z])[0-9]{{{digits}}}(?![0-9A-Za-z])", plain)
