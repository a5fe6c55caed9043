"""Where in a history the route changes, from the few commits that touch a file which the route depends on.

For callers, both over a ``CommitRange`` (``environment/commit_range.py`` reads one from a clone)::

    route_history(span, scenario=scenario, config=config)    -> RouteHistory   # sparkdiag route --history A..B
    changed_between(span, scenario=scenario, config=config)  -> tuple[str, ...]  # commits to predict for a bisection

Neither raises for one bad revision: it becomes a ``RouteProblem``, and the others are still answered.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from sparkdiag.evidence.bisection import Commit
from sparkdiag.evidence.route import Route, RouteConfig, RouteHistory
from sparkdiag.routing.route import find_route
from sparkdiag.routing.source_tree import SourceTree
from sparkdiag.scenario.model import Scenario


class CommitRange(Protocol):
    """``old..new`` of one clone: the commits that ``new`` contains and ``old`` does not."""

    @property
    def old(self) -> str:
        """Id of 40 digits; empty for a range from the very first commit on."""
        ...

    @property
    def new(self) -> str:
        """Id of 40 digits."""
        ...

    @property
    def commits(self) -> Sequence[Commit]:
        """Parents before children, oldest first; parents are the true ones, also outside the range."""
        ...

    @property
    def cut_off(self) -> frozenset[str]:
        """The commits whose parents a shallow clone lacks."""
        ...

    def changed(self) -> Mapping[str, Mapping[str, str | None]]:
        """Of each commit the Python files that differ from its first parent's: id of the content, None for gone."""
        ...

    def blobs(self, sha: str, paths: Sequence[str]) -> Mapping[str, str | None]:
        """Ids of these files' contents at a commit, None where there is no such file."""
        ...

    def tree(self, sha: str) -> SourceTree:
        """The files of a commit."""
        ...


class Progress(Protocol):
    """How far it is; ``environment.progress.ProgressSink`` is one."""

    def start(self, task: str, *, total: float | None, unit: str) -> None:
        """``task`` begins; ``total`` in ``unit``, None when it cannot be known."""

    def advance(self, to: float) -> None:
        """The task has come to ``to`` units, counted from its start."""

    def finish(self, note: str = "") -> None:
        """The task is over."""


class FindRoute(Protocol):
    """``find_route``, or what a test puts in its place."""

    def __call__(self, tree: SourceTree, *, scenario: Scenario, config: RouteConfig) -> Route:
        """See ``routing.route.find_route``."""
        ...


def route_history(
    span: CommitRange,
    *,
    scenario: Scenario,
    config: RouteConfig,
    progress: Progress | None = None,
    find: FindRoute = find_route,
) -> RouteHistory:
    """Every commit of ``span`` at which the route changes for ``config``, oldest first.

    Raises ``EnvironmentFault`` when git failed as a whole.
    """
    raise NotImplementedError


def changed_between(span: CommitRange, *, scenario: Scenario, config: RouteConfig) -> tuple[str, ...]:
    """Ids of the commits at which the route changes, oldest first: where a bisection should look first."""
    return tuple(change.sha for change in route_history(span, scenario=scenario, config=config).changes)
