"""Texts that people paste, made from values, for the tests of reading them back."""

from collections.abc import Sequence
from textwrap import indent

from sparkdiag.evidence.dump import DumpFrame, DumpThread, ProcessDump

ENGINE = """\
Process 840: VLLM::EngineCore
Python v3.12.3 (/usr/bin/python3.12)

Thread 840 (active+gil): "MainThread"
    MessageQueue.acquire_read (vllm/distributed/device_communicators/shm_broadcast.py:698)
    _GeneratorContextManager.__enter__ (contextlib.py:137)
    MessageQueue.dequeue (vllm/distributed/device_communicators/shm_broadcast.py:779)
    MultiprocExecutor.collective_rpc.<locals>.get_response (vllm/v1/executor/multiproc_executor.py:390)
    EngineCore.step_with_batch_queue (vllm/v1/engine/core.py:693)
    EngineCoreProc._process_engine_step (vllm/v1/engine/core.py:1403)
    EngineCoreProc.run_busy_loop (vllm/v1/engine/core.py:1364)
    EngineCoreProc.run_engine_core (vllm/v1/engine/core.py:1323)
    BaseProcess.run (multiprocessing/process.py:108)
    BaseProcess._bootstrap (multiprocessing/process.py:314)
    _main (multiprocessing/spawn.py:135)
    spawn_main (multiprocessing/spawn.py:122)
    <module> (<string>:1)
Thread 1279 (idle): "Thread-1 (process_input_sockets)"
    Poller.poll (zmq/sugar/poll.py:106)
    EngineCoreProc.process_input_sockets (vllm/v1/engine/core.py:1656)
    Thread.run (threading.py:1010)
    Thread._bootstrap_inner (threading.py:1073)
    Thread._bootstrap (threading.py:1030)
"""
LOCALS = """\
Process 2182: VLLM::Worker_TP0_DCP0
Python v3.12.3 (/usr/bin/python3.12)

Thread 2182 (active): "MainThread"
    mqa_logits_torch_loop (hopper_dcp.py:40)
        Arguments:
            q_values: <Tensor at 0x7fb3e1e5c050>
            weights: <Tensor at 0x7fb3e1e5f750>
        Locals:
            num_rows: 3276
            head_start: 49
            k_start: 5121
            clean_logits: False
            prompt: "my bank account is 12 (a.py:1)"
            hf_token: 4242
            address: 140410009294528
    WorkerProc.worker_busy_loop (vllm/v1/executor/multiproc_executor.py:999)
    WorkerProc.worker_main (vllm/v1/executor/multiproc_executor.py:892)
    <module> (<string>:1)
"""


def worker(
    rank: int, *, pid: int | None = None, leaf: str = "all_gather (vllm/distributed/parallel_state.py:167)"
) -> str:
    """A dump of a worker, as py-spy prints it."""
    pid = 1000 + rank if pid is None else pid
    return f"""\
Process {pid}: VLLM::Worker_TP{rank}
Python v3.12.3 (/usr/bin/python3.12)

Thread {pid} (active): "MainThread"
    {leaf}
    Worker.execute_model (vllm/v1/worker/gpu_worker.py:1147)
    WorkerProc.worker_busy_loop (vllm/v1/executor/multiproc_executor.py:999)
    WorkerProc.worker_main (vllm/v1/executor/multiproc_executor.py:892)
    BaseProcess._bootstrap (multiprocessing/process.py:314)
    spawn_main (multiprocessing/spawn.py:122)
    <module> (<string>:1)
Thread {pid + 5000} (idle): "WorkerAsyncOutputCopy"
    Queue.get (queue.py:171)
    Thread._bootstrap_inner (threading.py:1073)
    Thread._bootstrap (threading.py:1030)
"""


def as_text(look: ProcessDump, *, locals_too: bool = False) -> str:
    """The look as ``py-spy dump`` prints it."""
    lines = []
    if look.pid is not None:
        lines.append(f"Process {look.pid}: {look.title or ''}".rstrip())
    if look.python is not None:
        lines += [f"Python v{look.python} (/usr/bin/python3)", ""]
    for thread in look.threads:
        lines += _thread_lines(thread, locals_too=locals_too)
    return "\n".join([*lines, ""])


def _thread_lines(thread: DumpThread, *, locals_too: bool) -> list[str]:
    state = thread.state + ("+gil" if thread.owns_gil else "")
    ident = thread.os_thread_id if thread.os_thread_id is not None else f"0x{thread.thread_id:X}"
    lines = [f"Thread {ident} ({state})" + (f': "{thread.name}"' if thread.name else "")]
    for frame in thread.frames:
        lines.append(
            f"    {frame.function} ({frame.path}:{frame.line})"
            if frame.line
            else f"    {frame.function} ({frame.path})"
        )
        if locals_too and frame.locals:
            lines.append("        Locals:")
            lines += [f"            {name}: {value}" for name, value in frame.locals.items()]
    return lines


def functions(thread: DumpThread) -> list[str]:
    return [frame.function for frame in thread.frames]


def without_indent(text: str) -> str:
    return "\n".join(line.strip() for line in text.split("\n"))


def aligned(text: str) -> str:
    """Frames in two columns, as chats show them."""
    lines = []
    for line in text.split("\n"):
        function, bracket, place = line.rpartition(" (")
        is_frame = bracket and line.startswith("    ") and not line.lstrip().startswith("Thread")
        lines.append(f"{function:<70} ({place}" if is_frame else line)
    return "\n".join(lines)


def prefixed(text: str, prefix: str) -> str:
    return indent(text, prefix, lambda _line: True)


def mixed(texts: Sequence[str]) -> str:
    """The lines of several texts in turn."""
    columns = [text.split("\n") for text in texts]
    longest = max(map(len, columns))
    return "\n".join(column[row] for row in range(longest) for column in columns if row < len(column))


def stack(*frames: DumpFrame) -> tuple[DumpFrame, ...]:
    return frames
