"""Clones that are cut, partial, altered or hostile: one clear line, nothing fetched, nothing run, nothing obeyed."""

import hashlib
import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from sparkdiag.bisecting.axes.commit_axis import clone_axis
from sparkdiag.bisecting.trials.culprit import MAX_DIFF_BYTES, suspect_diff
from sparkdiag.environment import clone as clone_module
from sparkdiag.environment import commits as commits_module
from sparkdiag.environment.clone import Clone, open_clone
from sparkdiag.environment.commits import blobs_of, read_commits
from sparkdiag.errors import EnvironmentFault, UsageError
from sparkdiag.harmless.printable import hidden_characters
from tests.integration.axis_case import Written, git, line, scenario_of, write

pytestmark = pytest.mark.integration


def fetched(source: Path, folder: Path, *options: str) -> Path:
    """A clone of ``source`` as a user makes it."""
    git(source.parent, "clone", "-q", "--no-local", *options, source.as_uri(), str(folder))
    return folder


def refused(folder: Path, **options: object) -> UsageError | EnvironmentFault:
    with pytest.raises((UsageError, EnvironmentFault)) as caught:
        clone_axis(open_clone(folder), scenario=scenario_of(), **options)  # type: ignore[arg-type]
    error = caught.value
    assert error.remedy and not hidden_characters(error.message) and "\n" not in error.message
    return error  # type: ignore[return-value]


def test_a_shallow_clone_says_what_it_lacks(tmp_path: Path) -> None:
    source = tmp_path / "x.git"
    ids = write(source, line(12))
    folder = fetched(source, tmp_path / "shallow", "--depth=5")
    gone = refused(folder, good=ids[1], bad=ids[11])
    assert "a shallow clone" in gone.message and "--unshallow" in str(gone.remedy)
    inside = clone_axis(open_clone(folder), scenario=scenario_of(), good=ids[7], bad=ids[11])
    assert len(inside.axis.history.commits) == 5
    assert "shallow" in refused(folder, around=ids[2]).message


def test_a_branch_that_a_shallow_clone_cut_between_the_ends(tmp_path: Path) -> None:
    source = tmp_path / "x.git"
    ids = write(
        source,
        [
            Written(files={"a": "0"}),
            *(Written(parents=[place]) for place in range(5)),
            Written(parents=[0], files={"b": "1"}, subject="branch"),
            Written(parents=[6], files={"b": "2"}),
            Written(parents=[5, 7], files={"b": "2"}, subject="merge"),
        ],
    )
    folder = fetched(source, tmp_path / "shallow", "--depth=2")
    assert refused(folder, good=ids[5], bad=ids[8]).message.startswith(f"{folder} is a shallow clone")
    # The branch's files are watched by nobody: its cut is one all the same.
    assert "shallow" in refused(folder, good=ids[5], bad=ids[8], only_watched_paths=True).message
    chain = clone_axis(open_clone(folder), scenario=scenario_of(), good=ids[5], bad=ids[8], first_parent=True)
    assert [commit.sha for commit in chain.axis.history.commits] == [ids[5], ids[8]]


def test_a_clone_without_contents_still_tells_files_apart(tmp_path: Path) -> None:
    source = tmp_path / "x.git"
    ids = write(source, line(12))
    git(source, "config", "uploadpack.allowFilter", "true")
    folder = fetched(source, tmp_path / "partial", "--filter=blob:none", "--no-checkout")
    source.rename(tmp_path / "gone.git")
    axis = clone_axis(open_clone(folder), scenario=scenario_of(), good=ids[0], bad=ids[11]).axis
    assert len({commit.suspect_blobs for commit in axis.history.commits}) == 4
    assert suspect_diff(folder, old_sha=ids[2], new_sha=ids[3], paths=["vllm/indexer.py"]) == ""  # needs contents


def test_a_clone_without_trees_takes_no_file_for_absent(tmp_path: Path) -> None:
    source = tmp_path / "x.git"
    ids = write(source, line(12))
    git(source, "config", "uploadpack.allowFilter", "true")
    folder = fetched(source, tmp_path / "partial", "--filter=tree:0", "--no-checkout")
    assert blobs_of(Clone(folder), ids, ["vllm/indexer.py"]) is None
    chosen = clone_axis(open_clone(folder), scenario=scenario_of(), good=ids[0], bad=ids[11])
    assert {commit.suspect_blobs for commit in chosen.axis.history.commits} == {()}
    assert any("no watched file can be compared" in note for note in chosen.notes)
    limited = refused(folder, good=ids[0], bad=ids[11], only_watched_paths=True)
    assert "partial clone" in limited.message and "--refetch" in str(limited.remedy)


def test_revisions_that_are_none(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    ids = write(folder, line(3))
    for revision in ("-x", "--upload-pack=touch x", "--output=x", "-"):
        assert "begins with -" in refused(folder, good=revision, bad=ids[2]).message
    for revision in ("", "nonsense", "main..", "a\nb", "a\0b", "\x1b[31mred", "f" * 40, f"{ids[0]}:README", "x" * 5000):
        assert "is no commit" in refused(folder, good=revision, bad=ids[2]).message
    assert "--around" in refused(folder, around="-1").message
    assert "--suspect" in refused(folder, good=ids[0], bad=ids[2], suspect=("nonsense",)).message
    assert not list(tmp_path.rglob("x"))


def test_an_abbreviation_that_fits_several(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    write(folder, line(3))
    git(folder, "hash-object", "-w", "-t", "tree", "--stdin", stdin=b"")
    by_start: dict[str, list[str]] = {}
    for number in range(1500):
        text = f"tree {tree}\nauthor t <t> {number} +0000\ncommitter t <t> {number} +0000\n\nx\n"
        by_start.setdefault(_id_of(text)[:4], []).append(text)
    start, twins = next((start, texts) for start, texts in by_start.items() if len(texts) > 1)
    for text in twins:
        git(folder, "hash-object", "-w", "-t", "commit", "--stdin", stdin=text.encode())
    error = refused(folder, good=start, bad="main")
    assert f"{start} fits {len(twins)} commits" in error.message and "more of the commit's digits" in str(error.remedy)
    assert Clone(folder).resolve_id(start) is None


def _id_of(text: str) -> str:
    return hashlib.sha1(f"commit {len(text)}\0{text}".encode(), usedforsecurity=False).hexdigest()


def test_a_branch_called_like_a_commit_is_not_the_scenarios_commit(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    ids = write(folder, line(12))
    git(folder, "update-ref", f"refs/heads/{ids[6][:10]}", ids[2])
    chosen = clone_axis(open_clone(folder), scenario=scenario_of(suspect=ids[6][:10]), span=2)
    assert chosen.predicted == (ids[6],)
    assert (chosen.axis.old, chosen.axis.new) == (ids[4], ids[8])


SUBJECTS = [
    "\x1b]0;owned\x07\x1b[2J red \x1b[31m",
    "commit " + "1" * 40,
    "line one\nline two\r\nline three",
    "right to left \u202e gnp.exe",
    "token ghp_" + "aB3dE6gH9" * 4,
    "\udcff\udcfe not text",
    "x" * 100_000,
    "",
]


def test_subjects_and_ref_names_are_told_harmlessly(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    ids = write(
        folder,
        [Written(parents=[place - 1] if place else [], subject=subject) for place, subject in enumerate(SUBJECTS)],
    )
    git(folder, "update-ref", "refs/heads/$(touch${IFS}x);`id`|\u202e", ids[3])
    axis = clone_axis(open_clone(folder), scenario=scenario_of(), good=ids[0], bad="$(touch${IFS}x);`id`|\u202e").axis
    assert axis.new == ids[3]
    whole = clone_axis(open_clone(folder), scenario=scenario_of(), good=ids[0], bad=ids[-1]).axis
    assert [commit.sha for commit in whole.history.commits] == ids
    for commit in whole.history.commits:
        assert not hidden_characters(commit.subject) and len(commit.subject) <= commits_module.MAX_SUBJECT
    assert whole.history.commits[2].subject == "line one line two line three"
    assert "aB3dE6gH9" not in whole.history.commits[4].subject


def test_a_diff_is_bounded_and_obeyed_by_no_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    secret = "ghp_" + "aB3dE6gH9" * 4
    ids = write(
        folder,
        [
            Written(files={"vllm/indexer.py": "a\n"}),
            Written(parents=[0], files={"vllm/indexer.py": f"\x1b[2J\tkey\n{secret}\n"}),
            Written(parents=[1], files={"vllm/indexer.py": "long line of code\n" * 50_000}),
        ],
    )
    shown = suspect_diff(folder, old_sha=ids[0], new_sha=ids[1], paths=["vllm/indexer.py"])
    assert "\\x1b[2J\tkey" in shown and secret not in shown
    long = suspect_diff(folder, old_sha=ids[1], new_sha=ids[2], paths=["vllm/indexer.py"])
    assert len(long) < MAX_DIFF_BYTES + 100 and "cut after" in long.splitlines()[-1]


def armed(repo: Path, marker: Path) -> None:
    """Settings and attributes by which this clone would have git run a program at every turn."""
    program = repo / "program"
    program.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{marker}'\ncat\n")
    program.chmod(0o755)
    settings = {
        "core.fsmonitor": program,
        "core.pager": program,
        "core.hooksPath": repo,
        "core.sshCommand": program,
        "core.editor": program,
        "core.askPass": program,
        "diff.external": program,
        "diff.x.command": program,
        "diff.x.textconv": program,
        "filter.x.clean": program,
        "filter.a=b.process": program,
        "filter.a=b.required": "true",
        "filter.x.smudge": program,
        "gpg.program": program,
        "log.showSignature": "true",
        "pager.rev-list": program,
        "pager.diff-tree": program,
        "pager.ls-tree": program,
        "alias.rev-list": f"!{program}",
        "alias.diff-tree": f"!{program}",
        "extensions.partialClone": "origin",
        "remote.origin.url": f"ext::{program}",
        "remote.origin.promisor": "true",
        "protocol.ext.allow": "always",
        "color.ui": "always",
        "diff.noprefix": "true",
        "diff.relative": "true",
        "i18n.logOutputEncoding": "UTF-16",
    }
    git(repo, "config", "core.repositoryFormatVersion", "1")
    for name, value in settings.items():
        git(repo, "config", name, str(value))
    (repo / ".git" / "info" / "attributes").write_text("* diff=x filter=x\nvllm/* filter=a=b\n")


def test_what_the_clone_configures_is_not_run(tmp_path: Path) -> None:
    source, marker = tmp_path / "x.git", tmp_path / "ran"
    ids = write(source, line(9))
    repo = fetched(source, tmp_path / "repo")
    armed(repo, marker)
    before = sorted((path, path.stat().st_mtime_ns) for path in (repo / ".git").rglob("*"))
    clone = open_clone(repo)
    chosen = clone_axis(clone, scenario=scenario_of(suspect=ids[4]), span=3, only_watched_paths=True)
    assert chosen.axis.history.commits[0].subject == "commit 1 (#101)"
    diff = suspect_diff(repo, old_sha=ids[2], new_sha=ids[3], paths=["vllm/indexer.py"])
    assert diff.startswith("diff --git a/vllm/indexer.py b/vllm/indexer.py") and "\x1b" not in diff
    missing = clone.output("cat-file", "blob", "1" * 40)
    assert missing is None
    assert not marker.exists(), marker.read_text()
    assert sorted((path, path.stat().st_mtime_ns) for path in (repo / ".git").rglob("*")) == before
    for path in ("README", "vllm/indexer.py"):
        os.utime(repo / path, (1_700_000_000, 1_700_000_000))  # to be read again, through the filter
    head = clone.head()
    assert head is not None and not head.dirty
    (repo / "README").write_text("changed")
    head = clone.head()
    assert head is not None and head.dirty
    assert not marker.exists(), marker.read_text()
    with suppress(subprocess.CalledProcessError):  # the program speaks no filter's protocol
        git(repo, "-c", "core.fsmonitor=false", "status")
    assert marker.exists()  # the trap works: a user's git does run it


def test_replaced_and_grafted_commits_are_read_as_everybody_has_them(tmp_path: Path) -> None:
    folder = tmp_path / "x.git"
    ids = write(folder, line(7))
    git(folder, "replace", ids[4], ids[1])
    (folder / "info").mkdir(exist_ok=True)
    (folder / "info" / "grafts").write_text(f"{ids[6]} {ids[0]}\n")
    axis = clone_axis(open_clone(folder), scenario=scenario_of(), good=ids[0], bad=ids[6]).axis
    assert [commit.sha for commit in axis.history.commits] == ids
    assert axis.history.commits[4].subject == "commit 4 (#104)"


def test_too_many_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "x.git"
    ids = write(folder, line(9))
    monkeypatch.setattr(commits_module, "MAX_COMMITS", 5)
    error = refused(folder, good=ids[0], bad=ids[8])
    assert "more than 5 commits" in error.message and "--span" in str(error.remedy)
    assert len(read_commits(Clone(folder), old=ids[3], new=ids[8])) == 6


def test_callers_git_variables_and_a_bare_clone_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, other = tmp_path / "x.git", tmp_path / "other.git"
    ids = write(folder, line(4))
    write(other, [Written(subject="elsewhere")])
    configuration = tmp_path / "gitconfig"
    configuration.write_text("[safe]\n\tbareRepository = explicit\n")
    strange = {"GIT_DIR": other, "GIT_COMMON_DIR": other, "GIT_GLOB_PATHSPECS": 1, "GIT_CONFIG_GLOBAL": configuration}
    for name, value in strange.items():
        monkeypatch.setitem(os.environ, name, str(value))
    clone = open_clone(folder)
    assert clone.root() is None
    axis = clone_axis(clone, scenario=scenario_of(), good=ids[0], bad="HEAD").axis
    assert [commit.sha for commit in axis.history.commits] == ids


def test_an_answer_is_bounded_in_time_and_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "git"
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    clone = Clone(tmp_path, timeout_s=1)
    for said, answers in {
        "echo one; exec sleep 60": (None, None),
        "exec yes": (None, None),
        "yes | head -c 100000": (None, b"y\ny\n"),
        "echo one": (b"one\n", b"one\n"),
        "echo one; exit 3": (None, None),
    }.items():
        fake.write_text(f"#!/bin/sh\n{said}\n")
        fake.chmod(0o755)
        monkeypatch.setattr(clone_module, "MAX_OUTPUT_BYTES", 50_000)
        assert (clone.output("rev-list"), clone.output("rev-list", limit=4)) == (
            answers[0],
            answers[1] and answers[1][:4],
        )
