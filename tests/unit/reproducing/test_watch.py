"""The watching loop on a scripted judge: what ends it, and that one look at a stall is not enough."""

from collections.abc import Iterator

import pytest

from sparkdiag.errors import SamplingRefused
from sparkdiag.evidence.client import ClientOutcome, PromptSent, ResponseEnd
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.processes import ServerExit
from sparkdiag.evidence.verdict import Verdict
from sparkdiag.reproducing import watch as watching
from sparkdiag.scenario.model import Patience, PromptSettings, Scenario, ServerSettings, Signature

SENT = PromptSent(t_s=0, kind="needle", tokens=100, depth=0.5, seed=0, nonce="abcd", expected="1", max_output_tokens=8)
CRAWL = Verdict(outcome="stalled", mode="crawling", kind="torch-fallback", function="f")
OTHER = Verdict(outcome="stalled", mode="crawling", kind="torch-fallback", function="g")
OPEN = Verdict(outcome="inconclusive", reason="not yet")


class World:
    """Observer, driver, server and view in one: time passes only when the loop waits."""

    def __init__(self, *, end_at_s: float | None = None, exit_at_s: float | None = None, error: bool = False) -> None:
        self.now_s = 0.0
        self.end_at_s, self.exit_at_s, self.error = end_at_s, exit_at_s, error
        self.client = ClientOutcome()
        self.shown: list[Verdict] = []
        self.blind_at_s = float("inf")

    def wait(self, seconds: float) -> None:
        assert seconds > 0
        self.now_s += seconds

    def set_client(self, client: ClientOutcome) -> None:
        self.client = client

    def snapshot(self) -> Observation:
        return Observation(now_s=self.now_s, client=self.client)

    def require_stacks(self) -> None:
        if self.now_s >= self.blind_at_s:
            raise SamplingRefused("no stack can be taken")

    def outcome(self) -> ClientOutcome:
        outcome = ClientOutcome(sent=SENT)
        if self.end_at_s is not None and self.now_s >= self.end_at_s:
            how = "error" if self.error else "finished"
            outcome = outcome.model_copy(update={"end": ResponseEnd(t_s=self.end_at_s, how=how)})
        return outcome

    def poll(self) -> ServerExit | None:
        if self.exit_at_s is not None and self.now_s >= self.exit_at_s:
            return ServerExit(at_s=self.exit_at_s, signal="SIGKILL")
        return None

    def update(self, observation: Observation, verdict: Verdict) -> None:
        self.shown.append(verdict)


def scenario(timeout_s: float = 50) -> Scenario:
    return Scenario(
        name="x",
        title="x",
        server=ServerSettings(),
        prompt=PromptSettings(tokens=100),
        signatures=(Signature(function="f", kind="torch-fallback"),),
        patience=Patience(timeout_s=timeout_s),
    )


def run(
    world: World, verdicts: list[Verdict], monkeypatch: pytest.MonkeyPatch, timeout_s: float = 50
) -> tuple[Observation, Verdict]:
    script: Iterator[Verdict] = iter(verdicts)
    last = [verdicts[-1]]

    def judge(*_args: object, **_kept: object) -> Verdict:
        last[0] = next(script, last[0])
        return last[0]

    monkeypatch.setattr(watching, "judge", judge)
    return watching.watch(
        world,  # type: ignore[arg-type]
        world,  # type: ignore[arg-type]
        world,
        scenario=scenario(timeout_s),
        baseline=None,
        view=world,
        wait=world.wait,
    )


def test_a_stall_must_stand_on_later_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    observation, verdict = run(world, [OPEN, CRAWL, OPEN, CRAWL, CRAWL, CRAWL], monkeypatch)
    assert verdict == CRAWL
    assert observation.now_s == 5
    assert world.shown == [OPEN, CRAWL, OPEN, CRAWL, CRAWL, CRAWL]


def test_another_function_starts_the_wait_again(monkeypatch: pytest.MonkeyPatch) -> None:
    observation, verdict = run(World(), [CRAWL, CRAWL, OTHER, OTHER, OTHER], monkeypatch)
    assert (verdict.function, observation.now_s) == ("g", 4)


def test_the_end_of_the_request_ends_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    done = Verdict(outcome="completed", needle="retrieved")
    observation, verdict = run(World(end_at_s=3), [OPEN, OPEN, OPEN, done], monkeypatch)
    assert verdict == done
    assert observation.client.end is not None


def test_a_broken_request_waits_for_the_servers_own_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    observation, _ = run(World(end_at_s=2, exit_at_s=3.5, error=True), [OPEN], monkeypatch)
    assert observation.server_exit is not None and observation.server_exit.signal == "SIGKILL"


def test_a_broken_request_of_a_living_server_waits_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    observation, _ = run(World(end_at_s=2, error=True), [OPEN], monkeypatch)
    assert observation.server_exit is None
    assert observation.now_s <= 2 + watching.SERVER_EXIT_GRACE_S + 1.2


def test_patience_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    observation, verdict = run(World(), [OPEN], monkeypatch, timeout_s=20)
    assert verdict == OPEN
    assert 20 < observation.now_s < 22


def test_what_can_never_be_sampled_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.blind_at_s = 3
    with pytest.raises(SamplingRefused):
        run(world, [OPEN], monkeypatch)
    assert world.now_s < 5
