"""GitHub's answers as errors: one line, the next step, and whether asking again helps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.posting.answers import SEARCHING, Asked, GitHubRefused, refused, unheard
from sparkdiag.posting.patience import MOST_TRIES, Patience

NOW_S = 1_780_000_000.0
ASKED = Asked(doing="posting to o/r#5", api_url="https://api.github.com", with_token=True)


def answer(status: int, message: object = "x", **headers: str) -> GitHubRefused:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return refused(status, named, {"message": message}, asked=ASKED, now_s=NOW_S)


@given(
    status=st.integers(300, 599),
    data=st.recursive(
        st.none() | st.text() | st.integers(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["message", "errors", "field"]), inner),
    ),
    headers=st.dictionaries(
        st.sampled_from(["retry-after", "x-ratelimit-remaining", "x-ratelimit-reset", "x-github-sso", "x-oauth-scopes",
                         "x-accepted-oauth-scopes", "x-accepted-github-permissions"]),
        st.text(max_size=40) | st.integers(0, 10**13).map(str),
    ),
)  # fmt: skip
def test_whatever_comes_back_is_one_line_with_a_next_step(status: int, data: object, headers: dict[str, str]) -> None:
    error = refused(status, headers, data, asked=ASKED, now_s=NOW_S)
    for line in (error.message, error.remedy or "", *error.details):
        assert line and line.isprintable()
    assert len(error.message) < 1000


@pytest.mark.parametrize(
    ("error", "again", "wait_s"),
    [
        (answer(403, "API rate limit exceeded for 1.2.3.4", x_ratelimit_reset=str(int(NOW_S) + 30)), True, 31.0),
        (answer(429, "slow down", retry_after="7"), True, 7.0),
        (answer(403, "You have exceeded a secondary rate limit"), True, 60.0),
        (answer(403, "no"), False, None),
        (answer(503, "x", retry_after="5"), True, 5.0),
        (answer(502), True, None),
        (answer(401, "Bad credentials"), False, None),
        (answer(404), False, None),
        (answer(422), False, None),
        (unheard("Connection refused", asked=ASKED), True, None),
    ],
)
def test_what_may_be_asked_again_and_when(error: GitHubRefused, again: bool, wait_s: float | None) -> None:
    assert (error.again, error.wait_s) == (again, wait_s)


def test_a_search_leaves_nothing_behind_that_could_be_found() -> None:
    searching = Asked(doing=SEARCHING, api_url="https://api.github.com", with_token=True)
    assert unheard("x", asked=searching).remedy == "run it again when the network is back"
    assert refused(502, {}, {}, asked=searching, now_s=NOW_S).remedy == "run it again in a minute"
    assert "not posted twice" in (answer(502).remedy or "")


def test_a_page_of_sign_on_is_only_opened_at_an_address() -> None:
    assert answer(403, "x", x_github_sso="required; url=https://github.com/orgs/o/sso?a=b").remedy == (
        "open https://github.com/orgs/o/sso?a=b"
    )
    told = answer(403, "x", x_github_sso="required; url=javascript:alert(1)").remedy
    assert told is not None and "javascript" not in told


def test_what_is_wrong_with_a_field_is_told() -> None:
    long = {"resource": "IssueComment", "code": "custom", "field": "body", "message": "body is too long (maximum is 1)"}
    error = refused(422, {}, {"message": "Validation Failed", "errors": [long, "y"]}, asked=ASKED, now_s=NOW_S)
    assert error.details == ("body: custom: body is too long (maximum is 1)", "y")
    assert error.remedy is not None and "attach the file" in error.remedy


def test_one_scope_of_those_that_do_is_enough() -> None:
    has = answer(403, "Must have rights", x_accepted_oauth_scopes="repo, public_repo", x_oauth_scopes="gist, repo")
    lacks = answer(403, "Must have rights", x_accepted_oauth_scopes="repo, public_repo", x_oauth_scopes="")
    assert "scope" not in has.message
    assert "repo or public_repo" in lacks.message


class Clock:
    def __init__(self) -> None:
        self.slept: list[float] = []
        self.said: list[str] = []

    def patience(self, left_s: float) -> Patience:
        return Patience(left_s=left_s, say=self.said.append, sleep=self.slept.append)


@given(
    errors=st.lists(st.tuples(st.booleans(), st.none() | st.floats(0, 50)), max_size=8),
    left_s=st.floats(0, 100),
)
def test_waiting_is_bounded_whatever_fails(errors: list[tuple[bool, float | None]], left_s: float) -> None:
    clock, asked = Clock(), 0

    def ask() -> str:
        nonlocal asked
        asked += 1
        if asked <= len(errors):
            again, wait_s = errors[asked - 1]
            raise GitHubRefused("x", remedy="y", again=again, wait_s=wait_s)
        return "done"

    try:
        assert clock.patience(left_s).of(ask) == "done"
        assert asked == len(errors) + 1
    except GitHubRefused:
        assert asked <= len(errors)
    assert asked <= MOST_TRIES
    assert sum(clock.slept) <= left_s
    assert len(clock.said) == len(clock.slept)


def test_what_was_heard_after_all_is_not_asked_again() -> None:
    clock, asked = Clock(), []

    def ask() -> str:
        asked.append(1)
        raise GitHubRefused("x", remedy="y", again=True)

    assert clock.patience(60).of(ask, before_again=lambda: "found") == "found"
    assert len(asked) == 1
    with pytest.raises(GitHubRefused):
        clock.patience(60).of(ask, before_again=lambda: None)
    assert len(asked) == 1 + MOST_TRIES
