"""Which two commits a search lies between."""

from shlex import quote

from sparkdiag.environment.clone import Clone
from sparkdiag.environment.commits import commit_date, first_parents, steps_towards
from sparkdiag.environment.named import named_commit
from sparkdiag.errors import EnvironmentFault, UsageError
from sparkdiag.evidence.base import Value
from sparkdiag.scenario.model import Scenario

SHORT = 10
"""Digits of a commit in a message."""


class Ends(Value):
    """The older and the newer end, 40 digits each."""

    old: str
    new: str
    notes: tuple[str, ...] = ()


def named_ends(
    clone: Clone,
    *,
    good: str | None,
    bad: str | None,
    lab: bool = False,
    oldest: str | None = None,
    newest: str | None = None,
) -> Ends:
    """The ends that were named, the older first. ``oldest``, ``newest``: what an end is where it was not named.

    Raises ``UsageError`` for one end only, the same commit twice, or ends of which neither contains the other.
    """
    given = [
        named_commit(clone, revision, option=option, lab=lab)
        for option, revision in (("--good", good), ("--bad", bad))
        if revision is not None
    ]
    if len(given) == 2 or oldest is None or newest is None:
        if len(given) < 2:
            raise UsageError("a range has two ends", remedy="give --good REV and --bad REV, or --around REV")
        return _ordered(clone, *given, lab=lab)
    one = given[0] if given else oldest
    other = oldest if one == newest else newest
    return _ordered(clone, one, other, lab=lab)


def _ordered(clone: Clone, good: str, bad: str, *, lab: bool) -> Ends:
    if good == bad:
        raise UsageError(f"both ends are the commit {good[:SHORT]}", remedy="name two different commits")
    for old, new in ((good, bad), (bad, good)):
        if clone.is_ancestor(old, new):
            return Ends(old=old, new=new, notes=(_said(clone, old, new),))
    base = clone.merge_base(good, bad)
    if base is not None:
        place = "" if lab else f"--repo {quote(str(clone.folder))} "
        raise UsageError(
            f"neither end contains the other; both contain {base[:SHORT]}, their merge base",
            remedy=f"sparkdiag bisect {place}--good {base[:SHORT]} --bad {bad[:SHORT]}",
        )
    if clone.is_shallow():
        raise EnvironmentFault(
            f"{clone.folder} is a shallow clone: as far as its history goes neither end contains the other",
            remedy=f"git -C {quote(str(clone.folder))} fetch --unshallow",
        )
    raise UsageError(
        f"{good[:SHORT]} and {bad[:SHORT]} have no history in common",
        remedy=f"name two commits of one history: git -C {quote(str(clone.folder))} log --graph --oneline --all",
    )


def around_ends(clone: Clone, *, around: str | None, span: int, scenario: Scenario) -> Ends:
    """``span`` first-parent steps before a commit and ``span`` after it, as far as the checked-out branch goes.

    Raises ``UsageError`` where there is no such commit, or where HEAD does not contain it.
    """
    if span < 1:
        raise UsageError(f"--span {span} leaves no commit to search", remedy="--span 32")
    head = clone.resolve("HEAD")
    if head is None:
        raise UsageError(f"HEAD of {clone.folder} is no commit", remedy="--good REV --bad REV")
    center, why = _center(clone, around, scenario=scenario, head=head)
    if not clone.is_ancestor(center, head):
        raise UsageError(
            f"HEAD of {clone.folder} does not contain {center[:SHORT]} ({why})",
            remedy="--good REV --bad REV; branches that contain it: "
            f"git -C {quote(str(clone.folder))} branch --all --contains {center[:SHORT]}",
        )
    before = first_parents(clone, center, most=span + 1)
    after = steps_towards(clone, center, head)[:span]
    old, new = before[-1] if before else center, after[-1] if after else center
    if old == new:
        raise UsageError(f"the history of {clone.folder} has one commit only", remedy="name another clone: --repo PATH")
    steps = f"{len(before) - 1} first-parent steps before and {len(after)} after" + (" (HEAD)" if new == head else "")
    return Ends(old=old, new=new, notes=(f"around {center[:SHORT]} ({why}), {steps}: {_said(clone, old, new)}",))


def _center(clone: Clone, around: str | None, *, scenario: Scenario, head: str) -> tuple[str, str]:
    """The commit, and in a few words which one it is."""
    if around is not None:
        return named_commit(clone, around, option="--around"), "as asked"
    suspect = scenario.suspect
    names = [name for name in (suspect.commit, *suspect.twins) if name]
    if not names:
        raise UsageError(
            f"the scenario {scenario.name} names no suspect commit", remedy="--around REV, or --good REV --bad REV"
        )
    here = [(name, sha) for name in names if (sha := clone.resolve_id(name)) is not None]
    if here:
        name, found = next(((name, sha) for name, sha in here if clone.is_ancestor(sha, head)), here[0])
        twin = "" if name == suspect.commit else f" {names[0][:SHORT]} by its twin here"
        return found, f"the scenario's suspect commit{twin}"
    cut = " (a shallow clone)" if clone.is_shallow() else ""
    raise UsageError(
        f"{clone.folder}{cut} has none of the scenario's suspect commits {', '.join(name[:SHORT] for name in names)}",
        remedy="--around REV, or --good REV --bad REV",
    )


def _said(clone: Clone, old: str, new: str) -> str:
    days = [(commit_date(clone, sha) or "?")[:SHORT] for sha in (old, new)]
    return f"from {old[:SHORT]} of {days[0]} to {new[:SHORT]} of {days[1]}"
