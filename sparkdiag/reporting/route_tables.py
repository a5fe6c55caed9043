"""What the terminal shows of many routes: the matrix of configurations, and the changes in a history. Pure."""

from collections.abc import Mapping, Sequence

from sparkdiag.evidence.route import MatrixCell, MatrixRevision, RouteChange, RouteHistory, RouteMatrix, RouteProblem
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.harmless.printable import cut
from sparkdiag.reporting import route_phrases as phrases
from sparkdiag.reporting.route import told

_NAME_CHARS = 24
_UNLIMITED = 200
"""Columns of a table where no terminal limits it."""
_KERNEL_CHARS = 80
_GAP = 2


def axes_shown(found: RouteMatrix) -> tuple[str, ...]:
    """The axes on which several values were asked: each has a column."""
    many = {"rev": len(found.revisions) > 1, "dcp": len(found.dcp) > 1, "arch": len(found.arch) > 1}
    return tuple(name for name, several in (many | {"cache": len(found.cache) > 1}).items() if several)


def cell_value(cell: MatrixCell, axis: str, names: dict[str, str]) -> str:
    """A cell's place on an axis, as asked."""
    value = names.get(cell.revision, phrases.short(cell.revision)) if axis == "rev" else getattr(cell, axis)
    return "unknown" if value is None else str(value)


def revision_names(revisions: Sequence[MatrixRevision]) -> dict[str, str]:
    """What each revision was asked as; the first of its names."""
    return {one.revision: one_line(one.name, limit=_NAME_CHARS) for one in reversed(revisions)}


def error_notes(cells: Sequence[MatrixCell]) -> dict[str, int]:
    """The errors that cells may end in, each with its number below the table."""
    errors = dict.fromkeys(error for cell in cells for error in cell.raises)
    return {error: number for number, error in enumerate(errors, start=1)}


def cell_lines(cell: MatrixCell, notes: Mapping[str, int]) -> list[str]:
    """What a cell reaches, one line a kernel; an error is told by its number."""
    if cell.problem is not None:
        return [f"no answer: {one_line(cell.problem)}"]
    numbers = (
        f"[{','.join(str(number) for number in sorted(notes[error] for error in cell.raises))}]" if cell.raises else ""
    )
    if not cell.kernels:
        return [f"error {numbers}" if numbers else "no kernel"]
    first, *more = (one_line(kernel, limit=_KERNEL_CHARS) for kernel in cell.kernels)
    return [f"{first} {numbers}".rstrip(), *(f"or {kernel}" for kernel in more)]


def matrix_text(found: RouteMatrix, *, columns: int | None) -> str:
    """A table of one block a cell, then what it says together."""
    varied = axes_shown(found)
    hidden = frozenset(varied)
    names = revision_names(found.revisions)
    head = [*varied, "stall path", "reaches"]
    notes = error_notes(found.cells)
    rows: list[list[str]] = [head]
    for cell in found.cells:
        first, *more = cell_lines(cell, notes)
        rows.append([*(cell_value(cell, axis, names) for axis in varied), phrases.STALL_WORDS[cell.stall], first])
        rows += [[*("" for _ in varied), "", line] for line in more]
    where = told(f"{phrases.config_words(found.config, without=hidden)}; {phrases.size_words(found.config)}", columns)
    blocks = [
        where if "rev" in hidden else [*told(_revisions(found), columns), *where],
        _table(rows, columns=columns) if found.cells else [],
        [line for error, number in notes.items() for line in told(_noted(error, number), columns, hanging=4)],
        _problems(found.problems, columns),
        [line for one in found.revisions for line in told(_named(one), columns)] if "rev" in hidden else [],
        [line for sentence in found.narrowed for line in told(one_line(sentence, limit=1000), columns)],
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _noted(error: str, number: int) -> str:
    return f"[{number}] may end in {one_line(error)}"


def _revisions(found: RouteMatrix) -> str:
    return f"scenario {found.scenario}" + "".join(f" at {_named(one)}" for one in found.revisions[:1])


def _named(one: MatrixRevision) -> str:
    """``fused = e14bbcf242 "Route the indexer's prefill to a fused fast path"``."""
    sha, name = phrases.short(one.revision), one_line(one.name, limit=_NAME_CHARS)
    subject = f' "{one_line(one.subject, limit=100)}"' if one.subject else ""
    return (sha if name in (sha, one.revision) else f"{name} = {sha}") + subject


def _table(rows: Sequence[Sequence[str]], *, columns: int | None) -> list[str]:
    """Cells below each other; the last column is cut where the page ends."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]) - 1)]
    room = (columns or _UNLIMITED) - sum(width + _GAP for width in widths)
    return [
        "".join(f"{text:<{width + _GAP}}" for text, width in zip(row, widths, strict=False))
        + cut(row[-1], max(room, 20))
        for row in rows
    ]


def _problems(problems: Sequence[RouteProblem], columns: int | None) -> list[str]:
    lines = []
    for one in problems:
        name = phrases.short(one.revision) if len(one.revision) == 40 else one_line(one.revision, limit=_NAME_CHARS)
        lines += told(f"{name}  no answer: {one_line(one.message)}", columns, hanging=4)
        lines += [f"  next: {one_line(one.remedy)}"] if one.remedy else []  # to copy: never broken
    return lines


def history_text(found: RouteHistory, *, columns: int | None, stalls: frozenset[str] = frozenset()) -> str:
    """A block for each change, oldest first, then how many commits were read. ``stalls``: functions of the stall."""
    blocks = [told(f"{phrases.config_words(found.config)}; {phrases.size_words(found.config)}", columns)]
    blocks += [_change(change, columns, stalls) for change in found.changes]
    blocks.append(_problems(found.problems, columns))
    blocks.append(told(history_count(found), columns))
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _change(change: RouteChange, columns: int | None, stalls: frozenset[str]) -> list[str]:
    begin = f"{phrases.short(change.sha)}  {one_line(change.committed_at, limit=40)[:10] or '?':<10}  "
    lines = told(f"{begin}{one_line(change.subject)}", columns, hanging=len(begin))
    for word, kernels in (("before", change.before), ("after", change.after)):
        lines += told(f"  {word:<8}{kernel_words(kernels, stalls)}", columns, hanging=10)
    if change.because:
        lines += told(f"  because {one_line(change.because)}", columns, hanging=10)
    return lines if change.exact else [*lines, "  not exact: one of the two answers leaves something open"]


def kernel_words(kernels: Sequence[str], stalls: frozenset[str]) -> str:
    """The kernels of one side of a change; nothing, where there was no answer."""
    named = [
        one_line(name, limit=_KERNEL_CHARS) + (f" ({phrases.STALL})" if name in stalls else "") for name in kernels
    ]
    return " or ".join(named) or "no kernel"


def history_count(found: RouteHistory) -> str:
    """``3 changes among 17,785 commits from … to …; 212 of them had to be read``."""
    ends = f"from {phrases.short(found.old) if found.old else 'the beginning'} to {phrases.short(found.new)}"
    lost = f"; {phrases.counted(len(found.problems), 'commit')} without an answer" if found.problems else ""
    read = f"{found.evaluated:,} of them had to be read"
    changes = phrases.counted(len(found.changes), "change") if found.changes else "no change"
    return f"{changes} among {phrases.counted(found.commits, 'commit')} {ends}; {read}{lost}"
