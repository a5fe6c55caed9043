"""One line a command in the help, none of them cut."""

import re

import pytest
from typer.testing import CliRunner

from sparkdiag.cli.app import app


@pytest.mark.parametrize("group", [[], ["env"], ["runs"], ["scenario"]])
def test_no_summary_of_a_command_is_cut_or_wrapped(group: list[str]) -> None:
    shown = CliRunner().invoke(app, [*group, "--help"], terminal_width=80).stdout
    commands = shown[shown.index("Commands:") :].splitlines()[1:]
    assert commands
    assert [line for line in commands if line.endswith("...") or not re.match(r"  [a-z]", line)] == []
