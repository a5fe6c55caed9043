"""Which looks at a run's processes are of the prefill, and how they are spread over functions. Pure."""

from collections import Counter
from collections.abc import Sequence

from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.stacks import StackSample

MOST_SHARES = 10
LEAST_DIFFERENCE = 0.01


def engine_samples(observation: Observation) -> tuple[StackSample, ...]:
    """Usable looks at workers and EngineCore between the prompt's sending and the first token."""
    engine = {process.pid for process in observation.processes if process.role in ("worker", "engine_core")}
    return _prefill_samples(observation, engine)


def worker_samples(observation: Observation) -> tuple[StackSample, ...]:
    """The same of the processes in which the model runs."""
    return _prefill_samples(observation, {process.pid for process in observation.workers})


def _prefill_samples(observation: Observation, pids: set[int]) -> tuple[StackSample, ...]:
    sent, until_s = observation.client.sent, observation.client.first_token_s
    return tuple(
        sample
        for sample in observation.samples
        if sample.usable
        and sample.pid in pids
        and sent is not None
        and sample.started_s >= sent.t_s
        and (until_s is None or sample.ended_s <= until_s)
    )


def innermost_shares(samples: Sequence[StackSample]) -> dict[str, float]:
    """For each function, the share of the samples in which the main thread's innermost frame is in it."""
    mains = [sample.main_thread for sample in samples]
    innermost = Counter(main.frames[0].name for main in mains if main is not None and main.frames)
    total = innermost.total()
    return {function: times / total for function, times in innermost.items()}


def most_different(one: Sequence[StackSample], other: Sequence[StackSample]) -> tuple[tuple[str, float, float], ...]:
    """(function, its share of ``one``, of ``other``) where these differ most, at most ``MOST_SHARES``.

    None where either side has no sample.
    """
    these, those = innermost_shares(one), innermost_shares(other)
    if not these or not those:
        return ()
    shares = [(name, these.get(name, 0.0), those.get(name, 0.0)) for name in sorted({*these, *those})]
    telling = [share for share in shares if abs(share[1] - share[2]) >= LEAST_DIFFERENCE]
    return tuple(sorted(telling, key=lambda share: -abs(share[1] - share[2]))[:MOST_SHARES])
