# ruff: noqa: E501
"""Which thread and which signature decide, whatever the look."""

from hypothesis import given, settings
from hypothesis import strategies as st
from signature_stacks import (
    ASK,
    CORE,
    DEQUEUE,
    HELPERS,
    LOAD,
    MODEL,
    RUN,
    SERVER,
    SGL_LOOP,
    SGL_MODEL,
    WARM,
    WORKER,
    frames,
    look,
    thread,
)

from sparkdiag.diagnosing.signature_file import signature_book
from sparkdiag.diagnosing.signatures import match_look
from sparkdiag.evidence.dump import DumpFrame, DumpThread, ProcessDump

STACKS = (
    MODEL,
    RUN,
    LOAD,
    WARM,
    SGL_MODEL,
    f"{DEQUEUE} < {WORKER}",
    f"{DEQUEUE} < {ASK}",
    f"recv_pyobj (zmq/sugar/socket.py) < recv_requests (scheduler.py) < {SGL_LOOP}",
    f"select (selectors.py) < _run_once (asyncio/base_events.py) < {SERVER}",
    f"synchronize (torch/cuda/streams.py) < get_output (vllm/v1/worker/gpu_model_runner.py) < {RUN}",
    f"schedule (vllm/v1/core/sched/scheduler.py) < step (vllm/v1/engine/core.py) < {CORE}",
    f"all_reduce (torch/distributed/distributed_c10d.py) < {MODEL}",
    "handle (shop/views.py) < main (shop/app.py)",
    *HELPERS,
)
WORDS = sorted(
    {frame.function for text in STACKS for frame in frames(text)}
    | {frame.path for text in STACKS for frame in frames(text) if frame.path}
)

any_text = st.sampled_from(WORDS) | st.text(max_size=12)
any_frame = st.builds(DumpFrame, function=any_text, path=st.none() | any_text, native=st.booleans())
known = st.sampled_from(STACKS).map(frames)
any_frames = known | st.lists(any_frame, max_size=6).map(tuple)
names = st.sampled_from(["MainThread", "Thread-1", None])
any_thread = st.builds(DumpThread, name=names, frames=any_frames, owns_gil=st.booleans())
roles = st.sampled_from([None, "api_server", "engine_core", "worker", "dp_coordinator", "other"])
any_look = st.builds(ProcessDump, role=roles, threads=st.lists(any_thread, max_size=5).map(tuple))


@given(any_look)
def test_any_look_has_an_answer(given_look: ProcessDump) -> None:
    found = match_look(given_look)
    assert found.because
    assert found.next_step or found.kind == "forward"  # of which the number of looks decides what is next
    assert (found.signature is None) == (found.kind in ("forward", "helper-threads-only", "not-an-engine"))


@given(any_look, st.sampled_from(HELPERS), st.booleans())
def test_an_idle_helper_thread_changes_nothing(given_look: ProcessDump, helper: str, first: bool) -> None:
    more = DumpThread(name="Thread-9", frames=frames(helper))
    threads = (more, *given_look.threads) if first else (*given_look.threads, more)
    told = match_look(given_look)
    assert match_look(given_look.model_copy(update={"threads": threads})).kind == told.kind


@given(any_look, st.randoms(use_true_random=False))
def test_the_order_of_threads_changes_nothing(given_look: ProcessDump, random) -> None:  # type: ignore[no-untyped-def]
    threads = list(given_look.threads)
    random.shuffle(threads)
    assert match_look(given_look.model_copy(update={"threads": tuple(threads)})) == match_look(given_look)


@given(known, st.integers(1, 9999))
@settings(max_examples=30)
def test_line_numbers_decide_nothing(stack: tuple[DumpFrame, ...], line: int) -> None:
    other = tuple(frame.model_copy(update={"line": line}) for frame in stack)
    told = [match_look(ProcessDump(threads=(DumpThread(frames=each),))) for each in (stack, other)]
    assert told[0].model_copy(update={"line": None}) == told[1].model_copy(update={"line": None})


def test_the_parents_frames_of_a_forked_child_are_not_its_own() -> None:
    parent = f"start (multiprocessing/process.py) < load_model (vllm/worker/worker.py) < {RUN}"
    child = f"wait (threading.py) < serve_forever (multiprocessing/managers.py) < _launch (multiprocessing/popen_fork.py) < {parent}"
    assert match_look(look(child)).kind == "idle"


def test_the_thread_at_work_decides_where_the_main_one_rests() -> None:
    copying = "synchronize (torch/cuda/streams.py) < get_output (vllm/v1/worker/gpu_model_runner.py) < enqueue_output (vllm/v1/executor/multiproc_executor.py) < async_output_busy_loop (vllm/v1/executor/multiproc_executor.py)"
    resting = f"{DEQUEUE} < {WORKER}"
    assert match_look(look(resting, *HELPERS, role="worker")).kind == "idle"
    found = match_look(look(resting, copying, *HELPERS, role="worker"))
    assert (found.kind, found.thread) == ("gpu-wait", "Thread-1")


def test_the_output_thread_says_nothing_against_a_model_at_work() -> None:
    copying = "synchronize (torch/cuda/streams.py) < get_output (vllm/v1/worker/gpu_model_runner.py) < async_output_busy_loop (vllm/v1/executor/multiproc_executor.py)"
    found = match_look(look(f"_prepare_inputs (vllm/v1/worker/gpu_model_runner.py) < {RUN}", copying))
    assert found.kind == "forward"
    assert found.others == ()


def test_a_connectors_thread_that_waits_for_work_decides_nothing() -> None:
    fetching = "wait (threading.py) < get (queue.py) < prefetch_thread_func (sglang/srt/managers/cache_controller.py) < run (threading.py)"
    sending = "batch_transfer_sync (mooncake/transfer_engine.py) < send_kvcache (mooncake/conn.py) < transfer_worker (mooncake/conn.py)"
    resting = f"recv_pyobj (zmq/sugar/socket.py) < recv_requests (scheduler.py) < {SGL_LOOP}"
    assert match_look(look(resting, fetching)).kind == "idle"
    assert match_look(look(resting, fetching, sending)).kind == "kv-transfer"


def test_pytorchs_watchdog_thread_is_in_every_server() -> None:
    watching = "c10d::ProcessGroupNCCL::WorkNCCL::isCompleted (libtorch_cuda.so) < c10d::ProcessGroupNCCL::watchdogHandler (libtorch_cuda.so) < clone (libc.so.6)"
    assert match_look(look(f"{DEQUEUE} < {WORKER}", watching)).kind == "idle"


def test_what_is_further_in_wins_among_equals() -> None:
    capture = (
        f"capture_model (vllm/v1/worker/gpu_model_runner.py) < compile_or_warm_up_model (gpu_worker.py) < {WORKER}"
    )
    gather = f"all_gather_object (torch/distributed/distributed_c10d.py) < {capture}"
    assert match_look(look(capture)).kind == "graph-capture"
    assert match_look(look(gather)).kind == "collective-wait"


def test_the_same_queue_is_rest_in_a_worker_and_a_wait_in_the_engine_core() -> None:
    assert match_look(look(DEQUEUE, role="worker")).kind == "idle"
    assert match_look(look(DEQUEUE, role="engine_core")).kind == "queue-wait"
    assert match_look(look(f"{DEQUEUE} < {WORKER}")).healthy is None


def test_the_answer_says_what_decided_it_and_what_speaks_against() -> None:
    found = match_look(look(f"all_reduce (torch/distributed/distributed_c10d.py) < forward (linear.py) < {WARM}"))
    assert found.because == "all_reduce in torch/distributed/distributed_c10d.py, innermost, below forward"
    assert any(text.startswith("warmup: ") for text in found.others)
    assert found.waits


def test_a_named_function_of_the_model_that_no_signature_knows_is_forward() -> None:
    found = match_look(
        look(f"decorate_context (torch/utils/_contextlib.py) < rotate (vllm/model_executor/rope.py) < {MODEL}")
    )
    assert (found.kind, found.function, found.signature) == ("forward", "rotate", None)


def test_a_process_of_an_engine_that_shows_only_helpers_cannot_be_told() -> None:
    helpers = tuple(DumpThread(name=None, frames=frames(text)) for text in HELPERS)
    found = match_look(ProcessDump(title="VLLM::EngineCore", threads=(*helpers, DumpThread(name="Thread-3"))))
    assert found.kind == "helper-threads-only"
    assert match_look(ProcessDump()).kind == "helper-threads-only"
    assert match_look(ProcessDump(threads=(thread("main (shop/app.py)"),))).kind == "not-an-engine"


def test_a_very_deep_stack_is_read_in_bounded_time() -> None:
    deep = DumpThread(name="MainThread", frames=frames(MODEL) * 2000)
    assert match_look(ProcessDump(threads=(deep,))).kind == "forward"
    assert len(signature_book().rules) > 40
