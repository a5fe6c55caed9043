"""All formats at once: none takes another's text, none raises, and none takes long, whatever the text."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.dumps.formats import faulthandler, gdb, pyspy_text, pystack, ray, trace_log, watchdog
from sparkdiag.evidence.dump import ProcessDump

RECORDINGS = Path(__file__).parents[2] / "recordings"
FORMATS: dict[str, ModuleType] = {
    "pyspy": pyspy_text,
    "pystack": pystack,
    "gdb": gdb,
    "faulthandler": faulthandler,
    "watchdog": watchdog,
    "ray": ray,
    "trace": trace_log,
}
OWN = {name: module for name, module in FORMATS.items() if name != "pyspy"}
SAMPLES = {
    **{path.name: path.name.split("-")[0] for path in (RECORDINGS / "dumps").glob("*.txt")},
    **{path.name: "pyspy" for path in (RECORDINGS / "h200").glob("*worker*.txt")},
}
WRITTEN = {
    "ray": "Stack dump for u  2788  5.2  0.0 4 3 pts/0  Sl   Jan19   0:15 ray::IDLE\n"
    "Thread 0x7F (active)\n\t run (a.py:8)\n",
    "trace": "Call to f in /x/a.py:93 from g in /x/b.py:1\nReturn from f in /x/a.py:94 to g in /x/b.py:1\n",
    "watchdog": "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=ALLREDUCE, "
    "NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600088 milliseconds before timing out.\n"
    "Stack trace of the failed collective:\n"
    "#0 all_reduce from /x/torch/distributed/distributed_c10d.py:2421\n#1 forward from /x/linear.py:30\n",
    "faulthandler": "Thread 0x00007f2b33e006c0 (most recent call first):\n"
    "wait (threading.py:359)\nget (queue.py:180)\n",
}
CASES = [(SAMPLES[name], name) for name in sorted(SAMPLES)] + [(name, "") for name in WRITTEN]


def text_of(owner: str, name: str) -> str:
    if not name:
        return WRITTEN[owner]
    folder = "h200" if owner == "pyspy" else "dumps"
    return (RECORDINGS / folder / name).read_text()


@pytest.mark.parametrize(("owner", "name"), CASES)
@pytest.mark.parametrize("strip", [False, True])
def test_no_format_takes_anothers_text(owner: str, name: str, strip: bool) -> None:
    lines = text_of(owner, name).split("\n")
    if strip:
        lines = [line.strip() for line in lines]
    claims = {other: module.claims(lines) for other, module in FORMATS.items()}
    assert max(claims, key=lambda other: claims[other]) == owner, claims
    assert claims[owner] > sorted(claims.values())[-2] + 0.01, claims
    assert all(0 <= claim <= 1 for claim in claims.values())


PIECES = (
    "Traceback for thread 7 (x) [Has the GIL] (most recent call last):", '    (Python) File "a.py", line 1, in f',
    '    (C) File "???", line 0, in a::b<c(d)> (lib.so)', "      Locals:", "        k: 3", "Core file information:",
    "pid: 1 ppid: 2", 'Thread 3 (Thread 0x7f (LWP 12) "python"):', "#0  0x1 in f<g(h)> (a=(1, b)) at x.c:3",
    "#1  ?? ()", "   from /lib/x.so", "[Switching to thread 2 (Thread 0x7f (LWP 3))]",
    "Traceback (most recent call first):",
    '  File "a.py", line 3, in f', "* 1    Thread 0x7f (LWP 3) \"p\" 0x1 in f () at a.c:1", "Attaching to process 12",
    "[Inferior 1 (process 12) detached]", "Fatal Python error: Aborted", "Thread 0x7f [a b] (most recent call first):",
    "Current thread 0x7f (most recent call first):", '  File "a.py", line 3 in f', "  ...", "Timeout (0:05:00)!",
    "Stack (most recent call last):", "Traceback (most recent call last):", "ValueError: x", "# Thread: a(123456)",
    "~~~ Stack of b (123456) ~~~", "frame #0: a(b) + 0x1 (0x2 in x::y)",
    "Exception raised from f at x (most recent call",
    "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4, OpType=SEND, NumelIn=1) ran for 1 ms",
    "Stack trace of the failed collective:", "#0 f from /x/a.py:3", "Stack dump for u 12 1 1 1 1 ? S 1 1 ray::X",
    "Call to f in a.py:3 from g in b.py:4", "Return from f in a.py:3 to g in b.py:4", "Process 12: x", "",
    "    source()",
    "#3 <built-in method sleep of module object at remote 0x7f>", "#6 Frame 0x7f, for file a.py, line 7, in f (k=5)",
)  # fmt: skip
LINES = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=40)), max_size=40)


@given(LINES, st.integers(0, 300))
def test_no_format_raises_and_what_it_gives_is_a_value(lines: list[str], cut: int) -> None:
    text = "\n".join(lines)
    for module in OWN.values():
        for given_lines in (lines, text[: len(text) - cut].split("\n")):
            claim = module.claims(given_lines)
            looks: tuple[ProcessDump, ...] = module.read(given_lines)
            assert 0 <= claim <= 1
            for look in looks:
                assert ProcessDump.model_validate_json(look.model_dump_json()) == look
                assert all(
                    isinstance(value, (int, bool))
                    for thread in look.threads
                    for f in thread.frames
                    for value in f.locals.values()
                )


SIZE = 1_000_000
NASTY: dict[str, Callable[[], str]] = {
    "blanks": lambda: " " * SIZE,
    "brackets": lambda: "#0 " + "(" * SIZE,
    "closing": lambda: "#0 f " + ")" * SIZE,
    "templates": lambda: "#0 0x1 in " + "a<" * (SIZE // 2) + " ()",
    "from": lambda: "#0 0x1 in " + "f () from " * (SIZE // 10),
    "at": lambda: "#0 0x1 in " + "f () at x:1 at " * (SIZE // 15),
    "quotes": lambda: '  File "' + '"' * SIZE,
    "files": lambda: '  File "a", line 1 in f  ' * (SIZE // 25),
    "comma files": lambda: '  File "a", line 1, in ' + " File" * (SIZE // 5),
    "dots": lambda: 'Binary file "' + "." * SIZE + "[0x",
    "thread": lambda: "Traceback for thread 1 " + "[a" * (SIZE // 2),
    "names": lambda: 'Thread 1 (Thread 0x1 (LWP 1) "' + 'a" ' * (SIZE // 3),
    "words": lambda: "Thread " * (SIZE // 7),
    "ranks": lambda: "[" + "a " * (SIZE // 2) + "Rank 1] Watchdog caught WorkNCCL(SeqNum=1, OpType=X" + " ran" * 1000,
    "calls": lambda: "Call to " + "f in " * (SIZE // 5),
    "pairs": lambda: "#1 Frame 0x1, for file a, line 1, in f (" + "a='b, " * (SIZE // 6),
    "pids": lambda: "=== " + "pid " * (SIZE // 4),
    "digits": lambda: "#" + "1" * SIZE,
    "marks": lambda: "^" * SIZE,
    "processes": lambda: "gdb " + "-a " * (SIZE // 3),
    "plus": lambda: "frame #0: " + " + 0x1 (0x1 in " * (SIZE // 15),
}  # fmt: skip


@pytest.mark.parametrize("name", NASTY)
def test_a_megabyte_in_one_line_takes_no_longer_than_reading_it(name: str) -> None:
    """A bound far above what linear work takes (milliseconds), and far below what a quadratic pattern takes (hours)."""
    head = ["Thread 1 (Thread 0x1 (LWP 1)):", "#0  0x1 in f () from x", "Thread 0x1 (most recent call first):"]
    lines = [*head, NASTY[name](), NASTY[name]()[:2000]]
    started_s = time.process_time()
    for module in OWN.values():
        module.claims(lines)
        module.read(lines)
    assert time.process_time() - started_s < 10


def test_many_short_nasty_lines_are_read_in_linear_time() -> None:
    lines: Sequence[str] = ["#0  f (", "   from /x", "Thread 1", '  File "a"', "(C) File", "Locals:", "a: 1"] * 20_000
    started_s = time.process_time()
    for module in OWN.values():
        module.claims(lines)
        module.read(lines)
    assert time.process_time() - started_s < 20


def test_nothing_is_nothing() -> None:
    for module in OWN.values():
        assert module.read([]) == ()
        assert module.claims([]) == 0.0
