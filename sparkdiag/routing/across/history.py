"""Where in a history the route changes, from the few commits that touch a file which the route depends on.

For callers, over a ``CommitRange`` (``environment.commit_range.read_range`` reads one from a clone)::

    route_history(span, scenario=scenario, config=config)  -> RouteHistory, whose changes a bisection may try first

One bad revision raises nothing: it becomes a ``RouteProblem``, and the others are still answered.
"""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from sparkdiag.evidence.bisection import Commit
from sparkdiag.evidence.route import RouteChange, RouteConfig, RouteHistory, RouteProblem
from sparkdiag.routing.across.answers import Answer, Answers, FindRoute, Revisions
from sparkdiag.routing.across.route_change import why_changed
from sparkdiag.routing.route import find_route
from sparkdiag.scenario.model import Scenario

_STEP = 256
"""Commits between two words about progress."""


class Change(Protocol):
    """What a commit does to one Python file, against its first parent."""

    @property
    def path(self) -> str:
        """Where it is."""
        ...

    @property
    def oid(self) -> str | None:
        """Id of the new content; None where there is no such file any more."""
        ...

    @property
    def added(self) -> bool:
        """The path was not there before."""
        ...


class CommitRange(Revisions, Protocol):
    """``old..new`` of one clone: the commits that ``new`` contains and ``old`` does not."""

    @property
    def old(self) -> str:
        """Id of 40 digits; empty for everything that ``new`` contains."""
        ...

    @property
    def new(self) -> str:
        """Id of 40 digits."""
        ...

    @property
    def parents(self) -> Mapping[str, tuple[str, ...]]:
        """The parents of each commit, also outside of the range; parents before children."""
        ...

    @property
    def cut_off(self) -> frozenset[str]:
        """The commits whose parents a shallow clone lacks."""
        ...

    @property
    def changes(self) -> Mapping[str, Sequence[Change]]:
        """What each commit does to Python files; one without parents adds all that it has."""
        ...

    def holds(self, oid: str, text: str) -> bool:
        """Whether the file with this id holds ``text`` literally."""
        ...

    def described(self, shas: Sequence[str]) -> tuple[Commit, ...]:
        """These commits with subject and date."""
        ...


class Progress(Protocol):
    """How far it is; ``environment.progress.ProgressSink`` is one."""

    def start(self, task: str, *, total: float | None, unit: str) -> None:
        """``task`` begins; ``total`` in ``unit``, None when it cannot be known."""

    def advance(self, to: float) -> None:
        """The task has come to ``to`` units, counted from its start."""

    def finish(self, note: str = "") -> None:
        """The task is over."""


class _Turn(NamedTuple):
    """A commit at which the answer is another one."""

    sha: str
    before: Answer | None
    """None for nothing at all before it: the history's first commit."""
    after: Answer


def route_history(
    span: CommitRange,
    *,
    scenario: Scenario,
    config: RouteConfig,
    progress: Progress | None = None,
    find: FindRoute = find_route,
) -> RouteHistory:
    """Every commit of ``span`` at which the route changes for ``config``, oldest first.

    Two routes are the same when they reach the same kernels under the same conditions, as exactly. A merge changes it
    when it differs from every parent. Raises ``EnvironmentFault`` when git failed, or failed at ``new`` already.
    """
    answers = Answers(span, scenario=scenario, config=config, find=find)
    walk = _Walk(span, answers, progress=progress)
    with _no_collection():
        found = walk.settle()
    turns = tuple(_turns(span, found))
    commits = span.described([turn.sha for turn in turns])
    return RouteHistory(
        scenario=scenario.name,
        config=config,
        old=span.old,
        new=span.new,
        commits=len(span.parents),
        evaluated=len(walk.read),
        changes=tuple(_change(turn, commit, answers) for turn, commit in zip(turns, commits, strict=True)),
        problems=tuple(_problems(span, found)),
    )


@contextmanager
def _no_collection() -> Iterator[None]:
    """Python's search for cyclic garbage goes through every syntax tree that is kept, again and again: a third of a
    history's time, and it finds next to nothing."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class _Walk:
    """From parents to children: a commit has its first parent's answer, unless it touches what that was read from.

    What a search through all files found (``SourceTree.holding``) can change with any file. Looked into are those
    that are added and those that any answer was read from: a function that comes into another old file is seen from
    the commit on at which it leads to a different answer, and then the walk is done again with that file in view.
    """

    def __init__(self, span: CommitRange, answers: Answers, *, progress: Progress | None) -> None:
        self._span = span
        self._answers = answers
        self._progress = progress
        self._held: dict[tuple[str, str], bool] = {}
        self.read: set[str] = set()
        """The commits of the range that had to be looked at themselves."""

    def settle(self) -> dict[str, Answer]:
        """The answer at each commit of the range, and at their parents outside."""
        self._answers.at(self._span.new, strict=True)
        if self._span.old:
            self._answers.at(self._span.old)
        while True:
            in_view = self._answers.paths()
            found = self._once(in_view)
            searched = any(answer.hits for answer in found.values())
            if not searched or (not self._contradicted(found) and self._answers.paths() == in_view):
                return found

    def _once(self, in_view: frozenset[str]) -> dict[str, Answer]:
        parents = self._span.parents
        self._say_start(len(parents))
        self.read.clear()
        found: dict[str, Answer] = {}
        for number, (sha, line) in enumerate(parents.items()):
            for outside in line:
                if outside not in found:
                    found[outside] = self._answers.at(outside)
            found[sha] = self._next(sha, found[line[0]] if line else None, in_view=in_view)
            if self._progress and number % _STEP == 0:
                self._progress.advance(number)
        if self._progress:
            self._progress.finish(f"{len(self.read):,} of {len(parents):,} commits read")
        return found

    def _next(self, sha: str, before: Answer | None, *, in_view: frozenset[str]) -> Answer:
        known = self._answers.known(sha)
        if before is None or known:
            self.read.add(sha)
            return known or self._answers.at(sha)
        changes = self._span.changes.get(sha, ())
        changed = {
            change.path: change.oid
            for change in changes
            if change.path in before.reads and before.reads[change.path] != change.oid
        }
        moved = any(
            self._moves(change, text, hits, in_view=in_view) for text, hits in before.hits.items() for change in changes
        )
        if not changed and not moved:
            return before
        self.read.add(sha)
        carried = None if moved else self._answers.carried(sha, before, changed=changed)
        return carried or self._answers.at(sha)

    def _moves(self, change: Change, text: str, hits: Sequence[str], *, in_view: frozenset[str]) -> bool:
        """Whether this file comes to hold ``text``, or ceases to."""
        held = change.path in hits
        if not (held or change.added or change.path in in_view):
            return False
        return held != (change.oid is not None and self._holds(change.oid, text))

    def _holds(self, oid: str, text: str) -> bool:
        known = self._held.get((oid, text))
        if known is None:
            known = self._held[oid, text] = self._span.holds(oid, text)
        return known

    def _contradicted(self, found: Mapping[str, Answer]) -> bool:
        """Read what was only carried on by a search's answer, where the next commit has another: it may have changed
        on the way, in a file that was not in view."""
        wrong = False
        for sha, line in self._span.parents.items():
            for parent in line:
                if found[sha].key != found[parent].key and found[parent].hits and self._answers.known(parent) is None:
                    read = self._answers.at(parent)
                    wrong = wrong or read.key != found[parent].key
        return wrong

    def _say_start(self, total: int) -> None:
        if self._progress:
            self._progress.start("following the route through the history", total=total, unit="commits")


def _turns(span: CommitRange, found: Mapping[str, Answer]) -> Iterator[_Turn]:
    """The commits that answer otherwise than each of their parents. Pure.

    A revision that has no answer (a syntax error) changes nothing: the next that has one is compared with the last.
    """
    last: dict[str, Answer | None] = {}
    for sha, parents in span.parents.items():
        before = [last[parent] if parent in last else _telling(found[parent]) for parent in parents]
        answer = _telling(found[sha])
        last[sha] = answer or next((one for one in before if one is not None), None)
        if answer is None or sha in span.cut_off:
            continue
        if not parents:
            if answer.route is not None:
                yield _Turn(sha, None, answer)
        elif all(one is not None and one.key != answer.key for one in before):
            yield _Turn(sha, before[0], answer)


def _telling(answer: Answer) -> Answer | None:
    return answer if answer.tells else None


def _change(turn: _Turn, commit: Commit, answers: Answers) -> RouteChange:
    before = turn.before.route if turn.before else None
    after = turn.after.route
    if after is not None and after.revision != turn.sha:
        after = answers.read(turn.sha).route  # for the lines as they are there
    return RouteChange(
        sha=turn.sha,
        subject=commit.subject,
        committed_at=commit.committed_at,
        before=before.kernels if before else (),
        after=after.kernels if after else (),
        exact=(before is None or before.exact) and (after is None or after.exact),
        because=why_changed(before, after),
    )


def _problems(span: CommitRange, found: Mapping[str, Answer]) -> Iterator[RouteProblem]:
    """One line for each thing that stood in the way, at the first revision where it did. Pure."""
    for sha in span.parents:
        if sha in span.cut_off:
            yield RouteProblem(
                revision=sha,
                message=f"a shallow clone: its history is cut off at {sha[:10]}, what changed there is not known",
                remedy="git fetch --unshallow",
            )
    told: set[str] = set()
    for sha, answer in found.items():
        if answer.fault is None or answer.fault.message in told or (answer.tells and sha != span.new):
            continue
        told.add(answer.fault.message)
        yield RouteProblem(revision=sha, message=answer.fault.message, remedy=answer.fault.remedy)
