"""``sparkdiag post``: one comment a run, found again, never another's, never twice."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkdiag.posting.marker import mark_of
from tests.integration.github_case import OTHER, OWNER, TOKEN, Account, Comment, Issue, StandIn, once, stand_in
from tests.integration.post_case import COMMENTS, PR, Poster, poster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


@pytest.fixture
def api() -> Iterator[StandIn]:
    with stand_in() as made:
        yield made


@pytest.fixture
def to(api: StandIn, tmp_path: Path) -> Poster:
    return poster(api, tmp_path)


def change_the_run(to: Poster) -> None:
    """So that its page says something else."""
    record = json.loads((to.folder / "run.json").read_text())
    record["timings_s"]["ready_s"] = 1234.5
    (to.folder / "run.json").write_text(json.dumps(record))


def test_a_run_is_posted_once_and_again_where_it_changed(to: Poster) -> None:
    made = to.document("--yes")
    [comment] = to.api.comments
    assert (made["action"], made["comment_id"], made["url"]) == ("created", comment.id, made["url"])
    assert made["bytes"] == len(comment.body.encode())
    assert comment.body.startswith("## sparkdiag: stalled")
    assert mark_of(comment.body) is not None
    assert comment.body.rstrip().endswith("-->")
    writes = to.api.writes()
    assert to.document("--yes")["action"] == "unchanged"
    assert to.api.writes() == writes
    change_the_run(to)
    assert to.document("--yes")["action"] == "updated"
    assert [one.id for one in to.api.comments] == [comment.id]
    assert "1234.5" in comment.body or "1,234" in comment.body or "20.6 min" in comment.body


def test_it_is_found_by_its_marker_where_the_folder_does_not_tell(to: Poster) -> None:
    for number in range(230):
        to.api.add_comment(to.api.issues[0], login=OTHER, body=f"comment {number}")
    to.document("--yes")
    for number in range(5):
        to.api.add_comment(to.api.issues[0], login=OTHER, body=f"more {number}")
    (to.folder / "posted.json").unlink()
    elsewhere = to.folder.parent.parent / "elsewhere"
    shutil.move(to.folder, elsewhere)
    to.folder = elsewhere
    change_the_run(to)
    assert to.document("--yes")["action"] == "updated"
    assert len(to.api.comments) == 236
    assert to.api.asked("GET").count(COMMENTS) == 6


def test_it_is_not_the_last_comment_that_is_updated(to: Poster) -> None:
    to.document("--yes")
    mine = to.api.add_comment(to.api.issues[0], login=OWNER, body="my own words")
    change_the_run(to)
    assert to.document("--yes")["action"] == "updated"
    assert mine.body == "my own words"


@pytest.mark.parametrize("noted", [True, False])
def test_anothers_comment_with_our_marker_is_never_touched(to: Poster, noted: bool) -> None:
    to.document("--yes")
    [comment] = to.api.comments
    comment.login = OTHER
    before = comment.body
    if not noted:
        (to.folder / "posted.json").unlink()
    change_the_run(to)
    assert to.document("--yes")["action"] == "created"
    assert comment.body == before
    assert to.api.comments[-1].login == OWNER


def test_of_several_the_newest_is_updated(to: Poster) -> None:
    to.document("--yes")
    [first] = to.api.comments
    to.api.comments.append(Comment(id=first.id + 50, issue=first.issue, login=OWNER, body=first.body))
    (to.folder / "posted.json").unlink()
    change_the_run(to)
    done = to.post("--yes")
    assert "1 older comment(s) of the same run stay" in done.stdout
    assert first.body != to.api.comments[1].body


@pytest.mark.parametrize("noted", [True, False])
def test_what_a_person_edited_is_kept_unless_forced(to: Poster, noted: bool) -> None:
    to.document("--yes")
    [comment] = to.api.comments
    comment.body = comment.body.replace("\n", "\r\n", 1).replace(
        "## sparkdiag", "Edit: it was the fan.\n\n## sparkdiag"
    )
    if not noted:
        (to.folder / "posted.json").unlink()
    edited = comment.body
    refused = to.post("--yes")
    assert (refused.returncode, comment.body) == (2, edited)
    assert "edited by hand" in refused.stderr
    assert "next: --force" in refused.stderr
    told = json.loads(to.post("--yes", "--json").stdout)
    assert (told["action"], told["error"]["exit_code"]) == ("refused", 2)
    assert to.document("--yes", "--force")["action"] == "updated"
    assert "the fan" not in comment.body


def test_a_deleted_comment_is_made_anew(to: Poster) -> None:
    first = to.document("--yes")["comment_id"]
    to.api.comments.clear()
    to.api.add_comment(to.api.issues[0], login=OTHER, body="x").id = 9999
    assert to.document("--yes")["action"] == "created"
    assert len(to.api.comments) == 2 and first is not None


def test_a_create_that_was_heard_but_not_answered_is_not_repeated(to: Poster) -> None:
    to.api.drop_after.add(f"POST {COMMENTS}")
    done = to.post("--yes", "--json")
    assert json.loads(done.stdout)["action"] == "created", done.stderr
    assert "asking again" in done.stderr
    assert len(to.bodies()) == 1
    assert to.api.asked("POST") == [COMMENTS]


def test_a_create_whose_answer_never_comes_is_not_repeated(to: Poster) -> None:
    to.api.answers_late.add(f"POST {COMMENTS}")
    done = to.post("--yes", "--json", "--timeout-s", "1")
    assert json.loads(done.stdout)["action"] == "created", done.stderr
    assert len(to.bodies()) == 1


def test_a_create_that_failed_is_repeated(to: Poster) -> None:
    to.api.faults.append(once(502, "Server Error", verb="POST"))
    assert to.document("--yes")["action"] == "created"
    assert len(to.bodies()) == 1
    assert to.api.asked("POST") == [COMMENTS, COMMENTS]


def test_a_renamed_repository_is_posted_to_under_its_new_name(to: Poster) -> None:
    to.api.issues[0].repository = "octo/motor"
    to.api.moved["octo/engine"] = "octo/motor"
    for number in range(120):
        to.api.add_comment(to.api.issues[0], login=OTHER, body=f"comment {number}")
    assert to.document("--yes")["action"] == "created"
    change_the_run(to)
    assert to.document("--yes")["action"] == "updated"
    assert len(to.bodies()) == 121


def test_a_jobs_own_token_updates_the_bots_comment(to: Poster) -> None:
    bot = "github-actions[bot]"
    to.api.accounts[TOKEN] = Account(login=bot, scopes=None)
    made = to.post("--yes", "--json", GITHUB_ACTIONS="true")
    assert json.loads(made.stdout)["action"] == "created", made.stderr
    (to.folder / "posted.json").unlink()
    change_the_run(to)
    again = to.post("--yes", "--json", GITHUB_ACTIONS="true")
    assert json.loads(again.stdout)["action"] == "updated", again.stderr
    assert [one.login for one in to.api.comments] == [bot]


def test_an_apps_token_that_tells_no_name_knows_its_comment_by_the_folder(to: Poster) -> None:
    to.api.accounts[TOKEN] = Account(login="helper[bot]", scopes=None)
    assert to.document("--yes")["action"] == "created"
    change_the_run(to)
    assert to.document("--yes")["action"] == "updated"


def change_the_note(to: Poster, **changes: object) -> None:
    """What somebody who sent the folder may have written into it."""
    path = to.folder / "posted.json"
    document = json.loads(path.read_text())
    document["posts"][-1].update(changes)
    path.write_text(json.dumps(document))


def test_a_note_of_another_conversations_comment_is_not_believed(to: Poster) -> None:
    to.api.issues.append(Issue(repository="octo/engine", number=6))
    to.document("--yes")
    [first] = to.api.comments
    before = first.body
    change_the_note(to, number=6)
    change_the_run(to)
    assert to.document("--yes", pr="octo/engine#6")["action"] == "created"
    assert first.body == before
    assert [one.issue.number for one in to.api.comments] == [5, 6]


@pytest.mark.parametrize("author", [OTHER, "someone-else[bot]"])
def test_an_app_is_not_led_to_somebody_elses_comment(to: Poster, author: str) -> None:
    """With the marker copied, and the file saying that its author is us."""
    to.api.accounts[TOKEN] = Account(login="helper[bot]", scopes=None)
    to.document("--yes")
    body = to.bodies()[0]
    theirs = to.api.add_comment(to.api.issues[0], login=author, body=f"I say:\n\n{body}")
    before = theirs.body
    change_the_note(to, comment_id=theirs.id, login=author)
    change_the_run(to)
    assert to.document("--yes", "--force")["action"] == "created"
    assert theirs.body == before


def test_an_app_that_github_names_finds_its_comment_by_the_marker(to: Poster) -> None:
    to.api.accounts[TOKEN] = Account(login="helper[bot]", scopes=None, tells_viewer=True)
    assert to.document("--yes")["action"] == "created"
    (to.folder / "posted.json").unlink()
    change_the_run(to)
    assert to.document("--yes")["action"] == "updated"
    assert [one.login for one in to.api.comments] == ["helper[bot]"]


def test_what_another_program_of_the_same_bot_repeats_is_not_ours(to: Poster) -> None:
    bot = "github-actions[bot]"
    to.api.accounts[TOKEN] = Account(login=bot, scopes=None, tells_viewer=True)
    to.document("--yes")
    repeated = to.api.add_comment(to.api.issues[0], login=bot, body=f"Somebody said:\n\n{to.bodies()[0]}")
    before = repeated.body
    (to.folder / "posted.json").unlink()
    change_the_run(to)
    assert to.document("--yes", "--force")["comment_id"] == to.api.comments[0].id
    assert repeated.body == before


def test_two_conversations_have_a_comment_each(to: Poster) -> None:
    to.api.issues.append(Issue(repository="octo/engine", number=6, is_pull=False))
    assert to.document("--yes")["action"] == "created"
    assert to.document("--yes", pr="https://github.com/octo/engine/issues/6")["action"] == "created"
    assert to.document("--yes")["action"] == "unchanged"
    posts = json.loads((to.folder / "posted.json").read_text())["posts"]
    assert sorted(one["number"] for one in posts) == [5, 6]
    assert {one["run"] for one in posts} == {posts[0]["run"]}


def test_nothing_of_the_token_is_kept_or_said(to: Poster) -> None:
    done = to.post("--yes")
    kept = "".join(path.read_text(errors="replace") for path in to.folder.iterdir())
    assert done.returncode == 0, done.stderr
    assert TOKEN not in done.stdout + done.stderr + kept
    assert all(one.authorised for one in to.api.seen)


def test_a_folder_that_cannot_be_written_to_is_posted_all_the_same(to: Poster) -> None:
    (to.folder / "posted.json").mkdir()
    done = to.post("--yes")
    assert done.returncode == 0, done.stderr
    assert "posted.json could not be written" in done.stderr
    assert to.document("--yes")["action"] == "unchanged"
    assert to.bodies() and PR
