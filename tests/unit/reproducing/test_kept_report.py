"""The report beside the evidence can be posted as it is; the evidence itself keeps what it holds."""

from pathlib import Path

import pytest

from sparkdiag.harmless.identities import Identities
from sparkdiag.recording.folder import RunFolder
from sparkdiag.reproducing import ending
from sparkdiag.reproducing.ending import keep_report
from tests.unit.reporting.sample_runs import CRAWLING


def test_the_kept_report_tells_of_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Identities(hosts=frozenset({"gpubox"}), users=frozenset({"alice"}))
    monkeypatch.setattr(ending, "identities_here", lambda: here)
    problems = ("gpubox: alice may not read /srv/alice/x", "http://other-7:8000 did not answer 10.1.2.3")
    record = CRAWLING.record.model_copy(update={"command": ("sparkdiag", "repro", "--out", "/home/someone/runs")})
    stored = CRAWLING.model_copy(update={"problems": problems, "record": record})
    report, lost = keep_report(RunFolder(tmp_path), stored)
    assert lost == ()
    assert report is not None
    text = report.read_text()
    assert not [name for name in ("gpubox", "alice", "other-7", "10.1.2.3", "someone") if name in text]
    assert "[host-1]" in text
    assert stored.problems == problems
