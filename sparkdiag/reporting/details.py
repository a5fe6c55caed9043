"""The folded parts of the Markdown report, each with how soon it is cut when the report grows too long, and how far."""

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TypeVar

from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.reporting.dispatch_ledger import LONGEST_LINE, ledger_line, ledger_markdown
from sparkdiag.reporting.environment_form import environment_form
from sparkdiag.reporting.evidence_parts import evidence_for_and_against, how_proved
from sparkdiag.reporting.fitted import Part, Section, folded, sections_of
from sparkdiag.reporting.kernel_numbers import kernel_numbers
from sparkdiag.reporting.phrases import looking_cost, moment, record_is_lost, scenario_of, seconds
from sparkdiag.reporting.repeat import exact_command
from sparkdiag.reporting.safe_text import code, fence, prose, table
from sparkdiag.reporting.stack_view import RankLook, name_of, rank_classes, stack_text
from sparkdiag.reporting.timeline_rows import Row, rows, thinned
from sparkdiag.reporting.where_samples import suspect_function, trees_text, worker_trees

__all__ = ["Section", "folded", "parts", "sections"]

T = TypeVar("T")
_LOOKS_A_CLASS = 16
_STACK_CHARS = 12_000
_LOG_CHARS = 8000


def sections(stored: StoredRun) -> tuple[Section, ...]:
    """In reading order; parts with nothing to say are not there."""
    return sections_of(parts(stored))


def parts(stored: StoredRun) -> tuple[Part, ...]:
    """All there are, in reading order; some have nothing to say."""
    return (*_findings(stored), *_facts(stored))


def _findings(stored: StoredRun) -> Iterable[Part]:
    """What the run showed."""
    function = suspect_function(stored)
    classes = rank_classes(stored.observation, function=function)
    trees = worker_trees(stored)
    looks = _looks(stored, function)
    yield Part(title="The server's last words", rank=0, make=lambda most: _last_words(stored, most),
                most=(40, 12), unit="lines of its log", open_=True)  # fmt: skip
    yield Part(title="Evidence for and against", rank=1, make=lambda most: evidence_for_and_against(stored, most),
                most=(10, 4), unit="items each", open_=True)  # fmt: skip
    yield Part(title="How DCP size and revision are proved", rank=4, make=lambda most: how_proved(stored, most),
                most=(16, 4), unit="witnesses")  # fmt: skip
    yield Part(title="Stack of each rank", rank=1, make=lambda most: _stacks(stored.observation, classes, most),
                most=(40, 20, 10), unit="frames a stack")  # fmt: skip
    yield Part(title="Where the samples are (flame tree)", rank=3, make=lambda most: trees_text(trees, most),
                most=(60, 30, 12), unit="lines")  # fmt: skip
    yield Part(title="Timeline", rank=3, make=lambda most: _timeline(stored, looks, most), most=(16, 8), unit="rows")
    yield Part(title="Dispatch ledger", rank=2, make=lambda most: _ledger(stored, most),
                most=(2, 1), unit="part, its sentence")  # fmt: skip
    yield Part(title="Kernel numbers", rank=4, make=lambda most: kernel_numbers(stored, most),
                most=(24, 4), unit="kernels")  # fmt: skip
    yield Part(title="Ranks", rank=5, make=lambda most: _ranks(stored, most), most=(40, 8), unit="processes")


def _facts(stored: StoredRun) -> Iterable[Part]:
    """On what it ran, and how."""
    yield Part(title="Environment, as vLLM's bug form asks for it", rank=5, make=lambda most: _form(stored, most),
                most=(16_000, 6000), unit="characters")  # fmt: skip
    yield Part(title="Exact command to reproduce", rank=2, make=lambda most: exact_command(stored, at_most=most),
                most=(_LOG_CHARS, 2500), unit="characters a command")  # fmt: skip
    yield Part(title="Processes", rank=7, make=lambda most: _processes(stored, most), most=(40, 12), unit="processes")
    yield Part(title="What sampling cost", rank=6, make=lambda most: _sampling(stored, most),
                most=(10, 3), unit="kinds of errors")  # fmt: skip
    yield Part(title="The run's own record", rank=8, make=lambda most: _record(stored, most),
                most=(16_000, 5000), unit="characters")  # fmt: skip
    yield Part(title="Notes", rank=9, make=lambda most: _notes(stored, most), most=(30, 10), unit="notes")


def _more(shown: Sequence[T], count: int, what: str) -> str:
    return f"\n\n… and {count - len(shown)} more {what} in the run folder." if count > len(shown) else ""


def _last_words(stored: StoredRun, most: int) -> str:
    end = stored.observation.server_exit
    if end is None:
        return ""
    how = f"signal {code(end.signal)}" if end.signal else prose(end.how)
    who = code(end.process) if end.process else "The server"
    at = moment(stored.observation, end.at_s)
    said = f"{who} ended {at} by {how}."
    if end.guardian_killed:
        said = f"{at[:1].upper()}{at[1:]}: {prose(end.how)}."
    lines = "\n".join(end.last_log_lines[-most:])
    return f"{said}\n\n{fence(lines, at_most=_LOG_CHARS)}" if lines else said


def _stacks(observation: Observation, classes: Sequence[Sequence[RankLook]], most_frames: int) -> str:
    """``most_frames`` of 40, 20, 10 come with at most 8, 4, 2 different stacks."""
    shown = classes[: max(most_frames // 5, 1)]
    blocks = []
    for looks in shown:
        names = ", ".join(code(name_of(look)) for look in looks[:_LOOKS_A_CLASS])
        names += f" and {len(looks) - _LOOKS_A_CLASS} more" if len(looks) > _LOOKS_A_CLASS else ""
        same = " share one path" if len(looks) > 1 else ""
        text = stack_text(observation, looks[:_LOOKS_A_CLASS], most_frames=most_frames)
        blocks.append(f"**{names}**{same}\n\n" + fence(text, at_most=_STACK_CHARS))
    return "\n\n".join(blocks) + _more(shown, len(classes), "different stacks")


def _looks(stored: StoredRun, function: str | None) -> tuple[Row, ...]:
    scenario = scenario_of(stored)
    signatures = scenario.signatures if scenario is not None else ()
    return rows(stored.observation, function=function, signatures=signatures)


def _timeline(stored: StoredRun, looks: Sequence[Row], most: int) -> str:
    made = thinned(looks, most)
    phases = thinned([next(same) for _, same in groupby(stored.phases, key=lambda event: event.phase)], most + 4)
    blocks = []
    if phases:
        told = (f"{event.phase} {moment(stored.observation, event.t_s)}" for event in phases)
        blocks.append(f"Phases: {', '.join(told)}.")
    if made:
        zero = "sending" if stored.observation.client.sent is not None else "start"
        head = (f"since {zero}", "KV use", "prompt tokens", "process", "top frame", "loop")
        blocks.append(table(head, [_row(row) for row in made]))
    return "\n\n".join(blocks)


def _row(row: Row) -> tuple[str, ...]:
    return (
        f"{row.t_s:.1f} s",
        f"{row.kv_cache_usage:.1%}" if row.kv_cache_usage is not None else "–",
        f"{row.prompt_tokens_total:.0f}" if row.prompt_tokens_total is not None else "–",
        code(row.process, at_most=60) if row.process else "–",
        code(row.top, at_most=80) if row.top else "–",
        code(row.loop, at_most=120) if row.loop else "–",
    )


def _ledger(stored: StoredRun, most: int) -> str:
    """Everything, or the sentence alone."""
    if most > 1:
        return ledger_markdown(stored)
    line = ledger_line(stored)
    return f"{prose(line, at_most=LONGEST_LINE)}." if line else ""


def _ranks(stored: StoredRun, most: int) -> str:
    verdict = stored.record.verdict
    if verdict is None or not verdict.ranks:
        return ""
    shown = verdict.ranks[:most]
    lines = [
        (
            f"{code(rank.name, at_most=60)} ({rank.pid})",
            code(rank.top_function, at_most=80) if rank.top_function else "–",
            f"{rank.top_share:.0%} of {rank.samples}",
            prose(rank.loop_progress, at_most=160) if rank.loop_progress else "–",
            "differs from its peers" if rank.differs else "",
        )
        for rank in shown
    ]
    head = ("process", "function", "samples", "progress", "")
    return table(head, lines) + _more(shown, len(verdict.ranks), "processes")


def _form(stored: StoredRun, at_most: int) -> str:
    return "" if record_is_lost(stored) else fence(environment_form(stored), at_most=at_most)


def _processes(stored: StoredRun, most: int) -> str:
    shown = stored.observation.processes[:most]
    lines = [
        (
            str(process.pid),
            str(process.parent_pid or "–"),
            code(process.name, at_most=60),
            code(process.title, at_most=160) if process.title else "–",
        )
        for process in shown
    ]
    made = table(("pid", "parent", "role", "title"), lines) if lines else ""
    return made + _more(shown, len(stored.observation.processes), "processes")


def _sampling(stored: StoredRun, most: int) -> str:
    stats, priority = stored.observation.sampling, stored.record.server_priority
    parts = []
    if stats.taken:
        parts.append(
            f"{looking_cost(stats)} {stats.taken} looks by {stats.mode}, {stats.late} late (not counted), "
            f"{stats.failed} failed; the longest took {seconds(stats.longest_s)}."
        )
    parts.append("\n".join(f"- *{count} times*: {prose(error)}" for error, count in list(stats.errors.items())[:most]))
    parts.append(f"Priority: {prose(priority.because)}." if priority is not None else "")
    return "\n\n".join(filter(None, parts))


def _record(stored: StoredRun, at_most: int) -> str:
    """What neither the form nor the commands tell."""
    if record_is_lost(stored):
        return ""
    record = stored.record
    document: dict[str, object] = {
        "sparkdiag": record.sparkdiag_version,
        "scenario": record.scenario.get("name"),
        "started_at": record.started_at,
        "timings_s": record.timings_s.model_dump(exclude_none=True),
        "environment": record.environment,
        "revision_files": [proof.model_dump() for proof in record.revision.files],
        "import_path": record.revision.import_path,
    }
    return fence(json.dumps(document, indent=2, ensure_ascii=False, default=str), info="json", at_most=at_most)


def _notes(stored: StoredRun, most: int) -> str:
    shown = thinned(stored.notes, most)
    lines = [
        f"- *{moment(stored.observation, note.t_s)}* {code(note.source, at_most=40)}: {prose(note.text)}"
        for note in shown
    ]
    return "\n".join(lines) + _more(shown, len(stored.notes), "notes")
