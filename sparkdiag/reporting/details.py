"""The folded parts of the Markdown report, each with how soon it may be left out when the report grows too long."""

import json
from shlex import join, quote

from sparkdiag.evidence.stored import StoredRun
from sparkdiag.reporting.dispatch_ledger import ledger_markdown
from sparkdiag.reporting.fitted import Section
from sparkdiag.reporting.phrases import looking_cost, record_is_lost, scenario_of, seconds
from sparkdiag.reporting.safe_text import code, fence, prose, table
from sparkdiag.reporting.stack_view import name_of, rank_classes, stack_text
from sparkdiag.reporting.timeline_rows import Row, rows, thinned

__all__ = ["Section", "folded", "sections"]

_MOST_FRAMES = 40
_MOST_CLASSES = 8
_MOST_PROCESSES = 40
_MOST_NOTES = 30


def sections(stored: StoredRun) -> tuple[Section, ...]:
    """In reading order; parts with nothing to say are not there."""
    made = (
        ("The server's last words", 0, _last_words(stored)),
        ("Stack of each rank", 1, _stacks(stored)),
        ("Dispatch ledger", 2, ledger_markdown(stored)),
        ("Timeline", 2, _timeline(stored)),
        ("Ranks", 3, _ranks(stored)),
        ("Processes", 6, _processes(stored)),
        ("What sampling cost", 5, _sampling(stored)),
        ("Server command", 4, _server(stored)),
        ("Environment", 7, _environment(stored)),
        ("Notes", 8, _notes(stored)),
    )
    return tuple(Section(rank=rank, title=title, markdown=folded(title, body)) for title, rank, body in made if body)


def folded(title: str, body: str) -> str:
    """``body`` behind a title that opens it; the title is ours."""
    return f"<details>\n<summary>{title}</summary>\n\n{body}\n\n</details>"


def _function(stored: StoredRun) -> str | None:
    """The function the verdict names, else the scenario's first that was seen on any stack."""
    verdict = stored.record.verdict
    if verdict is not None and verdict.function is not None:
        return verdict.function
    scenario = scenario_of(stored)
    named = [signature.function for signature in scenario.signatures] if scenario is not None else []
    threads = [thread for sample in stored.observation.samples for thread in sample.threads]
    return next((name for name in named if any(thread.find(name) for thread in threads)), None)


def _last_words(stored: StoredRun) -> str:
    end = stored.observation.server_exit
    if end is None:
        return ""
    how = f"signal {code(end.signal)}" if end.signal else end.how
    who = code(end.process) if end.process else "The server"
    said = f"{who} ended at {seconds(end.at_s)} by {how}."
    if end.guardian_killed:
        said = f"At {seconds(end.at_s)} {end.how}."
    lines = "\n".join(end.last_log_lines[-40:])
    return f"{said}\n\n{fence(lines, at_most=8000)}" if lines else said


def _stacks(stored: StoredRun) -> str:
    classes = rank_classes(stored.observation, function=_function(stored))
    blocks = []
    for looks in classes[:_MOST_CLASSES]:
        names = ", ".join(code(name_of(look)) for look in looks[:16])
        same = " share one path" if len(looks) > 1 else ""
        blocks.append(f"**{names}**{same}\n\n" + fence(stack_text(looks[:16], most_frames=_MOST_FRAMES), at_most=12000))
    if len(classes) > _MOST_CLASSES:
        blocks.append(f"… and {len(classes) - _MOST_CLASSES} more different stacks in the run folder.")
    return "\n\n".join(blocks)


def _timeline(stored: StoredRun) -> str:
    scenario = scenario_of(stored)
    made = rows(
        stored.observation, function=_function(stored), signatures=scenario.signatures if scenario is not None else ()
    )
    phases = thinned(stored.phases, 20)
    blocks = []
    if phases:
        blocks.append("Phases: " + ", ".join(f"{event.phase} at {seconds(event.t_s)}" for event in phases) + ".")
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


def _ranks(stored: StoredRun) -> str:
    verdict = stored.record.verdict
    if verdict is None or not verdict.ranks:
        return ""
    lines = [
        (
            f"{code(rank.name, at_most=60)} ({rank.pid})",
            code(rank.top_function, at_most=80) if rank.top_function else "–",
            f"{rank.top_share:.0%} of {rank.samples}",
            prose(rank.loop_progress, at_most=160) if rank.loop_progress else "–",
            "differs from its peers" if rank.differs else "",
        )
        for rank in verdict.ranks[:_MOST_PROCESSES]
    ]
    return table(("process", "function", "samples", "progress", ""), lines)


def _processes(stored: StoredRun) -> str:
    lines = [
        (
            str(process.pid),
            str(process.parent_pid or "–"),
            code(process.name, at_most=60),
            code(process.title, at_most=160) if process.title else "–",
        )
        for process in stored.observation.processes[:_MOST_PROCESSES]
    ]
    return table(("pid", "parent", "role", "title"), lines) if lines else ""


def _sampling(stored: StoredRun) -> str:
    stats, priority = stored.observation.sampling, stored.record.server_priority
    parts = []
    if stats.taken:
        parts.append(
            f"{looking_cost(stats)} {stats.taken} looks by {stats.mode}, {stats.late} late (not counted), "
            f"{stats.failed} failed; the longest took {seconds(stats.longest_s)}."
        )
    parts.append("\n".join(f"- *{count} times*: {prose(error)}" for error, count in list(stats.errors.items())[:10]))
    parts.append(f"Priority: {prose(priority.because)}." if priority is not None else "")
    return "\n\n".join(filter(None, parts))


def _server(stored: StoredRun) -> str:
    if not stored.record.server_argv:
        return ""
    env = [f"{name}={quote(value)}" for name, value in sorted(stored.record.server_env.items())]
    return fence("\n".join([*env, join(stored.record.server_argv)]), info="sh", at_most=8000)


def _environment(stored: StoredRun) -> str:
    if record_is_lost(stored):
        return ""
    record = stored.record
    document: dict[str, object] = {
        "sparkdiag": record.sparkdiag_version,
        "scenario": record.scenario.get("name"),
        "started_at": record.started_at,
        "timings_s": record.timings_s.model_dump(exclude_none=True),
        "host": record.host.model_dump() if record.host is not None else None,
        "environment": record.environment,
        "revision_files": [proof.model_dump() for proof in record.revision.files],
        "import_path": record.revision.import_path,
    }
    return fence(json.dumps(document, indent=2, ensure_ascii=False, default=str), info="json", at_most=16000)


def _notes(stored: StoredRun) -> str:
    lines = [
        f"- *{seconds(note.t_s)}* {code(note.source, at_most=40)}: {prose(note.text)}"
        for note in thinned(stored.notes, _MOST_NOTES)
    ]
    return "\n".join(lines)
