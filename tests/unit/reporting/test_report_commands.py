import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import sparkdiag.judging.judge as judging
from sparkdiag.cli import report, runs
from sparkdiag.errors import RunFolderError
from sparkdiag.evidence.client import TokenChunk
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.verdict import Verdict
from sparkdiag.recording.folder import RunFolder
from sparkdiag.recording.read import read_run
from sparkdiag.reporting.markdown import REPORT, render_markdown
from tests.unit.reporting.sample_runs import COMPLETED, CRAWLING, CRAWLING_VERDICT, SUSPECT

app = typer.Typer()
app.command("report")(report.report)
app.add_typer(runs.app, name="runs")


def on_disk(runs_dir: Path, stored: StoredRun) -> Path:
    """``stored`` written the way a run writes it."""
    now = datetime(2026, 5, 26, 8, 15, 2, tzinfo=UTC)
    with RunFolder.create(runs_dir, scenario_name="lab", short_sha="3f2a9c41d0", dcp=2, now=now) as folder:
        folder.write_record(stored.record)
        seen, client = stored.observation, stored.observation.client
        for value in (*stored.phases, *stored.notes, *seen.metrics, *seen.samples, seen.sampling):
            folder.append(value)
        folder.append_document(
            "timeline", {"event": "processes", "t_s": 1, "processes": [p.model_dump() for p in seen.processes]}
        )
        first = [] if client.first_token_s is None else [TokenChunk(t_s=client.first_token_s, text=client.text)]
        for value in (client.sent, *first, client.end):
            if value is not None:
                folder.append(value)
    return folder.path


def run(*args: str) -> str:
    result = CliRunner().invoke(app, list(args), catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def judged(monkeypatch: pytest.MonkeyPatch, verdict: Verdict) -> None:
    monkeypatch.setattr(judging, "judge", lambda _observation, _scenario, _baseline: verdict)


def test_a_run_reads_the_same_from_its_folder(tmp_path: Path) -> None:
    path = on_disk(tmp_path, CRAWLING)
    stored = read_run(path)
    assert stored.problems == ()
    assert stored.observation == CRAWLING.observation.model_copy(update={"now_s": CRAWLING_VERDICT.decided_at_s})
    assert render_markdown(stored) == render_markdown(CRAWLING)
    assert RunFolder(path).write_report(REPORT, render_markdown(stored)).read_text() == render_markdown(stored)


def test_report_prints_markdown_and_one_json_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = on_disk(tmp_path, CRAWLING)
    judged(monkeypatch, CRAWLING_VERDICT)
    assert run("report", str(path)).startswith(f"## sparkdiag: stalled (crawling) in `{SUSPECT}`")
    for flags in (("--json",), ("--format", "json")):
        made = json.loads(run("report", str(path), *flags))
        assert made["verdict"]["outcome"] == "stalled"
        assert "judged_again" not in made


def test_a_better_judge_shows_its_verdict_beside_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = on_disk(tmp_path, CRAWLING)
    judged(monkeypatch, Verdict(outcome="inconclusive", reason="it was only slow"))
    page = run("report", str(path))
    assert page.startswith("## sparkdiag: stalled (crawling)")
    assert (
        "**Judged again by this version, the verdict differs:** inconclusive. Inconclusive: it was only slow." in page
    )
    assert json.loads(run("report", str(path), "--json"))["judged_again"]["outcome"] == "inconclusive"


def test_the_judge_gets_the_stored_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(judging, "judge", lambda _o, _s, baseline: seen.append(baseline) or CRAWLING_VERDICT)
    run("report", str(on_disk(tmp_path, CRAWLING)))
    assert seen == [CRAWLING_VERDICT.baseline]


def test_the_real_judge_judges_a_stored_run(tmp_path: Path) -> None:
    made = json.loads(run("report", str(on_disk(tmp_path, COMPLETED)), "--json"))
    assert made["verdict"]["outcome"] == "completed"


def test_report_on_no_run_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match="no run folder at"):
        run("report", str(tmp_path / "nowhere"))


def test_runs_are_listed(tmp_path: Path) -> None:
    old, new = on_disk(tmp_path, CRAWLING), on_disk(tmp_path, COMPLETED)
    lines = run("runs", "list", "--out", str(tmp_path)).splitlines()
    assert ["completed (retrieved)" in lines[0], str(new) in lines[0]] == [True, True]
    assert ["stalled (crawling)" in lines[1], str(old) in lines[1]] == [True, True]
    made = json.loads(run("runs", "list", "--out", str(tmp_path), "--json"))
    assert [entry["outcome"] for entry in made["runs"]] == ["completed", "stalled"]
    assert json.loads(run("runs", "list", "--out", str(tmp_path / "none"), "--json"))["runs"] == []


def test_prune_deletes_old_runs_and_nothing_else(tmp_path: Path) -> None:
    old, new = on_disk(tmp_path, CRAWLING), on_disk(tmp_path, COMPLETED)
    (tmp_path / "stranger").mkdir()
    (tmp_path / "stranger" / "run.json").write_text('{"started_at": "2020"}')
    assert "would delete" in run("runs", "prune", "--out", str(tmp_path), "--keep", "1")
    assert old.exists()
    run("runs", "prune", "--out", str(tmp_path), "--keep", "1", "--yes")
    assert [old.exists(), new.exists(), (tmp_path / "stranger").exists()] == [False, True, True]


@pytest.mark.parametrize(
    ("content", "said"), [(None, "run.json is missing"), ("", "run.json is empty"), ("{", "run.json is not whole")]
)
def test_a_lost_record_is_said_and_the_streams_are_shown(tmp_path: Path, content: str | None, said: str) -> None:
    path = on_disk(tmp_path, CRAWLING)
    (path / "run.json").unlink()
    if content is not None:
        (path / "run.json").write_text(content)
    page = run("report", str(path)).replace("`", "")
    assert page.startswith(f"## sparkdiag: no verdict: {said}")
    assert "failed" not in page.split("What sampling cost", 1)[0]
    assert f"| **not known**: {said}" in page
    assert "the worker titles seen were Worker_TP0_DCP0" in page
    assert SUSPECT in page
    assert "20000 tokens" in page
    made = json.loads(run("report", str(path), "--json"))
    assert (made["status"], made["verdict"]) == ("unknown", None)
    assert made["problems"][0].startswith(said)


@pytest.mark.parametrize(("held", "said"), [(False, "the run was killed before it could say"), (True, "still goes on")])
def test_a_run_without_end_is_killed_or_still_going(tmp_path: Path, held: bool, said: str) -> None:
    record = CRAWLING.record.model_copy(update={"status": "running", "verdict": None})
    path = on_disk(tmp_path, CRAWLING.model_copy(update={"record": record}))
    writer = RunFolder(path)
    if held:
        writer.append(CRAWLING.notes[0] if CRAWLING.notes else CRAWLING.phases[0])
    page = run("report", str(path))
    assert said in page.splitlines()[0]
    assert "**Judged now, by what was recorded until the end:**" in page
    writer.close()
