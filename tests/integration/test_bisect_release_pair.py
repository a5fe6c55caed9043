"""The two releases of an answer as ends of a commit search, in real clones tagged as vLLM is."""

import os
import subprocess
from pathlib import Path

import pytest

from sparkdiag.bisecting.release_pair import ReleasePair, ends_of
from sparkdiag.environment.clone import Clone
from sparkdiag.errors import UsageError

pytestmark = pytest.mark.integration

PAIR = ReleasePair(older="0.28.0", newer="0.29.0", older_has_it=False)


def git(folder: Path, *words: str) -> str:
    who = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    who |= {f"GIT_{role}_{key}": "x@example.org" for role in ("AUTHOR", "COMMITTER") for key in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", "-C", str(folder), *words], env={**os.environ, **who}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def commit(folder: Path, subject: str) -> str:
    git(folder, "commit", "--quiet", "--allow-empty", "--message", subject)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """main, with v0.28.0 on a release branch of its own and v0.29.0 on main."""
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    for number in range(3):
        commit(tmp_path, f"before {number}")
    git(tmp_path, "checkout", "--quiet", "-b", "releases/v0.28.0")
    commit(tmp_path, "cherry-picked")
    git(tmp_path, "tag", "v0.28.0")
    git(tmp_path, "checkout", "--quiet", "main")
    for number in range(3):
        commit(tmp_path, f"after {number}")
    git(tmp_path, "tag", "v0.29.0")
    return tmp_path


def test_the_branches_parting_stands_for_a_release_of_its_own_branch(clone: Path) -> None:
    base = git(clone, "rev-parse", "main~3")
    ends = ends_of(PAIR, Clone(clone))
    assert (ends.good, ends.bad) == (base, "v0.29.0")
    assert ends.notes == (
        f"v0.29.0 does not contain v0.28.0: the search starts where their branches part, {base[:10]}",
    )


def test_a_release_that_the_newer_contains_is_the_end_itself(clone: Path) -> None:
    git(clone, "tag", "--force", "v0.28.0", "main~2")
    ends = ends_of(PAIR.model_copy(update={"older_has_it": True}), Clone(clone))
    assert (ends.good, ends.bad, ends.notes) == ("v0.29.0", "v0.28.0", ())


def test_an_annotated_tag_is_its_commit(clone: Path) -> None:
    git(clone, "tag", "--force", "--annotate", "--message", "release", "v0.28.0", "main~2")
    assert ends_of(PAIR, Clone(clone)).good == "v0.28.0"


def test_a_branch_named_like_the_tag_is_not_taken_for_it(clone: Path) -> None:
    git(clone, "tag", "--delete", "v0.29.0")
    git(clone, "branch", "v0.29.0", "main")
    with pytest.raises(UsageError, match=r"has no tag v0\.29\.0") as refused:
        ends_of(PAIR, Clone(clone))
    assert (refused.value.remedy or "").endswith("fetch --tags")


def test_every_missing_tag_is_named(clone: Path) -> None:
    missing = PAIR.model_copy(update={"older": "0.1.0", "newer": "0.2.0"})
    with pytest.raises(UsageError, match=r"no tag v0\.1\.0 and no tag v0\.2\.0"):
        ends_of(missing, Clone(clone))


def test_histories_that_share_nothing(clone: Path) -> None:
    git(clone, "checkout", "--quiet", "--orphan", "other")
    commit(clone, "another root")
    git(clone, "tag", "--force", "v0.28.0")
    with pytest.raises(UsageError, match="share no commit"):
        ends_of(PAIR, Clone(clone))


def test_one_source_packaged_twice(clone: Path) -> None:
    with pytest.raises(UsageError, match="no commit between"):
        ends_of(PAIR.model_copy(update={"newer": "0.28.0.post1"}), Clone(clone))
