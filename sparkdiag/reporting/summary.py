"""The few plain lines at the end of a run: what it was, why, where the report is, what to type next."""

import re
import textwrap
from pathlib import Path
from shlex import join, quote

from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.verdict import EvidenceItem
from sparkdiag.harmless.printable import printable
from sparkdiag.reporting.dispatch_ledger import ledger_line
from sparkdiag.reporting.phrases import (
    CONTAINMENT,
    headline,
    not_by_pyspy,
    record_is_lost,
    verdict_sentence,
    why_record_is_lost,
)
from sparkdiag.reporting.predicted_route import route_sentence

_MOST_EVIDENCE = 4
_WIDEST = 110
_LONGEST = 1200
_LABEL = re.compile(r"(  (for|against)|DCP|revision|route|ledger|stacks|missing): +")
_TO_COPY = ("report: ", "next: ")


def summary(stored: StoredRun, *, report: Path | None = None) -> str:
    """Plain text for a terminal, nothing in it able to steer one."""
    verdict = stored.record.verdict
    where = f" in {verdict.function}" if verdict is not None and verdict.function else ""
    lines = [f"{headline(stored)}{where}", verdict_sentence(stored)]
    if verdict is not None:
        lines += [f"  for:     {item.text} [{item.source}]" for item in _leading(verdict.evidence_for)]
        lines += [f"  against: {item.text} [{item.source}]" for item in _leading(verdict.evidence_against)]
    lines += [_dcp(stored), _revision(stored)]
    route = route_sentence(stored)
    lines += [f"route:    {route}"] if route else []
    ledger = ledger_line(stored)
    lines += [f"ledger:   {ledger}"] if ledger else []
    stacks = not_by_pyspy(stored.observation.sampling)
    lines += [f"stacks:   {stacks}"] if stacks else []
    lines += [f"missing:  {problem}" for problem in stored.problems[:_MOST_EVIDENCE]]
    lines.append(f"report:   {report or stored.run_dir}")
    lines.append(f"next:     {_next(stored)}")
    return "\n".join(printable(line, limit=_LONGEST) for line in lines)


def wrapped(text: str, *, columns: int) -> str:
    """``text`` for a terminal of that width: lines broken between words, what follows a label hanging under its text.

    What is there to be copied, a path or a command, is left to the terminal to break: then it is copied whole.
    """
    width = max(40, min(columns, _WIDEST))
    return "\n".join(_wrapped_line(line, width) for line in text.split("\n"))


def _wrapped_line(line: str, width: int) -> str:
    if line.startswith(_TO_COPY):
        return line
    label = _LABEL.match(line)
    hanging = " " * len(label[0]) if label is not None else ""
    return textwrap.fill(line, width, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)


def _leading(items: tuple[EvidenceItem, ...]) -> list[EvidenceItem]:
    """The last item of each source, which is the one that sums it up; the first few sources."""
    return list({item.source: item for item in items}.values())[:_MOST_EVIDENCE]


def _dcp(stored: StoredRun) -> str:
    proof = stored.record.dcp
    if record_is_lost(stored):
        return f"DCP:      not known: {why_record_is_lost(stored)}"
    if proof is None or proof.size is None:
        return "DCP:      not shown by the server"
    return f"DCP:      {proof.size} ({'; '.join(proof.witnesses[:_MOST_EVIDENCE]) or 'no witness'})"


def _revision(stored: StoredRun) -> str:
    if record_is_lost(stored):
        return f"revision: not known: {why_record_is_lost(stored)}"
    proof = stored.record.revision
    name = proof.sha or proof.version or "unknown"
    word = "proved" if proof.proved else "not proved"
    contains = CONTAINMENT[proof.contains_suspect_commit]
    suspect = f"; contains suspect commit {proof.suspect_commit}: {contains}" if proof.suspect_commit else ""
    return f"revision: {name} ({word}){suspect}"


def _next(stored: StoredRun) -> str:
    """What makes this run more telling: the healthy twin after a stall, the log after a crash, else the report."""
    verdict = stored.record.verdict
    dcp = stored.record.dcp
    folder = quote(stored.run_dir)
    if verdict is not None and verdict.outcome == "stalled" and dcp is not None and (dcp.size or 1) > 1:
        return f"{_at_dcp_1(stored.record.command)}    # the healthy control"
    if verdict is not None and verdict.outcome == "crashed":
        return f"less {folder}/server.log"
    return f"sparkdiag report {folder}"


def _at_dcp_1(command: tuple[str, ...]) -> str:
    """The same command, environment and model and all, at DCP 1."""
    extra: tuple[str, ...] = ()
    given = command
    if "--" in command:
        at = command.index("--")
        given, extra = command[:at], command[at:]
    kept: list[str] = []
    value = False
    for word in given:
        if not value and word != "--dcp" and not word.startswith("--dcp="):
            kept.append(word)
        value = word == "--dcp"
    if kept[:2] != ["sparkdiag", "repro"]:
        kept = ["sparkdiag", "repro"]
    without = [word for word in kept if word not in ("--json", "--control", "--git-bisect")]
    return join([*without, "--dcp", "1", *extra])
