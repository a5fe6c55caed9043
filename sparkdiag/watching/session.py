"""One ``watch`` from its target to its report: look, never touch, say what was seen."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from sparkdiag import __version__
from sparkdiag.errors import SamplingRefused
from sparkdiag.evidence.diagnosis import CANNOT_TELL
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.run import RunRecord
from sparkdiag.evidence.verdict import Verdict
from sparkdiag.harmless.documents import redact_argv
from sparkdiag.observing.gpu import gpu_names
from sparkdiag.observing.observer import Observer
from sparkdiag.recording.folder import RunFolder
from sparkdiag.reproducing.host import describe_host
from sparkdiag.reproducing.progress import View
from sparkdiag.reproducing.running import RunInProgress, kept_whatever_happens, run_clock
from sparkdiag.reproducing.signals import Terminated
from sparkdiag.reproducing.software import software_here
from sparkdiag.scenario.model import Scenario
from sparkdiag.watching.conclusion import conclusion_of, diagnosis_of
from sparkdiag.watching.foreign import ForeignServer, dcp_of, environment_of, identity_of, revision_of
from sparkdiag.watching.needle import drive_needle, prepare_needle
from sparkdiag.watching.request import LOOK_LONGER_S, WatchRequest, runs_folder, watched_scenario
from sparkdiag.watching.target import Target, find_target
from sparkdiag.watching.traffic import traffic_of

LOOK_EVERY_S = 1.0
LAST_LOOK_S = 3.0
"""So long before the end everybody is looked at once more, the seldom sampled too: two looks tell what moved."""
NOT_WANTED = "not wanted, or not permitted"
NO_PROCESS = "none of its processes can be seen from here"


def watch_server(
    request: WatchRequest,
    *,
    view: View,
    api_key: str | None = None,
    on_folder: Callable[[Path], None] = lambda _path: None,
) -> tuple[RunFolder, RunRecord]:
    """Do the whole of ``watch``. What was seen is on disk at every moment, and judged also when it is interrupted.

    Raises ``UsageError`` and ``NoServerFound`` before anything is written, ``SamplingRefused`` where neither a stack
    nor a metric can be had; lets ``KeyboardInterrupt`` and ``Terminated`` through once the folder is finished.
    """
    target = find_target(url=request.url, pid=request.pid, metrics_url=request.metrics_url, remote=request.remote)
    clock = run_clock()
    identity = identity_of(target)
    dcp = dcp_of(target, identity)
    scenario = watched_scenario(request, processes=target.processes, dcp=dcp.size or 1)
    run = _begin(request, target=target, scenario=scenario, view=view, clock=clock)
    on_folder(run.folder.path)
    with kept_whatever_happens(run):
        run.update(revision=revision_of(identity), dcp=dcp, server_argv=identity.argv)
        _observe(run, request, target=target, scenario=scenario, api_key=api_key)
        run.phase("reporting")
        run.time(total_s=clock())
        run.update(status="finished")
    return run.folder, run.record


def _begin(
    request: WatchRequest, *, target: Target, scenario: Scenario, view: View, clock: Callable[[], float]
) -> RunInProgress:
    now = datetime.now(UTC)
    name = "watch" if scenario.name == "watched" else f"watch-{scenario.name}"
    folder = RunFolder.create(
        runs_folder(request), scenario_name=name, short_sha=None, dcp=scenario.server.dcp, now=now
    )
    record = RunRecord(
        sparkdiag_version=__version__,
        started_at=now.isoformat(timespec="seconds"),
        status="running",
        scenario=scenario.model_dump(mode="json", by_alias=True),
        command=redact_argv(request.command),
        environment=environment_of(target)
        | {"pids_in_their_namespace": {str(pid): inner for pid, inner in target.inner_pids.items()}},
        host=describe_host(gpu_names()),
        software=software_here(),
    )
    run = RunInProgress(folder, record, view=view, clock=clock)
    for note in target.notes:
        run.note("target", note)
    run.phase("ready", _found(target))
    view.note(f"run folder: {folder.path}")
    return run


def _found(target: Target) -> str:
    """``4 processes: APIServer 4711 (7 in its container), …``."""
    if not target.processes:
        return NO_PROCESS
    names = [
        f"{process.name} {process.pid}"
        + (f" ({target.inner_pids[process.pid]} in its container)" if process.pid in target.inner_pids else "")
        for process in target.processes
        if process.role != "other"
    ]
    more = f", … and {len(names) - 12} more" if len(names) > 12 else ""
    return f"{target.how}; {len(names)} processes: {', '.join(names[:12])}{more}"


def _observe(
    run: RunInProgress, request: WatchRequest, *, target: Target, scenario: Scenario, api_key: str | None
) -> None:
    server = ForeignServer(target.processes, clock=run.clock)
    stop: KeyboardInterrupt | Terminated | None = None
    verdict: Verdict | None = None
    needle = None
    if request.send_needle:
        needle = prepare_needle(run, request, base_url=target.base_url, scenario=scenario, api_key=api_key)
    can_look = request.take_stacks and bool(target.processes)
    observer = _observer(run, request, target=target, scenario=scenario, take_stacks=can_look)
    try:
        observer.start()
        if needle is not None and can_look and (refused := observer.snapshot().sampling).mode == "none":
            run.note("sampling", f"the needle is judged by the server's counters alone: {refused.reason}")
            observer.stop()
            observer = _observer(run, request, target=target, scenario=scenario, take_stacks=False)
            observer.start()
        _tell_budget(run, observer)
        if needle is not None:
            observation, verdict = drive_needle(run, request, needle, observer=observer, server=server)
        else:
            _look_for(run, request, observer=observer, server=server)
            observation = observer.snapshot()
    except (KeyboardInterrupt, Terminated) as stopped:
        stop, observation = stopped, observer.snapshot()
    finally:
        observer.stop()
    ended = server.poll()
    if ended is not None:
        observation = observation.model_copy(update={"server_exit": ended})
    elif parts := server.ended_parts():
        run.note("process-tree", f"{', '.join(parts)} ended while it was watched; what is said below is of the others")
    if observation.metrics and all(point.error is not None for point in observation.metrics):
        run.note("no-metrics", f"{target.metrics_url}/metrics told nothing: {observation.metrics[-1].error}")
    _conclude(run, observation, prompt=verdict, target=target)
    if stop is not None:
        raise stop


def _tell_budget(run: RunInProgress, observer: Observer) -> None:
    stats = observer.snapshot().sampling
    if stats.wanted and stats.budget_share:
        run.note("sampling", f"looking may cost {stats.budget_share:.1%} of this machine's {stats.cores} cores")


def _observer(
    run: RunInProgress, request: WatchRequest, *, target: Target, scenario: Scenario, take_stacks: bool
) -> Observer:
    return Observer(
        target.roots[0] if target.roots else None,
        also_pids=target.roots[1:],
        scenario=scenario,
        base_url=target.metrics_url,
        clock=run.clock,
        sink=run.observed,
        server_is_ours=False,
        take_stacks=take_stacks,
        why_no_stacks=target.how if not target.processes else NOT_WANTED,
        from_ready=not request.send_needle,
    )


def _look_for(run: RunInProgress, request: WatchRequest, *, observer: Observer, server: ForeignServer) -> None:
    """Until the time is over, or the server is gone."""
    run.phase("observing", f"for {request.patience_s:.0f} s; nothing is sent, paused or signalled")
    began_s, for_s, asked_last = run.clock(), request.patience_s, False
    while True:
        observation = observer.snapshot()
        reason = f"looked for {run.clock() - began_s:.0f} of {for_s:.0f} s"
        run.view.update(observation, Verdict(outcome="inconclusive", reason=reason))
        left_s = began_s + for_s - run.clock()
        if server.poll() is not None:
            return
        if left_s <= 0 and not (request.for_s is None and for_s < LOOK_LONGER_S and _is_open(observation)):
            return
        if left_s <= 0:
            for_s, asked_last = LOOK_LONGER_S, False
            run.note("target", f"nothing is certain yet: looking on, for {LOOK_LONGER_S:.0f} s in all")
            continue
        if left_s <= LAST_LOOK_S and not asked_last:
            observer.look_now()
            asked_last = True
        time.sleep(min(LOOK_EVERY_S, left_s))


def _is_open(observation: Observation) -> bool:
    """Whether more time may tell: something stands still, and not for long enough yet."""
    if not any(sample.usable for sample in observation.samples):
        return False
    found = diagnosis_of(observation)
    return found.finding == "unknown" and found.kind not in CANNOT_TELL


def _conclude(run: RunInProgress, observation: Observation, *, prompt: Verdict | None, target: Target) -> None:
    """Diagnosis and verdict, into the folder. Raises ``SamplingRefused`` where nothing at all could be learnt."""
    found = conclusion_of(observation, prompt=prompt, why_no_stacks=_why_no_stacks(observation, target))
    stats, client = observation.sampling, observation.client
    run.folder.append(stats)
    if observation.server_exit is not None:
        run.folder.append(observation.server_exit)
    if client.sent is not None:
        run.time(
            prompt_to_verdict_s=observation.now_s - client.sent.t_s,
            prompt_to_first_token_s=client.time_to_first_token_s,
        )
    run.update(verdict=found.verdict, diagnosis=found.diagnosis)
    told = found.diagnosis.looks or traffic_of(observation.metrics) is not None or observation.server_exit is not None
    if stats.mode == "none" and stats.wanted and not told:
        raise SamplingRefused(
            f"nothing can be told: no stack can be taken ({stats.reason}), and the server's /metrics tell nothing",
            remedy=stats.remedy,
        )


def _why_no_stacks(observation: Observation, target: Target) -> str:
    stats = observation.sampling
    if not target.processes:
        return target.how
    if stats.reason is not None:
        return stats.reason
    errors = ", ".join(f"{cause} ({count} times)" for cause, count in stats.errors.items())
    return f"looks at its processes failed: {errors}" if errors else "it ended before the first look came back"
