"""``sparkdiag env``: the environments under test: list, build, prune."""

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparkdiag.cli import completion

if TYPE_CHECKING:
    from sparkdiag.environment.progress import ProgressSink
    from sparkdiag.environment.prune import PruneReport

GIB = 1024**3

app = typer.Typer(
    help="Environments under test: list, build or prune them.\n\nExample: sparkdiag env list", no_args_is_help=True
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else there.")]


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _emit(document: dict[str, Any]) -> None:
    print(json.dumps({"schema": 1, **document}, indent=2))


@app.command("list", short_help="Show what is built, your config, and what a repro would use.")
def list_(as_json: AsJson = False) -> None:
    """Show the built environments, your config file, and what a plain repro would use here and why.

    Example: sparkdiag env list --json
    """
    from sparkdiag.environment.cache import cache_root, list_environments
    from sparkdiag.environment.config import read_config
    from sparkdiag.observing.gpu import gpu_names
    from sparkdiag.reproducing.choice import choose

    root = cache_root()
    environments = list_environments(root)
    config = read_config()
    choice = choose(env=None, scenario=None, configured_env=config.env, gpus=len(gpu_names()))
    if as_json:
        _emit(
            {
                "cache": str(root),
                "environments": [one.model_dump(mode="json") for one in environments],
                "bytes": sum(one.bytes for one in environments),
                "config": config.model_dump(mode="json"),
                "default": {"env": choice.env_spec, "scenario": choice.scenario, "because": choice.because},
            }
        )
        return
    print(f"cache: {root}")
    for one in environments:
        state = one.overlay_of or (f"vLLM {one.vllm_version}" if one.complete else "half-built, or its base is gone")
        print(f"  {one.key}  {state}  {one.bytes / GIB:.2f} GiB  used {_ago(time.time() - one.last_used_s)} ago")
    if not environments:
        print("  no environment is built yet (next: sparkdiag env build)")
    told = [f"{key} = {value}" for key in ("env", "repo", "model") if (value := getattr(config, key)) is not None]
    print(f"config: {config.path}: {', '.join(told) if told else 'empty' if config.exists else 'no such file'}")
    print(f"a plain `sparkdiag repro` here: {choice.because}; scenario {choice.scenario}")


def _ago(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


@app.command(short_help="Build an environment now; one that is there takes no time.")
def build(
    spec: Annotated[
        str,
        typer.Argument(
            help="lab, release:VERSION, overlay:REV[@BASE], or existing:PYTHON (only checked).",
            autocompletion=completion.environments,
        ),
    ] = "lab",
    rev: Annotated[
        str | None,
        typer.Option(
            "--rev", help="Revision of the lab's source, or of the clone.", autocompletion=completion.revisions
        ),
    ] = None,
    repo: Annotated[Path | None, typer.Option("--repo", help="vLLM clone to look revisions up in.")] = None,
    as_json: AsJson = False,
) -> None:
    """Build an environment now, so that the first repro need not; one that is built already takes no time.

    Example: sparkdiag env build lab
    """
    from sparkdiag.environment.prepare import prepare
    from sparkdiag.environment.spec import LabSpec, parse_spec
    from sparkdiag.errors import ExitCode
    from sparkdiag.reproducing.signals import Terminated, sigterm_raises
    from sparkdiag.scenario.load import load_scenario

    parsed = parse_spec(spec)
    scenario = load_scenario("lab" if isinstance(parsed, LabSpec) else "sm12x-mqa-prefill")
    began_s = time.monotonic()
    try:
        with sigterm_raises():
            environment = prepare(parsed, scenario=scenario, revision=rev, repo=repo, progress=_progress())
    except (KeyboardInterrupt, Terminated) as stop:
        _say(f"interrupted; nothing half-built counts. next: sparkdiag env build {spec}")
        code = ExitCode.INTERRUPTED if isinstance(stop, KeyboardInterrupt) else ExitCode.TERMINATED
        raise typer.Exit(int(code)) from None
    seconds = round(time.monotonic() - began_s, 1)
    if as_json:
        _emit({"environment": environment.model_dump(mode="json"), "seconds": seconds})
        return
    print(f"{environment.spec}: {environment.key}, vLLM {environment.vllm_version}, {environment.python}")
    for note in environment.notes:
        print(f"  {note}")


@app.command(short_help="Delete built environments, the longest unused first.")
def prune(
    max_gib: Annotated[float | None, typer.Option("--max-gib", min=0, help="How much may stay.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Delete every environment that is not in use.")] = False,
    locks: Annotated[bool, typer.Option("--locks", help="Delete locks that were resolved on demand.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete built environments, the longest unused first, never one in use; half-built ones always go.

    Example: sparkdiag env prune --max-gib 10 --dry-run
    """
    from sparkdiag.environment.cache import cache_root
    from sparkdiag.environment.prune import delete_locks
    from sparkdiag.environment.prune import prune as prune_environments
    from sparkdiag.errors import UsageError

    if max_gib is None and not everything and not locks:
        raise UsageError("prune needs to know how much may stay", remedy="sparkdiag env prune --max-gib 10 (or --all)")
    root = cache_root()
    deleted_locks = delete_locks(root) if locks and not dry_run else 0
    limit = 0 if everything else int(max_gib * GIB) if max_gib is not None else sys.maxsize
    report = prune_environments(root, max_bytes=limit, dry_run=dry_run)
    if as_json:
        _emit({"cache": str(root), "locks_deleted": deleted_locks, **report.model_dump(mode="json")})
        return
    _show_prune(report, deleted_locks=deleted_locks)


def _show_prune(report: "PruneReport", *, deleted_locks: int) -> None:
    verb = "would delete" if report.dry_run else "deleted"
    for one in report.removed:
        print(f"{verb} {one.key}  {one.bytes / GIB:.2f} GiB")
    for key in report.in_use:
        print(f"left {key}: it is in use")
    if deleted_locks:
        print(f"deleted {deleted_locks} lock(s)")
    print(f"{verb} {report.freed_bytes / GIB:.1f} GiB, {len(report.kept)} environment(s) left")


def _progress() -> "ProgressSink":
    return _Bar() if sys.stderr.isatty() else _Lines()


class _Lines:
    """Progress where there is no terminal: a line now and then."""

    PERIOD_S = 5.0

    def __init__(self) -> None:
        self._task, self._total, self._next_s = "", None, 0.0

    _total: float | None

    def start(self, task: str, *, total: float | None, unit: str) -> None:
        self._task, self._total = task, total if unit == "bytes" else None
        self._next_s = time.monotonic() + self.PERIOD_S
        _say(task)

    def advance(self, to: float) -> None:
        if self._total and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + self.PERIOD_S
            _say(f"  {to / 1e6:.0f} of {self._total / 1e6:.0f} MB")

    def finish(self, note: str = "") -> None:
        if note:
            _say(f"  {note}")

    def say(self, text: str) -> None:
        _say(text)


class _Bar(_Lines):
    """Progress on a terminal."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._id: Any = None

    def start(self, task: str, *, total: float | None, unit: str) -> None:
        self._bar.start()
        self._id = self._bar.add_task(task, total=total if unit == "bytes" else None)

    def advance(self, to: float) -> None:
        self._bar.update(self._id, completed=to)

    def finish(self, note: str = "") -> None:
        self._bar.remove_task(self._id)
        self._bar.stop()
        super().finish(note)
