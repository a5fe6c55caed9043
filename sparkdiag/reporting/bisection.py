"""The report of a bisection to paste into a pull request: the answer first, how sure it is next, the rest folded.

Nothing from outside reaches the page except through ``safe_text``: a subject, a diff and a path are anybody's text.
"""

from collections.abc import Sequence

from sparkdiag.evidence.bisection import Bisection, Commit, Trial
from sparkdiag.reporting import bisection_phrases as phrases
from sparkdiag.reporting.fitted import Part, Section, fitted, sections_of
from sparkdiag.reporting.follow_up import follow_up
from sparkdiag.reporting.safe_text import code, fence, prose, table

_CANDIDATES_AT_ONCE = 20
"""With these the first screen alone stays below what a comment takes, whatever it is made of; the rest is folded."""
_TRIALS_AT_ONCE = 40
"""More are not open from the beginning."""
_SUBJECT_CHARS = 120


def render_bisection(found: Bisection) -> str:
    """At most 65,536 bytes of UTF-8; what had to be left out, the least useful first, is named."""
    return fitted(_head(found), _sections(found), where="The bisection's folder")


def _head(found: Bisection) -> list[str]:
    blocks = [f"## sparkdiag bisect: {_title(found)}", _answer(found)]
    if found.outcome in ("candidates", "inconclusive", "unfinished"):
        blocks.append(f"**Why.** {prose(phrases.why_not_found(found), at_most=1000)}")
    if found.outcome == "candidates":
        blocks.append(_candidates(found))
    blocks.append(f"**Searched** {prose(phrases.where(found), at_most=600)}{_scenario(found)}.")
    sure = [f"- *{about}*: {prose(text, at_most=600)}" for about, text in phrases.how_sure(found)]
    if sure:
        blocks.append("**How sure**\n\n" + "\n".join(sure))
    command = phrases.again_command(found)
    if command is not None:
        blocks.append("**Search again**\n\n" + fence(command, info="sh", at_most=2000))
    following = follow_up(found)
    if following is not None:
        blocks.append("**Search the commits between the two releases**\n\n" + fence(following, info="sh", at_most=2000))
    return blocks


def _title(found: Bisection) -> str:
    if found.outcome == "found" and found.commits:
        return f"{code(phrases.short(found.axis, found.commits[0].sha))} ({found.direction or 'found'})"
    return prose(phrases.headline(found))


def _answer(found: Bisection) -> str:
    begin = prose(phrases.answer(found), at_most=600)
    if found.outcome != "found" or not found.commits:
        return f"**Answer.** {begin}" + ("." if found.outcome != "candidates" else ":")
    return f"**Answer.** {begin} {_commit(found, found.commits[0])}{phrases.on(found)}."


def _commit(found: Bisection, commit: Commit) -> str:
    words = phrases.in_words(found, commit)
    subject = f" {code(commit.subject, at_most=_SUBJECT_CHARS)}" if commit.subject else ""
    when = f" ({prose(words)})" if words else ""
    return f"**{code(phrases.short(found.axis, commit.sha))}**{subject}{when}"


def _candidates(found: Bisection) -> str:
    said = f"**Candidates, in history order**\n\n{_numbered(found, _CANDIDATES_AT_ONCE)}"
    more = len(found.commits) - _CANDIDATES_AT_ONCE
    return said + (f"\n\n… and {more} more below, up to {_commit(found, found.commits[-1])}" if more > 0 else "")


def _numbered(found: Bisection, most: int) -> str:
    return "\n".join(f"{place}. {_commit(found, one)}" for place, one in enumerate(found.commits[:most], start=1))


def _scenario(found: Bisection) -> str:
    return f", scenario {code(found.scenario)}" if found.scenario else ""


def _trials(found: Bisection, most: int) -> str:
    if not found.trials:
        return ""
    reused = sum(trial.result.reused_from is not None for trial in found.trials)
    ran = f"{len(found.trials) - reused} run in {phrases.minutes(found.trials):.1f} minutes"
    total = f"{ran}, {reused} reused" if reused else ran
    more = len(found.trials) - most
    left = f"\n\n… and {more} more in the bisection's folder" if more > 0 else ""
    return f"**Trials** ({total})\n\n{_rows(found, found.trials[:most])}{left}"


def _rows(found: Bisection, trials: Sequence[Trial]) -> str:
    head = ("point", "subject", "why", "verdict", "side", "evidence", "min", "run")
    return table(head, [_trial(found, trial) for trial in trials])


def _trial(found: Bisection, trial: Trial) -> tuple[str, ...]:
    source = phrases.from_where(found, trial)
    took = "–" if source else f"{trial.result.minutes:.1f}"
    run = (
        f"as {code(source, at_most=80)}"
        if source
        else code(trial.result.run_dir, at_most=80)
        if trial.result.run_dir
        else "–"
    )
    return (
        code(phrases.short(found.axis, trial.result.sha)),
        code(trial.subject, at_most=60) if trial.subject else "–",
        phrases.purpose(trial),
        prose(phrases.verdict(trial)),
        phrases.side(trial),
        prose(phrases.evidence(found, trial), at_most=160) or "–",
        took,
        run,
    )


def _sections(found: Bisection) -> tuple[Section, ...]:
    """In reading order; parts with nothing to say are not there."""
    many = len(found.commits) > _CANDIDATES_AT_ONCE
    made = (
        Part(title="Trials", rank=0, make=lambda most: _trials(found, most), most=(200, 80, 20), unit="trials",
             open_=len(found.trials) <= _TRIALS_AT_ONCE),
        Part(title="All candidates", rank=5, make=lambda most: _numbered(found, most) if many else "",
             most=(400, 150, 60), unit="candidates"),
        Part(title="What the trials that could not tell said", rank=1, make=lambda most: _skips(found, most),
             most=(40, 12), unit="trials"),
        Part(title="The watched files between the last old and the first new point", rank=3,
             make=lambda most: _diff(found, most), most=(20_000, 6000), unit="characters"),
        Part(title="Where the workers were, with and without it", rank=2, make=lambda most: _stacks(found, most),
             most=(12, 5), unit="functions"),
        Part(title="Notes", rank=4, make=lambda most: _notes(found, most), most=(30, 10), unit="notes"),
    )  # fmt: skip
    return sections_of(made)


def _skips(found: Bisection, most: int) -> str:
    skipped = phrases.skips(found.trials)
    lines = [
        f"- {code(phrases.short(found.axis, trial.result.sha))} ({phrases.purpose(trial)}): "
        f"{prose(trial.because, at_most=400) or 'no reason was recorded'}"
        for trial in skipped[:most]
    ]
    more = len(skipped) - most
    return "\n".join([*lines, *([f"- … and {more} more"] if more > 0 else [])])


def _diff(found: Bisection, at_most: int) -> str:
    if not found.suspect_diff.strip():
        return ""
    files = ", ".join(code(path) for path in found.suspect_paths[:12])
    said = f"Of {files}:\n\n" if files else ""
    return said + fence(found.suspect_diff, info="diff", at_most=at_most)


def _stacks(found: Bisection, most: int) -> str:
    rows = [
        (code(one.function, at_most=80), f"{one.share_with:.0%}", f"{one.share_without:.0%}")
        for one in found.stack_difference[:most]
    ]
    said = f"Share of the workers' samples with the function innermost, with and without {prose(phrases.what(found))}."
    return f"{said}\n\n{table(('function', 'with', 'without'), rows)}" if rows else ""


def _notes(found: Bisection, most: int) -> str:
    more = len(found.notes) - most
    left = [f"- … and {more} more"] if more > 0 else []
    return "\n".join([*(f"- *note*: {prose(note, at_most=400)}" for note in found.notes[:most]), *left])
