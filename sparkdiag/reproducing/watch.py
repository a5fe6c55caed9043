"""From the prompt sent to a verdict that holds: look, judge, show, until something is decided."""

from collections.abc import Callable
from typing import Protocol

from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ServerExit
from sparkdiag.evidence.verdict import Baseline, Verdict
from sparkdiag.judging.judge import judge
from sparkdiag.observing.observer import Observer
from sparkdiag.reproducing.driver import Driver
from sparkdiag.scenario.model import Scenario

LOOK_EVERY_S = 1.0
JUDGING_SHARE = 0.1
"""Judging may cost this share of the time, however long a run grows."""
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
    """One picture of everything, client and server included."""
    observer.set_client(driver.outcome())
    observation = observer.snapshot()
    ended = server.poll()
    return observation.model_copy(update={"server_exit": ended}) if ended else observation


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
    clock: Callable[[], float],
    wait: Callable[[float], None],
) -> tuple[Observation, Verdict]:
    """Return when a stall holds, the request ended, the server died, or the scenario's patience is over."""
    standing: Verdict | None = None
    while True:
        observation = observe_once(observer, driver, server)
        before_s = clock()
        verdict = judge(observation, scenario, baseline)
        cost_s = clock() - before_s
        view.update(observation, verdict)
        if verdict.outcome != "stalled":
            standing = None
        elif standing is None or not same_stall(standing, verdict):
            standing = verdict.model_copy(update={"decided_at_s": observation.now_s})
        elif observation.now_s - (standing.decided_at_s or 0) >= HOLD_S:
            return observation, verdict
        if observation.server_exit is not None or observation.client.end is not None:
            return settle(observer, driver, server, scenario=scenario, baseline=baseline, wait=wait)
        sent = observation.client.sent
        if sent is not None and observation.now_s - sent.t_s > scenario.patience.timeout_s:
            return observation, verdict
        wait(max(LOOK_EVERY_S, cost_s / JUDGING_SHARE))


def settle(
    observer: Observer,
    driver: Driver,
    server: Pollable,
    *,
    scenario: Scenario,
    baseline: Baseline | None,
    wait: Callable[[float], None],
) -> tuple[Observation, Verdict]:
    """The last word after the request ended or the server died: give the other half of the story time to arrive."""
    observation = observe_once(observer, driver, server)
    waited_s = 0.0
    while waited_s < SERVER_EXIT_GRACE_S and unfinished(observation):
        wait(0.2)
        waited_s += 0.2
        observation = observe_once(observer, driver, server)
    return observation, judge(observation, scenario, baseline)


def unfinished(observation: Observation) -> bool:
    """The request has not noticed yet that the server died, or failed without the server's exit being seen yet."""
    end = observation.client.end
    return end is None or (end.how == "error" and observation.server_exit is None)
