"""``py-spy dump --json``, and samples of our own: one document or many, whole or cut off, among other lines. Pure."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from sparkdiag.dumps.kept import (
    MOST_FRAMES,
    MOST_PROCESSES,
    MOST_THREADS,
    kept_frame,
    kept_line,
    kept_locals,
    kept_name,
    kept_title,
)
from sparkdiag.dumps.native_names import bare_native
from sparkdiag.evidence.dump import DumpFrame, DumpThread, ProcessDump
from sparkdiag.evidence.stacks import LocalValue

_DEEPEST = 6
_BUDGET = 4
"""Times the text's length: so much is scanned at most, however often a document that began turns out to be none."""
_DECODER = json.JSONDecoder()
_FRAMES = '"frames"'
_OWN = '"short_filename"'
CUT = "the JSON of a stack dump is cut off, or broken, before one thread of it is whole"


def claims(lines: Sequence[str]) -> float:
    """Sure of anything with ``"frames"`` in it that opens like JSON."""
    if not any(_FRAMES in line for line in lines):
        return 0.0
    return 0.98 if any(line.lstrip()[:1] in ("[", "{") for line in lines) else 0.0


def begins(lines: Sequence[str]) -> bool:
    """Whether py-spy's own JSON is there, of which ``read`` could make nothing."""
    return any(_FRAMES in line for line in lines) and any(_OWN in line for line in lines)


def read(lines: Sequence[str]) -> tuple[ProcessDump, ...]:
    """One look a process and document, in the order of the text."""
    looks: list[ProcessDump] = []
    whole = True
    for document in _documents("\n".join(lines)):
        if document is _CUT:
            whole = False
        elif len(looks) < MOST_PROCESSES:
            looks += _looks(document, {}, _DEEPEST)
    if not whole and looks:
        notes = (*looks[-1].notes, "the JSON ends in the middle: what is missing may be in other threads")
        looks[-1] = looks[-1].model_copy(update={"notes": notes})
    return tuple(looks)


_CUT = object()
"""Stands for a document that does not end."""


def _documents(text: str) -> Iterator[Any]:
    """Every JSON document that begins at a line's start; of one that is cut off what is whole in it."""
    position, budget = 0, _BUDGET * len(text) + 1000
    while budget > 0 and (start := _next_start(text, position)) is not None:
        try:
            document, position = _DECODER.raw_decode(text, start)
        except RecursionError:
            return
        except json.JSONDecodeError as error:
            budget -= max(error.pos - start, 0) + 1
            kept, position = _pieces(text, start)
            if kept:
                yield kept
                yield _CUT
            position = max(position, _line_end(text, start))
        else:
            yield document


def _next_start(text: str, position: int) -> int | None:
    """Of the next line that opens a list or an object."""
    while position < len(text):
        while position < len(text) and text[position] in " \t\n":
            position += 1
        if position >= len(text):
            return None
        if text[position] in "[{":
            return position
        end = text.find("\n", position)
        if end < 0:
            return None
        position = end + 1
    return None


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1


def _pieces(text: str, start: int) -> tuple[list[Any], int]:
    """The whole items of a list that does not end."""
    items: list[Any] = []
    position = start + 1
    if text[start] != "[":
        return items, position
    while position < len(text):
        while position < len(text) and text[position] in " \t\n,":
            position += 1
        try:
            item, position = _DECODER.raw_decode(text, position)
        except (json.JSONDecodeError, RecursionError):
            break
        items.append(item)
    return [item for item in items if isinstance(item, (dict, list))], position


def _looks(document: Any, about: dict[str, Any], depth: int) -> list[ProcessDump]:
    """The looks in a document: threads in a list, a process with its threads, either wrapped in lists and objects."""
    if depth <= 0:
        return []
    if isinstance(document, list):
        threads = [item for item in document if isinstance(item, dict) and isinstance(item.get("frames"), list)]
        if threads:
            return _of_threads(threads, about)
        return [look for item in document[:MOST_PROCESSES] for look in _looks(item, about, depth - 1)]
    if not isinstance(document, dict):
        return []
    if isinstance(document.get("frames"), list):
        return _of_threads([document], about)
    about = {**about, **{key: value for key, value in document.items() if isinstance(value, (str, int, float))}}
    return [
        look
        for value in list(document.values())[:MOST_PROCESSES]
        if isinstance(value, (list, dict))
        for look in _looks(value, about, depth - 1)
    ]


def _of_threads(threads: list[dict[str, Any]], about: dict[str, Any]) -> list[ProcessDump]:
    """A look for each process that the threads are of, in the order of their first threads."""
    by_pid: dict[int | None, list[dict[str, Any]]] = {}
    for thread in threads[: MOST_THREADS * 4]:
        by_pid.setdefault(_whole(thread.get("pid")), []).append(thread)
    return [_look(pid, group, about) for pid, group in by_pid.items()]


def _look(pid: int | None, threads: list[dict[str, Any]], about: dict[str, Any]) -> ProcessDump:
    info = threads[0].get("process_info")
    command = info.get("command_line") if isinstance(info, dict) else None
    title = command or about.get("title") or about.get("command_line")
    at_s = about.get("at_s", about.get("started_s"))
    python = about.get("python")
    return ProcessDump(
        tool="py-spy json",
        pid=pid if pid is not None else _whole(about.get("pid")),
        title=kept_title(title) if isinstance(title, str) else None,
        python=kept_name(python) if isinstance(python, str) else None,
        at_s=float(at_s)
        if isinstance(at_s, (int, float)) and not isinstance(at_s, bool) and abs(at_s) < 1e12
        else None,
        threads=tuple(_thread(thread) for thread in threads[:MOST_THREADS]),
        notes=(f"of {len(threads)} threads {MOST_THREADS} were read",) if len(threads) > MOST_THREADS else (),
    )


def _thread(raw: dict[str, Any]) -> DumpThread:
    name = raw.get("thread_name", raw.get("name"))
    frames = raw["frames"]
    active = raw.get("active")
    state: Literal["active", "idle", "unknown"] = (
        "unknown" if not isinstance(active, bool) else "active" if active else "idle"
    )
    return DumpThread(
        name=kept_name(name) if isinstance(name, str) and name else None,
        thread_id=_whole(raw.get("thread_id")),
        os_thread_id=_whole(raw.get("os_thread_id")),
        state=state,
        owns_gil=raw.get("owns_gil") is True,
        frames=tuple(_frame(frame) for frame in frames[:MOST_FRAMES] if isinstance(frame, dict)),
        whole=len(frames) <= MOST_FRAMES,
    )


def _frame(raw: dict[str, Any]) -> DumpFrame:
    name = raw.get("name", raw.get("function"))
    path = raw.get("short_filename") or raw.get("filename")
    line = raw.get("line")
    native = isinstance(raw.get("module"), str) and not str(raw.get("filename") or "").endswith((".py", ">"))
    function = name if isinstance(name, str) else "?"
    return kept_frame(
        bare_native(function) if native else function,
        path=path if isinstance(path, str) else None,
        line=kept_line(str(line)) if isinstance(line, int) and not isinstance(line, bool) else None,
        native=native,
        local_values=_locals(raw.get("locals")),
    )


def _locals(raw: object) -> dict[str, LocalValue]:
    if isinstance(raw, dict):  # our own samples: reduced already, and reduced again
        return kept_locals((str(name), str(value)) for name, value in raw.items() if isinstance(value, int))
    if not isinstance(raw, list):
        return {}
    pairs = ((one.get("name"), one.get("repr")) for one in raw if isinstance(one, dict))
    return kept_locals((name, shown) for name, shown in pairs if isinstance(name, str) and isinstance(shown, str))


def _whole(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 2**64 else None
