"""``sparkdiag bisect``: find the commit, the release or the value at which a stall comes or goes."""

import typer

from sparkdiag.cli import bisect_options as given


def bisect(
    context: typer.Context,
    repo: given.Repo = None,
    good: given.Good = None,
    bad: given.Bad = None,
    around: given.Around = None,
    span: given.Span = None,
    first_parent: given.FirstParent = False,
    only_watched_paths: given.OnlyWatchedPaths = False,
    axis: given.Axis = None,
    releases: given.Releases = None,
    looks_for: given.LooksFor = "stall",
    repeat: given.Repeat = 1,
    confidence: given.Confidence = None,
    controls: given.Controls = True,
    confirm: given.Confirm = False,
    dry_run: given.DryRun = False,
    resume: given.Resume = False,
    folder: given.Folder = None,
    suspect: given.Suspect = [],  # noqa: B006
    reuse: given.Reuse = True,
    good_run: given.GoodRun = None,
    bad_run: given.BadRun = None,
    export_log: given.ExportLog = None,
    import_log: given.ImportLog = None,
    scenario: given.Scenario = None,
    env: given.Env = None,
    dcp: given.Dcp = None,
    tp: given.Tp = None,
    model: given.Model = None,
    prompt_tokens: given.PromptTokens = None,
    baseline_s: given.BaselineS = None,
    timeout_s: given.TimeoutS = None,
    keep_priority: given.KeepPriority = False,
    wait: given.Wait = True,
    out: given.Out = "runs",
    as_json: given.AsJson = False,
) -> None:
    """Find the commit that brought a stall, or took it away, with one run of repro per trial.

    Example: sparkdiag bisect --dcp 2

    \b
    Another: sparkdiag bisect --repo vllm --good v0.25.0 --bad HEAD --dry-run

    Both ends are tried first, so it does not matter which of them you call good. Ctrl-C loses the running trial only:
    the line that resumes is printed. Exit 0: found; 3: only candidates, or inconclusive, with the reason.
    """
    from sparkdiag.bisecting.asking.options import Asked, check

    asked = Asked.model_validate(locals() | {"extra_args": tuple(context.args)})
    check(asked)
    from sparkdiag.cli import bisect_search  # heavy: a mistake in the options is told first

    if asked.exports_only:
        raise typer.Exit(int(bisect_search.export(asked)))
    search = bisect_search.resume if asked.resume else bisect_search.begin
    raise typer.Exit(int(search(asked, as_json=as_json)))
