"""One reproduction from request to report: environment, server, prompt, watching, verdict, everything stopped."""

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from sparkdiag import __version__
from sparkdiag.environment.cache import hold
from sparkdiag.environment.model import Environment
from sparkdiag.environment.prepare import prepare
from sparkdiag.environment.progress import ProgressSink
from sparkdiag.environment.spec import parse_spec
from sparkdiag.evidence.run import Host, RunRecord
from sparkdiag.evidence.stacks import NOT_SAMPLED
from sparkdiag.evidence.verdict import Baseline
from sparkdiag.harmless.documents import redact_argv, redact_env
from sparkdiag.harmless.secrets import LineRedactor
from sparkdiag.observing.gpu import gpu_names
from sparkdiag.observing.permission import require_pyspy
from sparkdiag.recording.folder import RunFolder
from sparkdiag.reporting.estimate import estimate
from sparkdiag.reproducing.baseline import baseline_of, find_baseline
from sparkdiag.reproducing.host import describe_host
from sparkdiag.reproducing.predicted import keep_route
from sparkdiag.reproducing.progress import View
from sparkdiag.reproducing.request import ReproRequest, control_request, launched_scenario
from sparkdiag.reproducing.running import RunInProgress, kept_whatever_happens, run_clock
from sparkdiag.reproducing.signals import Terminated
from sparkdiag.reproducing.software import software_of
from sparkdiag.reproducing.trial import prompt_and_judge
from sparkdiag.scenario.model import Scenario
from sparkdiag.serving.command import server_command
from sparkdiag.serving.launch import LaunchedServer, launch
from sparkdiag.serving.machine_lock import machine_lock
from sparkdiag.serving.priority import lower_priority
from sparkdiag.serving.private_folder import PROBE_FOLDER, unused_path
from sparkdiag.serving.readiness import PortTaken, free_port

STOP_GRACE_S = 10.0
LAB_READY_S, LAB_VERDICT_S = 60.0, 60.0
"""What the lab takes on two cores (docs/measured.md). Of other servers nothing is known beforehand."""


def reproduce(
    request: ReproRequest, *, view: View, on_folder: Callable[[Path], None] = lambda _path: None
) -> tuple[RunFolder, RunRecord]:
    """Do the whole of ``repro``; what was learnt is on disk at every moment, also when this raises.

    ``on_folder`` hears where, as soon as the run's folder is there: whoever catches what is raised may read it.
    Raises a ``SparkdiagError`` when the environment or the server cannot be had, and lets ``KeyboardInterrupt`` and
    ``Terminated`` through after everything it started is gone.
    """

    def waiting(waited_s: float, holder: str) -> None:
        view.note(f"waiting for the machine ({waited_s:.0f} s): {holder} holds it")

    what = f"repro {request.scenario.name} at DCP {request.scenario.server.dcp}"
    if not request.probe and request.take_stacks:
        # Stacks can then come from py-spy alone: better to know before a server is loaded for minutes.
        require_pyspy()
    with machine_lock(what=what, on_wait=waiting, no_wait=not request.wait_for_machine):
        clock = run_clock()
        environment = _environment(request, view=view)
        environment_s = clock()
        with hold(environment):
            control = None
            if request.control:
                control = _control(request, environment=environment, environment_s=environment_s, view=view)
                clock = run_clock()  # the control's time is not this run's
            return _one_run(
                request,
                environment=environment,
                environment_s=environment_s,
                control=control,
                view=view,
                clock=clock,
                on_folder=on_folder,
            )


def _environment(request: ReproRequest, *, view: View) -> Environment:
    view.phase("preparing", request.env_spec)
    return environment_for(request, progress=view.progress_sink())


def environment_for(request: ReproRequest, *, progress: ProgressSink) -> Environment:
    """The environment that the run is made in, built where it is not there yet. Raises what ``prepare`` raises."""
    return prepare(
        parse_spec(request.env_spec),
        scenario=request.scenario,
        revision=request.revision,
        repo=Path(request.repo) if request.repo else None,
        progress=progress,
    )


def _control(request: ReproRequest, *, environment: Environment, environment_s: float, view: View) -> Baseline | None:
    """Run the DCP 1 twin in a folder of its own; no baseline when it does not complete."""
    view.note("control run first: the same prompt at DCP 1")
    folder, record = _one_run(
        control_request(request),
        environment=environment,
        environment_s=environment_s,
        control=None,
        view=view,
        clock=run_clock(),
    )
    verdict = record.verdict
    if verdict is None or verdict.outcome != "completed" or record.timings_s.prompt_to_first_token_s is None:
        view.note(f"the control run did not complete, so it is no baseline (see {folder.path})")
        return None
    return baseline_of(record, run_name=folder.path.name)


def _one_run(
    request: ReproRequest,
    *,
    environment: Environment,
    environment_s: float,
    control: Baseline | None,
    view: View,
    clock: Callable[[], float],
    on_folder: Callable[[Path], None] = lambda _path: None,
) -> tuple[RunFolder, RunRecord]:
    host = describe_host(gpu_names())
    run = _begin(request, environment=environment, host=host, view=view, clock=clock)
    on_folder(run.folder.path)
    run.time(environment_s=environment_s)
    with kept_whatever_happens(run):
        keep_route(run, environment)
        baseline = (
            control
            or request.baseline
            or find_baseline(
                request.scenario,
                environment=environment,
                host=host,
                runs_dir=Path(request.runs_dir),
                given_s=request.baseline_s,
                say=lambda text: run.note("baseline", text),
            )
        )
        if baseline is not None:
            run.note("baseline", f"healthy time to first token {baseline.seconds:.1f} s ({baseline.source})")
        try:
            _serve_and_watch(run, request, environment=environment, baseline=baseline)
        except PortTaken:
            run.note(
                "serving", "the server's port was taken by another program meanwhile; starting it again on another"
            )
            _serve_and_watch(run, request, environment=environment, baseline=baseline)
        run.phase("reporting")
        run.time(total_s=clock())
        run.update(status="finished")
    return run.folder, run.record


def _begin(
    request: ReproRequest, *, environment: Environment, host: Host, view: View, clock: Callable[[], float]
) -> RunInProgress:
    scenario, now = request.scenario, datetime.now(UTC)
    sha = environment.revision_sha or environment.vllm_version or "unknown"
    folder = RunFolder.create(
        Path(request.runs_dir),
        scenario_name=scenario.name,
        short_sha=sha[:10],
        dcp=scenario.server.dcp,
        now=now,
    )
    record = RunRecord(
        sparkdiag_version=__version__,
        started_at=now.isoformat(timespec="seconds"),
        status="running",
        scenario=scenario.model_dump(mode="json", by_alias=True),
        command=redact_argv(request.command),
        environment=environment.model_dump(mode="json", exclude={"env", "expected_files"}),
        host=host,
        software=software_of(environment),
    )
    run = RunInProgress(folder, record, view=view, clock=clock)
    for note in environment.notes:
        run.note("environment", note)
    if not request.take_stacks:
        run.note("sampling", NOT_SAMPLED)
    if request.launch_blocking:
        run.note("serving", "started with CUDA_LAUNCH_BLOCKING=1: each kernel is waited for where it is launched")
    if request.probe_sync:
        run.note(
            "serving",
            "the probe waits for the device around each recorded kernel: their times are exact, the server slower",
        )
    view.note(f"run folder: {folder.path}")
    return run


def _serve_and_watch(
    run: RunInProgress, request: ReproRequest, *, environment: Environment, baseline: Baseline | None
) -> None:
    private_dir = unused_path()
    server = _launch(run, request, environment=environment, private_dir=private_dir)
    try:
        server.wait_ready(request.scenario.server.ready_timeout_s, on_wait=run.loading)
        run.time(ready_s=run.clock() - run.launched_s)
        run.phase("ready", f"after {run.clock() - run.launched_s:.0f} s")
        if request.take_stacks and not request.keep_priority:
            # Only now: loading is not to be slowed. Where nobody samples, nobody needs to be yielded to.
            priority = lower_priority(server.root_pid)
            run.update(server_priority=priority)
            run.note("serving", priority.because)
        prompt_and_judge(
            run,
            request,
            server=server,
            probe_dir=_probe_dir(request, private_dir),
            environment=environment,
            baseline=baseline,
        )
    finally:
        _stop(run, server)


def _probe_dir(request: ReproRequest, private_dir: Path) -> Path | None:
    return private_dir / PROBE_FOLDER if request.probe else None


def _launch(
    run: RunInProgress, request: ReproRequest, *, environment: Environment, private_dir: Path
) -> LaunchedServer:
    server = request.scenario.server
    command = server_command(
        scenario=launched_scenario(request),
        environment=environment,
        port=free_port(),
        probe_dir=_probe_dir(request, private_dir),
        run_private_dir=private_dir,
        inherited=os.environ,
        cores=sorted(os.sched_getaffinity(0)),
        ptracer_pid=os.getpid(),
    )
    run.update(server_argv=redact_argv(command.argv), server_env=redact_env(command.env))
    run.phase("launching", f"vLLM {environment.vllm_version or '?'}, TP {server.tp}, DCP {server.dcp}")
    if request.scenario.lab:
        run.view.note(f"estimate: {_lab_estimate(request.scenario)}")
    run.launched_s = run.clock()
    return launch(
        command,
        log_path=run.folder.server_log,
        private_dir=private_dir,
        make=(PROBE_FOLDER,) if request.probe else (),
        redact=LineRedactor(),
        clock=run.clock,
    )


def _lab_estimate(scenario: Scenario) -> str:
    return estimate(
        environment_s=None,
        ready_s=LAB_READY_S,
        verdict_within_s=LAB_VERDICT_S,
        prompt_tokens=scenario.prompt.tokens,
        dcp=scenario.server.dcp,
    )


def _stop(run: RunInProgress, server: LaunchedServer) -> None:
    """End the whole tree and say what that took; a process that could not be ended is an error, not a detail."""
    try:
        run.phase("stopping")
        report = server.stop(STOP_GRACE_S)
    except (KeyboardInterrupt, Terminated):
        _kill(run, server)
        raise
    run.time(shutdown_s=report.took_s)
    if report.left:
        word = "pid" if len(report.left) == 1 else "pids"
        run.note("serving", f"could not be ended: {word} {', '.join(map(str, report.left))}")
    if report.killed:
        ended = server.poll()
        why = "killed with sparkdiag's guardian" if ended and ended.guardian_killed else "killed, not ended by SIGTERM"
        run.note("serving", f"{why}: {_counted(len(report.killed), 'process', 'processes')}")
    if report.removed:
        run.note("serving", f"removed what the server left behind: {_counted(len(report.removed), 'file', 'files')}")
    if report.log_problem:
        run.note("serving", report.log_problem)


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _kill(run: RunInProgress, server: LaunchedServer) -> None:
    """Asked again while stopping: no more grace. "Everything started is stopped" is what the user is told last, so not
    even a third signal leads out of here before that is so; a stop is bounded in time."""
    told = False
    while True:
        with suppress(KeyboardInterrupt, Terminated):
            if not told:
                told = True
                run.note("serving", "asked again: what has not ended yet is killed")
            server.stop(0)
            return
