"""From the prompt sent to a verdict that holds: look, judge, show, until something is decided."""

import time
from collections.abc import Callable
from typing import Protocol

from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ServerExit
from sparkdiag.evidence.verdict import Baseline, Verdict
from sparkdiag.judging.judge import judge
from sparkdiag.judging.seen import Seen, seen_after
from sparkdiag.observing.observer import Observer
from sparkdiag.reproducing.driver import Driver
from sparkdiag.scenario.model import Scenario

LOOK_EVERY_S = 1.0
SELDOMEST_LOOK_S = 5.0
JUDGING_SHARE = 0.003
"""Judging may cost this share of one core, however long a run grows: a dearer look is followed by a longer wait."""
HOLD_S = 2.0
"""A stall is announced only when the same verdict still stands this much later, on newer samples."""
SERVER_EXIT_GRACE_S = 3.0
"""A broken connection is often the first sign of a dying server: wait this long for the exit itself."""


class Pollable(Protocol):
    """The part of a launched server that watching needs."""

    def poll(self) -> ServerExit | None:
        """How it ended, None while it runs."""


class Watched(Protocol):
    """What hears of every look."""

    def update(self, observation: Observation, verdict: Verdict) -> None:
        """One look."""


def observe_once(observer: Observer, driver: Driver, server: Pollable) -> Observation:
    """One picture of everything, client and server included. The client is asked last: what is known of it must not be
    older than the samples, or a look could be counted to a prefill that was over (see ``seen_after``)."""
    observer.set_client(driver.outcome())
    observation = observer.snapshot()
    client = driver.outcome()
    stamps = [client.sent.t_s if client.sent else None, client.last_token_s, client.end.t_s if client.end else None]
    now_s = max([observation.now_s, *(stamp for stamp in stamps if stamp is not None)])
    changes: dict[str, object] = {"client": client, "now_s": now_s}
    ended = server.poll()
    if ended is not None:
        changes["server_exit"] = ended
    return observation.model_copy(update=changes)


class Bench:
    """Judges one run again and again, and remembers what was seen, so that a look costs what is new."""

    def __init__(self, scenario: Scenario, baseline: Baseline | None, *, cpu: Callable[[], float]) -> None:
        self._scenario = scenario
        self._baseline = baseline
        self._cpu = cpu
        self._seen: Seen | None = None
        self.cost_s = 0.0
        """CPU seconds of the last look."""

    def judge(self, observation: Observation) -> Verdict:
        """The verdict on everything observed so far."""
        before_s = self._cpu()
        self._seen = seen_after(self._seen, observation, self._scenario)
        verdict = judge(observation, self._scenario, self._baseline, seen=self._seen)
        self.cost_s = self._cpu() - before_s
        return verdict

    def rest_s(self, *, hasty: bool) -> float:
        """How long to wait after the last look; ``hasty`` when it found what the next one shall confirm."""
        paid_s = max(LOOK_EVERY_S, self.cost_s / JUDGING_SHARE)
        return min(paid_s, HOLD_S if hasty else SELDOMEST_LOOK_S)


def same_stall(one: Verdict, other: Verdict) -> bool:
    """Whether two verdicts name the same stall (the mode may sharpen)."""
    return (one.outcome, one.kind, one.function) == (other.outcome, other.kind, other.function)


def watch(
    observer: Observer,
    driver: Driver,
    server: Pollable,
    *,
    scenario: Scenario,
    baseline: Baseline | None,
    view: Watched,
    wait: Callable[[float], None],
    cpu: Callable[[], float] = time.thread_time,
) -> tuple[Observation, Verdict]:
    """Return when a stall holds, the request ended, the server died, or the scenario's patience is over.

    Raises ``SamplingRefused`` when it turns out that no stack can ever be taken: waiting on would be for nothing.
    """
    standing: Verdict | None = None
    bench = Bench(scenario, baseline, cpu=cpu)
    while True:
        observation = observe_once(observer, driver, server)
        verdict = bench.judge(observation)
        view.update(observation, verdict)
        if verdict.outcome != "stalled":
            standing = None
        elif standing is None or not same_stall(standing, verdict):
            standing = verdict.model_copy(update={"decided_at_s": observation.now_s})
        elif observation.now_s - (standing.decided_at_s or 0) >= HOLD_S:
            return observation, verdict
        if observation.server_exit is not None or observation.client.end is not None:
            return settle(observer, driver, server, bench=bench, wait=wait)
        sent = observation.client.sent
        if sent is not None and observation.now_s - sent.t_s > scenario.patience.timeout_s:
            return observation, verdict
        observer.require_stacks()
        wait(bench.rest_s(hasty=standing is not None))


def settle(
    observer: Observer,
    driver: Driver,
    server: Pollable,
    *,
    bench: Bench,
    wait: Callable[[float], None],
) -> tuple[Observation, Verdict]:
    """The last word after the request ended or the server died: give the other half of the story time to arrive."""
    observation = observe_once(observer, driver, server)
    waited_s = 0.0
    while waited_s < SERVER_EXIT_GRACE_S and unfinished(observation):
        wait(0.2)
        waited_s += 0.2
        observation = observe_once(observer, driver, server)
    return observation, bench.judge(observation)


def unfinished(observation: Observation) -> bool:
    """The request has not noticed yet that the server died, or failed without the server's exit being seen yet."""
    end = observation.client.end
    return end is None or (end.how == "error" and observation.server_exit is None)
