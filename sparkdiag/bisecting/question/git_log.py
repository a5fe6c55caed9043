"""A bisection in the format of ``git bisect log``, there and back. Pure, but for the reading of a file at the end.

What is written is accepted by ``git bisect replay``; what is read is never executed: lines of the known form are marks,
everything else is passed over (https://git-scm.com/docs/git-bisect#_bisect_log_and_bisect_replay).
"""

import re
from collections.abc import Iterator
from pathlib import Path

from sparkdiag.bisecting.axes.axis import Axis
from sparkdiag.bisecting.question.request import ImportedMark
from sparkdiag.errors import UsageError
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import Bisection, Direction, Mark, Trial
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.recording.record import open_regular

MOST_BYTES = 4 * 1024 * 1024
LONGEST_SUBJECT = 120
FIX_TERMS = ("broken", "fixed")
"""git calls the older side good; where the older end has what is looked for, that would read the wrong way round."""

_SHA = re.compile(r"[0-9a-f]{40}")
_TERM_OPTION = re.compile(r"--term-(old|good|new|bad)'?[= ]'?([A-Za-z][\w.-]{0,40})'?")
_COMMAND = re.compile(r"git[ -]bisect\s+(\S+)\s+(.*)")
_START = re.compile(r"git[ -]bisect\s+start\b")
_COMMENT = re.compile(r"# ([\w.-]+): \[([0-9a-f]{40})\]")


class Imported(Value):
    """What a log tells of the points between the ends."""

    marks: tuple[ImportedMark, ...]
    notes: tuple[str, ...] = ()


def export_log(bisection: Bisection) -> str:
    """The marks of a bisection's trials. Raises ``UsageError`` where git has no words for them: on other axes than
    commits, and as long as the ends do not differ."""
    if bisection.axis != "commits":
        raise UsageError(
            f"git bisect knows commits, not {bisection.axis}", remedy="leave --export out; bisection.json holds it all"
        )
    if bisection.direction is None:
        raise UsageError(
            "the two ends do not differ (yet), so there is nothing to tell git bisect",
            remedy="sparkdiag bisect --resume, then --export",
        )
    words = _words(bisection.direction)
    subjects = {trial.result.sha: trial.subject for trial in bisection.trials}
    old, new = bisection.old_end, bisection.new_end
    terms = "" if bisection.direction == "regression" else f" '--term-old={words['old']}' '--term-new={words['new']}'"
    lines = [
        _comment(words["new"], new, subjects.get(new, "")),
        _comment(words["old"], old, subjects.get(old, "")),
        f"git bisect start{terms} '{new}' '{old}'",
    ]
    for sha, (mark, trial) in _last_marks(bisection).items():
        because = one_line(trial.because, limit=LONGEST_SUBJECT)
        lines += [_comment(words[mark], sha, trial.subject), f"# because: {because}", f"git bisect {words[mark]} {sha}"]
    if bisection.outcome == "found":
        [culprit] = bisection.commits
        lines.append(_comment(f"first {words['new']} commit", culprit.sha, culprit.subject))
    elif bisection.outcome == "candidates":
        lines += [_comment(f"possible first {words['new']} commit", one.sha, one.subject) for one in bisection.commits]
    return "\n".join(lines) + "\n"


def _words(direction: Direction) -> dict[Mark, str]:
    old, new = ("good", "bad") if direction == "regression" else FIX_TERMS
    return {"old": old, "new": new, "skip": "skip"}


def _comment(word: str, sha: str, subject: str) -> str:
    return f"# {word}: [{sha}] {one_line(subject, limit=LONGEST_SUBJECT)}".rstrip()


def _last_marks(bisection: Bisection) -> dict[str, tuple[Mark, Trial]]:
    """Of each point between the ends. Where trials of one point disagree (``--confidence``) git is told to skip it."""
    found: dict[str, tuple[Mark, Trial]] = {}
    for trial in bisection.trials:
        sha = trial.result.sha
        if trial.mark is None or not _SHA.fullmatch(sha) or sha in (bisection.old_end, bisection.new_end):
            continue
        before = found.get(sha)
        unclear = before is not None and bisection.confidence is not None and before[0] != trial.mark
        found[sha] = ("skip" if unclear else trial.mark, trial)
    return found


def imported_marks(text: str, axis: Axis) -> Imported:
    """What a log says of the points between the ends of ``axis``; of a point that is told of twice the last word.

    Raises ``UsageError`` for what is no log, and for one that calls an end of this search the opposite.
    """
    if axis.kind != "commits":
        raise UsageError(f"a git bisect log tells of commits, not of {axis.kind}", remedy="leave --import out")
    told = {one.sha: one for one in _told(text)}
    if not told:
        raise UsageError(
            "there is no mark in the imported log", remedy="git bisect log > FILE, in the clone that was searched"
        )
    for name, sha, wrong in (("older", axis.old, "new"), ("newer", axis.new, "old")):
        mark = told.pop(sha, None)
        if mark is not None and mark.mark == wrong:
            raise UsageError(
                f"the imported log calls the {name} end {sha[:10]} {mark.word}: it tells of another search",
                remedy="leave --import out, or name the ends that the log was made with",
            )
    marks = tuple(one for sha, one in told.items() if sha in axis.history.index)
    outside = len(told) - len(marks)
    notes = (f"{outside} of the imported log's marks are of commits outside the range",) if outside else ()
    return Imported(marks=marks, notes=notes)


def _told(text: str) -> Iterator[ImportedMark]:
    sides: dict[str, Mark] = {"skip": "skip", "good": "old", "old": "old", "bad": "new", "new": "new"}
    lines = [line.rstrip("\r") for line in text.split("\n")]
    for line in lines:
        if _START.match(line):  # a subject in a comment may say what it likes
            sides |= {term: sides[side] for side, term in _TERM_OPTION.findall(line)}
    for line in lines:
        comment = _COMMENT.match(line)
        command = _COMMAND.match(line)
        if comment is not None and comment[1] in sides:
            yield ImportedMark(sha=comment[2], mark=sides[comment[1]], word=comment[1])
        elif command is not None and command[1] in sides:
            for sha in _SHA.findall(command[2]):
                yield ImportedMark(sha=sha, mark=sides[command[1]], word=command[1])


def read_log(path: Path) -> str:
    """The text of a log. Raises ``UsageError`` when it cannot be read or is larger than any log."""
    remedy = "git bisect log > FILE, in the clone that was searched"
    try:
        with open_regular(path) as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read the log {path}: {error.strerror or error}", remedy=remedy) from error
    if len(content) > MOST_BYTES:
        raise UsageError(f"{path} is larger than any git bisect log", remedy=remedy)
    return content.decode("utf-8", errors="replace")
