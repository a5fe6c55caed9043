"""What posting amounts to: a new comment, its own earlier one written anew, nothing to do, or a refusal. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sparkdiag.posting.github_values import Comment, Conversation
from sparkdiag.posting.marker import mark_of, same_text, text_sha256
from sparkdiag.posting.posted import Post
from sparkdiag.posting.where import conversation_at

Action = Literal["create", "update", "unchanged", "edited"]


@dataclass(frozen=True, kw_only=True)
class Decision:
    """``edited``: our comment was changed by hand, and only a person can say whether that may go."""

    action: Action
    comment: Comment | None = None
    note: str = ""


def ours_among(comments: Sequence[Comment], *, run: str, login: str | None) -> tuple[Comment, ...]:
    """Comments of ``login`` that carry the run's marker, oldest first. Nobody's else, whatever they say.

    A bot's login is shared by everything that posts with it, and may have been made to repeat somebody's words: of a
    bot's comments only those that are ours from the first to the last letter are.
    """
    if login is None:
        return ()
    return tuple(
        one
        for one in sorted(comments, key=lambda one: one.id)
        if one.login.lower() == login.lower() and _carries(one, run, whole=is_bot(login))
    )


def is_noted(comment: Comment, *, where: Conversation, noted: Post) -> bool:
    """Whether the comment whose id was noted may be the one: only in the conversation that is posted to.

    GitHub finds a comment by its id alone, whatever conversation it was asked for.
    """
    at = conversation_at(comment.url)
    here = at is not None and (at[0].lower(), at[1]) == (where.repository.lower(), where.number)
    return here and comment.id == noted.comment_id


def is_ours(comment: Comment, *, run: str, login: str | None, noted: Post) -> bool:
    """Whether the comment that was noted still is ours: the same author, and the marker in it.

    Where GitHub does not tell who we are, that is an app: the comment must be a bot's, and word for word what was
    noted. Who is said to have written it then counts for nothing: anybody may have sent the folder.
    """
    if login is not None:
        return bool(ours_among((comment,), run=run, login=login))
    return (
        is_bot(comment.login) and text_sha256(comment.body) == noted.body_sha256 and _carries(comment, run, whole=True)
    )


def is_bot(login: str) -> bool:
    """Whether a login is an app's. Nobody can choose such a name."""
    return login.lower().endswith("[bot]")


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


def _carries(comment: Comment, run: str, *, whole: bool) -> bool:
    mark = mark_of(comment.body)
    return mark is not None and mark.run == run and not (whole and mark.edited)
