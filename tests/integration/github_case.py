"""A stand-in for GitHub's REST API on loopback that enforces its rules, in the shapes that GitHub documents.

https://docs.github.com/en/rest/issues/comments, /gists/gists, /search/search, /using-the-rest-api
"""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

MOST_CHARACTERS = 65_536
MOST_FOUND = 1000
LONGEST_QUERY = 256
MOST_OPERATORS = 5
OWNER, OTHER = "octo-reporter", "hubot"
TOKEN = "stand-in-" + "t0" * 12
"""Of no shape that a redactor knows, so that a test sees it wherever it comes out."""
_NOW = "2026-06-01T12:00:00Z"

Answer = tuple[int, dict[str, str], Any]


@dataclass(kw_only=True)
class Account:
    """Whose token it is, and what it may."""

    login: str = OWNER
    scopes: tuple[str, ...] | None = ("repo", "gist")
    """None: a token with permissions of its own; GitHub names no scopes for one."""
    may_write: bool = True
    tells_viewer: bool = False
    """Whether the other API tells who this is."""


@dataclass(kw_only=True)
class Issue:
    """A pull request or an issue."""

    repository: str
    number: int
    title: str = "Reach the Triton kernel from the sparse indexer"
    state: str = "open"
    locked: bool = False
    merged: bool = False
    is_pull: bool = True
    body: str = ""
    private: bool = False


@dataclass(kw_only=True)
class Comment:
    """One comment."""

    id: int
    issue: Issue
    login: str
    body: str


@dataclass(kw_only=True)
class Seen:
    """One request as it came."""

    verb: str
    path: str
    query: dict[str, str]
    authorised: bool
    body: Any


Fault = Callable[["StandIn", Seen], Answer | None]
"""Answers in place of the API, or lets the request through (None)."""


@dataclass(kw_only=True)
class StandIn:
    """Everything the API knows, and what it was asked."""

    url: str = ""
    accounts: dict[str, Account] = field(default_factory=lambda: {TOKEN: Account()})
    issues: list[Issue] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    gists: dict[str, dict[str, Any]] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    """Old names of repositories."""
    switched_off: set[str] = field(default_factory=set)
    """Repositories without issues."""
    faults: list[Fault] = field(default_factory=list)
    """Each is asked until it has answered once."""
    drop_after: set[str] = field(default_factory=set)
    """``POST /path``: done, and the connection cut before the answer; each once."""
    answers_late: set[str] = field(default_factory=set)
    """The same, and the answer comes when the test is over; each once."""
    over: threading.Event = field(default_factory=threading.Event)
    searches_left: int = 30
    requests_left: int | None = None
    reset_in_s: int = 2
    seen: list[Seen] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def asked(self, verb: str) -> list[str]:
        """Paths that were asked for with ``verb``, in order."""
        return [one.path for one in self.seen if one.verb == verb]

    def writes(self) -> int:
        """How many requests were to change something."""
        return sum(one.verb != "GET" for one in self.seen)

    def issue(self, repository: str, number: int) -> Issue | None:
        """The one of that name and number."""
        found = (one for one in self.issues if (one.repository.lower(), one.number) == (repository.lower(), number))
        return next(found, None)

    def add_comment(self, issue: Issue, *, login: str, body: str) -> Comment:
        """As if somebody had written it."""
        made = Comment(id=1000 + len(self.comments), issue=issue, login=login, body=body)
        self.comments.append(made)
        return made


@contextmanager
def stand_in() -> Iterator[StandIn]:
    """The API on a free port of loopback, with one pull request in it."""
    api = StandIn()
    api.issues.append(Issue(repository="octo/engine", number=5))

    class Bound(Handler):
        standin = api

    server = ThreadingHTTPServer(("127.0.0.1", 0), Bound)
    server.daemon_threads = True
    api.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        api.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class Handler(BaseHTTPRequestHandler):
    """One request after the other through the same gates that GitHub has."""

    standin: StandIn
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the test's stderr."""

    def _handle(self) -> None:
        api = self.standin
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        token = (self.headers.get("Authorization") or "").rpartition(" ")[2]
        seen = Seen(
            verb=self.command,
            path=parts.path,
            query={name: values[0] for name, values in parse_qs(parts.query).items()},
            authorised=bool(token),
            body=json.loads(raw) if raw else None,
        )
        with api.lock:
            api.seen.append(seen)
            status, headers, document = self._answer(seen, token)
        if f"{seen.verb} {seen.path}" in api.drop_after:
            api.drop_after.discard(f"{seen.verb} {seen.path}")
            self.close_connection = True
            self.connection.close()
            return
        if f"{seen.verb} {seen.path}" in api.answers_late:
            api.answers_late.discard(f"{seen.verb} {seen.path}")
            api.over.wait(60)
        with suppress(OSError):  # whoever asked may have gone
            self._send(status, headers, document)

    do_GET = do_POST = do_PATCH = do_DELETE = _handle

    def _send(self, status: int, headers: dict[str, str], document: Any) -> None:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json; charset=utf-8", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _answer(self, seen: Seen, token: str) -> Answer:
        from tests.integration.github_routes import routed  # it is made of this module's values

        api = self.standin
        for fault in tuple(api.faults):
            answer = fault(api, seen)
            if answer is not None:
                api.faults.remove(fault)
                return answer
        if not self.headers.get("User-Agent"):
            return refuse(403, "Request forbidden by administrative rules.")
        account = api.accounts.get(token)
        if token and account is None:
            return refuse(401, "Bad credentials")
        if api.requests_left is not None:
            api.requests_left -= 1
            if api.requests_left < 0:
                return rate_limited(api)
        status, headers, document = routed(api, seen, account)
        if account is not None and account.scopes is not None:
            headers = {"X-OAuth-Scopes": ", ".join(account.scopes), **headers}
        return status, headers, document


def refuse(status: int, message: str, headers: dict[str, str] | None = None, **more: Any) -> Answer:
    """An error as GitHub words it."""
    document = {"message": message, "documentation_url": "https://docs.github.com/rest", "status": str(status), **more}
    return status, headers or {}, document


def rate_limited(api: StandIn) -> Answer:
    """The primary limit: 403, nothing left, and when it is over."""
    headers = {
        "X-RateLimit-Limit": "60",
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": str(int(time.time()) + api.reset_in_s),
    }
    return refuse(403, "API rate limit exceeded for 127.0.0.1.", headers)


def once(status: int, message: str = "", headers: dict[str, str] | None = None, *, verb: str | None = None) -> Fault:
    """A fault that answers the first request, of ``verb`` if that is given."""

    def fault(api: StandIn, seen: Seen) -> Answer | None:
        return refuse(status, message, headers) if verb in (None, seen.verb) else None

    return fault


def invalid(resource: str, field_: str, code: str, message: str | None = None) -> Answer:
    """422 with its list of errors."""
    error = {"resource": resource, "code": code, "field": field_} | ({"message": message} if message else {})
    return refuse(422, "Validation Failed", errors=[error])


def paged(api: StandIn, seen: Seen, items: list[Any]) -> tuple[list[Any], dict[str, str]]:
    """One page, and the Link header; ``per_page`` is 30, at most 100."""
    per_page = min(max(int(seen.query.get("per_page", "30")), 1), 100)
    page = max(int(seen.query.get("page", "1")), 1)
    last = max(1, -(-len(items) // per_page))

    def at(number: int, rel: str) -> str:
        return f'<{api.url}{seen.path}?{urlencode({**seen.query, "page": number})}>; rel="{rel}"'

    links = [at(page + 1, "next"), at(last, "last")] if page < last else []
    links += [at(page - 1, "prev"), at(1, "first")] if page > 1 else []
    return items[(page - 1) * per_page : page * per_page], {"Link": ", ".join(links)} if links else {}


def terms(query: str) -> tuple[list[str], dict[str, list[str]]]:
    """What is searched for, and the qualifiers."""
    words = re.findall(r'"([^"]*)"', query)
    rest = re.sub(r'"[^"]*"', " ", query).split()
    qualifiers: dict[str, list[str]] = {}
    for word in rest:
        name, colon, value = word.partition(":")
        if colon:
            qualifiers.setdefault(name, []).append(value)
        elif word not in ("AND", "OR", "NOT"):
            words.append(word)
    return words, qualifiers
