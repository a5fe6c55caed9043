"""From a page to a comment: look what is there, decide, write, and note it. Nothing is posted twice."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sparkdiag.errors import SparkdiagError
from sparkdiag.posting.answers import GitHubRefused
from sparkdiag.posting.decision import Decision, decide, is_noted, is_ours, ours_among
from sparkdiag.posting.github_values import Comment, Conversation
from sparkdiag.posting.marker import marked, same_text, text_sha256
from sparkdiag.posting.patience import Patience
from sparkdiag.posting.posted import Post, Posts

if TYPE_CHECKING:
    from sparkdiag.posting.github import GitHub

MOST_PAGES = 100
"""Of comments that are looked through for the marker: 10,000."""
_NO_GIST = {"gist_id": None, "gist_url": None, "gist_sha256": None}
ACTIONS_BOT = "github-actions[bot]"
"""Who a job's own token posts as; ``GET /user`` does not know it."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """Everything that is known before anything is written."""

    page: str
    run: str
    files: Mapping[str, str] = field(default_factory=dict)
    """What goes into the gist; empty where none was asked for."""


@dataclass(frozen=True, kw_only=True)
class Looked:
    """What GitHub told."""

    conversation: Conversation
    login: str | None
    ours: tuple[Comment, ...]
    before: Post | None


@dataclass(frozen=True, kw_only=True)
class Published:
    """What came of it."""

    action: str
    comment: Comment
    gist_url: str | None
    bytes: int
    """Of the comment."""


@dataclass(kw_only=True)
class Publisher:
    """One posting. ``note`` keeps what is known as soon as it is known; ``writing`` hears what is in the air."""

    hub: "GitHub"
    patience: Patience
    api_url: str
    note: Callable[[Post], None]
    in_the_air: str = ""
    """What was being written when it was interrupted: whether it is there cannot be told."""

    def look(self, repository: str, number: int, *, run: str, posts: Posts, bot: str | None) -> Looked:
        """Who we are, what the conversation is, and which comments in it are the run's. Reads only.

        ``bot``: who posts where the token belongs to an app, if that is known.
        """
        login = self.patience.of(self.hub.login) or bot
        conversation = self.patience.of(lambda: self.hub.conversation(repository, number))
        before = posts.of(api_url=self.api_url, repository=repository, number=number) or posts.of(
            api_url=self.api_url, repository=conversation.repository, number=conversation.number
        )
        if before is not None and before.run != run:  # the file was copied here with another run's
            before = None
        before = self._with_own_gist(before, login=login)
        ours = self._noted(conversation, run=run, before=before, login=login)
        return Looked(
            conversation=conversation,
            login=login,
            ours=ours or self._found(conversation, run=run, login=login),
            before=before,
        )

    def decide(self, prepared: Prepared, looked: Looked, *, force: bool) -> Decision:
        """What would be written; a gist that is still to be made has no address yet, and changes the comment."""
        decision = decide(body_of(prepared, looked.before), looked.ours, force=force)
        if decision.action == "unchanged" and prepared.files and _digest(prepared) != _gist_of(looked.before):
            return replace(decision, action="update")
        return decision

    def publish(self, prepared: Prepared, looked: Looked, decision: Decision) -> Published:
        """Write it. Raises ``GitHubRefused``."""
        post = looked.before or self._entry(prepared, looked)
        post = self._with_gist(post, prepared) if prepared.files else post
        body = body_of(prepared, post)
        comment, action = self._comment(body, prepared, looked, decision)
        self.in_the_air = ""
        self.note(
            post.model_copy(
                update={
                    "run": prepared.run,
                    "login": comment.login or looked.login,
                    "comment_id": comment.id,
                    "body_sha256": text_sha256(body),
                    "url": comment.url,
                    "posted_at": datetime.now(UTC).isoformat(timespec="seconds"),
                }
            )
        )
        return Published(
            action=action,
            comment=comment,
            gist_url=post.gist_url,
            bytes=len(body.encode("utf-8")),
        )

    def _noted(self, where: Conversation, *, run: str, before: Post | None, login: str | None) -> tuple[Comment, ...]:
        """The comment whose id we kept, unless it was deleted, lies elsewhere, is another's, or lost its marker."""
        if before is None or before.comment_id is None:
            return ()
        known = before.comment_id
        comment = self.patience.of(lambda: self.hub.comment(where.repository, where.number, known))
        if comment is None or not is_noted(comment, where=where, noted=before):
            return ()
        return (comment,) if is_ours(comment, run=run, login=login, noted=before) else ()

    def _found(self, where: Conversation, *, run: str, login: str | None) -> tuple[Comment, ...]:
        """Comments with the run's marker, by the same login, on any page."""
        if login is None:
            return ()
        from sparkdiag.posting.github import PAGE

        found: list[Comment] = []
        for number in range(MOST_PAGES):
            page = self._page(where, number)
            found += page
            if len(page) < PAGE:
                return ours_among(found, run=run, login=login)
        raise SparkdiagError(
            f"{where.repository}#{where.number} has more than {MOST_PAGES * PAGE:,} comments: whether one is the run's "
            "cannot be told",
            remedy="name another conversation: --pr OWNER/REPO#N",
        )

    def _page(self, where: Conversation, number: int) -> tuple[Comment, ...]:
        return self.patience.of(lambda: self.hub.comments(where.repository, where.number, page=number))

    def _comment(self, body: str, prepared: Prepared, looked: Looked, decision: Decision) -> tuple[Comment, str]:
        where, before = looked.conversation, decision.comment
        if before is not None and same_text(before.body, body):
            return before, "unchanged"
        if before is not None:
            known = before.id
            self.in_the_air = f"the update of {before.url}"
            edited = self.patience.of(lambda: self.hub.edit(where.repository, where.number, known, body=body))
            return edited, "updated"
        self.in_the_air = f"the comment on {where.repository}#{where.number}"
        return self._create_once(body, prepared, looked), "created"

    def _create_once(self, body: str, prepared: Prepared, looked: Looked) -> Comment:
        """A try that was not answered may have been heard: before the next one, the marker is looked for."""
        where = looked.conversation

        def heard() -> Comment | None:
            found = self._found(where, run=prepared.run, login=looked.login)
            return found[-1] if found else None  # there was none before

        def create() -> Comment:
            try:
                return self.hub.create(where.repository, where.number, body=body)
            except GitHubRefused as error:
                # Without a login of our own a comment that may be there cannot be known for ours.
                if looked.login is None and error.wait_s is None:
                    error.again = False
                raise

        return self.patience.of(create, before_again=heard)

    def _entry(self, prepared: Prepared, looked: Looked) -> Post:
        where = looked.conversation
        return Post(
            api_url=self.api_url,
            repository=where.repository,
            number=where.number,
            run=prepared.run,
            login=looked.login,
        )

    def _with_gist(self, post: Post, prepared: Prepared) -> Post:
        """``post`` with the gist that holds ``prepared.files``; noted at once, so that no second one is ever made."""
        digest = _digest(prepared)
        if post.gist_id is not None and post.gist_sha256 == digest:
            return post
        self.in_the_air = "the gist"
        gist_id, url = self._gist(prepared, post.gist_id)
        self.in_the_air = ""
        made = post.model_copy(update={"gist_id": gist_id, "gist_url": url, "gist_sha256": digest})
        self.note(made)
        return made

    def _with_own_gist(self, post: Post | None, *, login: str | None) -> Post | None:
        """``post``, without its gist unless GitHub tells that it is ours, of this run, and secret; with its address.

        Anybody may have sent the folder: what it names is neither linked nor written to on its word.
        """
        if post is None or post.gist_id is None:
            return post if post is None else post.model_copy(update=_NO_GIST)
        known, description = post.gist_id, _description(post.run)
        url = self.patience.of(lambda: self.hub.own_gist(known, description=description, login=login))
        return post.model_copy(update={"gist_url": url} if url is not None else _NO_GIST)

    def _gist(self, prepared: Prepared, known: str | None) -> tuple[str, str]:
        description = _description(prepared.run)

        def write(gist_id: str | None) -> tuple[str, str]:
            return self.hub.gist(prepared.files, description=description, gist_id=gist_id)

        if known is not None:
            try:
                return self.patience.of(lambda: write(known))
            except GitHubRefused as error:
                if error.status != 404:
                    raise
        return self.patience.of(lambda: write(None), before_again=lambda: self.hub.gist_described(description))


def body_of(prepared: Prepared, post: Post | None) -> str:
    """The comment. A gist that was asked for once stays linked: it is brought up to date only when asked for again."""
    return marked(prepared.page, run=prepared.run, gist_url=post.gist_url if post is not None else None)


def _description(run: str) -> str:
    return f"sparkdiag run {run}"


def _digest(prepared: Prepared) -> str:
    text = repr(sorted(prepared.files.items()))
    return hashlib.sha256(text.encode("utf-8", errors="backslashreplace")).hexdigest()


def _gist_of(post: Post | None) -> str | None:
    return post.gist_sha256 if post is not None else None
