"""The process tree and stacks of a living server, for a vigil: nothing runs between two rounds."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.observing.process_tree import ProcessTree, is_alive, key_of
from sparkdiag.observing.pyspy import PySpy
from sparkdiag.observing.sampling import LATE_AFTER_S
from sparkdiag.observing.titles import is_sampled
from sparkdiag.watching.vigil_seams import Round

AT_ONCE = 4
"""Dumps that run at the same time: one that hangs holds up no others, and sixteen take no core each."""


class LiveStacks:
    """Looks at the processes below some roots; once they are all gone, ``find_roots`` is asked for others.

    ``find_roots`` never raises; it answers with no root while no server is there.
    """

    def __init__(
        self,
        roots: tuple[int, ...],
        *,
        find_roots: Callable[[], tuple[int, ...]],
        pyspy: PySpy,
        late_after_s: float = LATE_AFTER_S,
    ) -> None:
        self._tree = ProcessTree(*roots)
        self._find_roots = find_roots
        self._pyspy = pyspy
        self._late_after_s = late_after_s
        self._alive: tuple[ProcessInfo, ...] = ()

    def processes(self) -> tuple[ProcessInfo, ...]:
        """The living processes."""
        self._alive = self._tree.look()
        if not self._alive:
            roots = self._find_roots()
            if roots:
                self._tree = ProcessTree(*roots)
                self._alive = self._tree.look()
        return self._alive

    def look(self) -> Round:
        """Stacks of every process that matters; bounded by py-spy's own time limit, and ended by what a signal raises.

        After that no further look is taken: py-spy was told to end.
        """
        sampled = tuple(process for process in self._alive if is_sampled(process.role))
        if not sampled:
            return Round(samples=(), cpu_s=0.0)
        before_s = time.process_time()
        pool = ThreadPoolExecutor(max_workers=min(AT_ONCE, len(sampled)), thread_name_prefix="sparkdiag-look")
        try:
            dumps = tuple(pool.map(lambda process: self._pyspy.dump(process.pid), sampled))
        except BaseException:
            self._pyspy.cancel()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
        samples = tuple(
            self._marked(dump.sample) for process, dump in zip(sampled, dumps, strict=True) if is_alive(key_of(process))
        )
        own_s = time.process_time() - before_s
        return Round(samples=samples, cpu_s=sum(dump.cpu_s for dump in dumps) + own_s)

    def _marked(self, sample: StackSample) -> StackSample:
        late = sample.ended_s - sample.started_s > self._late_after_s
        return sample.model_copy(update={"late": True}) if late else sample
