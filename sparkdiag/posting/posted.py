"""``posted.json`` in a run's folder: which comment is the run's, so that it is written anew and not beside itself."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import Field, ValidationError

from sparkdiag.errors import BusyError
from sparkdiag.evidence.base import SCHEMA, Value
from sparkdiag.recording.folder import POSTED, replace
from sparkdiag.recording.record import open_regular

_LARGEST = 256 * 1024


class Post(Value):
    """One comment of ours, or the gist that was made for it when the comment itself was not."""

    api_url: str
    repository: str
    number: int
    run: str
    """The run's mark, as it stands in the comment."""
    login: str | None = None
    """Who GitHub said had written it. Kept for people: anybody may have sent the file, so nothing follows from it."""
    comment_id: int | None = None
    body_sha256: str | None = None
    """Of the comment's text as it was written."""
    url: str | None = None
    posted_at: str = ""
    """ISO 8601, UTC."""
    gist_id: str | None = Field(default=None, pattern=r"^[0-9A-Za-z]{1,64}$")
    """Part of an address that is written to, so nothing but a name."""
    gist_url: str | None = None
    gist_sha256: str | None = None
    """Of what the gist holds."""


class Posts(Value):
    """The document: one entry a conversation."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    posts: tuple[Post, ...] = ()

    def of(self, *, api_url: str, repository: str, number: int) -> Post | None:
        """The entry of a conversation; None where nothing was posted there."""
        asked = (api_url, repository.lower(), number)
        return next((one for one in self.posts if (one.api_url, one.repository.lower(), one.number) == asked), None)

    def with_post(self, post: Post) -> "Posts":
        """The same with ``post`` in place of what was known of its conversation."""
        before = self.of(api_url=post.api_url, repository=post.repository, number=post.number)
        return Posts(posts=(*(one for one in self.posts if one is not before), post))


def read_posts(folder: Path) -> Posts:
    """What was posted of the run in ``folder``. A file that cannot be read tells nothing: the marker is looked for."""
    path = folder / POSTED
    try:
        if path.is_symlink():
            return Posts()
        with open_regular(path) as file:
            return Posts.model_validate_json(file.read(_LARGEST))
    except (OSError, ValidationError, ValueError):
        return Posts()


def write_posts(folder: Path, posts: Posts) -> None:
    """Replaces the file at once. Raises ``OSError``."""
    text = json.dumps(posts.model_dump(mode="json", by_alias=True), indent=2, ensure_ascii=False)
    replace(folder / POSTED, text + "\n")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Nobody else posts this run meanwhile: two that find no comment would make two. Raises ``BusyError``.

    The folder itself is locked, so that one that cannot be written to can be posted; where there are no locks, nobody
    can tell, and that is no reason not to post.
    """
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(f"another process is posting {folder}", remedy="wait for its end") from None
        except OSError:
            pass
        yield
    finally:
        os.close(fd)
