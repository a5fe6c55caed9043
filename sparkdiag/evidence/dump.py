"""Stacks that somebody pasted, or that were sampled: one value for every tool that prints them."""

from typing import Literal

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.processes import Ranks, Role
from sparkdiag.evidence.stacks import LocalValue

DumpTool = Literal[
    "py-spy dump",
    "py-spy json",
    "py-spy top",
    "py-spy raw",
    "pystack",
    "gdb",
    "faulthandler",
    "watchdog",
    "ray",
    "sparkdiag",
    "unknown",
]
"""What printed the frames. ``watchdog``: a traceback or stack listing that a library logs by itself; ``sparkdiag``: a
sample of our own."""


class DumpFrame(Value):
    """One frame, as far as the tool tells."""

    function: str
    """As printed: ``Worker.execute_model`` (py-spy on Python 3.11 on), ``tt::tt_metal::finish`` (gdb)."""
    path: str | None = None
    """As printed, whole or shortened; forward slashes."""
    line: int | None = None
    native: bool = False
    locals: dict[str, LocalValue] = {}
    """Integers and booleans alone: prompts and keys are dropped where the text is read."""

    @property
    def name(self) -> str:
        """The bare name: ``Worker.execute_model`` and ``ns::Worker::execute_model`` -> ``execute_model``."""
        return self.function.rsplit("::", 1)[-1].rsplit(".", 1)[-1]


class DumpThread(Value):
    """One thread's frames, innermost first, whatever the order in the paste."""

    name: str | None = None
    thread_id: int | None = None
    os_thread_id: int | None = None
    state: Literal["active", "idle", "unknown"] = "unknown"
    owns_gil: bool = False
    frames: tuple[DumpFrame, ...] = ()
    samples: int = 1
    """How many samples this stack stands for (``record -f raw`` counts them)."""
    whole: bool = True
    """False where the paste shows only a part: cut off, or quoted without its outer frames."""


class ProcessDump(Value):
    """One look at one process."""

    tool: DumpTool = "unknown"
    pid: int | None = None
    title: str | None = None
    """Command line or title as pasted, secrets out, made printable, cut."""
    python: str | None = None
    role: Role | None = None
    ranks: Ranks = Ranks()
    host: str | None = None
    """Container, service or node that a log prefix names; ranks of two hosts may have the same pid."""
    at: str | None = None
    """The time stamp as printed, where there is one; for people."""
    at_s: float | None = None
    """Seconds on any one clock, where the paste (or our own sampling) tells; for rates."""
    threads: tuple[DumpThread, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader should know of how it was read: ``12 lines were not understood``."""

    @property
    def main_thread(self) -> DumpThread | None:
        """The thread called MainThread, else the first one that has frames."""
        for thread in self.threads:
            if thread.name == "MainThread":
                return thread
        return next((thread for thread in self.threads if thread.frames), None)


class Pasted(Value):
    """What one text holds. Never raised for, whatever the text: ``refused`` says why nothing can be said."""

    source: str
    """File name as given, ``standard input``."""
    looks: tuple[ProcessDump, ...] = ()
    """In the order of the text. The same process may be there several times: then it was dumped over time."""
    refused: str | None = None
    """One sentence: dumps of several ranks are interleaved, there is no stack in it."""
    refused_kind: Literal["garbled", "not-an-engine"] | None = None
    """``garbled``: there are stacks that cannot be told apart; ``not-an-engine``: nothing in it is a stack."""
    notes: tuple[str, ...] = ()
