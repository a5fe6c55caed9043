"""What ``sparkdiag route`` does once its options are understood: open the source, follow it, tell."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import get_terminal_size

import typer

from sparkdiag.cli import route_asked as typed
from sparkdiag.cli.bisect_search import say
from sparkdiag.cli.failures import print_error
from sparkdiag.cli.route_asked import Asked
from sparkdiag.environment.blobs import BlobReader, RevisionTree, open_blobs
from sparkdiag.environment.cache import cache_root
from sparkdiag.environment.clone import open_clone
from sparkdiag.environment.commit_range import ClonedRange, read_range
from sparkdiag.environment.commits import described
from sparkdiag.environment.config import read_config
from sparkdiag.environment.labtree import lab_repo
from sparkdiag.environment.named import named_commit
from sparkdiag.errors import EnvironmentFault, ExitCode, SparkdiagError, UsageError
from sparkdiag.evidence.route import Cache, MatrixRevision, RouteConfig, RouteProblem, Truth
from sparkdiag.lab import history as lab_history
from sparkdiag.needed import need_git
from sparkdiag.reporting import route_document, route_markdown
from sparkdiag.reporting.live import LiveView
from sparkdiag.reporting.route import route_text
from sparkdiag.reporting.route_tables import history_text, matrix_text
from sparkdiag.reproducing.choice import INCIDENT_SCENARIO, LAB_SCENARIO
from sparkdiag.reproducing.signals import Terminated, sigterm_raises
from sparkdiag.routing.history import route_history
from sparkdiag.routing.matrix import MatrixAxes, find_matrix
from sparkdiag.routing.route import find_route
from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.model import Scenario

DEFAULT_HEADS = 64
_STALL_CODES: dict[Truth, ExitCode] = {
    "true": ExitCode.STALL,
    "unknown": ExitCode.INCONCLUSIVE,
    "false": ExitCode.DONE,
}


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where revisions are read from, and what is looked for in them."""

    scenario: Scenario
    reader: BlobReader
    lab: bool

    @property
    def default(self) -> str:
        """The revision that is meant where none is named."""
        return lab_history.DEFAULT_REVISION if self.lab else "HEAD"

    def tree(self, revision: str, *, option: str = "--rev") -> RevisionTree:
        """Raises ``UsageError`` where there is no such commit."""
        return self.reader.tree(named_commit(self.reader.clone, revision, option=option, lab=self.lab))

    def subject(self, sha: str) -> str:
        """What a commit's message begins with."""
        return next((commit.subject for commit in described(self.reader.clone, [sha])), "")


def answer(asked: Asked) -> ExitCode:
    """Follow what was asked, and print it."""
    for arch in typed.unusual(typed.architectures(asked)):
        say(f"{arch} is no CUDA capability known here; it is asked about as written")
    try:
        with sigterm_raises(), _opened(asked) as source:
            if asked.matrix:
                return _matrix(asked, source)
            if asked.history is not None:
                return _history(asked, source)
            return _one(asked, source)
    except (KeyboardInterrupt, Terminated) as stop:
        code = ExitCode.INTERRUPTED if isinstance(stop, KeyboardInterrupt) else ExitCode.TERMINATED
        say("interrupted; nothing was changed")
        if asked.as_json:
            print_error(SparkdiagError("interrupted", remedy="the same command again"), exit_code=code)
        return code


@contextmanager
def _opened(asked: Asked) -> Iterator[Source]:
    """The clone that is meant and its scenario; one line says which and why."""
    repo, why = _clone(asked)
    lab = repo is None
    scenario = load_scenario(asked.scenario or (LAB_SCENARIO if lab else INCIDENT_SCENARIO))
    if repo is None and not scenario.lab:
        raise UsageError(
            f"the scenario {scenario.name} is about vLLM's source, and no clone of it is named",
            remedy=f"sparkdiag route --repo path/to/vllm --scenario {asked.scenario}",
        )
    say(f"{why}; scenario {scenario.name}{'' if asked.scenario else ' (no --scenario)'}")
    folder = _lab() if repo is None else _folder(repo)
    with open_blobs(folder) as reader:
        yield Source(scenario=scenario, reader=reader, lab=lab)


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


def _lab() -> Path:
    need_git("to read the lab's history")
    return lab_repo(lab_history, root=cache_root())


def _config(asked: Asked, scenario: Scenario) -> RouteConfig:
    """What was typed, else what the scenario says; of lists the first."""
    platform = typed.platform(asked)
    sizes, architectures, caches = _axes(asked, scenario)
    return RouteConfig(
        dcp=sizes[0],
        arch=architectures[0],
        platform=platform,
        cache=caches[0],
        phase=typed.phase(asked),
        prompt_tokens=asked.prompt_tokens or scenario.prompt.tokens,
        chunk_tokens=asked.chunk_tokens or scenario.server.chunk_tokens,
        heads=asked.heads or scenario.work.heads or DEFAULT_HEADS,
        compress_ratio=asked.compress_ratio or scenario.work.compress_ratio,
        set=typed.set_values(asked),
    )


def _axes(
    asked: Asked, scenario: Scenario
) -> tuple[tuple[int | None, ...], tuple[str | None, ...], tuple[Cache | None, ...]]:
    of_cuda = typed.platform(asked) in ("cuda", None)
    return (
        typed.sizes(asked) or (scenario.server.dcp,),
        typed.architectures(asked) or (scenario.route.arch if of_cuda else None,),
        typed.caches(asked) or ("fp8",),
    )


def _one(asked: Asked, source: Source) -> ExitCode:
    tree = source.tree((*typed.revisions(asked), source.default)[0])
    found = find_route(tree, scenario=source.scenario, config=_config(asked, source.scenario))
    subject = source.subject(found.revision)
    if asked.as_json:
        typer.echo(route_document.document_text(route_document.route_document(found, subject=subject)))
    elif asked.form == "md":
        typer.echo(route_markdown.render_route(found, subject=subject), nl=False)
    else:
        typer.echo(route_text(found, columns=_columns(), subject=subject))
    return _STALL_CODES[found.stall_path] if asked.fail_on_stall else ExitCode.DONE


def _matrix(asked: Asked, source: Source) -> ExitCode:
    sizes, architectures, caches = _axes(asked, source.scenario)
    trees, problems = _trees(source, typed.revisions(asked) or (source.default,))
    with LiveView(plain=asked.as_json) as view:
        found = find_matrix(
            trees,
            scenario=source.scenario,
            base=_config(asked, source.scenario),
            axes=MatrixAxes(dcp=sizes, arch=architectures, cache=caches),
            problems=problems,
            progress=view.progress_sink(),
        )
    if asked.as_json:
        typer.echo(route_document.document_text(route_document.matrix_document(found)))
    elif asked.form == "md":
        typer.echo(route_markdown.render_matrix(found), nl=False)
    else:
        typer.echo(matrix_text(found, columns=_columns()))
    answered = [cell for cell in found.cells if cell.problem is None]
    if not answered:
        return ExitCode.INCONCLUSIVE
    return _stall_code([cell.stall for cell in found.cells]) if asked.fail_on_stall else ExitCode.DONE


def _stall_code(truths: Sequence[Truth]) -> ExitCode:
    worst: tuple[Truth, ...] = ("true", "unknown", "false")
    return _STALL_CODES[next(truth for truth in worst if truth in truths)]


def _trees(
    source: Source, names: Sequence[str]
) -> tuple[list[tuple[MatrixRevision, RevisionTree]], list[RouteProblem]]:
    """The revisions, each commit once; and those that are none."""
    trees: dict[str, tuple[MatrixRevision, RevisionTree]] = {}
    problems: list[RouteProblem] = []
    for name in names:
        try:
            tree = source.tree(name)
        except UsageError as problem:
            problems.append(RouteProblem(revision=name, message=problem.message, remedy=problem.remedy))
            continue
        if tree.revision in trees:
            say(f"{name} is the same commit as {trees[tree.revision][0].name}; it is read once")
            continue
        named = MatrixRevision(name=name, revision=tree.revision, subject=source.subject(tree.revision))
        trees[tree.revision] = (named, tree)
    return list(trees.values()), problems


def _history(asked: Asked, source: Source) -> ExitCode:
    span = _range(asked.history or "", source)
    with LiveView(plain=asked.as_json) as view:
        found = route_history(
            span,
            scenario=source.scenario,
            config=_config(asked, source.scenario),
            progress=view.progress_sink(),
        )
    stalls = frozenset(signature.function for signature in source.scenario.signatures)
    if asked.as_json:
        typer.echo(route_document.document_text(route_document.history_document(found)))
    elif asked.form == "md":
        typer.echo(route_markdown.render_history(found, stalls=stalls), nl=False)
    else:
        typer.echo(history_text(found, columns=_columns(), stalls=stalls))
    return ExitCode.INCONCLUSIVE if found.problems and not found.changes else ExitCode.DONE


def _range(text: str, source: Source) -> ClonedRange:
    """``A..B``; in the lab its names are resolved here, so that a wrong one is told with the lab's tags."""
    if source.lab:
        ends = [
            end and named_commit(source.reader.clone, end, option="--history", lab=True) for end in text.split("..")
        ]
        text = "..".join(ends)
    return read_range(source.reader, text)


def _columns() -> int | None:
    """Of the terminal; None where the answer goes into a pipe or a file."""
    return get_terminal_size().columns - 1 if sys.stdout.isatty() else None
