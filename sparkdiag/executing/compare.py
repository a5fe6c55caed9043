"""What was executed beside what the source says. Pure."""

import re

from sparkdiag.evidence.route import ExecutedCall, Raises, Route


def compared(call: ExecutedCall, route: Route | None, *, entry: str) -> ExecutedCall:
    """The call with ``agrees``: only what the route passes through, as it passes through it, can be compared."""
    if route is None:
        return call
    told = _static(call, route, entry=entry)
    if told is None:
        return _with(call, None, "the route does not pass here")
    if not call.reached:
        return _without_kernel(call, route, told)
    unlike = [name for name in call.reached if not any(same(name, other) for other in told)]
    if unlike:
        return _with(call, False, f"executed: {', '.join(call.reached)}; source: {', '.join(told) or 'none'}")
    return _with(call, True, "")


def _static(call: ExecutedCall, route: Route, *, entry: str) -> tuple[str, ...] | None:
    """The kernels that the route reaches within this call; None where it reaches none there."""
    if call.function == entry:
        return route.kernels
    found = []
    for reached in route.reached:
        trail = reached.trail
        for place, step in enumerate(trail):
            inside = all(later.depth > step.depth for later in trail[place + 1 :])
            if inside and step.kind == "call" and _calls(step.source, call):
                found.append(reached.function)
                break
    return tuple(dict.fromkeys(found)) or None


def _calls(source: str, call: ExecutedCall) -> bool:
    name = source.partition("(")[0].strip().rpartition(".")[2]
    if name != call.function:
        return False
    return call.clean_logits is None or f"clean_logits={call.clean_logits}" in source


def _without_kernel(call: ExecutedCall, route: Route, told: tuple[str, ...]) -> ExecutedCall:
    if call.raised is not None and any(_is(call.raised, one) for one in route.raises):
        return _with(call, True, "")
    if call.raised is not None or call.because:
        return _with(call, None, "")
    return _with(call, False if route.exact else None, f"executed: no kernel; source: {', '.join(told) or 'none'}")


def _is(raised: str, told: Raises) -> bool:
    """Whether the error that ended the call is the one that the source tells: its class, from its line."""
    kinds = [_kind(raised), _kind(told.error)]
    return kinds[0] == kinds[1] != "" and raised.endswith(f"({told.path}:{told.line})")


def _kind(error: str) -> str:
    """An error's class; a module that is missing is an import that fails."""
    found = re.match(r"\w+", error)
    return "" if found is None else found[0].replace("ModuleNotFoundError", "ImportError")


def same(executed: str, static: str) -> bool:
    """Whether two names are the same kernel's: dotted names of operators count by their end."""
    return executed.rpartition(".")[2] == static.rpartition(".")[2]


def _with(call: ExecutedCall, agrees: bool | None, because: str) -> ExecutedCall:
    told = "; ".join(filter(None, (because, call.because)))
    return call.model_copy(update={"agrees": agrees, "because": told})
