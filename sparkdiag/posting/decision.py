"""What posting amounts to: a new comment, its own earlier one written anew, nothing to do, or a refusal. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sparkdiag.posting.github_values import Comment
from sparkdiag.posting.marker import mark_of, same_text

Action = Literal["create", "update", "unchanged", "edited"]


@dataclass(frozen=True, kw_only=True)
class Decision:
    """``edited``: our comment was changed by hand, and only a person can say whether that may go."""

    action: Action
    comment: Comment | None = None
    note: str = ""


def ours_among(comments: Sequence[Comment], *, run: str, login: str | None) -> tuple[Comment, ...]:
    """Comments of ``login`` that carry the run's marker, oldest first. Nobody's else, whatever they say."""
    if login is None:
        return ()
    return tuple(
        one
        for one in sorted(comments, key=lambda one: one.id)
        if one.login.lower() == login.lower() and _carries(one, run)
    )


def is_ours(comment: Comment, *, run: str, login: str | None, login_then: str | None) -> bool:
    """Whether the comment that was noted as ours still is: the same author, and the marker in it."""
    author = login if login is not None else login_then
    return author is not None and comment.login.lower() == author.lower() and _carries(comment, run)


def decide(body: str, ours: Sequence[Comment], *, force: bool) -> Decision:
    """``ours``: what was found, the one to write to last."""
    if not ours:
        return Decision(action="create")
    comment = ours[-1]
    others = len(ours) - 1
    note = f"{others} older comment(s) of the same run stay as they are" if others else ""
    if same_text(comment.body, body):
        return Decision(action="unchanged", comment=comment, note=note)
    mark = mark_of(comment.body)
    if mark is not None and mark.edited and not force:
        return Decision(action="edited", comment=comment, note=note)
    return Decision(action="update", comment=comment, note=note)


def _carries(comment: Comment, run: str) -> bool:
    mark = mark_of(comment.body)
    return mark is not None and mark.run == run
