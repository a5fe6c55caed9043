"""The question of a bisection as its journal keeps it: the request without its secrets, and the way back. Pure, but for
reading the journal."""

from typing import Any

from pydantic import ValidationError

from sparkdiag.bisecting.axes.axis import NAMED
from sparkdiag.bisecting.question.journal import Begun, read_journal
from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.errors import UsageError
from sparkdiag.harmless.documents import redact_argv, redact_document
from sparkdiag.harmless.secrets import redact_text
from sparkdiag.recording.bisection import BisectionFolder
from sparkdiag.scenario.consistency import contradictions

_ANEW = "sparkdiag bisect begins a new one"
_FREE = ("command", "notes", "repro.command", "repro.runs_dir", "repro.wait_for_machine", "repro.keep_priority")
"""They do not decide the answer."""
_MOST_NAMED = 6


def begun(request: BisectRequest, *, at: str) -> Begun:
    """The journal's first line."""
    document = request.model_dump(mode="json", by_alias=True)
    clean = _clean(document)
    return Begun(
        at=at,
        command=redact_argv(request.command),
        old_end=request.axis.old,
        new_end=request.axis.new,
        question=clean,
        redacted=bool(_differences(document, clean)),
    )


def check_same(request: BisectRequest, begun_line: Begun) -> None:
    """Raises ``UsageError`` unless ``request`` asks what the journal's first line says was asked."""
    asked, now = _with_defaults(begun_line.question), _clean(request.model_dump(mode="json", by_alias=True))
    different = _differences(asked, now)
    if different:
        more = f" and {len(different) - _MOST_NAMED} more" if len(different) > _MOST_NAMED else ""
        raise UsageError(
            f"this bisection was begun with other options; different: {', '.join(different[:_MOST_NAMED])}{more}",
            remedy="resume it with the options it was begun with, or begin another without --resume",
        )


def with_kept_predictions(request: BisectRequest, begun_line: Begun) -> BisectRequest:
    """``request``, typed once more, with the predictions of the journal: they are made once, when a search begins.

    Left as it is where it names suspects that the search did not begin with: ``check_same`` then refuses it.
    """
    try:
        kept = BisectRequest.model_validate(begun_line.question)
    except ValidationError:
        return request
    named = [sha for sha in request.predicted if request.predicted_because.get(sha) == NAMED]
    if named != list(kept.predicted[: len(named)]):
        return request
    return request.model_copy(update={"predicted": kept.predicted, "predicted_because": kept.predicted_because})


def resume_request(folder: BisectionFolder) -> BisectRequest:
    """What the bisection in ``folder`` was asked, as its journal says.

    Raises ``UsageError`` when there is no journal, when secrets were taken out of it, or when it sets what only the
    command line may: then the same options are to be typed again (``check_same``).
    """
    line = begun_line(folder)
    typed = " ".join(line.command)
    again = f"type its options again, with them, and --resume --folder {folder.path}; it was begun by: {typed}"
    if line.redacted:
        raise UsageError("the journal leaves out secrets and settings that this bisection was begun with", remedy=again)
    try:
        request = BisectRequest.model_validate(line.question)
    except ValidationError as error:
        raise UsageError(f"{folder.journal} asks what this sparkdiag cannot read", remedy=_ANEW) from error
    # Folders are passed on: what a scenario file may not tell the server, a journal may not either.
    problems = contradictions(request.repro.scenario)
    untold = [problem for problem in problems if problem.key.startswith(("server.args", "server.env"))]
    if untold:
        raise UsageError(
            f"the journal sets what is taken from the command line only: {untold[0].key} = {untold[0].found}",
            remedy=again,
        )
    repro = request.repro.model_copy(update={"runs_dir": str(folder.trials)})
    return request.model_copy(update={"repro": repro})


def begun_line(folder: BisectionFolder) -> Begun:
    """The journal's first line. Raises ``UsageError`` when there is none."""
    steps = read_journal(folder.journal)
    if not steps or not isinstance(steps[0], Begun):
        raise UsageError(f"{folder.journal} tells of no question", remedy=_ANEW)
    return steps[0]


def _with_defaults(question: dict[str, Any]) -> dict[str, Any]:
    """An older sparkdiag's question, with the options it did not know yet at their defaults."""
    try:
        return BisectRequest.model_validate(question).model_dump(mode="json", by_alias=True)
    except ValidationError:
        return question


def _clean(document: dict[str, Any]) -> dict[str, Any]:
    """Without secrets. Of the history only subjects are text; ids by the thousand need no look."""
    axis = document["axis"]
    commits = [commit | {"subject": redact_text(commit["subject"])} for commit in axis["history"]["commits"]]
    rest = document | {"axis": {key: value for key, value in axis.items() if key != "history"}}
    clean: dict[str, Any] = redact_document(rest)
    return clean | {"axis": clean["axis"] | {"history": {"commits": commits}}}


def _differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Names of the options that differ; a history counts by its commits, not by what their subjects say."""
    flat, flat_other = _flat(one), _flat(other)
    return [name for name in sorted({*flat, *flat_other}) if flat.get(name) != flat_other.get(name)]


def _flat(document: dict[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in document.items():
        name = f"{before}{key}"
        if name in _FREE:
            continue
        if name == "axis.history":
            found[name] = [(commit["sha"], commit["parents"]) for commit in value["commits"]]
        elif isinstance(value, dict):
            found |= _flat(value, f"{name}.")
        else:
            found[name] = value
    return found
