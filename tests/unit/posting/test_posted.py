"""``posted.json``: what comes back, and what a broken one does."""

from pathlib import Path

import pytest

from sparkdiag.errors import BusyError
from sparkdiag.posting.posted import Post, Posts, alone, read_posts, write_posts
from sparkdiag.recording.folder import POSTED

POST = Post(api_url="https://api.github.com", repository="O/r", number=5, run="r", comment_id=7, url="https://x")


def test_one_entry_a_conversation(tmp_path: Path) -> None:
    posts = Posts().with_post(POST).with_post(POST.model_copy(update={"number": 6}))
    write_posts(tmp_path, posts.with_post(POST.model_copy(update={"comment_id": 8, "repository": "o/R"})))
    back = read_posts(tmp_path)
    assert len(back.posts) == 2
    found = back.of(api_url="https://api.github.com", repository="o/r", number=5)
    assert found is not None and found.comment_id == 8
    assert back.of(api_url="https://ghe/api/v3", repository="o/r", number=5) is None


@pytest.mark.parametrize("gist_id", ["../user", "a/b", "", "x" * 65, "a\n"])
def test_a_gist_is_only_named_by_a_name(tmp_path: Path, gist_id: str) -> None:
    write_posts(tmp_path, Posts(posts=(POST.model_copy(update={"gist_id": gist_id}),)))
    assert read_posts(tmp_path) == Posts()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1, "posts": [{}]}', "\x00"])
def test_a_broken_file_tells_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / POSTED).write_text(text)
    assert read_posts(tmp_path) == Posts()
    write_posts(tmp_path, Posts().with_post(POST))
    assert read_posts(tmp_path).posts == (POST,)


def test_no_link_is_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    write_posts(elsewhere, Posts().with_post(POST))
    (tmp_path / POSTED).symlink_to(elsewhere / POSTED)
    assert read_posts(tmp_path) == Posts()
    write_posts(tmp_path, Posts())
    assert read_posts(elsewhere).posts == (POST,)


def test_two_do_not_post_the_same_run_at_once(tmp_path: Path) -> None:
    with alone(tmp_path), pytest.raises(BusyError, match="another process is posting"), alone(tmp_path):
        raise AssertionError("both are in")
    with alone(tmp_path):
        assert sorted(tmp_path.iterdir()) == []
