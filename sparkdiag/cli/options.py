"""Options that several commands take in the same words."""

from typing import Annotated

import typer

from sparkdiag.cli import completion

Env = Annotated[
    str | None,
    typer.Option(
        help="lab | existing:PYTHON | release:VERSION | overlay:REV[@BASE]; default: your config file, else lab.",
        autocompletion=completion.environments,
    ),
]
Dcp = Annotated[
    int | None,
    typer.Option(help="Decode context parallel size; default: the scenario's.", autocompletion=completion.dcp_sizes),
]
Tp = Annotated[int | None, typer.Option(help="Tensor parallel size; DCP must divide it.")]
