"""From options to environment, scenario, model and clone: one choice that ``repro``, ``doctor`` and ``bisect`` make."""

from pathlib import Path

from sparkdiag.environment.config import read_config
from sparkdiag.environment.spec import EnvironmentSpec, LabSpec, parse_spec
from sparkdiag.evidence.base import Value
from sparkdiag.observing.gpu import gpu_names
from sparkdiag.reproducing.choice import choose
from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.model import Scenario


class Resolved(Value):
    """What is meant, before overrides."""

    env_spec: str
    """As typed."""
    spec: EnvironmentSpec
    scenario: Scenario
    model: str | None = None
    """As given, else the config file's, which is for the config file's environments and not for the lab."""
    repo: str | None = None
    """The clone as given, else the config file's."""
    because: str
    """One line: why this environment."""


def resolve(*, env: str | None, scenario: str | None, model: str | None, repo: Path | None) -> Resolved:
    """Raises ``UsageError``: an environment, a scenario or a config file that cannot be understood."""
    config = read_config()
    choice = choose(env=env, scenario=scenario, configured_env=config.env, gpus=len(gpu_names()))
    spec = parse_spec(choice.env_spec)
    return Resolved(
        env_spec=choice.env_spec,
        spec=spec,
        scenario=load_scenario(choice.scenario),
        model=config.model if model is None and not isinstance(spec, LabSpec) else model,
        repo=str(repo) if repo is not None else config.repo,
        because=choice.because,
    )
