"""dispatch.jsonl: written as the ledger comes, read back for reports; runs without it read as before."""

from datetime import UTC, datetime
from pathlib import Path

from sparkdiag.evidence.ledger import DispatchCall, DispatchLine, DispatchProcess, DispatchTotals, DispatchWrapped
from sparkdiag.evidence.run import RunRecord
from sparkdiag.recording.folder import RunFolder
from sparkdiag.recording.read import read_run

RECORD = RunRecord(sparkdiag_version="0", started_at="", status="finished", scenario={}, command=())


def written(runs: Path, *lines: DispatchLine) -> Path:
    folder = RunFolder.create(runs, scenario_name="lab", short_sha=None, dcp=2, now=datetime.now(UTC))
    folder.write_record(RECORD)
    for line in lines:
        folder.append(line)
    folder.close()
    assert folder.problems == ()
    return folder.path


def call(number: int, took_s: float | None) -> DispatchCall:
    return DispatchCall(
        pid=7,
        number=number,
        function="f",
        module="m",
        began_s=1.0,
        took_s=took_s,
        arguments={"q": ["float8_e4m3fn[256, 4, 48]", None], "clean_logits": False},
        seen={"k_cache_prefix": "model.layers.2.self_attn.indexer.k_cache", "dcp_world_size": 2},
    )


def test_the_ledger_comes_back_as_it_was_with_the_last_line_of_each_call(tmp_path: Path) -> None:
    wrapped = DispatchWrapped(pid=7, function="f", module="m")
    early, late = DispatchProcess(pid=7), DispatchProcess(pid=7, dcp_world_size=2)
    totals = DispatchTotals(pid=7, written=2)
    path = written(tmp_path, early, wrapped, call(1, None), call(2, 0.5), totals, call(1, 3.0), late)
    stored = read_run(path)
    assert stored.problems == ()
    assert set(map(repr, stored.observation.dispatch)) == set(
        map(repr, (late, wrapped, call(1, 3.0), call(2, 0.5), totals))
    )


def test_a_run_without_a_ledger_reads_as_before(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert not (path / "dispatch.jsonl").exists()
    stored = read_run(path)
    assert (stored.observation.dispatch, stored.problems) == ((), ())


def test_torn_and_foreign_lines_are_left_out_and_said(tmp_path: Path) -> None:
    path = written(tmp_path, call(1, 0.5))
    with (path / "dispatch.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"event":"call","pid":7,"num')
    stored = read_run(path)
    assert stored.observation.dispatch == (call(1, 0.5),)
    assert stored.problems == ("dispatch.jsonl: the last line is torn; it was left out",)
