"""A route in words: what was asked, what is reached, how sure it is. Pure; what comes from a repository is harmless."""

import re

from sparkdiag.evidence.route import Executed, ExecutedCall, Reached, Route, RouteConfig, SetValue, Truth
from sparkdiag.harmless.excerpt import one_line

STALL = "STALL PATH"
REVISION = 10
"""Digits of a commit."""

STALL_WORDS: dict[Truth, str] = {"true": STALL, "unknown": "unknown", "false": "no"}
"""Of a cell: an unknown one is not safe, and must not look so."""


def counted(number: int, noun: str) -> str:
    """``1 kernel``, ``2 kernels``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def short(revision: str) -> str:
    """The first digits of a commit."""
    return one_line(revision, limit=40)[:REVISION]


def config_words(config: RouteConfig, *, without: frozenset[str] = frozenset()) -> str:
    """``prefill, dcp 2, sm121, cuda, fp8 cache``; what was not said is told as such."""
    said = {
        "phase": config.phase,
        "dcp": f"dcp {config.dcp if config.dcp is not None else 'not said'}",
        "arch": config.arch or "architecture not said",
        "platform": config.platform or "platform not said",
        "cache": f"{config.cache} cache" if config.cache else "cache type not said",
    }
    words = [text for name, text in said.items() if name not in without]
    return ", ".join([*words, *(set_words(one) for one in config.set)])


def set_words(one: SetValue) -> str:
    """``candidate_blocks = None``."""
    return one_line(f"{one.name} = {one.value}", limit=120)


def size_words(config: RouteConfig) -> str:
    """The sizes that byte limits in the code are held against."""
    key = "one token" if config.compress_ratio == 1 else f"{config.compress_ratio:,} tokens"
    return (
        f"{config.prompt_tokens:,} prompt tokens in chunks of {config.chunk_tokens:,}, "
        f"one request, {counted(config.heads, 'head')}, {key} a key"
    )


def stall_mark(found: Route, one: Reached) -> str:
    """``STALL PATH (scenario sm12x-mqa-prefill)``; empty for another kernel."""
    return f"{STALL} (scenario {one_line(found.scenario, limit=60)})" if one.stall else ""


def answer(found: Route) -> str:
    """What is reached, in one sentence without its end."""
    names = [_kernel(found, name) for name in found.kernels]
    errors = list(dict.fromkeys(error_class(raised.error) for raised in found.raises))
    if not names and not errors:
        return "no kernel was found"
    if not names:
        return f"ends in {' or '.join(errors)}, and reaches no kernel"
    rest = [f"may end in {' or '.join(errors)}"] if errors else []
    rest += ["what was not understood may lead elsewhere"] if found.not_understood else []
    unlisted = [one.function for one in found.reached if not one.listed]
    rest += [f"{_kernel(found, name)} is none of the scenario's kernels" for name in dict.fromkeys(unlisted)]
    return "; ".join([f"reaches {' or '.join(names)}", *rest])


def _taken_as_unset(found: Route) -> tuple[str, ...]:
    """Environment flags whose default decided a guard: the server's environment is not known here."""
    reasons = (step.because for one in found.reached for step in one.trail)
    return tuple(
        dict.fromkeys(name for text in reasons for name in re.findall(r"\b([A-Z][A-Z0-9_]{3,}) is not set", text))
    )


def error_class(error: str) -> str:
    """``RuntimeError`` of ``RuntimeError('DeepGEMM is not available')``."""
    name = re.match(r"[\w.]+", error)
    return one_line(name[0] if name else error, limit=80)


def _kernel(found: Route, name: str) -> str:
    stall = any(one.function == name and one.stall for one in found.reached)
    return one_line(name, limit=120) + (f" ({STALL})" if stall else "")


def how_exact(found: Route) -> str:
    """The last line: exact, or why not."""
    if found.exact:
        unset = _taken_as_unset(found)
        return "exact: one kernel, whatever is unknown" + (f"; taken as not set: {', '.join(unset)}" if unset else "")
    reasons = []
    if len(found.reached) > 1:
        reasons.append(f"{counted(len(found.kernels), 'kernel')}, by what is unknown")
    if not found.reached:
        reasons.append("no kernel is reached")
    if found.raises:
        reasons.append(
            f"{counted(len(found.raises), 'error')} may come first" if found.reached else "it ends in an error"
        )
    if found.not_understood:
        reasons.append(f"{counted(len(found.not_understood), 'line')} not understood")
    return f"not exact: {'; '.join(reasons) or 'what is unknown may lead elsewhere'}"


def agreement(executed: Executed) -> str:
    """Whether what ran agrees with what was read, in one line."""
    if executed.problem is not None:
        return f"nothing, because: {one_line(executed.problem)}"
    calls = executed.calls
    against = sum(call.agrees is False for call in calls)
    same = sum(call.agrees is True for call in calls)
    open_ = len(calls) - against - same
    unknown = f", {open_} cannot be compared" if open_ else ""
    if against:
        return f"DISAGREES with what was read: {against} of {counted(len(calls), 'call')}{unknown}"
    if not same:
        return f"cannot be compared with what was read ({counted(len(calls), 'call')})"
    return f"agrees with what was read: {same} of {counted(len(calls), 'call')}{unknown}"


def call_words(call: ExecutedCall) -> str:
    """``fp8_fp4_mqa_logits(clean_logits=False)``."""
    argument = "" if call.clean_logits is None else f"(clean_logits={call.clean_logits})"
    return one_line(call.function, limit=120) + argument


def came_to(call: ExecutedCall) -> str:
    """What one executed call reached, or the error that it ended in."""
    names = ", ".join(one_line(name, limit=120) for name in call.reached)
    if call.raised is None:
        return names or "no kernel"
    return f"{names + ', then ' if names else ''}{one_line(call.raised)}"
