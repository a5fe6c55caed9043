"""One route for each revision and configuration asked: the table that narrows a claim. Pure but for the trees."""

from collections.abc import Sequence
from itertools import product

from sparkdiag.errors import RouteError
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.route import (
    Cache,
    MatrixCell,
    MatrixRevision,
    Route,
    RouteConfig,
    RouteMatrix,
    RouteProblem,
)
from sparkdiag.routing.across.answers import FindRoute
from sparkdiag.routing.across.history import Progress
from sparkdiag.routing.across.narrowing import narrowed
from sparkdiag.routing.route import find_route
from sparkdiag.routing.source.source_tree import SourceTree
from sparkdiag.scenario.model import Scenario


class MatrixAxes(Value):
    """The values of each axis, in the order asked; None stands for "not said"."""

    dcp: tuple[int | None, ...]
    arch: tuple[str | None, ...]
    cache: tuple[Cache | None, ...]

    def configs(self, base: RouteConfig) -> tuple[RouteConfig, ...]:
        """Every configuration: DCP size slowest, cache fastest."""
        return tuple(
            base.model_copy(update={"dcp": dcp, "arch": arch, "cache": cache})
            for dcp, arch, cache in product(self.dcp, self.arch, self.cache)
        )

    def common(self, base: RouteConfig) -> RouteConfig:
        """What every configuration has: an axis with several values is left open."""
        values = {"dcp": self.dcp, "arch": self.arch, "cache": self.cache}
        return base.model_copy(update={name: one[0] if len(one) == 1 else None for name, one in values.items()})


def find_matrix(
    trees: Sequence[tuple[MatrixRevision, SourceTree]],
    *,
    scenario: Scenario,
    base: RouteConfig,
    axes: MatrixAxes,
    problems: Sequence[RouteProblem] = (),
    progress: Progress | None = None,
    find: FindRoute = find_route,
) -> RouteMatrix:
    """One cell for each revision and configuration; a revision that has no answer becomes a problem with its reason.

    ``problems``: revisions that could not even be opened.
    Raises ``EnvironmentFault`` when git failed.
    """
    configs = axes.configs(base)
    cells: list[MatrixCell] = []
    lost: list[RouteProblem] = list(problems)
    if progress is not None:
        progress.start("reading", total=len(trees), unit="revisions")
    for number, (revision, tree) in enumerate(trees, start=1):
        row = [_cell(tree, scenario=scenario, config=config, find=find) for config in configs]
        reasons = {cell.problem for cell in row}
        (reason,) = reasons if len(reasons) == 1 else (None,)
        if reason is None:
            cells += row
        else:
            lost.append(RouteProblem(revision=revision.name, message=reason))
        if progress is not None:
            progress.advance(number)
    if progress is not None:
        progress.finish()
    revisions = tuple(revision for revision, _ in trees)
    return RouteMatrix(
        scenario=scenario.name,
        config=axes.common(base),
        dcp=axes.dcp,
        arch=axes.arch,
        cache=axes.cache,
        revisions=revisions,
        cells=tuple(cells),
        narrowed=narrowed(cells, revisions, unanswered=len(lost)),
        problems=tuple(lost),
    )


def _cell(tree: SourceTree, *, scenario: Scenario, config: RouteConfig, find: FindRoute) -> MatrixCell:
    place = {"revision": tree.revision, "dcp": config.dcp, "arch": config.arch, "cache": config.cache}
    try:
        found = find(tree, scenario=scenario, config=config)
    except RouteError as problem:
        return MatrixCell.model_validate(place | {"problem": problem.message})
    return MatrixCell.model_validate(place | _answer(found))


def _answer(found: Route) -> dict[str, object]:
    return {
        "kernels": found.kernels,
        "raises": tuple(dict.fromkeys(raised.error for raised in found.raises)),
        "stall": found.stall_path,
        "exact": found.exact,
    }
