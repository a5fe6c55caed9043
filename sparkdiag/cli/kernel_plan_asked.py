"""What was typed after ``sparkdiag kernel plan``: read, or refused with cause and remedy."""

import math
from typing import Literal

from sparkdiag.errors import UsageError
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.kernels import Asked, Gpu
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.kernels.gpus import gpu_named, known_gpus
from sparkdiag.kernels.plan import DEFAULT_BUDGET_BYTES
from sparkdiag.kernels.prompt import DEFAULT_MAX_LOGITS_MIB
from sparkdiag.kernels.roofline import MIB
from sparkdiag.scenario.check import did_you_mean
from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.model import MAX_TOKENS, Scenario
from sparkdiag.scenario.parallel import MAX_RANKS

HELP = "sparkdiag kernel plan --help"
MOST_CHUNKS = 2_000
HEADS, HEAD_DIM, CHUNK_TOKENS, COMPRESS_RATIO = 64, 128, 8192, 4
"""Of the incident: DeepSeek V4's indexer, and vLLM's chunk there."""
_MOST = {
    "seq_len": MAX_TOKENS,
    "seq_len_kv": MAX_TOKENS,
    "window_keys": MAX_TOKENS,
    "prompt_tokens": MAX_TOKENS,
    "compress_ratio": 65_536,
    "dcp": MAX_RANKS,
    "chunk_tokens": MAX_TOKENS,
    "layers": 10_000,
    "heads": 65_536,
    "head_dim": 65_536,
}
_MOST_MIB = 1 << 20
_CALL = ("seq_len", "seq_len_kv", "window_keys")
_PROMPT = ("prompt_tokens", "compress_ratio", "dcp", "chunk_tokens", "layers", "scenario")


class Typed(Value):
    """The options, as typed."""

    seq_len: int | None = None
    seq_len_kv: int | None = None
    window_keys: int | None = None
    prompt_tokens: int | None = None
    compress_ratio: int | None = None
    dcp: int | None = None
    chunk_tokens: int | None = None
    layers: int | None = None
    scenario: str | None = None
    heads: int | None = None
    head_dim: int | None = None
    budget_mib: float | None = None
    max_logits_mb: int | None = None
    gpu: str | None = None
    matmul: Literal["fp32", "tf32"] = "fp32"
    as_json: bool = False


def asked_of(typed: Typed) -> Asked:
    """What the plan is made for. Raises ``UsageError`` for what makes no sense, ``ScenarioError`` for a bad file."""
    for name, most in _MOST.items():
        _check_number(_option(name), getattr(typed, name), least=1, most=most)
    _check_number("--max-logits-mb", typed.max_logits_mb, least=0, most=_MOST_MIB)
    _check_together(typed)
    if typed.seq_len is not None and typed.seq_len_kv is not None:
        return _call(typed, typed.seq_len, typed.seq_len_kv)
    return _prompt(typed)


def limits_of(typed: Typed) -> tuple[int | None, ...]:
    """Limits on a chunk's logits to reckon with, in MiB; None: rows are not split."""
    if typed.max_logits_mb is None:
        return None, DEFAULT_MAX_LOGITS_MIB
    return (typed.max_logits_mb or None,)


def gpus_of(typed: Typed) -> tuple[Gpu, ...]:
    """The GPUs whose floors are asked for. Without ``--gpu`` all; none for a lab, which runs on CPU cores."""
    if typed.gpu is None and typed.scenario is not None and load_scenario(typed.scenario).lab:
        return ()
    words = dict.fromkeys(word.strip().lower() for word in ("all" if typed.gpu is None else typed.gpu).split(","))
    if "all" in words:
        return known_gpus()
    return () if set(words) == {"none"} else tuple(_gpu(word) for word in words)


def _gpu(word: str) -> Gpu:
    found = gpu_named(word)
    if found is None:
        names = [gpu.name for gpu in known_gpus()]
        known = f"known: {', '.join(names)}, all, none{did_you_mean(word, names)}"
        raise UsageError(
            f"--gpu: found {one_line(word, limit=40)!r}; {known}",
            remedy="--gpu h200 (their figures are in sparkdiag/kernels/gpus.toml)",
        )
    return found


def _call(typed: Typed, rows: int, keys: int) -> Asked:
    if typed.window_keys is not None and typed.window_keys > keys:
        raise UsageError(f"--window-keys {typed.window_keys} is more than the {keys} keys of the call", remedy=HELP)
    return Asked(
        rows=rows,
        keys=keys,
        heads=typed.heads or HEADS,
        head_dim=typed.head_dim or HEAD_DIM,
        budget_bytes=_budget(typed, DEFAULT_BUDGET_BYTES),
        matmul=typed.matmul,
        window_keys=typed.window_keys,
    )


def _prompt(typed: Typed) -> Asked:
    scenario = load_scenario(typed.scenario) if typed.scenario is not None else None
    tokens = typed.prompt_tokens or (scenario.prompt.tokens if scenario is not None else 0)
    chunk = typed.chunk_tokens or (scenario.server.chunk_tokens if scenario is not None else CHUNK_TOKENS)
    ratio = typed.compress_ratio or (scenario.work.compress_ratio if scenario is not None else COMPRESS_RATIO)
    dcp = typed.dcp or (scenario.server.dcp if scenario is not None else 1)
    if tokens < ratio:
        raise UsageError(f"a prompt of {tokens} tokens has no indexer key at {ratio} tokens a key", remedy=HELP)
    if (chunks := -(-tokens // chunk)) > MOST_CHUNKS:
        raise UsageError(
            f"{tokens:,} tokens in chunks of {chunk:,} are {chunks:,} chunks; allowed: {MOST_CHUNKS:,}",
            remedy="a larger --chunk-tokens",
        )
    return Asked(
        rows=min(chunk, tokens),
        keys=-(-(tokens // ratio) // dcp),
        heads=typed.heads or (scenario.work.heads if scenario is not None else None) or HEADS,
        head_dim=typed.head_dim or (scenario.route.head_dim if scenario is not None else HEAD_DIM),
        budget_bytes=_budget(typed, _scenario_budget(scenario)),
        matmul=typed.matmul,
        prompt_tokens=tokens,
        chunk_tokens=chunk,
        compress_ratio=ratio,
        dcp=dcp,
        layers=typed.layers or (scenario.work.layers if scenario is not None else None) or 1,
        scenario=scenario.name if scenario is not None else None,
    )


def _scenario_budget(scenario: Scenario | None) -> int:
    return (scenario.work.budget_bytes if scenario is not None else None) or DEFAULT_BUDGET_BYTES


def _budget(typed: Typed, default: int) -> int:
    if typed.budget_mib is None:
        return default
    if not math.isfinite(typed.budget_mib) or not 1 <= int(typed.budget_mib * MIB) <= _MOST_MIB * MIB:
        raise UsageError(
            f"--budget-mib: found {typed.budget_mib:g}; allowed: from 1 byte to {_MOST_MIB:,} MiB",
            remedy="--budget-mib 64, the incident's",
        )
    return int(typed.budget_mib * MIB)


def _check_together(typed: Typed) -> None:
    call = [_option(name) for name in _CALL if getattr(typed, name) is not None]
    prompt = [_option(name) for name in _PROMPT if getattr(typed, name) is not None]
    if call and prompt:
        raise UsageError(
            f"{call[0]} is about one call, {prompt[0]} about a whole prompt", remedy=f"leave one of them out; {HELP}"
        )
    if call and not {"--seq-len", "--seq-len-kv"} <= set(call):
        raise UsageError(
            f"a call needs both --seq-len and --seq-len-kv; found {', '.join(call)}",
            remedy="sparkdiag kernel plan --seq-len 8192 --seq-len-kv 112640",
        )
    if prompt and typed.prompt_tokens is None and typed.scenario is None:
        raise UsageError(
            f"{prompt[0]} is about a prompt, and none was given: --prompt-tokens or --scenario",
            remedy="sparkdiag kernel plan --prompt-tokens 450000",
        )
    if not call and not prompt:
        raise UsageError(
            "nothing to plan was given: --seq-len and --seq-len-kv, --prompt-tokens, or --scenario",
            remedy="sparkdiag kernel plan --seq-len 8192 --seq-len-kv 112640",
        )


def _check_number(option: str, number: int | None, *, least: int, most: int) -> None:
    if number is not None and not least <= number <= most:
        raise UsageError(f"{option}: found {number}; allowed: an integer from {least} to {most:,}", remedy=HELP)


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
