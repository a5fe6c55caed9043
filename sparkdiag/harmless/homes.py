"""Home folders and user names in text. Pure.

The rest of a path stays. Names that belong to nobody (``root``, ``ubuntu``, ``vllm``) are left alone outside of homes;
names that are words as well (``max``, ``will``) only go where something beside them tells that they are a user's.
"""

import re
from collections.abc import Callable, Iterator

from sparkdiag.harmless.placeholders import USER, Placeholders

_SEP = r"(?:/|\\{1,4}/?|%2F|%5C)"
_NAME = r"(?!\.{1,3}(?![\w]))[^\s/\\\"'`<>|:;,*?%&(){}\[\]=!#…]+"
_TOP = r"(?:(?<![\w.~/\\\]-])|(?<=://)|(?<=%2F%2F))"
_MOUNTS = (
    r"(?:/(?:data|mnt|nfs|net|export|exports|var|usr|lustre|gpfs|scratch|shared?|storage|work|system|private|media|beegfs"
    r"|cephfs|fs\d*|ssd\d*|nvme\d*|raid\d*|vol\d*|volume\d*)(?:/[\w.-]{1,64}){0,2}?)"
)
_HOME = re.compile(
    rf"{_TOP}(?P<above>{_MOUNTS})?(?P<folder>{_SEP}(?:homes?|users){_SEP})(?P<name>{_NAME})", re.IGNORECASE
)
_ROOT = re.compile(rf"{_TOP}(?:/|%2F)root(?![\w-]|\.\w)")
_WINDOWS = re.compile(
    r"\b[A-Za-z](?::|%3A)(?P<sep>[\\/]{1,4}|%5C|%2F)Users(?:[\\/]{1,4}|%5C|%2F)"
    r"(?P<name>[^\s\\/:*?\"'<>|%…`]+(?: [^\s\\/:*?\"'<>|%…`]+(?=[\\/]))?)",
    re.IGNORECASE,
)
_TILDE = re.compile(r"(?<![\w~/.-])~(?P<name>[A-Za-z_][\w.-]*)(?=/)")
_TOLD = re.compile(
    r"(?P<before>\b(?:USER|LOGNAME|USERNAME|SUDO_USER)=[\"']?|\buser(?:_?name)?=[\"']?"
    r"|[\"'](?:user_?name|login|owner|logname)[\"']\s*:\s*[\"']|\b(?:uid|gid|groups)=\d+\("
    r"|\btorchinductor_|\bpytest-of-|\bssh-?user[= ])(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)"
)

NOBODY = frozenset(
    {
        "root", "user", "users", "username", "ubuntu", "admin", "administrator", "vllm", "nobody", "runner", "ec2-user",
        "azureuser", "debian", "centos", "fedora", "guest", "default", "public", "shared", "share", "app", "apps",
        "service", "docker", "jovyan", "node", "test", "tests", "tester", "ci", "git", "github", "gitlab", "www-data",
        "daemon", "sparkdiag", "sparklab", "ray", "worker", "workers", "data", "dataset", "datasets", "model", "models",
        "torch", "cuda", "nvidia", "python", "home", "main", "engine", "server", "client", "gpu", "cpu", "spark", "dgx",
        "lab", "dev", "build", "builder", "jenkins", "triton", "none", "null", "true", "false", "system", "local",
        "localhost", "host", "sys", "tmp", "opt", "usr", "var", "lib", "bin", "src", "mpi", "nccl", "slurm", "hf",
        "huggingface", "conda", "miniconda", "venv", "vagrant", "somebody", "anonymous", "assistant", "tool", "prompt",
        "token", "tokens", "kernel", "rank", "name", "noreply", "you", "me", "self", "start", "stop", "run", "runs",
        "trials", "scratch", "work", "workspace", "project", "projects", "code", "repo", "cache", "config", "container",
    }
)  # fmt: skip
"""Names that tell of nobody."""
_WORDS = frozenset(
    {
        "max", "min", "will", "mark", "page", "art", "dean", "frank", "grant", "rob", "bill", "pat", "sum", "log",
        "chunk", "chase", "long", "small", "young", "king", "hunter", "hope", "grace", "dawn", "summer", "may", "april",
        "june", "jack", "rich", "rusty", "stone", "wood", "field", "fields", "hill", "banks", "bond", "cash",
        "case", "day", "fast", "slow", "head", "key", "keys", "layer", "block", "step", "index", "loop", "wait", "the",
        "good", "bad", "old", "new", "base", "miles", "carry", "drew", "gene", "guy", "joy", "lance", "nick", "pierce",
        "ran", "sandy", "skip", "sky", "sue", "trace", "victor", "wade", "ward", "can", "not", "and", "for", "from",
        "torch", "mla", "moe", "dcp", "top", "set", "get", "put", "add", "any", "all", "out", "one", "two", "six",
    }
)  # fmt: skip
"""First names and family names that are ordinary words: they go only where something tells that a user is meant."""


def users_in(text: str) -> Iterator[str]:
    """User names that ``text`` gives away: of home folders, and where a word beside them tells it."""
    for pattern in (_HOME, _WINDOWS, _TILDE, _TOLD):
        for match in pattern.finditer(text):
            if is_somebody(match["name"]):
                yield match["name"]


def is_somebody(name: str) -> bool:
    """Whether ``name`` may be a person's."""
    return len(name) > 1 and name.lower() not in NOBODY and not name.isdecimal() and "…" not in name


def without_homes(text: str, found: Placeholders) -> str:
    """``text`` with home folders as ``~``, and with user names that something beside them tells."""
    if "sers" in text:
        text = _WINDOWS.sub(lambda _match: found.home(), text)
    lower = text.lower()
    if "home" in lower or "users" in lower:
        text = _HOME.sub(lambda match: _home(match, found), text)
    if "root" in lower:
        text = _ROOT.sub(lambda _match: found.home(), text)
    if "~" in text:
        text = _TILDE.sub(lambda _match: found.home(), text)
    return _TOLD.sub(lambda match: _told(match, found), text)


def _home(match: re.Match[str], found: Placeholders) -> str:
    """A home at the root of a path is ``~``; one further down keeps what is above it."""
    home = found.home()
    return home if match["above"] is None else f"{match['above']}{match['folder']}{USER}"


def _told(match: re.Match[str], found: Placeholders) -> str:
    return match["before"] + found.user() if is_somebody(match["name"]) else match[0]


def known_users(names: frozenset[str]) -> Callable[[str, Placeholders], str]:
    """A function that takes these users' names out of a text."""
    people = {name for name in names if is_somebody(name)}
    plain = {name for name in people if len(name) > 2 and name.lower() not in _WORDS}
    patterns = [re.compile(rf"(?<![A-Za-z0-9_.+-])(?:{_any(people)})(?=@[\w\[])", re.IGNORECASE)] if people else []
    for joined in (True, False):  # "torch_alice" is hers; the letters "tim" in "tim_step" are not his
        several = {name for name in plain if (len(name) > 3) is joined}
        edge = "A-Za-z0-9" if joined else r"\w"
        if several:
            patterns.append(re.compile(rf"(?<![{edge}])(?:{_any(several)})(?![{edge}])", re.IGNORECASE))

    def without_known(text: str, found: Placeholders) -> str:
        for pattern in patterns:
            text = pattern.sub(lambda _match: found.user(), text)
        return text

    return without_known


def _any(names: set[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))
