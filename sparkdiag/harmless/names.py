"""Which names tell that a secret follows, and which values look like one. Pure.

A name is read word by word: ``clientSecret``, ``HF_TOKEN``, ``x-api-key`` and ``--db.password`` are told by the same
words. *Telling* names lose whatever follows; *hinting* ones (a bare ``token``) only a value that looks random, because
``token: 42`` and ``eos_token='</s>'`` are what a language model's log is full of.
"""

import base64
import binascii
import re
from functools import lru_cache
from itertools import pairwise
from typing import Literal

LONGEST_NAME = 100
"""Of a longer name the end decides."""

Kind = Literal["telling", "hinting", "plain"]

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ALONE = frozenset(
    {
        "password", "passwords", "passwd", "passphrase", "passcode", "secret", "secrets", "credential", "credentials",
        "authorization", "authorisation", "apikey", "apikeys", "privatekey", "accesskey", "secretkey", "cookie",
        "cookies", "bearer", "requirepass", "masterauth", "passwort",
    }
)  # fmt: skip
_TAILS = ("password", "passwd", "secret", "apikey", "accesstoken", "authtoken", "hftoken", "apitoken", "csrftoken",
          "sessionid", "sessid")  # fmt: skip
_KEYS = frozenset(
    {
        "api", "private", "access", "secret", "signing", "encryption", "decryption", "auth", "account", "master", "ssh",
        "service", "subscription", "license", "licence", "storage", "session", "client", "ssl", "tls", "deploy", "gpg",
        "pgp", "rsa", "hmac", "jwt", "webhook", "admin", "consumer", "app", "openai", "anthropic", "azure", "aws",
        "gcp", "google", "hf", "nvidia", "ngc", "wandb", "mistral", "cohere", "gemini", "groq",
    }
)  # fmt: skip
"""``key`` after one of these is a secret; a cache's, a dictionary's and a KV key are not."""
_TOKENS = frozenset(
    {
        "hf", "hub", "auth", "access", "api", "refresh", "id", "session", "bearer", "private", "secret", "personal",
        "oauth", "jwt", "vault", "github", "gitlab", "huggingface", "deploy", "csrf", "xsrf", "bot", "client", "admin",
        "identity", "security", "webhook", "registry", "ngc", "wandb", "service", "account", "job", "runner", "root",
    }
)  # fmt: skip
_HINTS = frozenset({"token", "auth", "pass", "pwd", "pat", "sig", "signature", "otp", "jwt", "pw", "psw"})
_LANGUAGE_TOKENS = frozenset(
    {
        "eos", "bos", "pad", "unk", "sep", "cls", "mask", "max", "min", "num", "next", "last", "first", "prev", "per",
        "special", "stop", "start", "end", "image", "video", "audio", "think", "each", "new", "draft", "output",
        "input", "prompt", "total", "tool", "text", "placeholder", "added", "bonus", "target", "sampled", "accepted",
        "query", "cached",
    }
)  # fmt: skip
_MEASURES = frozenset({"len", "length", "count"})
"""What is known of a secret and is none."""
_VARIABLE = re.compile(
    r"[A-Z0-9_]*(?:TOKEN(?!IZ)|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|APIKEY)[A-Z0-9_]*(?<!TOKENS)"
    r"|(?:[A-Z0-9]+_)+(?:KEY|KEYS|PASS|PAT|PWD|AUTH|COOKIE|HEADERS)(?:_[A-Z0-9]+)*"
)
"""Environment variables: whoever writes a name in capitals names a setting, not a thing of the model's."""

_ABBREVIATED = {"api-key": 5, "hf-token": 4, "ssl-keyfile-password": 13}
"""vLLM's options that take a secret, and how many letters of each argparse needs to know it."""
_CHOSEN = frozenset({"pass", "pwd", "pw", "psw", "otp"})

_RANDOM = re.compile(r"[A-Za-z0-9+/=_.~%-]{12,}")
_HEX = re.compile(r"[0-9a-fA-F]{16,}")
_TURNS = re.compile(r"[a-z][A-Z]|[A-Z][a-z]")
_USER_AND_PASSWORD = re.compile(rb"[\x20-\x7e]+:[\x20-\x7e]+")


@lru_cache(maxsize=4096)
def kind_of(name: str) -> Kind:
    """What ``name`` tells of the value that follows it."""
    name = name[-LONGEST_NAME:]
    if _VARIABLE.fullmatch(name):
        return "telling"
    words = [word.lower() for word in _WORDS.findall(name)]
    if words[-2:] == ["not", "secret"] or (words and words[-1] in _MEASURES):
        return "plain"
    if words == ["x", "auth"]:
        return "telling"
    if any(word in _ALONE or word.endswith(_TAILS) for word in words):
        return "telling"
    for before, word in pairwise(words):
        if (word in ("key", "keys") and before in _KEYS) or (word == "token" and before in _TOKENS):
            return "telling"
    if words and words[-1] in _HINTS and not _LANGUAGE_TOKENS.intersection(words[-2:-1]):
        return "hinting"
    if words[-2:] == ["session", "id"]:
        return "hinting"
    if words[-1:] == ["tokens"] and (len(words) == 1 or words[-2] in _TOKENS):
        return "hinting"
    return "plain"


def is_telling(name: str) -> bool:
    """Whether whatever stands under ``name`` is to be taken for a secret."""
    return kind_of(name) == "telling"


def is_secret_option(name: str) -> bool:
    """Whether a command line option takes a secret. Stricter than a name in a text: ``--token`` alone is enough."""
    name = name.lstrip("-")
    kind = kind_of(name)
    if kind == "telling" or (kind == "hinting" and not name.lower().endswith("tokens")):
        return True
    short = name.lower().replace("_", "-")
    return any(len(short) >= least and option.startswith(short) for option, least in _ABBREVIATED.items())


def looks_random(value: str) -> bool:
    """Whether ``value`` looks made by a machine to be guessed by nobody: what a hinting name's value is judged by."""
    value = value.strip("\"'")
    if not _RANDOM.fullmatch(value) or value.startswith(("/", "./", "../", "~/")):
        return False
    if _HEX.fullmatch(value) or is_basic(value):
        return True
    has_digit = any(char.isdigit() for char in value)
    has_letter = any(char.isalpha() for char in value)
    return (has_digit and has_letter) or len(_TURNS.findall(value)) >= 4


def looks_chosen(name: str, value: str) -> bool:
    """Whether ``value`` may be a password of a person's, or a one-time code, under a short name like ``pass``."""
    if name.lower() not in _CHOSEN:
        return False
    value = value.strip("\"'")
    has_digit, has_letter = any(char.isdigit() for char in value), any(char.isalpha() for char in value)
    if name.lower() == "otp" and value.isdecimal():
        return 4 <= len(value) <= 10
    return len(value) >= 6 and has_digit and has_letter and not value.startswith(("/", "."))


def is_basic(value: str) -> bool:
    """Whether ``value`` is base64 of ``user:password``, as HTTP's Basic scheme has it."""
    if len(value) > 2000:
        return True
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), altchars=None, validate=True)
    except (binascii.Error, ValueError):
        return False
    return _USER_AND_PASSWORD.fullmatch(decoded) is not None
