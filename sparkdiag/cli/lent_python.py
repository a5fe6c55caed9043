"""The interpreter of an environment, for commands that need its torch and start no server in it."""

from sparkdiag.environment.interrogate import interpreter_of
from sparkdiag.environment.published import build_base
from sparkdiag.environment.spec import ExistingSpec, LabSpec, ReleaseSpec, parse_spec
from sparkdiag.errors import UsageError
from sparkdiag.reporting.live import LiveView

LAB = "lab"


def lent_python(env: str, *, takes: str, plain: bool) -> tuple[str, bool]:
    """Its path, and whether somebody else set it up; the lab's and a release's are built where they are not there yet.

    ``takes``: what the command takes from where, for who names a revision's own environment. Raises ``UsageError`` for
    an environment that lends no interpreter, ``EnvironmentFault`` where it cannot be built.
    """
    spec = parse_spec(env)
    if isinstance(spec, ExistingSpec):
        return interpreter_of(spec.target), True
    if not isinstance(spec, LabSpec | ReleaseSpec):
        raise UsageError(
            f"the environment {env} is a revision of its own; {takes}",
            remedy="--env existing:PYTHON, --env lab or --env release:VERSION",
        )
    with LiveView(plain=plain) as view:
        built = build_base(spec, progress=view.progress_sink())
    if built is None:
        raise UsageError(f"the environment {env} lends no interpreter", remedy="--env existing:PYTHON")
    return built.python, False
