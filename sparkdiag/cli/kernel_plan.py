"""``sparkdiag kernel plan``: how the torch fallback cuts a call up, and the least time it can take."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from sparkdiag.cli import completion

CALL = "One call"
PROMPT = "A whole prompt"
MODEL = "Of either"
FLOOR = "Least times"


class Matmul(StrEnum):
    """What ``--matmul`` takes."""

    FP32 = "fp32"
    TF32 = "tf32"


def _number(help_: str, name: str, *, panel: str) -> Any:
    return typer.Option(name, help=help_, rich_help_panel=panel, metavar="N")


def plan(
    seq_len: Annotated[int | None, _number("Query rows of the call.", "--seq-len", panel=CALL)] = None,
    seq_len_kv: Annotated[int | None, _number("Indexer keys of the call.", "--seq-len-kv", panel=CALL)] = None,
    window_keys: Annotated[
        int | None, _number("Keys inside a row's window, on average; default: all.", "--window-keys", panel=CALL)
    ] = None,
    prompt_tokens: Annotated[int | None, _number("Length of the prompt.", "--prompt-tokens", panel=PROMPT)] = None,
    compress_ratio: Annotated[
        int | None, _number("Prompt tokens an indexer key; default: 4.", "--compress-ratio", panel=PROMPT)
    ] = None,
    dcp: Annotated[
        int | None,
        _number("Decode context parallel size, over which the keys spread; default: 1.", "--dcp", panel=PROMPT),
    ] = None,
    chunk_tokens: Annotated[
        int | None, _number("Rows of a prefill chunk; default: 8192.", "--chunk-tokens", panel=PROMPT)
    ] = None,
    layers: Annotated[int | None, _number("Indexer layers; default: one is told.", "--layers", panel=PROMPT)] = None,
    scenario: Annotated[
        str | None,
        typer.Option(
            help="Take prompt, chunks, model and budget from it; what is given here goes before.",
            metavar="NAME|FILE",
            rich_help_panel=PROMPT,
            autocompletion=completion.scenarios,
        ),
    ] = None,
    heads: Annotated[int | None, _number("Indexer heads; default: 64.", "--heads", panel=MODEL)] = None,
    head_dim: Annotated[int | None, _number("Values a head and key; default: 128.", "--head-dim", panel=MODEL)] = None,
    budget_mib: Annotated[
        float | None,
        typer.Option(help="fp32 scores a pass may hold; default: 64.", metavar="MIB", rich_help_panel=MODEL),
    ] = None,
    max_logits_mb: Annotated[
        int | None,
        _number(
            "vLLM's VLLM_SPARSE_INDEXER_MAX_LOGITS_MB, by which it splits rows; 0: not split; default: both, "
            "not split and 512.",
            "--max-logits-mb",
            panel=MODEL,
        ),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            help="gb10 | rtx-pro-6000 | h100 | h200 | b200, or a list; all (the default), none.",
            metavar="NAME",
            rich_help_panel=FLOOR,
            autocompletion=completion.gpus,
        ),
    ] = None,
    matmul: Annotated[
        Matmul,
        typer.Option(
            help="Units of the fallback's matmuls: fp32, or tf32 where vLLM is told so.", rich_help_panel=FLOOR
        ),
    ] = Matmul.FP32,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Count how the torch fallback cuts a prefill up, and the least time that it and a fast kernel can take.

    Example: sparkdiag kernel plan --seq-len 8192 --seq-len-kv 112640

    \b
    Another: sparkdiag kernel plan --prompt-tokens 450000 --dcp 2

    \b
    Another: sparkdiag kernel plan --scenario sm12x-mqa-prefill --gpu gb10

    Arithmetic alone: nothing is run, no GPU is needed.
    """
    from sparkdiag.cli.kernel_plan_answer import answer
    from sparkdiag.cli.kernel_plan_asked import Typed

    answer(Typed.model_validate(locals() | {"matmul": matmul.value}))
