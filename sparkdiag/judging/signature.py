"""Where one sample of a model-running process stands: in a scenario's suspect function, or waiting, or elsewhere."""

from dataclasses import dataclass
from typing import Literal

from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack
from sparkdiag.scenario.model import Signature, StallKind

State = Literal["suspect", "idle", "reply-wait", "collective-wait", "gpu-wait", "jit-compile", "forward", "unknown"]

_WAITS_FOR_CALL = frozenset({"acquire_read", "dequeue"})
_COLLECTIVES = frozenset(
    {
        "all_gather",
        "all_gather_into_tensor",
        "all_gatherv",
        "all_reduce",
        "all_to_all",
        "all_to_all_single",
        "barrier",
        "broadcast",
        "gather",
        "reduce_scatter",
        "reduce_scatter_tensor",
        "recv",
        "send",
    }
)
_COLLECTIVE_FILES = ("torch/distributed/", "distributed/parallel_state.py", "distributed/device_communicators/")
_GPU_WAITS = frozenset({"synchronize", "build_prefill_chunk_metadata"})
"""The second holds an ``.item()`` that waits for the GPU once a step with DCP (vLLM 0.26, mla/indexer.py)."""
_JIT_FILES = ("triton/compiler/", "triton/runtime/jit.py", "torch/_inductor/", "torch/_dynamo/", "numba/core/")
_FORWARD = frozenset({"execute_model", "forward", "_model_forward"})


@dataclass(frozen=True, slots=True)
class Sighting:
    """A suspect function found on a thread."""

    signature: Signature
    thread: ThreadStack
    depth: int
    """Counted from the outermost frame: it stays the same while the call lasts."""
    frame: Frame
    leaf: str
    """The innermost function at that moment; the suspect itself when nothing is above it."""


@dataclass(frozen=True, slots=True)
class Look:
    """One usable sample reduced to what the rules ask about."""

    pid: int
    at_s: float
    state: State
    function: str
    """The suspect where it was seen, else the innermost function that says most."""
    sighting: Sighting | None
    sample: StackSample


def _on_thread(thread: ThreadStack, signatures: tuple[Signature, ...], endings: tuple[str, ...]) -> Sighting | None:
    for index, frame in enumerate(thread.frames):
        if not frame.function.endswith(endings):  # one cheap test for nearly all frames
            continue
        for signature in signatures:
            if frame.name == signature.function:
                depth = len(thread.frames) - 1 - index
                return Sighting(
                    signature=signature, thread=thread, depth=depth, frame=frame, leaf=thread.frames[0].name
                )
    return None


def find_suspect(sample: StackSample, signatures: tuple[Signature, ...]) -> Sighting | None:
    """The innermost suspect function of the main thread, else of any other thread."""
    main = sample.main_thread
    if main is None:
        return None
    endings = tuple(signature.function for signature in signatures)
    found = _on_thread(main, signatures, endings)
    if found is not None:
        return found
    for thread in sample.threads:
        if thread is not main:
            found = _on_thread(thread, signatures, endings)
            if found is not None:
                return found
    return None


def collective_index(frames: tuple[Frame, ...]) -> int | None:
    """Index of the outermost frame that belongs to a collective near the top of the stack."""
    found = None
    for index, frame in enumerate(frames[:12]):
        if "shm_broadcast" in frame.filename:
            return None
        if frame.name in _COLLECTIVES or any(part in frame.filename for part in _COLLECTIVE_FILES):
            found = index
    return found


def _gpu_wait(sample: StackSample) -> str | None:
    """The function in which a thread waits for the GPU to hand over a step's output (async scheduling)."""
    for thread in sample.threads:
        names = [frame.name for frame in thread.frames[:4]]
        if names and names[0] == "synchronize" and "get_output" in names:
            return names[0]
    return None


def _state_of(sample: StackSample, frames: tuple[Frame, ...]) -> tuple[State, str]:
    if not frames:
        return "unknown", ""
    leaf = frames[0].name
    names = [frame.name for frame in frames[:10]]
    if any(name in _WAITS_FOR_CALL for name in names):
        if "get_response" in names:
            return "reply-wait", "get_response"
        waited_for = _gpu_wait(sample)
        return ("gpu-wait", waited_for) if waited_for else ("idle", "dequeue" if "dequeue" in names else leaf)
    collective = collective_index(frames)
    if collective is not None:
        return "collective-wait", frames[collective].name if frames[collective].name in _COLLECTIVES else next(
            (frame.name for frame in frames[: collective + 1] if frame.name in _COLLECTIVES), leaf
        )
    if leaf in _GPU_WAITS:
        return "gpu-wait", leaf
    if any(part in frame.filename for frame in frames[:25] for part in _JIT_FILES):
        return "jit-compile", leaf
    if any(frame.name in _FORWARD for frame in frames):
        return "forward", leaf
    return "unknown", leaf


def look_at(sample: StackSample, signatures: tuple[Signature, ...]) -> Look:
    """Reduce one usable sample."""
    sighting = find_suspect(sample, signatures)
    state: State
    if sighting is not None:
        state, function = "suspect", sighting.signature.function
    else:
        main = sample.main_thread
        state, function = _state_of(sample, main.frames if main else ())
    return Look(pid=sample.pid, at_s=sample.at_s, state=state, function=function, sighting=sighting, sample=sample)


def kind_of_state(state: State) -> StallKind:
    """The kind a stall gets when no signature names it."""
    match state:
        case "collective-wait" | "gpu-wait" | "jit-compile" | "forward":
            return state
        case _:
            return "unknown"
