"""Secrets in what has a structure: an argument vector, an environment, a JSON-like document. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sparkdiag.harmless.names import is_basic, is_secret_option, is_telling, kind_of, looks_random
from sparkdiag.harmless.secrets import REDACTED, redact_text

NOT_RECORDED = "[not recorded]"

_OPTION = re.compile(r"--?(?P<name>[A-Za-z][\w.-]*)(?P<value>=.*)?", re.DOTALL)
_ANNOUNCING = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key", "bearer"})
"""Words of a header that was split at its blanks."""
_USER_OPTIONS = frozenset({"-u", "--user", "--proxy-user"})
_LOGIN_KEY = re.compile(r"[A-Za-z0-9_-]{32,}")

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
        # What the lab's scenario sets; without them a search of the lab could not be resumed from its journal alone.
        "DO_NOT_TRACK",
        "GLOO_SOCKET_IFNAME",
        "TORCH_COMPILE_DISABLE",
    }
)
_ENV_SECRET = re.compile(r"KEY|TOKEN(?!IZERS)|SECRET|PASS|CREDENTIAL|AUTH|COOKIE|HEADER", re.IGNORECASE)
ENV_FIELDS = frozenset({"env", "server_env", "variables"})
"""Fields that hold environment variables, whatever document they stand in."""
_NAMING = ("name", "key")


def redact_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """An argument vector without secrets. vLLM's ``--api-key`` takes several values, so all up to the next flag go.

    What follows a secret option goes even where it looks like a flag: a random token may begin with dashes.
    """
    kept: list[str] = []
    first = more = False
    for position, item in enumerate(argv):
        if first or (more and not item.startswith("--")):
            first, more = False, True
            kept.append(REDACTED)
            continue
        option = _OPTION.fullmatch(item)
        secret = option is not None and is_secret_option(option["name"])
        before = argv[position - 1] if position else ""
        if (before in _USER_OPTIONS and ":" in item) or (before == "login" and _LOGIN_KEY.fullmatch(item)):
            kept.append(REDACTED)
            first = more = False
            continue
        first = item.lower().rstrip(":") in _ANNOUNCING or (option is not None and secret and option["value"] is None)
        more = False
        if kept and kept[-1].lower() == "basic" and (is_basic(item.rstrip("=")) or looks_random(item)):
            kept.append(REDACTED)
            continue
        kept.append(f"{item.partition('=')[0]}={REDACTED}" if secret and not first else redact_text(item))
    return tuple(kept)


def redact_env(env: Mapping[str, str], *, keep_names: bool = False) -> dict[str, str]:
    """``env`` by allow-list. With ``keep_names`` the names not on it stay and their values go."""
    kept: dict[str, str] = {}
    for name, value in env.items():
        allowed = (name in _ENV_NAMES or name.startswith(_ENV_PREFIXES)) and not _ENV_SECRET.search(name)
        if allowed:
            kept[name] = REDACTED if looks_random(value) and "/" not in value else redact_text(value)
        elif keep_names:
            kept[redact_text(name)] = NOT_RECORDED
    return kept


def redact_document(document: Any, *, field: str = "") -> Any:
    """A JSON-like document without secrets: every string and key, lists of strings as argv, ``env`` by allow-list.

    Under a telling name everything goes but booleans and None, also what is nested below it.
    """
    if is_telling(field):
        return _all_redacted(document)
    if isinstance(document, str):
        return REDACTED if kind_of(field) == "hinting" and looks_random(document) else redact_text(document)
    if isinstance(document, Mapping):
        return _redact_mapping(document, field=field)
    if isinstance(document, (list, tuple)):
        if document and all(isinstance(item, str) for item in document):
            kept = redact_argv(document)
            hinting = kind_of(field) == "hinting"
            return [REDACTED if hinting and looks_random(item) else item for item in kept]
        return [redact_document(item, field=field) for item in document]
    return document


def _redact_mapping(document: Mapping[Any, Any], *, field: str) -> dict[str, Any]:
    if field in ENV_FIELDS:
        texts = {str(name): str(value) for name, value in document.items()}
        return redact_env(texts, keep_names=field == "env")
    # {"name": "HF_TOKEN", "value": ...}, as containers' settings list their variables
    named = next((str(document[key]) for key in _NAMING if "value" in document and key in document), "")
    return {
        redact_text(str(key)): redact_document(value, field=named if key == "value" and named else str(key))
        for key, value in document.items()
    }


def _all_redacted(document: Any) -> Any:
    if document is None or isinstance(document, bool) or document in ("", [], {}):
        return document
    if isinstance(document, Mapping):
        return {redact_text(str(key)): _all_redacted(value) for key, value in document.items()}
    if isinstance(document, (list, tuple)):
        return [_all_redacted(item) for item in document]
    return REDACTED
