"""A bisection as blocks of a page. Pure."""

from sparkdiag.evidence.bisection import Bisection, Commit, Trial
from sparkdiag.reporting import bisection_phrases as phrases
from sparkdiag.reporting.pictures.blocks import Block, Facts, Points, Pre, Table

_MOST_CANDIDATES, _MOST_TRIALS = 400, 500


def bisection_title(found: Bisection) -> str:
    """``bisect: 1cea6e7154 (fix)``."""
    if found.outcome == "found" and found.commits:
        return f"bisect: {phrases.short(found.axis, found.commits[0].sha)} ({found.direction or 'found'})"
    return f"bisect: {phrases.headline(found)}"


def bisection_lead(found: Bisection) -> str:
    """The answer in a sentence."""
    said = phrases.answer(found)
    if found.outcome == "found" and found.commits:
        return f"{said} {_named(found, found.commits[0])}{phrases.on(found)}."
    return f"{said}. {phrases.why_not_found(found)}"


def bisection_blocks(found: Bisection) -> list[Block]:
    """Where was searched and how sure it is, candidates, trials, the diff, notes, the command."""
    made: list[Block] = [
        Facts(rows=[("Searched", phrases.where(found)), *phrases.how_sure(found)]),
    ]
    if found.outcome == "candidates":
        rows = [(str(place), _named(found, one)) for place, one in enumerate(found.commits[:_MOST_CANDIDATES], start=1)]
        made.append(Table(title="Candidates, in history order", head=("", "commit"), rows=rows))
    if found.trials:
        head = ("point", "subject", "why", "verdict", "side", "evidence", "min")
        trials = found.trials[:_MOST_TRIALS]
        marked = frozenset(place for place, trial in enumerate(trials) if trial.has == "yes")
        made.append(Table(title="Trials", head=head, rows=[_trial(found, one) for one in trials], marked=marked))
    skipped = [(phrases.short(found.axis, one.result.sha), one.because) for one in phrases.skips(found.trials)]
    if skipped:
        made.append(Points(title="What the trials that could not tell said", rows=skipped, tone="warn"))
    if found.stack_difference:
        rows_ = [(one.function, f"{one.share_with:.0%}", f"{one.share_without:.0%}") for one in found.stack_difference]
        title = "Where the workers were, with and without it"
        made.append(Table(title=title, head=("innermost function", "with", "without"), rows=rows_))
    if found.suspect_diff.strip():
        title = "The watched files between the last old and the first new point"
        made.append(Pre(title=title, body=found.suspect_diff))
    if found.notes:
        made.append(Points(title="Notes", rows=[("note", note) for note in found.notes]))
    command = phrases.again_command(found)
    if command is not None:
        made.append(Pre(title="Search again", body=command, folded=False, to_copy=True))
    return made


def _named(found: Bisection, commit: Commit) -> str:
    words = phrases.in_words(found, commit)
    subject = f" “{commit.subject}”" if commit.subject else ""
    return f"{phrases.short(found.axis, commit.sha)}{subject}" + (f" ({words})" if words else "")


def _trial(found: Bisection, trial: Trial) -> tuple[str, ...]:
    source = phrases.from_where(found, trial)
    return (
        phrases.short(found.axis, trial.result.sha),
        trial.subject or "–",
        phrases.purpose(trial),
        phrases.verdict(trial),
        phrases.side(trial),
        f"as {source}" if source else phrases.evidence(found, trial) or "–",
        "–" if source else f"{trial.result.minutes:.1f}",
    )
