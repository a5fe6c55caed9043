"""What a run is for the search: proof before verdict, reasons in one line, and what is no point's own raised."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.bisecting.trials.log_tail import tail_of
from sparkdiag.bisecting.trials.result import failed_trial, functions_of, not_started_reason, result_of, result_of_run
from sparkdiag.errors import (
    BusyError,
    DefectError,
    EnvironmentFault,
    GuardianKilled,
    RunFolderError,
    SamplingRefused,
    ServerError,
    SparkdiagError,
    UsageError,
)
from sparkdiag.evidence.bisection import Signature
from sparkdiag.evidence.processes import GUARDIAN_KILLED
from sparkdiag.evidence.run import DcpProof, RevisionProof, Timings
from sparkdiag.evidence.stacks import SamplingStats
from sparkdiag.evidence.verdict import Baseline, Verdict
from sparkdiag.serving.last_words import telling_line
from sparkdiag.serving.readiness import PortTaken
from tests.unit.bisecting.stored_trials import (
    API,
    COMPLETED,
    ENGINE,
    SHA,
    STALLED,
    WORKER,
    failed,
    observation,
    record,
    sample,
    stored,
)

LOG = (
    "(Worker_TP0_DCP0 pid=682) ERROR 11-30 04:26:59 [registry.py:1108] Traceback (most recent call last):",
    "(Worker_TP0_DCP0 pid=682) ERROR 11-30 04:26:59 [registry.py:1108] ModuleNotFoundError: No module named 'lab.top'",
    "(Worker_TP0_DCP0 pid=682) ERROR 11-30 04:26:59 [executor.py:953]     raise ValueError(",
    "(Worker_TP0_DCP0 pid=682) ERROR 11-30 04:26:59 [executor.py:953] ValueError: ['X'] failed to be inspected. See",
    "Traceback (most recent call last):",
    "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}",
    "/x/resource_tracker.py:254: UserWarning: there appear to be 2 leaked shared_memory objects",
)


def test_a_stall_keeps_its_signature_its_evidence_and_where_it_was_seen() -> None:
    seen = observation(sample(WORKER, "WorkerProc.step", "main"), sample(ENGINE, "get_response"))
    result = result_of(stored(seen=seen), sha=SHA)
    assert (result.outcome, result.mode, result.watched) == ("stalled", "crawling", True)
    assert result.signature == Signature(kind="torch-fallback", function="_fp8_mqa_logits_torch", role="worker")
    assert result.functions == ("WorkerProc.step", "get_response", "main", "step")
    assert (result.samples, result.decided_s, result.minutes) == (1, 28.0, 1.5)
    assert (result.evidence_for, result.evidence_against) == (STALLED.evidence_for, STALLED.evidence_against)


def test_only_usable_looks_at_the_engine_during_the_prefill_count() -> None:
    samples = (
        sample(WORKER, "before", at_s=90),
        sample(WORKER, "within"),
        sample(WORKER, "late", late=True),
        sample(WORKER, "failed", error="no"),
        sample(API, "api"),
        sample(WORKER, "decoding", at_s=140),
    )
    result = result_of(stored(record(COMPLETED), observation(*samples, first_token_s=130.0)), sha=SHA)
    assert (result.functions, result.samples) == (("within",), 1)
    assert (result.outcome, result.needle, result.signature) == ("completed", "retrieved", None)
    nothing_sent = result_of(stored(seen=observation(*samples, sent=False)), sha=SHA)
    assert (nothing_sent.functions, nothing_sent.samples) == ((), 0)


@pytest.mark.parametrize(
    "changes",
    [
        {"revision": RevisionProof(asked=SHA, proved=False, because="vllm.x differs from what the revision holds")},
        {"revision": RevisionProof(sha="b" * 40, version="0.32.0", proved=True, because="all match")},
        {"revision": RevisionProof(sha=None, version=None, proved=True, because="all match")},
        {"dcp": DcpProof(asked=2, size=1, witnesses=("worker titles: TP0, TP1",))},
        {"dcp": DcpProof(asked=2, size=2, consistent=False, witnesses=("probe: 2", "argv: 1"))},
        {"dcp": DcpProof(asked=2, size=None)},
        {"dcp": None},
    ],
)
@pytest.mark.parametrize("verdict", [STALLED, COMPLETED, Verdict(outcome="crashed", reason="gone")])
def test_what_is_not_proved_shows_nothing(changes: dict[str, object], verdict: Verdict) -> None:
    result = result_of(stored(record(verdict, **changes)), sha=SHA)
    assert (result.outcome, result.signature, result.mode) == ("not-proved", None, None)
    assert result.reason


def test_a_point_that_is_no_revision_needs_no_proof_of_one() -> None:
    run = record(revision=RevisionProof(proved=False, because="the probe was off"))
    assert result_of(stored(run), sha="2", must_prove=False).outcome == "stalled"


def test_a_release_is_proved_by_its_version() -> None:
    run = record(revision=RevisionProof(version="0.31.0+cpu", proved=True, because="all match"))
    assert result_of(stored(run), sha="0.31.0").outcome == "stalled"
    assert result_of(stored(run), sha="0.30.0").outcome == "not-proved"


def test_with_the_labs_source_over_an_overlay_vllms_own_commit_is_proved_too() -> None:
    run = record(revision=RevisionProof(sha="b" * 40, version="0.32.0", proved=True, because="all match"))
    run = run.model_copy(update={"environment": run.environment | {"vllm_sha": SHA}})
    assert result_of(stored(run), sha=SHA).outcome == "stalled"
    assert result_of(stored(run), sha="c" * 40).outcome == "not-proved"


def test_a_run_is_slow_by_its_own_healthy_time() -> None:
    baseline = Baseline(kind="fast-kernel", seconds=20.0, source="timed")
    run = record(COMPLETED.model_copy(update={"baseline": baseline}), timings_s=Timings(prompt_to_first_token_s=243.0))
    assert result_of(stored(run), sha=SHA).times_healthy == pytest.approx(12.15)
    assert result_of(stored(record(COMPLETED)), sha=SHA).times_healthy is None


def test_an_unwatched_stall_has_no_signature() -> None:
    seen = observation().model_copy(update={"sampling": SamplingStats(mode="none", wanted=False)})
    result = result_of(stored(record(STALLED.model_copy(update={"kind": None, "function": None})), seen), sha=SHA)
    assert (result.outcome, result.watched, result.signature, result.samples) == ("stalled", False, None, 0)


@pytest.mark.parametrize("said", ["it ended", "it ended: {cause}", "it ended ({cause})"])
def test_the_cause_is_told_first_and_once(said: str) -> None:
    cause = "ModuleNotFoundError: No module named 'x'"
    assert not_started_reason(said.format(cause=cause), [cause]) == f"{cause} (it ended)"


def test_what_did_not_start_tells_the_cause_first() -> None:
    run = failed("the server ended while it was starting (exit code 1)\nlast line")
    result = result_of(stored(run), sha=SHA, log_tail=LOG)
    assert result.outcome == "not-started"
    assert result.reason == (
        "ModuleNotFoundError: No module named 'lab.top' (the server ended while it was starting (exit code 1))"
    )
    without_log = result_of(stored(failed("it ended\nImportError: cannot import name 'x'")), sha=SHA)
    assert without_log.reason == "ImportError: cannot import name 'x' (it ended)"


def test_a_secret_in_the_log_does_not_come_into_the_reason() -> None:
    log = ("ValueError: bad --api-key sk-abcdefghijklmnopqrstuvwxyz012345 given\x1b[31m",)
    reason = result_of(stored(failed("it ended")), sha=SHA, log_tail=log).reason
    assert "sk-abcdefghijkl" not in reason and "\x1b" not in reason and reason.startswith("ValueError: bad")


@pytest.mark.parametrize(
    "run",
    [
        failed("no stack can be taken: SYS_PTRACE is missing", ready_s=50.0),
        failed(f"{GUARDIAN_KILLED} while it was starting"),
        failed("the disk is full", server_argv=()),
        record(None, status="interrupted", error="interrupted by the user"),
        record(None, status="running"),
        record(None, status="unknown"),
        record(None),
        record(Verdict(outcome="inconclusive", reason="slow")),
    ],
)
def test_whatever_else_ended_without_an_answer_is_inconclusive_with_a_reason(run: object) -> None:
    assert isinstance(run, type(record()))
    result = result_of(stored(run), sha=SHA)
    assert result.outcome == "inconclusive" and result.reason


def test_the_first_exception_with_a_reason_of_its_own_is_the_telling_one() -> None:
    assert telling_line(LOG) == "ModuleNotFoundError: No module named 'lab.top'"
    assert telling_line(LOG[3:]) == "ValueError: ['X'] failed to be inspected. See"
    assert telling_line(("INFO all is well", "WARNING 11-30 x: OSError: [Errno 24]")) is None
    assert telling_line(("torch.OutOfMemoryError: CUDA out of memory",)) == "torch.OutOfMemoryError: CUDA out of memory"


@given(st.lists(st.text(max_size=80), max_size=20))
def test_any_log_is_read(lines: list[str]) -> None:
    found = telling_line(lines)
    assert found is None or any(found in line for line in lines)


def test_the_tail_of_a_log_is_bounded_and_a_missing_one_is_empty(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    assert tail_of(log) == ()
    log.write_text("x\n" * 2_000_000 + "ValueError: last\n", encoding="utf-8")
    lines = tail_of(log)
    assert lines[-1] == "ValueError: last" and len(lines) <= 600_000
    assert tail_of(tmp_path) == ()


@given(st.lists(st.text(alphabet="ab.<>", max_size=6), max_size=6))
def test_functions_are_named_as_written_and_without_their_class(names: list[str]) -> None:
    found = functions_of([sample(WORKER, *names)])
    assert list(found) == sorted(set(found))
    assert set(names) | {name.rsplit(".", 1)[-1] for name in names} == set(found)


def test_an_environment_that_cannot_be_had_is_its_points_own() -> None:
    result = failed_trial(EnvironmentFault("no matching\nwheel"), None, sha=SHA, purpose="end")
    assert (result.outcome, result.reason) == ("not-built", "no matching wheel")
    asked = failed_trial(UsageError("no version tag leads there"), None, sha=SHA, purpose="search")
    assert asked.outcome == "not-built"


def from_disk() -> EnvironmentFault:
    error = EnvironmentFault("the cache cannot be written: No space left on device")
    error.__cause__ = OSError(28, "No space left on device")
    return error


@pytest.mark.parametrize(
    "error",
    [BusyError("held"), from_disk(), DefectError("ours"), RunFolderError("no room"), SamplingRefused("no py-spy")],
)
@pytest.mark.parametrize("purpose", ["end", "search"])
def test_what_every_point_would_meet_is_raised(error: SparkdiagError, purpose: str) -> None:
    assert purpose in ("end", "search")
    with pytest.raises(type(error)):
        failed_trial(error, None, sha=SHA, purpose="end" if purpose == "end" else "search")


def test_at_an_end_what_cannot_be_sampled_or_asked_for_is_raised_and_in_the_search_it_is_skipped() -> None:
    refused = stored(failed("no stack can be taken: denied", ready_s=50.0))
    with pytest.raises(SamplingRefused):
        failed_trial(SamplingRefused("denied"), refused, sha=SHA, purpose="end")
    result = failed_trial(SamplingRefused("denied"), refused, sha=SHA, purpose="search")
    assert (result.outcome, result.reason) == ("inconclusive", "no stack can be taken: denied")
    with pytest.raises(UsageError):
        failed_trial(UsageError("no clone was named"), None, sha=SHA, purpose="end")


def test_a_server_that_was_ready_and_could_not_be_asked_did_start() -> None:
    longer = stored(failed("the prompt does not fit", ready_s=50.0))
    assert failed_trial(ServerError("does not fit"), longer, sha=SHA, purpose="search").outcome == "inconclusive"
    dead = stored(failed("the server ended while it was starting"))
    assert failed_trial(ServerError("ended"), dead, sha=SHA, purpose="search").outcome == "not-started"
    killed = stored(failed(f"{GUARDIAN_KILLED} while it was starting"))
    assert failed_trial(GuardianKilled("x"), killed, sha=SHA, purpose="search").outcome == "inconclusive"
    taken = failed_trial(PortTaken("its port was taken"), dead, sha=SHA, purpose="search")
    assert (taken.outcome, taken.reason) == ("inconclusive", "its port was taken")


def test_an_earlier_run_is_read_from_its_folder(tmp_path: Path) -> None:
    run = record(timings_s=Timings(prompt_to_first_token_s=8.5, total_s=90.0), verdict=COMPLETED)
    (tmp_path / "run.json").write_text(run.model_dump_json(by_alias=True), encoding="utf-8")
    result = result_of_run(tmp_path, SHA)
    assert (result.outcome, result.first_token_s, result.run_dir) == ("completed", 8.5, str(tmp_path.resolve()))
    with pytest.raises(RunFolderError):
        result_of_run(tmp_path / "none", SHA)
