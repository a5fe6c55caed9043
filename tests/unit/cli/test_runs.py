"""``runs prune``: what it says to type next deletes what it showed, and nothing else."""

import json
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sparkdiag.cli.app import app
from sparkdiag.evidence.run import RunRecord
from sparkdiag.recording.folder import RunFolder


def begin(out: Path, *, day: int, status: str) -> RunFolder:
    now = datetime(2026, 11, day, tzinfo=UTC)
    folder = RunFolder.create(out, scenario_name="lab", short_sha="0000000000", dcp=2, now=now)
    folder.write_record(
        RunRecord(
            sparkdiag_version="0",
            started_at=now.isoformat(),
            status=status,
            scenario={"name": "lab"},
            command=(),
        )
    )
    return folder


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Path]:
    """Two finished runs and one that goes on."""
    out = tmp_path / "sp ü"
    out.mkdir()
    for day in (21, 22):
        begin(out, day=day, status="finished").close()
    with begin(out, day=23, status="running"):
        yield out


def invoke(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), catch_exceptions=False)


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


def test_list_tells_state_size_and_reason(runs: Path) -> None:
    begin(runs, day=24, status="running").close()
    (runs / "20261121T000000Z-lab-0000000000-dcp2" / "run.json").write_text("{")
    listed = json.loads(invoke("runs", "list", "--out", str(runs), "--json").stdout)
    assert [run["state"] for run in listed["runs"]] == ["killed", "running", "finished", "damaged"]
    assert listed["bytes"] == sum(run["bytes"] for run in listed["runs"]) > 0
    shown = invoke("runs", "list", "--out", str(runs))
    lines = shown.stdout.splitlines()
    assert "killed" in lines[0]
    assert lines[3].startswith("damaged ")
    assert max(map(len, lines[1:3])) - len(str(runs)) + len("runs") <= 80
    assert "(run.json is not whole: " in lines[3]
    assert "4 run(s) in" in shown.stderr
    assert "1 of them damaged" in shown.stderr


def test_prune_takes_damaged_folders_only_when_asked(runs: Path) -> None:
    damaged = runs / "20261121T000000Z-lab-0000000000-dcp2"
    (damaged / "run.json").unlink()
    (runs / "20261120T000000Z-empty-0000000000-dcp2").mkdir()
    plain = invoke("runs", "prune", "--keep", "0", "--out", str(runs), "--yes")
    assert "--damaged" in plain.stderr
    assert sorted(path.name[:8] for path in runs.iterdir()) == ["20261120", "20261121", "20261123"]
    shown = invoke("runs", "prune", "--keep", "0", "--damaged", "--out", str(runs), "--yes")
    assert "left " in shown.stdout
    assert "nothing in it shows that sparkdiag wrote it" in shown.stdout
    assert sorted(path.name[:8] for path in runs.iterdir()) == ["20261120", "20261123"]


def test_age_and_size_are_limits_too_and_the_next_line_repeats_them(runs: Path) -> None:
    shown = invoke("runs", "prune", "--older-than", "0.5", "--max-gib", "0", "--keep", "1", "--out", str(runs))
    line = next(line for line in shown.stderr.splitlines() if line.startswith("next: "))
    assert "--keep 1 --older-than 0.5 --max-gib 0 --out" in line
    document = json.loads(invoke("runs", "prune", "--max-gib", "1", "--out", str(runs), "--json").stdout)
    assert (document["runs"], document["left"], document["bytes"]) == ([], [], 0)


def test_what_cannot_be_deleted_is_said_and_keeps_no_other(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rmdir = Path.rmdir

    def refuse(path: Path) -> None:
        if path.name.startswith("20261122"):
            raise PermissionError(13, "Permission denied")
        rmdir(path)

    monkeypatch.setattr(Path, "rmdir", refuse)
    shown = invoke("runs", "prune", "--keep", "0", "--out", str(runs), "--yes")
    assert shown.exit_code == 4
    assert "it cannot be deleted: Permission denied" in shown.stdout
    assert not (runs / "20261121T000000Z-lab-0000000000-dcp2").exists()
