"""Names of hosts and their addresses in text. Pure.

A name is a host's where it is known to be one, where its place tells it (a URL, ``host=``, before a port), or where its
form does: an internal suffix, a Kubernetes pod, ``ip-10-1-2-3``. Public sites and what means this machine stay.
"""

import re
from collections.abc import Callable, Iterator

from sparkdiag.harmless.addresses import is_v4
from sparkdiag.harmless.host_places import CERTAIN, DOMAIN, HOST, LABEL, TOLD, Places, is_domain
from sparkdiag.harmless.placeholders import Placeholders

PUBLIC_SITES = (
    "github.com", "githubusercontent.com", "github.io", "ghcr.io", "gitlab.com", "huggingface.co", "hf.co",
    "pypi.org", "pythonhosted.org", "python.org", "pytorch.org", "vllm.ai", "readthedocs.io", "readthedocs.org",
    "nvidia.com", "nvcr.io", "docker.com", "docker.io", "quay.io", "modelscope.cn", "arxiv.org",
    "stackoverflow.com", "kernel.org", "debian.org", "ubuntu.com", "launchpad.net", "anaconda.org", "anaconda.com",
    "conda.io", "wikipedia.org", "man7.org", "w3.org", "json-schema.org", "perfetto.dev", "speedscope.app",
    "npmjs.com", "jsdelivr.net", "openai.com", "anthropic.com", "deepseek.com", "mozilla.org", "apache.org",
    "rust-lang.org", "astral.sh", "gnu.org", "intel.com", "amd.com", "ray.io", "opensource.org", "spdx.org",
    "ietf.org", "rfc-editor.org", "example.com", "example.org", "example.net", "google.com", "googleapis.com",
    "microsoft.com", "numpy.org", "scipy.org", "cohere.com", "mistral.ai", "openreview.net", "arm.com",
    "tinyurl.com", "pydantic.dev", "pytest.org", "cppreference.com", "unicode.org", "sourceware.org", "llvm.org",
    "cmake.org", "opentelemetry.io", "prometheus.io", "kubernetes.io", "tiangolo.com", "scikit-learn.org",
)  # fmt: skip
"""Sites that everybody knows, with whatever is below them."""
_HERE = re.compile(r"(?:.*\.)?(?:localhost|localdomain|ip6-localhost|ip6-loopback)", re.IGNORECASE)
_NO_NETWORK_TEXT = "file ipc inproc unix docker data about overlay package mem shm chrome edge devtools ext vscode"
_NO_NETWORK = frozenset(_NO_NETWORK_TEXT.split())
_PLACEHOLDERS = frozenset({"host", "hostname", "server", "ip", "address", "addr", "owner", "...", "url", "example"})
_COMMON = frozenset(
    {
        "vllm-project",
        "vm", "host", "hostname", "server", "servers", "node", "nodes", "gpu", "gpus", "cpu", "spark", "dgx", "ubuntu",
        "debian", "box", "worker", "workers", "main", "lab", "pod", "container", "docker", "master", "head", "vllm",
        "ai", "ml", "dev", "test", "tests", "build", "builder", "api", "app", "client", "data", "db", "engine", "proxy",
        "router", "home", "work", "runner", "sparkdiag", "sparklab", "model", "models", "none", "null", "true", "false",
        "linux", "nvidia", "cuda", "torch", "ray", "redis", "etcd", "kernel", "rank", "coordinator", "local", "machine",
        "computer", "workstation", "desktop", "laptop", "the", "and", "its", "has", "was", "not", "memory", "default",
    }
)  # fmt: skip
"""Names that many machines bear and that are words as well: they go only where a host must stand."""
_FILES_TEXT = """
py pyi pyc pyx so cu cuh cc cpp h hpp c md txt json jsonl toml yaml yml cfg ini log sh rst html whl zip gz tar lock
safetensors bin pt pth gguf ptx cubin svg png
"""
_FILES = frozenset(_FILES_TEXT.split())
_MODULES_TEXT = """
threading torch vllm self cls path pathlib config settings env conf asyncio gevent greenlet contextvars werkzeug numpy
np tls _thread module cuda functional nn ops parameters params args kwargs
"""
_MODULES = frozenset(_MODULES_TEXT.split())
"""What stands before a ``.local`` of Python's."""

_NO_VALUES_TEXT = (
    "none null true false auto the a an is not no self cls args config cfg env envs os opts options params option flag"
    " argument parameter value and or to of for in str int string optional bytes any list tuple dict bool float type"
    " info debug warning error critical trace fatal"
)
_NO_VALUES = frozenset(_NO_VALUES_TEXT.split())
_ATTRIBUTES = frozenset({"host", "hostname", "addr", "address", "ip", "port", "name"})
"""``host=marker.host`` is code."""

_URL = re.compile(
    r"(?P<before>\b(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,20})(?:://|:\\/\\/|%3A%2F%2F)(?:[^\s/?#@\"'<>`%]{1,200}(?:@|%40))?)"
    rf"(?P<host>{HOST})(?![\w-]|@)",
    re.IGNORECASE,
)
_SUFFIX = re.compile(
    rf"(?<![\w./@%-])(?<!\\)(?P<host>(?:{LABEL}\.){{1,8}}(?:internal|local|localdomain|lan|corp|intra|intranet|svc|home\.arpa"
    r"|compute\.amazonaws\.com|compute-1\.amazonaws\.com|elb\.amazonaws\.com|rds\.amazonaws\.com|cloudapp\.azure\.com"
    r"|cloudapp\.net|ts\.net|onprem))\.?(?![\w(\[-]|\.\w)",
    re.IGNORECASE,
)
_SAFE = "bcdfghjklmnpqrstvwxz2456789"
"""Letters of the names that Kubernetes makes up."""
_FORMED = re.compile(
    rf"(?<![A-Za-z0-9_.-])(?P<host>(?:[a-z0-9]+-)+[{_SAFE}]{{6,10}}-[{_SAFE}]{{5}}"
    r"|ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}(?:\.[a-z0-9-]+)*"
    r"|(?:gke|aks|eks)-[a-z0-9-]{6,}"
    r"|(?:[a-z0-9]+-)*compute-\d+-\d+)(?![A-Za-z0-9_-])"
)
_TOLD = re.compile(
    r"(?P<before>(?<![A-Za-z0-9-])(?:--)?(?:[a-z]+[_-]){0,3}(?:host|hostname|nodename|node_name|node-name|master_addr"
    r"|master-addr|parallel-address|server_addr)[\"']?(?:=|\s*:\s*(?=[\"']?[\w.-]*[\d.-])|\s*:\s*(?=[\"']))[\"']?"
    rf"|\b(?:MASTER_ADDR|HOSTNAME|HOST|NODE_NAME|SLURMD_NODENAME|VLLM_HOST_IP)=[\"']?"
    r"|(?:(?<=--host )|(?<=--master-addr ))(?=[\w-]*[\d-]|[\w-]+\.\w))"
    rf"(?P<host>(?=[\w.-]*[A-Za-z]){HOST})(?![\w(\[-]|[\"']\{{)",
    re.IGNORECASE,
)
_PORT = re.compile(
    r"(?<![\w./:@%+=~-])(?P<host>[a-z][a-z0-9]*(?:-[a-z0-9]+)+(?:\.[a-z0-9-]+)*)(?=:(?:[1-9]\d{3,4})(?![\w:.]))"
)
_AT = re.compile(
    rf"(?P<user>(?<![\w.+@/-])[A-Za-z0-9_][\w.+-]{{0,63}}|\"[A-Za-z][\w. +-]{{0,63}}\"|\[user\]|\[redacted\])"
    rf"(?P<at>@|%40)(?P<host>{HOST})(?![\w@-])"
)
_SHELL = re.compile(r"(?P<user>(?<![\w.+@/-])[a-z_][\w.-]{0,31})@(?P<host>[A-Za-z0-9][\w-]{0,62})(?=:[~/]|[#$] )")

_ALL: Places = (
    *CERTAIN,
    (("://", ":\\/", "%3a"), _URL),
    *TOLD,
    (("host", "addr", "node"), _TOLD),
    ((":",), _PORT),
    ((".",), _SUFFIX),
    (("-",), _FORMED),
    ((".",), DOMAIN),
)
_PLACES = frozenset(pattern for _, pattern in CERTAIN + TOLD)
_ALONE = re.compile(r"[^,\s\[\]]+")
_ACCOUNT = 12
"""Digits of an account at a cloud."""
_GPU = re.compile(r"\b(?:GPU|MIG(?:-GPU)?)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:/\d+/\d+)?", re.IGNORECASE)


def is_public(host: str) -> bool:
    """Whether ``host`` is a site that everybody knows, means this machine, or stands for any host."""
    host = host.lower().rstrip(".")
    if _HERE.fullmatch(host) or host in _PLACEHOLDERS:
        return True
    return any(host == site or host.endswith(f".{site}") for site in PUBLIC_SITES)


def hosts_in(text: str) -> Iterator[str]:
    """Host names that ``text`` gives away and that can be told from other words wherever they stand."""
    lower = text.lower()
    for pattern in _patterns(CERTAIN, lower):
        yield from (match["host"] for match in pattern.finditer(text) if _is_host(match))
    for pattern in _patterns(_ALL[len(CERTAIN) :], lower):
        for match in pattern.finditer(text):
            name = match["host"].rstrip(".")
            if _is_host(match) and any(char in "0123456789-." for char in name):
                yield from _ALONE.findall(name)


def _patterns(places: Places, lower: str) -> Iterator[re.Pattern[str]]:
    return (pattern for words, pattern in places if any(word in lower for word in words))


def without_hosts(text: str, found: Placeholders) -> str:
    """``text`` without hosts that their place or their form tells, and without the numbers of GPUs."""
    if "-" in text:
        text = _GPU.sub(lambda match: found.gpu(match[0]), text)
    if "@" in text or "%40" in text:
        text = _AT.sub(lambda match: _at(match, found), text)
        text = _SHELL.sub(lambda match: f"{_user(match, found)}@{found.host(match['host'])}", text)
    for pattern in _patterns(_ALL, text.lower()):
        text = pattern.sub(lambda match: _host(match, found), text)
    return text


def _host(match: re.Match[str], found: Placeholders) -> str:
    if not _is_host(match):
        return match[0]
    before = match.groupdict().get("before") or ""
    return before + found.host(match["host"]) + match[0][len(before) + len(match["host"]) :]


def _is_host(match: re.Match[str]) -> bool:
    groups, host = match.groupdict(), match["host"].rstrip(".")
    if is_public(host) or is_v4(host) or (host.isdecimal() and len(host) != _ACCOUNT):
        return False
    scheme = groups.get("scheme")
    if scheme is not None:
        return scheme.lower() not in _NO_NETWORK
    labels = host.lower().split(".")
    if match.re is DOMAIN:
        return not ("_" in host or _MODULES.intersection(labels)) and is_domain(match, labels)
    if match.re is _TOLD or match.re in _PLACES:
        return not ("_" in host or labels[0] in _NO_VALUES or labels[-1] in _ATTRIBUTES or labels[-1] in _FILES)
    if match.re is _SUFFIX:
        return "svc" in labels or not ("_" in host or _MODULES.intersection(labels))
    return host.rsplit(".", 1)[-1].lower() not in _FILES


def _at(match: re.Match[str], found: Placeholders) -> str:
    """An e-mail address, or a login at a host: of public sites the account ``git`` stays."""
    host = match["host"].rstrip(".")
    labels = host.split(".")
    if len(labels) < 2 or not (labels[-1].isalpha() and len(labels[-1]) > 1) or labels[-1].lower() in _FILES:
        return match[0]
    name = host if is_public(host) else found.host(host)
    return f"{_user(match, found)}{match['at']}{name}{match['host'][len(host) :]}"


def _user(match: re.Match[str], found: Placeholders) -> str:
    name = match["user"]
    return name if name.startswith("[") or name in ("git", "noreply", "root") else found.user()


def known_hosts(names: frozenset[str]) -> Callable[[str, Placeholders], str]:
    """A function that takes these hosts' names out of a text; a common word only where a host must stand."""
    hosts = {name.lower() for name in names if len(name) > 1 and not is_public(name) and not name.isdecimal()}
    whole = {name for name in hosts if len(name) > 2 and name not in _COMMON}
    weak = hosts - whole
    patterns = []
    if whole:
        patterns.append(re.compile(rf"(?<![A-Za-z0-9])(?:{_any(whole)})(?![A-Za-z0-9])", re.IGNORECASE))
    if weak:
        patterns.append(re.compile(rf"(?<=@)(?:{_any(weak)})(?![\w.-])", re.IGNORECASE))
        patterns.append(re.compile(rf"(?<![\w./-])(?:{_any(weak)})(?=:\d{{4,5}}(?!\w))", re.IGNORECASE))

    def without_known(text: str, found: Placeholders) -> str:
        for pattern in patterns:
            text = pattern.sub(lambda match: found.host(match[0]), text)
        return text

    return without_known


def _any(names: set[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))
