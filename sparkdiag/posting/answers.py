"""What GitHub's answers mean to whoever posts: one clear line, and the next thing to type. Pure.

https://docs.github.com/en/rest/using-the-rest-api/troubleshooting-the-rest-api
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sparkdiag.errors import ExitCode, SparkdiagError
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.posting.where import host_of

_SECONDARY = ("secondary rate limit", "abuse detection", "please retry your request again later", "please wait a few")
_SSO = re.compile(r"url=(https://[^\s;,\"'<>]{1,500})")
SEARCHING = "searching"
_SECONDARY_WAIT_S = 60.0
"""GitHub: "wait at least one minute", where its answer names no time."""


class GitHubRefused(SparkdiagError):
    """GitHub did not do what it was asked for, or cannot be heard."""

    def __init__(
        self,
        message: str,
        *,
        remedy: str,
        status: int | None = None,
        again: bool = False,
        wait_s: float | None = None,
        details: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message, remedy=remedy, details=details)
        self.status = status
        self.again = again
        """Asking again may help."""
        self.wait_s = wait_s
        """GitHub says not to come back sooner."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What GitHub was asked for, for the words of an error."""

    doing: str
    """``reading OWNER/REPO#5``."""
    api_url: str
    with_token: bool

    @property
    def again(self) -> str:
        """What asking once more does; a search leaves nothing behind."""
        return "" if self.doing == SEARCHING else ": what was posted is found, not posted twice"

    @property
    def host(self) -> str:
        """The web host."""
        return host_of(self.api_url)

    @property
    def login(self) -> str:
        """How to come by another token."""
        return f"gh auth login --hostname {self.host}"


def refused(status: int, headers: Mapping[str, str], data: object, *, asked: Asked, now_s: float) -> GitHubRefused:
    """The error for an answer that is none of success. ``headers`` by lower-case name."""
    said = one_line(_said(data))
    if status in (403, 429):
        return _forbidden(status, headers, said, asked=asked, now_s=now_s)
    if status == 422:
        return _invalid(said, data, asked=asked)
    if status == 401:
        return _refusal(
            f"{asked.host} does not take the token ({said}): it is wrong, expired or revoked", asked.login, status
        )
    if status == 404:
        return _not_found(headers, status, asked=asked)
    if status == 410:
        return _refusal(f"{asked.doing}: gone or switched off ({said})", "name another: --pr OWNER/REPO#N", status)
    if status >= 500:
        return GitHubRefused(
            f"{asked.doing}: {asked.host} failed with {status}",
            remedy=f"run it again in a minute{asked.again}",
            status=status,
            again=True,
            wait_s=_seconds(headers.get("retry-after")),
        )
    return _refusal(f"{asked.doing}: {asked.host} answered {status} {said}".rstrip(), "sparkdiag post --help", status)


def unheard(why: str, *, asked: Asked) -> GitHubRefused:
    """No answer: a broken connection, a name that is not found, a time that is over."""
    return GitHubRefused(
        f"{asked.doing}: {asked.host} cannot be heard: {one_line(why, limit=200)}",
        remedy=f"run it again when the network is back{asked.again}",
        again=True,
    )


def not_githubs(why: str, *, asked: Asked) -> GitHubRefused:
    """An answer that GitHub's API would not give: another program listens there, or it sends us to another host."""
    return _refusal(
        f"{asked.doing}: {asked.host} does not answer as GitHub's API does: {one_line(why, limit=200)}",
        "name the API's own address: --api-url https://HOST/api/v3",
        None,
    )


def _forbidden(status: int, headers: Mapping[str, str], said: str, *, asked: Asked, now_s: float) -> GitHubRefused:
    low = said.lower()
    if headers.get("x-ratelimit-remaining") == "0" or low.startswith("api rate limit exceeded"):
        return _rate_limit(headers, status, asked=asked, now_s=now_s)
    wait_s = _seconds(headers.get("retry-after"))
    if status == 429 or wait_s is not None or any(words in low for words in _SECONDARY):
        wait_s = _SECONDARY_WAIT_S if wait_s is None else wait_s
        return GitHubRefused(
            f"{asked.doing}: {asked.host} asks to wait {wait_s:.0f} s (secondary rate limit)",
            remedy=f"run it again in {wait_s:.0f} s",
            status=status,
            again=True,
            wait_s=wait_s,
        )
    if sso := headers.get("x-github-sso"):
        where = _SSO.search(sso)
        return _refusal(
            f"{asked.doing}: the organisation asks for single sign-on of this token",
            f"open {where[1]}" if where else "authorise the token for the organisation (Settings, Developer settings)",
            status,
        )
    if "lock" in low:
        return _refusal(
            f"{asked.doing}: the conversation is locked", "ask somebody who may write there to unlock it", status
        )
    if missing := _missing_scopes(headers):
        scopes = ",".join(missing)
        return _refusal(
            f"{asked.doing}: the token lacks the scope {' or '.join(missing)}",
            f"gh auth refresh --hostname {asked.host} --scopes {scopes}",
            status,
        )
    permissions = one_line(headers.get("x-accepted-github-permissions", ""), limit=100)
    if "not accessible by" in low:
        needed = permissions or "issues=write or pull_requests=write"
        return _refusal(
            f"{asked.doing}: the token may not ({said})", f"give the token {needed} on this repository", status
        )
    return _refusal(f"{asked.doing}: not allowed ({said})", f"use a token of somebody who may: {asked.login}", status)


def _rate_limit(headers: Mapping[str, str], status: int, *, asked: Asked, now_s: float) -> GitHubRefused:
    reset_s = _seconds(headers.get("x-ratelimit-reset"))
    wait_s = _SECONDARY_WAIT_S if reset_s is None else max(reset_s - now_s, 0.0) + 1.0
    when = datetime.fromtimestamp(now_s + min(wait_s, 86_400.0), UTC).strftime("%H:%M:%S UTC")
    remedy = f"run it again after {when}"
    if not asked.with_token:
        remedy += f", or with a token, which may ask more often: {asked.login}"
    return GitHubRefused(
        f"{asked.doing}: the rate limit of {asked.host} is used up until {when}",
        remedy=remedy,
        status=status,
        again=True,
        wait_s=wait_s,
    )


def _missing_scopes(headers: Mapping[str, str]) -> list[str]:
    """Scopes of which one would do, where GitHub names them and the token has none of them."""
    wanted = _words(headers.get("x-accepted-oauth-scopes", ""))
    has = _words(headers.get("x-oauth-scopes", ""))
    return [] if "x-oauth-scopes" not in headers or set(wanted) & set(has) else wanted


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[,\s]+", text) if re.fullmatch(r"[a-z_:]{1,40}", word)]


def _not_found(headers: Mapping[str, str], status: int, *, asked: Asked) -> GitHubRefused:
    """GitHub says the same of what is not there and of what may not be seen."""
    if not asked.with_token:
        return _refusal(f"{asked.doing}: not there, or private", asked.login, status)
    if missing := _missing_scopes(headers):
        return _refusal(
            f"{asked.doing}: not there, or the token lacks the scope {' or '.join(missing)}",
            f"gh auth refresh --hostname {asked.host} --scopes {','.join(missing)}",
            status,
        )
    return _refusal(
        f"{asked.doing}: not there, or this token may not see it",
        f"check the name; for a private repository: {asked.login}",
        status,
    )


def _invalid(said: str, data: object, *, asked: Asked) -> GitHubRefused:
    errors = data.get("errors") if isinstance(data, dict) else None
    details = tuple(_problem(one) for one in errors[:5]) if isinstance(errors, list) else ()
    too_long = any("too long" in line for line in (*details, said))
    return GitHubRefused(
        f"{asked.doing}: {asked.host} finds it invalid: {said}",
        remedy="sparkdiag report RUN --output FILE, and attach the file" if too_long else "sparkdiag post --help",
        status=422,
        details=details,
    )


def _problem(one: Any) -> str:
    if not isinstance(one, dict):
        return one_line(str(one))
    words = [str(one[name]) for name in ("field", "code", "message") if one.get(name)]
    return one_line(": ".join(words))


def _refusal(message: str, remedy: str, status: int | None) -> GitHubRefused:
    made = GitHubRefused(message, remedy=remedy, status=status)
    if status in (404, 410):
        made.exit_code = ExitCode.USAGE
    return made


def _said(data: object) -> str:
    if isinstance(data, dict):
        return str(data.get("message") or "no reason given")
    return "no reason given"


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and re.fullmatch(r"\d{1,12}(?:\.\d{1,6})?", text.strip()) else None
