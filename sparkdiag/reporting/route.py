"""What the terminal shows of a route: the guards and calls on the way to each kernel, as a tree. Pure.

Source lines, paths and names come from a repository, and are made harmless before anything is laid out.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from sparkdiag.evidence.route import Executed, Reached, Route, TrailStep
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.reporting import route_phrases as phrases
from sparkdiag.reporting.route_open import puzzles
from sparkdiag.reporting.route_places import Places
from sparkdiag.reporting.route_rows import Row, laid_out, wrapped

MOST_KERNELS = 24
_MOST_LINES = 40
"""Of errors, and of lines that were not understood."""
_CHARS = 240
_SOURCE_CHARS = 120
"""Of a line of the source; the document has all of it."""
_LEAST_ALIKE = 3
"""So many lines as in the tree above are worth leaving out."""
_STEP = 3
"""Columns that a call's body is moved by: the width of its arrow."""


def route_text(found: Route, *, columns: int | None, subject: str = "", executed: Executed | None = None) -> str:
    """Plain text, nothing in it able to steer a terminal; broken to ``columns`` where they are given."""
    places = Places.of(found)
    blocks = [_heading(found, subject, columns)]
    before: tuple[TrailStep, ...] = ()
    for number, one in enumerate(found.reached[:MOST_KERNELS], start=1):
        begin = _conditions(found, one, number, places, columns) if len(found.reached) > 1 or one.when else []
        blocks.append([*begin, *trail_lines(found, one, before=before, places=places, columns=columns)])
        before = one.trail
    if (more := len(found.reached) - MOST_KERNELS) > 0:
        blocks.append([f"… and {phrases.counted(more, 'more way')} to a kernel (see --json)"])
    blocks += [_raises(found, places, columns), _not_understood(found, places, columns)]
    blocks.append(_legend(places, columns))
    blocks.append(executed_lines(executed, columns) if executed is not None else [])
    ends = [f"{sentence(phrases.answer(found))}.", phrases.how_exact(found)]
    ends += [f"executed: {phrases.agreement(executed)}"] if executed is not None else []
    blocks.append([line for end in ends for line in told(end, columns)])
    return "\n\n".join("\n".join(block) for block in blocks if block)


def told(text: str, columns: int | None, *, hanging: int = 2) -> list[str]:
    """One paragraph, broken to ``columns`` where they are given."""
    return [text] if columns is None else wrapped(text, width=columns, hanging=hanging)


def sentence(text: str) -> str:
    """``text`` with a capital."""
    return text[:1].upper() + text[1:]


def _heading(found: Route, subject: str, columns: int | None) -> list[str]:
    title = f' "{one_line(subject, limit=120)}"' if subject else ""
    entry = one_line(found.entry, limit=_CHARS)
    return [
        *told(f"{entry} at {phrases.short(found.revision)}{title}", columns),
        *told(f"{phrases.config_words(found.config)}; {phrases.size_words(found.config)}", columns),
    ]


def _conditions(found: Route, one: Reached, number: int, places: Places, columns: int | None) -> list[str]:
    """Which of the kernels this is, and what must hold beyond the configuration."""
    place = f"{number} of {len(found.reached)}: " if len(found.reached) > 1 else ""
    stall = f", {phrases.STALL}" if one.stall else ""
    begin = f"{place}{one_line(one.function, limit=_CHARS)}{stall}"
    if not one.when:
        return told(f"{begin}, always", columns)
    return [*told(begin, columns), *_when(one.when, places, columns)]


def _when(conditions: Sequence[str], places: Places, columns: int | None) -> list[str]:
    return [line for one in conditions for line in told(f"  when  {places.readable(one)}", columns, hanging=8)]


def trail_lines(
    found: Route, one: Reached, *, places: Places, columns: int | None, before: Sequence[TrailStep] = ()
) -> list[str]:
    """The tree of one kernel. What it shares with ``before``, the trail shown above it, is left out and counted."""
    alike = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(before, one.trail, strict=False))))
    called = _call_of(one)
    skipped = min(alike, len(one.trail) if called is None else called)
    skipped = skipped if skipped >= _LEAST_ALIKE else 0
    rows = list(_rows(found, one, places, skipped=skipped, whole=columns is None))
    lines = laid_out(rows, columns=columns)
    return [f"(the first {phrases.counted(skipped, 'step')} as above)", *lines] if skipped else lines


def _rows(found: Route, one: Reached, places: Places, *, skipped: int, whole: bool) -> Iterator[Row]:
    """A row for each step; the kernel's call, or one more, says so. ``whole``: each guard names its file, for grep."""
    note = phrases.stall_mark(found, one) or ("kernel, not in the repository" if one.external else "kernel")
    called = _call_of(one)
    file = ""
    for position, step in enumerate(one.trail[skipped:], start=skipped):
        row = _row(step, places, same_file=step.path == file and not (whole and step.kind == "guard"))
        yield row.model_copy(update={"note": note}) if position == called else row
        file = step.path
    if called is None:
        last = one.trail[-1] if one.trail else None
        depth = 0 if last is None else last.depth + (last.kind == "call")
        place = places.line(one.path, one.line, same_file=one.path == file)
        yield Row(indent=_STEP * depth, label=f"-> {place}", source=one_line(one.function, limit=_CHARS), note=note)


def _call_of(one: Reached) -> int | None:
    """Which step is the call of the kernel's own function; None where the kernel is called by another name."""
    name = one.function.rpartition(".")[2]
    called = [
        position
        for position, step in enumerate(one.trail)
        if step.kind == "call" and re.findall(r"\w+", step.source.partition("(")[0])[-1:] == [name]
    ]
    return called[-1] if called else None


def _row(step: TrailStep, places: Places, *, same_file: bool) -> Row:
    source = one_line(step.source, limit=_SOURCE_CHARS)
    indent = _STEP * max(step.depth, 0)
    place = places.line(step.path, step.line, same_file=same_file)
    if step.kind == "call":
        return Row(indent=indent, label=f"-> {place}", source=source)
    value = step.value if step.value == "unknown" else step.value.capitalize()
    return Row(
        indent=indent,
        label=place,
        source=source,
        value=f"if {value}" if step.assumed else value,
        because=places.readable(step.because, limit=_CHARS),
    )


def _legend(places: Places, columns: int | None) -> list[str]:
    files = places.legend()
    width = max((len(label) for label, _ in files), default=0)
    return [line for label, path in files for line in told(f"{label:<{width}}  {path}", columns, hanging=4)]


def _raises(found: Route, places: Places, columns: int | None) -> list[str]:
    may = "may end in" if found.reached else "ends in"
    lines = []
    for raised in found.raises[:_MOST_LINES]:
        place = places.line(raised.path, raised.line)
        lines += told(f"{may}  {place}  {one_line(raised.error, limit=_CHARS)}", columns, hanging=4)
        lines += _when(raised.when, places, columns)
    return [*lines, *_more(len(found.raises))]


def _not_understood(found: Route, places: Places, columns: int | None) -> list[str]:
    lines = []
    open_ = puzzles(found.not_understood)
    for one in open_[:_MOST_LINES]:
        place = f"{places.labels.get(one.path, '?')}:{one.where}"
        source = f"  {one_line(one.source, limit=_SOURCE_CHARS)}" if one.source else f"  {len(one.lines)} lines"
        lines += told(f"not understood  {place}{source}  ({one_line(one.reason)})", columns, hanging=4)
    return [*lines, *_more(len(open_))]


def _more(number: int) -> list[str]:
    return [f"… and {number - _MOST_LINES:,} more (see --json)"] if number > _MOST_LINES else []


def executed_lines(executed: Executed, columns: int | None) -> list[str]:
    """What running the revision's own dispatch showed: each call, and what bounded the child."""
    lines = [f"executed with {one_line(executed.python)}:"] if executed.calls and executed.python else []
    width = max((len(phrases.call_words(call)) for call in executed.calls), default=0)
    for call in executed.calls:
        mark = {True: "agrees", False: "DISAGREES", None: "not compared"}[call.agrees]
        because = f": {one_line(call.because)}" if call.because else ""
        ended = f"{phrases.came_to(call)}, {mark}{because}"
        if columns is None:
            lines.append(f"  {phrases.call_words(call):<{width}}  {ended}")
        else:
            lines += [*told(f"  {phrases.call_words(call)}", columns), *told(f"      {ended}", columns, hanging=6)]
    for bound in executed.sandbox:
        lines += told(f"  sandbox: {one_line(bound)}", columns, hanging=4)
    return lines
