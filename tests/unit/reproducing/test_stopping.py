"""The end of a run that is interrupted while it stops."""

from typing import cast

import pytest

from sparkdiag.reproducing import session
from sparkdiag.reproducing.running import RunInProgress
from sparkdiag.reproducing.signals import Terminated
from sparkdiag.serving.launch import LaunchedServer


class Run:
    def __init__(self) -> None:
        self.said: list[str] = []

    def phase(self, name: str, detail: str = "") -> None:
        self.said.append(name)

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
