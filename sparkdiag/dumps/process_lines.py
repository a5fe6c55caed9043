"""Lines between stacks that say whose they are: a process header, the command that was typed, a rule drawn by hand."""

import re
from typing import NamedTuple

from sparkdiag.dumps.kept import kept_id, kept_title

_LONGEST = 400
"""Of a longer line only the beginning is looked at; a command line may have thousands of characters."""
_HINTS = ("Process ", "pid", "PID", "Pid", "pystack", "py-spy", "gdb", "Attaching")
_PROCESS = re.compile(r"\s*Process (?P<pid>\d{1,10})\b(?:: ?(?P<title>.*))?")
_COMMAND = re.compile(
    r"\b(?:pystack(?: -\S{1,40}){0,5} remote|py-spy dump|gdb)\b(?: -\S{1,40}| \S{0,60}python\S{0,20}){0,6}"
    r"(?: (?:-p|--pid|attach))?[ =](?P<pid>\d{1,10})(?!\S)"
)
_RULE = re.compile(r"\s*(?:[-=#*~+>]{2,}|\[|\*\*).{0,120}?\bpid[ =:#]{1,3}(?P<pid>\d{1,10})\b", re.IGNORECASE)
_ATTACHING = re.compile(r"Attaching to (?:program: .{0,200}, )?process (?P<pid>\d{1,10})")
_TITLE = re.compile(r"\b[A-Za-z]\w{0,30}::[\w:.-]{1,80}")


class ProcessLine(NamedTuple):
    """The process that the stacks after a line belong to."""

    pid: int | None
    title: str | None


def process_line(line: str) -> ProcessLine | None:
    """What ``line`` says; None where it names no process."""
    line = line[:_LONGEST]
    if not any(hint in line for hint in _HINTS):
        return None
    if match := _PROCESS.match(line):
        return ProcessLine(kept_id(match["pid"]), kept_title(match["title"] or ""))
    if match := _ATTACHING.search(line) or _COMMAND.search(line) or _RULE.match(line):
        title = _TITLE.search(line)
        return ProcessLine(kept_id(match["pid"]), None if title is None else kept_title(title[0]))
    return None
