"""What a run's folder has to say in public: the page to post, the long parts for a gist, and which run it is."""

import json
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sparkdiag.cli.report_formats import Format, rendered
from sparkdiag.cli.report_subject import OneBisection, OneRun, Subject, made_public, read_subject

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sparkdiag.evidence.redaction import Redactions
    from sparkdiag.evidence.stacks import StackSample

LARGEST_FILE_BYTES = 900_000
"""Of a gist's file: a larger one GitHub's API does not give back whole."""
_LONGEST_LINE = 64 * 1024
_TIME = re.compile(r"[0-9TZ:.+-]{1,40}")
_OPTION = re.compile(r"--[a-z][a-z0-9-]{0,60}(?=$|=)")
_TOGETHER = "here texts stand beside each other that together look private"
_MOST_TREE_LINES = 2000
_TREE_COLUMNS = 160


@dataclass(frozen=True, kw_only=True)
class Page:
    """Everything about the run that may be shown to others."""

    folder: Path
    run: str
    """Its mark."""
    markdown: str
    redactions: "Redactions"
    functions: tuple[str, ...]
    """Whose names others would write about the same stall."""
    files: dict[str, str] = field(default_factory=dict)
    """The long parts; empty unless they were asked for."""


def read_page(folder: Path, *, not_secret: frozenset[str], with_files: bool) -> Page:
    """Raises ``RunFolderError``."""
    from sparkdiag.harmless.printable import printable

    subject = read_subject([folder])
    shown, went = made_public(subject, not_secret=not_secret)
    page = rendered(shown, Format.MD)
    parts = _long_parts(shown).items() if with_files else ()
    files = {name: printable(text, newlines=True) for name, text in parts if text.strip()}
    for name, text in {"what sparkdiag report prints": page, **files}.items():
        went = went.plus(seen_as_one(text, name=name, not_secret=not_secret))
    return Page(
        folder=folder,
        run=_run_mark(subject, shown, folder),
        markdown=page,
        redactions=went,
        functions=_functions(shown, not_secret=not_secret),
        files={name: _cut(text) for name, text in files.items()},
    )


def seen_as_one(text: str, *, name: str, not_secret: frozenset[str]) -> "Redactions":
    """What in a finished ``text`` a person has to look at: what rendering puts together was never looked at as one.

    It is looked at and not written anew: of finished Markdown a rule takes fences and ticks for a part of a secret,
    and what stood behind them would come alive.
    """
    from sparkdiag.evidence.redaction import Redactions, Unclassified
    from sparkdiag.harmless.doubtful import fingerprint, masked
    from sparkdiag.recording.identities import identities_here
    from sparkdiag.reporting.public import public_page

    without, went = public_page(text, identities=identities_here(), accepted=not_secret)
    if without == text:
        return Redactions(unclassified=went.unclassified)
    rest = set(without.split("\n"))
    found = {
        fingerprint(line): Unclassified(
            where=f"line {number} of {name}", looks=masked(line.strip()), fingerprint=fingerprint(line), why=_TOGETHER
        )
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip() and line not in rest and fingerprint(line) not in not_secret
    }
    return Redactions(unclassified=(*went.unclassified, *found.values()))


def _run_mark(subject: Subject, shown: Subject, folder: Path) -> str:
    """Of what stays the same however often the run is judged again, and wherever its folder is put.

    Everybody may read the mark and try guesses on it, so it is made of nothing but when the run began and the names of
    the options on its public command lines: a path or a value differs from reader to reader, and may be private.
    """
    from sparkdiag.posting.marker import run_mark

    kind = "bisection" if isinstance(subject, OneBisection) else "run"
    words: tuple[str, ...] = ()
    began = _begun(folder) if isinstance(subject, OneBisection) else ""
    if isinstance(subject, OneRun) and isinstance(shown, OneRun):
        began = subject.run.record.started_at
        words = (*shown.run.record.command, *shown.run.record.server_argv)
    if not _TIME.fullmatch(began):
        return run_mark(kind, _public_name(folder))
    options = [found[0] for word in words if (found := _OPTION.match(word))]
    return run_mark(kind, *options, began=began)


def _public_name(folder: Path) -> str:
    """Of a folder whose record does not tell when it began. Its name holds a time, unless somebody has renamed it."""
    from sparkdiag.recording.identities import identities_here
    from sparkdiag.reporting.public import public_page

    return public_page(folder.resolve().name, identities=identities_here())[0]


def _begun(folder: Path) -> str:
    """When a bisection's journal begins; else when its folder was made, by its name."""
    from sparkdiag.recording.bisection import FOLDER_NAME, JOURNAL
    from sparkdiag.recording.record import open_regular

    at: object = None
    with suppress(OSError, ValueError, RecursionError), open_regular(folder / JOURNAL) as file:
        line = json.loads(file.readline(_LONGEST_LINE))
        at = line.get("at") if isinstance(line, dict) else None
    named = FOLDER_NAME.fullmatch(folder.resolve().name)
    return at if isinstance(at, str) else named[1] if named is not None else ""


def _functions(subject: Subject, *, not_secret: frozenset[str]) -> tuple[str, ...]:
    """Of the public subject: what is searched for goes to GitHub, so no name goes that may be a secret."""
    from sparkdiag.harmless.doubtful import doubtful, fingerprint

    return tuple(
        name for name in _named(subject) if name and {fingerprint(token) for token in doubtful(name)} <= not_secret
    )


def _named(subject: Subject) -> tuple[str | None, ...]:
    if isinstance(subject, OneBisection):
        reference = subject.found.reference
        return (reference.function if reference is not None else None, subject.found.target.frame)
    if not isinstance(subject, OneRun):
        return ()
    from sparkdiag.reporting.phrases import scenario_of

    verdict, scenario = subject.run.record.verdict, scenario_of(subject.run)
    of_scenario = [signature.function for signature in scenario.signatures] if scenario is not None else []
    return (verdict.function if verdict is not None else None, *of_scenario)


def _long_parts(subject: Subject) -> dict[str, str]:
    """What a comment has no room for."""
    if isinstance(subject, OneBisection):
        return {"bisection.json": subject.found.model_dump_json(by_alias=True, indent=2) + "\n"}
    if not isinstance(subject, OneRun):
        return {}
    from sparkdiag.reporting.call_tree import call_tree
    from sparkdiag.reporting.details import sections
    from sparkdiag.reporting.flame_text import flame_text

    verdict, samples = subject.run.record.verdict, subject.run.observation.samples
    tree = call_tree(samples, root="all samples", function=verdict.function if verdict is not None else None)
    return {
        "report.md": "\n\n".join(section.markdown for section in sections(subject.run)),
        "samples.txt": flame_text(tree, most_lines=_MOST_TREE_LINES, columns=_TREE_COLUMNS),
        "stacks.folded.txt": _folded(samples),
    }


def _folded(samples: "Iterable[StackSample]") -> str:
    """Each stack of every thread in one line, and how often: what flame graphs are made of."""
    counts = Counter(
        ";".join(frame.function for frame in reversed(thread.frames)) for sample in samples for thread in sample.threads
    )
    return "\n".join(f"{line} {count}" for line, count in counts.most_common() if line)


def _cut(text: str) -> str:
    data = text.encode("utf-8", errors="backslashreplace")
    if len(data) <= LARGEST_FILE_BYTES:
        return text
    whole_lines = data[:LARGEST_FILE_BYTES].rpartition(b"\n")[0].decode("utf-8", errors="ignore")
    return f"{whole_lines}\n… {len(data) - len(whole_lines.encode()):,} more bytes stay in the run folder\n"
