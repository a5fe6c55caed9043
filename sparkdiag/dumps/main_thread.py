"""Which thread of a dump is the main one, where the tool prints no Python names of threads. Pure."""

from collections.abc import Sequence

from sparkdiag.evidence.dump import DumpFrame, DumpThread

MAIN = "MainThread"
_ROOTS = frozenset({"<module>", "_run_module_as_main", "spawn_main"})
_NATIVE_ROOTS = frozenset({"_start", "main", "Py_BytesMain", "Py_RunMain", "Py_Main", "__libc_start_main_impl"})
_COMM_CHARACTERS = 15
_TITLES = (
    "VLLM::EngineCore",
    "VLLM::DPCoordinator",
    "VLLM::VllmWorker",
    "VLLM::Worker",
    "sglang::scheduler",
    "sglang::detokenizer",
    "sglang::data_parallel_controller",
)
_PROGRAMS = ("python", "pt_main_thread", "pytest", "ipython", "uvicorn", "gunicorn", "vllm", "bash", "sh")


def with_main(threads: Sequence[DumpThread]) -> tuple[DumpThread, ...]:
    """``threads`` with the one that began at the program's start called MainThread, where exactly one did."""
    if any(thread.name == MAIN for thread in threads):
        return tuple(threads)
    mains = [index for index, thread in enumerate(threads) if is_main(thread.frames)]
    if len(mains) != 1:
        return tuple(threads)
    return tuple(
        thread.model_copy(update={"name": MAIN}) if index == mains[0] else thread
        for index, thread in enumerate(threads)
    )


def is_main(frames: Sequence[DumpFrame]) -> bool:
    """Whether the stack begins where a program does, and not where a thread does."""
    for frame in reversed(frames):
        if not frame.native:
            return frame.name in _ROOTS
        if frame.function in _NATIVE_ROOTS:
            return True
    return False


def title_in(comm: str | None) -> str | None:
    """The process's title, of which a thread's kernel name holds the first 15 characters; None for a program's name.
    What it was cut from is put back, where it can be known: of a worker's ranks nothing is left."""
    if comm is None or comm.startswith(_PROGRAMS) or comm == MAIN:
        return None
    if len(comm) < _COMM_CHARACTERS:
        return comm
    return next((title for title in _TITLES if title.startswith(comm) or comm.startswith(title + "_")), comm)
