"""``sparkdiag post``: the report of a run as a comment of a pull request, shown and asked for first."""

import os
from pathlib import Path
from typing import Annotated

import typer

from sparkdiag.cli import completion

_WHERE, _WHAT, _SEARCH, _API = "Where", "What", "Search", "GitHub"


def post(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder of a run or a bisection (see: sparkdiag runs list).",
            metavar="RUN",
            autocompletion=completion.runs,
        ),
    ],
    pr: Annotated[
        str | None,
        typer.Option(
            "--pr",
            help="Pull request or issue: OWNER/REPO#N, or its address.",
            metavar="OWNER/REPO#N",
            rich_help_panel=_WHERE,
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.", rich_help_panel=_WHAT)] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be posted; needs no token.", rich_help_panel=_WHAT)
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Show the whole comment.", rich_help_panel=_WHAT)] = False,
    gist: Annotated[
        bool, typer.Option("--gist", help="Long parts as a secret gist, linked from it.", rich_help_panel=_WHAT)
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="Replace the comment though somebody has edited it.", rich_help_panel=_WHAT),
    ] = False,
    not_secret: Annotated[
        list[str] | None,
        typer.Option(
            "--not-secret",
            help="Fingerprint of a text that you have found harmless.",
            metavar="FINGERPRINT",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="List open issues and pull requests that mention the same functions; posts nothing.",
            rich_help_panel=_SEARCH,
        ),
    ] = False,
    search_in: Annotated[
        list[str] | None,
        typer.Option("--search-in", help="The same there too.", metavar="OWNER/REPO", rich_help_panel=_SEARCH),
    ] = None,
    api_url: Annotated[
        str | None,
        typer.Option(
            "--api-url",
            help="The API of a GitHub Enterprise; default: the address's, GITHUB_API_URL, GitHub's.",
            metavar="URL",
            rich_help_panel=_API,
        ),
    ] = None,
    timeout_s: Annotated[
        float,
        typer.Option("--timeout-s", help="For one answer of GitHub.", metavar="S", rich_help_panel=_API),
    ] = 20.0,
    patience_s: Annotated[
        float,
        typer.Option(
            "--patience-s", help="To wait for GitHub's limits and outages.", metavar="S", rich_help_panel=_API
        ),
    ] = 120.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON document on stdout.", rich_help_panel=_WHAT)
    ] = False,
) -> None:
    """Post the report of a run to a pull request. It is shown first, and asked for.

    \b
    Example: sparkdiag post runs/MY_RUN --pr vllm-project/vllm#12345

    The token comes from GH_TOKEN, GITHUB_TOKEN (for an Enterprise Server GH_ENTERPRISE_TOKEN) or the gh login. Posted
    again, the run's own comment is updated. What may be a secret and cannot be classified is not posted.
    """
    from sparkdiag.cli.post_asked import Typed, checked
    from sparkdiag.cli.post_run import run

    typed = Typed(
        folder=folder,
        pr=pr,
        yes=yes,
        dry_run=dry_run,
        full=full,
        force=force,
        gist=gist,
        not_secret=frozenset(not_secret or ()),
        search=search,
        search_in=tuple(search_in or ()),
        api_url=api_url,
        timeout_s=timeout_s,
        patience_s=patience_s,
        as_json=as_json,
    )
    run(checked(typed, environ=os.environ))
