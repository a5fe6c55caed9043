"""The one who talks to GitHub: every call bounded in time, every failure a ``GitHubRefused``, nothing retried here.

Imports PyGithub, so it is imported by ``post`` alone. Objects are lazy and thrown away after one use: they go on from
the addresses that an answer names, and a token is sent to none but the API that was asked for.
"""

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import requests
import requests.utils
from github import Auth, BadAttributeException, Github, GithubException, InputFileContent
from github.Issue import Issue
from github.IssueComment import IssueComment
from urllib3.exceptions import HTTPError

from sparkdiag import __version__
from sparkdiag.errors import SparkdiagError
from sparkdiag.posting.answers import SEARCHING, Asked, GitHubRefused, not_githubs, refused, unheard
from sparkdiag.posting.bounded import bounded
from sparkdiag.posting.github_values import Comment, Conversation, Hit
from sparkdiag.posting.where import conversation_at

T = TypeVar("T")
PAGE = 100
"""Entries a page: the most that GitHub gives."""


class GitHub:
    """One API, and the token for it."""

    def __init__(self, *, api_url: str, token: str | None, timeout_s: float) -> None:
        refuse_proxy_in_the_clear(api_url)
        self._api_url, self._token, self._timeout_s = api_url, token, timeout_s
        self._hub = Github(
            base_url=api_url,
            auth=Auth.Token(token) if token else None,
            timeout=max(1, round(timeout_s)),
            user_agent=f"sparkdiag/{__version__}",
            per_page=PAGE,
            retry=None,  # posting.patience does it: bounded, told, and never a comment twice
            seconds_between_requests=None,
            seconds_between_writes=1.0,
            lazy=True,
        )

    def login(self) -> str | None:
        """Who the token belongs to; None for an app whose name GitHub does not tell."""
        try:
            return self._ask("asking whose token it is", lambda: _text(self._hub.get_user().login))
        except GitHubRefused as error:
            if error.status == 403 and not error.again and "not accessible by integration" in error.message:
                return self._app_login()
            raise

    def _app_login(self) -> str | None:
        """An app is nobody to ``GET /user``; the other API tells what it posts as, where it is there."""

        def read() -> str | None:
            _, answer = self._hub.requester.graphql_query("query { viewer { login } }", {})
            login = _text(answer["data"]["viewer"]["login"])
            return login if login.endswith("[bot]") else f"{login}[bot]"

        try:
            return self._ask("asking whose token it is", read)
        except GitHubRefused as error:
            if error.again:
                raise
            return None

    def conversation(self, repository: str, number: int) -> Conversation:
        """Title and state; of a conversation that has moved, the names it has now."""

        def read() -> Conversation:
            return _conversation(self._issue(repository, number), repository, number)

        return self._ask(f"reading {repository}#{number}", read)

    def comments(self, repository: str, number: int, *, page: int) -> tuple[Comment, ...]:
        """One page of comments, oldest first; ``page`` counts from 0."""

        def read() -> tuple[Comment, ...]:
            found = self._issue(repository, number).get_comments().get_page(page)
            return tuple(_comment(one) for one in found)

        return self._ask(f"reading the comments of {repository}#{number}", read)

    def comment(self, repository: str, number: int, comment_id: int) -> Comment | None:
        """A comment by its id; None where it was deleted."""
        try:
            return self._ask(
                f"reading comment {comment_id} of {repository}#{number}",
                lambda: _comment(self._issue(repository, number).get_comment(comment_id)),
            )
        except GitHubRefused as error:
            if error.status == 404:
                return None
            raise

    def create(self, repository: str, number: int, *, body: str) -> Comment:
        """A new comment. When this raises it may have been made all the same."""
        return self._ask(
            f"posting to {repository}#{number}",
            lambda: _comment(self._issue(repository, number).create_comment(body)),
        )

    def edit(self, repository: str, number: int, comment_id: int, *, body: str) -> Comment:
        """Replace a comment's text. Doing it twice is the same as once."""

        def write() -> Comment:
            comment = self._issue(repository, number).get_comment(comment_id)
            comment.edit(body)
            return _comment(comment)

        return self._ask(f"updating comment {comment_id} of {repository}#{number}", write)

    def gist(self, files: Mapping[str, str], *, description: str, gist_id: str | None) -> tuple[str, str]:
        """A secret gist, made or (``gist_id``) written anew; its id and address. Raises with status 404 if it went."""
        content: dict[str, InputFileContent] = {name: InputFileContent(text) for name, text in files.items()}

        def write() -> tuple[str, str]:
            if gist_id is not None:
                gist = self._hub.get_gist(gist_id)
                gist.edit(description=description, files={**content})
            else:
                gist = self._hub.get_user().create_gist(False, content, description)
            return gist.id, gist.html_url

        return self._ask("updating the gist" if gist_id else "making a gist", write)

    def own_gist(self, gist_id: str, *, description: str, login: str | None) -> str | None:
        """The address of a gist if it is secret, described like this and of ``login``; None for every other."""

        def read() -> str | None:
            gist = self._hub.get_gist(gist_id)
            owner = gist.owner.login if gist.owner is not None else None
            is_own = login is not None and owner is not None and owner.lower() == login.lower()
            return _text(gist.html_url) if is_own and not gist.public and gist.description == description else None

        try:
            return self._ask("reading the gist", read)
        except GitHubRefused as error:
            if error.again:
                raise
            return None

    def gist_described(self, description: str) -> tuple[str, str] | None:
        """The newest secret one of the user's last gists that is described like this."""

        def read() -> tuple[str, str] | None:
            found = self._hub.get_user().get_gists().get_page(0)
            ours = (one for one in found if one.description == description and not one.public)
            return next(((one.id, one.html_url) for one in ours), None)

        return self._ask("looking for the gist", read)

    def search(self, query: str, *, page: int) -> tuple[Hit, ...]:
        """One page of issues and pull requests; ``page`` counts from 0."""

        def read() -> tuple[Hit, ...]:
            found = self._hub.search_issues(query, sort="updated", order="desc").get_page(page)
            return tuple(hit for one in found if (hit := _hit(one)) is not None)

        return self._ask(SEARCHING, read)

    def _issue(self, repository: str, number: int) -> Issue:
        return self._hub.get_repo(repository).get_issue(number)

    def _ask(self, doing: str, call: Callable[[], T]) -> T:
        asked = Asked(doing=doing, api_url=self._api_url, with_token=self._token is not None)
        try:
            return bounded(call, limit_s=2 * self._timeout_s)
        except GithubException as error:
            headers = {str(name).lower(): str(value) for name, value in (error.headers or {}).items()}
            raise self._hidden(refused(error.status, headers, error.data, asked=asked, now_s=time.time())) from None
        except (OSError, HTTPError) as error:  # requests' own errors are OSErrors
            raise self._hidden(unheard(_why(error), asked=asked)) from None
        # What PyGithub and its helpers make of an answer that is no GitHub's: other types, another host, no JSON.
        except (BadAttributeException, RuntimeError, AssertionError, ValueError, TypeError, LookupError) as error:
            raise self._hidden(not_githubs(str(error) or type(error).__name__, asked=asked)) from None
        except AttributeError as error:
            raise self._hidden(not_githubs(str(error), asked=asked)) from None

    def _hidden(self, error: GitHubRefused) -> GitHubRefused:
        """``error`` without the token, should an answer have repeated it."""
        if self._token:
            hide = self._token
            error.message = error.message.replace(hide, "[redacted]")
            error.remedy = error.remedy.replace(hide, "[redacted]") if error.remedy else error.remedy
            error.details = tuple(line.replace(hide, "[redacted]") for line in error.details)
        return error


def refuse_proxy_in_the_clear(api_url: str) -> None:
    """Plain http is for this machine alone, and a proxy is not this machine. Raises ``SparkdiagError``."""
    if api_url.startswith("http://") and "http" in requests.utils.get_environ_proxies(api_url, no_proxy=None):
        raise SparkdiagError(
            f"a proxy stands between here and {api_url}: a token would travel in the clear",
            remedy="export NO_PROXY=127.0.0.1,localhost",
        )


def _why(error: Exception) -> str:
    """The innermost cause: what wraps it repeats the address, the port and the object's name in memory."""
    inner: BaseException = error
    while (deeper := inner.__cause__ or inner.__context__) is not None:
        inner = deeper
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.exceptions.SSLError):
        return f"its certificate is not to be trusted ({type(inner).__name__})"
    strerror = getattr(inner, "strerror", None)
    return str(strerror or inner or type(error).__name__)


def _conversation(issue: Issue, repository: str, number: int) -> Conversation:
    url = _text(issue.html_url)
    pull = issue.pull_request
    merged = pull is not None and pull.merged_at is not None
    moved = conversation_at(url) or (repository, number)
    return Conversation(
        repository=moved[0],
        number=moved[1],
        title=_text(issue.title),
        state="merged" if merged else _text(issue.state),
        locked=bool(issue.locked),
        is_pull_request=pull is not None,
        url=url,
    )


def _comment(comment: IssueComment) -> Comment:
    user = comment.user
    return Comment(
        id=_number(comment.id),
        login=_text(user.login) if user is not None else "",
        body=comment.body or "",
        url=_text(comment.html_url),
        updated_at=str(comment.updated_at or ""),
    )


def _hit(issue: Issue) -> Hit | None:
    url = _text(issue.html_url)
    where = conversation_at(url)
    if where is None:
        return None
    return Hit(
        repository=where[0],
        number=where[1],
        title=_text(issue.title),
        is_pull_request="/pull/" in url,  # asking the object for what an issue has not costs a request each
        updated_at=str(issue.updated_at or "")[:10],
        url=url,
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text is missing, and {type(value).__name__} stands there")
    return value


def _number(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError(f"a number is missing, and {type(value).__name__} stands there")
    return value
