"""Addresses of machines and of their network devices in text. Pure.

Four numbers with dots are an address, unless a version is meant: behind ``version``, ``v``, ``==`` and its like, behind
a name and a dash (``cublas-12.8.4.1``), behind CUDA's or a driver's name. A port behind them, or a network that no
version is of (``192.168``), overrules that. In doubt they are an address.
"""

import ipaddress
import re

from sparkdiag.harmless.placeholders import Placeholders

_NUMBERS = r"(?:\d{1,3}\.){3}\d{1,3}"
_ESCAPED = r"(?<=\\[nrtbf])|(?<=%[0-9A-Fa-f]{2})|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})"
"""Right behind an escaped character a word begins, though a letter stands before it."""
_V4 = re.compile(
    rf"(?:(?<![A-Za-z0-9.])|{_ESCAPED})(?P<v4>{_NUMBERS})(?![\w]|\.\w|-(?!{_NUMBERS}(?![\w.]))[A-Za-z0-9])"
)
_VERSION = re.compile(
    r"(?:(?<![A-Za-z0-9])(?:version|versions|release|releases|driver|drivers|cuda|cudnn|cublas|nccl|cutlass|toolkit|runtime|firmware|vbios"
    r"|kernel|build|v|ver|rev)[\"']?\s*[:=]?\s*[\"'(]?|(?<![A-Za-z0-9])(?:nvidia|opencv|tensorrt|intel|onnx|mkl|cudnn|cublas|cufft|curand|cusolver|cusparse|nvjitlink|nvtx|npp|nvjpeg"
    r"|nvrtc|cupti)[\w-]{0,40}[\"'`]?[ \t|:=]{0,40}[\"'`]?|[=<>~!]=\s*|(?<=[A-Za-z0-9])[-_+])\Z",
    re.IGNORECASE,
)
_MACHINE = re.compile(
    rf"(?:\b(?:host|node|worker|pod|ip|server|peer|gpu|addr|master)[-_]|{_NUMBERS}-)\Z", re.IGNORECASE
)
"""What four numbers with a dash before them are an address behind all the same."""
_WITH_PORT = re.compile(r":[1-9]\d{1,4}(?![\w.])")
_V6 = re.compile(
    r"(?:(?<![\w:.])|(?<=ipv6:)|(?<=%5B))(?P<v6>(?:[0-9A-Fa-f]{1,4}:){1,7}(?::?[0-9A-Fa-f]{1,4}){0,7}:{0,2}"
    r"(?:(?<=:)\d{1,3}(?:\.\d{1,3}){3})?"
    r"|::ffff:(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-f]{1,4}:[0-9a-f]{1,4}))(?P<zone>%(?!5D)[A-Za-z0-9_.-]{1,15})?(?![\w:])",
    re.IGNORECASE,
)
_MAC = re.compile(
    r"(?<![0-9A-Fa-f:-])(?:(?:[0-9A-F]{2}:){5,19}[0-9A-F]{2}|(?=[0-9-]*[A-F])(?:[0-9A-F]{2}-){5}[0-9A-F]{2}"
    r"|(?:[0-9A-F]{4}:){3}[0-9A-F]{4})(?![0-9A-F:-])",
    re.IGNORECASE,
)
_MAC_DOTTED = re.compile(
    r"(?<![\w.])(?=[0-9.]{0,13}[a-f])[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}(?![\w.])", re.IGNORECASE
)
_GUID = re.compile(r"\b0x(?!0000)[0-9a-f]{6}fffe[0-9a-f]{6}\b", re.IGNORECASE)
"""A port's number in InfiniBand, made of its device's address; what begins with zeros is an address in memory."""
_REVERSED = re.compile(rf"(?<![\w.]){_NUMBERS}(?=\.in-addr\.arpa\b)", re.IGNORECASE)
_DASHED = re.compile(r"(?<![\w.-])\d{1,3}(?:-\d{1,3}){3}(?=\.[a-z])")
"""``10-1-2-3.namespace.pod``, as Kubernetes names what has no name."""


def without_addresses(text: str, found: Placeholders) -> str:
    """``text`` without addresses of the Internet's protocol, of either version, and of network devices."""
    if ":" in text or "-" in text:
        text = _MAC.sub(lambda match: found.address(match[0]), text)
    if ":" in text:
        text = _V6.sub(lambda match: _v6(match, found), text)
    if "fffe" in text or "FFFE" in text:
        text = _GUID.sub(lambda match: found.address(match[0]), text)
    if "." not in text:
        return text
    if "in-addr" in text:
        text = _REVERSED.sub(lambda match: found.address(match[0]), text)
    if text.count("-") > 2:
        text = _DASHED.sub(lambda match: found.address(match[0]), text)
    if text.count(".") > 1:
        text = _MAC_DOTTED.sub(lambda match: found.address(match[0]), text)
    return _V4.sub(lambda match: _v4(match, found), text)


def is_v4(text: str) -> bool:
    """Whether ``text`` has the form of an address of version 4."""
    return _V4.fullmatch(text) is not None


def _v6(match: re.Match[str], found: Placeholders) -> str:
    try:
        address = ipaddress.IPv6Address(match["v6"])
    except ValueError:
        return match[0]
    if address.is_loopback or address.is_unspecified or not _is_given_out(address):
        return match[0]
    if address.ipv4_mapped is not None and _stays(address.ipv4_mapped):
        return match[0]
    return found.address(str(address))


def _is_given_out(address: ipaddress.IPv6Address) -> bool:
    """Whether an interface can have it: ``1::2`` and ``[2::4]`` are slices, ``add::fe`` is C++."""
    if address.ipv4_mapped is not None:
        return True
    first = int(address) >> 112
    return 0x2000 <= first <= 0x3FFF or first >= 0xFC00 or first == 0x64


def _v4(match: re.Match[str], found: Placeholders) -> str:
    try:
        address = ipaddress.IPv4Address(match["v4"])
    except ValueError:  # 535.104.5.1, 01.2.3.4
        return match[0]
    if _stays(address):
        return match[0]
    return match[0] if _is_version(match, address) else found.address(match["v4"])


def _is_version(match: re.Match[str], address: ipaddress.IPv4Address) -> bool:
    before = match.string[max(0, match.start() - 100) : match.start()]
    if not _VERSION.search(before) or _MACHINE.search(before) or _WITH_PORT.match(match.string, match.end()):
        return False
    first, second = address.packed[:2]
    return not ((first, second) == (192, 168) or (first == 172 and 16 <= second <= 31))


def _stays(address: ipaddress.IPv4Address) -> bool:
    return address.is_loopback or address.is_unspecified
