"""``sparkdiag kernel bench``: both paths timed over a grid of shapes."""

from typing import Annotated

import typer

from sparkdiag.cli import kernel_options as given

Device = Annotated[
    given.On,
    typer.Option(
        help="cuda; cpu times a tiny grid by the wall clock, which means nothing for a GPU.",
        rich_help_panel=given.WHERE,
    ),
]
Shape = Annotated[
    list[str],
    typer.Option(
        "--shape",
        help="Rows x keys x heads, such as 1024x131072x64; repeatable. Default: six, up to 8192x450000x64.",
        metavar="MxNxH",
    ),
]
Repeat = Annotated[int, typer.Option(min=1, max=10_000, help="Calls a median is of, at most.", metavar="N")]
TimeLimit = Annotated[
    float,
    typer.Option("--time-limit", min=1, help="Stop after so many seconds and show what there is.", metavar="SECONDS"),
]


def bench(
    shape: Shape = [],  # noqa: B006
    repeat: Repeat = 20,
    repo: given.Repo = None,
    rev: given.Rev = None,
    env: given.Env = None,
    device: Device = given.On.CUDA,
    time_limit: TimeLimit = 540,
    seed: given.Seed = None,
    as_json: given.AsJson = False,
) -> None:
    """Time the torch fallback, sparkdiag's Triton kernel, a revision's pair and DeepGEMM over a grid of shapes.

    Example: sparkdiag kernel bench --shape 1024x131072x64

    \b
    Another: sparkdiag kernel bench --repo vllm --rev HEAD --env existing:PYTHON

    Medians of device events with the L2 cache emptied before each call, full and half windows; ratio, TFLOP/s and share
    of the roofline. What does not fit into memory is left out and said. With --repo this runs that revision's code.
    Ctrl-C keeps what was measured. Exit 0: the whole grid; 3: the time limit or a lost
    device cut it; 4: no GPU, torch or Triton.
    """
    from sparkdiag.cli.kernel_run import BenchAsked
    from sparkdiag.cli.kernel_timed import run_bench

    asked = BenchAsked(
        repo=repo,
        rev=rev,
        env=env,
        device=device.value,
        time_limit_s=time_limit,
        seed=seed,
        shapes=tuple(shape),
        repeat=repeat,
        as_json=as_json,
    )
    raise typer.Exit(int(run_bench(asked)))
