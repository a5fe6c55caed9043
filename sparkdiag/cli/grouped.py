"""Options in groups in a plain help text: what Typer does with ``rich_help_panel`` only where Rich draws the help."""

from typing import Any

from typer.core import TyperCommand


class GroupedCommand(TyperCommand):
    """A command whose help shows each ``rich_help_panel`` as a section, in the order of the options."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Called by the help text's formatter."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None:
                name = getattr(option, "rich_help_panel", None) or "Options"
                groups.setdefault(name, []).append(record)
        for name, records in groups.items():
            with formatter.section(name):
                formatter.write_dl(records)
