"""Why two revisions' routes differ, in words: the guard or call on the way that is another one. Pure."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from sparkdiag.evidence.route import Reached, Route, TrailStep

_PLACE = re.compile(r" \([^()\s]+:\d+\)")

Condition = tuple[str, tuple[str, ...]]


def condition(reached: Reached) -> Condition:
    """A kernel and what leads to it, whatever the lines are called: code above them comes and goes."""
    return reached.function, tuple(_PLACE.sub("", line) for line in reached.when)


def why_changed(before: Route | None, after: Route | None) -> str:
    """What differs on the way to the first kernel that only one of both reaches; None where there is no entry."""
    if after is None:
        return f"{before.entry} is gone" if before is not None else ""
    if before is None:
        return f"{after.entry} comes in at {after.entry_path}:{after.entry_line}"
    one, other = _differing(before.reached, after.reached), _differing(after.reached, before.reached)
    if one is not None and other is not None and (found := _on_the_way(one.trail, other.trail)):
        return found
    if other is None and after.raises:
        return f"it ends in {after.raises[0].error} ({after.raises[0].path}:{after.raises[0].line})"
    if one is None and other is not None and before.raises:
        return f"{other.function} is reached, where it ended in {before.raises[0].error} before"
    if before.exact != after.exact:
        return _exactness(before, after)
    return _conditions(one, other)


def _differing(these: Sequence[Reached], those: Sequence[Reached]) -> Reached | None:
    """The first of ``these`` that is not among ``those``, else the first."""
    known = {condition(reached) for reached in those}
    new = (reached for reached in these if condition(reached) not in known)
    return next(new, these[0] if these else None)


class _Part(NamedTuple):
    """Where two ways differ: what the old one does there, and the new one."""

    old: Sequence[TrailStep]
    new: Sequence[TrailStep]


def _on_the_way(before: Sequence[TrailStep], after: Sequence[TrailStep]) -> str:
    """In this order: a guard whose value turned; the guard in front of the first call that is another one, or that
    call; the first guard that comes or goes."""
    parts = tuple(_parts(before, after))
    turned = next(filter(None, (_turned(part) for part in parts)), None)
    if turned:
        return turned
    calling = (part for part in parts if any(step.kind == "call" for step in (*part.old, *part.new)))
    part = next(calling, parts[0] if parts else None)
    return "" if part is None else _replaced(part)


def _parts(before: Sequence[TrailStep], after: Sequence[TrailStep]) -> Iterator[_Part]:
    match = SequenceMatcher(None, [_step(one) for one in before], [_step(one) for one in after], autojunk=False)
    for kind, old, old_end, new, new_end in match.get_opcodes():
        if kind != "equal":
            yield _Part(before[old:old_end], after[new:new_end])


def _step(step: TrailStep) -> tuple[str, ...]:
    return step.kind, step.function, step.source, step.value if step.kind == "guard" else ""


def _turned(part: _Part) -> str:
    for new in part.new:
        for old in part.old:
            if new.kind == old.kind == "guard" and (new.function, new.source) == (old.function, old.source):
                return f"{_named(new)} was {old.value}, is now {new.value}{_because(new)}"
    return ""


def _replaced(part: _Part) -> str:
    new_guard, new_call = _leading(part.new)
    old_guard, old_call = _leading(part.old)
    if new_guard is not None:
        instead = "" if old_guard is None else f", in place of {_named(old_guard)}"
        return f"{_named(new_guard)} comes in ({_place(new_guard)}), {new_guard.value}{_because(new_guard)}{instead}"
    if old_guard is not None:
        return f"{_named(old_guard)} is gone"
    if new_call is not None:
        instead = "now" if old_call is None else f"in place of {old_call.source}"
        return f"{new_call.function} calls {new_call.source} {instead} ({_place(new_call)})"
    return f"{old_call.function} no longer calls {old_call.source}" if old_call is not None else ""


def _leading(steps: Sequence[TrailStep]) -> tuple[TrailStep | None, TrailStep | None]:
    """The guard in front of the first call that turns the way, and this call. A guard that lets pass turns nothing: the
    first that is false or open does, else the last."""
    place = next((number for number, step in enumerate(steps) if step.kind == "call"), len(steps))
    turning = (step for step in steps[:place] if step.assumed or step.value != "true")
    guard = next(turning, steps[place - 1] if place else None)
    return guard, steps[place] if place < len(steps) else None


def _named(step: TrailStep) -> str:
    return f"the guard {step.source} of {step.function}"


def _place(step: TrailStep) -> str:
    return f"{step.path}:{step.line}"


def _because(step: TrailStep) -> str:
    return f" ({step.because})" if step.because else ""


def _exactness(before: Route, after: Route) -> str:
    if after.exact:
        return "nothing is left open any more"
    known = {(line.path, line.source) for line in before.not_understood}
    new = [line for line in after.not_understood if (line.path, line.source) not in known]
    if new:
        return f"not understood: {new[0].source} ({new[0].path}:{new[0].line}): {new[0].reason}"
    return "several ways are open now"


def _conditions(one: Reached | None, other: Reached | None) -> str:
    if other is None:
        return f"{one.function} is reached no longer" if one is not None else ""
    if one is not None and one.function == other.function:
        return f"{other.function} is reached {_when(other)}, before {_when(one)}"
    return f"{other.function} is reached now, {_when(other)}"


def _when(reached: Reached) -> str:
    return "when " + " and ".join(reached.when) if reached.when else "always"
