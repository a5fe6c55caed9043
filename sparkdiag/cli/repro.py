"""``sparkdiag repro``: reproduce the stall and judge it."""

import sys
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparkdiag.cli import completion
from sparkdiag.cli.exit_codes import exit_code_of, git_bisect_code
from sparkdiag.cli.failures import print_error
from sparkdiag.cli.options import Dcp, Env, Tp
from sparkdiag.errors import ExitCode, SparkdiagError, UsageError

if TYPE_CHECKING:
    from sparkdiag.evidence.run import RunRecord
    from sparkdiag.recording.folder import RunFolder
    from sparkdiag.reproducing.request import ReproRequest

LONGEST_S = 1e7


def repro(
    context: typer.Context,
    scenario: Annotated[
        str | None,
        typer.Option(
            help="Name of a built-in scenario, or a TOML file (see: sparkdiag scenario list).",
            autocompletion=completion.scenarios,
        ),
    ] = None,
    dcp: Dcp = None,
    tp: Tp = None,
    env: Env = None,
    rev: Annotated[
        str | None,
        typer.Option(
            help="Revision to run (lab: a revision of the lab's own history).", autocompletion=completion.revisions
        ),
    ] = None,
    repo: Annotated[Path | None, typer.Option(help="vLLM clone in which to look for the suspect commit.")] = None,
    model: Annotated[str | None, typer.Option(help="Model path or name for the server.")] = None,
    prompt_tokens: Annotated[int | None, typer.Option(help="Length of the prompt in tokens.")] = None,
    prompt_kind: Annotated[
        str | None, typer.Option(help="needle | reasoning.", autocompletion=completion.prompt_kinds)
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the prompt's text.")] = None,
    baseline_s: Annotated[
        float | None, typer.Option(help="Healthy time to first token in seconds, if you know it.")
    ] = None,
    control: Annotated[bool, typer.Option(help="Run the same prompt at DCP 1 first, as the baseline.")] = False,
    timeout_s: Annotated[float | None, typer.Option(help="Give up on the request after this many seconds.")] = None,
    out: Annotated[Path, typer.Option(help="Folder that run folders are made in.")] = Path("runs"),
    probe: Annotated[
        bool, typer.Option(help="Load the probe into the server: identity, and a ledger of the dispatch.")
    ] = True,
    probe_sync: Annotated[
        bool,
        typer.Option("--probe-sync", help="Let the probe time kernels on the device, which slows the server down."),
    ] = False,
    keep_priority: Annotated[
        bool, typer.Option("--keep-priority", help="Do not let the server yield to samplers (see the report).")
    ] = False,
    wait: Annotated[bool, typer.Option(help="Wait while another run holds this machine.")] = True,
    git_bisect: Annotated[
        bool, typer.Option(help="Exit codes for git bisect run: 0 good, 1 stalls, 125 skip, 128 stop.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout; talk goes to stderr.")] = False,
) -> None:
    """Start a vLLM server, send it a long prompt, and say whether, where and why the prefill stalls.

    Example: sparkdiag repro --dcp 2

    \b
    Another: sparkdiag repro --env existing:PYTHON --model MODEL -- --seed 1
    """
    request = _request(
        context,
        scenario=scenario,
        env=env,
        rev=rev,
        repo=repo,
        overrides={
            "dcp": dcp,
            "tp": tp,
            "model": model,
            "prompt_tokens": prompt_tokens,
            "prompt_kind": prompt_kind,
            "seed": seed,
            "timeout_s": timeout_s,
        },
        flags={
            "runs_dir": str(out),
            "baseline_s": baseline_s,
            "control": control,
            "probe": probe,
            "probe_sync": probe_sync,
            "keep_priority": keep_priority,
            "wait_for_machine": wait,
        },
    )
    raise typer.Exit(_run(request, as_json=as_json, git_bisect=git_bisect))


def _request(
    context: typer.Context,
    *,
    scenario: str | None,
    env: str | None,
    rev: str | None,
    repo: Path | None,
    overrides: dict[str, Any],
    flags: dict[str, Any],
) -> "ReproRequest":
    """Everything resolved and checked, before anything is started."""
    from sparkdiag.environment.spec import LabSpec
    from sparkdiag.harmless.secrets import redact_text
    from sparkdiag.reproducing.request import ReproRequest
    from sparkdiag.reproducing.resolve import resolve
    from sparkdiag.scenario.overrides import override
    from sparkdiag.serving.model_path import require_model

    resolved = resolve(env=env, scenario=scenario, model=overrides["model"], repo=repo)
    typer.echo(redact_text(resolved.because), err=True)
    if repo is not None and isinstance(resolved.spec, LabSpec):
        typer.echo(redact_text(f"--repo {repo} is not looked at: the lab has a git history of its own"), err=True)
    extra_args = tuple(context.args)
    _check_flags(extra_args, repo=repo, baseline_s=flags["baseline_s"])
    if flags.get("probe_sync") and not flags.get("probe", True):
        raise UsageError("--probe-sync needs the probe that --no-probe leaves out", remedy="give one of the two")
    loaded = override(resolved.scenario, extra_args=extra_args, **overrides | {"model": resolved.model})
    require_model(loaded)
    return ReproRequest(
        scenario=loaded,
        env_spec=resolved.env_spec,
        revision=rev,
        repo=resolved.repo,
        command=("sparkdiag", *sys.argv[1:]),
        **flags,
    )


def _check_flags(extra_args: tuple[str, ...], *, repo: Path | None, baseline_s: float | None) -> None:
    if extra_args and not extra_args[0].startswith("-"):
        raise UsageError(
            f"repro takes no argument {extra_args[0]!r}; what stands after -- are vLLM's options",
            remedy=f"a scenario is named with --scenario {extra_args[0]}; see: sparkdiag repro --help",
        )
    if repo is not None:
        _check_repo(repo)
    if baseline_s is not None and not 0 < baseline_s < LONGEST_S:
        raise UsageError(
            f"--baseline-s: found {baseline_s:g}; allowed: seconds, greater than 0, below {LONGEST_S:g}",
            remedy="leave it out: sparkdiag finds a healthy time by itself where it can",
        )


def _check_repo(repo: Path) -> None:
    remedy = "name a git clone of vLLM: --repo path/to/vllm"
    if not repo.is_dir():
        raise UsageError(f"--repo {repo} is no folder", remedy=remedy)
    # Imported only here: GitPython asks git for its version as it is imported.
    from sparkdiag.environment.clone import Clone
    from sparkdiag.needed import need_git

    need_git(f"to look into --repo {repo}")
    if not Clone(repo).is_clone():
        raise UsageError(f"--repo {repo} is no git clone", remedy=remedy)


def _run(request: "ReproRequest", *, as_json: bool, git_bisect: bool) -> int:
    """Run it, write the reports, print what a person or a program needs; the exit code."""
    from sparkdiag.reporting.live import LiveView
    from sparkdiag.reproducing.session import reproduce
    from sparkdiag.reproducing.signals import Terminated, sigterm_raises

    try:
        with sigterm_raises(), LiveView(plain=as_json) as view:
            folder, record = reproduce(request, view=view)
    except (KeyboardInterrupt, Terminated) as stop:
        code = ExitCode.INTERRUPTED if isinstance(stop, KeyboardInterrupt) else ExitCode.TERMINATED
        typer.echo(f"interrupted; everything started is stopped. Run it again with: {_again(request)}", err=True)
        if as_json:
            print_error(SparkdiagError("interrupted", remedy=_again(request)), exit_code=code)
        return git_bisect_code(code) if git_bisect else int(code)
    _show(folder, record, as_json=as_json)
    code = exit_code_of(record.verdict)
    return git_bisect_code(code) if git_bisect else int(code)


def _show(folder: "RunFolder", record: "RunRecord", *, as_json: bool) -> None:
    """Write ``report.md`` beside the evidence and print the summary, or the one JSON document."""
    from sparkdiag.reporting.document import document_json
    from sparkdiag.reporting.summary import summary, wrapped
    from sparkdiag.reproducing.ending import keep_report, stored_run

    stored = stored_run(folder, record)
    report, lost = keep_report(folder, stored)
    if as_json:
        typer.echo(document_json(stored))
    else:
        near = stored.model_copy(update={"run_dir": str(_from_here(folder.path))})
        text = summary(near, report=_from_here(report) if report is not None else None)
        typer.echo(wrapped(text, columns=get_terminal_size().columns - 1) if sys.stdout.isatty() else text)
    if lost:
        typer.echo(f"not everything could be written to {folder.path}: {'; '.join(lost)}", err=True)


def _from_here(path: Path) -> Path:
    """``path`` as short as it can be typed in this folder."""
    here = Path.cwd()
    return path.relative_to(here) if here in path.parents else path


def _again(request: "ReproRequest") -> str:
    from shlex import join

    from sparkdiag.harmless.documents import redact_argv

    return join(redact_argv(request.command))
