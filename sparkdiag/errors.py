"""One error class a cause, each with the exit code and the next thing to type.

Raised anywhere below the CLI; only ``sparkdiag.cli`` prints and exits.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every command (README, "Exit codes")."""

    DONE = 0
    STALL = 1
    USAGE = 2
    INCONCLUSIVE = 3
    ENVIRONMENT = 4
    SERVER = 5
    WRONG_OUTPUT = 6
    DEFECT = 70
    INTERRUPTED = 130
    UNREAD = 141
    TERMINATED = 143


class SparkdiagError(Exception):
    """A failure a user can act on: one line for the thing and the cause, one for the remedy."""

    exit_code = ExitCode.ENVIRONMENT

    def __init__(self, message: str, *, remedy: str | None = None, details: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.details = details


class UsageError(SparkdiagError):
    """What was asked for makes no sense as asked."""

    exit_code = ExitCode.USAGE


class ScenarioError(UsageError):
    """A scenario file is wrong; ``details`` lists every problem with file and key."""


class EnvironmentFault(SparkdiagError):
    """The environment under test could not be found or built."""


class BusyError(SparkdiagError):
    """Another run holds the machine."""


class SamplingRefused(SparkdiagError):
    """No process of the server can be sampled, neither from outside nor from inside."""


class ServerError(SparkdiagError):
    """The server never became ready, or died; ``details`` holds its last log lines."""

    exit_code = ExitCode.SERVER


class NoServerFound(SparkdiagError):
    """What was to be watched is not there, or cannot be seen."""

    exit_code = ExitCode.INCONCLUSIVE


class GuardianKilled(SparkdiagError):
    """Somebody killed the process that guards the server, which was ended with it: no fault of its own."""


class DefectError(SparkdiagError):
    """sparkdiag itself is wrong. Never exit code 1: that says that the stall was reproduced."""

    exit_code = ExitCode.DEFECT


class RunFolderError(SparkdiagError):
    """A run folder cannot be read or written."""

    exit_code = ExitCode.USAGE


class RouteError(SparkdiagError):
    """A revision's source does not say which kernel is reached: no entry function, a file that cannot be read."""

    exit_code = ExitCode.INCONCLUSIVE


class NoEntry(RouteError):
    """A revision has no entry function: it is older than the path that is asked about, or another project's."""
