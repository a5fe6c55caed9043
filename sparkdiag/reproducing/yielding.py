"""While a run goes on: a server that was made to yield to samplers must not be starved by anybody else."""

from collections.abc import Callable

from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.run import ServerPriority
from sparkdiag.evidence.timeline import CpuPoint
from sparkdiag.observing.cpu import CpuReading, cpu_point, read_cpu
from sparkdiag.serving.priority import put_back_due, restore_priority


class Yielding:
    """Looks at who has the machine, and puts the server's priority back when others need it; then it stays there.

    One thread looks; ``priority`` may be read by any.
    """

    def __init__(
        self,
        root_pid: int,
        *,
        priority: ServerPriority | None,
        clock: Callable[[], float],
        note: Callable[[str, str], None],
        restore: Callable[[int], None] = restore_priority,
    ) -> None:
        self._root_pid = root_pid
        self._clock = clock
        self._note = note
        self._restore = restore
        self._before: CpuReading | None = None
        self._others: list[float] = []
        self._told = False
        self.priority = priority
        """What was done to the server's scheduling group so far."""

    def look(self, processes: tuple[ProcessInfo, ...]) -> CpuPoint | None:
        """Who had the CPU time since the look before; None the first time. Raises what ``read_cpu`` raises."""
        before = self._before
        self._before = read_cpu((process.pid for process in processes), t_s=self._clock())
        if before is None:
            return None
        nice = (self.priority.nice if self.priority is not None else None) or 0
        point = cpu_point(before, self._before, server_nice=nice)
        if point is not None and nice:
            self._others = [*self._others[-9:], point.others_share]
            if put_back_due(self._others):
                self._put_back(point)
        return point

    def _put_back(self, point: CpuPoint) -> None:
        """Tried again at the next look where it fails, told once."""
        share = f"other programs came to use {point.others_share:.0%} of this machine's CPU time"
        try:
            self._restore(self._root_pid)
        except OSError as error:
            if not self._told:
                self._told = True
                text = f"{share}, and the server's priority could not be put back ({type(error).__name__})"
                self._note("serving", f"{text}: what is slow now does not count")
            return
        text = f"the server's scheduling group was lowered for the samplers and is back at nice 0: {share}"
        self.priority = ServerPriority(nice=0, because=text)
        self._note("serving", text)
