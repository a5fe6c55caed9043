"""Which runs go, and that nothing else does."""

from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.evidence.ledger import DispatchWrapped
from sparkdiag.evidence.run import RunRecord
from sparkdiag.recording.events import EVERY_STREAM
from sparkdiag.recording.folder import RunFolder
from sparkdiag.recording.listing import ListedRun, State, listed_runs
from sparkdiag.recording.prune import DAY_S, Limits, choose, delete

NOW_S = 100 * DAY_S


def run(age_days: float, state: State = "finished", *, size: int = 10, **changes: object) -> ListedRun:
    run = ListedRun(path=f"/runs/{age_days}", state=state, began_s=NOW_S - age_days * DAY_S, bytes=size)
    return run.model_copy(update=changes)


def ages(runs: tuple[ListedRun, ...]) -> list[float]:
    return [float(Path(one.path).name) for one in runs]


RUNS = tuple(run(age) for age in (1, 2, 3, 4, 5))


def go(limits: Limits, runs: tuple[ListedRun, ...] = RUNS) -> list[float]:
    return ages(choose(runs, limits, now_s=NOW_S)[0])


def test_each_limit_alone() -> None:
    assert go(Limits(keep=2)) == [3, 4, 5]
    assert go(Limits(keep=0, older_than_s=3.5 * DAY_S)) == [4, 5]
    assert go(Limits(keep=0, max_bytes=30)) == [4, 5]
    assert go(Limits(keep=0, max_bytes=50)) == []
    assert go(Limits(keep=0, max_bytes=0)) == [1, 2, 3, 4, 5]


def test_the_newest_stay_whatever_the_other_limits_say() -> None:
    assert go(Limits(keep=4, older_than_s=0)) == [5]
    assert go(Limits(keep=4, max_bytes=0)) == [5]
    assert go(Limits(keep=1, older_than_s=4.5 * DAY_S, max_bytes=30)) == [4, 5]


def test_a_run_that_goes_on_neither_goes_nor_counts() -> None:
    runs = (run(0, "running", held=True), *RUNS)
    assert go(Limits(keep=2), runs) == [3, 4, 5]
    chosen, left = choose((run(1), run(2, held=True)), Limits(keep=0), now_s=NOW_S)
    assert (ages(chosen), [one.because for one in left]) == ([1], ["it is being written"])


def test_killed_runs_go_and_damaged_ones_only_when_asked_and_ours() -> None:
    runs = (run(1, "killed"), run(2, "damaged"), run(3, "damaged", ours=False))
    assert go(Limits(keep=0), runs) == [1]
    chosen, left = choose(runs, Limits(keep=0, damaged=True), now_s=NOW_S)
    assert ages(chosen) == [1, 2]
    assert [one.because for one in left] == ["nothing in it shows that sparkdiag wrote it"]


def test_what_holds_files_of_somebody_else_stays_and_makes_no_other_go() -> None:
    runs = (*RUNS[:4], run(5, foreign=("notes.md",)))
    chosen, left = choose(runs, Limits(keep=2), now_s=NOW_S)
    assert (ages(chosen), ages(tuple(one.run for one in left))) == ([3, 4], [5])
    assert left[0].because == "it holds what sparkdiag did not write: notes.md"


STATES: tuple[State, ...] = ("running", "finished", "interrupted", "failed", "killed", "damaged")
LISTED = st.builds(
    run,
    st.floats(0, 99).map(lambda age: round(age, 3)),
    st.sampled_from(STATES),
    size=st.integers(0, 100),
    held=st.sampled_from([True, False, False, False, None]),
    ours=st.booleans(),
    foreign=st.sampled_from([(), (), ("x",)]),
)
LIMITS = st.builds(
    Limits,
    keep=st.integers(0, 5),
    older_than_s=st.none() | st.floats(0, 100 * DAY_S),
    max_bytes=st.none() | st.integers(0, 500),
    damaged=st.booleans(),
)


@given(st.lists(LISTED, max_size=12, unique_by=lambda one: one.path), LIMITS)
def test_nothing_protected_ever_goes(listed: list[ListedRun], limits: Limits) -> None:
    runs = tuple(sorted(listed, key=lambda one: -one.began_s))
    chosen, left = choose(runs, limits, now_s=NOW_S)
    counted = [one for one in runs if one.state != "running" and (limits.damaged or one.state != "damaged")]
    for one in chosen:
        assert one.held is False
        assert one.ours
        assert not one.foreign
        assert one in counted[limits.keep :]
    assert not set(ages(chosen)) & set(ages(tuple(one.run for one in left)))
    wider = choose(runs, limits.model_copy(update={"keep": limits.keep + 1}), now_s=NOW_S)[0]
    assert len(wider) <= len(chosen)


def made(runs: Path) -> RunFolder:
    folder = RunFolder.create(runs, scenario_name="lab", short_sha="abc", dcp=2, now=datetime(2026, 5, 26, tzinfo=UTC))
    folder.write_record(
        RunRecord(
            sparkdiag_version="0", started_at="2026-05-26T00:00:00+00:00", status="finished", scenario={}, command=()
        )
    )
    folder.append(DispatchWrapped(pid=1, function="f", module="m"))
    assert {path.stem for path in folder.path.glob("*.jsonl")} == set(EVERY_STREAM), "one file of each kind"
    folder.write_report("report.md", "text")
    folder.server_log.write_text("log")
    return folder


def test_a_whole_folder_is_deleted_and_nothing_beside_it(tmp_path: Path) -> None:
    made(tmp_path).close()
    [listed] = listed_runs(tmp_path)
    assert listed.bytes > 4
    assert delete(listed) == ""
    assert [path.name for path in tmp_path.iterdir()] in ([], [".gitignore"])


def test_what_came_in_since_it_was_listed_is_looked_at_again(tmp_path: Path) -> None:
    folder = made(tmp_path)
    [listed] = listed_runs(tmp_path)
    assert delete(listed) == "it is being written"
    folder.close()
    outside = tmp_path / "outside"
    outside.write_text("kept")
    (folder.path / "report.html").symlink_to(outside)
    assert delete(listed) == "it holds what sparkdiag did not write: report.html"
    assert (folder.path / "run.json").is_file()
    (folder.path / "report.html").unlink()
    assert delete(listed) == ""
    assert outside.read_text() == "kept"
