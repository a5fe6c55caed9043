"""What PyTorch's watchdog logs of a collective that ran out of time: which rank waits in which operation. Pure.

``[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, ...) ran for 600013
milliseconds before timing out.``, then how far the rank's queue had come, and, where the flight recorder is on, the
Python stack that asked for the collective.
https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp
"""

import re
from dataclasses import dataclass, field

from sparkdiag.dumps.kept import MOST_FRAMES, MOST_PROCESSES, kept_frame, kept_line, kept_name
from sparkdiag.dumps.naming import NO_RANKS, ranks_in
from sparkdiag.evidence.dump import DumpFrame, DumpThread, ProcessDump

THREAD = "collective"
"""Name of the thread that stands for the one that asked for the operation: the watchdog tells no names."""

_LONGEST = 2000
_WORK = re.compile(
    r"Work(?P<library>[A-Z]{2,6})\(SeqNum=(?P<number>\d{1,18}), OpType=(?P<operation>\w{1,40})"
    r"(?:[^\n]{0,400}?\) ran for (?P<ms>\d{1,12}) milliseconds)?"
)
_RANK = re.compile(r"\[(?:[^\[\]]{0,80} )?[Rr]ank ?(?P<rank>\d{1,6})\]")
_STATUS = re.compile(
    r"last enqueued (?:NCCL )?work: (?P<enqueued>-?\d{1,12}), (?:last started (?:NCCL )?work: -?\d{1,12}, )?"
    r"last completed (?:NCCL )?work: (?P<completed>-?\d{1,12})"
)
_FRAME = re.compile(r"#(?P<number>\d{1,4}) (?P<function>\S{1,200}) from (?P<path>\S{1,1000}):(?P<line>\d{1,9})\s*\Z")
_STACK = "Stack trace of the failed collective"


@dataclass(slots=True)
class _Rank:
    operation: str | None = None
    library: str = ""
    notes: list[str] = field(default_factory=list)
    frames: list[DumpFrame] = field(default_factory=list)


class Collectives:
    """Collects the lines of every rank; the same timeout is logged three times over."""

    def __init__(self) -> None:
        self._ranks: dict[int | None, _Rank] = {}
        self._rank: int | None = None
        self._stack = False

    @staticmethod
    def is_one(text: str) -> bool:
        """Whether a line tells of a collective that ran out of time."""
        return ("OpType=" in text and "Watchdog caught" in text) or text.startswith("WorkNCCL(")

    @staticmethod
    def is_frame(text: str) -> bool:
        """Whether a line is a frame of such a stack, of which the head is often not quoted."""
        return (
            text.startswith("#")
            and text.endswith(tuple("0123456789"))
            and ".py:" in text
            and _FRAME.match(text) is not None
        )

    def take(self, line: str) -> bool:
        """Whether ``line`` is of these; it is kept then."""
        text = line.strip()[:_LONGEST]
        if text.startswith("#") and (match := _FRAME.match(text)) and (self._stack or match["path"].endswith(".py")):
            self._frame(match)
            return True
        self._stack = False
        if "ank" not in text and "OpType=" not in text and _STACK not in text:
            return False
        rank = _RANK.search(text)
        if rank is not None:
            self._rank = int(rank["rank"])
        if match := _WORK.search(text):
            self._work(match)
            return True
        if match := _STATUS.search(text):
            if self._rank in self._ranks:
                self._note(f"last enqueued work {match['enqueued']}, last completed {match['completed']}")
            return True
        if _STACK in text and "not found" not in text:
            self._stack = True
            return True
        return False

    def looks(self) -> tuple[ProcessDump, ...]:
        """One for each rank."""
        return tuple(_look(rank, told) for rank, told in list(self._ranks.items())[:MOST_PROCESSES])

    def _work(self, match: re.Match[str]) -> None:
        told = self._ranks.setdefault(self._rank, _Rank())
        if told.operation is None:
            told.operation = match["operation"]
            told.library = match["library"]
        seconds = f" for {int(match['ms']) / 1000:.0f} s" if match["ms"] else ""
        self._note(f"collective {match['number']}, {kept_name(match['operation'])}, did not finish{seconds}")

    def _note(self, text: str) -> None:
        told = self._ranks[self._rank]
        if text not in told.notes and len(told.notes) < 20:
            told.notes.append(text)

    def _frame(self, match: re.Match[str]) -> None:
        told = self._ranks.setdefault(self._rank, _Rank())
        if match["number"] == "0" and told.frames:
            told.frames = []
        if len(told.frames) < MOST_FRAMES:
            told.frames.append(kept_frame(match["function"], path=match["path"], line=kept_line(match["line"])))


def _look(rank: int | None, told: _Rank) -> ProcessDump:
    """The rank waits in the operation's function of its process group, called from the Python stack, where known."""
    frames = list(told.frames)
    if told.operation is not None:
        group = f"c10d::ProcessGroup{told.library}"
        frames.insert(
            0, kept_frame(f"{group}::{told.operation.lower()}", path=f"ProcessGroup{told.library}.cpp", native=True)
        )
    return ProcessDump(
        tool="watchdog",
        ranks=NO_RANKS if rank is None else ranks_in(f"rank {rank}"),
        threads=(DumpThread(name=THREAD, frames=tuple(frames), whole=bool(told.frames)),),
        notes=("told by PyTorch's collective watchdog", *told.notes),
    )
