"""What a vigil knows at any moment: what the server says of itself, who lives, and what the last minutes showed."""

from collections import deque

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.timeline import KvCapacity, MetricPoint, ProcessesEvent
from sparkdiag.observing.titles import is_sampled
from sparkdiag.watching.patience import Patience
from sparkdiag.watching.signs import Seen, after_point, after_tree
from sparkdiag.watching.vigil_seams import Clock, MetricsSource, StackSource

MOST_POINTS = 2000
"""Kept, whatever the patience says."""


class Lookout:
    """Asks the sources when it is time, and remembers a bounded past."""

    def __init__(
        self, *, metrics: MetricsSource | None, stacks: StackSource | None, clock: Clock, patience: Patience
    ) -> None:
        self._metrics = metrics
        self._stacks = stacks
        self._clock = clock
        self._patience = patience
        self._history: deque[MetricPoint] = deque(maxlen=MOST_POINTS)
        self._tree_due_s = float("-inf")
        self.seen = Seen()
        self.kv_capacity: KvCapacity | None = None
        self.processes: tuple[ProcessInfo, ...] = ()

    @property
    def history(self) -> tuple[MetricPoint, ...]:
        """What was told in the last ``history_s`` seconds, oldest first."""
        return tuple(self._history)

    @property
    def tells(self) -> bool:
        """Whether the server says anything of its requests, or once did: else only stacks can show a stall."""
        return self._metrics is not None and (self.seen.counters is not None or self.seen.failures > 0)

    def poll(self) -> tuple[Value, ...]:
        """Ask the server, and now and then who lives; what was learnt, for whoever records it."""
        learnt: list[Value] = []
        if self._metrics is not None:
            point, capacity = self._metrics.read()
            self.seen = after_point(self.seen, point, self._patience)
            self.kv_capacity = capacity or self.kv_capacity
            self._keep(point)
            learnt.append(point)
        learnt += self._tree()
        return tuple(learnt)

    def _keep(self, point: MetricPoint) -> None:
        if self._history and point.t_s < self._history[-1].t_s:
            self._history.clear()  # the clock was set back
        self._history.append(point)
        while point.t_s - self._history[0].t_s > self._patience.history_s:
            self._history.popleft()

    def _tree(self) -> list[Value]:
        now_s = self._clock.now_s()
        # A server that stops answering may be gone: that is to be known before it is looked at closer.
        due = now_s >= self._tree_due_s or self.seen.failures in (1, self._patience.failures_in_a_row)
        if self._stacks is None or not due:
            return []
        self._tree_due_s = now_s + self._patience.tree_every_s
        before, self.processes = self.processes, self._stacks.processes()
        self.seen = after_tree(
            self.seen, (process for process in self.processes if is_sampled(process.role)), at_s=now_s
        )
        return [ProcessesEvent(t_s=now_s, processes=self.processes)] if self.processes != before else []
