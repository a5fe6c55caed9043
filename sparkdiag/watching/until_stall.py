"""``watch --until-stall`` over a living server: the target, real sources, and a vigil over them."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

from sparkdiag import __version__
from sparkdiag.errors import SamplingRefused, SparkdiagError
from sparkdiag.evidence.run import RunRecord
from sparkdiag.harmless.documents import redact_argv
from sparkdiag.observing.gpu import gpu_names
from sparkdiag.observing.metrics import MetricsReader
from sparkdiag.observing.permission import ptrace_facts, ptrace_remedy
from sparkdiag.observing.pyspy import PySpy, can_sample, find_pyspy
from sparkdiag.observing.titles import is_sampled
from sparkdiag.reproducing.host import describe_host
from sparkdiag.reproducing.software import software_here
from sparkdiag.scenario.model import Scenario
from sparkdiag.watching.captures import RunFolderCaptures
from sparkdiag.watching.foreign import dcp_of, environment_of, identity_of, revision_of
from sparkdiag.watching.live_stacks import LiveStacks
from sparkdiag.watching.looks import judge_samples
from sparkdiag.watching.patience import Limits, Patience
from sparkdiag.watching.request import WatchRequest, runs_folder, watched_scenario
from sparkdiag.watching.target import Target, find_target
from sparkdiag.watching.vigil import Tell, keep_vigil
from sparkdiag.watching.vigil_seams import VigilEvent, VigilSummary

DUMP_TIMEOUT_S = 8.0
"""Of one dump in a vigil's look: a whole look is bounded, whatever a process does."""


class MonotonicClock:
    """The system's, from zero. It stands still while the machine is suspended (clock_gettime(2))."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()

    def now_s(self) -> float:
        """Seconds since this was made."""
        return time.monotonic() - self._began_s

    def sleep(self, seconds: float) -> None:
        """Ends early only by what a signal raises."""
        time.sleep(seconds)


def watch_until_stall(
    request: WatchRequest,
    *,
    tell: Tell,
    patience: Patience | None = None,
    limits: Limits | None = None,
) -> VigilSummary:
    """Keep watch over the server until Ctrl-C, SIGTERM or what ``limits`` say; captures go to the runs folder.

    Raises ``UsageError`` and ``NoServerFound`` before anything is watched, and ``SamplingRefused`` where neither
    stacks nor metrics can be had.
    """
    target = find_target(url=request.url, pid=request.pid, metrics_url=request.metrics_url, remote=request.remote)
    clock = MonotonicClock()
    stacks = _stacks(request, target, clock=clock)
    if stacks is None and target.metrics_url is None:
        raise SamplingRefused(
            f"nothing can be told: no stack can be taken, and no address of its /metrics is known ({target.how})",
            remedy="sparkdiag watch --until-stall --url http://127.0.0.1:8000",
        )
    refusal = "no stacks are taken" if stacks is None else _refusal(target, clock=clock)
    for text in (target.how, *target.notes, *filter(None, (refusal,))):
        tell(VigilEvent(clock.now_s(), "watching", text))
    metrics = MetricsReader(target.metrics_url, clock=clock.now_s) if target.metrics_url is not None else None
    sink = RunFolderCaptures(runs_folder(request), new_record=_records(request, target), dcp=_dcp(target))
    try:
        return keep_vigil(
            metrics=metrics,
            stacks=stacks,
            clock=clock,
            judge=judge_samples,
            sink=sink,
            patience=patience,
            limits=limits or Limits(end_after_s=request.for_s),
            tell=tell,
        )
    finally:
        if metrics is not None:
            metrics.close()


def _stacks(request: WatchRequest, target: Target, *, clock: MonotonicClock) -> LiveStacks | None:
    binary = find_pyspy()
    if not request.take_stacks or not target.processes or binary is None:
        return None
    pyspy = PySpy(
        binary,
        clock=clock.now_s,
        timeout_s=min(DUMP_TIMEOUT_S, request.scenario.sampling.dump_timeout_s),
        kept_names=request.scenario.kept_locals,
    )
    return LiveStacks(target.roots, find_roots=lambda: _roots_again(request), pyspy=pyspy)


def _refusal(target: Target, *, clock: MonotonicClock) -> str:
    """Why no stack can be taken, and what to type; empty where one can. Then stalls are kept, and none called so."""
    binary = find_pyspy()
    process = next((process for process in target.processes if is_sampled(process.role)), None)
    if binary is None or process is None:
        return ""
    fault = can_sample(PySpy(binary, clock=clock.now_s, timeout_s=DUMP_TIMEOUT_S), process.pid).fault
    if fault is None or fault.cause != "permission":
        return ""
    remedy = ptrace_remedy(ptrace_facts(), pyspy=binary)
    return f"no stack can be taken ({fault.line}), so nothing will be called stalled; remedy: {remedy}"


def _roots_again(request: WatchRequest) -> tuple[int, ...]:
    """Of the server that stands in the place of one that is gone; a process id alone names nobody any more."""
    if request.url is None:
        return ()
    try:
        return find_target(url=request.url, pid=None, metrics_url=None, remote=request.remote).roots
    except SparkdiagError:
        return ()


def _dcp(target: Target) -> int:
    sizes = [process.ranks.dcp for process in target.processes if process.ranks.dcp is not None]
    return max(sizes, default=0) + 1


def _records(request: WatchRequest, target: Target) -> Callable[[], RunRecord]:
    """What a capture's record says of the server, read once: at the stall it may answer nobody."""
    identity = identity_of(target)
    dcp = dcp_of(target, identity)
    scenario: Scenario = watched_scenario(request, processes=target.processes, dcp=dcp.size or 1)
    host, software = describe_host(gpu_names()), software_here()

    def record() -> RunRecord:
        return RunRecord(
            sparkdiag_version=__version__,
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            status="running",
            scenario=scenario.model_dump(mode="json", by_alias=True),
            command=redact_argv(request.command),
            environment=environment_of(target),
            host=host,
            software=software,
            server_argv=identity.argv,
            revision=revision_of(identity),
            dcp=dcp,
        )

    return record
