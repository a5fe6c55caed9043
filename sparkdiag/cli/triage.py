"""``sparkdiag triage``: from stacks that somebody pasted to a diagnosis."""

from enum import StrEnum
from typing import Annotated

import typer


class Format(StrEnum):
    """What ``--format`` takes."""

    TEXT = "text"
    MD = "md"


def triage(
    files: Annotated[
        list[str], typer.Argument(help="Files with stacks, in the order they were taken; - for standard input.")
    ],
    compare: Annotated[
        bool, typer.Option("--compare", help="Two files: the first from a good server, the second from a bad one.")
    ] = False,
    over_time: Annotated[
        bool, typer.Option("--over-time", help="Each file is a later look at the same processes.")
    ] = False,
    together: Annotated[
        bool, typer.Option("--together", help="Each file shows other processes of the same server.")
    ] = False,
    apart_s: Annotated[
        float | None, typer.Option(min=0, help="Seconds between the looks, where the dumps do not tell.", metavar="S")
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="What to print.")] = Format.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Say what kind of stall pasted stacks show, in which process and rank, how sure, and what to measure next.

    Example: sparkdiag triage dump.txt

    \b
    Another: sparkdiag triage - < dump.txt

    \b
    Another: sparkdiag triage good.txt bad.txt

    Reads py-spy (dump, --json, top, record -f raw), pystack, gdb, faulthandler, watchdog and ray stack output, with
    fences, log prefixes and colours. Two files are compared when they show the same ranks under other pids.
    Exit 0: it moves, or is well; 1: a stall is shown; 3: whether it is one cannot be told from this.
    """
    from sparkdiag.cli.triage_asked import answer, order_of

    order = order_of(files, compare=compare, over_time=over_time, together=together)
    raise typer.Exit(int(answer(files, order=order, apart_s=apart_s, form=form.value, as_json=as_json)))
