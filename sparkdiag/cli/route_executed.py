"""``sparkdiag route --execute``: the revision's own dispatch, run in a sandbox beside what its source says."""

from pathlib import Path

from sparkdiag.cli.route_asked import Asked
from sparkdiag.cli.route_source import Source
from sparkdiag.cli.talk import say
from sparkdiag.environment.blobs import RevisionTree
from sparkdiag.environment.config import read_config
from sparkdiag.environment.interrogate import interpreter_of
from sparkdiag.environment.published import build_base
from sparkdiag.environment.spec import ExistingSpec, LabSpec, ReleaseSpec, parse_spec
from sparkdiag.errors import UsageError
from sparkdiag.evidence.route import Executed, Route
from sparkdiag.executing.session import execute
from sparkdiag.reporting.live import LiveView

LAB = "lab"


def executed(asked: Asked, source: Source, tree: RevisionTree, found: Route) -> Executed:
    """What the dispatch at ``tree`` really reached, for the configuration of ``found``.

    Raises ``UsageError`` for an environment that lends no interpreter, ``EnvironmentFault`` where it cannot be built or
    started.
    """
    python = _python(asked)
    say(f"--execute runs code of {tree.revision[:10]} in a sandbox, with {python}")
    return execute(tree, scenario=source.scenario, config=found.config, route=found, python=python, view=say)


def _python(asked: Asked) -> Path:
    """The interpreter whose torch is used; the lab's is built where it is not there yet."""
    given = asked.env or read_config().env or LAB
    spec = parse_spec(given)
    if isinstance(spec, ExistingSpec):
        return Path(interpreter_of(spec.target))
    if not isinstance(spec, LabSpec | ReleaseSpec):
        raise UsageError(
            f"the environment {given} is a revision of its own; --execute takes torch from it and the code from --rev",
            remedy="--env lab, --env release:VERSION or --env existing:PYTHON",
        )
    with LiveView(plain=asked.as_json) as view:
        built = build_base(spec, progress=view.progress_sink())
    if built is None:
        raise UsageError(f"the environment {given} lends no interpreter", remedy="--env existing:PYTHON")
    return Path(built.python)
