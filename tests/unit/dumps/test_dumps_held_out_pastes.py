"""Stacks in the style in which public threads quote them: what is read is what a person reads off them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sparkdiag.dumps.read import read_dumps
from sparkdiag.evidence.dump import DumpThread, Pasted

PASTES = Path(__file__).parents[2] / "fixtures" / "stalls" / "pastes"
NAMES = sorted(path.stem for path in PASTES.glob("*.txt"))
NAMELESS = {"??", "<unknown function>"}


@dataclass(frozen=True, slots=True)
class Paste:
    """One text and what a person counts in it."""

    text: str
    threads: list[list[tuple[str | None, list[str]]]]
    """By process: name and bare function names, innermost first, of each thread."""
    more: dict[str, Any]

    @classmethod
    def called(cls, paste: str) -> "Paste":
        side = json.loads((PASTES / f"{paste}.json").read_text())
        threads = [
            [
                (thread["name"], [plain(name) for name in thread["frames"] if name not in NAMELESS])
                for thread in one["threads"]
            ]
            for one in side["processes"]
        ]
        return cls((PASTES / f"{paste}.txt").read_bytes().decode(), threads, side)


def plain(name: str) -> str:
    """``__GI___poll`` is how glibc calls ``__poll`` within itself."""
    return name.removeprefix("__GI_")


def functions(thread: DumpThread) -> list[str]:
    return [frame.name for frame in thread.frames if frame.name not in NAMELESS]


def read(paste: Paste) -> Pasted:
    return read_dumps(paste.text, source="a paste")


def told_apart(paste: Paste, pasted: Pasted) -> bool:
    """False where the text may be refused as interleaved, and was."""
    if paste.more.get("or_garbled") and pasted.refused_kind == "garbled":
        assert pasted.refused
        return False
    assert pasted.refused is None
    return True


@pytest.mark.parametrize("name", NAMES)
def test_processes_and_threads_are_those_of_the_paste(name: str) -> None:
    paste = Paste.called(name)
    pasted = read(paste)
    if told_apart(paste, pasted):
        assert [len(look.threads) for look in pasted.looks] == [len(one) for one in paste.threads]


@pytest.mark.parametrize("name", NAMES)
def test_frames_are_those_of_the_paste_innermost_first(name: str) -> None:
    paste = Paste.called(name)
    pasted = read(paste)
    if not told_apart(paste, pasted):
        return
    for look, threads in zip(pasted.looks, paste.threads, strict=True):
        for thread, (_, wanted) in zip(look.threads, threads, strict=True):
            found = functions(thread)
            if paste.more.get("at_least"):
                found = found[: len(wanted)]
            if paste.more.get("any_order"):
                assert sorted(found) == sorted(wanted)
            else:
                assert found == wanted


@pytest.mark.parametrize(
    "name", [name for name in NAMES if any(n for one in Paste.called(name).threads for n, _ in one)]
)
def test_names_of_threads_are_kept(name: str) -> None:
    paste = Paste.called(name)
    for look, threads in zip(read(paste).looks, paste.threads, strict=True):
        assert [thread.name for thread in look.threads] == [wanted for wanted, _ in threads]


@pytest.mark.parametrize("name", [name for name in NAMES if "pid" in Paste.called(name).more])
def test_the_process_is_named(name: str) -> None:
    paste = Paste.called(name)
    (look,) = read(paste).looks
    assert look.pid == paste.more["pid"]
    if "python" in paste.more:
        assert look.python == paste.more["python"]


def test_there_are_pastes_of_many_styles() -> None:
    assert len(NAMES) >= 15
