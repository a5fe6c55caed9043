"""Many routes at once: the matrix of configurations and revisions, and the changes in a history."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from shlex import quote
from typing import TYPE_CHECKING

from sparkdiag.cli import route_asked as typed
from sparkdiag.cli.route_asked import Asked
from sparkdiag.cli.route_shown import STALL_CODES, columns, show
from sparkdiag.cli.route_source import Source, axes_of, config_of
from sparkdiag.cli.talk import say
from sparkdiag.environment.blobs import RevisionTree
from sparkdiag.environment.commit_range import ClonedRange, read_range
from sparkdiag.errors import ExitCode, UsageError
from sparkdiag.evidence.route import MatrixRevision, RouteMatrix, RouteProblem, Truth
from sparkdiag.reporting.route_document import history_document, matrix_document
from sparkdiag.reporting.route_tables import history_text, matrix_text
from sparkdiag.routing.across.history import route_history
from sparkdiag.routing.across.matrix import find_matrix

if TYPE_CHECKING:
    from sparkdiag.reporting.live import ViewProgress

_WORST_FIRST: tuple[Truth, ...] = ("true", "unknown", "false")


def matrix(asked: Asked, source: Source) -> ExitCode:
    """One cell for each configuration and revision, and what they say together."""
    trees, problems = _trees(source, typed.revisions(asked) or (source.default,))
    with _progress() as progress:
        found = find_matrix(
            trees,
            scenario=source.scenario,
            base=config_of(asked, source.scenario),
            axes=axes_of(asked, source.scenario),
            problems=problems,
            progress=progress,
        )

    def page() -> str:
        from sparkdiag.reporting.route_markdown import render_matrix

        return render_matrix(found)

    show(asked, document=lambda: matrix_document(found), page=page, text=lambda: matrix_text(found, columns=columns()))
    if all(cell.problem is not None for cell in found.cells):
        return ExitCode.INCONCLUSIVE
    return STALL_CODES[_worst(found)] if asked.fail_on_stall else ExitCode.DONE


def _worst(found: RouteMatrix) -> Truth:
    """Of all that was asked: a revision without an answer may stall as well as any."""
    truths = {cell.stall for cell in found.cells} | ({"unknown"} if found.problems else set())
    return next(truth for truth in _WORST_FIRST if truth in truths)


def _trees(
    source: Source, names: Sequence[str]
) -> tuple[list[tuple[MatrixRevision, RevisionTree]], list[RouteProblem]]:
    """The revisions, each commit once; and those that are none."""
    trees: dict[str, tuple[MatrixRevision, RevisionTree]] = {}
    problems: list[RouteProblem] = []
    for name in names:
        try:
            tree = source.tree(name)
        except UsageError as problem:
            problems.append(RouteProblem(revision=name, message=problem.message, remedy=problem.remedy))
            continue
        if tree.revision in trees:
            say(f"{name} is the same commit as {trees[tree.revision][0].name}; it is read once")
            continue
        named = MatrixRevision(name=name, revision=tree.revision, subject=source.subject(tree.revision))
        trees[tree.revision] = (named, tree)
    return list(trees.values()), problems


def history(asked: Asked, source: Source) -> ExitCode:
    """Every commit of a range at which the route changes."""
    span = _range(asked.history or "", source)
    with _progress() as progress:
        found = route_history(
            span, scenario=source.scenario, config=config_of(asked, source.scenario), progress=progress
        )
    stalls = frozenset(signature.function for signature in source.scenario.signatures)

    def page() -> str:
        from sparkdiag.reporting.route_markdown import render_history

        return render_history(found, stalls=stalls)

    show(
        asked,
        document=lambda: history_document(found),
        page=page,
        text=lambda: history_text(found, columns=columns(), stalls=stalls),
    )
    if not found.changes and not found.problems:
        where = f" --repo {quote(asked.repo)}" if asked.repo is not None else ""
        say(f"what is reached throughout: sparkdiag route{where} --rev {found.new[:10]}")
    return ExitCode.INCONCLUSIVE if found.problems and not found.changes else ExitCode.DONE


def _range(text: str, source: Source) -> ClonedRange:
    """``A..B``; in the lab its names are looked up here, so that a wrong one is told with the lab's tags."""
    if source.lab:
        text = "..".join(end and source.commit(end, option="--history") for end in text.split("..", 1))
    return read_range(source.reader, text)


@contextmanager
def _progress() -> "Iterator[ViewProgress | None]":
    """A line that goes away, where somebody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from sparkdiag.reporting.live import LiveView

    with LiveView() as view:
        yield view.progress_sink()
