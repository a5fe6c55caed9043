"""The token to post with: from the environment, else the ``gh`` login. It is never shown, kept or passed on.

The names are those that ``gh`` reads (https://cli.github.com/manual/gh_help_environment), each for its own hosts.
"""

import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress

from sparkdiag.errors import SparkdiagError, UsageError
from sparkdiag.posting.where import GITHUB, Target, checked_api_url, host_of

_GH_S = 10.0
GITHUBS = ("GH_TOKEN", "GITHUB_TOKEN")
ENTERPRISES = ("GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN")


def variables_for(api_url: str, *, trusted: bool, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the variables whose token is meant for this API. Pure.

    A host that is known from a pasted address alone gets none, unless it is the one that the environment names: it
    could be anybody's.
    """
    host = host_of(api_url)
    if host == GITHUB or host.endswith(".ghe.com"):
        return GITHUBS
    if environ.get("GITHUB_ACTIONS") == "true" and _same_api(
        environ.get("GITHUB_API_URL", ""), api_url
    ):  # of an Enterprise Server: the job's own token has the usual name there
        return (*ENTERPRISES, "GITHUB_TOKEN")
    return ENTERPRISES if trusted or environ.get("GH_HOST", "").lower() == host else ()


def _same_api(named: str, api_url: str) -> bool:
    try:
        return checked_api_url(named) == api_url
    except UsageError:
        return False


def token_in(environ: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    """The first that is set. Raises ``SparkdiagError`` for one that no token is: it would break out of its header."""
    for name in names:
        value = environ.get(name, "").strip()
        if value:
            return _checked(value, source=name)
    return None


def token_of_gh(host: str) -> str | None:
    """What ``gh`` is logged in with; None where there is no ``gh`` or no login. Bounded in time.

    ``gh`` keeps one login for github.com and all that ends in it: ``where`` takes no other host of GitHub's.
    """
    # With these in its environment gh would hand out a token that was meant for another host.
    environ = {name: value for name, value in os.environ.items() if name not in (*GITHUBS, *ENTERPRISES)}
    with suppress(OSError, subprocess.SubprocessError, UnicodeError):
        done = subprocess.run(
            ["gh", "auth", "token", "--hostname", host],
            check=False,
            env={**environ, "GH_PROMPT_DISABLED": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_GH_S,
        )
        if done.returncode == 0 and done.stdout.strip():
            return _checked(done.stdout.strip(), source="gh auth token")
    return None


def no_token(target: Target, *, environ: Mapping[str, str]) -> SparkdiagError:
    """There is none: what to type."""
    host = host_of(target.api_url)
    names = variables_for(target.api_url, trusted=target.trusted, environ=environ)
    login = f"gh auth login --hostname {host}"
    instead = (
        f"put one into {names[0]}" if names else f"put one into {ENTERPRISES[0]} and add --api-url {target.api_url}"
    )
    return SparkdiagError(f"there is no token for {host}", remedy=f"{login}, or {instead}")


def _checked(value: str, *, source: str) -> str:
    if not value.isascii() or not value.isprintable() or " " in value:
        raise SparkdiagError(f"what {source} holds is no token", remedy=f"set {source} again, or: gh auth login")
    return value
