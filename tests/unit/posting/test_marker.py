"""The hidden line: told from all else, stable, private, and a witness of what somebody edited."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.errors import DefectError, SparkdiagError
from sparkdiag.posting.decision import decide, is_bot, is_noted, is_ours, ours_among
from sparkdiag.posting.github_values import Comment, Conversation
from sparkdiag.posting.marker import mark_of, marked, run_mark, same_text, text_sha256
from sparkdiag.posting.posted import Post
from sparkdiag.reporting.fitted import FOR_POSTING_BYTES, MOST_BYTES

RUN = run_mark("run", "sparkdiag", "repro", began="2026-06-01T12:00:00+00:00")
OTHER = run_mark("run", "sparkdiag", "repro", began="2026-06-01T12:00:01+00:00")


def comment(body: str, *, id_: int = 1, login: str = "me") -> Comment:
    return Comment(id=id_, login=login, body=body, url=f"https://x/{id_}", updated_at="")


def noted_as(one: Comment, *, login: str | None = None) -> Post:
    return Post(
        api_url="https://x",
        repository="o/r",
        number=5,
        run=RUN,
        login=login,
        comment_id=one.id,
        body_sha256=text_sha256(one.body),
    )


def test_a_run_has_one_mark_that_tells_nothing_of_it() -> None:
    assert RUN != OTHER
    assert run_mark("run", "sparkdiag", "repro", began="2026-06-01T12:00:00+00:00") == RUN
    assert RUN.startswith("20260601T120000Z-")
    assert "repro" not in RUN
    assert run_mark("a", "b") != run_mark("ab") and run_mark("ab", "") != run_mark("a", "b")


@given(page=st.text(), gist=st.sampled_from([None, "https://gist.github.com/me/0123456789abcdef0123456789abcdef"]))
def test_what_was_posted_is_known_and_not_edited(page: str, gist: str | None) -> None:
    body = marked(page, run=RUN, gist_url=gist)
    mark = mark_of(body)
    assert mark is not None and (mark.run, mark.edited) == (RUN, False)
    assert body.splitlines()[-1].startswith("<!-- sparkdiag:run=")
    windows = mark_of(body.replace("\r\n", "\n").replace("\n", "\r\n"))
    assert windows is not None and windows.run == RUN
    assert same_text(body, f"  {body}\n\n")


@given(page=st.text(alphabet="ab\n# ", min_size=1), more=st.text(alphabet="xyz", min_size=1), at_end=st.booleans())
def test_what_a_person_changed_is_seen(page: str, more: str, at_end: bool) -> None:
    body = marked(page, run=RUN)
    edited = f"{body}\n{more}" if at_end else f"{more}\n{body}"
    mark = mark_of(edited)
    assert mark is not None and mark.edited


@given(text=st.text(alphabet="<!- sparkdig:run=0-9a>\n"))
def test_no_other_text_is_a_marker(text: str) -> None:
    assert mark_of(text) is None


@pytest.mark.parametrize("around", ["> {}", "`{}`", "    {}", "a {}", "{} a"])
def test_a_marker_that_is_quoted_is_none(around: str) -> None:
    line = marked("page", run=RUN).splitlines()[-1]
    assert mark_of(around.format(line)) is None


def test_a_page_with_anothers_marker_in_it_keeps_its_own() -> None:
    stolen = marked("page", run=OTHER).splitlines()[-1]
    mark = mark_of(marked(f"```\n{stolen}\n```", run=RUN))
    assert mark is not None and (mark.run, mark.edited) == (RUN, False)


def test_a_page_that_fits_leaves_room_for_the_marker_and_a_gist() -> None:
    gist = "https://gist.github.example.com/" + "n" * 60 + "/" + "0" * 32
    body = marked("ü" * ((MOST_BYTES - FOR_POSTING_BYTES) // 2), run=RUN, gist_url=gist)
    assert len(body.encode()) <= MOST_BYTES


@given(more=st.integers(0, 400))
def test_a_page_that_is_too_long_is_refused_with_what_to_do(more: int) -> None:
    with pytest.raises(SparkdiagError, match="GitHub takes 65,536") as refused:
        marked("x" * (MOST_BYTES - 50 + more), run=RUN)
    assert not isinstance(refused.value, DefectError)
    assert refused.value.remedy is not None and "attach the file" in refused.value.remedy


@pytest.mark.parametrize("url", ["x", "https://a/>\n\nfixes #1 @all", "javascript:x", "https://a b", "https://a/<b"])
def test_an_address_that_is_none_does_not_reach_the_page(url: str) -> None:
    assert marked("page", run=RUN, gist_url=url) == marked("page", run=RUN)


def test_only_comments_of_the_same_login_with_the_runs_marker_are_ours() -> None:
    mine, theirs = comment(marked("a", run=RUN), id_=3), comment(marked("a", run=RUN), id_=4, login="you")
    others = comment(marked("a", run=OTHER), id_=5)
    older = comment(marked("b", run=RUN), id_=2, login="ME")
    all_ = (mine, theirs, others, older, comment("a", id_=6))
    assert ours_among(all_, run=RUN, login="me") == (older, mine)
    assert ours_among(all_, run=RUN, login=None) == ()
    noted = noted_as(mine)
    assert is_ours(mine, run=RUN, login="me", noted=noted)
    assert not is_ours(mine, run=RUN, login="you", noted=noted)
    assert not is_ours(mine, run=OTHER, login="me", noted=noted)


@given(login=st.sampled_from(["me", "you", "helper[bot]", "OTHER[BOT]"]), then=st.sampled_from(["me", "helper[bot]"]))
def test_who_wrote_it_is_never_taken_from_the_file(login: str, then: str) -> None:
    """Where GitHub does not tell who we are: an app's comment, word for word as noted, and no other."""
    body = marked("page", run=RUN)
    one = comment(body, login=login)
    noted = noted_as(one, login=then)
    assert is_ours(one, run=RUN, login=None, noted=noted) == is_bot(login)
    for other in (f"{body}\nx", body.replace("page", "Page", 1), marked("page", run=OTHER)):
        assert not is_ours(comment(other, login=login), run=RUN, login=None, noted=noted)
        forged = noted.model_copy(update={"body_sha256": text_sha256(other)})
        assert not is_ours(comment(other, login=login), run=RUN, login=None, noted=forged)
    assert not is_ours(one, run=RUN, login=None, noted=noted.model_copy(update={"body_sha256": None}))


@given(before=st.text("ab\n", max_size=9), after=st.text("ab\n", max_size=9))
def test_of_a_bots_comments_only_whole_ones_are_ours(before: str, after: str) -> None:
    """Another program that posts as the same bot may have been made to repeat our words."""
    bot, body = "github-actions[bot]", marked("page", run=RUN)
    repeated = comment(f"{before}{body}{after}", login=bot)
    is_whole = not before.strip() and not after.strip()
    assert bool(ours_among((repeated,), run=RUN, login=bot)) == is_whole
    assert is_ours(repeated, run=RUN, login=bot, noted=noted_as(repeated)) == is_whole


@given(number=st.integers(1, 9), repository=st.sampled_from(["o/r", "O/R", "o/s"]), id_=st.integers(1, 2))
def test_a_noted_comment_belongs_to_the_conversation(number: int, repository: str, id_: int) -> None:
    url = f"https://github.com/{repository}/pull/{number}#issuecomment-1"
    where = Conversation(
        repository="o/r", number=5, title="", state="open", locked=False, is_pull_request=True, url="https://x"
    )
    there = Comment(id=1, login="me", body="", url=url, updated_at="")
    noted = Post(api_url="https://x", repository="o/r", number=5, run=RUN, comment_id=id_)
    assert is_noted(there, where=where, noted=noted) == (id_ == 1 and number == 5 and repository.lower() == "o/r")


def test_what_is_done_about_what_is_there() -> None:
    body = marked("new", run=RUN)
    old, edited = comment(marked("old", run=RUN)), comment("hand\n" + marked("old", run=RUN))
    assert decide(body, (), force=False).action == "create"
    assert decide(body, (old,), force=False).action == "update"
    assert decide(body, (comment(body),), force=True).action == "unchanged"
    assert decide(body, (edited,), force=False).action == "edited"
    assert decide(body, (edited,), force=True).action == "update"
    several = decide(body, (old, comment(marked("older", run=RUN), id_=9)), force=False)
    assert several.comment is not None and several.comment.id == 9
    assert "1 older comment(s)" in several.note
