"""Which conversation is meant, and where its API is. Pure: no name is looked up."""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from sparkdiag.errors import UsageError
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.harmless.printable import hidden_characters

GITHUB = "github.com"
GITHUB_API = "https://api.github.com"
_OWNER = r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}"
_REPO = r"(?!\.{1,2}(?:[/#]|$))[A-Za-z0-9._-]{1,100}"
_SHORT = re.compile(rf"(?P<owner>{_OWNER})/(?P<repo>{_REPO})#(?P<number>[1-9]\d{{0,9}})")
_PATH = re.compile(
    rf"/(?P<owner>{_OWNER})/(?P<repo>{_REPO})/(?:pull|pulls|issues)/(?P<number>[1-9]\d{{0,9}})(?:/[^?#]*)?"
)
_REPOSITORY = re.compile(rf"{_OWNER}/{_REPO}")
_EXAMPLE = "--pr vllm-project/vllm#12345"


@dataclass(frozen=True, kw_only=True)
class Target:
    """A pull request or an issue: to the API the conversation of both is an issue's."""

    api_url: str
    repository: str
    number: int
    trusted: bool = True
    """False: the host is known from a pasted address alone, so that no token of the environment's is meant for it."""

    @property
    def label(self) -> str:
        """``OWNER/REPO#N``."""
        return f"{self.repository}#{self.number}"


def target_of(text: str, *, asked_api: str | None, usual_api: str | None = None) -> Target:
    """The conversation ``text`` names: ``OWNER/REPO#N``, or the address of a pull request or an issue.

    ``asked_api`` was typed and wins; ``usual_api`` (``GITHUB_API_URL``) is for the short form, and for its own host.
    Raises ``UsageError``.
    """
    asked = checked_api_url(asked_api) if asked_api else None
    usual = checked_api_url(usual_api) if usual_api else GITHUB_API
    short = _SHORT.fullmatch(text.strip())
    if short is not None:
        where = f"{short['owner']}/{short['repo']}"
        return Target(api_url=asked or usual, repository=where, number=int(short["number"]))
    host, found = _of_address(text)
    if asked is not None and host_of(asked) != host and not is_loopback(asked):
        raise UsageError(
            f"{one_line(text)} is on {host}, and {asked} is the API of {host_of(asked)}", remedy="leave out --api-url"
        )
    api = asked or (usual if host_of(usual) == host else api_of(host))
    known = asked is not None or host_of(usual) == host or host == GITHUB or host.endswith(".ghe.com")
    repository = f"{found['owner']}/{found['repo']}"
    return Target(api_url=api, repository=repository, number=int(found["number"]), trusted=known)


def _of_address(text: str) -> tuple[str, re.Match[str]]:
    wrong = UsageError(f"{one_line(text)} names no pull request", remedy=_EXAMPLE)
    if hidden_characters(text) or "@" in text.partition("#")[0].partition("?")[0]:
        raise wrong
    try:
        parts = urlsplit(text.strip())
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        raise wrong from None
    found = _PATH.fullmatch(parts.path)
    if parts.scheme not in ("http", "https") or not host or found is None:
        raise wrong
    return (GITHUB if host == f"www.{GITHUB}" else host) + port, found


def conversation_at(address: str) -> tuple[str, int] | None:
    """``OWNER/REPO`` and number that GitHub's own address of a conversation ends in; a renamed one has new ones."""
    found = _PATH.fullmatch(urlsplit(address).path)
    return None if found is None else (f"{found['owner']}/{found['repo']}", int(found["number"]))


def repository_of(text: str) -> str:
    """``OWNER/REPO``, checked: it becomes part of a search. Raises ``UsageError``."""
    if _REPOSITORY.fullmatch(text.strip()) is None:
        raise UsageError(f"{one_line(text)} is no repository", remedy="--search-in vllm-project/vllm")
    return text.strip()


def checked_api_url(url: str) -> str:
    """``url`` where a token may travel: ``https``, or ``http`` on this machine. Raises ``UsageError``."""
    example = "--api-url https://HOST/api/v3"
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        host = None
        parts = urlsplit("")
    if hidden_characters(url) or " " in url or parts.scheme not in ("http", "https") or not host:
        raise UsageError("what is given as the API's address is no URL", remedy=example)
    if parts.username is not None or parts.password is not None:
        raise UsageError("the API's address carries a user name or password", remedy="leave it out")
    if parts.query or parts.fragment:
        raise UsageError("the API's address has a query", remedy=example)
    bare = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    if parts.scheme == "http" and not is_loopback(bare):
        raise UsageError(f"{bare}: a token would travel in the clear", remedy=example)
    return bare


def api_of(host: str) -> str:
    """Where the API of a web host is: GitHub's own, GitHub's for enterprises, an Enterprise Server."""
    if host == GITHUB:
        return GITHUB_API
    return f"https://api.{host}" if host.endswith(".ghe.com") else f"https://{host}/api/v3"


def host_of(api_url: str) -> str:
    """The web host (with a port of its own) whose API this is: what ``gh auth login --hostname`` is told."""
    netloc = urlsplit(api_url).netloc
    is_githubs = netloc == "api.github.com" or (netloc.startswith("api.") and netloc.endswith(".ghe.com"))
    return netloc.removeprefix("api.") if is_githubs else netloc


def is_loopback(api_url: str) -> bool:
    """Whether the API is on this machine."""
    host = urlsplit(api_url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
