"""A run as blocks of a page. Pure."""

from dataclasses import dataclass

from sparkdiag.evidence.stacks import StackSample
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.verdict import EvidenceItem
from sparkdiag.judging.course import CoursePoint, course_of
from sparkdiag.reporting.bands import Band, bands
from sparkdiag.reporting.call_tree import CallNode
from sparkdiag.reporting.dispatch_ledger import ledger_line
from sparkdiag.reporting.phrases import (
    CONTAINMENT,
    headline,
    not_by_pyspy,
    prompt_text,
    record_is_lost,
    scenario_of,
    verdict_sentence,
    why_record_is_lost,
)
from sparkdiag.reporting.pictures.blocks import Block, Facts, Figure, Points
from sparkdiag.reporting.pictures.colours import Palette
from sparkdiag.reporting.pictures.flame import flame, forest
from sparkdiag.reporting.pictures.forecast_figure import forecast_figure, is_seen, measured
from sparkdiag.reporting.pictures.layout import WIDE, Layout
from sparkdiag.reporting.pictures.timeline import picture, timeline
from sparkdiag.reporting.pictures.tracks import Window
from sparkdiag.reporting.predicted_route import route_sentence
from sparkdiag.reporting.run_scope import run_scope
from sparkdiag.reporting.where_samples import suspect_function

_MOST_LOOKS = 2000
_MOST_ITEMS = 20


def run_bands(stored: StoredRun) -> tuple[Band, ...]:
    return bands(stored.observation, function=suspect_function(stored))


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
    tree = forest(stored, function=suspect_function(stored))
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
    own = stored.record.diagnosis is None or stored.observation.client.sent is not None
    if verdict is not None and own:  # of a server that was only watched the diagnosis says it
        made.append(Points(title="For", rows=_items(verdict.evidence_for), tone="for"))
        made.append(Points(title="Against", rows=_items(verdict.evidence_against), tone="against"))
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
    points = measured(run.stored, run.course)
    way = (
        "Solid: measured."
        if is_seen(points)
        else "Thin dots: only the two ends are known, nothing was seen in between."
    )
    caption = f"{way} Dashed, with its range: foreseen. Dotted green: the healthy time to the first token."
    caption = caption if points else ""
    return Figure(title=title, markup=picture(drawn, label=label, layout=layout), caption=caption)


def flame_figure(run: Gone, *, palette: Palette, title: str = "Flame graph", layout: Layout = WIDE) -> Figure:
    label = f"{title}: calls from the outermost frame down, as wide as they were often seen"
    caption = "Click a function, or move with the arrow keys and press Enter, to see it alone; Escape goes back."
    markup = flame(run.tree, palette=palette, label=label, layout=layout)
    return Figure(title=title, markup=markup, caption=caption, clickable=True)
