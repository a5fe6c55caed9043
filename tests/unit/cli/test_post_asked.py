"""What may be asked of ``post``, and what it shows."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.cli.post_asked import Typed, checked
from sparkdiag.cli.post_page import Page
from sparkdiag.cli.post_shown import HEAD_LINES, Outcome, document, found_text, left_out, preview, warnings, whereto
from sparkdiag.errors import UsageError
from sparkdiag.evidence.redaction import Redactions
from sparkdiag.posting.decision import Decision
from sparkdiag.posting.github_values import Comment, Conversation, Hit
from sparkdiag.posting.publish import Looked
from sparkdiag.posting.searching import Found, Mention

TYPED = Typed(
    folder=Path("run"),
    pr="o/r#5",
    yes=False,
    dry_run=False,
    full=False,
    force=False,
    gist=False,
    not_secret=frozenset(),
    search=False,
    search_in=(),
    api_url=None,
    timeout_s=20,
    patience_s=60,
    as_json=False,
)
WENT = Redactions(counts={"home folder": 3, "address": 1})
PAGE = Page(folder=Path("run"), run="r", markdown="page", redactions=WENT, functions=())


def test_the_api_is_the_one_that_is_named_first() -> None:
    ghes = "https://ghe.example.com/api/v3"
    assert checked(TYPED, environ={}).api_url == "https://api.github.com"
    assert checked(TYPED, environ={"GITHUB_API_URL": ghes}).api_url == ghes
    alone = replace(TYPED, pr=None, search_in=("o/r", "p/q", "o/r"))
    assert checked(alone, environ={"GITHUB_API_URL": ghes}).repositories == ("o/r", "p/q")
    assert checked(replace(TYPED, search=True, search_in=("p/q",)), environ={}).repositories == ("o/r", "p/q")
    assert checked(TYPED, environ={}).repositories == ()


@pytest.mark.parametrize(
    ("changed", "remedy"),
    [
        ({"pr": None}, "--pr OWNER/REPO#N"),
        ({"pr": None, "search": True}, "--search-in"),
        ({"yes": True, "dry_run": True}, "one of them"),
        ({"yes": True, "search": True}, "leave out"),
        ({"as_json": True}, "--yes"),
        ({"timeout_s": 0.5}, "--timeout-s"),
        ({"patience_s": float("nan")}, "--patience-s"),
        ({"patience_s": 1e9}, "--patience-s"),
        ({"search_in": ("o/r is:closed",)}, "--search-in"),
        ({"api_url": "http://ghe.example.com"}, "--api-url"),
    ],
)
def test_what_makes_no_sense_says_what_does(changed: dict[str, object], remedy: str) -> None:
    with pytest.raises(UsageError) as refused:
        checked(replace(TYPED, **changed), environ={})  # type: ignore[arg-type]
    assert refused.value.remedy is not None and remedy in refused.value.remedy


@given(text=st.text(max_size=300), full=st.booleans())
def test_nothing_shown_can_steer_a_terminal(text: str, full: bool) -> None:
    where = Conversation(
        repository="o/r", number=5, title=text, state=text, locked=True, is_pull_request=True, url=text
    )
    comment = Comment(id=1, login=text, body=text, url=text, updated_at=text)
    looked = Looked(conversation=where, login=text, ours=(comment,), before=None)
    lines = whereto(looked, Decision(action="update", comment=comment), host="github.com")
    shown = preview(PAGE, body=text, full=full, whereto=lines)
    hit = Hit(repository="o/r", number=1, title=text, is_pull_request=False, updated_at=text, url=text)
    found = Found(mentions=(Mention(hit=hit, functions=("f",)),), functions=("f",), cut=True)
    listed = found_text(found, repositories=("o/r",))
    for line in (*shown.split("\n"), *listed.split("\n"), *warnings(looked)):
        assert line.isprintable()
    assert document(Outcome(action="shown"), PAGE, found)["found"][0]["title"].isprintable()


def test_a_long_comment_is_shown_by_its_head_unless_all_is_asked_for() -> None:
    body = "\n".join(f"line {number}" for number in range(100))
    head, all_ = (preview(PAGE, body=body, full=full, whereto=()) for full in (False, True))
    assert f"line {HEAD_LINES - 1}\n" in head and f"line {HEAD_LINES}\n" not in head
    assert f"{100 - HEAD_LINES} more lines: --full" in head
    assert "line 99" in all_ and "--full" not in all_
    assert "left out 1 × address, 3 × home folder" in head
    assert left_out(Redactions()) == "nothing had to be"
