"""The two releases of an answer as ends of a commit search, in real clones tagged as vLLM is."""

import os
import subprocess
from pathlib import Path

import pytest

from sparkdiag.bisecting.asking.between import commits_between
from sparkdiag.bisecting.asking.options import Asked
from sparkdiag.bisecting.axes.release_pair import ends_of, require_tags
from sparkdiag.environment.clone import Clone
from sparkdiag.errors import UsageError
from sparkdiag.evidence.bisection import Bisection, Commit, Target
from sparkdiag.reporting.follow_up import ReleasePair

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


def test_the_tags_of_every_release_are_wanted_before_the_first_trial(clone: Path) -> None:
    require_tags(("0.28.0", "0.28.0.post1", "0.29.0"), Clone(clone))
    with pytest.raises(UsageError, match=r"no tag v0\.30\.0$"):
        require_tags(("0.28.0", "0.30.0"), Clone(clone))


FOUND = Bisection(
    outcome="found",
    axis="releases",
    direction="regression",
    target=Target(what="frame", frame="_execute"),
    commits=(Commit(sha="0.29.0", parents=("0.28.0",)),),
    scenario="lab",
    command=("sparkdiag", "bisect", "--releases", "0.27.1..0.30.0", "--looks-for", "frame:_execute", "--dcp", "1"),
)


def test_the_search_goes_on_between_the_two(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    asked = Asked(releases="0.27.1..0.30.0", looks_for="frame:_execute", dcp=1, repo=str(clone), good_run="runs/x")
    following = commits_between(asked, FOUND)
    assert following is not None
    request, base = following.request, git(clone, "rev-parse", "main~3")
    assert request.axis.kind == "commits" and request.axis.old == base
    assert request.axis.new == git(clone, "rev-parse", "v0.29.0")
    assert [commit.subject for commit in request.axis.history.commits][1:] == ["after 0", "after 1", "after 2"]
    assert request.axis.env_specs[base] == f"overlay:{base}@release:0.28.0"
    assert request.axis.env_specs[request.axis.new] == f"overlay:{request.axis.new}@release:0.29.0"
    assert request.target == FOUND.target and not request.reuse and request.old_run is None
    scenario = request.repro.scenario
    assert (scenario.name, scenario.server.dcp) == ("lab", 1)
    assert any("where their branches part" in note for note in request.notes)
    ends = ("--repo", str(clone), "--good", base, "--bad", "v0.29.0", "--env", "release:0.29.0", "--scenario", "lab")
    assert request.command == (
        *("sparkdiag", "bisect", *ends),
        *("--no-reuse", "--looks-for", "frame:_execute", "--dcp", "1"),
    )


def test_nothing_goes_on_without_a_clone_or_without_two_releases(clone: Path) -> None:
    assert commits_between(Asked(releases="0.27.1..0.30.0"), FOUND) is None
    lost = FOUND.model_copy(update={"outcome": "inconclusive", "commits": ()})
    assert commits_between(Asked(releases="0.27.1..0.30.0", repo=str(clone)), lost) is None
