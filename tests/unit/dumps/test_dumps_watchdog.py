"""Stacks that libraries log: recordings of the usual ways to print them, timed-out collectives, exceptions."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.dumps.formats import trace_log, watchdog
from sparkdiag.evidence.dump import DumpThread, ProcessDump

RECORDINGS = Path(__file__).parents[2] / "recordings" / "dumps"


def read(text: str) -> tuple[ProcessDump, ...]:
    return watchdog.read(text.split("\n"))


def functions(thread: DumpThread | None) -> list[str]:
    return [] if thread is None else [frame.function for frame in thread.frames]


@pytest.mark.parametrize("name", ["recipe", "format", "pytest", "threadid", "dashes"])
def test_every_way_to_print_all_threads(name: str) -> None:
    (look,) = read((RECORDINGS / f"watchdog-{name}.txt").read_text())
    assert [thread.name for thread in look.threads] == ["watchdog", "kv-events", "MainThread"]
    assert functions(look.main_thread) == ["wait", "wait", "start", "forward", "execute_model", "<module>"]
    assert functions(look.threads[1]) == ["waiting", "run", "_bootstrap_inner", "_bootstrap"]
    assert len({thread.thread_id for thread in look.threads}) == 3
    assert look.notes == ()


def test_loggings_stack_info() -> None:
    (look,) = read((RECORDINGS / "watchdog-stackinfo.txt").read_text())
    assert functions(look.main_thread) == ["dump", "run", "_bootstrap_inner", "_bootstrap"]
    assert look.notes == ()


EXCEPTION = """\
Traceback (most recent call last):
  File "/x/threads/queue.py", line 12, in get
    thread = self.pool.take(140123)
             ^^^^^^^^^^^^^^^^^^^^^^
  File "/x/shm_broadcast.py", line 675, in acquire_read
    raise TimeoutError
TimeoutError

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/x/core.py", line 1, in run_busy_loop
    self.step()
vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.
"""


def test_an_exception_is_read_and_said_to_be_one() -> None:
    (look,) = read(EXCEPTION)
    assert [functions(thread) for thread in look.threads] == [["acquire_read", "get"], ["run_busy_loop"]]
    assert look.notes[0] == f"TimeoutError: {watchdog.RAISED}"
    assert look.notes[1].startswith("vllm.v1.engine.exceptions.EngineDeadError: ")


def test_two_exceptions_are_two_looks_and_an_interrupt_is_a_look_at_where_it_stood() -> None:
    first, second = read(
        'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nKeyboardInterrupt\n' * 2
    )
    assert first.notes == second.notes == (watchdog.INTERRUPTED,)


def test_a_list_copied_innermost_first_is_turned_by_its_root() -> None:
    (look,) = read('File "a.py", line 3, in leaf\nFile "a.py", line 2, in call\nFile "a.py", line 1, in <module>\n')
    assert functions(look.main_thread) == ["leaf", "call", "<module>"]
    (look,) = read('File "a.py", line 1, in <module>\nFile "a.py", line 2, in call\nFile "a.py", line 3, in leaf\n')
    assert functions(look.main_thread) == ["leaf", "call", "<module>"]


TIMEOUTS = """\
[rank0]:[E1218 20:27:21.426 ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective operation timeout: \
WorkNCCL(SeqNum=5, OpType=_ALLGATHER_BASE, NumelIn=1, NumelOut=2, Timeout(ms)=600000) ran for 600081 milliseconds \
before timing out.
[rank3]:[E1218 20:27:21.433 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught collective operation timeout: \
WorkNCCL(SeqNum=4, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600088 milliseconds before \
timing out.
[rank3]:[E1218 20:27:21.484 ProcessGroupNCCL.cpp:2168] [PG ID 1 PG GUID 1 Rank 3]  failure detected by watchdog at \
work sequence id: 4 PG status: last enqueued work: 547, last completed work: 3
[rank3]:[E1218 20:27:21.485 ProcessGroupNCCL.cpp:667] Stack trace of the failed collective:
#0 all_reduce from /x/torch/distributed/distributed_c10d.py:2421
#1 forward from /x/vllm/model_executor/layers/linear.py:300

[rank0]:[E1218 20:27:21.486 ProcessGroupNCCL.cpp:1895] [PG ID 1 PG GUID 1 Rank 0] Process group watchdog thread \
terminated with exception: [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, \
OpType=_ALLGATHER_BASE, NumelIn=1, NumelOut=2, Timeout(ms)=600000) ran for 600081 milliseconds before timing out.
Exception raised from checkTimeout at /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:632 (most recent call \
first):
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7b99599e31b6 in /x/lib/libc10.so)
frame #1: c10d::ProcessGroupNCCL::WorkNCCL::checkTimeout(std::optional<long>) + 0x2b4 (0x7b99 in /x/libtorch_cuda.so)
"""


def test_a_collective_that_ran_out_of_time_is_a_look_at_each_rank() -> None:
    zero, three = read(TIMEOUTS)
    assert (zero.tool, zero.ranks.tp, three.ranks.tp) == ("watchdog", 0, 3)
    assert functions(zero.main_thread) == ["c10d::ProcessGroupNCCL::_allgather_base"]
    assert functions(three.main_thread) == ["c10d::ProcessGroupNCCL::allreduce", "all_reduce", "forward"]
    assert "collective 4, ALLREDUCE, did not finish for 600 s" in three.notes
    assert "last enqueued work 547, last completed 3" in three.notes
    assert zero.notes[1:] == ("collective 5, _ALLGATHER_BASE, did not finish for 600 s",)


def test_a_backtrace_of_c10_names_the_process_where_the_module_is_its_title() -> None:
    text = """\
Exception raised from query at ProcessGroup.cpp:61 (most recent call first):
frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x96 (0x7b99599e31b6 in /x/lib/libc10.so)
frame #40: _PyEval_EvalFrameDefault + 0x4b26 (0x4f2c56 in sglang::scheduler_DP10_TP10_EP10)
"""
    (look,) = read(text)
    assert look.title == "sglang::scheduler_DP10_TP10_EP10"
    assert functions(look.main_thread) == ["c10::Error::Error", "_PyEval_EvalFrameDefault"]


def test_a_trace_of_calls_ends_where_the_process_stands() -> None:
    text = """\
2024-06-03 16:53:30.748 Call to f in /x/a.py:93 from __init__ in /x/pynccl.py:101
2024-06-03 16:53:30.748 Call to g in /x/b.py:1 from f in /x/a.py:95
2024-06-03 16:53:30.748 Return from g in /x/b.py:4 to f in /x/a.py:95
2024-06-03 16:53:30.748 Call to broadcast in /x/distributed_c10d.py:1877 from f in /x/a.py:97
"""
    (look,) = trace_log.read(text.split("\n"))
    assert look.notes == (trace_log.NOTE,)
    (thread,) = look.threads
    assert [(frame.function, frame.line) for frame in thread.frames] == [
        ("broadcast", 1877),
        ("f", 97),
        ("__init__", 101),
    ]
    assert thread.whole is False


NAMES = st.text("abcdeF_", min_size=1, max_size=9)
THREADS = st.lists(st.lists(st.tuples(NAMES, st.integers(1, 99_999)), min_size=1, max_size=8), min_size=1, max_size=4)
HEADERS = st.sampled_from(
    [
        "# Thread: {name}({id})",
        "Thread {id} ({name}):",
        "~~~~ Stack of {name} ({id}) ~~~~",
        "ThreadID: {id} Name: {name}",
    ]
)


@given(THREADS, HEADERS, st.booleans())
def test_what_is_rendered_is_read_back(threads: list[list[tuple[str, int]]], header: str, blank: bool) -> None:
    lines = []
    for number, frames in enumerate(threads, start=140_000_000):
        lines.append(header.format(name=f"worker-{number}", id=number))
        for name, line in reversed(frames):
            lines += [f'  File "/x/{name}.py", line {line}, in {name}', f"    {name}(thread, 12345)"]
        lines += [""] if blank else []
    (look,) = watchdog.read(lines)
    assert [(thread.name, thread.thread_id) for thread in look.threads] == [
        (f"worker-{number}", number) for number in range(140_000_000, 140_000_000 + len(threads))
    ]
    for thread, frames in zip(look.threads, threads, strict=True):
        assert [(frame.function, frame.line) for frame in thread.frames] == frames
