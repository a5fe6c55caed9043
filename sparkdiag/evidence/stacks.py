"""Stacks as sampled: innermost frame first, locals already reduced to what may be kept."""

from typing import Literal

from sparkdiag.evidence.base import Value

NOT_SAMPLED = "not sampled, by request: this run is the control without a watcher"

LocalValue = int | float | bool | str | None


class Frame(Value):
    """One Python (or native) frame."""

    function: str
    """As the tool names it; py-spy qualifies from Python 3.11 on (``Worker.execute_model``)."""
    filename: str
    short_filename: str | None = None
    line: int
    locals: dict[str, LocalValue] = {}
    """Integers, booleans and the names that the scenario lists; nothing else is ever kept (prompts and keys)."""

    @property
    def name(self) -> str:
        """The bare function name: ``Worker.execute_model`` -> ``execute_model``."""
        return self.function.rsplit(".", 1)[-1]


class ThreadStack(Value):
    """One thread's frames, innermost first."""

    thread_id: int | None = None
    os_thread_id: int | None = None
    thread_name: str | None = None
    active: bool = False
    owns_gil: bool = False
    frames: tuple[Frame, ...] = ()

    def find(self, name: str) -> tuple[int, Frame] | None:
        """Innermost frame whose bare name is ``name`` with its depth counted from the outermost frame (0)."""
        qualified = f".{name}"
        for index, frame in enumerate(self.frames):  # asked of every thread of every sample
            function = frame.function
            if function == name or function.endswith(qualified):
                return len(self.frames) - 1 - index, frame
        return None


class StackSample(Value):
    """One look at one process. Failed looks are kept too, with ``error`` and no threads."""

    pid: int
    started_s: float
    ended_s: float
    source: Literal["py-spy", "in-process"] = "py-spy"
    threads: tuple[ThreadStack, ...] = ()
    error: str | None = None
    late: bool = False
    """True when the sample took so long that it no longer says when it was true; it does not count."""

    @property
    def at_s(self) -> float:
        return (self.started_s + self.ended_s) / 2

    @property
    def usable(self) -> bool:
        return self.error is None and not self.late and bool(self.threads)

    @property
    def main_thread(self) -> ThreadStack | None:
        """The thread called MainThread, else the first one."""
        for thread in self.threads:
            if thread.thread_name == "MainThread":
                return thread
        return self.threads[0] if self.threads else None


class SamplingStats(Value):
    """What sampling itself did and cost, from the prompt's sending on."""

    taken: int = 0
    late: int = 0
    failed: int = 0
    cpu_s: float = 0.0
    """CPU seconds of the samplers: py-spy's processes, or the probe's thread inside the server."""
    own_cpu_s: float = 0.0
    """CPU seconds of sparkdiag's own process meanwhile: reading, judging, drawing."""
    observed_s: float = 0.0
    """Seconds over which both were counted."""
    cores: int = 0
    """Cores of the machine that these shares are of; 0: not known."""
    budget_share: float | None = None
    """Share of the machine that sampling may cost (``sampling.cpu_share``)."""
    planned_share: float | None = None
    """What the chosen periods come to, at the costs measured; above the budget where ``sampling.max_period_s`` keeps
    the gaps from growing further."""
    period_s: float | None = None
    """Between two looks at a process in which the model runs, as of now."""
    longest_s: float = 0.0
    mode: Literal["py-spy", "in-process", "none"] = "py-spy"
    wanted: bool = True
    """False: the run was not to be sampled, so that there are no stacks is no failure."""
    reason: str | None = None
    """Why not py-spy, where it is not."""
    remedy: str | None = None
    """What to type so that py-spy may look."""
    errors: dict[str, int] = {}

    @property
    def share(self) -> float | None:
        """Share of the machine's CPU time that looking cost, samplers and sparkdiag together."""
        machine_s = self.observed_s * self.cores
        return (self.cpu_s + self.own_cpu_s) / machine_s if machine_s > 0 else None
