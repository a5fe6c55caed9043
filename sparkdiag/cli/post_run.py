"""The course of ``post``: read, show, ask, post, note."""

import os
import sys
from shlex import quote
from typing import TYPE_CHECKING, NoReturn

import typer

from sparkdiag.cli.talk import say
from sparkdiag.errors import ExitCode, SparkdiagError, UsageError

if TYPE_CHECKING:
    from sparkdiag.cli.post_asked import Asked
    from sparkdiag.cli.post_page import Page
    from sparkdiag.cli.post_shown import Outcome
    from sparkdiag.posting.decision import Decision
    from sparkdiag.posting.github import GitHub
    from sparkdiag.posting.patience import Patience
    from sparkdiag.posting.posted import Post
    from sparkdiag.posting.publish import Looked, Prepared, Publisher
    from sparkdiag.posting.searching import Found


def run(asked: "Asked") -> None:
    """Raises ``SparkdiagError``; whatever was asked for has been done when it returns."""
    from sparkdiag.cli.post_page import read_page
    from sparkdiag.posting.posted import alone

    typed = asked.typed
    page = read_page(typed.folder, not_secret=typed.not_secret, with_files=typed.gist and not asked.repositories)
    if asked.repositories:
        _search(asked, page)
        return
    if page.redactions.unclassified:
        _refuse(_unclassified(page, asked), asked, page)
    try:
        with alone(typed.folder):
            _post(asked, page)
    except KeyboardInterrupt:
        say("interrupted: nothing was posted")
        raise typer.Exit(int(ExitCode.INTERRUPTED)) from None


def _post(asked: "Asked", page: "Page") -> None:
    from sparkdiag.posting.publish import Prepared, Publisher

    prepared = Prepared(page=page.markdown, run=page.run, files=page.files)
    token = _token(asked)
    if token is None:
        _show_unasked(asked, page, prepared)
        return
    publisher = Publisher(
        hub=_hub(asked, token),
        patience=_patience(asked),
        api_url=asked.api_url,
        note=lambda post: _note(page, post),
    )
    looked, decision = _look(asked, page, prepared, publisher)
    if decision.action == "edited":
        _refuse(_edited(decision), asked, page)
    if not _goes_on(asked, decision):
        _end(asked, page, _not_posted(decision, page))
        return
    _write(asked, page, publisher, (prepared, looked, decision))


def _look(asked: "Asked", page: "Page", prepared: "Prepared", publisher: "Publisher") -> "tuple[Looked, Decision]":
    """What is there, and what would be done; shown."""
    from sparkdiag.cli.post_shown import preview, warnings, whereto
    from sparkdiag.posting.posted import read_posts
    from sparkdiag.posting.publish import ACTIONS_BOT, body_of
    from sparkdiag.posting.where import host_of

    target, typed = asked.target, asked.typed
    if target is None:
        raise UsageError("where to post is missing", remedy="--pr OWNER/REPO#N")
    bot = ACTIONS_BOT if os.environ.get("GITHUB_ACTIONS") == "true" else None
    looked = publisher.look(target.repository, target.number, run=page.run, posts=read_posts(page.folder), bot=bot)
    decision = publisher.decide(prepared, looked, force=typed.force)
    if not typed.as_json:
        body = body_of(prepared, looked.before)
        facts = whereto(looked, decision, host=host_of(asked.api_url))
        typer.echo(preview(page, body=body, full=typed.full, whereto=facts))
    for warning in warnings(looked):
        say(f"note: {warning}")
    return looked, decision


def _goes_on(asked: "Asked", decision: "Decision") -> bool:
    """Whether to write. Raises ``UsageError`` where there is nobody to ask."""
    typed = asked.typed
    if typed.dry_run:
        return False
    if decision.action == "unchanged":
        return False
    if typed.yes:
        return True
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("nobody is there to be asked, so nothing was posted", remedy="--yes")
    typer.echo("Post it? [y/N] ", nl=False)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        typer.echo()
    return answer.strip().lower() in ("y", "yes")


def _write(asked: "Asked", page: "Page", publisher: "Publisher", what: "tuple[Prepared, Looked, Decision]") -> None:
    from sparkdiag.cli.post_shown import Outcome

    try:
        done = publisher.publish(*what)
    except KeyboardInterrupt:
        if not publisher.in_the_air:
            raise
        say(f"interrupted while writing {publisher.in_the_air}: it may be there; the same command finds it again")
        raise typer.Exit(int(ExitCode.INTERRUPTED)) from None
    comment = done.comment
    outcome = Outcome(
        action=done.action,
        url=comment.url,
        comment_id=comment.id,
        gist_url=done.gist_url,
        bytes=done.bytes,
    )
    _end(asked, page, outcome)


def _not_posted(decision: "Decision", page: "Page") -> "Outcome":
    from sparkdiag.cli.post_shown import Outcome

    size = _bytes(page)
    comment = decision.comment
    if decision.action == "unchanged" and comment is not None:
        return Outcome(action="unchanged", url=comment.url, comment_id=comment.id, bytes=size)
    return Outcome(action="shown", bytes=size)


def _show_unasked(asked: "Asked", page: "Page", prepared: "Prepared") -> None:
    """A dry run without a token: GitHub is not asked. Raises ``SparkdiagError`` where it was to be."""
    from sparkdiag.cli.post_shown import Outcome, preview, unasked
    from sparkdiag.posting.marker import marked
    from sparkdiag.posting.tokens import no_token
    from sparkdiag.posting.where import host_of

    typed, target = asked.typed, asked.target
    if target is None or not typed.dry_run:
        raise SparkdiagError("there is no token") if target is None else no_token(target, environ=os.environ)
    if not typed.as_json:
        facts = unasked(target, host=host_of(asked.api_url))
        typer.echo(preview(page, body=marked(prepared.page, run=page.run), full=typed.full, whereto=facts))
    _end(asked, page, Outcome(action="shown", bytes=_bytes(page)))


def _bytes(page: "Page") -> int:
    from sparkdiag.posting.marker import marked

    return len(marked(page.markdown, run=page.run).encode("utf-8"))


def _end(asked: "Asked", page: "Page", outcome: "Outcome", found: "Found | None" = None) -> None:
    import json

    from sparkdiag.cli.post_shown import document
    from sparkdiag.harmless.excerpt import one_line

    if asked.typed.as_json:
        typer.echo(json.dumps(document(outcome, page, found), indent=2))
    elif found is None:
        words = "nothing was posted" if outcome.action == "shown" else outcome.action
        typer.echo(words + (f": {one_line(outcome.url)}" if outcome.url else ""))
        if outcome.gist_url:
            typer.echo(f"gist: {one_line(outcome.gist_url)}")


def _search(asked: "Asked", page: "Page") -> None:
    from sparkdiag.cli.post_shown import Outcome, found_text
    from sparkdiag.posting.searching import MOST_REQUESTS, queries, search, searched

    functions = searched(page.functions)
    if not functions:
        raise UsageError(
            "the run names no function that others could have written about", remedy="name a run that stalled"
        )
    token = _token(asked)
    found = search(
        _hub(asked, token),
        queries(functions, asked.repositories),
        patience=_patience(asked),
        most_requests=MOST_REQUESTS[token is not None],
        without=asked.target.label if asked.target is not None else None,
    )
    if not asked.typed.as_json:
        typer.echo(found_text(found, repositories=asked.repositories))
    _end(asked, page, Outcome(action="shown"), found)


def _refuse(error: SparkdiagError, asked: "Asked", page: "Page") -> NoReturn:
    """The error, and with ``--json`` the one document that holds it."""
    import json

    from sparkdiag.cli.failures import show_error
    from sparkdiag.cli.post_shown import Outcome, document

    if not asked.typed.as_json:
        raise error
    show_error(error, as_json=False)
    told = {"message": error.message, "next": error.remedy, "exit_code": int(error.exit_code)}
    typer.echo(json.dumps({**document(Outcome(action="refused"), page), "error": told}, indent=2))
    raise typer.Exit(int(error.exit_code))


def _unclassified(page: "Page", asked: "Asked") -> SparkdiagError:
    found = page.redactions.unclassified
    error = SparkdiagError(
        f"{len(found)} text(s) on the page may be secrets, and only a person can tell; nothing was posted",
        # The option last: what follows a name like that is taken for a secret, and hidden.
        remedy=f"sparkdiag report {quote(str(asked.typed.folder))} --show-redactions, then the fingerprint "
        "of each that is none behind --not-secret",
        details=tuple(f"{one.fingerprint}  {one.looks}  in {one.where}: {one.why}" for one in found[:20]),
    )
    error.exit_code = ExitCode.INCONCLUSIVE
    return error


def _edited(decision: "Decision") -> SparkdiagError:
    where = decision.comment.url if decision.comment is not None else "the comment"
    return UsageError(
        f"{where} was edited by hand since it was posted; nothing was posted", remedy="--force replaces it"
    )


def _token(asked: "Asked") -> str | None:
    from sparkdiag.posting.tokens import token_in, token_of_gh, variables_for
    from sparkdiag.posting.where import host_of

    trusted = asked.target.trusted if asked.target is not None else True
    names = variables_for(asked.api_url, trusted=trusted, environ=os.environ)
    return token_in(os.environ, names) or token_of_gh(host_of(asked.api_url))


def _hub(asked: "Asked", token: str | None) -> "GitHub":
    from sparkdiag.posting.github import GitHub

    return GitHub(api_url=asked.api_url, token=token, timeout_s=asked.typed.timeout_s)


def _patience(asked: "Asked") -> "Patience":
    from sparkdiag.posting.patience import Patience

    return Patience(left_s=asked.typed.patience_s, say=say)


def _note(page: "Page", post: "Post") -> None:
    """Keep it beside the run; where that cannot be, the marker in the comment does."""
    from sparkdiag.posting.posted import read_posts, write_posts
    from sparkdiag.recording.folder import POSTED

    try:
        write_posts(page.folder, read_posts(page.folder).with_post(post))
    except OSError as error:
        say(f"note: {POSTED} could not be written ({error.strerror or error}): the comment is found by its marker")
