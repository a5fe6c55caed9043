"""Run folders of every state of the code still render, in every format, with the verdict that they had."""

import shutil
from pathlib import Path

import pytest

from sparkdiag.bisecting.answer.kept import rebuilt_bisection
from sparkdiag.recording.listed_bisection import read_bisection
from sparkdiag.recording.read import read_run
from sparkdiag.reporting.bisection import render_bisection
from sparkdiag.reporting.bisection_document import bisection_json
from sparkdiag.reporting.pictures.page import bisection_page
from sparkdiag.reproducing.ending import compared
from tests.unit.reporting.every_format import every_page

RECORDINGS = Path(__file__).parents[2] / "recordings"
FOLDERS = RECORDINGS / "folders"
BISECTION = FOLDERS / "bisection-found"
SUSPECT = "_fp8_mqa_logits_torch"


@pytest.mark.parametrize(
    ("folder", "outcome", "function"),
    [
        ("folders/reproduction-crawling", "stalled", SUSPECT),
        ("folders/reproduction-healthy", "completed", None),
        ("folders/route-crawling", "stalled", SUSPECT),
        ("folders/watch-fallback", "inconclusive", None),
        ("folders/bisection-found/trials/20261201T045117Z-fake-dddddddddd-dcp2", "stalled", SUSPECT),
        ("folders/bisection-found/trials/20261201T045129Z-fake-cccccccccc-dcp2", "completed", None),
        ("h200-ledger/dcp1", "completed", None),
        ("h200-watch/slow", "stalled", "mqa_logits_torch_loop"),
    ],
)
def test_a_folder_of_an_older_state_renders_in_every_format(folder: str, outcome: str, function: str | None) -> None:
    stored = compared(read_run(RECORDINGS / folder))
    assert stored.problems == ()
    assert stored.observation.samples
    assert stored.observation.in_part is None
    verdict = stored.record.verdict
    assert verdict is not None
    assert (verdict.outcome, verdict.function) == (outcome, function)
    pages = every_page(stored)
    if function is not None:
        assert all(function in page for page in pages.values())


def test_a_bisection_of_the_first_version_renders() -> None:
    found = read_bisection(BISECTION)
    pages = render_bisection(found), bisection_json(found, run_dir=str(BISECTION)), bisection_page(found)
    assert found.outcome == "found"
    assert all("dddddddddd" in page for page in pages)


def test_its_answer_comes_from_the_journal_where_the_document_is_torn(tmp_path: Path) -> None:
    folder = tmp_path / BISECTION.name
    shutil.copytree(BISECTION, folder)
    document = folder / "bisection.json"
    document.write_bytes(document.read_bytes()[:5000])
    found = rebuilt_bisection(folder, lost="torn")
    assert render_bisection(found)
    whole = read_bisection(BISECTION)
    assert (found.outcome, found.commits) == (whole.outcome, whole.commits)
