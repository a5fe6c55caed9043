"""Why two revisions' routes differ, in words: the first guard or call on the way that is another one. Pure."""

from collections.abc import Sequence

from sparkdiag.evidence.route import Reached, Route, TrailStep

Step = tuple[str, str, str, str]


def why_changed(before: Route | None, after: Route | None) -> str:
    """The first thing that differs on the way to the first kernel that only one of both reaches; None for no entry."""
    if after is None:
        return f"{before.entry} is gone" if before is not None else ""
    if before is None:
        return f"{after.entry} comes in at {after.entry_path}:{after.entry_line}"
    one, other = _differing(before.reached, after.reached), _differing(after.reached, before.reached)
    if one is not None and other is not None:
        found = _first_difference(one.trail, other.trail)
        if found:
            return found
    if before.exact != after.exact:
        return _exactness(before, after)
    return _conditions(one, other)


def _differing(these: Sequence[Reached], those: Sequence[Reached]) -> Reached | None:
    """The first of ``these`` that is not among ``those``, else the first."""
    known = {(reached.function, reached.when) for reached in those}
    new = (reached for reached in these if (reached.function, reached.when) not in known)
    return next(new, these[0] if these else None)


def _step(step: TrailStep) -> Step:
    return step.kind, step.function, step.source, step.value if step.kind == "guard" else ""


def _first_difference(before: Sequence[TrailStep], after: Sequence[TrailStep]) -> str:
    for place in range(max(len(before), len(after))):
        old = before[place] if place < len(before) else None
        new = after[place] if place < len(after) else None
        if old is not None and new is not None:
            if _step(old) == _step(new):
                continue
            return _replaced(old, new, before=before[place:], after=after[place:])
        return _comes(new) if new is not None else _goes(old)
    return ""


def _replaced(old: TrailStep, new: TrailStep, *, before: Sequence[TrailStep], after: Sequence[TrailStep]) -> str:
    if _same_line(old, new):
        return f"{_named(new)} was {old.value}, is now {new.value}{_because(new)}"
    if any(_same_line(old, later) for later in after):
        return _comes(new)
    if any(_same_line(new, later) for later in before):
        return _goes(old)
    if old.kind == new.kind == "call":
        return f"{new.function} calls {new.source} instead of {old.source} ({_place(new)})"
    return f"{_comes(new)}, in place of {_named(old)}"


def _same_line(one: TrailStep, other: TrailStep) -> bool:
    return (one.kind, one.function, one.source) == (other.kind, other.function, other.source)


def _comes(step: TrailStep) -> str:
    if step.kind == "call":
        return f"{step.function} now calls {step.source} ({_place(step)})"
    return f"{_named(step)} comes in ({_place(step)}), {step.value}{_because(step)}"


def _goes(step: TrailStep | None) -> str:
    if step is None:
        return ""
    return f"{step.function} no longer calls {step.source}" if step.kind == "call" else f"{_named(step)} is gone"


def _named(step: TrailStep) -> str:
    return f"the guard {step.source} of {step.function}" if step.kind == "guard" else f"the call {step.source}"


def _place(step: TrailStep) -> str:
    return f"{step.path}:{step.line}"


def _because(step: TrailStep) -> str:
    return f" ({step.because})" if step.because else ""


def _exactness(before: Route, after: Route) -> str:
    if after.exact:
        return "what was not understood, or left several ways open, is gone"
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
