"""What one ``watch`` is asked to do: everything resolved, nothing looked at."""

from pathlib import Path

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.model import BaselineSettings, Patience, Scenario, Suspect, Work

DEFAULT_SCENARIO = "sm12x-mqa-prefill"
LOOK_S, LOOK_LONGER_S = 33.0, 63.0
"""A little more than ``diagnosing.finding.STILL_S`` and ``WAIT_STILL_S``: less than that is no stall. The longer only
where the shorter did not tell, and nobody has said how long."""
LONGEST_PERIOD_S = 60.0
"""Between two looks at a process of a server that is only watched, where many processes share few cores."""
NEEDLE_TOKENS = 4096
NEEDLE_GIVEN_UP_S = 120.0


class WatchRequest(Value):
    """One ``watch`` of a server that somebody else started. A key for it is never part of this."""

    url: str | None = None
    pid: int | None = None
    metrics_url: str | None = None
    remote: bool = False
    """An address off this machine may be talked to."""
    scenario: Scenario
    """Signatures, locals that may be kept, sampling; ``[server]`` is filled in from what is found."""
    for_s: float | None = None
    """How long to look; with a needle, how long to wait for it."""
    take_stacks: bool = True
    send_needle: bool = False
    prompt_tokens: int = NEEDLE_TOKENS
    model: str | None = None
    """As the server names it; None: the first that it lists."""
    baseline_s: float | None = None
    runs_dir: str = "runs"
    command: tuple[str, ...] = ()
    """What the user typed; redacted before it is kept."""

    @property
    def patience_s(self) -> float:
        """How long to look, or to wait for the needle, at first."""
        return self.for_s or (NEEDLE_GIVEN_UP_S if self.send_needle else LOOK_S)


def scenario_for(name_or_path: str | None) -> Scenario:
    """What is looked for in a server of which nothing is known: the signatures and what stacks may keep. What a
    scenario says of its own model and hardware counts only where the user names that scenario. Raises as
    ``load_scenario`` does."""
    if name_or_path is not None:
        return load_scenario(name_or_path)
    known = load_scenario(DEFAULT_SCENARIO)
    unknown = {"incident": None, "description": "", "hardware": "", "suspect": Suspect(), "work": Work(), "watch": ()}
    title = "a server that sparkdiag did not start"
    update = {**unknown, "name": "watched", "title": title, "baseline": BaselineSettings(), "patience": Patience()}
    return known.model_copy(update=update)


def watched_scenario(request: WatchRequest, *, processes: tuple[ProcessInfo, ...], dcp: int) -> Scenario:
    """The request's scenario with the sizes that the running server shows, and the prompt that it may get."""
    scenario = request.scenario
    ranks = [process.ranks.tp for process in processes if process.ranks.tp is not None]
    tp = max([dcp, *(rank + 1 for rank in ranks)])
    server = scenario.server.model_copy(
        update={"tp": tp, "dcp": dcp, "model": None, "args": (), "env": {}, "max_model_len": None}
    )
    sampling = scenario.sampling
    if not request.send_needle:
        # Nothing is forecast here: the budget, which is stated to whoever watches, goes before a gap that is short.
        sampling = sampling.model_copy(update={"max_period_s": max(sampling.max_period_s, LONGEST_PERIOD_S)})
    if request.model is not None:
        server = server.model_copy(update={"served_model_name": request.model})
    return scenario.model_copy(
        update={
            "server": server,
            "sampling": sampling,
            "prompt": scenario.prompt.model_copy(update={"tokens": request.prompt_tokens}),
            "patience": scenario.patience.model_copy(update={"timeout_s": request.patience_s}),
        }
    )


def runs_folder(request: WatchRequest) -> Path:
    """Where the run's folder is made."""
    return Path(request.runs_dir)
