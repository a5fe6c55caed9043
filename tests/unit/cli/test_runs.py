"""``runs prune``: what it says to type next deletes what it showed, and nothing else."""

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparkdiag.cli.app import app
from sparkdiag.evidence.run import RunRecord


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    out = tmp_path / "sp ü"
    for day, status in ((1, "finished"), (2, "finished"), (3, "running")):
        folder = out / f"2026112{day}T000000Z-lab-0000000000-dcp2"
        folder.mkdir(parents=True)
        record = RunRecord(
            sparkdiag_version="0",
            started_at=f"2026-11-2{day}T00:00:00+00:00",
            status=status,
            scenario={"name": "lab"},
            command=(),
        )
        (folder / "run.json").write_text(record.model_dump_json())
    return out


def test_the_next_line_names_the_folder_and_deletes_what_was_shown(runs: Path) -> None:
    shown = CliRunner().invoke(app, ["runs", "prune", "--keep", "1", "--out", str(runs)])
    assert shown.exit_code == 0
    assert len(list(runs.iterdir())) == 3
    line = next(line for line in shown.output.splitlines() if line.startswith("next: "))
    again = CliRunner().invoke(app, shlex.split(line.removeprefix("next: "))[1:])
    assert again.exit_code == 0
    assert sorted(path.name[:8] for path in runs.iterdir()) == ["20261122", "20261123"]


def test_json_is_one_document(runs: Path) -> None:
    got = CliRunner().invoke(app, ["runs", "prune", "--keep", "0", "--out", str(runs), "--json"])
    document = json.loads(got.stdout)
    assert (document["deleted"], len(document["runs"])) == (False, 2)
    assert len(list(runs.iterdir())) == 3
