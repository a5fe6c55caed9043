"""gdb: recordings of the real tool, forms that were seen in reports, and random stacks rendered and read back."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.dumps.formats import gdb
from sparkdiag.dumps.native_names import bare_native
from sparkdiag.evidence.dump import DumpThread, ProcessDump

RECORDINGS = Path(__file__).parents[2] / "recordings" / "dumps"
PYTHON = ["inner", "forward", "<listcomp>", "execute_model", "<module>"]


def read(text: str) -> tuple[ProcessDump, ...]:
    return gdb.read(text.split("\n"))


def recorded(name: str) -> tuple[ProcessDump, ...]:
    return read((RECORDINGS / name).read_text())


def functions(thread: DumpThread | None) -> list[str]:
    return [] if thread is None else [frame.function for frame in thread.frames]


def test_all_threads_natively() -> None:
    (look,) = recorded("gdb-all-bt.txt")
    assert (look.tool, look.pid) == ("gdb", 1473)
    assert [thread.os_thread_id for thread in look.threads] == [1476, 1475, 1473]
    assert [thread.name for thread in look.threads] == ["python", "python", "MainThread"]
    assert [len(thread.frames) for thread in look.threads] == [10, 18, 16]
    assert all(frame.native for thread in look.threads for frame in thread.frames)
    waits = look.threads[1].frames
    assert (waits[0].function, waits[0].path, waits[0].line) == (
        "__futex_abstimed_wait_common64",
        "./nptl/futex-internal.c",
        57,
    )
    assert waits[5].function == "PyThread_acquire_lock_timed"


def test_python_frames_of_every_thread_and_the_current_ones_only_once() -> None:
    (look,) = recorded("gdb-py-bt.txt")
    assert [thread.os_thread_id for thread in look.threads] == [1870, 1869, 1867]
    assert functions(look.main_thread) == ["sleep", *PYTHON]
    assert functions(look.threads[1]) == ["__enter__", "waiting", "run", "_bootstrap_inner", "_bootstrap"]


def test_py_bt_full_tells_integers_and_no_texts() -> None:
    (look,) = recorded("gdb-py-bt-full.txt")
    assert functions(look.main_thread) == ["sleep", *PYTHON]
    assert look.main_thread is not None
    assert look.main_thread.frames[1].locals == {
        "k_start": 512,
        "seq_len_kv": 6000,
        "use_graph": True,
        "head_start": 3,
    }
    assert "secret" not in look.model_dump_json()


def test_bt_and_py_bt_of_one_process_become_one_stack_a_thread() -> None:
    looks = recorded("gdb-bt-then-py-bt.txt")
    look = looks[0]
    assert [thread.os_thread_id for thread in look.threads] == [1870, 1869, 1867]
    assert functions(look.main_thread) == ["__clock_nanosleep", "pysleep", "time_sleep", *PYTHON]
    assert functions(look.threads[1])[6:10] == [
        "PyThread_acquire_lock_timed",
        "acquire_timed",
        "lock_PyThread_acquire_lock",
        "waiting",
    ]


def test_info_threads_names_the_threads_and_bt_full_is_of_the_current_one() -> None:
    (look,) = recorded("gdb-bt-full.txt")
    assert [thread.os_thread_id for thread in look.threads] == [1473, 1475, 1476]
    assert [thread.whole for thread in look.threads] == [True, False, False]
    assert len(look.threads[0].frames) == 16
    assert functions(look.threads[1]) == ["__futex_abstimed_wait_common64"]


REPORTED = """\
Thread 16 (Thread 0x7f083d7fe000 (LWP 1705707) "executionLoop"):
#0  0x00007f0a0c5a0d2d in syscall () from target:/lib64/libc.so.6
#1  0x00007fc4f8274bd6 in ?? ()
   from /lib64/libcudadebugger.so.1
#2  0x000014cdb53ae194 in at::native::_local_scalar_dense_cuda(at::Tensor const&)::{lambda()#1}::operator()() const \
[clone .isra.100] () from /x/lib/libtorch_cuda.so
#3  os_sched_yield_impl (module=<optimized out>) at Modules/posixmodule.c:7198
#4  0x00005555556a2b3c in _PyEval_EvalFrameDefault (tstate=<optimized out>,
    frame=<optimized out>, throwflag=<optimized out>) at Python/ceval.c:4769
#5  0x0000555555 in tensorrt_llm::plugins::AllgatherPlugin::enqueue(nvinfer1::PluginTensorDesc const*, void*) () \
from /x/libnvinfer_plugin.so
#6  tt::tt_metal::SystemMemoryManager::completion_queue_wait_front(...)
(More stack frames follow...)
"""


def test_the_forms_of_reports() -> None:
    (look,) = read(REPORTED)
    (thread,) = look.threads
    assert (thread.name, thread.os_thread_id, thread.whole) == ("executionLoop", 1705707, False)
    assert [(frame.function, frame.path, frame.line) for frame in thread.frames] == [
        ("syscall", "/lib64/libc.so.6", None),
        ("??", "/lib64/libcudadebugger.so.1", None),
        ("at::native::_local_scalar_dense_cuda", "/x/lib/libtorch_cuda.so", None),
        ("os_sched_yield_impl", "Modules/posixmodule.c", 7198),
        ("_PyEval_EvalFrameDefault", "Python/ceval.c", 4769),
        ("tensorrt_llm::plugins::AllgatherPlugin::enqueue", "/x/libnvinfer_plugin.so", None),
        ("tt::tt_metal::SystemMemoryManager::completion_queue_wait_front", None, None),
    ]


def test_a_bare_stack_and_a_bare_name_are_enough() -> None:
    (look,) = read("#0 cuStreamSynchronize () from /lib/libcuda.so.1\n#1 cudaStreamSynchronize\n")
    assert functions(look.main_thread) == ["cuStreamSynchronize", "cudaStreamSynchronize"]


def test_an_old_interpreters_frames_show_pythons_in_their_arguments() -> None:
    text = """\
#0  0x00007f in sem_wait () from /lib64/libpthread.so.0
#1  0x0000562 in PyEval_EvalFrameEx (f=Frame 0x7f81610b9df0, for file /usr/lib/python3.8/threading.py, line 302, in \
wait (self=<Condition(_lock=<thread.lock at remote 0x7f>) at remote 0x7f>, timeout=5, text='a, b=12', n=3), throwflag=0\
) at ../Python/ceval.c:3009
#2  _PyEval_EvalFrame (f=Frame 0x7f81610b9df0, for file /usr/lib/python3.8/threading.py, line 302, in wait ()) at x.h:4
#3  0x0000562 in PyEval_EvalFrameEx (f=Frame 0x7f81610ba000, for file /srv/app.py, line 9, in <module> ()) at c.c:3
"""
    (look,) = read(text)
    (thread,) = look.threads
    assert [(frame.function, frame.native) for frame in thread.frames] == [
        ("sem_wait", True),
        ("wait", False),
        ("<module>", False),
    ]
    assert thread.frames[1].locals == {"timeout": 5, "n": 3, "throwflag": 0}


def test_two_processes_of_one_paste() -> None:
    part = "Thread 1 (Thread 0x7f{0} (LWP {0})):\n#0  0x00007f in read () from /lib/libc.so.6\n#1  0x00 in _start ()\n"
    first, second = read(
        "$ gdb -p 11 -batch -ex bt\n" + part.format(11) + "[Inferior 1 (process 11) detached]\n"
        "Attaching to process 12\n" + part.format(12) + "[Inferior 1 (process 12) detached]\n"
    )
    assert [(look.pid, look.threads[0].os_thread_id) for look in (first, second)] == [(11, 11), (12, 12)]


def test_the_same_threads_again_are_another_look() -> None:
    part = 'Thread 1 (Thread 0x7f (LWP 5) "python"):\n#0  0x1 in poll ()\n#1  0x2 in PyObject_Call ()\n'
    first, second = read(part + "\n" + part.replace("poll", "write"))
    assert functions(first.main_thread)[0] == "poll"
    assert functions(second.main_thread)[0] == "write"


def test_a_stack_without_its_innermost_frames_is_not_whole() -> None:
    (look,) = read("#3  0x1 in ncclGroupEnd () from /lib/libnccl.so.2\n#4  0x2 in main ()\n")
    assert look.threads[0].whole is False


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("clock_nanosleep@GLIBC_2.2.5", "clock_nanosleep"),
        ("pthread_cond_wait@@GLIBC_2.3.2", "pthread_cond_wait"),
        ("do_futex_wait.constprop.0", "do_futex_wait"),
        ("_PyEval_EvalFrameDefault.cold", "_PyEval_EvalFrameDefault"),
        ("std::function<void (int, std::pair<a, b>)>::operator()(int) const", "std::function::operator()"),
        ("(anonymous namespace)::ncclStream(x)", "(anonymous namespace)::ncclStream"),
        ("void cub::Dispatch<float, 3>::run<(int)5>(float*)", "cub::Dispatch::run"),
        ("<unknown function>", "<unknown function>"),
        ("<module>", "<module>"),
        ("??", "??"),
    ],
)
def test_a_symbol_is_reduced_to_its_name(symbol: str, name: str) -> None:
    assert bare_native(symbol) == name


SYMBOLS = st.lists(st.text("abcdeXY_1", min_size=1, max_size=8), min_size=1, max_size=3).map("f::".join)


@given(st.lists(st.tuples(SYMBOLS, st.integers(0, 99_999), st.booleans()), min_size=1, max_size=30))
def test_what_is_rendered_is_read_back(frames: list[tuple[str, int, bool]]) -> None:
    lines = ['Thread 2 (Thread 0x7f15a44c36c0 (LWP 1475) "python"):']
    for number, (symbol, line, has_place) in enumerate(frames):
        place = f" at ./x/{number}.c:{line}" if has_place else " from /lib/libx.so.1"
        lines.append(f"#{number:<3}0x{number:016x} in {symbol} (a=1, b=0x7f <f(int)+3>, c=...){place}")
    (look,) = gdb.read(lines)
    (thread,) = look.threads
    assert [frame.function for frame in thread.frames] == [symbol for symbol, _, _ in frames]
    assert [frame.line for frame in thread.frames] == [(line or None) if place else None for _, line, place in frames]
    assert thread.whole
