"""Every form of py-spy's output: text, JSON, recordings, screens."""

import json

import pytest

from sparkdiag.dumps.formats import pyspy_json, pyspy_raw, pyspy_text, pyspy_top
from sparkdiag.dumps.formats.pyspy_lines import told
from sparkdiag.dumps.read import read_dumps
from sparkdiag.evidence.dump import ProcessDump
from tests.unit.dumps.paste_case import ENGINE, LOCALS, functions, worker


def only(text: str) -> ProcessDump:
    pasted = read_dumps(text, source="paste")
    assert pasted.refused is None
    (look,) = pasted.looks
    return look


@pytest.mark.parametrize(
    ("line", "function", "path", "number", "native"),
    [
        ("run (a/b.py:12)", "run", "a/b.py", 12, False),
        ("f.<locals>.<lambda> (a.py:1)", "f.<locals>.<lambda>", "a.py", 1, False),
        ("<module> (<string>:1)", "<module>", "<string>", 1, False),
        ("_run_code (<frozen runpy>:88)", "_run_code", "<frozen runpy>", 88, False),
        ("(serve.py:9)", "<module>", "serve.py", 9, False),
        ("run(a.py:12)", "run", "a.py", 12, False),
        ("run (a.py)", "run", "a.py", None, False),
        ("run (C:\\x\\a.py:3)", "run", "C:/x/a.py", 3, False),
        ("run (/home/some body/a (1)/b.py:3)", "run", "/home/some body/a (1)/b.py", 3, False),
        ("run        (a.py:12)  # always here", "run", "a.py", 12, False),
        ("run (a.py:12) ← da", "run", "a.py", 12, False),
        ("0x7fb7eb57e048 (libcuda.so.580.159.04)", "0x7fb7eb57e048", "libcuda.so.580.159.04", None, True),
        ("sched_yield (libc.so.6)", "sched_yield", "libc.so.6", None, True),
        ("PyThread_acquire_lock_timed (python3.12)", "PyThread_acquire_lock_timed", "python3.12", None, True),
        ("select_poll_poll (selectmodule.c:678)", "select_poll_poll", "selectmodule.c", 678, True),
        ("at::_ops::relu_::call (libtorch_cpu.so)", "at::_ops::relu_::call", "libtorch_cpu.so", None, True),
        (
            "at::native::(anonymous namespace)::clamp(at::T&, c10::S)::{lambda()#1}::operator() const (libtorch.so)",
            "at::native::(anonymous namespace)::clamp", "libtorch.so", None, True,
        ),
        ("f<void (*)(int), (unsigned)7> (libx.so)", "f", "libx.so", None, True),
        ("PyObject_Call (sglang::scheduler_DP1_TP10)", "PyObject_Call", "sglang::scheduler_DP1_TP10", None, True),
        ("cuStreamSynchronize (libcuda)", "cuStreamSynchronize", "libcuda", None, True),
        ("0x7f139831aaa4", "0x7f139831aaa4", None, None, True),
    ],
)  # fmt: skip
def test_a_frame_in_every_form(line: str, function: str, path: str | None, number: int | None, native: bool) -> None:
    frame = told(line).frame
    assert frame is not None
    assert told(line).kind == "frame"
    assert (frame.function, frame.path, frame.line, frame.native) == (function, path, number, native)


@pytest.mark.parametrize(
    "line",
    ["I saw this (see core.py:12)", "it hangs (always)", "see above (b)", "foo", "a: 1", "https://x.y/z (link)",
     "x = f(y)", "(we tried 3:4)", "12:30 (noon)", "the crash in (libfoo.so)", "ratio (1:2)",
     "- [x] done (mostly)", "()", "( )", "f ()"],
)  # fmt: skip
def test_words_are_no_frame(line: str) -> None:
    assert told(line).kind == "other"


@pytest.mark.parametrize(
    ("line", "name", "own", "ident", "state", "gil"),
    [
        ('Thread 123 (active): "MainThread"', "MainThread", 123, None, "active", False),
        ('Thread 123 (active+gil): "MainThread"', "MainThread", 123, None, "active", True),
        ('Thread 123 (idle+gil): "x"', "x", 123, None, "idle", True),
        ("Thread 123 (idle)", None, 123, None, "idle", False),
        ('Thread 0x7F12AB (idle): "x"', "x", None, 0x7F12AB, "idle", False),
        ('Thread 0xFFFC68497C40 (idle): "MainThread"', "MainThread", None, 0xFFFC68497C40, "idle", False),
        ('Thread 123/0x7f12ab (idle): "x"', "x", 123, 0x7F12AB, "idle", False),
        ('Thread (active): "MainThread"', "MainThread", None, None, "active", False),
        ('Thread 0x... (active): "MainThread"', "MainThread", None, None, "active", False),
        ("Thread ? (idle): tqdm monitor", "tqdm monitor", None, None, "idle", False),
        ('Thread 1 (idle): "odd "quoted" (name): x"', 'odd "quoted" (name): x', 1, None, "idle", False),
        ('Thread 1 (idle): "AsyncIO Thread: default"', "AsyncIO Thread: default", 1, None, "idle", False),
        ('Thread 1 (idle): "cut of', "cut of", 1, None, "idle", False),
    ],
)
def test_a_thread_in_every_form(line: str, name: str, own: int, ident: int, state: str, gil: bool) -> None:
    head = told(line).thread
    assert head is not None
    assert tuple(head) == (name, ident, own, state, gil)


@pytest.mark.parametrize("drop", [(), ("Process",), ("Python",), ("Process", "Python")])
def test_headers_may_be_missing(drop: tuple[str, ...]) -> None:
    look = only("\n".join(line for line in ENGINE.split("\n") if not line.startswith(drop or "-")))
    assert (look.role, look.pid, len(look.threads)) == ("engine_core", 840, 2)
    assert look.title == (None if "Process" in drop else "VLLM::EngineCore")
    assert look.python == (None if "Python" in drop else "3.12.3")


def test_a_stack_alone_is_read_and_is_said_to_be_a_part() -> None:
    look = only("\n".join(ENGINE.split("\n")[4:11]))
    assert look.threads[0].name is None
    assert look.threads[0].frames[0].name == "acquire_read"
    assert look.role == "engine_core"
    assert not look.threads[0].whole


@pytest.mark.parametrize("cut", range(200, len(ENGINE) - 40, 7))
def test_a_cut_dump_keeps_what_is_whole(cut: int) -> None:
    look = only(ENGINE[:cut])
    whole = [functions(thread) for thread in only(ENGINE).threads]
    for thread, wanted in zip(look.threads, whole, strict=False):
        assert thread.frames == () or functions(thread)[:-1] == wanted[: len(thread.frames) - 1]
        for frame in thread.frames[:-1]:
            assert frame.line is not None


def test_a_frame_cut_in_its_line_number_has_no_line() -> None:
    look = only('Thread 7 (idle): "MainThread"\n    a (x/core.py:101)\n    step (x/core.py:59')
    assert [(one.name, one.path, one.line) for one in look.threads[0].frames] == [
        ("a", "x/core.py", 101), ("step", "x/core.py", None)
    ]  # fmt: skip
    assert not look.threads[0].whole
    assert "not every stack is there to its outermost frame" in look.notes


@pytest.mark.parametrize("more", ["...", "…", "[...]", "... 12 more frames ...", "(...)"])
def test_frames_left_out_by_hand_are_noted(more: str) -> None:
    look = only(
        ENGINE.replace("    MultiprocExecutor.collective_rpc", f"    {more}\n    MultiprocExecutor.collective_rpc")
    )
    assert len(look.threads[0].frames) == 13
    assert [thread.whole for thread in look.threads] == [False, True]


def test_locals_are_reduced_to_integers_and_booleans() -> None:
    frame = only(LOCALS).threads[0].frames[0]
    assert frame.locals == {"num_rows": 3276, "head_start": 49, "k_start": 5121, "clean_logits": False}


def test_values_over_several_lines_do_not_end_the_block() -> None:
    text = LOCALS.replace('prompt: "my bank', 'prompt: "first\nrun (a.py:1) of\n\n            second: 3\n  bank')
    look = only(text)
    assert [frame.name for frame in look.threads[0].frames][-3:] == ["worker_busy_loop", "worker_main", "<module>"]
    assert look.threads[0].frames[0].locals["head_start"] == 49


def test_roles_come_from_titles_and_else_from_frames() -> None:
    assert only(ENGINE.replace("VLLM::EngineCore", "python serve.py")).role == "engine_core"
    assert only(worker(0).replace("VLLM::Worker_TP0", "")).role == "worker"
    assert only(worker(0).replace("VLLM::Worker_TP0", "sglang::scheduler_PP2_TP1")).ranks.label == "PP2_TP1"
    assert only('Thread 1 (idle): "MainThread"\n    f (a.py:1)\n    <module> (a.py:2)').role is None
    forked = worker(0).replace("VLLM::Worker_TP0", "").replace(
        "    spawn_main", "    EngineCoreProc.run_engine_core (vllm/v1/engine/core.py:1)\n    spawn_main"
    )  # fmt: skip
    assert only(forked).role == "worker"


def test_no_stack_is_no_engine() -> None:
    for text in (
        "",
        "\n\n",
        "it hangs",
        "vllm:num_requests_running 1.0\n" * 50,
        "| a | b |\n|---|---|\n| 1 | 2 |\n",
        "{}",
        "[]",
    ):
        pasted = read_dumps(text, source="x")
        assert pasted.refused_kind == "not-an-engine"
        assert not pasted.looks


def test_a_tool_without_permission_is_said() -> None:
    text = "Error: Permission Denied: Try running again with elevated permissions by going 'sudo env ...'"
    assert "permission" in (read_dumps(text, source="x").refused or "")


THREADS = [
    {
        "pid": 7, "thread_id": 140, "os_thread_id": 7, "thread_name": "MainThread", "active": True, "owns_gil": False,
        "frames": [
            {"name": "f", "filename": "/usr/lib/x/a.py", "short_filename": "x/a.py", "module": None, "line": 3,
             "locals": [{"name": "k_start", "repr": "5"}, {"name": "prompt", "repr": "\"secret\""}]},
            {"name": "poll", "filename": "/lib/libc.so.6", "short_filename": "libc.so.6", "line": 0,
             "module": "/lib/libc.so.6"},
        ],
        "process_info": {"pid": 7, "command_line": "VLLM::Worker_TP1", "parent": None},
    }
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "looks"),
    [
        (json.dumps(THREADS), 1),
        (json.dumps(THREADS, indent=2), 1),
        (f"$ py-spy dump --json -p 7\n```json\n{json.dumps(THREADS, indent=2)}\n```\n", 1),
        ("\n".join([json.dumps(THREADS)] * 3), 3),
        (json.dumps([THREADS, THREADS]), 2),
        (json.dumps({"samples": [{"at_s": 1.0, "threads": THREADS}, {"at_s": 31.0, "threads": THREADS}]}), 2),
        (
            "\n".join(
                json.dumps({"pid": 7, "title": "VLLM::Worker_TP1", "started_s": n, "threads": THREADS}) for n in (0, 9)
            ),
            2,
        ),
        (json.dumps({"TP1": THREADS}), 1),
        ("\n".join(f"(Worker_TP1 pid=7) {line}" for line in json.dumps(THREADS, indent=1).split("\n")), 1),
        ("[1, 2\n[3\n" + json.dumps(THREADS), 1),
        (json.dumps([*THREADS, *THREADS])[:-200], 1),
    ],
)
def test_json_in_every_wrapping(text: str, looks: int) -> None:
    pasted = read_dumps(text, source="x")
    assert pasted.refused is None
    assert len(pasted.looks) == looks
    for look in pasted.looks:
        assert (look.tool, look.pid, look.title, look.role, look.ranks.label) == (
            "py-spy json", 7, "VLLM::Worker_TP1", "worker", "TP1"
        )  # fmt: skip
        first, second = look.threads[0].frames
        assert (first.function, first.path, first.line, first.locals) == ("f", "x/a.py", 3, {"k_start": 5})
        assert (second.path, second.line, second.native) == ("libc.so.6", None, True)


def test_json_of_several_moments_has_its_times() -> None:
    text = "\n".join(json.dumps({"pid": 7, "started_s": n, "threads": THREADS}) for n in (10, 40))
    assert [look.at_s for look in read_dumps(text, source="x").looks] == [10, 40]


def test_json_that_ends_in_the_middle_says_so() -> None:
    look = only(json.dumps([*THREADS, *THREADS])[:-200])
    assert "the JSON ends in the middle" in look.notes[-1]


def test_json_with_anything_in_it_is_no_error() -> None:
    odd = [
        {
            "frames": [{"name": 1, "line": "x", "locals": [1, {"name": None}]}, 3],
            "pid": "x",
            "os_thread_id": -1,
            "thread_name": 2,
        }
    ]
    (look,) = pyspy_json.read([json.dumps(odd)])
    assert look.pid is None
    assert look.threads[0].frames[0].function == "?"


RAW = """\
process 12:"python -c 'a;b' serve";thread (12): MainThread;<module> (serve.py:1);main (serve.py:9);f (a.py:2) 17
process 12:"python -c 'a;b' serve";thread (12): MainThread;<module> (serve.py:1);main (serve.py:9);g (a.py:3) 80
process 13:"VLLM::Worker_TP1";thread (0x7F0011223344): Thread-1 (x);Thread._bootstrap (threading.py:1030);run (a.py:1) 3
"""


def test_a_recording_is_a_look_a_process_with_its_heaviest_stack_first() -> None:
    one, two = read_dumps(RAW, source="raw.txt").looks
    assert (one.tool, one.pid, one.title) == ("py-spy raw", 12, "python -c 'a;b' serve")
    assert [(functions(thread), thread.samples, thread.name) for thread in one.threads] == [
        (["g", "main", "<module>"], 80, "MainThread"), (["f", "main", "<module>"], 17, "MainThread")
    ]  # fmt: skip
    assert (two.role, two.ranks.label, two.threads[0].thread_id) == ("worker", "TP1", 0x7F0011223344)


def test_a_recording_without_processes_and_threads() -> None:
    look = only("<module> (a.py:1) 2\n<module> (a.py:1);f (a.py:2) 3\n<module> (a.py:1);f (a.py:2) 4\n")
    assert [(functions(thread), thread.samples) for thread in look.threads] == [
        (["f", "<module>"], 7),
        (["<module>"], 2),
    ]


TOP = """\
Collecting samples from 'VLLM::Worker_TP1' (python v3.11.7)
Total Samples 1200
GIL: 49.00%, Active: 100.00%, Threads: 5

  %Own   %Total  OwnTime  TotalTime  Function (filename)

 49.00%  49.00%   10.20s    10.20s   sched_yield (vllm/distributed/utils.py)
 30.00% 100.00%    6.20s    20.40s   acquire_read (shm_broadcast.py:12)
  0.00% 100.00%   0.000s    20.40s   worker_busy_loop (multiproc_executor.py)
"""


@pytest.mark.parametrize(
    "text",
    [TOP, " ".join(TOP.split("\n")), TOP.replace("  ", "\t"), "\x1b[H" + TOP.replace("%Own", "\x1b[7m%Own\x1b[0m") * 2],
)
def test_a_screen_of_top(text: str) -> None:
    look = only(text)
    assert (look.tool, look.title, look.python, look.role) == ("py-spy top", "VLLM::Worker_TP1", "3.11.7", "worker")
    assert [(one.name, one.line) for one in look.threads[0].frames] == [
        ("sched_yield", None), ("acquire_read", 12), ("worker_busy_loop", None)
    ]  # fmt: skip
    assert look.threads[0].samples == 1200
    assert not look.threads[0].whole
    assert "not stacks" in look.notes[0]


@pytest.mark.parametrize("module", [pyspy_json, pyspy_raw, pyspy_text, pyspy_top])
def test_every_format_claims_its_own_and_not_the_others(module: object) -> None:
    texts = {pyspy_json: json.dumps(THREADS), pyspy_raw: RAW, pyspy_text: ENGINE, pyspy_top: TOP}
    sure = {one: module.claims(text.split("\n")) for one, text in texts.items()}  # type: ignore[attr-defined]
    assert max(sure, key=lambda one: sure[one]) is module
    assert sure[module] > 0.9
    assert module.claims(["it hangs", "", "please help"]) == 0  # type: ignore[attr-defined]
