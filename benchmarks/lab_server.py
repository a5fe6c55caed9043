"""One real lab server for many prompts, from sparkdiag's own parts, put together as ``repro`` does."""

import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.asked import say
from benchmarks.autogroup import set_nice
from sparkdiag.driving.client import ServerClient
from sparkdiag.driving.prompt import build_prompt
from sparkdiag.environment.cache import hold
from sparkdiag.environment.model import Environment
from sparkdiag.environment.prepare import prepare
from sparkdiag.environment.progress import SilentProgress
from sparkdiag.environment.spec import parse_spec
from sparkdiag.errors import ServerError
from sparkdiag.evidence.client import ClientEvent, ResponseEnd
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.verdict import Baseline, Verdict
from sparkdiag.harmless.secrets import LineRedactor
from sparkdiag.observing.metrics import MetricsReader
from sparkdiag.observing.observer import Observer
from sparkdiag.recording.folder import RunFolder
from sparkdiag.reproducing.choice import LAB_ENVIRONMENT, LAB_SCENARIO
from sparkdiag.reproducing.driver import Driver
from sparkdiag.reproducing.watch import watch
from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.model import Scenario
from sparkdiag.scenario.overrides import override
from sparkdiag.serving.command import server_command
from sparkdiag.serving.launch import LaunchedServer, launch
from sparkdiag.serving.machine_lock import machine_lock
from sparkdiag.serving.priority import lower_priority
from sparkdiag.serving.private_folder import PROBE_FOLDER, unused_path
from sparkdiag.serving.readiness import free_port

PROMPT_TIMEOUT_S = 300.0
IDLE_TIMEOUT_S = 120.0
SETTLE_S = 3.0
"""Until a new observer has seen every process and has asked whether it may sample."""


class Quiet:
    """Hears of every look, and shows nothing: a terminal's own cost is not the question."""

    def update(self, observation: Observation, verdict: Verdict) -> None:
        """Not shown."""


class Lab:
    """A ready server and how to ask it. Every prompt is new to it (a nonce at its front), so nothing comes cached."""

    def __init__(self, server: LaunchedServer, *, scenario: Scenario, folder: RunFolder, private_dir: Path) -> None:
        self.server = server
        self.scenario = scenario
        self.clock = time.monotonic
        self._folder = folder
        self._probe_dir = private_dir / PROBE_FOLDER

    def first_token_s(self) -> float:
        """Seconds from the prompt to its first token, with nobody looking."""
        ended = threading.Event()
        driver = self._driver(lambda event: ended.set() if isinstance(event, ResponseEnd) else None)
        driver.start()
        if not ended.wait(PROMPT_TIMEOUT_S):
            driver.cancel(timeout_s=5)
        return _first_token_s(driver)

    def first_token_watched_s(self, baseline: Baseline) -> float:
        """The same while sparkdiag samples, judges once a second and writes a run folder, as ``repro`` does."""
        driver, verdict, _took_s = self._watched(baseline)
        if verdict.outcome == "stalled":
            raise ServerError(
                f"a healthy prefill was called a stall ({verdict.mode}) against {baseline.seconds:.1f} s",
                remedy="wait until the machine is quiet; --out DIR keeps the evidence",
            )
        return _first_token_s(driver)

    def verdict(self, baseline: Baseline | None) -> tuple[Verdict, float]:
        """The verdict that held, and the seconds from the prompt to it; what is in flight is cancelled."""
        _driver, verdict, took_s = self._watched(baseline)
        self.wait_idle()
        return verdict, took_s

    @contextmanager
    def prefill_in_flight(self) -> Iterator[Callable[[], bool]]:
        """A prompt is sent before the block and cancelled after it; what is yielded tells whether it is in flight."""
        driver = self._driver(lambda _event: None)
        driver.start()
        try:
            yield lambda: driver.outcome().in_flight
        finally:
            driver.cancel(timeout_s=5)
        self.wait_idle()

    def workers(self) -> tuple[int, ...]:
        """Pids of the processes in which the model runs."""
        observer = self._observer()
        observer.start()
        try:
            return tuple(process.pid for process in observer.snapshot().workers)
        finally:
            observer.stop()

    def as_in_a_run(self) -> str:
        """Do with the server's priority what ``repro`` does by default; returns what that was."""
        return lower_priority(self.server.root_pid).because

    def yields(self, nice: int) -> None:
        """Set the server's own scheduling group to this nice value."""
        set_nice(self.server.root_pid, nice)

    def wait_idle(self) -> None:
        """Until the server has let go of every request, by its own count."""
        reader = MetricsReader(self.server.base_url, clock=self.clock)
        until_s = time.monotonic() + IDLE_TIMEOUT_S
        try:
            while time.monotonic() < until_s:
                point, _capacity = reader.read()
                if point.requests_running == 0 and not point.requests_waiting:
                    return
                time.sleep(0.5)
        finally:
            reader.close()
        raise ServerError(
            f"the server did not let go of a cancelled request within {IDLE_TIMEOUT_S:.0f} s", remedy="run it again"
        )

    def _observer(self) -> Observer:
        return Observer(
            self.server.root_pid,
            scenario=self.scenario,
            base_url=self.server.base_url,
            clock=self.clock,
            sink=self._folder.append,
            in_process_dir=self._probe_dir,
            server_is_ours=True,
        )

    def _driver(self, sink: Callable[[ClientEvent], None]) -> Driver:
        client = ServerClient(self.server.base_url, model=self.scenario.server.served_model_name)
        nonce = secrets.token_hex(8)
        prompt = build_prompt(self.scenario.prompt, nonce=nonce, count_tokens=client.tokenize_count)
        return Driver(client, prompt, scenario=self.scenario, nonce=nonce, clock=self.clock, sink=sink)

    def _watched(self, baseline: Baseline | None) -> tuple[Driver, Verdict, float]:
        observer = self._observer()
        observer.start()
        try:
            time.sleep(SETTLE_S)
            driver = self._driver(self._folder.append)
            began_s = self.clock()
            driver.start()
            try:
                _observation, verdict = watch(
                    observer,
                    driver,
                    self.server,
                    scenario=self.scenario,
                    baseline=baseline,
                    view=Quiet(),
                    wait=time.sleep,
                )
                took_s = self.clock() - began_s
            finally:
                driver.cancel(timeout_s=5)
        finally:
            observer.stop()
        return driver, verdict, took_s


def _first_token_s(driver: Driver) -> float:
    outcome = driver.outcome()
    seconds = outcome.time_to_first_token_s
    if seconds is None or outcome.score != "retrieved":
        why = outcome.end.error if outcome.end is not None else "no answer in time"
        raise ServerError(
            f"a healthy prompt did not bring the right answer: {why or outcome.score_because}",
            remedy="sparkdiag repro --dcp 1 (it should complete and retrieve the needle)",
        )
    return seconds


def lab_scenario(*, dcp: int, prompt_tokens: int | None) -> Scenario:
    """The lab's scenario with these two changed."""
    return override(load_scenario(LAB_SCENARIO), dcp=dcp, prompt_tokens=prompt_tokens)


def lab_environment(scenario: Scenario) -> Environment:
    """The lab's environment: found, or built (minutes)."""
    return prepare(parse_spec(LAB_ENVIRONMENT), scenario=scenario, revision=None, repo=None, progress=SilentProgress())


@contextmanager
def lab_server(scenario: Scenario, environment: Environment, *, out: Path) -> Iterator[Lab]:
    """A ready server, warmed up by nothing; ended with its whole tree. ``out``: where its log and evidence go."""
    private_dir = unused_path()
    folder = RunFolder.create(
        out, scenario_name="benchmark", short_sha=None, dcp=scenario.server.dcp, now=datetime.now(UTC)
    )
    command = server_command(
        scenario=scenario,
        environment=environment,
        port=free_port(),
        probe_dir=private_dir / PROBE_FOLDER,
        run_private_dir=private_dir,
        inherited=os.environ,
        cores=sorted(os.sched_getaffinity(0)),
        ptracer_pid=os.getpid(),
    )
    try:
        with (
            machine_lock(what="a benchmark", on_wait=lambda _s, holder: say(f"waiting: {holder} holds the machine")),
            hold(environment),
            launch(
                command,
                log_path=folder.server_log,
                private_dir=private_dir,
                make=(PROBE_FOLDER,),
                redact=LineRedactor(),
            ) as server,
        ):
            took_s = server.wait_ready(scenario.server.ready_timeout_s)
            say(f"server ready after {took_s:.0f} s (DCP {scenario.server.dcp})")
            yield Lab(server, scenario=scenario, folder=folder, private_dir=private_dir)
    finally:
        folder.close()
