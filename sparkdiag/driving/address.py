"""Which addresses sparkdiag talks to without being told to. Pure: no name is looked up."""

import ipaddress
from urllib.parse import SplitResult, urlsplit

from sparkdiag.errors import UsageError
from sparkdiag.harmless.printable import hidden_characters
from sparkdiag.scenario.shown import shown


def checked_base_url(url: str, *, allow_remote: bool) -> str:
    """``url`` as scheme, host, port and path, if it may be talked to. Raises ``UsageError`` naming the address.

    User names and passwords in it are refused rather than carried along: they would end in a run folder.
    """
    if hidden_characters(url) or " " in url:
        raise UsageError(f"{shown(url)} is no URL", remedy="--url http://127.0.0.1:8000")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise UsageError(f"{shown(url)} is no URL", remedy="--url http://127.0.0.1:8000") from None
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError(f"{shown(_public(parts))} is no http address", remedy="--url http://127.0.0.1:8000")
    if parts.username is not None or parts.password is not None:
        raise UsageError(f"the address {shown(_public(parts))} carries a user name or password", remedy="leave it out")
    if not (allow_remote or is_loopback(host)):
        address = host if port is None else f"{host}:{port}"
        raise UsageError(
            f"{shown(address)} is not this machine: looking there, or sending it a prompt, may disturb whoever uses it",
            remedy="--remote, if that server is yours to load",
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}".removesuffix("/v1")


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def _public(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
