"""The lab's repository with real git: the same ids under any settings, whole after any interruption."""

import subprocess
import sys
from pathlib import Path

import pytest

from sparkdiag.errors import EnvironmentFault, UsageError
from sparkdiag.lab import history

pytestmark = pytest.mark.integration

TREE = Path(history.__file__).parent / "source" / "tree"


@pytest.fixture(scope="module")
def repo(tmp_path_factory):
    return history.ensure_lab_repo(tmp_path_factory.mktemp("lab"))


def files_of(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not {"__pycache__", ".ruff_cache"} & set(path.parts)
    }


def test_the_ids_are_the_constants(repo):
    assert history.resolve(repo, "fused") == history.SUSPECT_COMMIT
    assert history.resolve(repo, "gate-dropped") == history.FIX_COMMIT
    assert history.resolve(repo, "main") == history.MAIN_COMMIT
    assert history.resolve(repo, None) == history.resolve(repo, "incident")


def test_the_repository_is_sound_and_shaped_as_a_search_wants_it(repo):
    def git(*args):
        return subprocess.run(
            ["git", "--git-dir", repo, *args], capture_output=True, text=True, check=True
        ).stdout.split()

    git("fsck", "--strict")
    assert 14 <= int(git("rev-list", "--count", "main")[0]) <= 20
    assert git("rev-list", "--count", "--merges", "fused..gate-dropped") == ["1"]
    for before, after in (("fallback-only", "fused"), ("fused", "does-not-start"), ("incident", "gate-dropped")):
        git("merge-base", "--is-ancestor", before, after)


def test_export_is_byte_for_byte_the_tree(repo, tmp_path):
    dest = history.export(repo, history.MAIN_COMMIT, tmp_path / "deep" / "tree")
    assert files_of(dest) == files_of(TREE)


def test_user_settings_and_the_callers_repository_do_not_matter(tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / "template" / "hooks").mkdir(parents=True)
    (home / ".gitconfig").write_text(
        "[commit]\ngpgsign = true\n[core]\nautocrlf = true\nhooksPath = /nonexistent\n"
        f"[init]\ntemplateDir = {home / 'template'}\ndefaultBranch = other\n[i18n]\ncommitEncoding = latin1\n"
    )
    for name, value in {
        "HOME": str(home),
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "GIT_AUTHOR_NAME": "Somebody Else",
        "GIT_AUTHOR_DATE": "2001-01-01T00:00:00",
        "GIT_COMMITTER_EMAIL": "else@example.invalid",
        "GIT_DIR": str(tmp_path / "elsewhere"),
        "GIT_OBJECT_DIRECTORY": str(tmp_path / "nowhere"),
        "GIT_INDEX_FILE": str(tmp_path / "index"),
        "GIT_DEFAULT_HASH": "sha256",
        "TZ": "Asia/Kathmandu",
    }.items():
        monkeypatch.setenv(name, value)
    repo = history.ensure_lab_repo(tmp_path / "lab")
    assert history.resolve(repo, "main") == history.MAIN_COMMIT
    assert files_of(history.export(repo, "main", tmp_path / "tree")) == files_of(TREE)
    assert not (tmp_path / "nowhere").exists()


def test_a_second_call_changes_nothing(tmp_path):
    repo = history.ensure_lab_repo(tmp_path)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert history.ensure_lab_repo(tmp_path) == repo
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == stamps


@pytest.mark.parametrize("damage", ["objects", "refs", "HEAD"])
def test_a_damaged_copy_is_replaced(tmp_path, damage):
    repo = history.ensure_lab_repo(tmp_path)
    for path in [repo / damage, *(repo / damage).rglob("*")]:
        if path.is_file():
            path.chmod(0o644)
            path.write_bytes(b"")
    assert history.ensure_lab_repo(tmp_path) == repo
    assert history.resolve(repo, "main") == history.MAIN_COMMIT
    assert [path.name for path in tmp_path.iterdir()] == [repo.name]


def test_processes_that_race_get_the_same_whole_repository(tmp_path):
    program = "import sys, pathlib; from sparkdiag.lab import history as h; " + (
        "r = h.ensure_lab_repo(pathlib.Path(sys.argv[1])); print(r, h.resolve(r, 'main'))"
    )
    racers = [
        subprocess.Popen([sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    answers = {racer.communicate(timeout=120)[0].strip() for racer in racers}
    assert [racer.returncode for racer in racers] == [0, 0, 0]
    assert len(answers) == 1
    assert answers.pop().endswith(history.MAIN_COMMIT)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("rev", ["nope", "--help", "-x", "main:README.md", "main..fused", "", "main^{tree}"])
def test_what_is_no_commit_is_refused_by_name(repo, rev):
    if not rev:
        assert history.resolve(repo, rev) == history.resolve(repo, None)
        return
    with pytest.raises(UsageError, match="no revision") as caught:
        history.resolve(repo, rev)
    assert any("incident" in line for line in caught.value.details)


def test_short_ids_and_expressions_resolve(repo):
    assert history.resolve(repo, history.SUSPECT_COMMIT[:8]) == history.SUSPECT_COMMIT
    assert history.resolve(repo, "main~1") == history.FIX_COMMIT


def test_a_folder_that_cannot_be_written_is_a_clear_fault(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(EnvironmentFault, match="could not be written"):
        history.ensure_lab_repo(tmp_path / "file")
