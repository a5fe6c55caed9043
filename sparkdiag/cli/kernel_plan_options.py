"""The options of ``kernel plan``, in the groups that its help shows."""

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


def _option(help_: str, *, panel: str, metavar: str | None = "N", **more: Any) -> Any:
    return typer.Option(help=help_, metavar=metavar, rich_help_panel=panel, **more)


SeqLen = Annotated[int | None, _option("Query rows of the call.", panel=CALL)]
SeqLenKv = Annotated[int | None, _option("Indexer keys of the call.", panel=CALL)]
WindowKeys = Annotated[int | None, _option("Keys inside a row's window, on average; default: all.", panel=CALL)]
PromptTokens = Annotated[int | None, _option("Length of the prompt.", panel=PROMPT)]
CompressRatio = Annotated[int | None, _option("Prompt tokens an indexer key; default: 4.", panel=PROMPT)]
Dcp = Annotated[
    int | None, _option("Decode context parallel size, over which the keys spread; default: 1.", panel=PROMPT)
]
ChunkTokens = Annotated[int | None, _option("Rows of a prefill chunk; default: 8192.", panel=PROMPT)]
Layers = Annotated[int | None, _option("Indexer layers; default: one is told.", panel=PROMPT)]
Scenario = Annotated[
    str | None,
    _option(
        "Take prompt, chunks, model and budget from it; what is given here goes before.",
        panel=PROMPT,
        metavar="NAME|FILE",
        autocompletion=completion.scenarios,
    ),
]
Heads = Annotated[int | None, _option("Indexer heads; default: 64.", panel=MODEL)]
HeadDim = Annotated[int | None, _option("Values a head and key; default: 128.", panel=MODEL)]
BudgetMib = Annotated[float | None, _option("fp32 scores a pass may hold; default: 64.", panel=MODEL, metavar="MIB")]
MaxLogitsMb = Annotated[
    int | None,
    _option(
        "vLLM's VLLM_SPARSE_INDEXER_MAX_LOGITS_MB, by which it splits rows; 0: not split; default: both, not split "
        "and 512.",
        panel=MODEL,
    ),
]
GpuName = Annotated[
    str | None,
    _option(
        "gb10 | rtx-pro-6000 | h100 | h200 | b200, or a list; all (the default), none.",
        panel=FLOOR,
        metavar="NAME",
        autocompletion=completion.gpus,
    ),
]
MatmulUnits = Annotated[
    Matmul,
    _option(
        "Units of the fallback's matmuls: fp32, or tf32 where VLLM_FLOAT32_MATMUL_PRECISION is high.",
        panel=FLOOR,
        metavar=None,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
