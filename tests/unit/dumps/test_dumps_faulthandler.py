"""faulthandler's text: recordings of several Pythons, forms that were seen in reports, random dumps read back."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.dumps.formats import faulthandler
from sparkdiag.evidence.dump import DumpThread, ProcessDump

RECORDINGS = Path(__file__).parents[2] / "recordings" / "dumps"
PLAIN = ["forward", "execute_model", "<module>"]


def read(text: str) -> tuple[ProcessDump, ...]:
    return faulthandler.read(text.split("\n"))


def functions(thread: DumpThread | None) -> list[str]:
    return [] if thread is None else [frame.function for frame in thread.frames]


@pytest.mark.parametrize("name", sorted(path.name for path in RECORDINGS.glob("faulthandler-*.txt")))
def test_every_recording_shows_the_main_thread_innermost_first(name: str) -> None:
    looks = read((RECORDINGS / name).read_text())
    assert len(looks) == (2 if "signal" in name else 1)
    for look in looks:
        assert look.tool == "faulthandler"
        assert look.main_thread is not None
        assert look.main_thread.name == "MainThread"
        assert functions(look.main_thread)[-3:] == PLAIN
        others = [thread for thread in look.threads if thread is not look.main_thread]
        if "one" not in name:
            assert [functions(thread) for thread in others] == [["waiting", "run", "_bootstrap_inner", "_bootstrap"]]
            assert all(isinstance(thread.thread_id, int) for thread in look.threads)


def test_what_led_to_the_dump_is_noted() -> None:
    (crash,) = read((RECORDINGS / "faulthandler-3.11-crash.txt").read_text())
    (timer,) = read((RECORDINGS / "faulthandler-3.11-later.txt").read_text())
    assert crash.notes == ("Fatal Python error: Aborted",)
    assert timer.notes == ("Timeout (0:00:00.300000)!",)


def test_a_collection_is_the_innermost_frame() -> None:
    (look,) = read((RECORDINGS / "faulthandler-3.11-gc.txt").read_text())
    assert functions(look.main_thread)[:2] == ["Garbage-collecting", "__del__"]


# As CPython 3.14 prints it: the name that the kernel has for a thread, and the C stack of the one that crashed.
NEW = """\
Fatal Python error: Segmentation fault

Thread 0x00007f58c25be6c0 [sleeper] (most recent call first):
  File "/usr/lib/python3.14/threading.py", line 996 in run
  File "/usr/lib/python3.14/threading.py", line 1054 in _bootstrap_inner
  File "/usr/lib/python3.14/threading.py", line 1016 in _bootstrap

Current thread 0x00007f58d06bb740 [VLLM::EngineCor] (most recent call first):
  Garbage-collecting
  File "/x/core.py", line 12 in run_busy_loop
  File "/x/main.py", line 3 in <module>

Current thread's C stack trace (most recent call first):
  Binary file "/usr/lib/libpython3.14.so.1.0", at _Py_DumpStack+0x31 [0x7f58d0a3d8d1]
  Binary file "/lib64/libc.so.6" [0x7f58d0640000]

Extension modules: numpy._core._multiarray_umath, torch._C (total: 2)
Segmentation fault (core dumped)
"""


def test_names_and_the_c_stack_of_python_3_14() -> None:
    (look,) = read(NEW)
    sleeper, main = look.threads
    assert (sleeper.name, sleeper.thread_id) == ("sleeper", 0x7F58C25BE6C0)
    assert (main.name, look.title) == ("MainThread", "VLLM::EngineCore")
    assert functions(main) == ["Garbage-collecting", "run_busy_loop", "<module>"]


def test_without_indentation_with_short_frames_and_with_two_frames_in_a_line() -> None:
    text = """\
Thread 0x00007f2b33e006c0 (most recent call first):
File "/usr/local/lib/python3.12/threading.py", line 359 in wait
File "/usr/lib/queue.py", line 180 in get  File "/x/pipeline.py", line 98 in upstream_get
run (threading.py:1012)
...
"""
    (look,) = read(text)
    (thread,) = look.threads
    assert functions(thread) == ["wait", "get", "upstream_get", "run"]
    assert [frame.line for frame in thread.frames] == [359, 180, 98, 1012]
    assert thread.whole is False


def test_frames_without_any_header() -> None:
    text = 'File "/x/distributed_c10d.py", line 2050 in all_reduce\nFile "/x/linear.py", line 548 in forward\n'
    (look,) = read(text)
    assert functions(look.main_thread) == ["all_reduce", "forward"]
    assert 0.5 < faulthandler.claims(text.split("\n")) < 0.97


def test_a_cut_frame_makes_the_thread_not_whole() -> None:
    (look,) = read('Thread 0x01 (most recent call first):\n  File "a.py", line 1 in f\n  File "b.py", li')
    assert (functions(look.threads[0]), look.threads[0].whole) == (["f"], False)


def test_another_timeout_is_another_look_although_the_threads_changed() -> None:
    part = 'Timeout (0:05:00)!\nThread 0x0{} (most recent call first):\n  File "a.py", line {} in f\n\n'
    assert [look.threads[0].frames[0].line for look in read(part.format(1, 1) + part.format(2, 2))] == [1, 2]


FUNCTIONS = st.text("abcdeF_<>", min_size=1, max_size=9)
THREADS = st.lists(
    st.lists(st.tuples(FUNCTIONS, st.integers(1, 99_999)), min_size=1, max_size=9), min_size=1, max_size=5
)


@given(THREADS, st.booleans())
def test_what_is_rendered_is_read_back(threads: list[list[tuple[str, int]]], indented: bool) -> None:
    lines = ["Fatal Python error: Aborted", ""]
    for number, frames in enumerate(threads, start=0x7F00):
        lines.append(f"{'Current thread' if number == 0x7F00 else 'Thread'} 0x{number:016x} (most recent call first):")
        lines += [f'  File "/x y/{line}.py", line {line} in {name}' for name, line in frames]
        lines.append("")
    (look,) = faulthandler.read(lines if indented else [line.strip() for line in lines])
    assert [thread.thread_id for thread in look.threads] == list(range(0x7F00, 0x7F00 + len(threads)))
    for thread, frames in zip(look.threads, threads, strict=True):
        assert [(frame.function, frame.line) for frame in thread.frames] == frames
