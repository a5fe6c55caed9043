"""What a run's folder has to say in public: the page to post, the long parts for a gist, and which run it is."""

from collections import Counter
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
_FIRST_LINE = 64 * 1024
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
    functions: tuple[str | None, ...]
    """Whose names others would write about the same stall."""
    files: dict[str, str] = field(default_factory=dict)
    """The long parts; empty unless they were asked for."""


def read_page(folder: Path, *, not_secret: frozenset[str], with_files: bool) -> Page:
    """Raises ``RunFolderError``."""
    from sparkdiag.harmless.printable import printable
    from sparkdiag.recording.identities import identities_here
    from sparkdiag.reporting.public import public_page

    subject = read_subject([folder])
    shown, went = made_public(subject, not_secret=not_secret)
    whose = identities_here()
    # The page is looked at once more as it will be posted: what rendering puts together was never looked at as one.
    page, more = public_page(rendered(shown, Format.MD), identities=whose, accepted=not_secret)
    went = went.plus(more)
    files: dict[str, str] = {}
    for name, text in _long_parts(shown).items() if with_files else ():
        files[name], more = public_page(printable(text, newlines=True), identities=whose, accepted=not_secret)
        went = went.plus(more)
    return Page(
        folder=folder,
        run=_run_mark(subject, folder),
        markdown=page,
        redactions=went,
        functions=_functions(subject),
        files={name: _cut(text) for name, text in files.items() if text.strip()},
    )


def _run_mark(subject: Subject, folder: Path) -> str:
    """Of what stays the same however often the run is judged again, and wherever its folder is put."""
    from sparkdiag.posting.marker import run_mark

    if isinstance(subject, OneRun) and subject.run.record.started_at:
        record = subject.run.record
        return run_mark("run", *record.command, *record.server_argv, began=record.started_at)
    if isinstance(subject, OneBisection):
        return run_mark("bisection", _first_line(folder) or folder.resolve().name)
    return run_mark("run", folder.resolve().name)


def _first_line(folder: Path) -> str:
    """How a bisection's journal begins: what was asked, and when."""
    from sparkdiag.recording.bisection import JOURNAL
    from sparkdiag.recording.record import open_regular

    try:
        with open_regular(folder / JOURNAL) as file:
            return file.readline(_FIRST_LINE).decode("utf-8", errors="replace")
    except OSError:
        return ""


def _functions(subject: Subject) -> tuple[str | None, ...]:
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
