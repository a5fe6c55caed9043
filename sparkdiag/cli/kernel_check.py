"""``sparkdiag kernel check``: the incident's numerics test, for sparkdiag's kernels or any revision's."""

from typing import Annotated

import typer

from sparkdiag.cli import kernel_options as given

Device = Annotated[
    given.On | None,
    typer.Option(
        help="cpu (Triton's interpreter, small shapes) or cuda; default: cuda where torch sees a GPU.",
        rich_help_panel=given.WHERE,
    ),
]
Tolerance = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=1.0,
        help="Largest relative difference to float64 that passes; default: 1e-5, and 5e-4 for FP8 tensor cores.",
        metavar="X",
        rich_help_panel=given.SHOWN,
    ),
]
TimeLimit = Annotated[
    float, typer.Option("--time-limit", min=1, help="Give up after so many seconds.", rich_help_panel=given.WHERE)
]


def check(
    repo: given.Repo = None,
    rev: given.Rev = None,
    env: given.Env = None,
    device: Device = None,
    time_limit: TimeLimit = 900,
    seed: given.Seed = None,
    tolerance: Tolerance = None,
    as_json: given.AsJson = False,
) -> None:
    """Hold the torch fallback and the Triton kernel against float64: masks, numbers, NaN, unwritten elements.

    Example: sparkdiag kernel check --repo vllm --rev HEAD

    \b
    Another: sparkdiag kernel check --device cpu

    Without --repo sparkdiag's own pair is checked. With it the revision's own functions are read from git, loaded in a
    child and called: this runs that revision's code. Its dispatch is checked too: both values of clean_logits must
    reach the Triton kernel. Exit 0: all right; 1: a check failed; 3: what its dispatch reaches
    cannot be told here; 4: torch, Triton or the GPU is missing.
    """
    from sparkdiag.cli.kernel_run import CheckAsked, run_check

    asked = CheckAsked(
        repo=repo,
        rev=rev,
        env=env,
        device="auto" if device is None else device.value,
        time_limit_s=time_limit,
        seed=seed,
        tolerance=tolerance,
        as_json=as_json,
    )
    raise typer.Exit(int(run_check(asked)))
