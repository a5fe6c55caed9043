"""Trials for real, over the fake vLLM tree: what each kind of end is for the search, and what it leaves behind."""

import sys
from pathlib import Path

import pytest

from sparkdiag.bisecting.trials import runner as runner_module
from sparkdiag.bisecting.trials.result import result_of_run
from sparkdiag.bisecting.trials.runner import ReproRunner
from sparkdiag.bisecting.trials.stack_difference import stack_difference
from sparkdiag.environment.child import StepFailed, run_step
from sparkdiag.environment.plan import Step
from sparkdiag.errors import BusyError, EnvironmentFault, SamplingRefused
from sparkdiag.evidence.bisection import Signature, TrialResult
from sparkdiag.evidence.stacks import Frame
from sparkdiag.recording.folder import RECORD
from sparkdiag.recording.read import read_run
from sparkdiag.reproducing import session
from tests.integration.bisect_case import UNPROVED, bisect_request, bisection_folder, serve_modes
from tests.integration.test_reproducing_session import Silent, children

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

MODES = {
    "a" * 40: "healthy",
    "b" * 40: "crash-while-loading",
    "c" * 40: UNPROVED,
    "d" * 40: "crash-in-request",
    "e" * 40: "crawling",
}
HEALTHY, NOT_STARTED, NOT_PROVED, DYING, CRAWLING = MODES
STALL = Signature(kind="torch-fallback", function="_fp8_mqa_logits_torch", role="worker")


@pytest.fixture
def view() -> Silent:
    return Silent()


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, view: Silent) -> ReproRunner:
    serve_modes(monkeypatch, MODES)
    folder = bisection_folder(tmp_path)
    return ReproRunner(bisect_request(folder.path, MODES), folder=folder, view=view)


def run_dir(tmp_path: Path, result: TrialResult) -> Path:
    (bisection,) = tmp_path.glob("*-bisect-*")
    assert result.run_dir is not None
    return bisection / result.run_dir


def innermost(folder: Path) -> list[Frame]:
    mains = [sample.main_thread for sample in read_run(folder).observation.samples]
    return [main.frames[0] for main in mains if main is not None and main.frames]


def test_ends_with_their_controls_and_the_stack_difference(runner: ReproRunner, tmp_path: Path) -> None:
    healthy = runner.run(HEALTHY, purpose="end", healthy=None)
    assert (healthy.outcome, healthy.needle, healthy.signature) == ("completed", "retrieved", None)
    assert healthy.first_token_s is not None and healthy.watched
    stalled = runner.run(CRAWLING, purpose="end", healthy=healthy)
    assert (stalled.outcome, stalled.mode, stalled.signature) == ("stalled", "crawling", STALL)
    assert {"_fp8_mqa_logits_torch", "WorkerProc.execute_model", "execute_model"} <= set(stalled.functions)
    assert stalled.samples >= 3 and stalled.decided_s is not None
    stored = read_run(run_dir(tmp_path, stalled))
    assert stored.record.verdict is not None and stored.record.verdict.baseline is not None
    assert stored.record.verdict.baseline.seconds == healthy.first_token_s
    assert HEALTHY[:10] in stored.record.verdict.baseline.source
    control = runner.run(CRAWLING, purpose="control", healthy=healthy)
    assert (control.outcome, control.watched, control.signature, control.samples) == ("stalled", False, None, 0)
    unwatched = run_dir(tmp_path, control)
    assert "not sampled, by request" in (unwatched / "report.md").read_text(encoding="utf-8")
    assert read_run(unwatched).observation.samples == ()
    shares = stack_difference(run_dir(tmp_path, stalled), run_dir(tmp_path, healthy))
    # A healthy run of a second may be sampled once or never, wherever it was: what differs most is not known here.
    differences = [abs(share.share_with - share.share_without) for share in shares]
    assert differences == sorted(differences, reverse=True)
    seen = {frame.name for one in (healthy, stalled) for frame in innermost(run_dir(tmp_path, one))}
    assert {share.function for share in shares} <= seen
    assert result_of_run(run_dir(tmp_path, stalled), CRAWLING).signature == STALL
    assert children() == []


def test_an_unwatched_healthy_run_completes(runner: ReproRunner) -> None:
    result = runner.run(HEALTHY, purpose="control", healthy=None)
    assert (result.outcome, result.needle, result.watched, result.samples) == ("completed", "retrieved", False, 0)


def test_a_server_that_does_not_start_tells_why(runner: ReproRunner, tmp_path: Path) -> None:
    result = runner.run(NOT_STARTED, purpose="search", healthy=None)
    assert result.outcome == "not-started"
    assert result.reason.startswith("RuntimeError: fake: cannot load the model")
    assert (run_dir(tmp_path, result) / "report.md").is_file()
    again = result_of_run(run_dir(tmp_path, result), NOT_STARTED)
    assert (again.outcome, again.reason) == (result.outcome, result.reason)
    assert children() == []


def test_what_is_not_proved_to_be_the_revision_shows_nothing(runner: ReproRunner) -> None:
    result = runner.run(NOT_PROVED, purpose="search", healthy=None)
    assert result.outcome == "not-proved"
    assert "differs from what the revision holds" in result.reason


def test_a_server_that_dies_under_the_prompt_has_crashed(runner: ReproRunner) -> None:
    result = runner.run(DYING, purpose="search", healthy=None)
    assert (result.outcome, result.signature) == ("crashed", None)
    assert "ended by itself" in result.reason


def test_the_culprit_is_confirmed_with_blocking_launches(runner: ReproRunner, tmp_path: Path) -> None:
    healthy = TrialResult(sha=HEALTHY, outcome="completed", first_token_s=0.5)
    result = runner.run(CRAWLING, purpose="confirm", healthy=healthy)
    assert result.signature == STALL
    record = read_run(run_dir(tmp_path, result)).record
    assert record.server_env["CUDA_LAUNCH_BLOCKING"] == "1"
    assert "CUDA_LAUNCH_BLOCKING=1" in (run_dir(tmp_path, result) / "report.md").read_text(encoding="utf-8")


def test_interrupted_while_it_runs_it_leaves_a_run_that_says_so_and_no_process(
    runner: ReproRunner, tmp_path: Path, view: Silent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(name: str, detail: str = "") -> None:
        if name == "prompting":
            raise KeyboardInterrupt

    monkeypatch.setattr(view, "phase", interrupt)
    with pytest.raises(KeyboardInterrupt):
        runner.run(HEALTHY, purpose="search", healthy=None)
    assert children() == []
    (record,) = tmp_path.glob(f"*/trials/*/{RECORD}")
    assert result_of_run(record.parent, HEALTHY).reason.startswith("interrupted")


def test_the_next_environments_are_prepared_while_the_server_loads_and_not_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, view: Silent
) -> None:
    prepared: dict[str, tuple[str, ...]] = {}
    serve_modes(monkeypatch, MODES, heard=lambda sha: prepared.update({sha: tuple(view.phases)}))
    folder = bisection_folder(tmp_path)
    runner = ReproRunner(bisect_request(folder.path, MODES), folder=folder, view=view)
    before = runner.minutes(DYING)
    runner.prefetch([DYING, CRAWLING])
    assert runner.run(HEALTHY, purpose="search", healthy=None).outcome == "completed"
    assert set(prepared) == {HEALTHY, DYING, CRAWLING}
    for sha in (DYING, CRAWLING):
        assert "launching" in prepared[sha] and "prompting" not in prepared[sha]
    assert runner.minutes(DYING) < before  # the trial that ended tells how long one takes here


@pytest.mark.parametrize("error", [BusyError("another run"), SamplingRefused("no py-spy, and no probe")])
def test_what_every_point_would_meet_ends_the_search(
    runner: ReproRunner, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(*_args: object, **_kwargs: object) -> None:
        raise error

    monkeypatch.setattr(session, "machine_lock", refuse)
    with pytest.raises(type(error)):
        runner.run(HEALTHY, purpose="search", healthy=None)


@pytest.mark.parametrize("gone", ["clone", "base"])
def test_a_clone_or_base_that_is_gone_is_not_a_points_own_failing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, view: Silent, gone: str
) -> None:
    """Else a search that goes on while a disk is not mounted would skip all that is left, and be over."""
    folder = bisection_folder(tmp_path)
    request = bisect_request(folder.path, MODES)
    base = tmp_path / "no-venv" if gone == "base" else Path(sys.executable)
    axis = request.axis.model_copy(update={"repo": str(tmp_path / "no-clone") if gone == "clone" else None})
    repro = request.repro.model_copy(update={"env_spec": f"existing:{base}"})
    runner = ReproRunner(request.model_copy(update={"axis": axis, "repro": repro}), folder=folder, view=view)

    def not_built(*_args: object, **_kwargs: object) -> None:
        raise EnvironmentFault("it cannot be had")

    monkeypatch.setattr(runner_module, "reproduce", not_built)
    with pytest.raises(EnvironmentFault, match="no-clone" if gone == "clone" else "no-venv"):
        runner.run(HEALTHY, purpose="search", healthy=None)


def test_an_environment_that_one_point_cannot_have_is_a_skip(
    runner: ReproRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_built(*_args: object, **_kwargs: object) -> None:
        raise EnvironmentFault("it cannot be had")

    monkeypatch.setattr(runner_module, "reproduce", not_built)
    assert runner.run(HEALTHY, purpose="search", healthy=None).outcome == "not-built"


@pytest.mark.parametrize(
    ("said", "is_a_skip"),
    [("dns error: failed to lookup address", False), ("No space left on device", False), ("it has no setup.py", True)],
)
def test_an_index_out_of_reach_or_a_full_disk_ends_the_search(
    runner: ReproRunner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str, is_a_skip: bool
) -> None:
    """Else a network that is down for a minute would cost every environment that is not built yet."""
    log = tmp_path / "uv.log"
    log.touch()
    step = Step(phase="packages", title="packages", argv=("/bin/sh", "-c", f"echo '{said}'; exit 2"))

    def build(*_args: object, **_kwargs: object) -> None:
        run_step(step, folder=tmp_path, log=log, on_tick=lambda _pid: None)

    monkeypatch.setattr(runner_module, "reproduce", build)
    if is_a_skip:
        assert runner.run(HEALTHY, purpose="search", healthy=None).outcome == "not-built"
        return
    with pytest.raises(StepFailed):
        runner.run(HEALTHY, purpose="search", healthy=None)
