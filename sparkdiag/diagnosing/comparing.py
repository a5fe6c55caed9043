"""What differs between looks at a good server and at a bad one. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence

from sparkdiag.diagnosing.following import Followed, follow
from sparkdiag.diagnosing.grouping import name_of
from sparkdiag.evidence.diagnosis import Difference
from sparkdiag.evidence.dump import DumpFrame, ProcessDump

MOST_DIFFERENCES = 12
_MOST_NAMES = 5
_NOBODY = "not in the dumps"
_WRAPPERS = frozenset(
    {
        "_call_impl",
        "_wrapped_call_impl",
        "__call__",
        "__torch_function__",
        "_fn",
        "decorate_context",
        "inner",
        "wrapper",
    }
)
"""On every stack of a torch module: they tell nothing apart."""

Function = tuple[str, str | None]
"""(bare name, the end of its path): paths of two machines differ at their beginnings."""


def differences(good: Sequence[ProcessDump], bad: Sequence[ProcessDump]) -> tuple[Difference, ...]:
    """The most telling first, bounded in number: same role and rank at different functions (workers first), then
    functions on the bad one's stacks alone, then processes that only one of the two shows."""
    before, after = _by_place(good), _by_place(bad)
    both = [name for name in after if name in before]
    parted = [found for name in both if (found := _parted(name, before[name], after[name])) is not None]
    return tuple([*_alike_folded(parted), *_new_functions(good, bad), *_only_in_one(before, after)][:MOST_DIFFERENCES])


def _by_place(looks: Sequence[ProcessDump]) -> dict[str, list[ProcessDump]]:
    """By role and rank, which two servers share, never by pid; workers first. Processes that have neither are told
    apart by their order."""
    found: dict[str, list[ProcessDump]] = {}
    unnamed: dict[object, int] = {}
    for look in looks:
        if look.role is None and not look.ranks.label:
            key = (look.host, look.pid) if look.pid is not None else object()
            name = f"process no. {unnamed.setdefault(key, len(unnamed)) + 1}"
        else:
            name = name_of(look.model_copy(update={"host": None, "pid": None}), 0)
        found.setdefault(name, []).append(look)
    roles = {"worker": 0, "engine_core": 1, "api_server": 2}
    return dict(sorted(found.items(), key=lambda item: roles.get(item[1][0].role or "", 3)))


def _parted(name: str, good: Sequence[ProcessDump], bad: Sequence[ProcessDump]) -> Difference | None:
    """Where the stacks of one place part; None where any look at the bad one stands where a good one stood."""
    before, after = _main_stacks(good), _main_stacks(bad)
    if not before or not after:
        return None
    stood = {_functions(one.frames) for one in before}
    strange = [one for one in after if _functions(one.frames) not in stood]
    if 2 * len(strange) <= len(after):
        return None
    bad_one = Counter(_functions(one.frames) for one in strange).most_common(1)[0][0]
    good_one = max(sorted(stood, key=str), key=lambda functions: _shared(functions, bad_one))
    shared = _shared(good_one, bad_one)
    common = _said(bad_one[shared - 1]) if shared else None
    below = f" below {common}" if common else ""
    ways = _way(good_one[shared:]), _way(bad_one[shared:])
    return Difference(name=f"{name}{below}", good=ways[0], bad=ways[1]) if ways[0] != ways[1] else None


def _main_stacks(looks: Sequence[ProcessDump]) -> list[Followed]:
    """Of each look the thread that says most: the main one, cut at a wait."""
    series = follow(looks)
    return list(series[0]) if series else []


def _functions(frames: Iterable[DumpFrame]) -> tuple[Function, ...]:
    return tuple([(frame.name, _end_of(frame.path)) for frame in frames if not frame.native])


def _end_of(path: str | None) -> str | None:
    return None if path is None else "/".join(path.rsplit("/", 2)[-2:])


def _shared(one: Sequence[Function], other: Sequence[Function]) -> int:
    shared = 0
    for left, right in zip(one, other, strict=False):
        if left[0] != right[0]:
            break
        shared += 1
    return shared


def _way(functions: Sequence[Function]) -> str:
    """From where they part to the innermost function: the first steps, and the last one."""
    if not functions:
        return "ends there"
    functions = [one for one in functions if one[0] not in _WRAPPERS] or functions
    if len(functions) <= _MOST_NAMES:
        return " > ".join(_said(one) for one in functions)
    return " > ".join([*map(_said, functions[: _MOST_NAMES - 1]), "...", _said(functions[-1])])


def _said(function: Function) -> str:
    name, path = function
    return f"{name} ({path})" if path else name


def _alike_folded(parted: Sequence[Difference]) -> list[Difference]:
    """Ranks that differ in the same way once, with all their names."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for one in parted:
        name, _, below = one.name.partition(" below ")
        found.setdefault((below, one.good, one.bad), []).append(name)
    folded = []
    for (below, good, bad), names in found.items():
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        where = f" below {below}" if below else ""
        folded.append(Difference(name=f"{', '.join(names[:_MOST_NAMES])}{more}{where}", good=good, bad=bad))
    return folded


def _new_functions(good: Sequence[ProcessDump], bad: Sequence[ProcessDump]) -> list[Difference]:
    """Functions on the bad one's stacks alone, of any thread that works; those in most looks, and innermost, first."""
    known = {frame.name for series in follow(good) for one in series for frame in one.frames}
    seen: Counter[Function] = Counter()
    depth: dict[Function, int] = {}
    for look in bad:
        strange: set[Function] = set()
        for series in follow([look]):
            for index, function in enumerate(_functions(series[0].frames)):
                if function[0] not in known and function[0] not in _WRAPPERS:
                    strange.add(function)
                    depth[function] = max(depth.get(function, 0), index)
        seen.update(strange)
    if not seen or not known:
        return []
    names = sorted(seen, key=lambda one: (-seen[one], -depth[one], one[0]))
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return [
        Difference(
            name="functions in the bad one alone",
            good="not on any stack",
            bad=", ".join(_said(one) for one in names[:_MOST_NAMES]) + more,
        )
    ]


def _only_in_one(before: dict[str, list[ProcessDump]], after: dict[str, list[ProcessDump]]) -> list[Difference]:
    gone = [Difference(name=name, good=_stands(before[name]), bad=_NOBODY) for name in before if name not in after]
    new = [Difference(name=name, good=_NOBODY, bad=_stands(after[name])) for name in after if name not in before]
    return [*gone, *new]


def _stands(looks: Sequence[ProcessDump]) -> str:
    stacks = _main_stacks(looks)
    functions = _functions(stacks[-1].frames) if stacks else ()
    return f"in {_said(functions[-1])}" if functions else "there, without a stack"
