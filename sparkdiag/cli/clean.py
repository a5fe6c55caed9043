"""``sparkdiag clean``: everything sparkdiag put on this machine, shown, and with ``--yes`` removed."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparkdiag.errors import ExitCode
from sparkdiag.harmless.printable import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sparkdiag.cleaning.found import Found

LAST_STEP = "pip uninstall sparkdiag"
MOST_ALONE = 2
YOURS = ("config", "runs", "shared")
"""Kinds that staying behind is no failure of."""


def clean(
    yes: Annotated[bool, typer.Option("--yes", help="Remove it; without this it is only shown.")] = False,
    config: Annotated[bool, typer.Option("--config", help="Your config file may go too.")] = False,
    out: Annotated[Path, typer.Option("--out", help="Folder of runs to name; runs are never removed.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
) -> None:
    """Uninstall what sparkdiag put on this machine: environments, locks, lab, leftovers, shell completion.

    Nothing in use, nothing without sparkdiag's mark, no run folder and nothing behind a link is removed.

    Example: sparkdiag clean --yes
    """
    from sparkdiag.cleaning.inventory import Outcome, inventory, remove

    found = inventory(config=config, runs_dir=out)
    if yes:
        outcome = remove(found)
    else:
        going = tuple(item for item in found if item.how != "never")
        outcome = Outcome(removed=going, left=tuple(item for item in found if item.how == "never"))
    again = f"sparkdiag clean{' --config' if config else ''} --yes"
    next_step = LAST_STEP if yes or not outcome.removed else again
    if as_json:
        _emit(outcome.removed, outcome.left, done=yes, next_step=next_step)
    else:
        _show(outcome.removed, outcome.left, done=yes)
        typer.echo(f"next: {next_step}")
    if yes and any(item.kind not in YOURS for item in outcome.left):
        raise typer.Exit(int(ExitCode.ENVIRONMENT))


def _show(going: "Sequence[Found]", left: "Sequence[Found]", *, done: bool) -> None:
    from sparkdiag.reporting.phrases import size

    verb = "removed" if done else "would remove"
    for kind, bytes_, what in rows(going):
        typer.echo(printable(f"{verb:<12}  {kind:<11}  {size(bytes_):>9}  {what}"))
    for item in left:
        measured = size(item.bytes) if item.bytes is not None else "-"
        typer.echo(printable(f"{'stays':<12}  {item.kind:<11}  {measured:>9}  {item.path}  ({item.because})"))
    total = size(sum(item.bytes or 0 for item in going))
    typer.echo(f"{verb} {total} in {len(going)} place(s)" if going else "nothing of sparkdiag's to remove here")


def rows(items: "Sequence[Found]") -> list[tuple[str, int, str]]:
    """Kind, bytes and place of each thing; many of a kind in one folder are one row. Pure."""
    groups: dict[tuple[str, str], list[Found]] = {}
    for item in items:
        groups.setdefault((item.kind, str(Path(item.path).parent)), []).append(item)
    made: list[tuple[str, int, str]] = []
    for (kind, parent), group in groups.items():
        if len(group) > MOST_ALONE:
            made.append((kind, sum(item.bytes or 0 for item in group), f"{parent}/  ({len(group)} of them)"))
        else:
            made += [(kind, item.bytes or 0, item.path + (f": {item.line}" if item.line else "")) for item in group]
    return made


def _emit(going: "Sequence[Found]", left: "Sequence[Found]", *, done: bool, next_step: str) -> None:
    document = {
        "schema": 1,
        "removed": done,
        "bytes": sum(item.bytes or 0 for item in going),
        "items": [item.model_dump(mode="json", exclude={"because", "how"}) for item in going],
        "left": [item.model_dump(mode="json", exclude={"how"}) for item in left],
        "next": next_step,
    }
    typer.echo(json.dumps(document, indent=2))
