"""``sparkdiag kernel``: the two kernels of the argument, in numbers. One thin module a command, mounted here."""

import typer

from sparkdiag.cli import kernel_plan
from sparkdiag.cli.grouped import GroupedCommand

app = typer.Typer(
    name="kernel",
    no_args_is_help=True,
    help="Count, check and time the kernels on both sides of the dispatch.\n\n"
    "Example: sparkdiag kernel plan --seq-len 8192 --seq-len-kv 112640 --heads 64",
)

app.command(
    "plan",
    cls=GroupedCommand,
    short_help="How the torch fallback cuts a call up, and the least time it can take.",
)(kernel_plan.plan)
