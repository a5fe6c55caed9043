"""Home folders and user names in text. Pure.

The rest of a path stays. Names that belong to nobody (``root``, ``ubuntu``, ``vllm``) are left alone outside of homes;
names that are words as well (``max``, ``will``) only go where something beside them tells that they are a user's.
"""

import re
from collections.abc import Callable, Iterator

from sparkdiag.harmless.placeholders import USER, Placeholders

_SEP = r"(?:/(?:\.?/){0,3}|\\{1,4}/?|%2F|%5C|\\u002f)"
_FIRST = r"(?:(?<!:)/(?:\.?/){1,3}|/|\\{1,4}/?|%2F|%5C|\\u002f)"
"""The first of a path: the two behind a scheme are not its own."""
_NAME = r"(?!\.{1,3}(?![\w]))(?:(?-i:[A-Z]{2,16})\\{1,2}(?=[\w.-]{1,64}/))?[^\s/\\\"'`<>|:;,*?%&(){}\[\]=!#…]+"
"""A domain of Windows may stand before it."""
_TOP = r"(?:(?<![\w.~/\\\]-])|(?<=://)|(?<=%2F%2F))"
_GLUED = r"(?:(?<=\.\.)|(?<=-[ILFB])|(?<=-isystem)|(?<=-iquote)|(?<=-idirafter)|(?<=-include)|(?<=--prefix))"
"""What a path may hang on to: a compiler's option, or the way up."""
_MOUNTS = (
    r"(?:/(?:data|mnt|nfs|net|export|exports|var|usr|lustre|gpfs|scratch|shared?|storage|work|system|private|media|beegfs"
    r"|cephfs|fs\d*|ssd\d*|nvme\d*|raid\d*|vol\d*|volume\d*|afs|fsx|efs)(?:/[\w.-]{1,64}){0,2}?"
    r"|/(?:host|hostfs|rootfs|overlay|sysroot|srv|opt|snap|run/host|proc/\d{1,8}/root|cygdrive/[a-z]|[a-z]))"
)
_INITIAL = rf"(?:(?P<initial>[a-z]){_SEP}(?=(?P=initial)[\w-]))?"
"""``/home/a/alice``."""
_HOME = re.compile(
    rf"(?:{_TOP}(?P<above>{_MOUNTS})?(?P<folder>{_FIRST}(?:home\d?|homes|users){_SEP})|{_GLUED}{_SEP}home\d?{_SEP})"
    rf"{_INITIAL}(?P<name>{_NAME})",
    re.IGNORECASE,
)
_ROOT = re.compile(rf"(?:{_TOP}|{_GLUED})(?:/|%2F)root(?![\w-]|\.\w)")
_WINDOWS = re.compile(
    r"\b[A-Za-z](?::|%3A)(?P<sep>[\\/]{1,4}|%5C|%2F)(?:Users|Documents and Settings)(?:[\\/]{1,4}|%5C|%2F)"
    r"(?P<name>[^\s\\/:*?\"'<>|%…`]+(?: [^\s\\/:*?\"'<>|%…`]+(?=[\\/]))?)",
    re.IGNORECASE,
)
_SHARED = re.compile(
    r"(?P<above>(?<![\w:\\/])(?:\\\\|//){1,2}[\w.$-]{1,64}(?:[\\/]{1,2}[\w.-]{1,64})?)(?P<folder>[\\/]{1,2}(?:home|users)[\\/]{1,2})"
    r"(?P<name>[^\s\\/:*?\"'<>|%…`]+)",
    re.IGNORECASE,
)
"""On another machine: ``\\\\server\\Users\\alice``, ``//wsl$/Ubuntu/home/alice``."""
_TILDE = re.compile(r"(?:(?<![\w~/.-])~(?P<name>[A-Za-z_][\w.-]*)(?=/)|(?<=\bcd )~(?P<alone>[A-Za-z_][\w.-]*))")
_TOLD = re.compile(
    r"(?P<before>\b(?:[A-Z]{1,16}_){0,4}(?:USER|LOGNAME|USERNAME)=[\"']?|\b(?:user(?:_?name)?|owner|author)=[\"']?"
    r"|[\"'](?:user_?name|login|owner|author|logname|USER|LOGNAME|USERNAME|SUDO_USER|SLURM_JOB_USER)[\"']\s*:\s*[\"']"
    r"|\b(?:uid|gid|groups)=\d+\(|\b(?:user ?name|login): (?=[\w.-]{1,64}[ \t]*(?:$|[,;)}\n]))|\bopened for user "
    r"|\btorchinductor_|\bpytest-of-|\bhsperfdata_|/run/media/|\bchown (?:-R )?(?=[\w.-]{1,64}:)|\bsu - "
    r"|\b(?:ssh|scp|rsync|sftp) (?=[\w.-]{1,64}@)"
    r"|\bssh-?user[= ])(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)",
    re.MULTILINE,
)
_TELLING_TEXT = (
    "user logname owner author login uid= gid= groups= inductor_ pytest-of- hsperfdata_ /run/media/ chown ssh scp"
)
_TELLING = (*_TELLING_TEXT.split(), "su - ", "rsync", "sftp")
_WORDS_OF = (
    (("users", "settings"), _WINDOWS),
    (("home", "users"), _SHARED),
    (("home", "users"), _HOME),
    (("~",), _TILDE),
    (
        _TELLING,
        _TOLD,
    ),
)
_SIGNED_TEXT = "Author|Commit|Committer|Signed-off-by|Co-authored-by|Reviewed-by|Acked-by|Tested-by|Reported-by|From"
_SIGNED = re.compile(
    rf"(?P<before>\b(?:{_SIGNED_TEXT}):\s{{1,8}})(?!\[user\])[^\s<>\[][^<>\n\[]{{0,80}}(?= <[^\s<>]{{1,200}}(?:@|%40))",
    re.IGNORECASE,
)
"""A person's name beside an address, as git writes it."""
_IN_PLACE = re.compile(r"(?:user(?:_?name)?|owner|author|login)[\"']?\s*[:=]")
"""What a program calls a user may be any word: it goes where it stands and no further."""
_PERSON = re.compile(
    r"(?<![\w-])[^\W\d_a-z][\w'.-]{0,30}(?: [^\W\d_a-z][\w'.-]{0,30}){1,3}(?= <[^\s<>]{1,200}(?:@|%40)[^\s<>]{1,200}>)"
)
_DIGITS = "0123456789"
_TYPES = frozenset({"str", "string", "optional", "bytes", "any", "int", "self", "text", "varchar"})

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
        "vllm-project",
    }
)  # fmt: skip
"""Names that tell of nobody."""
_TRADE_TEXT = """
llm llms inference infer deepseek sparse logits research ml ai nlp training train serving serve deploy deployment prod
production staging error errors qwen llama mistral gemma mixtral phi glm kimi attention attn flash flashinfer cutlass
indexer index scheduler executor batch decode prefill request requests response memory device backend compile compiled
graph graphs operator ops tensor tensors expert experts router tokenizer eval benchmark bench speech vision audio image
video chat agent agents team science hpc cluster storage admin ops infra platform monitoring openai anthropic mla fp8
vllm-project transformers pytorch inductor dynamo site packages static dynamic fused fusion shared paged
"""
_WORDS = frozenset(_TRADE_TEXT.split()) | frozenset(
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
"""Names that are ordinary words, or words of this trade: they go only where something tells that a user is meant."""


def users_in(text: str) -> Iterator[str]:
    """User names that ``text`` gives away: of home folders, and where a word beside them tells it."""
    for pattern in _patterns(text):
        for match in pattern.finditer(text):
            name = (match["name"] or match["alone"]).rpartition("\\")[2]
            if is_somebody(name) and not (pattern is _TOLD and (_is_code(name) or _IN_PLACE.search(match["before"]))):
                yield name


def _patterns(text: str) -> Iterator[re.Pattern[str]]:
    """The patterns of which a word stands in ``text``: most texts have none."""
    lower = text.lower()
    return (pattern for words, pattern in _WORDS_OF if any(word in lower for word in words))


def is_somebody(name: str) -> bool:
    """Whether ``name`` may be a person's."""
    return len(name) > 1 and name.lower() not in NOBODY and not name.isdecimal() and "…" not in name


def without_homes(text: str, found: Placeholders) -> str:
    """``text`` with home folders as ``~``, and with user names that something beside them tells."""
    for pattern in _patterns(text):
        text = pattern.sub(lambda match: _without(match, found), text)
    if "root" in text.lower():
        text = _ROOT.sub(lambda _match: found.home(), text)
    if " <" in text:
        text = _SIGNED.sub(lambda match: match["before"] + found.user(), text)
        text = _PERSON.sub(lambda _match: found.user(), text)
    return text


def _without(match: re.Match[str], found: Placeholders) -> str:
    if match.re is _TOLD:
        return _told(match, found)
    return _home(match, found) if match.re in (_HOME, _SHARED) else found.home()


def _home(match: re.Match[str], found: Placeholders) -> str:
    """A home at the root of a path is ``~``; one further down keeps what is above it."""
    home = found.home()
    return home if match["above"] is None else f"{match['above']}{match['folder']}{USER}"


def _told(match: re.Match[str], found: Placeholders) -> str:
    name = match["name"]
    return match["before"] + found.user() if is_somebody(name) and not _is_code(name) else match[0]


def _is_code(name: str) -> bool:
    """``username: str``, ``owner=self._owner``."""
    return name.lower() in _TYPES or name.startswith(("self.", "_"))


def known_users(names: frozenset[str]) -> Callable[[str, Placeholders], str]:
    """A function that takes these users' names out of a text."""
    people = {name for name in names if is_somebody(name)}
    plain = {name for name in people if len(name) > 2 and name.lower().rstrip(_DIGITS) not in _WORDS}
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
