"""Our own samples of a living server as the looks that a diagnosis is made of. Pure."""

from collections.abc import Mapping, Sequence

from sparkdiag.diagnosing.diagnose import diagnose
from sparkdiag.evidence.diagnosis import Diagnosis, Traffic
from sparkdiag.evidence.dump import DumpFrame, DumpThread, ProcessDump
from sparkdiag.evidence.processes import ProcessInfo, Ranks
from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack


def judge_samples(
    samples: Sequence[StackSample], *, processes: Sequence[ProcessInfo], traffic: Traffic | None
) -> Diagnosis:
    """What the samples of one server mean."""
    return diagnose(looks_of(samples, processes), traffic=traffic)


def looks_of(samples: Sequence[StackSample], processes: Sequence[ProcessInfo]) -> tuple[ProcessDump, ...]:
    """One look a usable sample, in the order taken; a failed or a late one shows nothing that can be counted on."""
    known = {process.pid: process for process in processes}
    return tuple(_look(sample, known) for sample in samples if sample.usable)


def _look(sample: StackSample, known: Mapping[int, ProcessInfo]) -> ProcessDump:
    # Values that were validated as they were sampled; there are thousands of frames in a minute.
    process = known.get(sample.pid)
    return ProcessDump.model_construct(
        tool="sparkdiag",
        pid=sample.pid,
        title=process.title if process is not None else None,
        role=process.role if process is not None else None,
        ranks=process.ranks if process is not None else Ranks(),
        at_s=sample.at_s,
        threads=tuple(_thread(thread) for thread in sample.threads),
    )


def _thread(thread: ThreadStack) -> DumpThread:
    return DumpThread.model_construct(
        name=thread.thread_name,
        thread_id=thread.thread_id,
        os_thread_id=thread.os_thread_id,
        state="active" if thread.active else "idle",
        owns_gil=thread.owns_gil,
        frames=tuple(_frame(frame) for frame in thread.frames),
    )


def _frame(frame: Frame) -> DumpFrame:
    return DumpFrame.model_construct(
        function=frame.function,
        path=frame.filename.replace("\\", "/"),
        line=frame.line,
        locals={name: value for name, value in frame.locals.items() if isinstance(value, int)},
    )
