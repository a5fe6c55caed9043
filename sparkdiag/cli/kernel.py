"""``sparkdiag kernel``: the two kernels of the argument, in numbers. One thin module a command, mounted here."""

import typer

from sparkdiag.cli import kernel_bench, kernel_check, kernel_plan
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
    short_help="How the torch fallback cuts a call up, and the least time of it.",
)(kernel_plan.plan)
app.command(
    "check",
    cls=GroupedCommand,
    short_help="Hold both kernels, sparkdiag's or a revision's, against float64.",
)(kernel_check.check)
app.command(
    "bench",
    cls=GroupedCommand,
    short_help="Time both kernels over a grid of shapes.",
)(kernel_bench.bench)
