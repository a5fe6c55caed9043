"""What is searched over: points between two ends, and how the run of one point is asked for. Pure."""

from sparkdiag.bisecting.history import History
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import AxisKind


class Axis(Value):
    """Points from ``old`` to ``new``, both among ``history``'s: a DAG of commits, or a chain of values."""

    kind: AxisKind
    history: History
    old: str
    new: str
    repo: str | None = None
    """The clone the commits live in; None for the lab's own history and for other axes."""
    lab: bool = False
    """The commits are the lab's: a point is run as ``ReproRequest.revision``."""
    env_specs: dict[str, str] = {}
    """The environment of each point where it differs by point: ``overlay:SHA@BASE``, ``release:VERSION``."""
