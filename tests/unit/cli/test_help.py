"""What ``--help`` shows can be copied and typed."""

import re
from collections.abc import Iterator

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from sparkdiag.cli.app import app


def _paths(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from _paths(below, (*path, name))


PATHS = tuple(_paths(get_command(app)))


@pytest.mark.parametrize("columns", [80, 100, 120])
@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_examples_stay_on_one_line(path: tuple[str, ...], columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = CliRunner().invoke(app, [*path, "--help"], terminal_width=columns).stdout
    paragraphs = [block.splitlines() for block in re.split(r"\n\s*\n", shown)]
    examples = [block for block in paragraphs if re.match(r"\s*(Example|Another): ", block[0])]
    assert examples
    assert all(len(block) == 1 for block in examples), examples
    assert all(": sparkdiag " in block[0] for block in examples)
    assert all(len(block[0]) <= 80 for block in examples), examples
    assert "\b" not in shown
