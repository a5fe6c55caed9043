"""Stacks as a report shows them: one representative look a process, processes with the same path folded."""

from collections.abc import Sequence

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack
from sparkdiag.reporting.phrases import moment
from sparkdiag.scenario.model import Signature

_ORDER = {"worker": 0, "engine_core": 1, "api_server": 2}


class RankLook(Value):
    """One process's representative look."""

    process: ProcessInfo
    sample: StackSample
    thread: ThreadStack

    @property
    def path(self) -> tuple[tuple[str, str], ...]:
        """What two looks share when they are on the same path: functions and files, not lines."""
        return tuple((frame.function, frame.filename) for frame in self.thread.frames)


def rank_classes(observation: Observation, *, function: str | None) -> tuple[tuple[RankLook, ...], ...]:
    """Looks grouped by path, workers first. ``function`` picks the look (and the thread) in which it was seen last."""
    samples: dict[int, list[StackSample]] = {}
    for sample in observation.samples:
        samples.setdefault(sample.pid, []).append(sample)
    looks = [
        look
        for process in sorted(observation.processes, key=lambda one: (_ORDER.get(one.role, 3), one.name, one.pid))
        if (look := _look(process, samples.get(process.pid, ()), function)) is not None
    ]
    classes: dict[tuple[tuple[str, str], ...], list[RankLook]] = {}
    for look in looks:
        classes.setdefault(look.path, []).append(look)
    return tuple(tuple(members) for members in classes.values())


def _look(process: ProcessInfo, samples: Sequence[StackSample], function: str | None) -> RankLook | None:
    usable = [sample for sample in samples if sample.usable]
    for sample in reversed(usable):
        for thread in sample.threads:
            if function is not None and thread.find(function) is not None:
                return RankLook(process=process, sample=sample, thread=thread)
    for sample in reversed(usable):
        thread_of = sample.main_thread
        if thread_of is not None and thread_of.frames:
            return RankLook(process=process, sample=sample, thread=thread_of)
    return None


def frame_line(frame: Frame) -> str:
    """``_fp8_mqa_logits_torch (ops.py:41)  head_start=2 num_heads=4``."""
    values = " ".join(f"{name}={value}" for name, value in sorted(frame.locals.items()))
    where = f"{frame.function} ({frame.short_filename or frame.filename}:{frame.line})"
    return f"{where}  {values}" if values else where


def stack_text(observation: Observation, looks: Sequence[RankLook], *, most_frames: int) -> str:
    """The class's stack, innermost frame first, with the kept locals of its first member; the others' below it."""
    first, *others = looks
    frames = first.thread.frames
    lines = [f"{name_of(first)}  {moment(observation, first.sample.at_s)}, {first.sample.source}"]
    lines += [f"  {frame_line(frame)}" for frame in frames[:most_frames]]
    if len(frames) > most_frames:
        lines.append(f"  … {len(frames) - most_frames} outer frames left out")
    for other in others:
        lines.append(f"{name_of(other)}  {moment(observation, other.sample.at_s)}, the same path")
        lines += [f"  {frame_line(frame)}" for frame in other.thread.frames[:most_frames] if frame.locals]
    return "\n".join(lines)


def name_of(look: RankLook) -> str:
    return f"{look.process.name} (pid {look.process.pid})"


def top_frame(sample: StackSample, *, function: str | None) -> Frame | None:
    """The suspect function's frame where it is on a stack, else the innermost frame of the main thread."""
    if function is not None:
        for thread in sample.threads:
            found = thread.find(function)
            if found is not None:
                return found[1]
    main = sample.main_thread
    return main.frames[0] if main is not None and main.frames else None


def signature_for(frame: Frame, signatures: Sequence[Signature]) -> Signature | None:
    return next((one for one in signatures if one.function == frame.name), None)
