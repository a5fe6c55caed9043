"""The stand-in's rules met head on, and a bisection's page at the very limit."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sparkdiag.errors import SparkdiagError
from sparkdiag.posting.answers import GitHubRefused
from sparkdiag.posting.github import GitHub
from sparkdiag.posting.marker import mark_of
from sparkdiag.recording.bisection import BisectionFolder
from sparkdiag.reporting.fitted import FOR_POSTING_BYTES, MOST_BYTES
from tests.integration.github_case import MOST_CHARACTERS, TOKEN, StandIn, stand_in
from tests.integration.post_case import Poster, poster
from tests.unit.reporting.sample_bisections import FOUND

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]
REPOSITORY = "octo/engine"


@pytest.fixture
def api() -> Iterator[StandIn]:
    with stand_in() as made:
        yield made


@pytest.fixture
def hub(api: StandIn) -> GitHub:
    return GitHub(api_url=api.url, token=TOKEN, timeout_s=20)


@pytest.fixture
def to(api: StandIn, tmp_path: Path) -> Poster:
    return poster(api, tmp_path)


def test_characters_are_counted_and_one_too_many_is_refused(hub: GitHub, api: StandIn) -> None:
    hub.create(REPOSITORY, 5, body="ü" * MOST_CHARACTERS)
    with pytest.raises(GitHubRefused) as refused:
        hub.create(REPOSITORY, 5, body="x" * (MOST_CHARACTERS + 1))
    assert refused.value.status == 422
    assert "body is too long" in refused.value.details[0]
    assert refused.value.remedy is not None and "attach the file" in refused.value.remedy
    with pytest.raises(GitHubRefused, match="invalid"):
        hub.create(REPOSITORY, 5, body=" \n")
    assert len(api.comments) == 1


def test_pages_are_full_until_the_last(hub: GitHub, api: StandIn) -> None:
    for number in range(205):
        api.add_comment(api.issues[0], login="x", body=f"{number}")
    sizes = [len(hub.comments(REPOSITORY, 5, page=page)) for page in range(4)]
    assert sizes == [100, 100, 5, 0]
    assert hub.comments(REPOSITORY, 5, page=1)[0].body == "100"


def test_a_search_that_breaks_the_rules_is_refused(hub: GitHub) -> None:
    for query in ("repo:octo/engine is:issue", '"a" repo:octo/engine', "a OR b OR c OR d OR e OR f OR g is:issue",
                  "x" * 257 + " is:issue"):  # fmt: skip
        with pytest.raises(GitHubRefused) as refused:
            hub.search(query, page=0)
        assert refused.value.status == 422


def test_a_comment_of_somebody_else_cannot_be_edited_at_all(hub: GitHub, api: StandIn) -> None:
    comment = api.add_comment(api.issues[0], login="hubot", body="mine")
    with pytest.raises(SparkdiagError, match="not allowed"):
        hub.edit(REPOSITORY, 5, comment.id, body="ours")
    assert comment.body == "mine"
    assert hub.comment(REPOSITORY, 5, 4711) is None


def test_a_bisection_is_posted_however_long_it_is(to: Poster, tmp_path: Path) -> None:
    folder = BisectionFolder.create(tmp_path, scenario_name="lab", dcp=2, now=datetime(2026, 6, 1, tzinfo=UTC))
    folder.journal.write_text('{"event":"begun","schema":1}\n{"event":"ended","at":"","outcome":"found"}\n')
    long = FOUND.model_copy(update={"notes": tuple(f"note {number} " + "ä" * 4000 for number in range(40))})
    folder.write_document(long)
    to.folder = folder.path
    assert to.document("--yes", "--gist")["action"] == "created"
    [body] = to.bodies()
    assert body.startswith("## sparkdiag bisect: ")
    assert MOST_BYTES // 8 < len(body.encode()) <= MOST_BYTES
    assert "gist.github.com" in body[-FOR_POSTING_BYTES:]
    mark = mark_of(body)
    assert mark is not None and not mark.edited
    [gist] = to.api.gists.values()
    assert "note 39" in gist["files"]["bisection.json"]["content"]
    folder.write_document(FOUND)
    assert to.document("--yes")["action"] == "updated"
    assert len(to.bodies()) == 1
