"""The end of a run that is interrupted while it stops."""

from typing import cast

import pytest

from sparkdiag.evidence.processes import ServerExit
from sparkdiag.reproducing import session
from sparkdiag.reproducing.running import RunInProgress
from sparkdiag.reproducing.signals import Terminated
from sparkdiag.serving.launch import LaunchedServer, StopReport


class Run:
    def __init__(self) -> None:
        self.said: list[str] = []

    def phase(self, name: str, detail: str = "") -> None:
        self.said.append(name)

    def time(self, **_seconds: float) -> None:
        pass

    def note(self, source: str, text: str) -> None:
        self.said.append(text)


class Server:
    """Its first stop is interrupted."""

    def __init__(self, interruption: type[BaseException]) -> None:
        self.interruption, self.stops = interruption, 0

    def stop(self, _timeout_s: float) -> None:
        self.stops += 1
        if self.stops == 1:
            raise self.interruption


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, Terminated])
def test_a_second_interruption_does_not_leave_before_everything_is_gone(interruption: type[BaseException]) -> None:
    run, server = Run(), Server(interruption)
    with pytest.raises(interruption):
        session._stop(cast("RunInProgress", run), cast("LaunchedServer", server))
    assert server.stops == 2
    assert run.said == ["stopping", "asked again: what has not ended yet is killed"]


class Ended:
    """A server whose stop went as ``report`` says."""

    def __init__(self, report: StopReport, ended: ServerExit | None = None) -> None:
        self.report, self.ended = report, ended

    def poll(self) -> ServerExit | None:
        return self.ended

    def stop(self, _timeout_s: float) -> StopReport:
        return self.report


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (StopReport(took_s=1, removed=("a",)), "removed what the server left behind: 1 file"),
        (StopReport(took_s=1, removed=("a", "b")), "removed what the server left behind: 2 files"),
        (StopReport(took_s=1, killed=(7,)), "killed, not ended by SIGTERM: 1 process"),
        (StopReport(took_s=1, left=(7, 8)), "could not be ended: pids 7, 8"),
    ],
)
def test_what_stopping_took_is_told(report: StopReport, said: str) -> None:
    run = Run()
    session._stop(cast("RunInProgress", run), cast("LaunchedServer", Ended(report)))
    assert run.said == ["stopping", said]


def test_what_went_with_its_guardian_is_not_said_to_have_outlived_sigterm() -> None:
    run, gone = Run(), ServerExit(at_s=1, signal="SIGKILL", guardian_killed=True)
    server = Ended(StopReport(took_s=1, killed=(7, 8)), gone)
    session._stop(cast("RunInProgress", run), cast("LaunchedServer", server))
    assert run.said == ["stopping", "killed with sparkdiag's guardian: 2 processes"]
