"""Which checks a scenario in an environment needs. Pure."""

from typing import Literal

from sparkdiag.environment.spec import EnvironmentSpec, ExistingSpec, stands_on
from sparkdiag.evidence.base import Value
from sparkdiag.scenario.model import Scenario

Name = Literal[
    "environment",
    "model",
    "suspect-code",
    "dcp-tp",
    "git",
    "uv",
    "clone",
    "sample-child",
    "sample-other",
    "sample-environment",
    "priority",
    "gpu",
    "memory",
    "cores",
    "shared-memory",
    "disk",
    "port",
    "open-files",
    "clock",
    "machine-lock",
    "leftovers",
]


class Asked(Value):
    """What the machine is checked for: everything that a ``repro`` of the same options would use."""

    scenario: Scenario
    spec: EnvironmentSpec
    model: str | None = None
    """Path or hub name that the server would be given; None in the lab, which brings its own."""
    repo: str | None = None
    """Clone in which the suspect commit is looked up."""
    runs_dir: str = "runs"
    dcp: int | None = None
    """As asked on the command line; None for the scenario's."""
    tp: int | None = None

    @property
    def ranks(self) -> int:
        """Processes that the model is spread over."""
        return self.tp if self.tp is not None else self.scenario.server.tp


class Known(Value):
    """What the environment turned out to be. All empty where that could not be found out."""

    python: str | None = None
    """Interpreter of the environment; None where there is none yet."""
    built: bool = False
    """Whether a server could be launched from it now."""
    build_bytes: int = 0
    """Disk space that building it takes."""
    cpu_only: bool = False
    """vLLM's CPU build: no GPU is looked at."""
    vllm_version: str | None = None
    import_root: str | None = None
    """Folder that the environment imports the vllm package from."""
    checkout: str | None = None
    """The git clone that the vllm package is imported from."""
    revision: str | None = None
    """40 hex digits of what is checked out there."""


def needed(asked: Asked, known: Known) -> tuple[Name, ...]:
    """The checks to run after ``environment``, in the order in which they are told."""
    existing = isinstance(stands_on(asked.spec), ExistingSpec)
    lab = asked.scenario.lab
    in_clone = not lab and (asked.repo is not None or known.checkout is not None)
    conditional: dict[Name, bool] = {
        "model": not lab,
        # The lab's history proves itself; any other scenario names functions that a given vLLM may not have.
        "suspect-code": not lab and known.import_root is not None,
        "git": lab or in_clone,
        "uv": not existing and not known.built,
        "clone": in_clone,
        "sample-environment": known.python is not None,
        # The published wheels that sparkdiag builds from are CPU builds.
        "gpu": existing and known.built and not known.cpu_only,
    }
    every: tuple[Name, ...] = Name.__args__  # type: ignore[attr-defined]
    return tuple(name for name in every if name != "environment" and conditional.get(name, True))
