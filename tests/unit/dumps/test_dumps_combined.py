"""Several formats in one paste, and each format in everything that people paste it in: nothing is lost or mixed."""

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.dumps.formats import faulthandler, gdb, pyspy_text, pystack, watchdog
from sparkdiag.dumps.read import read_dumps
from sparkdiag.evidence.dump import ProcessDump

RECORDINGS = Path(__file__).parents[2] / "recordings"
READERS: dict[str, Callable[[Sequence[str]], tuple[ProcessDump, ...]]] = {
    "pystack": pystack.read,
    "gdb": gdb.read,
    "faulthandler": faulthandler.read,
    "watchdog": watchdog.read,
}
NAMES = sorted(path.name for path in (RECORDINGS / "dumps").glob("*.txt"))
MIXED = (
    "pystack-locals.txt",
    "pystack-native-all.txt",
    "gdb-all-bt.txt",
    "gdb-py-bt.txt",
    "faulthandler-3.11-crash.txt",
    "faulthandler-3.11-signal.txt",
    "faulthandler-3.11-one.txt",
    "watchdog-recipe.txt",
    "watchdog-format.txt",
    "watchdog-pytest.txt",
    "dcp2slow-worker0.txt",
    "dcp2slow-engine.txt",
)

Told = list[tuple[str, list[tuple[str | None, list[str]]]]]


def text_of(name: str) -> str:
    folder = "h200" if name.startswith("dcp") else "dumps"
    return (RECORDINGS / folder / name).read_text()


def told(looks: Sequence[ProcessDump]) -> Told:
    return [
        (look.tool, [(thread.name, [frame.function for frame in thread.frames]) for thread in look.threads])
        for look in looks
    ]


def alone(name: str) -> Told:
    reader = pyspy_text.read if name.startswith("dcp") else READERS[name.split("-")[0]]
    return told(reader(text_of(name).split("\n")))


def lines_as(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(map(change, text.split("\n")))


PASTED: dict[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "in a fence": lambda text: f"Here it is:\n```text\n{text}\n```\nthanks\n",
    "in details": lambda text: f"<details><summary>dump</summary>\n\n```\n{text}\n```\n\n</details>\n",
    "with CRLF": lambda text: text.replace("\n", "\r\n"),
    "quoted": lines_as("> {}".format),
    "from compose": lines_as("vllm-1  | {}".format),
    "from vLLM": lines_as("(EngineCore_DP0 pid=123) {}".format),
    "from vLLM's logger": lines_as("(EngineCore_DP0 pid=123) ERROR 10-20 03:20:50 [core.py:720] {}".format),
    "from Kubernetes": lines_as("2025-05-16T13:12:16.645427617Z stderr F {}".format),
    "from a journal": lines_as("Dec 19 02:07:16 s-a60003 bash[2211352]: {}".format),
    "from torchrun": lines_as("[rank3]: {}".format),
    "coloured": lines_as("\x1b[36m{}\x1b[0m".format),
    "without indentation": lines_as(str.strip),
}
BETWEEN = {
    "blank": "\n\n",
    "nothing": "\n",
    "rule": "\n---------- next ----------\n",
    "fence": "\n```\n\nand this one:\n\n```\n",
    "heading": "\n### Worker_TP1\n\n",
}


@pytest.mark.parametrize("how", PASTED)
def test_however_it_is_pasted(how: str) -> None:
    for name in NAMES:
        read = read_dumps(PASTED[how](text_of(name)), source="pasted")
        assert told(read.looks) == alone(name), name


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("first", MIXED)
def test_two_formats_in_one_paste(first: str, between: str) -> None:
    for second in MIXED:
        read = read_dumps(text_of(first) + BETWEEN[between] + text_of(second), source="pasted")
        assert told(read.looks) == alone(first) + alone(second), second


@given(st.sampled_from(list(product(MIXED[:-2], MIXED[:-2]))), st.sampled_from(sorted(PASTED)), st.integers(1, 2500))
def test_a_cut_end_takes_only_what_was_cut(pair: tuple[str, str], how: str, cut: int) -> None:
    """Cut in the middle of the second: what the first shows stays, and of the second nothing is made up."""
    first, second = (text_of(name) for name in pair)
    second = second[: max(len(second) - cut, 0)]
    read = read_dumps(PASTED[how](f"{first}\n\n### Worker_TP1\n\n{second}"), source="pasted")
    looks, whole = told(read.looks), alone(pair[0])
    assert looks[: len(whole)] == whole
    possible = {function for _, threads in alone(pair[1]) for _, frames in threads for function in frames}
    for _, threads in looks[len(whole) :]:
        for _, frames in threads:
            shown = frames[:-1] if frames else []
            assert possible.issuperset(shown) or possible.issuperset(frames[1:])


@pytest.mark.parametrize(
    "name", ["pystack-plain.txt", "gdb-all-bt.txt", "faulthandler-3.11-one.txt", "watchdog-pytest.txt"]
)
@pytest.mark.parametrize("moment", ["Mon Nov 30 19:22:{:02} UTC 2026", "2026-11-30T19:22:{:02}+00:00", "19:22:{:02}"])
def test_a_loop_with_date_between_gives_every_look_its_moment(name: str, moment: str) -> None:
    """``for i in 1 2 3; do date; pystack remote 12; sleep 10; done``, as people watch a server that hangs."""
    text = "".join(f"{moment.format(second)}\n{text_of(name)}" for second in (3, 13, 23))
    looks = read_dumps(text, source="pasted").looks
    assert told(looks) == alone(name) * 3
    first = looks[0].at_s
    assert first is not None
    assert [None if look.at_s is None else look.at_s - first for look in looks] == [0, 10, 20]


def test_looks_whose_moment_is_not_told_have_none() -> None:
    """The signal's dump twice in one log: the stamp above the first is not the second's."""
    text = "2026-11-30 19:22:03 INFO waiting\n" + text_of("faulthandler-3.11-signal.txt")
    assert [look.at_s is None for look in read_dumps(text, source="pasted").looks] == [False, True]


TORN = '''\
127"/x/sglang/srt/utils/watchdog.py in   File , line 00007e976b9fa640/x/watchdog.py" in Thread 0x_bootstrap"973" \
(most recent call first):
/x/sglang/srt/utils/watchdog.py_watchdog_thread00007f542a3fa640
", line  in , line
 (most recent call first):
  File 147
, line _bootstrap127  File " in   File /x/sglang/srt/utils/watchdog.py_watchdog_onceThread 0x
 in  in "_watchdog_thread""00007e7907dfb640  File
"""", line 147  File  (most recent call first):
  File , line , line /usr/lib/python3.10/threading.py147953 in  in "  File "127" in _watchdog_once_watchdog_once
'''


def test_lines_torn_into_each_other_are_garbled_and_no_stack_is_made_of_them() -> None:
    read = read_dumps(TORN, source="pasted")
    assert (read.looks, read.refused_kind) == ((), "garbled")


SERVER_LOG = """\
[2026-07-07 07:11:00 TP0] Decode batch, #running-req: 1, #token: 2048, token usage: 0.00
[2026-07-07 07:20:43 TP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/scheduler.py", line 4270, in run_scheduler_process
    scheduler.run_event_loop()
  File "/x/scheduler.py", line 1571, in event_loop_overlap
    batch_result = self.run_batch(batch)
                   ^^^^^^^^^^^^^^^^^^^^^
RuntimeError: The Inner error is reported as above.
Since the operator is called asynchronously, the stacktrace may be inaccurate.
Fatal Python error: Aborted

Thread 0x0000ffff7f6ad060 (most recent call first):
  File "/usr/lib/python3.11/selectors.py", line 415 in select
  File "/x/util.py", line 63 in finalize  File "/x/route.py", line 219 in finalize
  File "<string>", line 1 in <module>


[2026-07-07 07:20:50] Pyspy dump for PID 163685 (py-spy dump --native --pid 163685):
Process 163685: sglang::scheduler_TP0
Python v3.11.14 (/usr/local/bin/python3.11)

Thread 163685 (idle): "MainThread"
    at::_ops::copy_::call (libtorch_cpu.so)
    init_new (forward_batch_info.py:849)
    <module> (<string>:1)
[2026-07-07 07:20:51 TP0] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)
"""


def test_a_servers_log_with_an_exception_a_crash_and_a_watchdogs_dump() -> None:
    raised, crashed, dumped = read_dumps(SERVER_LOG, source="pasted").looks
    assert told([raised]) == [("watchdog", [(None, ["event_loop_overlap", "run_scheduler_process"])])]
    assert raised.notes == (f"RuntimeError: {watchdog.RAISED}",)
    assert (raised.at, dumped.at) == ("2026-07-07 07:20:43", "2026-07-07 07:20:50")
    assert told([crashed]) == [("faulthandler", [("MainThread", ["select", "finalize", "finalize", "<module>"])])]
    assert (dumped.tool, dumped.pid, dumped.ranks.tp) == ("py-spy dump", 163685, 0)


def test_words_that_look_like_frames_are_none() -> None:
    text = "#123 fixes this, see also #456 (comment) from @foo\n## Steps\n# Run\n1. start the server (see #4)\n"
    assert read_dumps(text, source="pasted").refused_kind == "not-an-engine"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("gdb-all-bt.txt", "gdb-all-bt.txt"),
        ("faulthandler-3.11-crash.txt", "faulthandler-3.11-later.txt"),
        ("faulthandler-3.11-crash.txt", "faulthandler-3.11-one.txt"),
        ("pystack-plain.txt", "pystack-locals.txt"),
        ("watchdog-pytest.txt", "watchdog-format.txt"),
    ],
)
def test_two_processes_whose_lines_alternate_are_refused(first: str, second: str) -> None:
    pairs = zip(text_of(first).split("\n"), text_of(second).split("\n"), strict=False)
    read = read_dumps("\n".join(line for pair in pairs for line in pair), source="pasted")
    assert (read.looks, read.refused_kind) == ((), "garbled")
