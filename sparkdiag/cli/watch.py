"""``sparkdiag watch``: a server that already runs, looked at and diagnosed."""

from pathlib import Path
from typing import Annotated

import typer

from sparkdiag.cli import completion


def watch(
    url: Annotated[str | None, typer.Option(help="Where the server answers: http://127.0.0.1:8000.")] = None,
    pid: Annotated[int | None, typer.Option(help="Any process of the server; the whole tree is found.", min=1)] = None,
    for_s: Annotated[
        float | None,
        typer.Option("--for-s", help="How long to look; default: 33, and 63 where that does not tell.", metavar="S"),
    ] = None,
    send_needle: Annotated[
        bool, typer.Option("--send-needle", help="Send one prompt of your own, and judge how it goes.")
    ] = False,
    prompt_tokens: Annotated[
        int | None, typer.Option(help="Length of that prompt in tokens; default: 4096.", metavar="N")
    ] = None,
    baseline_s: Annotated[
        float | None, typer.Option(help="Healthy time to its first token, if you know it.", metavar="S")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model name for it; default: the first that is served.")] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(help="Variable that holds the server's API key; it is never written.", metavar="NAME"),
    ] = None,
    until_stall: Annotated[
        bool,
        typer.Option("--until-stall", help="Wait for hours (or --for-s), keep the evidence of every stall, go on."),
    ] = False,
    scenario: Annotated[
        str | None,
        typer.Option(help="What is known of this stall: a name or a TOML file.", autocompletion=completion.scenarios),
    ] = None,
    metrics_url: Annotated[
        str | None, typer.Option(help="Where /metrics answers, if elsewhere.", metavar="URL")
    ] = None,
    stacks: Annotated[bool, typer.Option(help="Take stacks; --no-stacks: /metrics alone.")] = True,
    remote: Annotated[bool, typer.Option("--remote", help="An address off this machine may be talked to.")] = False,
    out: Annotated[Path, typer.Option(help="Folder that run folders are made in.")] = Path("runs"),
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout; talk goes to stderr.")] = False,
) -> None:
    """Look into a vLLM server that already runs, and say whether it stalls, where and why.

    Example: sparkdiag watch --url http://127.0.0.1:8000

    \b
    Another: sparkdiag watch --pid 4711 --for-s 60

    \b
    Another: sparkdiag watch --url http://127.0.0.1:8000 --send-needle

    Finds every process of the server, also in a container or after its API server has died, samples their stacks
    within a budget, and reads /metrics. It never signals, pauses or kills any of them, and sends nothing without
    --send-needle. SGLang is understood, too: that was tried on recordings only, never on a live server.
    Exit 0: nothing bad was seen; 1: it stalls; 3: cannot be told; 4: neither stacks nor metrics may be read.
    """
    from sparkdiag.cli.watch_asked import asked, run_watch

    request, api_key = asked(
        url=url,
        pid=pid,
        for_s=for_s,
        send_needle=send_needle,
        prompt_tokens=prompt_tokens,
        baseline_s=baseline_s,
        model=model,
        api_key_env=api_key_env,
        until_stall=until_stall,
        scenario=scenario,
        metrics_url=metrics_url,
        stacks=stacks,
        remote=remote,
        out=out,
    )
    if until_stall:
        from sparkdiag.cli.watch_vigil import run_vigil

        raise typer.Exit(int(run_vigil(request, as_json=as_json)))
    raise typer.Exit(int(run_watch(request, api_key=api_key, as_json=as_json)))
