"""``sparkdiag post`` with a gist, with a search, and at a terminal."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from sparkdiag.posting.marker import mark_of
from tests.integration.github_case import TOKEN, Account, Issue, StandIn, once, stand_in
from tests.integration.post_case import COMMENTS, LIMIT_S, Poster, poster
from tests.unit.reporting.sample_runs import SUSPECT

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


@pytest.fixture
def api() -> Iterator[StandIn]:
    with stand_in() as made:
        yield made


@pytest.fixture
def to(api: StandIn, tmp_path: Path) -> Poster:
    return poster(api, tmp_path)


def test_long_parts_go_to_one_secret_gist_when_asked(to: Poster) -> None:
    to.document("--yes")
    assert to.api.gists == {}
    made = to.document("--yes", "--gist")
    [gist] = to.api.gists.values()
    assert (made["action"], made["gist_url"], gist["public"]) == ("updated", gist["html_url"], False)
    assert gist["html_url"] in to.bodies()[0]
    assert SUSPECT in gist["files"]["samples.txt"]["content"]
    assert "/home/someone" not in json.dumps(gist)
    assert mark_of(to.bodies()[0]) is not None
    writes = to.api.writes()
    assert to.document("--yes", "--gist")["action"] == "unchanged"
    assert to.document("--yes")["action"] == "unchanged"
    assert to.api.writes() == writes
    (to.folder / "stacks.jsonl").write_text("")
    assert to.document("--yes", "--gist")["action"] == "updated"
    assert [one["id"] for one in to.api.gists.values()] == [gist["id"]]


def test_a_gist_that_was_heard_but_not_answered_is_not_made_twice(to: Poster) -> None:
    to.api.drop_after.add("POST /gists")
    assert to.document("--yes", "--gist")["gist_url"] is not None
    assert len(to.api.gists) == 1


def test_a_gist_whose_comment_failed_is_used_by_the_next_try(to: Poster) -> None:
    to.api.faults.append(lambda api, seen: once(403, "no", verb="POST")(api, seen) if seen.path == COMMENTS else None)
    assert to.post("--yes", "--gist").returncode == 4
    assert to.document("--yes", "--gist")["action"] == "created"
    assert len(to.api.gists) == 1
    to.api.gists.clear()
    (to.folder / "stacks.jsonl").write_text("")
    assert to.document("--yes", "--gist")["gist_url"] is not None
    assert len(to.api.gists) == 1


@pytest.mark.parametrize("own", [True, False])
def test_a_gist_that_the_folder_names_is_not_believed(to: Poster, own: bool) -> None:
    """Whoever sent the folder may have named any gist, the reader's own among them, and any address."""
    to.document("--yes", "--gist")
    [made] = to.api.gists.values()
    other = {**made, "id": "5eed" * 8, "html_url": "https://gist.github.com/x/" + "5eed" * 8, "files": {}}
    changes = {"public": True} if own else {"owner": {"login": "hubot"}}
    to.api.gists[other["id"]] = {**other, **changes}
    note = to.folder / "posted.json"
    document = json.loads(note.read_text())
    document["posts"][0].update(gist_id=other["id"], gist_url="https://evil.example/x", gist_sha256=None)
    note.write_text(json.dumps(document))
    assert to.document("--yes", "--gist")["gist_url"] not in (None, "https://evil.example/x", other["html_url"])
    assert (to.api.gists[other["id"]]["files"], len(to.api.gists)) == ({}, 3)
    [body] = to.bodies()
    assert "evil.example" not in body and other["id"] not in body


def test_an_address_that_only_the_folder_names_is_not_linked(to: Poster) -> None:
    to.document("--yes", "--gist")
    [gist] = to.api.gists.values()
    note = to.folder / "posted.json"
    document = json.loads(note.read_text())
    document["posts"][0].update(gist_url="https://evil.example/x")
    note.write_text(json.dumps(document))
    assert to.document("--yes")["action"] == "unchanged"
    document["posts"][0].update(gist_id=None)
    note.write_text(json.dumps(document))
    assert to.document("--yes")["action"] == "updated"
    assert "evil.example" not in to.bodies()[0] and gist["html_url"] not in to.bodies()[0]


def test_a_token_without_the_scope_for_gists(to: Poster) -> None:
    to.api.accounts[TOKEN] = Account(scopes=("repo",))
    done = to.post("--yes", "--gist")
    assert (done.returncode, to.bodies()) == (2, [])
    assert "lacks the scope gist" in done.stderr
    assert "--scopes gist" in done.stderr


def add_mentions(api: StandIn) -> None:
    for number in range(10, 135):
        api.issues.append(Issue(repository="octo/engine", number=number, is_pull=False, body=f"see {SUSPECT}"))
    api.issues += [
        Issue(repository="octo/engine", number=200, title=f"Speed up {SUSPECT}\x1b[2J"),
        Issue(repository="octo/engine", number=201, state="closed", body=SUSPECT),
        Issue(repository="octo/engine", number=202, body="something else"),
        Issue(repository="octo/other", number=7, body=SUSPECT),
    ]
    api.issues[0].body = SUSPECT


def test_the_search_lists_what_mentions_the_functions(to: Poster) -> None:
    add_mentions(to.api)
    found = to.document("--search", "--search-in", "octo/other")["found"]
    numbers = {(one["repository"], one["number"]) for one in found}
    assert numbers == {*(("octo/engine", number) for number in (*range(10, 135), 200)), ("octo/other", 7)}
    assert {one["kind"] for one in found} == {"issue", "pull request"}
    assert to.api.writes() == 0
    shown = to.post("--search")
    assert "\x1b" not in shown.stdout
    assert "#200" in shown.stdout and "https://github.com/octo/engine/pull/200" in shown.stdout
    assert "nothing was posted" not in shown.stdout


def test_the_search_needs_neither_a_token_nor_a_conversation(to: Poster) -> None:
    add_mentions(to.api)
    to.token = None
    to.api.searches_left = 10
    shown = to.post("--search-in", "octo/other", pr=None)
    assert shown.returncode == 0, shown.stderr
    assert "#7" in shown.stdout
    nothing = to.post("--search-in", "octo/nowhere", pr=None)
    assert nothing.returncode == 4
    assert "cannot be searched" in nothing.stderr


def test_the_search_goes_on_though_a_text_cannot_be_classified(to: Poster) -> None:
    """It sends names of functions, and no text of the page."""
    add_mentions(to.api)
    record = json.loads((to.folder / "run.json").read_text())
    doubtful = "q7ZkR2mW9xPv4LtB8nYc3HdJ6sFgA1eUoT5iKrX0"
    record["verdict"]["for"].append({"source": "client", "text": doubtful})
    (to.folder / "run.json").write_text(json.dumps(record))
    assert to.document("--search")["found"]
    record["verdict"]["function"] = doubtful
    (to.folder / "run.json").write_text(json.dumps(record))
    to.post("--search")
    assert not any(doubtful in one.query.get("q", "") for one in to.api.seen)


def test_the_searchs_own_limit_is_kept_to(to: Poster) -> None:
    to.api.searches_left = 0
    to.api.reset_in_s = 1
    done = to.post("--search", "--patience-s", "0")
    assert (done.returncode, "rate limit" in done.stderr) == (4, True)


def at_terminal(to: Poster, *words: str) -> "pexpect.spawn[str]":
    return pexpect.spawn(
        sys.executable,
        ["-m", "sparkdiag.cli.app", *to.words(*words)],
        env=to.environ() | {"TERM": "xterm"},
        cwd=str(to.home),
        encoding="utf-8",
        timeout=LIMIT_S,
        dimensions=(50, 100),
    )


@pytest.mark.parametrize(("typed", "posted"), [("y", True), ("yes", True), ("", False), ("n", False), ("post", False)])
def test_at_a_terminal_it_shows_and_asks(to: Poster, typed: str, posted: bool) -> None:
    child = at_terminal(to)
    child.expect(r"Post it\? \[y/N\] ")
    before = child.before or ""
    assert "octo/engine#5, pull request, open: Reach the Triton kernel" in before
    assert "octo-reporter" in before and "post a new comment" in before
    assert to.api.writes() == 0
    child.sendline(typed)
    child.expect("created: https" if posted else "nothing was posted")
    child.expect(pexpect.EOF)
    child.close()
    assert (child.exitstatus, len(to.bodies())) == (0, int(posted))


def test_ctrl_c_at_the_question_posts_nothing(to: Poster) -> None:
    child = at_terminal(to)
    child.expect(r"Post it\? \[y/N\] ")
    child.sendintr()
    child.expect("interrupted: nothing was posted")
    child.expect(pexpect.EOF)
    child.close()
    assert (child.exitstatus, to.api.writes()) == (130, 0)


def test_ctrl_c_while_it_is_posted_says_that_it_may_be_there(to: Poster) -> None:
    to.api.answers_late.add(f"POST {COMMENTS}")
    child = at_terminal(to, "--yes")
    child.expect("size ")
    while not to.bodies():
        assert child.isalive()
    child.sendintr()
    child.expect("it may be there")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert to.document("--yes")["action"] == "unchanged"
    assert len(to.bodies()) == 1


def test_an_edit_is_told_as_an_update(to: Poster) -> None:
    to.document("--yes")
    (to.folder / "stacks.jsonl").write_text("")
    child = at_terminal(to)
    child.expect("update its own earlier comment https://github.com/octo/engine/pull/5#issuecomment-1000")
    child.expect(r"Post it\? \[y/N\] ")
    child.sendeof()
    child.expect("nothing was posted")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
