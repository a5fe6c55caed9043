"""``sparkdiag route --execute``: the revision's own dispatch, run in a sandbox beside what its source says."""

from pathlib import Path

from sparkdiag.cli.lent_python import LAB, lent_python
from sparkdiag.cli.route_asked import Asked
from sparkdiag.cli.route_source import Source
from sparkdiag.cli.talk import say
from sparkdiag.environment.blobs import RevisionTree
from sparkdiag.environment.config import read_config
from sparkdiag.evidence.route import Executed, Route
from sparkdiag.executing.session import execute


def executed(asked: Asked, source: Source, tree: RevisionTree, found: Route) -> Executed:
    """What the dispatch at ``tree`` really reached, for the configuration of ``found``.

    Raises ``UsageError`` for an environment that lends no interpreter, ``EnvironmentFault`` where it cannot be built or
    started.
    """
    given = asked.env or read_config().env or LAB
    takes = "--execute takes torch from it and the code from --rev"
    python = Path(lent_python(given, takes=takes, plain=asked.as_json)[0])
    say(f"--execute runs code of {tree.revision[:10]} in a sandbox, with {python}")
    return execute(tree, scenario=source.scenario, config=found.config, route=found, python=python, view=say)
