"""From a verdict to an exit code; from an exit code to what ``git bisect run`` understands."""

from typing import TYPE_CHECKING

from sparkdiag.errors import ExitCode

if TYPE_CHECKING:
    from sparkdiag.evidence.bisection import Bisection
    from sparkdiag.evidence.verdict import Verdict

GIT_BISECT_GOOD = 0
GIT_BISECT_BAD = 1
GIT_BISECT_SKIP = 125
GIT_BISECT_ABORT = 128
GIT_BISECT_CODES = frozenset({GIT_BISECT_GOOD, GIT_BISECT_BAD, GIT_BISECT_SKIP, GIT_BISECT_ABORT})


def exit_code_of(verdict: "Verdict | None") -> ExitCode:
    """README, "Exit codes". A run without a verdict is inconclusive."""
    if verdict is None:
        return ExitCode.INCONCLUSIVE
    match verdict.outcome:
        case "stalled":
            return ExitCode.STALL
        case "crashed":
            return ExitCode.SERVER
        case "completed":
            return ExitCode.DONE if verdict.needle == "retrieved" else ExitCode.WRONG_OUTPUT
        case "inconclusive":
            return ExitCode.INCONCLUSIVE


def exit_code_of_bisection(found: "Bisection") -> ExitCode:
    """A culprit is what was asked for; candidates and no answer have their reason in the report."""
    return ExitCode.DONE if found.outcome == "found" else ExitCode.INCONCLUSIVE


def git_bisect_code(code: ExitCode) -> int:
    """0 good, 1 stalls, 125 cannot tell about this revision, 128 stop: something is wrong with the asking.

    A wrong answer is no stall, so it is good here. See https://git-scm.com/docs/git-bisect#_bisect_run.
    """
    match code:
        case ExitCode.DONE | ExitCode.WRONG_OUTPUT:
            return GIT_BISECT_GOOD
        case ExitCode.STALL:
            return GIT_BISECT_BAD
        case ExitCode.INCONCLUSIVE | ExitCode.SERVER:
            return GIT_BISECT_SKIP
        case _:
            return GIT_BISECT_ABORT
