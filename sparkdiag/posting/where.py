"""Which conversation is meant, and where its API is. Pure: no name is looked up."""

import ipaddress
import re
from dataclasses import dataclass

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
_ADDRESS = re.compile(
    r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<path>/[^?#]*)?(?P<more>[?#].*)?",
    re.ASCII | re.IGNORECASE | re.DOTALL,
)
"""Taken apart here and not by ``urllib``, which forgives: what one reader takes for a host, the next must not."""
_AUTHORITY = re.compile(
    r"(?P<host>[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*)(?::(?P<port>[0-9]{0,5}))?"
)
_BRACKETED = re.compile(r"\[[0-9a-f:.]{2,45}\](?::\d{0,5})?")
_API_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)*")
_LONGEST_HOST = 253
_USUAL_PORTS = {"http": 80, "https": 443}
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
    address = _ADDRESS.fullmatch(text.strip())
    if hidden_characters(text) or address is None:
        raise wrong
    if _BRACKETED.fullmatch(address["authority"].lower()):
        raise _no_ipv6(one_line(text), remedy=_EXAMPLE)
    host = _host_in(address)
    found = _PATH.fullmatch(address["path"] or "")
    if host is None or found is None:
        raise wrong
    host = GITHUB if host == f"www.{GITHUB}" else host
    if host.endswith(f".{GITHUB}"):  # its API, its gists: no conversation is there, and ``gh`` has one login for all
        raise wrong
    return host, found


def _host_in(address: re.Match[str]) -> str | None:
    """The host in small letters, with its port unless that is the scheme's own; None where it is no name."""
    found = _AUTHORITY.fullmatch(address["authority"].lower()) if address["authority"].isascii() else None
    if found is None or len(found["host"]) > _LONGEST_HOST:
        return None
    port = int(found["port"]) if found["port"] else None
    if port is not None and not 0 < port <= 65_535:
        return None
    return found["host"] if port in (None, _USUAL_PORTS[address["scheme"].lower()]) else f"{found['host']}:{port}"


def _no_ipv6(what: str, *, remedy: str) -> UsageError:
    return UsageError(f"{what}: an IPv6 address in brackets is not understood, a name is", remedy=remedy)


def conversation_at(address: str) -> tuple[str, int] | None:
    """``OWNER/REPO`` and number that GitHub's own address of a conversation ends in; a renamed one has new ones."""
    parts = _ADDRESS.fullmatch(address)
    found = _PATH.fullmatch(parts["path"] or "") if parts is not None else None
    return None if found is None else (f"{found['owner']}/{found['repo']}", int(found["number"]))


def repository_of(text: str) -> str:
    """``OWNER/REPO``, checked: it becomes part of a search. Raises ``UsageError``."""
    if _REPOSITORY.fullmatch(text.strip()) is None:
        raise UsageError(f"{one_line(text)} is no repository", remedy="--search-in vllm-project/vllm")
    return text.strip()


def checked_api_url(url: str) -> str:
    """``url`` where a token may travel: ``https``, or ``http`` on this machine; in one spelling. Raises ``UsageError``.

    One spelling, because it is compared: ``HTTPS://API.GITHUB.COM:443/`` is GitHub's, and gets GitHub's token.
    """
    example = "--api-url https://HOST/api/v3"
    address = _ADDRESS.fullmatch(url)
    if hidden_characters(url) or address is None or not address["authority"]:
        raise UsageError("what is given as the API's address is no URL", remedy=example)
    if "@" in address["authority"]:
        raise UsageError("the API's address carries a user name or password", remedy="leave it out")
    if address["more"]:
        raise UsageError("the API's address has a query", remedy=example)
    if _BRACKETED.fullmatch(address["authority"].lower()):
        raise _no_ipv6("the API's address", remedy=example)
    host, path = _host_in(address), (address["path"] or "").rstrip("/")
    if host is None or _API_PATH.fullmatch(path) is None:
        raise UsageError("what is given as the API's address is no URL", remedy=example)
    scheme = address["scheme"].lower()
    bare = f"{scheme}://{host}{path}"
    if scheme == "http" and not is_loopback(bare):
        raise UsageError(f"{bare}: a token would travel in the clear", remedy=example)
    return bare


def api_of(host: str) -> str:
    """Where the API of a web host is: GitHub's own, GitHub's for enterprises, an Enterprise Server."""
    if host == GITHUB:
        return GITHUB_API
    return f"https://api.{host}" if host.endswith(".ghe.com") else f"https://{host}/api/v3"


def host_of(api_url: str) -> str:
    """The web host (with a port of its own) whose API this is: what ``gh auth login --hostname`` is told."""
    host = _authority(api_url)
    is_githubs = host == "api.github.com" or (host.startswith("api.") and host.endswith(".ghe.com"))
    return host.removeprefix("api.") if is_githubs else host


def is_loopback(api_url: str) -> bool:
    """Whether the API is on this machine."""
    host = _authority(api_url).partition(":")[0]
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _authority(api_url: str) -> str:
    """Of a checked address, host and port."""
    return api_url.partition("://")[2].partition("/")[0]
