"""Every public report, pasted again in its tool's style, is read into its frames."""

from typing import Any

import pytest

from sparkdiag.dumps.native_names import bare_native
from sparkdiag.dumps.read import read_dumps
from sparkdiag.evidence.dump import DumpFrame, DumpThread, Pasted
from tests.unit.dumps.rebuilt_reports import Wanted, rows, text_of

ROWS = {row["id"]: row for row in rows()}


def names(frames: list[str]) -> list[str]:
    found = [bare_native(Wanted.of(frame).function).rsplit("::", 1)[-1] for frame in frames if frame != "..."]
    return [name for name in found if name != "??"]


def threads_of(pasted: Pasted) -> list[DumpThread]:
    return [thread for look in pasted.looks for thread in look.threads]


def same(found: DumpFrame, wanted: Wanted) -> bool:
    """Path and line, where the row and the tool's style have them."""
    if wanted.path is None or not wanted.path.endswith(".py") or found.path is None:
        return True
    return found.path.endswith(wanted.path) and found.line == wanted.line


@pytest.mark.parametrize("name", ROWS)
def test_a_report_is_read_into_its_frames(name: str) -> None:
    row: dict[str, Any] = ROWS[name]
    pasted = read_dumps(text_of(row), source=name)
    assert pasted.refused is None, text_of(row)
    found = [[frame.name for frame in thread.frames if frame.name != "??"] for thread in threads_of(pasted)]
    wanted = [names(stack["frames"]) for stack in row["stack"] if "from prose" not in str(stack["thread"])]
    wanted = [
        frames[::-1] if "sample(1)" in str(stack["thread"]) else frames
        for frames, stack in zip(wanted, row["stack"], strict=False)
    ]  # that tree's rows stand outermost first
    if row["tool"] == "VLLM_TRACE_FUNCTION log":
        wanted[0].append("main")  # who called the outermost
    assert found == wanted, text_of(row)
