"""Options that ``kernel check`` and ``kernel bench`` take in the same words."""

from enum import StrEnum
from typing import Annotated

import typer

from sparkdiag.cli import completion

WHOSE = "Whose kernels"
WHERE = "Where they run"
SHOWN = "How it is told"


class On(StrEnum):
    """What ``--device`` takes."""

    CPU = "cpu"
    CUDA = "cuda"


Repo = Annotated[
    str | None,
    typer.Option(
        help="vLLM clone whose own kernels are loaded at --rev; this runs that revision's code.",
        metavar="PATH",
        rich_help_panel=WHOSE,
    ),
]
Rev = Annotated[
    str | None,
    typer.Option(
        help="Revision of the clone; default: HEAD.",
        metavar="REV",
        autocompletion=completion.revisions,
        rich_help_panel=WHOSE,
    ),
]
Env = Annotated[
    str | None,
    typer.Option(
        help="Environment with torch and Triton: existing:PYTHON | lab | release:VERSION; default: your config file's, "
        "else sparkdiag's own interpreter if it has both, else lab.",
        autocompletion=completion.environments,
        rich_help_panel=WHERE,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(min=0, max=2**31 - 1, help="Inputs of an earlier run again; default: fresh ones.", metavar="N"),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on stdout; talk goes to stderr.")]
