# ruff: noqa: E501
"""Short ways to write looks for the tests of the signatures."""

from sparkdiag.evidence.dump import DumpFrame, DumpThread, ProcessDump
from sparkdiag.evidence.processes import Role


def frames(text: str) -> tuple[DumpFrame, ...]:
    """``all_reduce (torch/distributed/distributed_c10d.py) < forward (linear.py)``, innermost first."""
    return tuple(_frame(part.strip()) for part in text.split(" < "))


def _frame(text: str) -> DumpFrame:
    function, _, where = text.partition(" (")
    path = where.removesuffix(")") or None
    native = "::" in function or bool(path and ".py" not in path and not path.startswith("<"))
    return DumpFrame(function=function, path=path, line=1 if path else None, native=native)


def thread(text: str, *, name: str | None = "MainThread") -> DumpThread:
    return DumpThread(name=name, frames=frames(text))


def look(text: str, *others: str, role: Role | None = None) -> ProcessDump:
    """A main thread and other threads, named by number."""
    rest = tuple(thread(other, name=f"Thread-{number}") for number, other in enumerate(others, 1))
    return ProcessDump(role=role, threads=(thread(text), *rest))


TQDM = "wait (threading.py) < wait (threading.py) < run (tqdm/_monitor.py) < _bootstrap_inner (threading.py)"
INDUCTOR = "_recv_msg (torch/_inductor/compile_worker/subproc_pool.py) < _read_thread (torch/_inductor/compile_worker/subproc_pool.py) < run (threading.py) < _bootstrap_inner (threading.py)"
POOL = "_worker (concurrent/futures/thread.py) < run (threading.py) < _bootstrap_inner (threading.py) < _bootstrap (threading.py)"
INPUTS = "poll (zmq/sugar/poll.py) < process_input_sockets (vllm/v1/engine/core.py) < run (threading.py) < _bootstrap_inner (threading.py)"
OUTPUTS = "wait (threading.py) < get (queue.py) < process_output_sockets (vllm/v1/engine/core.py) < run (threading.py)"
PROMETHEUS = (
    "select (selectors.py) < serve_forever (socketserver.py) < run (threading.py) < _bootstrap_inner (threading.py)"
)
NCCL_WATCHDOG = "pthread_cond_timedwait (libc.so.6) < c10d::ProcessGroupNCCL::Watchdog::runLoop (libtorch_cuda.so) < clone3 (libc.so.6)"
HELPERS = (TQDM, INDUCTOR, POOL, INPUTS, OUTPUTS, PROMETHEUS, NCCL_WATCHDOG)

WORKER = "worker_busy_loop (vllm/v1/executor/multiproc_executor.py) < worker_main (vllm/v1/executor/multiproc_executor.py) < run (multiprocessing/process.py)"
RUN = f"execute_model (vllm/v1/worker/gpu_model_runner.py) < decorate_context (torch/utils/_contextlib.py) < execute_model (vllm/v1/worker/gpu_worker.py) < {WORKER}"
MODEL = f"forward (vllm/model_executor/models/llama.py) < _call_impl (torch/nn/modules/module.py) < _model_forward (vllm/v1/worker/gpu_model_runner.py) < {RUN}"
CORE = "_process_engine_step (vllm/v1/engine/core.py) < run_busy_loop (vllm/v1/engine/core.py) < run_engine_core (vllm/v1/engine/core.py)"
ASK = f"get_response (vllm/v1/executor/multiproc_executor.py) < collective_rpc (vllm/v1/executor/multiproc_executor.py) < execute_model (vllm/v1/executor/multiproc_executor.py) < step (vllm/v1/engine/core.py) < {CORE}"
DEQUEUE = "sched_yield (vllm/distributed/utils.py) < wait (vllm/distributed/device_communicators/shm_broadcast.py) < acquire_read (vllm/distributed/device_communicators/shm_broadcast.py) < dequeue (vllm/distributed/device_communicators/shm_broadcast.py)"
SGL = "run_batch (sglang/srt/managers/scheduler.py) < event_loop_overlap (sglang/srt/managers/scheduler.py) < run_scheduler_process (sglang/srt/managers/scheduler.py)"
SGL_MODEL = f"forward (sglang/srt/models/deepseek_v2.py) < forward_extend (sglang/srt/model_executor/model_runner.py) < forward_batch_generation (sglang/srt/managers/tp_worker.py) < {SGL}"
SGL_LOOP = "event_loop_normal (scheduler.py) < run_scheduler_process (scheduler.py)"
SERVER = "run (asyncio/runners.py) < run (uvloop/__init__.py) < run_server (vllm/entrypoints/openai/api_server.py)"
LOAD = "load_model (vllm/v1/worker/gpu_model_runner.py) < load_model (vllm/v1/worker/gpu_worker.py) < init_worker (vllm/v1/executor/multiproc_executor.py) < worker_main (vllm/v1/executor/multiproc_executor.py)"
WARM = f"_dummy_run (vllm/v1/worker/gpu_model_runner.py) < profile_run (vllm/v1/worker/gpu_model_runner.py) < determine_available_memory (vllm/v1/worker/gpu_worker.py) < {WORKER}"
