"""From what was typed to a commit of a clone."""

from shlex import quote

from sparkdiag.environment.clone import Clone
from sparkdiag.errors import UsageError
from sparkdiag.scenario.shown import shown


def named_commit(clone: Clone, revision: str, *, option: str, lab: bool = False) -> str:
    """The commit that was typed after ``option``. Raises ``UsageError`` that says what is wrong with it."""
    where = "the lab's history" if lab else str(clone.folder)
    if revision.startswith("-"):
        raise UsageError(
            f"{option} {shown(revision)} begins with - and is no revision", remedy=f"{option} REV, such as HEAD~20"
        )
    found = clone.resolve(revision) if revision else None
    if found is not None:
        return found
    fitting = clone.fitting(revision)
    if len(fitting) > 1:
        raise UsageError(
            f"{option} {revision} fits {len(fitting)} commits of {where}", remedy="write more of the commit's digits"
        )
    if lab:
        tags = ", ".join(clone.tags())
        raise UsageError(
            f"{option} {shown(revision)} is no commit of {where}", remedy=f"one of {tags}, main, or a commit's id"
        )
    shallow = clone.is_shallow()
    raise UsageError(
        f"{option} {shown(revision)} is no commit of {where}" + (", a shallow clone" if shallow else ""),
        remedy=f"git -C {quote(str(clone.folder))} fetch {'--unshallow' if shallow else '--all --tags'}",
    )
