"""A world in which trials cost nothing: histories, a runner that knows the truth, a view that remembers."""

import random
from collections.abc import Callable, Mapping, Sequence

from sparkdiag.bisecting.answer.document import document_of
from sparkdiag.bisecting.axes.axis import Axis
from sparkdiag.bisecting.question.journal import Finished
from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.bisecting.search.history import History
from sparkdiag.bisecting.steps.state import Conclusion, ReuseStep, TrialStep, fold
from sparkdiag.bisecting.steps.step import next_step
from sparkdiag.evidence.bisection import Bisection, Commit, Purpose, Signature, TrialResult
from sparkdiag.reproducing.request import ReproRequest
from sparkdiag.scenario.model import PromptSettings, Scenario, ServerSettings
from sparkdiag.scenario.model import Signature as WantedSignature

STALL = Signature(kind="torch-fallback", function="mqa_logits_torch", role="worker")
OTHER_STALL = Signature(kind="collective-wait", function="all_reduce", role="worker")


def sha_of(number: int) -> str:
    """Forty digits, so that what cuts or matches them is tried too."""
    return f"{number:040x}"


def chain(length: int, *, blobs: Callable[[int], str] | None = None) -> History:
    """A straight history of ``length`` commits, ``sha_of(0)`` first."""
    return History.of(
        Commit(
            sha=sha_of(number),
            parents=(sha_of(number - 1),) if number else (),
            subject=f"Change {number}",
            suspect_blobs=(blobs(number),) if blobs is not None else (),
        )
        for number in range(length)
    )


def random_history(chance: random.Random, length: int) -> History:
    """One root, one head, branches and merges between them."""
    commits = [Commit(sha=sha_of(0))]
    heads = {0}
    for number in range(1, length):
        last = number == length - 1
        parents = sorted(heads) if last else sorted({chance.randrange(number), *chance.sample(sorted(heads), 1)})
        if not last and chance.random() < 0.6:
            parents = parents[-1:]
        heads = (heads - set(parents)) | {number}
        commits.append(Commit(sha=sha_of(number), parents=tuple(sha_of(parent) for parent in parents)))
    return History.of(commits)


def scenario(*, dcp: int = 2) -> Scenario:
    return Scenario(
        name="made-up",
        title="A stall that nobody runs",
        server=ServerSettings(dcp=dcp, tp=dcp),
        prompt=PromptSettings(tokens=1000),
        signatures=(WantedSignature(function="mqa_logits_torch", kind="torch-fallback"),),
    )


def request_for(history: History, **changes: object) -> BisectRequest:
    """A search over the whole of ``history``, without controls unless asked for."""
    axis = Axis(kind="commits", history=history, old=history.commits[0].sha, new=history.commits[-1].sha)
    base = BisectRequest(
        repro=ReproRequest(scenario=scenario(), env_spec="lab", runs_dir="runs"), axis=axis, controls=False, reuse=False
    )
    return base.model_copy(update=changes)


def stalled(sha: str, signature: Signature = STALL, *, watched: bool = True) -> TrialResult:
    return TrialResult(
        sha=sha,
        outcome="stalled",
        mode="crawling",
        signature=signature if watched else None,
        watched=watched,
        minutes=2.0,
        functions=(str(signature.function),) if watched else (),
        samples=20 if watched else 0,
    )


def completed(sha: str, *, watched: bool = True) -> TrialResult:
    return TrialResult(
        sha=sha,
        outcome="completed",
        needle="retrieved",
        watched=watched,
        minutes=2.0,
        first_token_s=4.0,
        samples=20 if watched else 0,
    )


def skipped(sha: str, reason: str = "does not start") -> TrialResult:
    return TrialResult(sha=sha, outcome="not-started", reason=reason, minutes=1.0)


class SimulatedRunner:
    """Stalls where the culprit is contained (a fix: where it is not). ``overrides`` are asked first, by point."""

    def __init__(
        self,
        history: History,
        culprit: str,
        *,
        fix: bool = False,
        overrides: Mapping[str, Callable[[str, Purpose], TrialResult]] | None = None,
    ) -> None:
        self._history = history
        self._bit = 1 << history.index[culprit]
        self._fix = fix
        self._overrides = overrides or {}
        self.ran: list[tuple[str, Purpose]] = []
        self.healthy: list[TrialResult | None] = []
        self.prefetched: list[tuple[str, ...]] = []

    def run(self, sha: str, *, purpose: Purpose, healthy: TrialResult | None) -> TrialResult:
        self.ran.append((sha, purpose))
        self.healthy.append(healthy)
        if sha in self._overrides:
            return self._overrides[sha](sha, purpose)
        return self.truth(sha, purpose)

    def truth(self, sha: str, purpose: Purpose) -> TrialResult:
        """What an undisturbed trial shows."""
        is_new = bool(self._history.ancestors_of(sha) & self._bit)
        watched = purpose != "control"
        return stalled(sha, watched=watched) if is_new != self._fix else completed(sha, watched=watched)

    def prefetch(self, shas: Sequence[str]) -> None:
        self.prefetched.append(tuple(shas))

    def minutes(self, _sha: str) -> float:
        return 2.0

    def searched(self) -> list[str]:
        """Points run between the ends, in order."""
        return [sha for sha, purpose in self.ran if purpose == "search"]


def play(
    request: BisectRequest, runner: SimulatedRunner, *, given: Sequence[Finished] = ()
) -> tuple[Bisection, list[Finished]]:
    """The search without a disk: its document, and the results in order. ``given``: what the journal holds already."""
    finished = list(given)
    for _ in range(1000):
        state = fold(request, finished)
        step = next_step(request, state, minutes=runner.minutes)
        match step:
            case Conclusion():
                return document_of(request, state), finished
            case ReuseStep():
                finished.append(Finished(at="", purpose="search", result=step.result))
            case TrialStep():
                result = runner.run(step.sha, purpose=step.purpose, healthy=state.healthy)
                finished.append(Finished(at="", purpose=step.purpose, result=result))
    raise AssertionError("the search has no end")


class RememberingView:
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.begun: list[tuple[str, Purpose, float | None]] = []
        self.last: Bisection | None = None

    def note(self, text: str) -> None:
        self.notes.append(text)

    def trial_begins(self, sha: str, *, subject: str, purpose: Purpose, minutes_left: float | None) -> None:
        assert isinstance(subject, str)
        self.begun.append((sha, purpose, minutes_left))

    def update(self, bisection: Bisection) -> None:
        self.last = bisection
