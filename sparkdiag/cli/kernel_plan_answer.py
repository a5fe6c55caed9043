"""What ``sparkdiag kernel plan`` prints."""

import typer

from sparkdiag.cli.kernel_plan_asked import Typed, asked_of, gpus_of, limits_of
from sparkdiag.cli.route_shown import columns
from sparkdiag.kernels.planned import planned
from sparkdiag.reporting.kernel_plan import plan_text
from sparkdiag.reporting.route_document import document_text


def answer(typed: Typed) -> None:
    """Plan what was asked for, and print it. Raises ``UsageError`` before anything is printed."""
    found = planned(asked_of(typed), limits_mib=limits_of(typed), gpus=gpus_of(typed))
    document = found.model_dump(mode="json", by_alias=True)
    typer.echo(document_text(document) if typed.as_json else plan_text(found, columns=columns()))
