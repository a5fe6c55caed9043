"""A route, a matrix and a history to paste into a pull request. Pure.

Nothing from a repository reaches the page except through ``safe_text``.
"""

from sparkdiag.evidence.route import (
    Executed,
    MatrixCell,
    MatrixRevision,
    Route,
    RouteHistory,
    RouteMatrix,
    RouteProblem,
)
from sparkdiag.reporting import route_phrases as phrases
from sparkdiag.reporting.details import Section, folded
from sparkdiag.reporting.fitted import fitted
from sparkdiag.reporting.route import MOST_KERNELS, executed_lines, sentence, trail_lines
from sparkdiag.reporting.route_open import puzzles
from sparkdiag.reporting.route_places import Places
from sparkdiag.reporting.route_tables import axes_shown, cell_value, history_count, revision_names
from sparkdiag.reporting.safe_text import code, fence, prose, table

_ROWS_AT_ONCE = 60
"""With these the page alone stays below what a comment takes, whatever it is made of; the rest is folded."""
_CHANGES_AT_ONCE = 20
_MOST_ROWS = 300
_MOST_LINES = 20
_MOST_ENDS = 4
_MOST_TREE_CHARS = 12_000
_IN_JSON = "`--json`"
_MARK = {"true": f"**{phrases.STALL}**", "unknown": "unknown", "false": "no"}


def render_route(found: Route, *, subject: str = "", executed: Executed | None = None) -> str:
    """The answer, then the way to each kernel; at most 65,536 bytes of UTF-8."""
    title = f"## sparkdiag route: {code(found.entry)} at {code(phrases.short(found.revision))}"
    blocks = [
        title,
        f"**Answer.** {prose(sentence(phrases.answer(found)), at_most=1000)}; {prose(phrases.how_exact(found))}.",
    ]
    about = f" {code(subject, at_most=120)}" if subject else ""
    blocks.append(f"**Asked**{about}: {prose(phrases.config_words(found.config), at_most=1000)}; "
                  f"{prose(phrases.size_words(found.config))}; scenario {code(found.scenario)}.")  # fmt: skip
    if executed is not None:
        blocks.append(f"**Executed**: {prose(phrases.agreement(executed))}.")
    places = Places.of(found)
    parts = [Section(rank=number, title=f"Way {number}", markdown=_way(found, number - 1, places))
             for number in range(1, min(len(found.reached), MOST_KERNELS) + 1)]  # fmt: skip
    made = (
        ("Errors that may come first", 90, _raises(found, places)),
        ("Lines that were not understood", 91, _not_understood(found, places)),
        ("What was executed", 92, fence("\n".join(executed_lines(executed, None))) if executed is not None else ""),
        ("Files", 93, _files(places)),
    )
    parts += [Section(rank=rank, title=title, markdown=folded(title, body)) for title, rank, body in made if body]
    return fitted("\n\n".join(blocks), parts, where=_IN_JSON)


def _way(found: Route, position: int, places: Places) -> str:
    one = found.reached[position]
    stall = f", **{phrases.STALL}**" if one.stall else ""
    place = f"{position + 1} of {len(found.reached)}: " if len(found.reached) > 1 else ""
    when = "\n".join(
        f"- *when*: {code(places.readable(condition), at_most=300)}" for condition in one.when[:_MOST_LINES]
    )
    tree = fence("\n".join(trail_lines(found, one, places=places, columns=None)), at_most=_MOST_TREE_CHARS)
    begin = f"**{place}{code(one.function)}**{stall}"
    return "\n\n".join(filter(None, [begin, when, tree]))


def _raises(found: Route, places: Places) -> str:
    rows = [
        (
            code(places.line(one.path, one.line)),
            code(one.error),
            "; ".join(code(when) for when in one.when[:_MOST_LINES]) or "always",
        )
        for one in found.raises[:_MOST_LINES]
    ]
    return table(("line", "error", "when"), rows) if rows else ""


def _not_understood(found: Route, places: Places) -> str:
    rows = [
        (
            code(f"{places.labels.get(one.path, '?')}:{one.where}"),
            code(one.source) if one.source else f"{len(one.lines)} lines",
            prose(one.reason),
        )
        for one in puzzles(found.not_understood)[:_MOST_LINES]
    ]
    return table(("line", "source", "why"), rows) if rows else ""


def _files(places: Places) -> str:
    return "\n".join(f"- {code(label)}: {code(path, at_most=300)}" for label, path in places.legend())


def render_matrix(found: RouteMatrix) -> str:
    """What it says together, then the table; at most 65,536 bytes of UTF-8."""
    varied = axes_shown(found)
    words = phrases.config_words(found.config, without=frozenset(varied))
    blocks = [
        f"## sparkdiag route: {phrases.counted(len(found.cells), 'configuration')}",
        f"**Answer.** {prose(found.narrowed[0], at_most=1000)}" if found.narrowed else "",
        "\n".join(f"- *by revision*: {prose(line, at_most=1000)}" for line in found.narrowed[1 : _MOST_LINES + 1]),
        f"**Asked**: {prose(words, at_most=1000)}; {prose(phrases.size_words(found.config))}; "
        f"scenario {code(found.scenario)}.",
        _cells(found, varied, most=_ROWS_AT_ONCE),
        _problems(found.problems),
        "\n".join(f"- {_revision(one)}" for one in found.revisions[:_MOST_LINES]),
    ]
    more = len(found.cells) > _ROWS_AT_ONCE
    body = folded("All cells", _cells(found, varied, most=_MOST_ROWS)) if more else ""
    parts = (Section(rank=1, title="All cells", markdown=body),) if more else ()
    return fitted("\n\n".join(filter(None, blocks)), parts, where=_IN_JSON)


def _cells(found: RouteMatrix, varied: tuple[str, ...], *, most: int) -> str:
    names = revision_names(found.revisions)
    rows = [
        (
            *(code(cell_value(cell, axis, names)) for axis in varied),
            _MARK[cell.stall],
            _ends(cell),
        )
        for cell in found.cells[:most]
    ]
    return table((*varied, "stall path", "reaches"), rows) if rows else ""


def _ends(cell: MatrixCell) -> str:
    if cell.problem is not None:
        return f"no answer: {prose(cell.problem)}"
    named = [code(name, at_most=60) for name in cell.kernels[:_MOST_ENDS]]
    errors = list(dict.fromkeys(code(phrases.error_class(error)) for error in cell.raises))[:_MOST_ENDS]
    named += [f"an error: {', '.join(errors)}"] if errors else []
    return " or ".join(named) or "no kernel"


def _revision(one: MatrixRevision) -> str:
    subject = f" {code(one.subject, at_most=120)}" if one.subject else ""
    return f"{code(one.name, at_most=60)} is {code(phrases.short(one.revision))}{subject}"


def _problems(problems: tuple[RouteProblem, ...]) -> str:
    lines = [f"- {code(one.revision, at_most=60)}: no answer, {prose(one.message)}" for one in problems[:_MOST_LINES]]
    more = len(problems) - _MOST_LINES
    return "\n".join([*lines, *([f"- … and {more} more without an answer"] if more > 0 else [])])


def render_history(found: RouteHistory, *, stalls: frozenset[str] = frozenset()) -> str:
    """How many changes, then each; at most 65,536 bytes of UTF-8. ``stalls``: functions of the stall."""
    blocks = [
        f"## sparkdiag route: {phrases.counted(len(found.changes), 'change')} of the route",
        f"**Answer.** {prose(history_count(found))}.",
        f"**Asked**: {prose(phrases.config_words(found.config), at_most=1000)}; "
        f"{prose(phrases.size_words(found.config))}; scenario {code(found.scenario)}.",
        _changes(found, stalls, most=_CHANGES_AT_ONCE),
        _problems(found.problems),
    ]
    more = len(found.changes) > _CHANGES_AT_ONCE
    body = folded("All changes", _changes(found, stalls, most=_MOST_ROWS)) if more else ""
    parts = (Section(rank=1, title="All changes", markdown=body),) if more else ()
    return fitted("\n\n".join(filter(None, blocks)), parts, where=_IN_JSON)


def _changes(found: RouteHistory, stalls: frozenset[str], *, most: int) -> str:
    rows = [
        (
            code(phrases.short(change.sha)),
            prose(change.committed_at[:10]) or "–",
            code(change.subject, at_most=80) if change.subject else "–",
            _side(change.before, stalls),
            _side(change.after, stalls),
            (code(change.because) if change.because else "–") + ("" if change.exact else " (not exact)"),
        )
        for change in found.changes[:most]
    ]
    return table(("commit", "date", "subject", "before", "after", "because"), rows) if rows else ""


def _side(kernels: tuple[str, ...], stalls: frozenset[str]) -> str:
    named = [code(name, at_most=60) + (f" **{phrases.STALL}**" if name in stalls else "") for name in kernels[:3]]
    named += [f"{len(kernels) - 3} more"] if len(kernels) > 3 else []
    return " or ".join(named) or "no kernel"
