"""pystack's text: recordings of the real tool, what people paste of it, and random threads rendered and read back."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.dumps.formats import pystack
from sparkdiag.evidence.dump import ProcessDump

RECORDINGS = Path(__file__).parents[2] / "recordings" / "dumps"


def read(text: str) -> tuple[ProcessDump, ...]:
    return pystack.read(text.split("\n"))


def only(name: str) -> ProcessDump:
    (look,) = read((RECORDINGS / name).read_text())
    return look


def names(look: ProcessDump) -> list[str]:
    main = look.main_thread
    return [] if main is None else [frame.function for frame in main.frames]


@pytest.mark.parametrize("name", sorted(path.name for path in RECORDINGS.glob("pystack-*.txt")))
def test_every_recording_is_one_look_with_its_three_threads_innermost_first(name: str) -> None:
    look = only(name)
    assert look.tool == "pystack"
    assert [len(thread.frames) > 2 for thread in look.threads] == [True] * 3
    assert look.main_thread is not None
    python = [frame.function for frame in look.main_thread.frames if not frame.native]
    assert python == ["inner", "forward", "<listcomp>", "execute_model", "<module>"]
    assert look.pid == look.main_thread.os_thread_id, "on Linux the main thread's id is the process's"
    assert look.main_thread.name == "MainThread"
    assert all(thread.whole for thread in look.threads)


def test_of_locals_integers_and_booleans_are_kept_and_texts_are_not() -> None:
    look = only("pystack-locals.txt")
    assert look.main_thread is not None
    inner, forward = look.main_thread.frames[:2]
    assert inner.locals == {"seq_len_kv": 6000, "use_graph": True, "k_start": 512, "head_start": 3}
    assert forward.locals == {"layer": 0}
    assert "secret" not in look.model_dump_json()


def test_native_frames_carry_their_bare_name_and_where_it_is_known_their_place() -> None:
    look = only("pystack-native-all.txt")
    waiting = look.threads[1].frames
    assert (waiting[0].function, waiting[0].path, waiting[0].line) == (
        "__futex_abstimed_wait_common64",
        "./nptl/futex-internal.c",
        57,
    )
    lock = next(frame for frame in waiting if frame.function == "PyThread_acquire_lock_timed")
    assert (lock.path, lock.line, lock.native) == ("/usr/bin/python3.11", None, True)
    assert next(frame for frame in waiting if frame.function == "waiting").native is False


def test_a_core_files_header_tells_the_process() -> None:
    look = only("pystack-core.txt")
    assert (look.pid, look.title) == (1473, "ps/bin/python")
    assert "from a core file" in look.notes
    assert any("SIGSTOP" in note for note in look.notes)


TWO_COMMANDS = """\
[root@node-2 /]# pystack remote 31444
Traceback for thread 32466 (ray::Integrated) [] (most recent call last):
    (Python) File "/usr/lib/python3.10/threading.py", line 973, in _bootstrap
        self._bootstrap_inner()

Traceback for thread 31444 (ray::Integrated) [Has the GIL] (most recent call last):
    (Python) File "/x/ray/_private/workers/default_worker.py", line 297, in <module>
        worker.main_loop()
    (Python) File "/x/worker.py", line 306, in generate_sequences
        while self.all_consumed(stage, use_vllm=True) > 0:

[root@node-2 /]# pystack remote 31444
Traceback for thread 31444 (ray::Integrated) [] (most recent call last):
    (Python) File "/x/ray/_private/workers/default_worker.py", line 297, in <module>
        worker.main_loop()
    (Python) File "/x/torch/distributed/distributed_c10d.py", line 2421, in broadcast
        work = group.broadcast([tensor], opts)
"""


def test_a_command_typed_again_is_another_look_at_the_same_process() -> None:
    first, second = read(TWO_COMMANDS)
    assert (first.pid, second.pid) == (31444, 31444)
    assert (first.title, second.title) == ("ray::Integrated", "ray::Integrated")
    assert names(first)[0] == "generate_sequences"
    assert names(second)[0] == "broadcast"
    assert first.main_thread is not None
    assert first.main_thread.owns_gil


def test_a_thread_that_comes_again_begins_another_look() -> None:
    one = 'Traceback for thread 7 [] (most recent call last):\n    (Python) File "a.py", line 1, in <module>\n'
    assert len(read(one + "\n" + one)) == 2


def test_the_kernels_name_of_a_process_is_completed() -> None:
    text = (
        "Traceback for thread 7 (VLLM::EngineCor) [Garbage collecting] (most recent call last):\n"
        '    (Python) File "a.py", line 1, in <module>\n'
    )
    (look,) = read(text)
    assert look.title == "VLLM::EngineCore"
    assert names(look) == ["Garbage-collecting", "<module>"]


def test_sub_interpreters_and_names_with_brackets() -> None:
    text = """\
Traceback for thread 314561 (Thread-1 (launc) (most recent call last):
  In the main interpreter []
    (Python) File "/usr/lib/python3.14/threading.py", line 1044, in _bootstrap
        self._bootstrap_inner()
  In interpreter 1 [Has the GIL]
    (Python) File "<script>", line 1, in <module>
"""
    (look,) = read(text)
    (thread,) = look.threads
    assert (thread.name, thread.owns_gil) == ("Thread-1 (launc", True)
    assert [frame.function for frame in thread.frames] == ["<module>", "_bootstrap"]


def test_without_indentation_and_cut_in_the_middle_of_a_frame() -> None:
    text = """\
Traceback for thread 5 (python) [] (most recent call last):
(Python) File "m.py", line 9, in <module>
Locals:
k_start: 7
(Python) File "m.py", li"""
    (look,) = read(text)
    (thread,) = look.threads
    assert thread.whole is False
    assert [(frame.function, frame.locals) for frame in thread.frames] == [("<module>", {"k_start": 7})]


def test_an_empty_stack_is_a_thread_without_frames() -> None:
    (look,) = read("The frame stack for thread 12 is empty")
    assert [(thread.os_thread_id, thread.frames) for thread in look.threads] == [(12, ())]


IDENTIFIERS = st.text("abcde_", min_size=1, max_size=8)
FRAMES = st.lists(
    st.tuples(IDENTIFIERS, st.integers(1, 99_999), st.dictionaries(IDENTIFIERS, st.integers(-999, 10**9), max_size=2)),
    min_size=1,
    max_size=8,
)


@given(st.lists(FRAMES, min_size=1, max_size=3), st.booleans())
def test_what_is_rendered_is_read_back(threads: list[list[tuple[str, int, dict[str, int]]]], indented: bool) -> None:
    lines = []
    for number, frames in enumerate(threads, start=100):
        lines.append(f"Traceback for thread {number} (name-{number}) [] (most recent call last):")
        for function, line, values in reversed(frames):
            lines += [f'    (Python) File "/x/{function}.py", line {line}, in {function}', f"        {function}()"]
            lines += ["      Locals:", *(f"        {name}: {value}" for name, value in values.items())][
                : 9 * len(values)
            ]
        lines.append("")
    (look,) = pystack.read(lines if indented else [line.strip() for line in lines])
    assert [thread.os_thread_id for thread in look.threads] == list(range(100, 100 + len(threads)))
    for thread, frames in zip(look.threads, threads, strict=True):
        assert [(frame.function, frame.line) for frame in thread.frames] == [(name, line) for name, line, _ in frames]
        for frame, (_name, _line, values) in zip(thread.frames, frames, strict=True):
            assert set(frame.locals.items()) <= set(values.items())
