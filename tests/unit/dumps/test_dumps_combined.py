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
