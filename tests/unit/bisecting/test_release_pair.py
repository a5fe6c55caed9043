"""From the two releases that a search found to the search between them."""

import shlex

import pytest

from sparkdiag.bisecting.axes.axis import Axis
from sparkdiag.bisecting.axes.release_pair import with_bases
from sparkdiag.bisecting.search.history import History
from sparkdiag.evidence.bisection import Bisection, Commit, Direction, Target
from sparkdiag.reporting.follow_up import ReleasePair, follow_up, next_command, pair_of, tag_of

PAIR = ReleasePair(older="0.28.0", newer="0.29.0", older_has_it=False)
COMMAND = ("/usr/bin/sparkdiag", "bisect", "--releases", "0.27.1..0.32.0", "--looks-for", "frame:_execute")


def release(version: str, before: str | None) -> Commit:
    return Commit(sha=version, parents=(before,) if before else ())


@pytest.mark.parametrize(("direction", "older_has_it"), [("regression", False), ("fix", True)])
def test_the_pair_around_what_was_found(direction: Direction, older_has_it: bool) -> None:
    found = Bisection(outcome="found", axis="releases", direction=direction, commits=(release("0.29.0", "0.28.0"),))
    assert pair_of(found) == PAIR.model_copy(update={"older_has_it": older_has_it})


def test_the_pair_around_candidates_spans_them() -> None:
    commits = (release("0.29.0", "0.28.0"), release("0.30.0", "0.29.0"))
    pair = pair_of(Bisection(outcome="candidates", axis="releases", direction="fix", commits=commits))
    assert pair == ReleasePair(older="0.28.0", newer="0.30.0", older_has_it=True)


def test_no_pair_where_nothing_was_found_or_nothing_was_released() -> None:
    commits = (release("0.29.0", "0.28.0"),)
    assert pair_of(Bisection(outcome="inconclusive", axis="releases", commits=commits)) is None
    assert pair_of(Bisection(outcome="found", axis="commits", commits=commits)) is None
    assert pair_of(Bisection(outcome="found", axis="releases", commits=(release("0.29.0", None),))) is None
    assert pair_of(Bisection(outcome="found", axis="releases")) is None


@pytest.mark.parametrize(
    ("version", "tag"), [("0.29.0", "v0.29.0"), ("0.12.0.post2", "v0.12.0"), ("0.30.0rc1", "v0.30.0rc1")]
)
def test_tags(version: str, tag: str) -> None:
    assert tag_of(version) == tag


def test_a_wheel_packaged_again_has_the_same_source() -> None:
    assert ReleasePair(older="0.12.0", newer="0.12.0.post2", older_has_it=True).same_source
    assert not PAIR.same_source


def test_each_commit_stands_on_the_nearer_release() -> None:
    shas = [f"{number:040x}" for number in range(1, 6)]
    commits = [
        Commit(sha=sha, parents=(before,) if before else ())
        for sha, before in zip(shas, (None, *shas[:-1]), strict=True)
    ]
    axis = Axis(kind="commits", history=History.of(commits), old=shas[0], new=shas[-1], repo="/clone")
    specs = with_bases(axis, PAIR).env_specs
    assert specs[shas[0]] == f"overlay:{shas[0]}@release:0.28.0" and specs[shas[2]].endswith("@release:0.28.0")
    assert specs[shas[3]].endswith("@release:0.29.0") and specs[shas[-1]] == f"overlay:{shas[-1]}@release:0.29.0"


def test_the_command_that_follows_keeps_the_question_and_leaves_out_the_releases() -> None:
    command = (*COMMAND, "--dcp=1", "--repeat", "2", "--no-reuse", "--env=lab", "--out", "my runs", "--", "--env", "x")
    text = next_command(PAIR, command=command, target=Target(what="frame", frame="_execute"), scenario="lab")
    parted = '"$(git -C path/to/vllm merge-base v0.28.0 v0.29.0)"'
    assert text.startswith(f"sparkdiag bisect --repo path/to/vllm --good {parted} --bad v0.29.0 --env release:0.29.0 ")
    assert shlex.split(text)[10:] == [
        *("--scenario", "lab", "--no-reuse", "--looks-for", "frame:_execute", "--dcp=1", "--repeat", "2"),
        *("--out", "my runs", "--", "--env", "x"),
    ]
    assert "--releases" not in text and "0.27.1" not in text


def test_the_end_that_has_the_stall_is_called_bad() -> None:
    fixed = PAIR.model_copy(update={"older_has_it": True})
    text = next_command(
        fixed, command=(*COMMAND[:4], "--scenario=my.toml"), target=Target(), scenario="mine", clone="/my clone"
    )
    assert text == (
        "sparkdiag bisect --repo '/my clone' --good v0.29.0 "
        "--bad \"$(git -C '/my clone' merge-base v0.28.0 v0.29.0)\" --env release:0.29.0 --scenario=my.toml"
    )


def test_no_word_of_the_command_runs_in_the_shell_that_it_is_pasted_into() -> None:
    text = next_command(PAIR, command=(*COMMAND, "--model", "$(touch x); `y`"), target=Target(), scenario="lab")
    assert shlex.split(text)[-1] == "$(touch x); `y`" and "'$(touch x); `y`'" in text


def test_only_two_releases_of_different_sources_have_a_search_that_follows() -> None:
    found = Bisection(
        outcome="found",
        axis="releases",
        direction="regression",
        commits=(release("0.29.0", "0.28.0"),),
        scenario="lab",
        command=COMMAND,
    )
    assert (follow_up(found) or "").endswith("--env release:0.29.0 --scenario lab --looks-for frame:_execute")
    assert "--repo /clone --good" in (follow_up(found.model_copy(update={"repo": "/clone"})) or "")
    again = found.model_copy(update={"commits": (release("0.28.0.post1", "0.28.0"),)})
    assert follow_up(again) is None and follow_up(found.model_copy(update={"axis": "commits"})) is None


@pytest.mark.parametrize("version", ["0.28.0); touch x; (", "$(touch x)", "0.28.0\n0.29.0", "-C", ""])
def test_a_document_of_somebody_elses_puts_nothing_into_the_command(version: str) -> None:
    for commit in (release("0.29.0", version or None), release(version, "0.28.0")):
        found = Bisection(outcome="found", axis="releases", direction="fix", commits=(commit,), scenario="lab")
        assert follow_up(found) is None
