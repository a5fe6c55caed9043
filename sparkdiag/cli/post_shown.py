"""What ``post`` shows before it asks, and its one JSON document. Pure."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sparkdiag.harmless.excerpt import one_line
from sparkdiag.harmless.printable import printable

if TYPE_CHECKING:
    from sparkdiag.cli.post_page import Page
    from sparkdiag.evidence.redaction import Redactions
    from sparkdiag.posting.decision import Decision
    from sparkdiag.posting.publish import Looked
    from sparkdiag.posting.searching import Found
    from sparkdiag.posting.where import Target

HEAD_LINES = 30
_RULE = "─" * 72


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How ``post`` ended."""

    action: str
    """``created``, ``updated``, ``unchanged``, ``shown``, ``refused``."""
    url: str | None = None
    comment_id: int | None = None
    gist_url: str | None = None
    bytes: int = 0


def preview(page: "Page", *, body: str, full: bool, whereto: tuple[str, ...]) -> str:
    """The comment as it would be posted, and what is known about where."""
    lines = body.rstrip("\n").split("\n")
    shown = lines if full else lines[:HEAD_LINES]
    rest = len(lines) - len(shown)
    size = len(body.encode("utf-8"))
    facts = [
        *whereto,
        f"size     {size:,} bytes of the 65,536 that GitHub takes",
        f"left out {left_out(page.redactions)}",
    ]
    facts += [f"gist     {name}, {len(text.encode('utf-8')):,} bytes" for name, text in page.files.items()]
    more = (f"… {rest} more lines: --full shows them",) if rest else ()
    text = "\n".join((_RULE, *shown, *more, _RULE, *facts))
    return printable(text, newlines=True)


def left_out(went: "Redactions") -> str:
    """Kinds and counts in one line."""
    found = [f"{count} × {kind}" for kind, count in sorted(went.counts.items()) if count]
    return ", ".join(found) if found else "nothing had to be"


def whereto(looked: "Looked", decision: "Decision", *, host: str) -> tuple[str, ...]:
    """To whom, as whom, and whether anew."""
    where, before = looked.conversation, looked.before
    kind = "pull request" if where.is_pull_request else "issue"
    state = f"{one_line(where.state, limit=20)}{', LOCKED' if where.locked else ''}"
    return (
        f"to       {where.repository}#{where.number}, {kind}, {state}: {one_line(where.title, limit=160)}",
        f"         {one_line(where.url)}",
        f"as       {one_line(looked.login or 'an app whose name is not known', limit=60)} on {host}",
        f"does     {what(decision)}",
        *((f"gist     {one_line(before.gist_url)} stays linked",) if before is not None and before.gist_url else ()),
    )


def what(decision: "Decision") -> str:
    """The sentence for what would be done."""
    comment = decision.comment
    note = f" ({decision.note})" if decision.note else ""
    if comment is None:
        return "post a new comment"
    at = f"{one_line(comment.url)}, last written {one_line(comment.updated_at, limit=40)}{note}"
    if decision.action == "unchanged":
        return f"nothing: the comment says the same already: {at}"
    return f"update its own earlier comment {at}"


def warnings(looked: "Looked") -> tuple[str, ...]:
    """What one should know before saying yes."""
    where = looked.conversation
    made = []
    if where.locked:
        made.append(f"{where.repository}#{where.number} is locked: only those with write access may comment")
    if where.state != "open":
        made.append(f"{where.repository}#{where.number} is {one_line(where.state, limit=20)}: few may read it there")
    return tuple(made)


def unasked(target: "Target", *, host: str) -> tuple[str, ...]:
    """In place of ``whereto`` where there is no token to ask with."""
    return (f"to       {target.label} on {host} (not looked at: there is no token)",)


def document(outcome: Outcome, page: "Page", found: "Found | None" = None) -> dict[str, Any]:
    """The one JSON document of ``post``."""
    return {
        "schema": 1,
        "action": outcome.action,
        "url": outcome.url,
        "comment_id": outcome.comment_id,
        "gist_url": outcome.gist_url,
        "bytes": outcome.bytes,
        "redactions": page.redactions.model_dump(mode="json"),
        "found": [
            {
                "repository": one.hit.repository,
                "number": one.hit.number,
                "kind": kind_of(one.hit.is_pull_request),
                "title": one_line(one.hit.title, limit=300),
                "updated": one.hit.updated_at,
                "url": one_line(one.hit.url),
                "functions": list(one.functions),
            }
            for one in (found.mentions if found is not None else ())
        ],
    }


def found_text(found: "Found", *, repositories: tuple[str, ...]) -> str:
    """The table of a search."""
    where, names = ", ".join(repositories), ", ".join(found.functions)
    if not found.mentions:
        lines = [f"no open issue or pull request in {where} mentions {names}"]
    else:
        lines = [f"{len(found.mentions)} open in {where} that mention {names}:", ""]
    many = len(repositories) > 1
    for one in found.mentions:
        hit = one.hit
        number = f"{hit.repository}#{hit.number}" if many else f"#{hit.number}"
        lines.append(
            f"{number:<8} {kind_of(hit.is_pull_request):<12} {hit.updated_at}  {one_line(hit.title, limit=100)}"
        )
        lines.append(f"{'':8} {one_line(hit.url)}  ({', '.join(one.functions)})")
    if found.cut:
        lines.append("there may be more: GitHub was not asked for all of it")
    return printable("\n".join(lines), newlines=True)


def kind_of(is_pull_request: bool) -> str:
    """As people say it."""
    return "pull request" if is_pull_request else "issue"
