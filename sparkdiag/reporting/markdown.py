"""The report to paste into a pull request: the reviewer's two questions first, the verdict next, the rest folded.

Nothing from outside reaches the page except through ``safe_text``.
"""

from sparkdiag.evidence.stored import StoredRun
from sparkdiag.reporting.details import sections
from sparkdiag.reporting.dispatch_ledger import LONGEST_LINE, ledger_line
from sparkdiag.reporting.fitted import MOST_BYTES, fitted
from sparkdiag.reporting.phrases import (
    CONTAINMENT,
    again_command,
    headline,
    not_by_pyspy,
    prompt_text,
    record_is_lost,
    verdict_sentence,
    why_record_is_lost,
)
from sparkdiag.reporting.predicted_route import route_sentence
from sparkdiag.reporting.run_scope import run_scope
from sparkdiag.reporting.safe_text import code, fence, prose
from sparkdiag.reporting.triage_markdown import diagnosis_answer
from sparkdiag.reporting.unsampled import unsampled_blocks, watched_headline

__all__ = ["MOST_BYTES", "REPORT", "render_markdown"]

REPORT = "report.md"
_ITEM_CHARS = 300
_MOST_PROBLEMS = 6
_ROUTE_CHARS, _LESS_CHARS = 1500, 300
_MOST_WITNESSES = 6
"""With these the first screen alone stays below ``MOST_BYTES``, whatever it is made of."""


def render_markdown(stored: StoredRun, *, judged_again: StoredRun | None = None) -> str:
    """At most 65,536 bytes of UTF-8; what had to be left out, the least useful first, is named.

    ``judged_again`` is the same run with today's judge's verdict, where that differs from the stored one.
    """
    return fitted(_head(stored, judged_again), sections(stored), where="The run folder")


def _head(stored: StoredRun, judged_again: StoredRun | None) -> list[str]:
    """The first screen: what decides, and what to type; the rest is folded."""
    verdict = f"**Verdict.** {prose(verdict_sentence(stored), at_most=1000)}"
    blocks = [f"## sparkdiag: {_title(stored)}", _two_questions(stored), verdict]
    if judged_again is not None:
        blocks.append(_judged_again(stored, judged_again))
    diagnosis = stored.record.diagnosis
    blocks += [_lines(stored)]
    if diagnosis is not None:
        blocks += diagnosis_answer(diagnosis) if diagnosis.looks else unsampled_blocks(diagnosis)
    if stored.problems:
        blocks.append(_problems(stored))
    command = again_command(stored)
    if command is not None:
        blocks.append("**Run it again**\n\n" + fence(command, info="sh", at_most=2000))
    return list(filter(None, blocks))


def _lines(stored: StoredRun) -> str:
    """One paragraph each: where it applies, what source and ledger say, the prompt and its answer."""
    scope, route, ledger = run_scope(stored), route_sentence(stored), ledger_line(stored)
    prompt, stacks = prompt_text(stored), not_by_pyspy(stored.observation.sampling)
    lines = (
        f"**Scope.** {prose(scope, at_most=_ROUTE_CHARS)}." if scope else "",
        f"**Route.** {prose(route, at_most=_ROUTE_CHARS if _compared(stored) else _LESS_CHARS)}." if route else "",
        f"**Ledger.** {prose(ledger, at_most=LONGEST_LINE)}." if ledger else "",
        f"**Prompt.** {prose(prompt)}." if prompt is not None else "",
        _answer(stored),
        f"**Stacks** were {prose(stacks, at_most=1000)}." if stacks else "",
    )
    return "\n\n".join(filter(None, lines))


def _compared(stored: StoredRun) -> bool:
    return stored.agreement is not None and stored.agreement.answer != "not compared"


def _judged_again(stored: StoredRun, judged_again: StoredRun) -> str:
    again = "Judged again by this version, the verdict differs:"
    if stored.record.verdict is None:
        again = "Judged now, by what was recorded until the end:"
    sentence = prose(verdict_sentence(judged_again), at_most=1000)
    return f"**{again}** {prose(headline(judged_again))}. {sentence}"


def _problems(stored: StoredRun) -> str:
    shown = stored.problems[:_MOST_PROBLEMS]
    lines = [f"- *run folder*: {prose(problem, at_most=_ITEM_CHARS)}" for problem in shown]
    if len(stored.problems) > len(shown):
        lines.append(f"- … and {len(stored.problems) - len(shown)} more")
    return "**What is missing from this run's folder**\n\n" + "\n".join(lines)


def _title(stored: StoredRun) -> str:
    verdict = stored.record.verdict
    where = f" in {code(verdict.function)}" if verdict is not None and verdict.function else ""
    if stored.record.diagnosis is not None and stored.observation.client.sent is None:
        return f"watch: {prose(watched_headline(stored.record.diagnosis), at_most=500)}"
    watched = "watch: " if stored.record.watched else ""
    return f"{watched}{prose(headline(stored))}{where}"


def _two_questions(stored: StoredRun) -> str:
    """The DCP size the running server shows and the revision it proved, each with its witnesses."""
    suspect = stored.record.revision.suspect_commit
    of_commit = f" {code(suspect)}" if suspect else ""
    rows = [
        "| The reviewer's question | What the running server shows |",
        "|---|---|",
        f"| 1. DCP size (`decode_context_parallel_size`) | {_dcp(stored)} |",
        f"| 2. Revision | {_revision(stored)} |",
        f"| … contains the suspect commit{of_commit}? | {_contains(stored)} |",
    ]
    return "\n".join(rows)


def _dcp(stored: StoredRun) -> str:
    proof = stored.record.dcp
    if record_is_lost(stored):
        return _lost(stored, seen=f"the worker titles seen were {titles}" if (titles := _rank_titles(stored)) else "")
    if proof is None:
        return "**not known**: the server did not come far enough to show it"
    size = f"**{proof.size}**" if proof.size is not None else "**not known**"
    asked = "as asked" if proof.size == proof.asked else f"asked for {proof.asked}"
    asked = "of a server that sparkdiag did not start" if stored.record.watched else asked
    conflict = "" if proof.consistent else "; **the witnesses disagree**"
    seen_by = "; ".join(prose(witness, at_most=200) for witness in proof.witnesses[:_MOST_WITNESSES])
    return f"{size} ({asked}{conflict}). Seen by: {seen_by or 'no witness'}"


def _revision(stored: StoredRun) -> str:
    proof = stored.record.revision
    if record_is_lost(stored):
        return _lost(stored)
    if stored.record.dcp is None:  # proved together with the DCP size, when the server is ready
        prepared = stored.record.environment.get("revision_sha") or stored.record.environment.get("vllm_version")
        at = f" (the environment is at {code(str(prepared))})" if prepared else ""
        return f"**not proved**: the run ended before the running server was asked{at}"
    what = code(proof.sha) if proof.sha else "no git revision"
    version = f", vLLM {code(proof.version)}" if proof.version else ""
    word = "**proved**" if proof.proved else "**not proved**"
    because = f": {prose(proof.because, at_most=600)}" if proof.because and not proof.proved else ""
    asked = f" (asked for {code(proof.asked)})" if proof.asked and proof.asked != proof.sha else ""
    return f"{what}{version}{asked}, {word}{because}"


def _lost(stored: StoredRun, *, seen: str = "") -> str:
    return f"**not known**: {prose(why_record_is_lost(stored))}" + (f"; {seen}" if seen else "")


def _rank_titles(stored: StoredRun) -> str:
    """The workers as their titles named them, which is all that the streams say about the DCP size."""
    return ", ".join(code(worker.name, at_most=60) for worker in stored.observation.workers[:_MOST_WITNESSES])


def _no_suspect(stored: StoredRun) -> str:
    if record_is_lost(stored):
        return "the scenario is not known"
    if stored.record.dcp is None:  # proved together with the revision, when the server is ready
        return "the run ended before the running server was asked"
    return "the scenario names no suspect commit"


def _contains(stored: StoredRun) -> str:
    proof = stored.record.revision
    answer = f"**{CONTAINMENT[proof.contains_suspect_commit]}**"
    if not proof.suspect_commit:
        return f"{answer} ({_no_suspect(stored)})"
    return answer


def _answer(stored: StoredRun) -> str:
    """What came back and what should have, once the response has ended by itself."""
    client = stored.observation.client
    if client.sent is None or client.end is None or client.end.how == "cancelled":
        return ""
    reason = f", {code('finish_reason=' + client.end.finish_reason)}" if client.end.finish_reason else ""
    error = f", {prose(client.end.error)}" if client.end.error else ""
    because = f": {prose(client.score_because)}" if client.score_because else ""
    score = f" **{client.score}**{because}." if client.score else ""
    return f"**Answer.** {code(client.text)}, expected {code(client.sent.expected)}{reason}{error}.{score}"
