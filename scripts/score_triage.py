"""How many public stall reports are named right: ``python -m scripts.score_triage REPORTS.jsonl``.

One JSON document a line, frames already typed as facts: ``stack`` (entries with ``process``, ``thread``, ``frames``
innermost first), ``process_role``, ``expect`` (the acceptable kinds), ``status``, ``healthy``. The text itself is not
there, so this measures the signatures and the reasoning over processes, not the parsers.

Exits 1 where fewer than ``--at-least`` percent of the concluded reports are named right, or where a healthy one is
called anything but what it may be called.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkdiag.diagnosing.diagnose import diagnose
from sparkdiag.diagnosing.signatures import match_look
from sparkdiag.dumps.formats.collectives import THREAD as COLLECTIVE
from sparkdiag.evidence.dump import DumpFrame, DumpThread, ProcessDump
from sparkdiag.evidence.processes import Role
from sparkdiag.evidence.titles import classify

STALLS = frozenset(
    [
        "torch-fallback",
        "jit-compile",
        "collective-wait",
        "collective-init",
        "gpu-wait",
        "queue-wait",
        "scheduler-loop",
        "kv-transfer",
        "ray-wait",
        "dp-dummy",
        "gc",
        "gil",
        "shutdown",
    ]
)
"""Kinds that a healthy report must not be called unless it says so itself."""

_FRAME = re.compile(r"(?P<function>.+?)(?: \((?P<where>[^()]+)\))?\Z", re.DOTALL)
_LINE = re.compile(r"(?P<path>.+?):(?P<line>\d+)\Z")
_PROCESS = re.compile(r"Process (?P<pid>\d+): (?P<title>.*)\Z", re.DOTALL)
_THREAD = re.compile(r"Thread (?P<id>\d+)?.*?(?P<flags>\((?:active|idle)[^)]*\))?(?:: ?\"(?P<name>.*)\")?\Z", re.DOTALL)
_ROLES: dict[str, Role] = {"EngineCore": "engine_core", "Worker": "worker", "APIServer": "api_server"}


@dataclass(frozen=True, slots=True)
class Scored:
    """One report and what it was called."""

    id: str
    expected: tuple[str, ...]
    got: str
    signature: str | None
    function: str | None
    concluded: bool
    healthy: bool

    @property
    def right(self) -> bool:
        return self.got in self.expected

    @property
    def false_alarm(self) -> bool:
        """A healthy server called stalled."""
        return self.healthy and not self.right and self.got in STALLS


def looks_of(row: Mapping[str, Any]) -> tuple[ProcessDump, ...]:
    """The looks that one report shows: entries without a process belong to the one before them, a second main thread
    begins another."""
    groups: list[tuple[str | None, list[DumpThread]]] = []
    for entry in row["stack"]:
        thread = _thread(entry)
        begins = entry.get("process") is not None or not groups
        if not begins and thread.name == "MainThread":
            begins = any(other.name == "MainThread" for other in groups[-1][1])
        if begins:
            groups.append((entry.get("process"), []))
        groups[-1][1].append(thread)
    return tuple(_look(title, threads, told=str(row.get("process_role"))) for title, threads in groups)


def _look(process: str | None, threads: Sequence[DumpThread], *, told: str) -> ProcessDump:
    named = _PROCESS.match(process or "")
    title = named["title"] if named else process
    role, ranks = classify([title]) if title else (None, None)
    if role in (None, "other"):
        role = role if told == "other" else _ROLES.get(told)
    pid = int(named["pid"]) if named else None
    extra = {"ranks": ranks} if ranks is not None else {}
    return ProcessDump(pid=pid, title=title, role=role, threads=tuple(threads), **extra)


def _thread(entry: Mapping[str, Any]) -> DumpThread:
    header = entry.get("thread") or ""
    read = _THREAD.match(header)
    flags = (read["flags"] if read else None) or ""
    name = read["name"] if read else (header or None)
    if "flight recorder" in header:
        name = COLLECTIVE
    return DumpThread(
        name=name,
        thread_id=int(read["id"]) if read and read["id"] else None,
        state="active" if "active" in flags else "idle" if "idle" in flags else "unknown",
        owns_gil="+gil" in flags,
        frames=tuple(_frame(text) for text in entry["frames"] if text.strip() != "..."),
    )


def _frame(text: str) -> DumpFrame:
    read = _FRAME.match(text)
    assert read is not None
    where = read["where"]
    line = _LINE.match(where) if where else None
    path = line["path"] if line else where
    native = "::" in read["function"] or bool(path and not path.startswith("<") and ".py" not in path)
    return DumpFrame(function=read["function"], path=path, line=int(line["line"]) if line else None, native=native)


def score_row(row: Mapping[str, Any]) -> Scored:
    """Through the whole diagnosis; through the signatures alone where that is not written yet."""
    looks = looks_of(row)
    try:
        found = diagnose(looks)
        deciding = next((each for each in found.processes if each.name == found.process), None)
        got, function = found.kind, found.function
        signature = deciding.signature if deciding else None
    except NotImplementedError:
        match = match_look(looks[0])
        got, function, signature = match.kind, match.function, match.signature
    return Scored(
        id=row["id"],
        expected=tuple(row["expect"]),
        got=got,
        signature=signature,
        function=function,
        concluded=row.get("status") == "concluded",
        healthy=bool(row.get("healthy")),
    )


def score(rows: Iterable[Mapping[str, Any]]) -> tuple[Scored, ...]:
    return tuple(score_row(row) for row in rows)


def share_right(scored: Sequence[Scored]) -> float:
    """1 for none at all: nothing was named wrong."""
    return sum(each.right for each in scored) / len(scored) if scored else 1.0


def read_rows(path: Path) -> tuple[Mapping[str, Any], ...]:
    return tuple(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", type=Path)
    parser.add_argument("--at-least", type=float, default=90.0, metavar="PERCENT", help="of the concluded reports")
    parser.add_argument("--quiet", action="store_true", help="counts alone, no report by name")
    asked = parser.parse_args(arguments)
    scored = score(read_rows(asked.reports))
    concluded = tuple(each for each in scored if each.concluded)
    if not asked.quiet:
        for each in scored:
            mark = "right" if each.right else "WRONG"
            print(
                f"{mark}  {each.id}: {each.got} ({each.signature or '-'}, {each.function or '-'}), "
                f"may be {', '.join(each.expected)}"
            )
    for kind, count in sorted(Counter(kind for each in scored for kind in each.expected).items()):
        right = sum(each.right for each in scored if kind in each.expected)
        print(f"{kind:22} {right} of {count}")
    print(f"concluded: {sum(each.right for each in concluded)} of {len(concluded)} right, {share_right(concluded):.0%}")
    print(f"all:       {sum(each.right for each in scored)} of {len(scored)} right, {share_right(scored):.0%}")
    alarms = [each.id for each in scored if each.false_alarm]
    print(f"healthy ones called stalled: {', '.join(alarms) or 'none'}")
    return 1 if alarms or 100 * share_right(concluded) < asked.at_least else 0


if __name__ == "__main__":
    sys.exit(main())
