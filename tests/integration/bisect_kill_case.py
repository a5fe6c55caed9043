"""A bisection in a process of its own, whose trials cost nothing, and that is killed where it is told to be.

Every trial leaves a line in a log in the folder, so that it can be told what a resumed search ran again.
"""

import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from sparkdiag.bisecting.question import journal as journal_module
from sparkdiag.bisecting.question.journal import Finished, read_journal
from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.bisecting.session import bisect
from sparkdiag.evidence.bisection import Bisection, Purpose, TrialResult
from sparkdiag.recording.bisection import BisectionFolder
from tests.unit.bisecting.simulated import RememberingView, SimulatedRunner, chain, request_for, sha_of, skipped

HISTORY = chain(12, blobs=lambda number: "abbccdddeeff"[number])
CULPRIT = sha_of(5)
"""The first commit with the blob "d"."""
RUN_LOG = "runs.log"


class LoggingRunner(SimulatedRunner):
    """Tells on disk of each trial; ``inside`` is called in the middle of one, with its number."""

    def __init__(self, log: Path, *, inside: Callable[[int], None]) -> None:
        super().__init__(HISTORY, CULPRIT, overrides={sha_of(7): lambda sha, _: skipped(sha)})
        self._log = log
        self._inside = inside
        self._number = 0

    def run(self, sha: str, *, purpose: Purpose, healthy: TrialResult | None) -> TrialResult:
        self._number += 1
        self._inside(self._number)
        with self._log.open("a") as file:
            file.write(f"{sha} {purpose}\n")
        return super().run(sha, purpose=purpose, healthy=healthy)


def request() -> BisectRequest:
    """Ends, controls, a skip, results that are reused, and a confirmation: every kind of step."""
    return request_for(HISTORY, controls=True, reuse=True, confirm=True)


def create(runs: Path) -> Path:
    return BisectionFolder.create(runs, scenario_name="made-up", dcp=2, now=datetime.now(UTC)).path


def search(folder: Path, *, inside: Callable[[int], None] = lambda _number: None) -> Bisection:
    """Begin, or go on."""
    runner = LoggingRunner(folder / RUN_LOG, inside=inside)
    return bisect(request(), folder=BisectionFolder(folder), runner=runner, view=RememberingView())


def ran(folder: Path) -> list[str]:
    """``sha purpose`` of every trial that ran to its end, killed before it could be written down or not."""
    log = folder / RUN_LOG
    return log.read_text().splitlines() if log.exists() else []


def written(folder: Path) -> list[str]:
    """``sha purpose`` of every trial that the journal holds."""
    steps = read_journal(folder / "journal.jsonl")
    return [
        f"{step.result.sha} {step.purpose}"
        for step in steps
        if isinstance(step, Finished) and step.result.reused_from is None
    ]


def die() -> None:
    """As ``kill -9`` does it: no handler, no ``finally``, no flush."""
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def dying_write(number: int, *, after_bytes: float) -> None:
    """Die inside the journal's write ``number`` (from 1), when this share of the line is written; 0: before it."""
    real, seen = os.write, 0

    def write(fd: int, data: bytes) -> int:
        nonlocal seen
        seen += 1
        if seen == number:
            real(fd, data[: int(len(data) * after_bytes)])
            die()
        return real(fd, data)

    journal_module.os.write = write  # type: ignore[attr-defined]


def in_a_child(work: Callable[[], object]) -> int:
    """Run ``work`` in a fork; returns how it ended as ``waitpid`` tells it."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            os._exit(3)
    return os.waitpid(pid, 0)[1]


def killed_in_write(folder: Path, number: int, after_bytes: float) -> bool:
    """Whether the search in ``folder`` came to its journal's write ``number`` of this process, and died in it."""

    def work() -> None:
        dying_write(number, after_bytes=after_bytes)
        search(folder)

    return _died(in_a_child(work))


def killed_in_trial(folder: Path, number: int) -> bool:
    """Whether it came to trial ``number`` of this process, and died in the middle of it."""
    return _died(in_a_child(lambda: search(folder, inside=lambda now: die() if now == number else None)))


def full_disk(folder: Path, room: int) -> int:
    """Search with so many bytes of room in the journal: the write that needs more comes to nothing half way."""

    def work() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        journal = folder / "journal.jsonl"
        size = journal.stat().st_size if journal.exists() else 0
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, size + room))
        search(folder)

    return os.waitstatus_to_exitcode(in_a_child(work))


def _died(status: int) -> bool:
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status) == signal.SIGKILL
    if os.WEXITSTATUS(status) != 0:
        raise AssertionError(f"the search failed with status {os.WEXITSTATUS(status)}")
    return False
