"""What a vigil keeps: one capture a stall, so many and so many bytes at most, each added to until its stall ends."""

from collections.abc import Sequence

from sparkdiag.errors import SparkdiagError
from sparkdiag.evidence.base import Value
from sparkdiag.watching.patience import Label, Limits, Patience
from sparkdiag.watching.vigil_seams import Captured, CaptureSink, Evidence, OpenCapture


class Keeping:
    """Owns the captures. ``stall`` is the number of the standing moment: it changes when things move again."""

    def __init__(self, sink: CaptureSink, *, limits: Limits, patience: Patience) -> None:
        self._sink = sink
        self._limits = limits
        self._patience = patience
        self._open: OpenCapture | None = None
        self._opened_s = 0.0
        self._round_due_s = 0.0
        self._closed_bytes = 0
        self._kept: dict[Label, int] = {}
        """By label: the stall of the newest capture."""
        self._failed_stall: int | None = None
        self.captures: tuple[Captured, ...] = ()
        self.not_kept = 0

    def has(self, label: Label, *, stall: int) -> bool:
        """Whether this stall needs no capture called so: it has one, or one that says more."""
        return stall in (self._kept.get("stalled"), self._kept.get(label)) or (
            label != "stalled" and stall in self._kept.values()
        )

    def keep(self, evidence: Evidence, *, stall: int) -> tuple[Captured | None, str]:
        """The capture, or None and why there is none; problems of a capture that was made stand in the text too."""
        refusal = self._refusal()
        if not refusal:
            self.end("a capture that says more follows")
            try:
                self._open = self._sink.open(evidence)
            except (SparkdiagError, OSError) as error:
                refusal = error.message if isinstance(error, SparkdiagError) else str(error.strerror or error)
        if refusal or self._open is None:
            self._count_failure(stall)
            return None, refusal
        if self._failed_stall == stall:
            self.not_kept, self._failed_stall = self.not_kept - 1, None
        self._kept[evidence.label] = stall
        self._opened_s = evidence.found_s
        self._round_due_s = evidence.found_s + self._patience.follow_round_s
        captured = Captured(
            path=self._open.path,
            label=evidence.label,
            began_s=evidence.began_s,
            found_s=evidence.found_s,
            because=evidence.because,
        )
        self.captures = (*self.captures, captured)
        return captured, ""

    def add(self, values: Sequence[Value], *, at_s: float) -> None:
        """To the open capture, if there is one; ends it when it has had its time or its share of the disk."""
        if self._open is None:
            return
        for value in values:
            self._open.add(value)
        if at_s - self._opened_s > self._patience.follow_s:
            self.end(f"nothing had moved {self._patience.follow_s:.0f} s later")
        elif self._open.size_bytes > self._share_bytes():
            self.end("it had its share of the disk")

    def round_due(self, *, at_s: float) -> bool:
        """Whether the open capture is to get a further round of stacks; asked and answered once a round."""
        if self._open is None or at_s < self._round_due_s:
            return False
        self._round_due_s = at_s + self._patience.follow_round_s
        return True

    def end(self, ending: str, *, interrupted: bool = False) -> tuple[str, ...]:
        """Close the open capture, if there is one; returns what could not be written."""
        if self._open is None:
            return ()
        ending_capture, self._open = self._open, None
        problems = ending_capture.close(ending=ending, interrupted=interrupted)
        self._closed_bytes += ending_capture.size_bytes
        return problems

    @property
    def is_open(self) -> bool:
        """Whether a capture is being added to."""
        return self._open is not None

    def _share_bytes(self) -> float:
        return self._limits.most_bytes / max(1, self._limits.most_captures)

    def _refusal(self) -> str:
        if len(self.captures) >= self._limits.most_captures:
            return f"there are {self._limits.most_captures} captures already"
        used = self._closed_bytes + (self._open.size_bytes if self._open is not None else 0)
        if used >= self._limits.most_bytes:
            return f"the captures use {used // 2**20} MiB already"
        return ""

    def _count_failure(self, stall: int) -> None:
        if self._failed_stall != stall:
            self.not_kept, self._failed_stall = self.not_kept + 1, stall
