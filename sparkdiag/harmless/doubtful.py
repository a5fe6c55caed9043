"""Texts that may be a secret of a shape that nobody knows: long, and made of no words. Pure.

Told from everything else by one measure: the share of a text that is made of words. In names of functions, classes,
wheels, models and folders it is most of the text, in what a machine made to be guessed by nobody next to nothing. Of
14,000 names of 20 letters and more in vLLM, PyTorch and Transformers it takes 4 for a secret; of keys of 40 random
letters and digits it misses 1 in 1,000, of 20 random ones 1 in 40. Passed over are hashes of known lengths, numbers,
what git and compilers call things, and files in the caches of compilers, which are named by their hash.
"""

import hashlib
import re
from collections.abc import Iterator

_SHORTEST = 20
_SHORTEST_JOINED = 20
_CANDIDATE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9]|[_+/=~-](?=[A-Za-z0-9])){19,}={0,2}")
_HASH_AND_KEY = re.compile(r"(?<![\w.])[0-9a-f]{32}\.(?=[A-Za-z0-9]{0,15}[A-Z])[A-Za-z0-9]{16}(?![\w.])")
"""As keys of GLM's own service are written: neither half is doubtful alone."""
_DATA = re.compile(r"\bdata:[\w/+.-]{0,60};base64,[A-Za-z0-9+/=]*")
_HASH = re.compile(r"(?:\d{0,5}g|0x)?(?:[0-9a-f]{7,40}|[0-9a-f]{64}|[0-9A-F]{7,40}|[0-9A-F]{64})")
"""As git, a wheel's record and an address in memory are written."""
_NUMBER = re.compile(r"\d{8}T\d{6}Z?|\d+")
_TRITON = re.compile(r"(?:\d{1,2}(?:de|d|c|e)?)+")
_CACHED = re.compile(r"(?:inductor|triton|torch_compile_cache|\.cache|/hub)[^\s\"']*/[\w-]*\Z")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SPECIAL = re.compile(r"[^A-Za-z0-9]+")
_KINDS = tuple(map(re.compile, ("[a-z]", "[A-Z]", "[0-9]")))
_FAR = 400
"""Characters of a path that are looked back at."""
_FEWEST_CHARACTERS = 8
"""Different ones: a row of crosses is no key."""

_PAIRS_TEXT = """
ab ac ad ag ai al am an ap ar as at au ba be bi bl bo ca ce ch ci ck cl co cr ct cu da de di do ds du ea ec ed ee ef
eg el em en ep er es et ev ex fa fe ff fi fl fo ge gi gr ha he hi ho ia ib ic id ie if ig il im in io ip is it iv iz
ke la le li ll lo ls lt lu ma mb me mi mm mo mp mu na nc nd ne ng ni nn no ns nt nv ob oc od og ol om on oo op or os
ot ou ow pa pe pi pl po pp pr ps pt qu ra rc rd re ri rm rn ro rr rs rt ru ry sa sc se sh si so sp ss st su ta tc te
th ti to tr ts tt tu ty ua ub uc ue ul um un up ur us ut va ve vi wa ze
"""
_PAIRS = frozenset(_PAIRS_TEXT.split())
"""Pairs of letters: 86 of 100 in words that code is made of, 27 of 100 in random letters."""
_WORDS_TEXT = """
awq bert bfloat builder clip conv cpu cuda dcp decoder deep deepseek dsl dynamic ffn flash glm glu gptq gpu hash
hooks int jit joint kernel layer layers llama logits lora mamba memcpy mla mlp moe mqa mtp nccl network norm ocr
omni payload qkv qwen ray ring rms rnn rope seek skip sparse sqrt ssm sync topk tree triton uint unweighted vit vllm
vlm webhook weight workload
"""
_WORDS = frozenset(_WORDS_TEXT.split())
"""Words of this trade that have few such pairs."""
_LEAST_PAIRS = 0.6
"""Share of its pairs that makes letters a word."""


def doubtful(text: str) -> Iterator[str]:
    """The parts of ``text`` of which nobody but a person can tell whether they are secrets."""
    if len(text) < _SHORTEST:
        return
    if "base64," in text:
        text = _DATA.sub("", text)
    if "." in text:
        yield from _HASH_AND_KEY.findall(text)
    for match in _CANDIDATE.finditer(text):
        token = match[0]
        if token.startswith("Z") and text[: match.start()].endswith("_"):  # what a C++ compiler makes of a name
            continue
        if _CACHED.search(text[max(0, match.end() - _FAR) : match.end()]):
            continue
        if _is_random_joined(token):
            yield token
        else:
            yield from filter(_is_random, _SPECIAL.split(token))


def fingerprint(token: str) -> str:
    """What a person names ``token`` by: eight hex digits of its SHA-256."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()[:8]


def masked(token: str) -> str:
    """Enough of ``token`` to find it again, too little to use it."""
    return f"{token[:4]}… ({len(token)} characters)"


def _is_random_joined(token: str) -> bool:
    """Base64 has few characters beside letters and digits; names of models, folders and wheels have many."""
    parts = [part for part in _SPECIAL.split(token) if part]
    unknown = [part for part in parts if not (_HASH.fullmatch(part) or _NUMBER.fullmatch(part))]
    length = sum(map(len, unknown))
    return (
        length >= _SHORTEST_JOINED
        and len(unknown) <= 1 + length / 9
        and all(kind.search(token) for kind in _KINDS)
        and _has_no_words(unknown, length)
    )


def _is_random(token: str) -> bool:
    if len(token) < _SHORTEST or _HASH.fullmatch(token) or _NUMBER.fullmatch(token) or _TRITON.fullmatch(token):
        return False
    return _has_no_words([token], len(token))


def _has_no_words(parts: list[str], length: int) -> bool:
    if len(set().union(*parts)) < _FEWEST_CHARACTERS:
        return False
    found = (word for part in parts for word in _WORD.findall(part))
    words = sum(len(word) for word in found if len(word) > 2 and _is_word(word.lower()))
    return words < length * _least_words(length)


def _is_word(word: str) -> bool:
    pairs = [word[at : at + 2] in _PAIRS for at in range(len(word) - 1)]
    return word in _WORDS or sum(pairs) >= _LEAST_PAIRS * len(pairs)


def _least_words(length: int) -> float:
    """Share of words of a harmless text: the longer it is, the less is left to chance."""
    return 0.36 if length < 28 else 0.44 if length < 36 else 0.5
