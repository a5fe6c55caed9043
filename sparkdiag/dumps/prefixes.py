"""What logs put in front of every line, taken off, and what it says of the process that wrote the line. Pure.

vLLM: ``(EngineCore_DP0 pid=123) ``, ``INFO 07-12 10:00:00 [core.py:12] `` (``vllm/utils/system_utils.py``,
``vllm/logging_utils``); Ray: ``(RayWorkerWrapper pid=12, ip=10.0.0.2) ``; docker compose: ``sglang-1  | ``; Kubernetes:
an RFC 3339 stamp, ``stdout F``; SGLang: ``[2026-07-12 10:00:00 DP0 TP1] ``; torchrun: ``[rank3]: ``; syslog.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from sparkdiag.dumps.formats.pyspy_lines import told
from sparkdiag.dumps.kept import kept_id, kept_name
from sparkdiag.dumps.naming import Identity, ranks_in
from sparkdiag.dumps.stamps import Stamp, stamp_in
from sparkdiag.evidence.processes import Ranks
from sparkdiag.evidence.titles import classify

_LONGEST = 400
_MOST = 6
_LEVEL = r"(?:INFO|WARNING|WARN|ERROR|DEBUG|CRITICAL|TRACE|FATAL)"
_DAY_TIME = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_PREFIX = re.compile(
    r"(?P<paren>\((?P<name>[A-Za-z][\w:.-]{0,60}(?: [\w:.=-]{1,30}){0,3})?[ _]?,? ?pid=(?P<pid>\d{1,10})"
    r"(?:, ?ip=(?P<ip>[\w.:-]{1,60}))?\)(?: |\Z))"
    r"|(?P<rank>\[(?:rank|default|RANK )?(?P<number>\d{1,5})\]:(?: |\Z))"
    r"|(?P<mpi>\[\d{1,5},(?P<mpi_rank>\d{1,5})\]<std(?:out|err)>:(?: |\Z)?)"
    r"|(?P<pod>\[(?:pod/)(?P<pod_name>[\w./-]{1,200})\](?: |\Z))"
    rf"|(?P<level>{_LEVEL}:? {{1,6}}\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{{1,6}})? {{1,4}}"
    r"(?:\[[^\]\s]{1,200}\]|[^\s\]]{1,200}\])(?: |\Z))"
    rf"|(?P<sglang>\[{_DAY_TIME}(?P<sglang_ranks>(?: [A-Z]{{2,4}}\d{{1,4}}){{0,6}})\]:?(?: |\Z))"
    rf"|(?P<iso>{_DAY_TIME}(?: std(?:out|err) [FP])?(?: - [\w.]{{1,100}})?"
    rf"(?: {{1,3}}-? ?\[?{_LEVEL}\]?(?: -|:)?)?(?: |\t|\Z))"
    r"|(?P<syslog>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (?P<syslog_host>[\w.-]{1,80}) "
    r"[\w./@-]{1,80}(?:\[\d{1,10}\])?:(?: |\Z))"
    r"|(?P<arrow>(?P<arrow_name>[A-Za-z][\w.-]{0,60}) ?>>(?: |\Z))"
    r"|(?P<time>\[?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?\]?(?: |\Z))"
)
_COMPOSE = re.compile(r"(?P<service>[A-Za-z0-9][\w./-]{0,80})[ \t]{1,40}\|(?: |\t|\Z)")
_HEADED = re.compile(
    r"^(?P<mark>[^\s(>#=\-][^\n]{0,60}?(?::|\||>|\]) {0,4})"
    r"(?=Process \d{1,10}: |Python v\d|Thread \S{1,20} \((?:active|idle))",
    re.MULTILINE,
)
_SIGN = re.compile(
    rf"^[ \t]*(?:\([^()\n]{{0,100}}pid=\d|\[(?:rank|default|RANK |pod/)?[\w,]{{1,8}}\]|\[pod/"
    rf"|{_LEVEL}:? {{1,6}}\d\d-|\[?\d{{4}}[-/]\d\d[-/]"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:|[A-Za-z][\w.-]{0,60} ?>> |\[?\d\d:\d\d:\d\d|[A-Za-z0-9][\w./-]{0,80}[ \t]{1,40}\|)",
    re.MULTILINE,
)
_TIME_OF_DAY = re.compile(r":\d\d:\d\d")
_WORKERS_OF_RAY = ("RayWorkerWrapper", "RayWorkerProc", "RayWorker")


@dataclass(frozen=True, slots=True)
class Prefix:
    """What stood before a line."""

    identity: Identity | None = None
    stamp: Stamp | None = None
    own_line: bool = False
    """Stands before a record's first line only (SGLang's): what follows without it may be of anybody."""


_NONE = Prefix()


class Prefixes:
    """Takes prefixes off the lines of one text; what kinds there may be is found in the whole text first."""

    def __init__(self, text: str) -> None:
        self._marks = _marks_in(text)
        self.any = bool(self._marks) or (_may_be_prefixed(text) and _SIGN.search(text) is not None)
        self._services = _services(text) if self.any and "|" in text else frozenset()

    def split(self, line: str) -> tuple[str, Prefix]:
        """The line without its prefixes, and what they say."""
        found = _NONE
        for _ in range(_MOST):
            taken = self._take(line.lstrip() if line[:1] in " \t" and _starts_prefix(line) else line, found)
            if taken is None:
                break
            line, found = taken
        return line, found

    def _take(self, line: str, found: Prefix) -> tuple[str, Prefix] | None:
        if (match := _PREFIX.match(line)) is not None:
            return line[match.end() :], _joined(found, _told(match[0]))
        if self._services and (compose := _COMPOSE.match(line)) is not None and compose["service"] in self._services:
            return line[compose.end() :], _joined(found, Prefix(identity=Identity(host=kept_name(compose["service"]))))
        for mark in self._marks:
            if line.startswith(mark):
                return line[len(mark) :], _joined(found, _marked(mark))
        return None


def _may_be_prefixed(text: str) -> bool:
    """A look that costs next to nothing, for texts without any prefix."""
    hints = "pid=" in text or " >> " in text or " |" in text or "\t|" in text or "\n[" in text or text[:1] == "["
    return hints or _TIME_OF_DAY.search(text) is not None


def _marks_in(text: str) -> tuple[str, ...]:
    """Prefixes of no known kind: whatever stands before several lines, and before headers of ``py-spy dump``."""
    headed = any(text.count(word) > text.count("\n" + word) + text.startswith(word) for word in ("Process ", "Thread "))
    if not headed:
        return ()
    marks = {match["mark"] for match in _HEADED.finditer(text)}
    return tuple(
        mark for mark in sorted(marks, key=len, reverse=True) if text.count("\n" + mark) > 2 and not _PREFIX.match(mark)
    )


def _starts_prefix(line: str) -> bool:
    return _PREFIX.match(line.lstrip()[:_LONGEST]) is not None


def _services(text: str) -> frozenset[str]:
    counted: dict[str, int] = {}
    for line in text.split("\n"):
        if (match := _COMPOSE.match(line)) is not None:
            counted[match["service"]] = counted.get(match["service"], 0) + 1
    return frozenset(service for service, times in counted.items() if times > 1)


def _joined(first: Prefix, then: Prefix) -> Prefix:
    identity = first.identity
    if then.identity is not None:
        own = then.identity
        identity = own if identity is None else replace(own, host=own.host or identity.host)
    return Prefix(identity=identity, stamp=first.stamp or then.stamp, own_line=first.own_line or then.own_line)


@lru_cache(maxsize=1024)
def _marked(mark: str) -> Prefix:
    name = mark.strip(" :|>[]")
    role, ranks = classify(["VLLM::" + name.replace(" ", "_")])
    known = role != "other"
    ranks = ranks if known else ranks_in(name)
    return Prefix(identity=Identity(host=None if known else kept_name(name), role=role if known else None, ranks=ranks))


@lru_cache(maxsize=4096)
def _told(text: str) -> Prefix:
    match = _PREFIX.match(text)
    if match is None:
        return _NONE
    if match["paren"]:
        return Prefix(identity=_paren(match))
    if match["rank"] or match["mpi"]:
        return Prefix(identity=Identity(ranks=Ranks(tp=int(match["number"] or match["mpi_rank"]))))
    if match["pod"]:
        return Prefix(identity=Identity(host=kept_name(match["pod_name"])))
    if match["arrow"]:
        return Prefix(identity=Identity(host=kept_name(match["arrow_name"])))
    if match["syslog"]:
        return Prefix(identity=Identity(host=kept_name(match["syslog_host"])), stamp=stamp_in(text))
    if match["sglang"] and match["sglang_ranks"]:
        ranks = ranks_in(match["sglang_ranks"])
        return Prefix(identity=Identity(role="worker", ranks=ranks), stamp=stamp_in(text), own_line=True)
    return Prefix(stamp=stamp_in(text))


def _paren(match: re.Match[str]) -> Identity:
    name = (match["name"] or "").strip()
    host = kept_name(match["ip"]) if match["ip"] else None
    if name in _WORKERS_OF_RAY:
        return Identity(pid=kept_id(match["pid"]), role="worker", host=host)
    first, _, rest = name.partition(" ")
    role, ranks = classify(["VLLM::" + name.replace(" ", "_")])
    if role == "other" and first:
        role, _unranked = classify(["VLLM::" + first])
        ranks = ranks_in(rest)
    return Identity(pid=kept_id(match["pid"]), role=None if role == "other" else role, ranks=ranks, host=host)


def _is_stack(line: str) -> bool:
    text = line.strip()
    return bool(text) and told(text).kind in ("frame", "thread", "process", "python")


@dataclass(slots=True)
class Stream:
    """The lines that one process, or nobody in particular, wrote."""

    identity: Identity
    lines: list[str]
    numbers: Sequence[int]
    """Each line's place in the whole text."""
    stamps: dict[int, Stamp]
    """By a line's index in this stream."""


def streams_of(lines: list[str]) -> tuple[Stream, ...]:
    """The lines apart by who wrote them, each without its prefix. A line without a prefix goes on what is above it."""
    prefixes = Prefixes("\n".join(lines))
    if not prefixes.any:
        return (Stream(Identity(), lines, range(len(lines)), {}),)
    streams: dict[Identity, Stream] = {}
    numbers: dict[Identity, list[int]] = {}
    current = Identity()
    for number, line in enumerate(lines):
        rest, prefix = prefixes.split(line)
        if prefix.identity is not None and (not prefix.own_line or _is_stack(rest)):
            current = prefix.identity
        elif prefix.identity is not None:
            rest = f"{prefix.identity.ranks.label.replace('_', ' ')}: {rest}" if not rest[:1].isspace() else rest
        stream = streams.get(current)
        if stream is None:
            numbers[current] = []
            stream = streams[current] = Stream(current, [], numbers[current], {})
        if prefix.stamp is not None:
            if not rest and prefix.identity is None and len(stream.lines) - 1 not in stream.stamps:
                rest = line  # what ``date`` printed, and no prefix
            stream.stamps[len(stream.lines)] = prefix.stamp
        stream.lines.append(rest)
        numbers[current].append(number)
    return tuple(streams.values())
