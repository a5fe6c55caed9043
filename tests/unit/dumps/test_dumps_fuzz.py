"""Whatever the text: an answer, in bounded time; and what was printed is what is read."""

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkdiag.dumps.kept import MOST_PROCESSES, kept_locals
from sparkdiag.dumps.read import read_dumps
from sparkdiag.evidence.dump import DumpFrame, DumpThread, Pasted, ProcessDump
from tests.unit.dumps.paste_case import ENGINE, LOCALS, as_text, mixed, prefixed, worker
from tests.unit.dumps.rebuilt_reports import rows, text_of

RECORDINGS = Path(__file__).parents[2] / "recordings" / "dumps"
TEXTS = [
    ENGINE,
    LOCALS,
    mixed([worker(0), worker(1)]),
    mixed([prefixed(worker(rank), f"(Worker_TP{rank} pid={rank}) ") for rank in range(2)]),
    *(path.read_text(errors="replace") for path in sorted(RECORDINGS.glob("*.txt"))),
    *(text_of(row) for row in rows()),
]
NASTY = st.sampled_from(
    ["\x00", "\x1b[31m", "\r", "\ufffd", "```", "<details>", "&lt;", "> ", "Thread ", "(", ")", '"', "Process 1: ", ";",
     "#0 ", 'File "', "Locals:", "    ", "\t", "\n\n", "[", '[{"frames": [', "...", "(a.py:1)", "%Own %Total", " 12",
     "\u202e", "\U0001f600", "sglang-1  | ", "(EngineCore pid=1) ", "2026-01-01 00:00:00 ", "\x9b", "~~~",
     "99999999999999"]
)  # fmt: skip


def check(pasted: Pasted) -> None:
    """What holds of every answer."""
    assert (pasted.refused is None) == bool(pasted.looks)
    assert (pasted.refused is None) == (pasted.refused_kind is None)
    for look in pasted.looks:
        assert look.threads
        Pasted.model_validate_json(pasted.model_dump_json())
        for thread in look.threads:
            for frame in thread.frames:
                assert frame.function
                assert frame.function.isprintable()
                assert frame.path is None or frame.path.isprintable()
                assert all(type(value) in (int, bool) for value in frame.locals.values())
                assert kept_locals((name, str(value)) for name, value in frame.locals.items()) == frame.locals
    text = pasted.model_dump_json()
    assert "\\u001b" not in text
    assert "\\u0000" not in text


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=400))
def test_any_text_has_an_answer(text: str) -> None:
    check(read_dumps(text, source="any"))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(NASTY, st.sampled_from([line for text in TEXTS for line in text.split("\n")])), max_size=60))
def test_any_lines_of_dumps_have_an_answer(lines: list[str]) -> None:
    check(read_dumps("\n".join(lines), source="lines"))


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(TEXTS), st.data())
def test_a_mutated_dump_has_an_answer(text: str, data: st.DataObject) -> None:
    for _ in range(data.draw(st.integers(1, 5))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 80)))
        text = text[:start] + data.draw(st.one_of(NASTY, st.text(max_size=5), st.just(""))) + text[end:]
    check(read_dumps(text, source="mutated"))


@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_a_dump_cut_anywhere_has_an_answer(number: int) -> None:
    text = TEXTS[number]
    for end in range(0, len(text), max(1, len(text) // 25)):
        check(read_dumps(text[:end], source="cut"))


@pytest.mark.parametrize(
    "piece",
    [*"()[]{}<>\"':;,.#/\\|-=+%&`~*_ \t0a\x1b\u202e\xa0", "a(", "a (", "(a.py:1)", "a.", "a_", "::", "<a>", "1 ", "; ",
     "a.py:1;", "\x1b[", "&lt;", "Thread ", "File \"", "pid=", "Process 1: ", "[a]", "(a pid=1) ", "...", "a: ",
     "12:12:12 ", "TP0 ", "```", "<div ", "\\x1b[", "```a", "> ", "@a", "#0 ", "10.00% ", "in a (", "(a pid="],
)  # fmt: skip
def test_a_line_of_a_million_characters_takes_no_time(piece: str) -> None:
    line = piece * (1_000_000 // len(piece))
    for text in (line, f"{ENGINE}{line}\n{ENGINE}", f"    f (a.py:1)\n    {line} (a.py:1)\n" + line[:1000] + "\n"):
        started = time.process_time()
        check(read_dumps(text, source="long"))
        assert time.process_time() - started < 10


@pytest.mark.parametrize("piece", ['Thread 1 (idle): "a"\n    f (a.py:1)\n', "a (b.py:1)\n", "[\n"])
def test_very_many_lines_are_bounded(piece: str) -> None:
    started = time.process_time()
    pasted = read_dumps(piece * (9_000_000 // len(piece)), source="large")
    assert len(pasted.looks) <= MOST_PROCESSES
    assert any("were read" in note for note in pasted.notes)
    assert time.process_time() - started < 60


WORDS = st.text("abcdef_xyz", min_size=1, max_size=12)
FUNCTIONS = st.builds("".join, st.tuples(WORDS, st.sampled_from(["", ".call", ".<locals>.<lambda>", ".<locals>.f"])))
PATHS = st.one_of(
    st.builds("{}/{}.py".format, WORDS, WORDS), st.sampled_from(["<string>", "<frozen runpy>", "a-b/c.py"])
)
LOCAL = st.dictionaries(
    WORDS.map("l_{}".format), st.one_of(st.booleans(), st.integers(-(10**12) + 1, 10**12 - 1)), max_size=4
)
FRAMES = st.builds(DumpFrame, function=FUNCTIONS, path=PATHS, line=st.integers(1, 99999), locals=LOCAL)
ODD_NAMES = ['a "quoted" (name): x', "AsyncIO Thread: default", "Thread-1 (process_input)", "x; y"]
NAMES = st.one_of(st.none(), WORDS, st.sampled_from(ODD_NAMES))


@st.composite
def looks(draw: st.DrawFn) -> ProcessDump:
    threads = []
    for number in range(draw(st.integers(1, 4))):
        name = "MainThread" if number == 0 else draw(NAMES)
        root = DumpFrame(function="<module>", path="serve.py", line=1)
        threads.append(
            DumpThread(
                name=name,
                os_thread_id=5000 + number,
                state=draw(st.sampled_from(["active", "idle"])),
                owns_gil=draw(st.booleans()),
                frames=(*draw(st.lists(FRAMES, min_size=1, max_size=6)), root),
            )
        )
    return ProcessDump(
        tool="py-spy dump",
        pid=5000,
        title="VLLM::EngineCore",
        python="3.12.3",
        role="engine_core",
        threads=tuple(threads),
    )


@settings(max_examples=100, deadline=None)
@given(looks())
def test_what_was_printed_is_what_is_read(look: ProcessDump) -> None:
    pasted = read_dumps(as_text(look, locals_too=True), source="round trip")
    assert pasted.refused is None
    assert pasted.looks == (look,)
