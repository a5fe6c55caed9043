"""Real git histories become axes: merges, moved files, path restriction, ends by ancestry, the range around a REV."""

import random
from pathlib import Path

import pytest

from sparkdiag.bisecting.axes.commit_axis import clone_axis, lab_axis
from sparkdiag.bisecting.search.candidates import next_trial, standing
from sparkdiag.bisecting.trials.culprit import suspect_diff
from sparkdiag.environment.clone import Clone, open_clone
from sparkdiag.environment.commits import read_commits, with_blobs
from sparkdiag.errors import UsageError
from sparkdiag.evidence.bisection import Mark
from sparkdiag.lab.history import FIX_COMMIT, MAIN_COMMIT, SUSPECT_COMMIT, ensure_lab_repo
from sparkdiag.scenario.load import load_scenario
from tests.integration.axis_case import Written, git, line, scenario_of, write

pytestmark = pytest.mark.integration


def random_history(seed: int, *, count: int = 24) -> list[Written]:
    """Merges, a watched file that changes, is moved away and comes back."""
    chance = random.Random(seed)
    commits = [Written(files={"vllm/indexer.py": "0"})]
    for place in range(1, count):
        parents = [chance.randint(max(0, place - 4), place - 1)]
        other = chance.randint(max(0, place - 7), place - 1)
        if other != parents[0] and chance.random() < 0.4:
            parents.append(other)
        files: dict[str, str | None] = {"other": str(place)}
        if chance.random() < 0.6:
            files["vllm/indexer.py"] = chance.choice([str(place), "1", None])
            files["vllm/new/indexer.py"] = chance.choice([str(place), "1", None])
        commits.append(Written(parents=parents, files=files))
    return commits


@pytest.mark.parametrize("seed", range(3))
def test_ancestors_and_blobs_are_gits(tmp_path: Path, seed: int) -> None:
    folder = tmp_path / "x.git"
    ids = write(folder, random_history(seed))
    axis = clone_axis(open_clone(folder), scenario=scenario_of(), good=ids[0], bad=ids[-1])
    history, paths = axis.axis.history, axis.suspect_paths
    assert {commit.sha for commit in history.commits} == set(git(folder, "rev-list", "main").split())
    for commit in history.commits:
        assert set(history.members(history.ancestors_of(commit.sha))) == set(
            git(folder, "rev-list", commit.sha).split()
        )
        listed = git(folder, "ls-tree", "-r", commit.sha)
        blobs = {path: described.split()[2] for described, path in (row.split("\t") for row in listed.splitlines())}
        assert commit.suspect_blobs == tuple(blobs.get(path, "-") for path in paths)
    assert paths == ("vllm/new/indexer.py", "vllm/indexer.py")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("first_parent", [False, True])
def test_path_restriction_keeps_gits_commits_and_the_ends(tmp_path: Path, seed: int, first_parent: bool) -> None:
    folder = tmp_path / "x.git"
    ids = write(folder, random_history(seed, count=40))
    clone, paths = Clone(folder), ["vllm/indexer.py", "vllm/new/indexer.py"]
    only = ["--first-parent"] if first_parent else []
    for old in git(folder, "rev-list", "main").split()[1::4]:
        got = read_commits(clone, old=old, new=ids[-1], first_parent=first_parent, paths=paths)
        listed = set(git(folder, "rev-list", *only, f"{old}..main", "--", *paths).split())
        assert {commit.sha for commit in got} == listed | {old, ids[-1]}
        assert got[0].sha == old and got[0].parents == ()
        known = {commit.sha for commit in got}
        assert all(set(commit.parents) <= known for commit in got)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("first_parent", "watched"), [(False, False), (True, False), (False, True), (True, True)])
def test_the_culprit_is_that_of_git_bisect(tmp_path: Path, seed: int, first_parent: bool, watched: bool) -> None:
    folder = tmp_path / "x.git"
    ids = write(folder, random_history(seed, count=30))
    chosen = clone_axis(
        open_clone(folder),
        scenario=scenario_of(),
        good=ids[0],
        bad=ids[-1],
        first_parent=first_parent,
        only_watched_paths=watched,
    )
    history = chosen.axis.history
    listed = set(git(folder, "rev-list", "main", "--", *(chosen.suspect_paths if watched else ())).split())
    assert chosen.axis.stand_in == (ids[-1] not in listed)
    possible = [commit for commit in history.commits[1:] if commit.sha in listed]  # git names none of the others
    for culprit in random.Random(seed).sample(possible, k=3):
        marks: dict[str, Mark] = {chosen.axis.old: "old", chosen.axis.new: "new"}
        while (tried := next_trial(history, marks)) is not None:
            contains = Clone(folder).is_ancestor(culprit.sha, tried)
            marks[tried] = "new" if contains else "old"
        options = ["--first-parent"] if first_parent else []
        paths = ["--", *chosen.suspect_paths] if watched else []
        git(folder, "bisect", "start", "--no-checkout", *options, ids[-1], ids[0], *paths)
        git(folder, "bisect", "run", "sh", "-c", f"! git merge-base --is-ancestor {culprit.sha} BISECT_HEAD")
        assert standing(history, marks).found == git(folder, "rev-parse", "refs/bisect/bad")
        git(folder, "bisect", "reset")


def test_the_new_end_contains_all_that_a_path_restriction_leaves(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    ids = write(folder, line(9))
    chosen = clone_axis(open_clone(folder), scenario=scenario_of(), good=ids[1], bad=ids[8], only_watched_paths=True)
    points = [(commit.sha, commit.parents) for commit in chosen.axis.history.commits]
    assert points == [(ids[1], ()), (ids[3], (ids[1],)), (ids[6], (ids[3],)), (ids[8], (ids[6],))]
    assert chosen.axis.stand_in
    with pytest.raises(UsageError, match="no commit changes a watched file from"):
        clone_axis(open_clone(folder), scenario=scenario_of(), good=ids[6], bad=ids[8], only_watched_paths=True)
    assert "of 7 commits only 3 are searched" in chosen.notes[1]


def test_a_merged_branch_is_searched_or_passed_by(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    ids = write(
        folder,
        [
            Written(files={"vllm/indexer.py": "0"}),
            Written(parents=[0]),
            Written(parents=[0], files={"vllm/indexer.py": "branch"}),
            Written(parents=[2]),
            Written(parents=[1, 3], files={"vllm/indexer.py": "branch"}, subject="Merge pull request #7 from a/b"),
        ],
    )
    clone = open_clone(folder)
    whole = clone_axis(clone, scenario=scenario_of(), good=ids[1], bad=ids[4]).axis
    assert {commit.sha: commit.parents for commit in whole.history.commits} == {
        ids[1]: (),
        ids[2]: (),  # forked before the old end: it does not contain it
        ids[3]: (ids[2],),
        ids[4]: (ids[1], ids[3]),
    }
    first = clone_axis(clone, scenario=scenario_of(), good=ids[1], bad=ids[4], first_parent=True)
    assert [(commit.sha, commit.parents) for commit in first.axis.history.commits] == [
        (ids[1], ()),
        (ids[4], (ids[1],)),
    ]
    assert any("whole merged branch" in note for note in first.notes)


def test_a_moved_file_is_followed_and_its_move_shown(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    text = "".join(f"line {number}\n" for number in range(30))
    ids = write(
        folder,
        [
            Written(files={"vllm/indexer.py": text}),
            Written(parents=[0], files={"vllm/indexer.py": None, "vllm/new/indexer.py": text + "gate = False\n"}),
            Written(parents=[1], files={"README": "x"}),
        ],
    )
    chosen = clone_axis(open_clone(folder), scenario=scenario_of(), good=ids[0], bad=ids[2])
    before, after, last = (commit.suspect_blobs for commit in chosen.axis.history.commits)
    assert (before[0], after[1]) == ("-", "-") and before[1] != after[0] and after == last
    shown = suspect_diff(folder, old_sha=ids[0], new_sha=ids[2], paths=chosen.suspect_paths)
    assert "rename from vllm/indexer.py" in shown and "+gate = False" in shown and "README" not in shown
    assert suspect_diff(folder, old_sha=ids[1], new_sha=ids[2], paths=chosen.suspect_paths) == ""
    assert suspect_diff(tmp_path / "gone", old_sha=ids[0], new_sha=ids[2], paths=chosen.suspect_paths) == ""


def test_links_and_folders_in_place_of_a_watched_file(tmp_path: Path) -> None:
    repo = tmp_path / "x"
    (repo / "vllm").mkdir(parents=True)
    git(repo, "init", "-q", "-b", "main")
    git(repo, "commit", "-q", "--allow-empty", "-m", "nothing")
    (repo / "vllm" / "elsewhere.py").write_text("1")
    (repo / "vllm" / "indexer.py").symlink_to("elsewhere.py")
    git(repo, "add", ".")
    git(repo, "commit", "-q", "-m", "link")
    (repo / "vllm" / "elsewhere.py").write_text("2")
    git(repo, "commit", "-q", "-am", "the link's target changes")
    ids = git(repo, "rev-list", "--reverse", "main").split()
    clone, paths = Clone(repo), ["vllm/indexer.py"]
    commits = with_blobs(clone, read_commits(clone, old=ids[0], new=ids[2]), paths)
    assert [commit.suspect_blobs for commit in commits] == [("-",), (), ()]  # equal links are not equal contents
    folders = with_blobs(clone, commits, ["vllm"])
    assert len({commit.suspect_blobs for commit in folders}) == 3


def test_a_folder_inside_a_checkout_stands_for_the_whole(tmp_path: Path) -> None:
    ids = write(tmp_path / "x.git", line(9))
    git(tmp_path, "clone", "-q", "x.git", "repo")
    inside = tmp_path / "repo" / "vllm"
    git(inside, "config", "diff.relative", "true")
    for only_watched_paths in (False, True):
        chosen = clone_axis(
            open_clone(inside), scenario=scenario_of(), good=ids[0], bad=ids[8], only_watched_paths=only_watched_paths
        )
        assert chosen.axis.repo == str(tmp_path / "repo") and chosen.suspect_paths == ("vllm/indexer.py",)
        assert len({commit.suspect_blobs for commit in chosen.axis.history.commits}) == 3
    assert "+3" in suspect_diff(inside, old_sha=ids[2], new_sha=ids[3], paths=chosen.suspect_paths)


def test_ends_are_ordered_by_ancestry(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    ids = write(folder, line(6))
    for good, bad in ((ids[1], ids[4]), ("main~1", "main~4")):
        axis = clone_axis(open_clone(folder), scenario=scenario_of(), good=good, bad=bad).axis
        assert (axis.old, axis.new) == (ids[1], ids[4])
        assert [commit.sha for commit in axis.history.commits] == ids[1:5]


def test_ends_that_make_no_range(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    ids = write(folder, [Written(), Written(parents=[0]), Written(parents=[0]), Written(subject="another root")])
    clone = open_clone(folder)

    def refused(**options: object) -> UsageError:
        with pytest.raises(UsageError) as caught:
            clone_axis(clone, scenario=scenario_of(), **options)  # type: ignore[arg-type]
        return caught.value

    apart = refused(good=ids[1], bad=ids[2])
    assert ids[0][:10] in apart.message and f"--good {ids[0][:10]} --bad {ids[2][:10]}" in str(apart.remedy)
    assert "no history in common" in refused(good=ids[0], bad=ids[3]).message
    assert "both ends are the commit" in refused(good=ids[0], bad=ids[1] + "~1").message
    assert "two ends" in refused(good=ids[0]).message
    assert "--good and --bad only" in str(refused(good=ids[0], bad=ids[1], span=3).remedy)
    assert "--span 0" in refused(around=ids[0], span=0).message


def test_around_the_suspect_commit_or_its_twin(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    ids = write(folder, line(20))
    clone = open_clone(folder)
    scenario = scenario_of(suspect="f" * 40, twins=(ids[10][:12],))
    chosen = clone_axis(clone, scenario=scenario, span=4)
    assert (chosen.axis.old, chosen.axis.new) == (ids[6], ids[14])
    assert chosen.predicted == (ids[10],)
    assert "twin" in chosen.notes[0] and "4 first-parent steps before and 4 after" in chosen.notes[0]
    near = clone_axis(clone, scenario=scenario, around="main~1", span=30)
    assert (near.axis.old, near.axis.new) == (ids[0], ids[19])
    assert "18 first-parent steps before and 1 after (HEAD)" in near.notes[0]
    assert (clone_axis(clone, scenario=scenario, around="main", span=2).axis.new) == ids[19]
    far = clone_axis(clone, scenario=scenario, around=ids[2], span=2)
    assert far.predicted == () and any("predicts nothing" in note for note in far.notes)
    assert clone_axis(clone, scenario=scenario, span=4, suspect=(ids[11], ids[9])).predicted == (ids[11], ids[9])
    with pytest.raises(UsageError, match="none of the scenario's suspect commits ffffffffff"):
        clone_axis(clone, scenario=scenario_of(suspect="f" * 40))
    with pytest.raises(UsageError, match="names no suspect commit"):
        clone_axis(clone, scenario=scenario_of())


def test_around_a_commit_of_a_merged_branch_and_one_that_was_not_merged(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    ids = write(
        folder,
        [
            *(Written(parents=[place - 1] if place else []) for place in range(4)),
            Written(parents=[1], subject="on the branch"),
            Written(parents=[3, 4], subject="merge"),
            Written(parents=[5]),
            Written(parents=[6]),
        ],
    )
    git(
        folder,
        "update-ref",
        "refs/heads/side",
        git(folder, "commit-tree", "-p", ids[2], "-m", "x", f"{ids[2]}^{{tree}}"),
    )
    axis = clone_axis(open_clone(folder), scenario=scenario_of(), around=ids[4], span=2).axis
    assert (axis.old, axis.new) == (ids[0], ids[6])  # the merge and the one after it
    assert ids[4] in axis.history.index
    with pytest.raises(UsageError, match="does not contain") as caught:
        clone_axis(open_clone(folder), scenario=scenario_of(), around="side")
    assert "branch --all --contains" in str(caught.value.remedy)


def test_the_labs_own_history(tmp_path: Path) -> None:
    repo, scenario = ensure_lab_repo(tmp_path), load_scenario("lab")
    chosen = lab_axis(repo, scenario=scenario)
    axis = chosen.axis
    assert axis.lab and axis.repo is None and axis.read_from == str(repo)
    assert axis.new == MAIN_COMMIT and axis.history.commits[0].sha == axis.old
    assert chosen.predicted == (SUSPECT_COMMIT,)
    assert set(scenario.suspect.paths) <= set(chosen.suspect_paths)
    assert {"sparklab/sm12x_mqa.py"} == set(chosen.suspect_paths) - set(scenario.suspect.paths)
    assert len({commit.suspect_blobs for commit in axis.history.commits}) == 3  # before, fused, gate dropped
    assert any(len(commit.parents) == 2 for commit in axis.history.commits)
    later = lab_axis(repo, scenario=scenario, good="gate-dropped", bad="fused").axis
    assert (later.old, later.new) == (SUSPECT_COMMIT, FIX_COMMIT)
    assert lab_axis(repo, scenario=scenario, bad="fused").axis.new == MAIN_COMMIT
    diff = suspect_diff(repo, old_sha=FIX_COMMIT + "~1", new_sha=FIX_COMMIT, paths=chosen.suspect_paths)
    assert "clean_logits" in diff
    with pytest.raises(UsageError, match="no commit of the lab's history") as caught:
        lab_axis(repo, scenario=scenario, good="nonsense")
    assert "gate-dropped" in str(caught.value.remedy) and str(repo) not in str(caught.value.remedy)
