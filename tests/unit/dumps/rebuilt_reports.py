"""The reports of ``tests/fixtures/stalls/reports.jsonl`` as text again: in the tool's style, with the quirks noted.

A row holds frames as facts. What somebody pasted is put together from them here, so that a reader is tried on the same
frames in the form in which they came.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPORTS = Path(__file__).parents[2] / "fixtures" / "stalls" / "reports.jsonl"
_FRAME = re.compile(r"(?P<function>.*?)(?: \((?P<inner>[^()]*)\)?)?\Z")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A frame as the row states it."""

    function: str
    path: str | None
    line: int | None

    @classmethod
    def of(cls, text: str) -> "Wanted":
        match = _FRAME.match(text)
        assert match is not None
        inner = match["inner"]
        if not inner:
            return cls(match["function"], None, None)
        path, colon, line = inner.rpartition(":")
        if not colon or not line.isdigit():
            return cls(match["function"], inner, None)
        return cls(match["function"], path, int(line))


def rows() -> list[dict[str, Any]]:
    return [json.loads(line) for line in REPORTS.read_text(encoding="utf-8").splitlines()]


def text_of(row: dict[str, Any]) -> str:
    """What the reporter may have pasted."""
    tool = row["tool"]
    if tool == "py-spy top":
        return _top(row)
    if tool == "VLLM_TRACE_FUNCTION log":
        return _trace_log(row)
    stacks = [_stack(row, stack, place) for place, stack in enumerate(row["stack"])]
    quirks = " ".join(row["quirks"])
    text = "\n".join(stacks)
    if "sglang-1" in quirks:
        lines = text.split("\n")
        lines[5:5] = ["", ""]
        text = "\n".join(f"sglang-1  | {line}" for line in lines)
    if "fence of four backticks" in quirks:
        text = f"````\n{text}\n````"
    elif "```Process 4970:" in quirks:
        text = f"Here it is:\n```{text}```\n"
    elif "py-spy" in tool and "fence" not in quirks and "headers" not in quirks:
        text = f"It hangs. The dump:\n\n<details><summary>py-spy dump</summary>\n\n```text\n{text}\n```\n\n</details>\n"
    return text


def _stack(row: dict[str, Any], stack: dict[str, Any], place: int) -> str:
    tool, thread = row["tool"], str(stack["thread"])
    frames = stack["frames"]
    if "from prose" in thread:
        return f"\n{thread}: {', '.join(frames)} and nothing else."
    if "sample(1)" in thread:
        return _sample(frames)
    is_native = not any(".py" in frame for frame in frames)
    if (tool.startswith("gdb") or thread == "gdb") and is_native:
        return _gdb(thread, frames)
    if tool.startswith("faulthandler"):
        return _faulthandler(thread, frames, indent="without indentation" not in " ".join(row["quirks"]))
    if thread.startswith("Traceback for thread"):
        return _pystack(thread, frames)
    if tool == "Python traceback":
        return _traceback(frames)
    if tool.startswith("C++ backtrace"):
        return _watchdog(frames)
    if tool.startswith("c10d"):
        return _flight_recorder(frames)
    return _py_spy(row, stack, place)


def _py_spy(row: dict[str, Any], stack: dict[str, Any], place: int) -> str:
    quirks = " ".join(row["quirks"])
    thread, process = str(stack["thread"]), stack["process"]
    lines = []
    if "=== PID n ===" in quirks and process:
        lines.append(f"=== PID {re.findall(r'[0-9]+', process)[0]} ===")
    if "Pyspy dump for PID" in quirks and process:
        lines.append(f"[2026-03-01 10:00:0{place} PP1 TP1] Pyspy dump for PID {re.findall(r'[0-9]+', process)[0]}:")
    if "user@host" in quirks and place == 0:
        lines.append("################# user@node-1 #################")
    if process and process.startswith("Process"):
        if row["python"] and "printed" not in row["python"]:
            shown = row["python"] if "(" in row["python"] else f"{row['python']} (/usr/bin/python3)"
            lines += [process, f"Python v{shown}", ""]
        else:
            lines.append(process)
    elif process:
        lines += ["", f"{process}:", ""]
    if thread.startswith("Thread"):
        lines.append(thread)
    elif "no header" not in thread:
        lines += ["", f"{thread}:", ""]
    indent = "" if "no indentation" in quirks else "    "
    if "aligned" in quirks:
        width = max(len(frame.split(" (")[0]) for frame in stack["frames"])
        shown = [f"{indent}{one.split(' (')[0]:<{width}}   ({one.split(' (')[1]}" for one in stack["frames"]]
    else:
        shown = [indent + frame for frame in stack["frames"]]
    if "comment after a frame" in quirks or "notes after frames" in quirks:
        shown[0] += "   ← it is always here"
    return "\n".join(lines + shown)


def _top(row: dict[str, Any]) -> str:
    """In one line, as the mirror had it."""
    frames = row["stack"][0]["frames"]
    figures = [
        f"  {40 - 5 * place:5.2f}% 100.00%   {5.0 - place / 2:6.3f}s    12.00s   {one}"
        for place, one in enumerate(frames)
    ]
    head = "Collecting samples from 'pid: 77' (python v3.11.9) Total Samples 1200 " + row["stack"][0]["thread"]
    return head + "   %Own   %Total  OwnTime  TotalTime  Function (filename)" + "".join(figures)


def _trace_log(row: dict[str, Any]) -> str:
    frames = [*map(Wanted.of, reversed(row["stack"][0]["frames"]))]
    callers = [Wanted("main", "serve.py", 1), *frames]
    return "\n".join(
        f"2026-04-22 10:00:00.123456 Call to {frame.function} in /opt/venv/{frame.path}:{frame.line} "
        f"from {caller.function} in /opt/venv/{caller.path}:{caller.line}"
        for caller, frame in zip(callers, frames, strict=False)
    )


def _gdb(thread: str, frames: list[str]) -> str:
    head = thread if thread.startswith("Thread") else f"{thread}"
    lines = [head]
    for number, frame in enumerate(map(Wanted.of, frames)):
        where = (
            ""
            if frame.path is None
            else f" at {frame.path}:{frame.line}"
            if frame.line
            else f" from /usr/lib/{frame.path}"
        )
        lines.append(f"#{number}  0x00007f08{number:08x} in {frame.function} (){where}")
    return "\n".join(lines)


def _faulthandler(thread: str, frames: list[str], *, indent: bool) -> str:
    lines = [thread] if thread.startswith("Thread") else []
    for frame in map(Wanted.of, frames):
        lines.append(
            f'{"  " if indent else ""}File "/usr/lib/python3/{frame.path}", line {frame.line} in {frame.function}'
        )
    return "\n".join([*lines, ""])


def _pystack(thread: str, frames: list[str]) -> str:
    lines = [thread]
    for frame in map(Wanted.of, reversed(frames)):
        kind = "Python" if str(frame.path).endswith(".py") else "C"
        lines.append(f'    ({kind}) File "/usr/lib/{frame.path}", line {frame.line or 0}, in {frame.function}')
    return "\n".join(lines)


def _traceback(frames: list[str]) -> str:
    lines = ["Traceback (most recent call last):"]
    for frame in map(Wanted.of, reversed(frames)):
        lines += [f'  File ".../{frame.path}", line {frame.line}, in {frame.function}', "    call_of(it)"]
    return "\n".join([*lines, "TimeoutError", ""])


def _watchdog(frames: list[str]) -> str:
    return "\n".join(
        f"frame #{number + 40}: {frame.function} + 0x4b26 (0x4f2c56 in {frame.path})"
        for number, frame in enumerate(map(Wanted.of, frames))
    )


def _flight_recorder(frames: list[str]) -> str:
    return "\n".join(
        f"#{number + 56} {frame.function} from /sgl-workspace/{frame.path}:{frame.line}"
        for number, frame in enumerate(map(Wanted.of, frames))
    )


def _sample(frames: list[str]) -> str:
    lines = ["Call graph:", "    2500 Thread_123   DispatchQueue_1: com.apple.main-thread  (serial)"]
    for depth, frame in enumerate(map(Wanted.of, frames)):
        where = f"  (in {frame.path})" if frame.path else "  (in libsystem_kernel.dylib)"
        lines.append("    +" + " " * depth + f" 2500 {frame.function}{where} + 100  [0x18f{depth:06x}]")
    return "\n".join(lines)
