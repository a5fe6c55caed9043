"""The sentences about a bisection that terminal, Markdown and JSON share: plain text, made safe by whoever shows it."""

import re
from collections.abc import Sequence
from shlex import join

from sparkdiag.evidence.bisection import AxisKind, Bisection, Commit, Trial
from sparkdiag.reporting.phrases import seconds

SHORT_SHA = 10
LAB_HISTORY = "the lab's own history"
_PULL_REQUEST = re.compile(r"\(#([1-9]\d{0,8})\)\s*$|^Merge pull request #([1-9]\d{0,8}) from \S", re.ASCII)
PURPOSES = {"end": "end", "control": "control, not sampled", "search": "search", "confirm": "confirm"}
_VERDICTS = {"not-built": "not built", "not-started": "did not start", "not-proved": "not proved"}
_AXES: dict[AxisKind, str] = {
    "commits": "commits",
    "releases": "releases",
    "dcp": "DCP sizes",
    "prompt-tokens": "prompt lengths",
}


def short(axis: AxisKind, point: str) -> str:
    """``1a2b3c4d5e``, ``0.28.0``, ``DCP 2``, ``96,256 tokens``."""
    match axis:
        case "commits":
            return point[:SHORT_SHA]
        case "releases":
            return point
        case "dcp":
            return f"DCP {point}"
        case "prompt-tokens":
            return f"{int(point):,} tokens" if point.isdecimal() and len(point) < 12 else f"{point} tokens"


def pull_request(subject: str) -> int | None:
    """The number as GitHub writes it: ``(#123)`` at a subject's end (squashed, as vLLM does), ``Merge pull request #123
    from …``. None for any other number: an issue is no pull request.

    https://docs.github.com/en/pull-requests/collaborating-with-pull-requests/incorporating-changes-from-a-pull-request/about-pull-request-merges
    """
    found = _PULL_REQUEST.search(subject)
    return int(found[1] or found[2]) if found else None


def day(committed_at: str) -> str:
    """The date of an ISO 8601 time; empty where there is none."""
    return committed_at[:10] if re.match(r"\d{4}-\d\d-\d\d", committed_at) else ""


def headline(found: Bisection) -> str:
    """``found, a regression``, ``3 candidates``, ``inconclusive``, ``not finished``."""
    match found.outcome:
        case "found":
            return f"found, a {found.direction}" if found.direction else "found"
        case "candidates":
            return f"{len(found.commits)} candidates" + (f" for a {found.direction}" if found.direction else "")
        case "inconclusive":
            return "inconclusive"
        case "unfinished":
            return "not finished"


def what(found: Bisection) -> str:
    """What was looked for, as it was found at the end that has it."""
    match found.target.what:
        case "stall" if found.reference is not None:
            return f"the stall {found.reference}"
        case "stall":
            return "the stall"
        case "frame":
            return f"the function {found.target.frame}"
        case "wrong-needle":
            return "the wrong answer"
        case "crash":
            return "the crash"


def change(found: Bisection) -> str:
    """``begins at``, ``is gone from``: how the culprit changes what was looked for."""
    return "is gone from" if found.direction == "fix" else "begins at"


def on(found: Bisection) -> str:
    """What follows the culprit's name: ``is gone from 1a2b3c4d5e on``."""
    return " on" if found.direction == "fix" and found.axis not in ("dcp", "prompt-tokens") else ""


def where(found: Bisection) -> str:
    """On which DCP size and history: ``at DCP 2, among 16 commits of the lab's own history``."""
    size = f"at DCP {found.dcp}, " if found.dcp is not None and found.axis != "dcp" else ""
    kind = _AXES[found.axis]
    if found.searched == 1:
        kind = kind.removesuffix("s")
    among = f"among {found.searched:,} {kind}" if found.searched else f"among {kind}"
    if found.axis == "commits":
        among += f" of {found.repo or LAB_HISTORY}"
    if found.old_end and found.new_end:
        among += f" from {short(found.axis, found.old_end)} to {short(found.axis, found.new_end)}"
    return f"{size}{among}"


def answer(found: Bisection) -> str:
    """The answer as the beginning of a sentence, up to the point or points that it names."""
    match found.outcome:
        case "found" if found.axis in ("dcp", "prompt-tokens"):
            word = "without" if found.direction == "fix" else "with"
            return f"The smallest value {word} {what(found)} is"
        case "found":
            return f"{_capital(what(found))} {change(found)}"
        case "candidates":
            return (
                f"{_capital(what(found))} {change(found)} one of these {len(found.commits)}, and no trial tells which"
            )
        case "inconclusive":
            return "There is no answer"
        case "unfinished":
            return "The search has not come to its end"


def why_not_found(found: Bisection) -> str:
    """The reason of an answer that is no single point."""
    return found.reason or "no reason was recorded"


def how_sure(found: Bisection) -> tuple[tuple[str, str], ...]:
    """What the answer stands on, as (about, text)."""
    told = (
        ("ends", _ends(found)),
        ("unwatched", _controls(found.trials)),
        ("boundary", _boundary(found)),
        ("proof", _proof(found)),
        ("reused", _reused(found)),
        ("skipped", _skipped(found)),
        ("probability", f"{found.confidence:.1%} for this answer" if found.confidence is not None else ""),
        ("confirmed", _confirmed(found)),
    )
    return tuple((about, text) for about, text in told if text)


def skips(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """The trials that could not tell."""
    return tuple(trial for trial in trials if trial.has == "cannot-tell")


def purpose(trial: Trial) -> str:
    """Why the trial was run."""
    return PURPOSES[trial.purpose]


def verdict(trial: Trial) -> str:
    """``stalled (crawling)``, ``completed, retrieved``, ``did not start``."""
    result = trial.result
    if result.outcome == "stalled" and result.mode:
        return f"stalled ({result.mode})"
    if result.outcome == "completed" and result.needle:
        return f"completed, {result.needle}"
    return _VERDICTS.get(result.outcome, result.outcome)


def side(trial: Trial) -> str:
    """On which side of the change the trial's point lies."""
    if trial.mark is not None:
        return trial.mark
    return "skip" if trial.has == "cannot-tell" else "–"


def evidence(found: Bisection, trial: Trial) -> str:
    """The trial's evidence in a few words; a function is named where it is not the one that was looked for."""
    result = trial.result
    if trial.has == "cannot-tell" or found.target.what != "stall":
        return trial.because
    if result.outcome == "stalled":
        texts = [item.text for item in result.evidence_for if item.source in ("loop-variables", "kv-cache-usage")]
        telling = [text for text in texts if text.startswith("forecast")] or texts
        known = found.reference.function if found.reference is not None else None
        function = result.signature.function if result.signature is not None else None
        return ": ".join([*([function] if function and function != known else []), *telling[:1]]) or trial.because
    if result.outcome == "completed" and result.first_token_s is not None:
        return f"first token after {seconds(result.first_token_s)}"
    return trial.because


def from_where(found: Bisection, trial: Trial) -> str:
    """Whose result the trial has; empty where it is its own."""
    source = trial.result.reused_from
    if source is None:
        return ""
    known = {one.result.sha for one in found.trials} | {one.sha for one in found.commits}
    return short(found.axis, source) if source in known or re.fullmatch(r"[0-9a-f]{40,64}", source) else source


def again_command(found: Bisection) -> str | None:
    """What to type to search again, as it was typed (secrets are removed already)."""
    return join(found.command) if found.command else None


def minutes(trials: Sequence[Trial]) -> float:
    """What the trials took; a reused result took nothing."""
    return sum(trial.result.minutes for trial in trials if trial.result.reused_from is None)


def in_words(found: Bisection, commit: Commit) -> str:
    """``2026-05-20, pull request 41834``; empty where neither is known."""
    number = pull_request(commit.subject) if found.axis == "commits" else None
    parts = [day(commit.committed_at), f"pull request {number}" if number is not None else ""]
    return ", ".join(filter(None, parts))


def _ends(found: Bisection) -> str:
    told = []
    for name, point in (("older", found.old_end), ("newer", found.new_end)):
        trial = next((one for one in found.trials if one.purpose == "end" and one.result.sha == point), None)
        if trial is None:
            told.append(f"the {name} end was not tried")
            continue
        source = from_where(found, trial)
        told.append(f"{name} end {_showed(found, trial)}" + (f" (an earlier result: {source})" if source else ""))
    return "; ".join(told) if found.trials else ""


def _showed(found: Bisection, trial: Trial) -> str:
    """What a trial showed of what was looked for: a run may stall at both ends where a frame is sought."""
    has = {"yes": "has it", "no": "has it not", "cannot-tell": "cannot be told"}
    return verdict(trial) if found.target.what == "stall" else f"{has[trial.has]}, {verdict(trial)}"


def _controls(trials: Sequence[Trial]) -> str:
    """Whether the ends do the same when nobody samples."""
    controls = [trial for trial in trials if trial.purpose == "control"]
    if not controls:
        return "no end was run without sampling, so an effect of sampling itself is not excluded" if trials else ""
    ends = {trial.result.sha: trial for trial in trials if trial.purpose == "end"}
    agreed = [one for one in controls if (end := ends.get(one.result.sha)) is not None and end.has == one.has]
    if len(agreed) == len(controls):
        which = "both ends" if len(controls) > 1 else "one end"
        return f"{which} did the same when nobody sampled"
    odd = next(one for one in controls if one not in agreed)
    return f"an end did not do the same when nobody sampled: {odd.because}"


def _boundary(found: Bisection) -> str:
    """Whether the culprit and what stands before it were run themselves."""
    if found.outcome != "found" or not found.commits:
        return ""
    culprit = found.commits[0]
    before = [one for one in culprit.parents if any(trial.result.sha == one for trial in found.trials)]
    return "; ".join(_known(found, point) for point in (culprit.sha, *before))


def _known(found: Bisection, point: str) -> str:
    """How it is known on which side a point lies."""
    name = short(found.axis, point)
    trials = [trial for trial in found.trials if trial.result.sha == point and trial.mark in ("old", "new")]
    if not trials:
        return f"{name} follows from trials of others"
    own = next((trial for trial in trials if trial.result.reused_from is None), None)
    if own is None:
        return f"{name} was not run itself, its result is that of {from_where(found, trials[-1])}"
    return f"{name} was run: {_showed(found, own)}"


def _proof(found: Bisection) -> str:
    counted = [trial for trial in found.trials if trial.has != "cannot-tell" and trial.result.reused_from is None]
    if not counted or found.axis not in ("commits", "releases"):
        return ""
    return f"each of the {len(counted)} runs that count proved which revision its server ran"


def _reused(found: Bisection) -> str:
    reused = [trial for trial in found.trials if trial.result.reused_from is not None]
    if not reused:
        return ""
    why = " whose watched files are the same" if found.axis == "commits" else ""
    return f"{len(reused)} of {len(found.trials)} results are those of other points{why}, or of earlier runs"


def _skipped(found: Bisection) -> str:
    skipped = skips(found.trials)
    return f"{len(skipped)} of {len(found.trials)} trials could not tell" if skipped else ""


def _confirmed(found: Bisection) -> str:
    again = [trial for trial in found.trials if trial.purpose == "confirm"]
    if not again:
        return ""
    return f"under CUDA_LAUNCH_BLOCKING=1: {again[-1].because}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _names(found: Bisection, points: Sequence[str]) -> str:
    return ", ".join(short(found.axis, point) for point in points)
