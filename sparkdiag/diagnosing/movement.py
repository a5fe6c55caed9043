"""What moved between several looks at one process: leaf, line, calls, loop variables. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from sparkdiag.diagnosing.following import Followed, follow
from sparkdiag.diagnosing.loops import loops_of
from sparkdiag.evidence.diagnosis import Movement
from sparkdiag.evidence.dump import DumpFrame, ProcessDump

What = Literal["nothing", "line", "leaf", "call", "process"]
_ORDER: tuple[What, ...] = ("nothing", "line", "leaf", "call", "process")
_LEAF_FRAMES = 4
"""Stacks that part within so many innermost frames differ in their leaf; further out, in what is called."""
_MISREAD_FROM = 5
"""With so many looks one that differs from all the others in an integer alone is a misread value."""
_MOST_NAMES = 4


@dataclass(frozen=True, slots=True)
class _Moved:
    """What moved in one thread, and in words."""

    what: What
    text: str
    main: bool

    @property
    def rank(self) -> int:
        return _ORDER.index(self.what)


def movement_of(looks: Sequence[ProcessDump]) -> Movement | None:
    """What changed over ``looks`` at one process, in order; None for fewer than two, and where no thread's stack is
    there twice."""
    if len(looks) < 2:
        return None
    over_s = _over_s(looks)
    other = _other_process(looks)
    if other is not None:
        return Movement(looks=len(looks), over_s=over_s, what="process", text=other)
    followed = follow(looks)
    moved = [_moved(series, main=number == 0) for number, series in enumerate(followed) if len(series) > 1]
    if not moved or (not moved[0].main and all(one.what == "nothing" for one in moved)):
        return None
    most = max(moved, key=lambda one: (one.rank, one.main))
    text = most.text if most.main or not moved[0].main else f"{most.text}; the main thread: {moved[0].text}"
    loops = loops_of(followed, pid=looks[-1].pid)
    return Movement(looks=len(looks), over_s=over_s, what=most.what, text=text, loops=loops)


def _over_s(looks: Sequence[ProcessDump]) -> float | None:
    first, last = looks[0].at_s, looks[-1].at_s
    return last - first if first is not None and last is not None and last >= first else None


def _other_process(looks: Sequence[ProcessDump]) -> str | None:
    pids = list(dict.fromkeys(look.pid for look in looks if look.pid is not None))
    return f"another process: pid {pids[0]}, later {pids[-1]}" if len(pids) > 1 else None


def _moved(series: Sequence[Followed], *, main: bool) -> _Moved:
    """The most that moved between neighbours, in words over all of them."""
    partings = [_parting(before, after) for before, after in pairwise(series)]
    what: What = _ORDER[max(_ORDER.index(found) for found, _ in partings)]
    name = "" if main else f"{series[-1].thread.name or 'another thread'}: "
    looks = len(series)
    if what == "nothing":
        changed = _integers(series)
        if changed:
            return _Moved("line", f"{name}the same lines in all {looks} looks, but {changed}", main)
        count = len(series[-1].frames)
        waits = f", waiting in {series[-1].frames[-1].name}" if series[-1].waits else ""
        return _Moved(what, f"{name}the same {count} frames and lines in all {looks} looks{waits}", main)
    if what == "line":
        lines = {tuple([frame.line for frame in one.frames]) for one in series}
        function = series[-1].frames[-1].name
        return _Moved(
            what, f"{name}the same functions down to {function}, at {len(lines)} places in {looks} looks", main
        )
    common = min(shared for found, shared in partings if found == what)
    below = [one.frames[common].name if len(one.frames) > common else one.frames[-1].name for one in series]
    leaves = [one.frames[-1].name for one in series] if what == "leaf" else below
    names = list(dict.fromkeys(leaves))
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    under = f" below {series[-1].frames[common - 1].name}" if common else ""
    kind = "innermost functions" if what == "leaf" else "calls"
    return _Moved(what, f"{name}{kind} changed{under}: {', '.join(names[:_MOST_NAMES])}{more} in {looks} looks", main)


def _parting(before: Followed, after: Followed) -> tuple[What, int]:
    """(what moved, how many outermost functions both share)."""
    one, other = before.frames, after.frames
    if not before.thread.whole or not after.thread.whole:
        # The outer frames are missing in one of them: what both have of the inner ones.
        size = min(len(one), len(other))
        one, other = one[-size:], other[-size:]
    shared = next(
        (n for n, (left, right) in enumerate(zip(one, other, strict=False)) if not _same_function(left, right)),
        min(len(one), len(other)),
    )
    if shared < max(len(one), len(other)):
        inner = max(len(one), len(other)) - shared
        return ("leaf" if inner <= _LEAF_FRAMES else "call"), shared
    still = len(one) - 1 if before.waits and after.waits else len(one)
    moved = any(_line_moved(left, right) for left, right in zip(one[:still], other[:still], strict=True))
    return ("line" if moved else "nothing"), shared


def _same_function(one: DumpFrame, other: DumpFrame) -> bool:
    return one.function == other.function and (one.path == other.path or one.path is None or other.path is None)


def _line_moved(one: DumpFrame, other: DumpFrame) -> bool:
    return one.line is not None and other.line is not None and one.line != other.line


def _integers(series: Sequence[Followed]) -> str | None:
    """Which integer locals changed, in words; None where none did, or where but one look of many differs: without
    stopping the process an integer may be read while it is replaced."""
    names: dict[str, str] = {}
    for place in range(min(len(one.frames) for one in series)):
        if any(one.waits and place == len(one.frames) - 1 for one in series):
            break
        for name in dict.fromkeys(name for one in series for name in one.frames[place].locals):
            values = [one.frames[place].locals[name] for one in series if name in one.frames[place].locals]
            counts = Counter(values)
            misread = len(values) >= _MISREAD_FROM and len(counts) == 2 and min(counts.values()) == 1
            if len(counts) > 1 and not (misread and counts[values[-1]] > 1):
                names[name] = series[-1].frames[place].name
    if not names:
        return None
    function = list(names.values())[-1]
    return f"{', '.join(list(names)[:_MOST_NAMES])} changed in {function}"
