"""Where ``sparkdiag route`` reads, and the configuration it asks about: what was typed, else what the scenario says."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sparkdiag.cli import route_asked as typed
from sparkdiag.cli.route_asked import Asked
from sparkdiag.cli.talk import say
from sparkdiag.environment.blobs import BlobReader, RevisionTree, open_blobs
from sparkdiag.environment.clone import open_clone
from sparkdiag.environment.commits import described
from sparkdiag.environment.config import read_config
from sparkdiag.environment.named import named_commit
from sparkdiag.errors import EnvironmentFault, UsageError
from sparkdiag.evidence.route import RouteConfig
from sparkdiag.needed import need_git
from sparkdiag.reproducing.choice import INCIDENT_SCENARIO, LAB_SCENARIO
from sparkdiag.routing.across.matrix import MatrixAxes
from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.model import Scenario

DEFAULT_HEADS = 64
"""DeepSeek V4's, where the scenario does not say."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where revisions are read from, and what is looked for in them."""

    scenario: Scenario
    reader: BlobReader
    default: str
    """The revision that is meant where none is named."""
    lab: bool

    def tree(self, revision: str) -> RevisionTree:
        """Raises ``UsageError`` where there is no such commit."""
        return self.reader.tree(self.commit(revision, option="--rev"))

    def commit(self, revision: str, *, option: str) -> str:
        """Raises ``UsageError`` where there is no such commit."""
        return named_commit(self.reader.clone, revision, option=option, lab=self.lab)

    def subject(self, sha: str) -> str:
        """What a commit's message begins with."""
        return next((commit.subject for commit in described(self.reader.clone, [sha])), "")


@contextmanager
def opened(asked: Asked) -> Iterator[Source]:
    """The clone that is meant and its scenario; one line says which and why.

    Raises ``UsageError`` for what is no clone or no scenario, ``EnvironmentFault`` where git fails.
    """
    repo, why = _clone(asked)
    scenario = load_scenario(asked.scenario or (LAB_SCENARIO if repo is None else INCIDENT_SCENARIO))
    if repo is None and not scenario.lab:
        raise UsageError(
            f"the scenario {scenario.name} is about vLLM's source, and no clone of it is named",
            remedy=f"sparkdiag route --repo path/to/vllm --scenario {asked.scenario}",
        )
    say(f"{why}; scenario {scenario.name}{'' if asked.scenario else ' (no --scenario)'}")
    folder, default = (_folder(repo), "HEAD") if repo is not None else _lab()
    with open_blobs(folder) as reader:
        yield Source(scenario=scenario, reader=reader, default=default, lab=repo is None)


def _clone(asked: Asked) -> tuple[Path | None, str]:
    """The clone, None for the lab's own history, and in a few words why."""
    if asked.repo is not None:
        return Path(asked.repo), f"reading the clone {asked.repo}"
    if asked.scenario is None or not load_scenario(asked.scenario).lab:
        configured = read_config().repo
        if configured is not None:
            return Path(configured), f"reading the clone {configured} from your config file"
    return None, "no --repo: reading the lab's own history"


def _folder(repo: Path) -> Path:
    if not repo.is_dir():
        raise UsageError(f"--repo {repo} is no folder", remedy="name a git clone of vLLM: --repo path/to/vllm")
    need_git(f"to read {repo}")
    try:
        open_clone(repo)
    except EnvironmentFault as fault:
        raise UsageError(f"--repo: {fault.message}", remedy=fault.remedy) from fault
    return repo


def _lab() -> tuple[Path, str]:
    """The lab's own clone, made where it is not there yet, and its default revision."""
    from sparkdiag.environment.cache import cache_root
    from sparkdiag.environment.labtree import lab_repo
    from sparkdiag.lab import history

    need_git("to read the lab's history")
    return lab_repo(history, root=cache_root()), history.DEFAULT_REVISION


def axes_of(asked: Asked, scenario: Scenario) -> MatrixAxes:
    """Without an option the scenario's values; a capability is CUDA's alone."""
    capability = scenario.route.arch if typed.platform(asked) in ("cuda", None) else None
    return MatrixAxes(
        dcp=typed.sizes(asked) or (scenario.server.dcp,),
        arch=typed.architectures(asked) or (capability,),
        cache=typed.caches(asked) or ("fp8",),
    )


def config_of(asked: Asked, scenario: Scenario) -> RouteConfig:
    """The configuration; of lists the first."""
    axes = axes_of(asked, scenario)
    return RouteConfig(
        dcp=axes.dcp[0],
        arch=axes.arch[0],
        platform=typed.platform(asked),
        cache=axes.cache[0],
        phase=typed.phase(asked),
        prompt_tokens=asked.prompt_tokens or scenario.prompt.tokens,
        chunk_tokens=asked.chunk_tokens or scenario.server.chunk_tokens,
        heads=asked.heads or scenario.work.heads or DEFAULT_HEADS,
        compress_ratio=asked.compress_ratio or scenario.work.compress_ratio,
        set=typed.set_values(asked),
    )
