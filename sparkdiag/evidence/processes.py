"""Who is who in a server's process tree."""

from typing import Literal

from sparkdiag.evidence.base import Value

Role = Literal["api_server", "engine_core", "worker", "dp_coordinator", "resource_tracker", "other"]


class Ranks(Value):
    """Parallel ranks as the worker's title shows them; None where the title does not name the dimension."""

    tp: int | None = None
    dcp: int | None = None
    pp: int | None = None
    dp: int | None = None
    pcp: int | None = None
    ep: int | None = None

    @property
    def label(self) -> str:
        """``TP0_DCP0``-like, as in vLLM's titles; empty when no rank is known."""
        named = (
            ("DP", self.dp),
            ("PP", self.pp),
            ("PCP", self.pcp),
            ("TP", self.tp),
            ("DCP", self.dcp),
            ("EP", self.ep),
        )
        return "_".join(f"{name}{rank}" for name, rank in named if rank is not None)


class ProcessInfo(Value):
    """One process of the tree. ``(pid, started_at_s)`` is its identity: a pid alone is reused."""

    pid: int
    parent_pid: int | None = None
    started_at_s: float
    """psutil's create_time (seconds since the epoch), not the run clock."""
    role: Role
    ranks: Ranks = Ranks()
    title: str
    """Command line as shown, redacted and cut."""
    python: str | None = None

    @property
    def name(self) -> str:
        """Short name for people: ``Worker_TP0_DCP0``, ``EngineCore``, ``APIServer``."""
        match self.role:
            case "worker":
                return "_".join(filter(None, ("Worker", self.ranks.label)))
            case "engine_core":
                return "EngineCore"
            case "api_server":
                return "APIServer"
            case _:
                return self.role


GUARDIAN_KILLED = "sparkdiag's guardian was killed from outside; the server was ended with it"


class ServerExit(Value):
    """How the server ended when sparkdiag had not asked it to."""

    at_s: float
    exit_code: int | None = None
    signal: str | None = None
    process: str | None = None
    """The API server, whose status is known, or the part whose end made sparkdiag end the rest."""
    last_log_lines: tuple[str, ...] = ()
    guardian_killed: bool = False
    """Somebody killed the process that guards the tree, and the server was ended with it: it did not end by itself."""

    @property
    def how(self) -> str:
        """``signal SIGKILL``, ``exit code 1``, and where it did not end by itself, what ended it."""
        if self.guardian_killed:
            return GUARDIAN_KILLED
        if self.signal is None and self.exit_code is None:
            return "no known status"
        return f"signal {self.signal}" if self.signal else f"exit code {self.exit_code}"
