"""An overlay changes nothing of the clone and the base it is made from, and runs nothing that they configure."""

import shutil
from pathlib import Path

import pytest

from sparkdiag.errors import EnvironmentFault
from tests.integration.overlay_case import (
    AT_BASE,
    CHANGE,
    OverlayCase,
    attempts,
    commit,
    extension,
    git,
    prepared,
    run,
    snapshot,
)

pytestmark = pytest.mark.integration


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OverlayCase:
    monkeypatch.setenv("SPARKDIAG_CACHE", str(tmp_path / "cache"))
    return OverlayCase(tmp_path)


@pytest.mark.parametrize("kind", ["checkout", "bare", "shallow", "linked", "borrowing"])
def test_nothing_of_the_clone_is_changed(case: OverlayCase, kind: str) -> None:
    sha = commit(case.clone, CHANGE)
    clone = case.folder / "other clone"
    match kind:
        case "checkout":
            clone = case.clone
            (clone / "vllm" / "feature.py").write_text("edited, and staged")
            git(clone, "add", "vllm/feature.py")
            (clone / "untracked").write_text("")
        case "bare" | "borrowing":
            borrowing = ("--shared",) if kind == "borrowing" else ()
            git(case.folder, "clone", "-q", "--bare", *borrowing, "clone", str(clone))
        case "shallow":
            git(case.folder, "clone", "-q", "--depth=1", f"file://{case.clone}", str(clone))
        case "linked":
            git(case.clone, "worktree", "add", "-q", "--detach", str(clone))
    status = git(case.clone, "status", "--porcelain")
    before, everything = snapshot(clone), snapshot(case.clone)
    environment = prepared(case, sha, repo=clone)
    assert snapshot(clone) == before and snapshot(case.clone) == everything
    told = {file.module: file.sha256 for file in run(case, environment).files}
    assert told.items() <= {file.module: file.sha256 for file in environment.expected_files}.items() and len(told) == 2
    assert git(case.clone, "status", "--porcelain") == status
    assert git(clone, "worktree", "list").count("\n") == (1 if kind == "linked" else 0)


def test_nothing_that_the_clone_or_the_user_configured_is_run_and_no_byte_is_changed(
    case: OverlayCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = case.folder / "ran"
    program = case.folder / "program"
    program.write_text(f"#!/bin/sh\necho $0 $@ >> {ran}\ncat\n")
    program.chmod(0o755)
    content = "def prefill():\n    return '$Id$'\n"
    attributes = "* filter=evil ident\n*.py eol=crlf text working-tree-encoding=UTF-16\n"
    commit(case.clone, {"vllm/feature.py": content})
    commit(case.clone, {".gitattributes": attributes, "vllm/.gitattributes": attributes})
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        (case.clone / ".git" / "hooks" / name).write_text(program.read_text())
        (case.clone / ".git" / "hooks" / name).chmod(0o755)
    home = case.folder / "home"
    home.mkdir()
    filters = f'[filter "evil"]\n\tsmudge = {program}\n\tclean = {program}\n\trequired\n'
    core = f"[core]\n\tfsmonitor = {program}\n\thooksPath = {case.clone}/.git/hooks\n\tautocrlf = true\n"
    settings = filters + core
    (home / ".gitconfig").write_text(settings)
    with (case.clone / ".git" / "config").open("a") as config:
        config.write(settings)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(case.folder / "nowhere"))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", f"'core.fsmonitor'='{program}'")
    environment = prepared(case, "main")
    assert not ran.exists()
    assert Path(environment.package_path or "", "feature.py").read_bytes() == content.encode()
    assert prepared(case, "main") == environment and not ran.exists()


def test_a_clone_that_moved_is_no_hindrance(case: OverlayCase) -> None:
    commit(case.clone, CHANGE)
    first = prepared(case, "HEAD")
    moved = case.clone.rename(case.folder / "moved")
    again = prepared(case, "HEAD", repo=moved)
    assert again.key == first.key and again.repo == str(moved)
    assert git(Path(again.pythonpath[0]), "status", "--porcelain") == ""


def test_a_base_that_is_somebodys_checkout_gives_only_what_its_build_made(case: OverlayCase) -> None:
    built = case.folder / "built"
    git(case.folder, "clone", "-q", "clone", str(built))
    for name in ("_version.py", extension().name, "vllm_flash_attn/copied.py"):
        (built / "vllm" / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(case.site / "vllm" / name, built / "vllm" / name)
    (built / "vllm" / "scratch.py").write_text("somebody's notes")
    (built / "vllm" / "steady.py").write_text("edited there, and not committed")
    shutil.rmtree(case.site / "vllm")
    (case.site / "vllm.pth").write_text(f"{built}\n")
    sha = commit(case.clone, CHANGE)
    before = snapshot(built)
    environment = prepared(case, "main")
    package = Path(environment.package_path or "")
    links = {path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_symlink()}
    assert links == {"_version.py", extension().name, "vllm_flash_attn/copied.py"}
    assert (package / "steady.py").read_text() == AT_BASE["vllm/steady.py"]
    assert environment.revision_sha == sha and environment.repo == str(case.clone)
    assert "changed since the base" in environment.notes[0] and snapshot(built) == before
    assert run(case, environment).vllm_path == f"{package}/__init__.py"


def test_links_in_a_commit_lead_no_file_out_of_the_tree(case: OverlayCase) -> None:
    outside = case.folder / "outside"
    outside.mkdir()
    assert case.run("import vllm.steady").returncode == 0
    (case.clone / "vllm" / "__pycache__").symlink_to(outside)
    (case.clone / "vllm" / "vllm_flash_attn").symlink_to(outside)
    git(case.clone, "add", "--force", "vllm/__pycache__", "vllm/vllm_flash_attn")
    git(case.clone, "commit", "-q", "-m", "links")
    prepared(case, "main")
    assert not list(outside.iterdir())


def test_a_clone_that_left_its_objects_at_a_remote_says_so(case: OverlayCase) -> None:
    commit(case.clone, CHANGE)
    git(case.clone, "config", "uploadpack.allowFilter", "true")
    partial = case.folder / "partial"
    git(case.folder, "clone", "-q", "--bare", "--filter=blob:none", f"file://{case.clone}", str(partial))
    with pytest.raises(EnvironmentFault) as caught:
        prepared(case, "main", repo=partial)
    assert "--refetch" in (caught.value.remedy or "") and not attempts(case.folder / "cache")
