"""``sparkdiag report``: one run, two, a bisection; every format, to standard output or a file."""

import json
from itertools import product
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from sparkdiag.cli import report as command
from sparkdiag.cli.report_formats import FILES, Format
from sparkdiag.cli.report_subject import OneBisection, read_subject
from sparkdiag.errors import RunFolderError, SparkdiagError, UsageError
from sparkdiag.evidence.bisection import Bisection
from sparkdiag.recording.bisection import DOCUMENT, JOURNAL, TRIALS
from sparkdiag.recording.listed_bisection import foreign_beside_trials
from sparkdiag.recording.listing import foreign_entries
from sparkdiag.reporting.telling_trials import telling_trials
from tests.unit.reporting.sample_bisections import FOUND
from tests.unit.reporting.sample_runs import COMPLETED, CRAWLING, SUSPECT
from tests.unit.reporting.test_report_commands import on_disk

app = typer.Typer()
app.command()(command.report)


def run(*args: object) -> str:
    result = CliRunner().invoke(app, [str(arg) for arg in args], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    return on_disk(tmp_path / "runs", CRAWLING)


@pytest.fixture
def fast(tmp_path: Path) -> Path:
    return on_disk(tmp_path / "runs", COMPLETED)


def bisection_folder(path: Path, found: Bisection) -> Path:
    path.mkdir()
    (path / JOURNAL).write_text('{"event":"begun"}\n')
    (path / DOCUMENT).write_text(found.model_dump_json(by_alias=True))
    return path


@pytest.mark.parametrize("form", list(Format))
def test_every_format_of_a_run_names_the_suspect(slow: Path, form: Format) -> None:
    assert SUSPECT in run(slow, "--format", form)


@pytest.mark.parametrize("form", [form for form in Format if form is not Format.SVG])
def test_two_runs_are_put_side_by_side(fast: Path, slow: Path, form: Format) -> None:
    page = run(fast, slow, "--format", form)
    assert SUSPECT in page
    assert fast.name in page
    assert slow.name in page


def test_the_document_of_two_runs_has_the_factor(fast: Path, slow: Path) -> None:
    document = json.loads(run(fast, slow, "--json"))
    assert document["schema"] == 1
    assert document["ratio"] == pytest.approx(240 / 8.4)
    assert "times as long" in document["sentence"]


def test_a_page_goes_where_it_is_told(slow: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("an older one")
    assert run(slow, "-o", path) == ""
    assert path.read_text() == run(slow) == run(slow, "-o", "-")


def test_what_is_not_for_a_terminal_goes_into_the_folder(
    slow: Path, fast: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    for form, name in FILES.items():
        command.report([slow], form=form)
        assert SUSPECT in (slow / name).read_text()
    with pytest.raises(UsageError, match="not for a terminal"):
        command.report([slow, fast], form=Format.HTML)


@pytest.mark.parametrize(
    ("args", "error", "says"),
    [
        (["a", "b", "c"], UsageError, "one is reported, two are compared"),
        (["nowhere"], RunFolderError, "no run folder"),
        (["same", "./same"], UsageError, "same is named twice"),
    ],
)
def test_what_cannot_be_reported_is_told(args: list[str], error: type[SparkdiagError], says: str) -> None:
    with pytest.raises(error, match=says) as raised:
        command.report([Path(arg) for arg in args])
    assert raised.value.remedy


def test_two_formats_at_once_are_refused(slow: Path) -> None:
    with pytest.raises(UsageError, match="--json and --format html"):
        command.report([slow], form=Format.HTML, as_json=True)
    assert json.loads(run(slow, "--json", "--format", "json")) == json.loads(run(slow, "--json"))


def test_a_folder_in_the_pages_place_is_told(slow: Path, tmp_path: Path) -> None:
    with pytest.raises(SparkdiagError, match="cannot be written") as raised:
        command.report([slow], output=tmp_path)
    assert raised.value.remedy == "name another file: --output FILE"


def test_a_bisection_has_pages_but_no_single_timeline(tmp_path: Path) -> None:
    folder = bisection_folder(tmp_path / "bisect-x", FOUND)
    for form in (Format.MD, Format.HTML, Format.JSON):
        assert FOUND.commits[0].sha[:7] in run(folder, "--format", form)
    for form in (Format.SVG, Format.SPEEDSCOPE, Format.TRACE):
        with pytest.raises(UsageError, match="a bisection is many runs"):
            command.report([folder], form=form)


def test_a_bisection_beside_a_run_is_refused(tmp_path: Path, slow: Path) -> None:
    folder = bisection_folder(tmp_path / "bisect-x", FOUND)
    for pair in ([folder, slow], [slow, folder]):
        with pytest.raises(RunFolderError, match="is a bisection"):
            command.report(pair)


def test_the_trials_beside_the_change_are_read_from_within_the_folder_alone(tmp_path: Path, slow: Path) -> None:
    good, bad = telling_trials(FOUND)
    assert good is not None
    assert bad is not None
    folder = bisection_folder(tmp_path / "bisect-x", FOUND)
    alone = read_subject([folder], with_trials=True)
    assert isinstance(alone, OneBisection)
    assert (alone.good, alone.bad) == (None, None)
    trials = [
        trial.model_copy(update={"result": trial.result.model_copy(update={"run_dir": where})})
        for trial, where in product(FOUND.trials, (str(slow),))
    ]
    (folder / DOCUMENT).write_text(FOUND.model_copy(update={"trials": tuple(trials)}).model_dump_json(by_alias=True))
    outside = read_subject([folder], with_trials=True)
    assert isinstance(outside, OneBisection)
    assert (outside.good, outside.bad) == (None, None)
    inside = folder / TRIALS / "one"
    inside.parent.mkdir()
    slow.rename(inside)
    trials = [
        trial.model_copy(update={"result": trial.result.model_copy(update={"run_dir": f"{TRIALS}/one"})})
        for trial in FOUND.trials
    ]
    (folder / DOCUMENT).write_text(FOUND.model_copy(update={"trials": tuple(trials)}).model_dump_json(by_alias=True))
    both = read_subject([folder], with_trials=True)
    assert isinstance(both, OneBisection)
    assert both.good is not None
    assert both.bad is not None


def test_what_is_left_out_is_listed_in_place_of_the_page(slow: Path) -> None:
    text = run(slow, "--show-redactions")
    assert "home folder" in text
    assert SUSPECT not in text
    document = json.loads(run(slow, "--show-redactions", "--json"))
    assert document["redactions"]["counts"]["home folder"] > 0
    assert document["redactions"]["unclassified"] == []


@pytest.mark.parametrize("name", ["run.json", "stacks.jsonl", "timeline.jsonl", "client.jsonl", "dispatch.jsonl"])
def test_no_page_replaces_what_a_run_was_recorded_in(slow: Path, name: str) -> None:
    before = {path.name: path.read_bytes() for path in slow.iterdir()}
    with pytest.raises(UsageError, match="was recorded in"):
        command.report([slow], form=Format.HTML, output=slow / name)
    assert {path.name: path.read_bytes() for path in slow.iterdir()} == before


def test_what_is_left_out_goes_to_a_file_too(slow: Path, tmp_path: Path) -> None:
    assert run(slow, "--show-redactions", "-o", tmp_path / "x.txt") == ""
    assert "home folder" in (tmp_path / "x.txt").read_text()


def test_a_run_that_lost_a_stream_is_not_judged_again(slow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = slow / "stacks.jsonl"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    page = run(slow)
    assert "stacks.jsonl" in page
    assert "Judged again" not in page


def test_where_a_page_goes_by_itself_is_known_as_ours(slow: Path, tmp_path: Path) -> None:
    for name in FILES.values():
        (slow / name).write_text("x")
    assert foreign_entries([(path.name, True) for path in slow.iterdir()]) == ()
    assert foreign_beside_trials([(FILES[Format.HTML], True), (TRIALS, False)]) == ()
