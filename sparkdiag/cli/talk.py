"""Talk on stderr, in the same way from every command that says more than its answer."""

import sys
import textwrap
from shutil import get_terminal_size

import typer

from sparkdiag.harmless.excerpt import one_line


def say(text: str, *, to_copy: bool = False) -> None:
    """One line of talk on stderr, unable to steer a terminal; broken between words there unless it is to be copied."""
    line = one_line(text, limit=1000)
    if sys.stderr.isatty() and not to_copy:
        columns = get_terminal_size().columns - 1
        line = textwrap.fill(line, max(columns, 40), break_long_words=False, break_on_hyphens=False)
    typer.echo(line, err=True)
