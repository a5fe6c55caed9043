"""``sparkdiag route``: which kernel a revision's source reaches, and which guards decide it."""

import typer

from sparkdiag.cli import route_options as given


def route(
    repo: given.Repo = None,
    rev: given.Rev = None,
    scenario: given.Scenario = None,
    dcp: given.Dcp = None,
    arch: given.Arch = None,
    platform: given.Platform = None,
    cache: given.Cache = None,
    phase: given.Phase = "prefill",
    prompt_tokens: given.PromptTokens = None,
    chunk_tokens: given.ChunkTokens = None,
    heads: given.Heads = None,
    compress_ratio: given.CompressRatio = None,
    set: given.Set = [],  # noqa: B006
    matrix: given.Matrix = False,
    history: given.History = None,
    execute: given.Execute = False,
    env: given.Env = None,
    form: given.Form = given.Format.TEXT,
    fail_on_stall: given.FailOnStall = False,
    as_json: given.AsJson = False,
) -> None:
    """Tell which kernel a revision's source reaches, and which guards decide it; no GPU, nothing is run.

    Example: sparkdiag route --repo vllm --rev HEAD --dcp 2 --arch sm121

    \b
    Another: sparkdiag route --matrix --dcp 1,2 --rev fused,incident,main

    \b
    Another: sparkdiag route --repo vllm --history v0.24.0..HEAD --arch sm121

    Guards are true, false or unknown; where one stays unknown both ways are followed. Exit 0: answered; 1 and 3 with
    --fail-on-stall: the stall path is reached, or may be; 3: no revision asked has an answer; 4: git failed.
    """
    from sparkdiag.cli.route_asked import Asked, check

    asked = Asked.model_validate(locals() | {"set": tuple(set), "form": form.value})
    check(asked)
    from sparkdiag.cli.route_answer import answer  # heavy: a mistake in the options is told first

    raise typer.Exit(int(answer(asked)))
