"""Nothing secret is written: what every string passes through on its way into a run folder. Pure.

Two ideas: *shapes* (a token is known by its look, wherever it stands) and *names* (whatever follows ``--api-key``,
``Authorization:`` or ``HF_TOKEN=`` goes). When in doubt text is removed: a report misses a word, a key stays private.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

REDACTED = "[redacted]"
_MOST_PASSES = 4
"""Removing one secret can lay bare the next; after this many passes it is as good as it gets."""
NOT_RECORDED = "[not recorded]"

_CONFIDENTIAL = (
    r"(?:[A-Za-z0-9]+[_-])*(?:api[_-]?keys?|hf[_-]?token|(?:access|auth|api|refresh|id|session|bearer|hub)[_-]?token"
    r"|secret(?:[_-]?(?:access[_-]?)?key)?|passwords?|passwd|private[_-]?key|credentials?)"
)
_ENV_NAME = r"[A-Z0-9_]{0,40}(?:TOKEN(?!IZ)|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY)[A-Z0-9_]{0,40}(?<!TOKENS)"
_QUOTED = r"\"[^\"\n]*\"|'[^'\n]*'"
_ITEMS = r"\[[^\]\n]*\]?|\([^)\n]*\)?"

_SECRET_FLAG = re.compile(
    r"^--?(?:api[_-]?key|(?:hf[_-]?|hub[_-]?|auth[_-]?|access[_-]?)?token|[a-z_-]*password|[a-z_-]*secret)(?P<value>=.*)?$",
    re.IGNORECASE | re.DOTALL,
)

_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"hf_[A-Za-z0-9]{16,}"
    r"|gh[pousr]_[A-Za-z0-9]{16,}"
    r"|github_pat_[A-Za-z0-9_]{16,}"
    r"|glpat-[A-Za-z0-9_-]{16,}"
    r"|sk-[A-Za-z0-9_-]{16,}"
    r"|nvapi-[A-Za-z0-9_-]{16,}"
    r"|xox[abeprs]-[A-Za-z0-9-]{10,}"
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}"
    r"|AIza[A-Za-z0-9_-]{30,}"
    r"|eyJ[A-Za-z0-9_-]{6,4000}\.[A-Za-z0-9_-]{6,4000}(?:\.[A-Za-z0-9_-]*)?"
    r")[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*"
)
"""With whatever hangs on to the token: a second one glued to it goes too."""
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
_HEADER = re.compile(
    r"(?P<name>\b(?:proxy-)?authorization|\bx-api-key|\b(?:set-)?cookie)(?P<sep>[\"']?\s*[:=,]\s*)"
    r"(?P<value>" + _QUOTED + r"|[^\"'\r\n]+)",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\b(?P<word>bearer)\s+(?!\[redacted\])[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE)
_USERINFO = re.compile(r"(?P<scheme>\b[A-Za-z][A-Za-z0-9+.-]{0,20}://)[^\s/?#\"'<>\[\]]{1,500}@")
_USERINFO_SET = re.compile(r"(?P<scheme>://)\[redacted\]@")
_QUERY = re.compile(
    r"(?P<name>[?&;](?:x-(?:amz|goog|ms|oss)-[a-z0-9-]+|awsaccesskeyid|googleaccessid|ossaccesskeyid|signature|sig"
    r"|policy|key-pair-id|(?:[a-z]+[_-])?token|(?:api[_-]?)?key|secret|password|credential|expires)=)[^&\s\"'<>]+",
    re.IGNORECASE,
)
_TEXT_FLAG = re.compile(
    r"(?P<name>(?<![\w-])--(?:api[_-]?key|(?:hf[_-]?|hub[_-]?|auth[_-]?|access[_-]?)?token|(?:[a-z]+[_-])*password"
    r"|(?:[a-z]+[_-])*secret))(?P<sep>=|[\"'],\s*(?=[\"'])|\s+)"
    r"(?P<value>" + _QUOTED + r"|(?!--)[^\s\"']+(?:\s+(?!--)[^\s\"']+)*)",
    re.IGNORECASE,
)
_ASSIGNED = re.compile(
    r"(?P<name>(?<![\w-])(?:" + _CONFIDENTIAL + r"|(?-i:" + _ENV_NAME + r"))[\"']?\s*[=:]\s*)"
    r"(?P<value>" + _QUOTED + r"|" + _ITEMS + r"|[^\s,;&)}\]\"']+)",
    re.IGNORECASE,
)
_HARMLESS = frozenset({"none", "null", "true", "false", "[]", "()", '""', "''", "[none]"})

_ENV_PREFIXES = ("VLLM_", "OMP_", "NCCL_", "KMP_", "SPARKDIAG_", "SPARKLAB_", "TORCHINDUCTOR_", "TRITON_")
_ENV_NAMES = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "CUDA_DEVICE_ORDER",
        "CUDA_LAUNCH_BLOCKING",
        "MKL_NUM_THREADS",
        "PYTHONHASHSEED",
        "PYTHONUNBUFFERED",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONNOUSERSITE",
        "PYTHONSAFEPATH",
        "PYTHONFAULTHANDLER",
        "PYTORCH_CUDA_ALLOC_CONF",
        "TOKENIZERS_PARALLELISM",
        "HF_HUB_OFFLINE",
        "TRANSFORMERS_OFFLINE",
    }
)
_ENV_SECRET = re.compile(r"KEY|TOKEN(?!IZERS)|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTH", re.IGNORECASE)
_SECRET_FIELD = re.compile(r"^" + _CONFIDENTIAL + r"$|^token$", re.IGNORECASE)
_ENV_FIELDS = frozenset({"env", "server_env"})


def _quoted_like(value: str) -> str:
    """The mark with the quotes or brackets of what it replaces, so that the text around it still reads."""
    if value[:1] in {'"', "'"} and len(value) > 1:
        return f"{value[0]}{REDACTED}{value[0]}"
    return REDACTED


def _unless_harmless(match: re.Match[str]) -> str:
    value = match["value"]
    if value.strip("\"'").lower() in _HARMLESS or value.lower() in _HARMLESS:
        return match[0]
    return match["name"] + _quoted_like(value)


def redact_text(text: str) -> str:
    """``text`` without secrets of known shape or after known names. What is redacted already stays as it is."""
    for _ in range(_MOST_PASSES):
        before, text = text, _one_pass(text)
        if text == before:
            break
    return text


def _one_pass(text: str) -> str:
    text = _PRIVATE_KEY.sub(REDACTED, text)
    text = _SHAPES.sub(REDACTED, text)
    text = _USERINFO.sub(lambda match: f"{match['scheme']}{REDACTED}@", text)
    text = _QUERY.sub(lambda match: match["name"] + REDACTED, text)
    text = _HEADER.sub(lambda match: match["name"] + match["sep"] + _quoted_like(match["value"]), text)
    text = _BEARER.sub(lambda match: f"{match['word']} {REDACTED}", text)
    text = _TEXT_FLAG.sub(lambda match: match["name"] + match["sep"] + _quoted_like(match["value"]), text)
    return _ASSIGNED.sub(_unless_harmless, text)


def redact_line(line: str) -> str:
    """One line of a server's log, with its line end kept; the filter for whoever writes ``server.log``."""
    return redact_text(line)


def redact_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """An argument vector without secrets. vLLM's ``--api-key`` takes several values, so all up to the next flag go."""
    kept: list[str] = []
    in_secret = False
    for item in argv:
        flag = _SECRET_FLAG.match(item)
        if flag is not None:
            in_secret = flag["value"] is None
            kept.append(item if in_secret else f"{item.split('=', 1)[0]}={REDACTED}")
        elif in_secret and not item.startswith("--"):
            kept.append(REDACTED)
        else:
            in_secret = False
            kept.append(redact_text(item))
    return tuple(kept)


def redact_env(env: Mapping[str, str], *, keep_names: bool = False) -> dict[str, str]:
    """``env`` by allow-list. With ``keep_names`` the names not on it stay and their values go."""
    kept: dict[str, str] = {}
    for name, value in env.items():
        allowed = (name in _ENV_NAMES or name.startswith(_ENV_PREFIXES)) and not _ENV_SECRET.search(name)
        if allowed:
            kept[name] = redact_text(value)
        elif keep_names:
            kept[name] = NOT_RECORDED
    return kept


def redact_document(document: Any, *, field: str = "") -> Any:
    """A JSON-like document without secrets: every string, lists of strings as argv, ``env`` by allow-list."""
    if isinstance(document, str):
        return REDACTED if document and _SECRET_FIELD.match(field) else redact_text(document)
    if isinstance(document, Mapping):
        if field in _ENV_FIELDS:
            texts = {str(name): str(value) for name, value in document.items()}
            return redact_env(texts, keep_names=field == "env")
        return {redact_text(str(key)): redact_document(value, field=str(key)) for key, value in document.items()}
    if isinstance(document, (list, tuple)):
        if document and all(isinstance(item, str) for item in document):
            return [REDACTED] * len(document) if _SECRET_FIELD.match(field) else list(redact_argv(document))
        return [redact_document(item, field=field) for item in document]
    return document
