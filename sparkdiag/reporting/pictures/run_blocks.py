"""A run as blocks of a page. Pure."""

from dataclasses import dataclass
from shlex import join, quote

from sparkdiag.evidence.ledger import LedgerSummary
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.verdict import EvidenceItem
from sparkdiag.judging.course import CoursePoint, course_of
from sparkdiag.reporting.bands import Band, bands
from sparkdiag.reporting.call_tree import CallNode
from sparkdiag.reporting.dispatch_ledger import ledger_line
from sparkdiag.reporting.environment_form import environment_form
from sparkdiag.reporting.flame_text import flame_text
from sparkdiag.reporting.phrases import (
    CONTAINMENT,
    again_command,
    headline,
    moment,
    not_by_pyspy,
    prompt_text,
    record_is_lost,
    scenario_of,
    seconds,
    verdict_sentence,
    why_record_is_lost,
)
from sparkdiag.reporting.pictures.blocks import Block, Facts, Figure, Points, Pre, Table
from sparkdiag.reporting.pictures.colours import Palette
from sparkdiag.reporting.pictures.flame import flame, forest, shares
from sparkdiag.reporting.pictures.forecast_figure import forecast_figure, measured
from sparkdiag.reporting.pictures.layout import WIDE, Layout
from sparkdiag.reporting.pictures.timeline import picture, timeline
from sparkdiag.reporting.pictures.tracks import Window
from sparkdiag.reporting.predicted_route import route_sentence
from sparkdiag.reporting.run_scope import run_scope
from sparkdiag.reporting.stack_view import rank_classes, stack_text
from sparkdiag.reporting.timeline_rows import rows

_MOST_LOOKS = 2000
_MOST_CLASSES, _MOST_FRAMES, _MOST_RANKS, _MOST_ITEMS, _MOST_KERNELS = 12, 80, 64, 20, 64


def suspect_of(stored: StoredRun) -> str | None:
    """The function that the verdict names, else the scenario's first that was seen on any stack."""
    verdict, scenario = stored.record.verdict, scenario_of(stored)
    if verdict is not None and verdict.function is not None:
        return verdict.function
    named = [signature.function for signature in scenario.signatures] if scenario is not None else []
    threads = [thread for sample in stored.observation.samples for thread in sample.threads]
    return next((name for name in named if any(thread.find(name) for thread in threads)), None)


def run_bands(stored: StoredRun) -> tuple[Band, ...]:
    return bands(stored.observation, function=suspect_of(stored))


def run_course(stored: StoredRun) -> tuple[CoursePoint, ...]:
    """By an even part of the looks, where there are more than a curve can show."""
    scenario, seen = scenario_of(stored), stored.observation
    if scenario is None:
        return ()
    by_pid: dict[int, list[StackSample]] = {}
    for sample in seen.samples:
        by_pid.setdefault(sample.pid, []).append(sample)
    most = max(1, _MOST_LOOKS // max(1, len(by_pid)))
    kept = [one for looks in by_pid.values() for one in looks[:: -(-len(looks) // most)]]
    kept.sort(key=lambda one: one.ended_s)
    return course_of(seen.model_copy(update={"samples": tuple(kept)}), scenario)


@dataclass(frozen=True, slots=True)
class Gone:
    """What several pictures of a run are drawn from: gone through once, it may be long."""

    stored: StoredRun
    bands: tuple[Band, ...]
    course: tuple[CoursePoint, ...]
    tree: CallNode


def gone_through(stored: StoredRun) -> Gone:
    """All of a run's looks, once."""
    tree = forest(stored, function=suspect_of(stored))
    return Gone(stored=stored, bands=run_bands(stored), course=run_course(stored), tree=tree)


def answers(stored: StoredRun) -> Facts:
    """The reviewer's two questions, and what the source and the ledger say."""
    record = stored.record
    revision = record.revision
    lost = why_record_is_lost(stored) if record_is_lost(stored) else ""
    dcp = "not shown by the server"
    if record.dcp is not None and record.dcp.size is not None:
        dcp = f"{record.dcp.size} ({'; '.join(record.dcp.witnesses[:4]) or 'no witness'})"
    name = revision.sha or revision.version or "not known"
    proved = f"{name}, {'proved' if revision.proved else 'not proved'}"
    contains = CONTAINMENT[revision.contains_suspect_commit]
    suspect = f"{revision.suspect_commit}: {contains}" if revision.suspect_commit else f"none is named ({contains})"
    found = [
        ("DCP size", lost or dcp),
        ("Revision", lost or proved),
        ("Suspect commit in it", lost or suspect),
        ("Scope", run_scope(stored)),
        ("Route", route_sentence(stored)),
        ("Ledger", ledger_line(stored)),
        ("Prompt", prompt_text(stored)),
        ("Stacks", not_by_pyspy(stored.observation.sampling)),
    ]
    return Facts(rows=[(label, said) for label, said in found if said])


def evidence(stored: StoredRun, judged_again: StoredRun | None) -> list[Block]:
    """For, against, what a later judge says, what the folder lacks."""
    verdict, made = stored.record.verdict, list[Block]()
    if judged_again is not None:
        said = f"{headline(judged_again)}. {verdict_sentence(judged_again)}"
        made.append(Points(title="Judged again by this version", rows=[("verdict", said)], tone="warn"))
    if verdict is not None:
        made.append(Points(title="For", rows=_items(verdict.evidence_for), tone="for"))
        made.append(Points(title="Against", rows=_items(verdict.evidence_against), tone="against"))
    diagnosis = stored.record.diagnosis
    if diagnosis is not None:
        said_so = {item.text for item in (*verdict.evidence_for, *verdict.evidence_against)} if verdict else set()
        for title, reasons in (
            ("Diagnosis: for", diagnosis.reasons_for),
            ("Diagnosis: against", diagnosis.reasons_against),
        ):
            rows_ = [
                (one.source, one.text) for one in reasons if said_so.isdisjoint((one.text, f"{one.source}: {one.text}"))
            ]
            made.append(Points(title=title, rows=rows_[:_MOST_ITEMS]))
    if stored.problems:
        lacks = [("run folder", problem) for problem in stored.problems[:_MOST_ITEMS]]
        made.append(Points(title="What is missing from this run's folder", rows=lacks, tone="warn"))
    return [block for block in made if not isinstance(block, Points) or block.rows]


def _items(items: tuple[EvidenceItem, ...]) -> list[tuple[str, str]]:
    return [(item.source, item.text) for item in items[:_MOST_ITEMS]]


def timeline_figure(
    run: Gone, *, window: Window, palette: Palette, title: str = "Timeline", layout: Layout = WIDE
) -> Figure:
    stored, progress = run.stored, measured(run.stored, run.course)
    drawn = timeline(stored, run.bands, window=window, palette=palette, layout=layout, progress=progress)
    caption = "GPU load and power are recorded and decide nothing: they are the same in a stall and in healthy work."
    caption = caption if stored.observation.gpus else ""
    label = f"{title}: KV use, prompt tokens, GPUs where there are any, and the top frame of each process over time"
    return Figure(title=title, markup=picture(drawn, label=label, layout=layout), caption=caption)


def progress_figure(
    run: Gone,
    *,
    until_s: float | None = None,
    title: str = "Progress and forecast",
    layout: Layout = WIDE,
) -> Figure:
    drawn = forecast_figure(run.stored, run.course, until_s=until_s, layout=layout)
    label = f"{title}: measured, foreseen and healthy, from nothing to the whole prefill"
    caption = "Solid: measured. Dashed, with its range: foreseen. Dotted: the healthy time to the first token."
    return Figure(title=title, markup=picture(drawn, label=label, layout=layout), caption=caption)


def flame_figure(run: Gone, *, palette: Palette, title: str = "Flame graph", layout: Layout = WIDE) -> Figure:
    label = f"{title}: calls from the outermost frame down, as wide as they were often seen"
    caption = "Click a function, or move with the arrow keys and press Enter, to see it alone; Escape goes back."
    markup = flame(run.tree, palette=palette, label=label, layout=layout)
    return Figure(title=title, markup=markup, caption=caption, clickable=True)


def tables(run: Gone) -> list[Block]:
    """The pictures' numbers, and all that a report has beside them; each behind its title."""
    stored, root = run.stored, run.tree
    suspect, scenario = suspect_of(stored), scenario_of(stored)
    signatures = scenario.signatures if scenario is not None else ()
    innermost = [(name, f"{share:.0%}") for name, share in shares(root)[:_MOST_ITEMS]] if root.samples else []
    made: list[Block] = [
        Table(
            title="Timeline in numbers",
            head=("since sending", "KV use", "prompt tokens", "process", "top frame", "loop"),
            rows=[
                (
                    f"{row.t_s:.1f} s",
                    f"{row.kv_cache_usage:.1%}" if row.kv_cache_usage is not None else "–",
                    f"{row.prompt_tokens_total:.0f}" if row.prompt_tokens_total is not None else "–",
                    row.process or "–",
                    row.top or "–",
                    row.loop or "–",
                )
                for row in rows(stored.observation, function=suspect, signatures=signatures)
            ],
            folded=True,
        ),
        Table(title="Innermost functions", head=("function", "share of looks"), rows=innermost, folded=True),
        Pre(title="Flame graph as text", body=flame_text(root, most_lines=80, columns=110) if root.samples else ""),
        Pre(title="Stack of each rank", body=_stacks(stored, suspect)),
    ]
    made += _ledger(stored.ledger) if stored.ledger is not None else []
    made.append(_ranks(stored))
    return [block for block in made if _has_something(block)]


def _has_something(block: Block) -> bool:
    return bool(block.rows) if isinstance(block, Table) else bool(block.body) if isinstance(block, Pre) else True


def _stacks(stored: StoredRun, suspect: str | None) -> str:
    classes = rank_classes(stored.observation, function=suspect)
    shown = [stack_text(stored.observation, looks[:16], most_frames=_MOST_FRAMES) for looks in classes[:_MOST_CLASSES]]
    left = len(classes) - len(shown)
    return "\n\n".join([*shown, *([f"… and {left} more different stacks"] if left > 0 else [])])


def _ranks(stored: StoredRun) -> Table:
    verdict = stored.record.verdict
    found = verdict.ranks[:_MOST_RANKS] if verdict is not None else ()
    return Table(
        title="Ranks",
        head=("process", "function", "samples", "progress", ""),
        rows=[
            (
                f"{rank.name} ({rank.pid})",
                rank.top_function or "–",
                f"{rank.top_share:.0%} of {rank.samples}",
                rank.loop_progress or "–",
                "differs from its peers" if rank.differs else "",
            )
            for rank in found
        ],
        marked=frozenset(place for place, rank in enumerate(found) if rank.differs),
        folded=True,
    )


def _ledger(summary: LedgerSummary) -> list[Block]:
    kernels = [(rank, kernel) for rank in summary.ranks for kernel in rank.kernels]
    return [
        Table(
            title="Dispatch ledger: kernels",
            head=("kernel", "rank", "calls", "chunks", "time", "largest rows × keys", "heads a pass"),
            rows=[
                (
                    kernel.function,
                    rank.rank,
                    str(kernel.calls),
                    f"{kernel.chunks} of {rank.chunks}",
                    f"{seconds(kernel.took_s)} {'on the device' if kernel.synced else 'on the host'}",
                    f"{kernel.rows_max if kernel.rows_max is not None else '?'} × "
                    f"{kernel.keys_max if kernel.keys_max is not None else '?'}",
                    str(kernel.head_chunk_size) if kernel.head_chunk_size is not None else "–",
                )
                for rank, kernel in kernels[:_MOST_KERNELS]
            ],
            folded=True,
            note=f"{summary.sentence}. No verdict rests on the ledger.",
        ),
        Table(
            title="Dispatch ledger: what other sources say",
            head=("question", "", "each source"),
            rows=[(one.question, one.answer, "; ".join(one.says)) for one in summary.findings[:_MOST_ITEMS]],
            marked=frozenset(n for n, one in enumerate(summary.findings[:_MOST_ITEMS]) if one.answer == "disagree"),
            folded=True,
        ),
    ]


def closing(stored: StoredRun) -> list[Block]:
    """Environment, the server's command, notes, and what to type to run it again."""
    record, made = stored.record, list[Block]()
    if not record_is_lost(stored):
        made.append(Pre(title="Environment", body=environment_form(stored)))
    if record.server_argv:
        env = [f"{name}={quote(value)}" for name, value in sorted(record.server_env.items())]
        made.append(Pre(title="Server command", body="\n".join([*env, join(record.server_argv)])))
    if stored.notes:
        shown = [(moment(stored.observation, note.t_s), note.source, note.text) for note in stored.notes[:100]]
        made.append(Table(title="Notes", head=("at", "source", ""), rows=shown, folded=True))
    command = again_command(stored)
    if command is not None:
        made.append(Pre(title="Run it again", body=command, folded=False, to_copy=True))
    return made
