"""From a revision's source and a configuration to the kernels that are reached. Pure but for the tree that it reads."""

from sparkdiag.evidence.route import Route, RouteConfig
from sparkdiag.routing.source_tree import SourceTree
from sparkdiag.scenario.model import Scenario


def find_route(tree: SourceTree, *, scenario: Scenario, config: RouteConfig) -> Route:
    """Follow the dispatch from the scenario's entry function down to the kernels that ``config`` reaches.

    Raises:
        RouteError: the revision has no entry function, or a file on the way cannot be parsed.
        EnvironmentFault: git failed.
    """
    raise NotImplementedError
