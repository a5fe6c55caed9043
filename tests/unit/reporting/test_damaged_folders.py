"""Whatever lies in a run folder: every format renders what can be read, and never raises."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkdiag.cli.judged_again import judged_again
from sparkdiag.errors import RunFolderError
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.recording.read import read_run
from sparkdiag.reproducing.ending import compared
from tests.unit.reporting.every_format import every_page

RECORDINGS = Path(__file__).parents[2] / "recordings"
WHOLE = RECORDINGS / "folders" / "route-crawling"
NUMBERED = RECORDINGS / "folders" / "watch-fallback"
FILES = ("run.json", "timeline.jsonl", "stacks.jsonl", "client.jsonl")
CUTS = 6


def copied(tmp_path: Path, source: Path = NUMBERED) -> Path:
    folder = tmp_path / "run"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    return folder


def rendered(folder: Path) -> StoredRun:
    stored = compared(read_run(folder))
    again = judged_again(stored)
    every_page(stored)
    if again is not None:
        every_page(again)
    return stored


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("source", [WHOLE, NUMBERED], ids=["whole", "numbered"])
def test_a_file_that_was_cut_anywhere_renders(source: Path, name: str, tmp_path: Path) -> None:
    content = (source / name).read_bytes().rstrip()
    for number in range(CUTS):
        folder = copied(tmp_path, source)
        (folder / name).write_bytes(content[: (len(content) - 1) * number // CUTS + bool(number)])
        stored = rendered(folder)
        assert any(problem.startswith(name) for problem in stored.problems), number


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_said_to_be_missing(name: str, tmp_path: Path) -> None:
    folder = copied(tmp_path)
    (folder / name).unlink()
    assert f"{name} is missing" in rendered(folder).problems


def _folder(path: Path) -> None:
    path.mkdir()


def _dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def _garbage(path: Path) -> None:
    path.write_bytes(os.urandom(20_000))


def _empty(path: Path) -> None:
    path.touch()


def _one_line_without_end(path: Path) -> None:
    path.write_bytes(b"[" * (17 * 1024 * 1024))


@pytest.mark.parametrize("name", [*FILES, "dispatch.jsonl"])
@pytest.mark.parametrize("put", [_folder, os.mkfifo, _dangling, _garbage, _empty, _one_line_without_end])
def test_something_else_in_place_of_a_file_renders(put: Callable[[Path], None], name: str, tmp_path: Path) -> None:
    folder = copied(tmp_path)
    (folder / name).unlink(missing_ok=True)
    put(folder / name)
    assert rendered(folder).problems or name == "dispatch.jsonl"


def test_an_empty_folder_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError):
        read_run(tmp_path)


hostile = st.sampled_from(
    [None, True, -1, 0, 1, 2**40, 2**70, -(2**70), 1e308, -1e308, 1e-300, "", "x", "7", "\ud800", "\x1b[2J", [], {}]
) | st.sampled_from([float("nan"), float("inf"), float("-inf"), [1, 2], {"a": 1}, "{}", "layer.999999999", "é" * 300])


def _swapped(document: Any, data: st.DataObject) -> Any:
    """``document`` with one value, anywhere in it, changed to something else."""
    if isinstance(document, dict) and document and data.draw(st.integers(0, 9)):
        key = data.draw(st.sampled_from(sorted(document)))
        return {**document, key: _swapped(document[key], data)}
    if isinstance(document, list) and document and data.draw(st.integers(0, 9)):
        index = data.draw(st.integers(0, len(document) - 1))
        return [*document[:index], _swapped(document[index], data), *document[index + 1 :]]
    return data.draw(hostile)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_value_that_is_another_renders(tmp_path: Path, data: st.DataObject) -> None:
    folder = copied(tmp_path, data.draw(st.sampled_from([WHOLE, NUMBERED])))
    for _ in range(data.draw(st.integers(1, 4))):
        path = folder / data.draw(st.sampled_from(FILES))
        if path.name == "run.json":
            path.write_text(json.dumps(_swapped(json.loads(path.read_text()), data)))
            continue
        lines = path.read_text().splitlines()
        number = data.draw(st.integers(0, len(lines) - 1))
        lines[number] = json.dumps(_swapped(json.loads(lines[number]), data))
        path.write_text("\n".join(lines) + "\n")
    rendered(folder)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_bytes_that_were_flipped_render(tmp_path: Path, data: st.DataObject) -> None:
    folder = copied(tmp_path)
    path = folder / data.draw(st.sampled_from(FILES))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    rendered(folder)


def test_doubled_processes_and_times_that_go_backwards_render(tmp_path: Path) -> None:
    folder = copied(tmp_path, WHOLE)
    for name in ("timeline.jsonl", "stacks.jsonl"):
        path = folder / name
        header, *lines = path.read_text().splitlines()
        path.write_text("\n".join([header, *reversed(lines), *lines, *lines]) + "\n")
    stored = rendered(folder)
    assert stored.problems == ()
    assert [one.ended_s for one in stored.observation.samples] == sorted(
        one.ended_s for one in stored.observation.samples
    )
