"""What was typed after ``sparkdiag route``, and which of it makes no sense. Pure."""

import re
from math import prod
from typing import NoReturn, cast, get_args

from sparkdiag.errors import UsageError
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.route import Cache, Phase, Platform, SetValue
from sparkdiag.scenario.model import MAX_TOKENS
from sparkdiag.scenario.parallel import MAX_RANKS
from sparkdiag.scenario.shown import shown

HELP = "sparkdiag route --help"
NOT_SAID = "unknown"
"""What leaves a value open on purpose."""
PLATFORMS: tuple[Platform, ...] = get_args(Platform)
CACHES: tuple[Cache, ...] = get_args(Cache)
PHASES: tuple[Phase, ...] = get_args(Phase)
ARCHITECTURES = (
    "sm70", "sm75", "sm80", "sm86", "sm87", "sm89", "sm90", "sm100", "sm101", "sm103", "sm110", "sm120", "sm121",
)  # fmt: skip
"""Of https://developer.nvidia.com/cuda-gpus; another one is asked about all the same, and a note says so."""
MOST_HEADS = 65_536
MOST_CELLS = 2000
"""Of a matrix."""
_ARCH = re.compile(r"sm_?([1-9][0-9]{1,2})[af]?", re.IGNORECASE)
_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_LISTS = {"dcp": "--dcp", "arch": "--arch", "cache": "--cache", "rev": "--rev"}


class Asked(Value):
    """The options of ``route``, as typed."""

    scenario: str | None = None
    repo: str | None = None
    rev: str | None = None
    dcp: str | None = None
    arch: str | None = None
    platform: str | None = None
    cache: str | None = None
    phase: str = "prefill"
    prompt_tokens: int | None = None
    chunk_tokens: int | None = None
    heads: int | None = None
    compress_ratio: int | None = None
    set: tuple[str, ...] = ()
    history: str | None = None
    matrix: bool = False
    execute: bool = False
    env: str | None = None
    form: str = "text"
    fail_on_stall: bool = False
    as_json: bool = False


def check(asked: Asked) -> None:
    """Raises ``UsageError`` for options that contradict each other or hold what they cannot hold."""
    _check_together(asked)
    if not asked.matrix:
        for name, option in _LISTS.items():
            typed = getattr(asked, name)
            if typed is not None and "," in typed:
                raise UsageError(
                    f"{option} {shown(typed)} is a list, and one route is asked for",
                    remedy=f"a table of all of them: add --matrix; or one value: {option} {typed.split(',')[0]}",
                )
    revisions(asked)
    sizes(asked)
    architectures(asked)
    caches(asked)
    platform(asked)
    phase(asked)
    set_values(asked)
    _check_cells(asked)
    limits = {
        "prompt_tokens": MAX_TOKENS,
        "chunk_tokens": MAX_TOKENS,
        "heads": MOST_HEADS,
        "compress_ratio": MAX_TOKENS,
    }
    for name, most in limits.items():
        _check_number(name, getattr(asked, name), most=most)


def _check_together(asked: Asked) -> None:
    clashes = (
        (asked.history and asked.rev, "--history names both ends by itself, --rev another revision", "leave --rev out"),
        (asked.history and asked.matrix, "--history and --matrix are two questions", "give one of them"),
        (asked.execute and asked.matrix, "--execute runs one revision, --matrix asks about many", "leave --matrix out"),
        (asked.execute and asked.history, "--execute runs one revision, --history asks about many", "--rev REV"),
        (asked.env and not asked.execute, "--env is the interpreter of --execute; reading needs none", "add --execute"),
        (asked.as_json and asked.form == "md", "--json and --format md are two forms", "give one of them"),
        (asked.history and asked.fail_on_stall, "--fail-on-stall is about a revision, not about changes", "--rev REV"),
    )
    for clash, message, remedy in clashes:
        if clash:
            raise UsageError(message, remedy=remedy)


def _check_cells(asked: Asked) -> None:
    """A matrix that nobody could read is a slip in one of its lists."""
    lists = (revisions(asked), sizes(asked), architectures(asked), caches(asked))
    cells = prod(len(values) or 1 for values in lists)
    if cells > MOST_CELLS:
        raise UsageError(f"--matrix would have {cells:,} cells; allowed: {MOST_CELLS:,}", remedy="shorter lists")


def _check_number(name: str, number: int | None, *, most: int) -> None:
    if number is not None and not 1 <= number <= most:
        option = f"--{name.replace('_', '-')}"
        raise UsageError(f"{option}: found {number}; allowed: an integer from 1 to {most:,}", remedy=HELP)


def revisions(asked: Asked) -> tuple[str, ...]:
    """What ``--rev`` names; empty for the default."""
    return _words(asked.rev, option="--rev", example="--rev v0.25.0,HEAD") if asked.rev is not None else ()


def sizes(asked: Asked) -> tuple[int | None, ...]:
    """What ``--dcp`` names; empty for the scenario's."""
    found = _words(asked.dcp, option="--dcp", example="--dcp 1,2") if asked.dcp is not None else ()
    for word in found:
        if word != NOT_SAID and not (word.isascii() and word.isdecimal() and 1 <= int(word[:9]) <= MAX_RANKS):
            raise UsageError(
                f"--dcp: found {shown(word)}; allowed: an integer from 1 to {MAX_RANKS}, or {NOT_SAID}",
                remedy="--dcp 2 (1 is vLLM's default)",
            )
    return tuple(None if word == NOT_SAID else int(word) for word in found)


def architectures(asked: Asked) -> tuple[str | None, ...]:
    """What ``--arch`` names, each as ``sm121``; empty for the scenario's."""
    found = _words(asked.arch, option="--arch", example="--arch sm90,sm121") if asked.arch is not None else ()
    if any(word != NOT_SAID for word in found) and asked.platform in ("cpu", "xpu"):
        raise UsageError(
            f"--arch is a CUDA capability, and --platform {asked.platform} has none", remedy="leave one of them out"
        )
    return tuple(None if word == NOT_SAID else _architecture(word) for word in found)


def _architecture(word: str) -> str:
    match = _ARCH.fullmatch(word)
    if match is None:
        raise UsageError(
            f"--arch: found {shown(word)}; allowed: a CUDA capability such as sm90 or sm121, or {NOT_SAID}",
            remedy="nvidia-smi --query-gpu=compute_cap --format=csv (12.1 is sm121)",
        )
    return f"sm{match[1]}"


def unusual(found: tuple[str | None, ...]) -> tuple[str, ...]:
    """The architectures that no GPU known here has."""
    return tuple(arch for arch in found if arch is not None and arch not in ARCHITECTURES)


def caches(asked: Asked) -> tuple[Cache | None, ...]:
    """What ``--cache`` names; empty for FP8."""
    found = _words(asked.cache, option="--cache", example="--cache fp8,fp4") if asked.cache is not None else ()
    return tuple(cast(Cache | None, _one_of(word, CACHES, option="--cache")) for word in found)


def platform(asked: Asked) -> Platform | None:
    """What ``--platform`` names; CUDA unless it was given."""
    return cast(Platform | None, _one_of(asked.platform or "cuda", PLATFORMS, option="--platform"))


def phase(asked: Asked) -> Phase:
    """Which of the two dispatches is followed."""
    if asked.phase not in PHASES:
        _refuse(asked.phase, PHASES, option="--phase", more="")
    return asked.phase


def set_values(asked: Asked) -> tuple[SetValue, ...]:
    """What ``--set`` says, each name once."""
    found: dict[str, SetValue] = {}
    for typed in asked.set:
        name, equals, value = (part.strip() for part in typed.partition("="))
        if not equals or not value or not _NAME.fullmatch(name):
            raise UsageError(
                f"--set: found {shown(typed)}; needed is NAME=VALUE, a name of the source and what it holds",
                remedy="--set chunk.local_total_seq_lens=0, or --set clean_logits=unknown",
            )
        if name in found:
            raise UsageError(f"--set names {shown(name)} twice", remedy="give it one value")
        found[name] = SetValue(name=name, value=value)
    return tuple(found.values())


def _words(typed: str, *, option: str, example: str) -> tuple[str, ...]:
    """A comma list, each word once."""
    words = [word.strip() for word in typed.split(",")]
    if not all(words):
        raise UsageError(f"{option}: found {shown(typed)}, in which a value is empty", remedy=example)
    return tuple(dict.fromkeys(words))


def _one_of(word: str, allowed: tuple[str, ...], *, option: str) -> str | None:
    if word == NOT_SAID:
        return None
    if word not in allowed:
        _refuse(word, allowed, option=option, more=f", or {NOT_SAID}")
    return word


def _refuse(word: str, allowed: tuple[str, ...], *, option: str, more: str) -> NoReturn:
    raise UsageError(
        f"{option}: found {shown(word)}; allowed: {', '.join(allowed)}{more}", remedy=f"{option} {allowed[0]}"
    )
