"""``--out`` of the runs commands: a file is refused, a folder that is not there holds nothing."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparkdiag.cli.runs import app
from sparkdiag.errors import UsageError


@pytest.mark.parametrize("command", ["list", "prune"])
def test_a_file_is_refused(command: str, tmp_path: Path) -> None:
    file = tmp_path / "runs"
    file.write_text("")
    result = CliRunner().invoke(app, [command, "--out", str(file)])
    assert isinstance(result.exception, UsageError)
    assert "is a file" in result.exception.message


def test_a_folder_that_is_not_there_holds_no_runs(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["list", "--out", str(tmp_path / "none")])
    assert result.exit_code == 0
    assert f"no runs: there is no folder {tmp_path / 'none'}" in result.stderr
    assert "no runs in" in CliRunner().invoke(app, ["list", "--out", str(tmp_path)]).stderr
