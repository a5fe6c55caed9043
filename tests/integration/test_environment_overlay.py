"""Overlays for real: git, a worktree, a base with a compiled extension, and the interpreter that runs them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sparkdiag.cleaning.cached import in_cache, remove_environment
from sparkdiag.environment import cache, overlay
from sparkdiag.environment.cache import environments_dir, hold, list_environments
from sparkdiag.environment.model import Environment
from sparkdiag.environment.overlaid import plan_for
from sparkdiag.environment.prepare import prepare
from sparkdiag.environment.progress import SilentProgress
from sparkdiag.environment.proof import prove_revision
from sparkdiag.environment.prune import prune
from sparkdiag.environment.spec import ExistingSpec, OverlaySpec, PrecompiledSpec, parse_spec
from sparkdiag.errors import BusyError, EnvironmentFault, UsageError
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.identity import ProcessIdentity, ServerIdentity
from sparkdiag.evidence.run import FileProof
from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.model import PromptSettings, Scenario, ServerSettings, Signature, Suspect, WatchedFunction
from tests.integration.overlay_case import AT_BASE, VERSION, OverlayCase, commit, extension, git, snapshot

pytestmark = pytest.mark.integration

CHANGE: dict[str, str | None] = {
    "vllm/feature.py": "def prefill():\n    return 'revision'\n",
    "vllm/added.py": "here = True\n",
    "vllm/gone.py": None,
}
ASK = """
import json, sys, hashlib
import vllm, vllm.feature
print(json.dumps({
    "version": vllm.__version__, "path": vllm.__file__, "prefill": vllm.feature.prefill(),
    "files": [{"module": m, "path": sys.modules[m].__file__,
               "sha256": hashlib.sha256(open(sys.modules[m].__file__, "rb").read()).hexdigest()}
              for m in ("vllm", "vllm.feature")],
}))
"""


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OverlayCase:
    monkeypatch.setenv("SPARKDIAG_CACHE", str(tmp_path / "cache"))
    return OverlayCase(tmp_path)


def scenario(*, lab: bool = False) -> Scenario:
    return Scenario(
        schema=1,
        name="x",
        title="x",
        lab=lab,
        server=ServerSettings(),
        prompt=PromptSettings(tokens=64),
        signatures=(Signature(function="f", kind="torch-fallback"),),
        watch=(WatchedFunction(function="f", modules=("vllm.steady",)),),
    )


class Said(SilentProgress):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


def prepared(case: OverlayCase, revision: str, *, repo: Path | None = None, said: Said | None = None) -> Environment:
    spec = parse_spec(f"overlay:{revision}@{case.spec}")
    return prepare(spec, scenario=scenario(), revision=None, repo=repo or case.clone, progress=said or SilentProgress())


class Told(Value):
    """What ``ASK`` prints."""

    version: str
    path: str
    prefill: str
    files: tuple[FileProof, ...]


def run(case: OverlayCase, environment: Environment) -> ProcessIdentity:
    """What a process of the server would tell of itself."""
    done = case.run(ASK, *environment.pythonpath)
    assert done.returncode == 0, done.stderr
    told = Told.model_validate_json(done.stdout)
    return ProcessIdentity(pid=1, vllm_version=told.version, vllm_path=told.path, files=told.files)


def attempts(root: Path) -> list[Path]:
    return list(environments_dir(root).glob("overlay-*/overlay-*"))


def test_the_revision_runs_over_the_binaries_of_the_base(case: OverlayCase) -> None:
    sha = commit(case.clone, CHANGE)
    environment = prepared(case, "main")
    assert environment.kind == "overlay" and environment.revision_sha == sha == environment.vllm_sha
    assert environment.spec == f"overlay:main@{case.spec}" and environment.asked_revision == "main"
    assert environment.vllm_version == VERSION
    tree = Path(environment.pythonpath[0])
    assert environment.package_path == str(tree / "vllm") and {path.name for path in tree.iterdir()} == {".git", "vllm"}
    done = case.run(
        f"import vllm.{case.extension_name} as e, vllm.added, vllm.vllm_flash_attn.copied as c; print(e.__file__);"
        "print(c.__file__); import vllm.gone",
        str(tree),
    )
    assert done.stdout.splitlines() == [
        str(next((tree / "vllm").glob("*.so"))),
        str(tree / "vllm/vllm_flash_attn/copied.py"),
    ]
    assert "No module named 'vllm.gone'" in done.stderr
    assert git(tree, "rev-parse", "HEAD") == sha and git(tree, "status", "--porcelain") == ""
    assert any(f"commit {sha[:10]}" in note and "1 compiled" in note for note in environment.notes)


def test_what_runs_is_proved_and_what_differs_is_not(case: OverlayCase) -> None:
    commit(case.clone, CHANGE)
    environment = prepared(case, "HEAD")
    identity = run(case, environment)
    proof = prove_revision(environment, ServerIdentity(processes=(identity,)), suspect=Suspect(), repo=None)
    assert proof.proved and proof.sha == environment.revision_sha and "vllm.feature" in proof.because
    base = run(case, environment.model_copy(update={"pythonpath": ()}))
    proof = prove_revision(environment, ServerIdentity(processes=(base,)), suspect=Suspect(), repo=None)
    assert not proof.proved and "imported from" in proof.because and "vllm.feature differs" in proof.because


def test_bytecode_of_what_has_not_changed_is_the_bases_and_tells_the_overlays_paths(case: OverlayCase) -> None:
    commit(case.clone, CHANGE)
    assert case.run("import vllm.steady, vllm.feature").returncode == 0
    tree = prepared(case, "HEAD").pythonpath[0]
    done = case.run("import vllm.steady as s, vllm.feature; print(s.steady())", tree, options=("-B", "-v"))
    assert done.stdout.strip() == f"{tree}/vllm/steady.py"
    lines = [line for line in done.stderr.splitlines() if line.startswith("# ") and " matches " in line]
    matched = {line.rsplit("/", 1)[1] for line in lines if tree in line}
    assert {"__init__.py", "_version.py", "steady.py", "version.py"} <= matched
    assert "feature.py" not in matched
    assert case.run("import vllm.feature", tree).returncode == 0
    assert list(Path(tree, "vllm/__pycache__").glob("feature.*.pyc")), "a server writes what is missing"


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


def test_one_that_is_there_takes_no_time_and_one_that_was_changed_is_made_again(case: OverlayCase) -> None:
    commit(case.clone, CHANGE)
    said = Said()
    first = prepared(case, "HEAD", said=said)
    assert prepared(case, "HEAD", said=said) == first
    assert len(said.lines) == 1
    Path(first.package_path or "", "feature.py").write_text("edited")
    again = prepared(case, "HEAD", said=said)
    assert "changed on disk (vllm/feature.py)" in said.lines[1]
    Path(again.package_path or "", "stray.py").write_text("")
    third = prepared(case, "HEAD", said=said)
    assert not Path(third.package_path or "", "stray.py").exists() and len(said.lines) == 5
    assert len(attempts(case.folder / "cache")) == 1


def test_a_clone_that_moved_is_no_hindrance(case: OverlayCase) -> None:
    commit(case.clone, CHANGE)
    first = prepared(case, "HEAD")
    moved = case.clone.rename(case.folder / "moved")
    again = prepared(case, "HEAD", repo=moved)
    assert again.key == first.key and again.repo == str(moved)
    assert git(Path(again.pythonpath[0]), "status", "--porcelain") == ""


def test_one_that_was_changed_while_a_run_uses_it_is_left_alone(case: OverlayCase) -> None:
    commit(case.clone, CHANGE)
    environment = prepared(case, "HEAD")
    edited = Path(environment.package_path or "", "feature.py")
    with hold(environment):
        edited.write_text("edited")
        with pytest.raises(BusyError, match="a run uses it"):
            prepared(case, "HEAD")
        assert edited.read_text() == "edited"
    assert prepared(case, "HEAD").key == environment.key and not edited.exists()


def test_an_interrupted_one_leaves_nothing_that_looks_whole(case: OverlayCase, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(case.clone, CHANGE)
    with monkeypatch.context() as patch:

        def interrupted(*_words: object, **_more: object) -> None:
            raise KeyboardInterrupt

        patch.setattr(overlay, "_link", interrupted)
        with pytest.raises(KeyboardInterrupt):
            prepared(case, "HEAD")
    assert not attempts(case.folder / "cache")
    assert not list_environments(case.folder / "cache")[0].complete
    assert prepared(case, "HEAD").kind == "overlay"


KILLED = """
import os, sys
from pathlib import Path
from sparkdiag.environment import cache
from tests.integration.test_environment_overlay import scenario
from sparkdiag.environment.prepare import prepare
from sparkdiag.environment.progress import SilentProgress
from sparkdiag.environment.spec import parse_spec
cache.write_stamp = lambda *_: os.kill(os.getpid(), 9)
prepare(parse_spec(sys.argv[1]), scenario=scenario(), revision=None, repo=Path(sys.argv[2]), progress=SilentProgress())
"""


def test_a_killed_one_is_thrown_away_and_can_be_pruned(case: OverlayCase) -> None:
    commit(case.clone, CHANGE)
    words = [sys.executable, "-c", KILLED, f"overlay:HEAD@{case.spec}", str(case.clone)]
    done = subprocess.run(words, check=False, timeout=120, cwd=Path(__file__).parents[2])
    assert done.returncode == -9
    root = case.folder / "cache"
    (left,) = attempts(root)
    assert not list_environments(root)[0].complete
    prepared(case, "HEAD")
    assert not left.exists() and len(attempts(root)) == 1


def test_it_is_listed_held_pruned_and_of_no_use_without_its_base(case: OverlayCase) -> None:
    sha = commit(case.clone, CHANGE)
    environment = prepared(case, "HEAD")
    root = case.folder / "cache"
    (listed,) = list_environments(root)
    assert listed.complete and listed.overlay_of == f"{sha[:10]} over {case.spec}" and listed.vllm_version == VERSION
    with hold(environment):
        assert prune(root, max_bytes=0, dry_run=False).in_use == (environment.key,)
    (case.site / "vllm").rename(case.site / "elsewhere")
    assert not list_environments(root)[0].complete
    (case.site / "elsewhere").rename(case.site / "vllm")
    assert [one.key for one in prune(root, max_bytes=0, dry_run=False).removed] == [environment.key]
    assert not list_environments(root) and (case.site / "vllm/_version.py").exists()
    again = prepared(case, "HEAD")
    found = {Path(one.path).name: one for one in in_cache(root)}
    assert found[again.key].how == "environment" and {f"{again.key}.build", f"{again.key}.use"} <= set(found)
    assert remove_environment(found[again.key]) == "" and not list_environments(root)
    with pytest.raises(EnvironmentFault, match="pruned"):
        cache.mark(environments_dir(root) / environment.key)
        with hold(environment):
            pass


def test_the_lab_stands_before_the_overlay_and_both_are_to_be_proved(case: OverlayCase) -> None:
    sha = commit(case.clone, CHANGE)
    lab = load_scenario("lab")
    spec = parse_spec(f"overlay:main@{case.spec}")
    environment = prepare(spec, scenario=lab, revision="incident", repo=case.clone, progress=SilentProgress())
    assert environment.kind == "lab" and environment.asked_revision == "incident"
    assert environment.revision_sha not in (None, sha) and environment.vllm_sha == sha
    lab_tree, tree = environment.pythonpath
    assert Path(lab_tree, "sparklab").is_dir() and environment.package_path == f"{tree}/vllm"
    modules = {file.module for file in environment.expected_files}
    assert {"sparklab.sparse_attn_indexer", "vllm", "vllm.feature", "vllm.added"} <= modules
    with pytest.raises(UsageError, match="is made of"):
        prepare(spec, scenario=scenario(), revision="main~1", repo=case.clone, progress=SilentProgress())


def test_compiled_parts_that_changed_are_not_overlaid(case: OverlayCase) -> None:
    sha = commit(case.clone, {"csrc/kernels.cpp": "int z;\n"})
    with pytest.raises(EnvironmentFault, match=r"needs a source installation.*csrc/kernels.cpp") as caught:
        prepared(case, "main")
    plan = plan_for(OverlaySpec(revision="main", base=ExistingSpec(target=str(case.python))), repo=case.clone)
    assert plan.kind == "source" and plan.not_run and "csrc/kernels.cpp" in plan.because
    assert any(f"worktree add --detach {case.folder}/vllm-{sha[:10]} {sha}" in line for line in caught.value.details)
    assert "existing:" in (caught.value.remedy or "") and not list_environments(case.folder / "cache")
    assert prepared(case, "main~1").revision_sha == case.base_sha


def test_what_a_reader_should_know_stands_in_the_notes(case: OverlayCase) -> None:
    commit(case.clone, {"requirements/common.txt": "numpy>=1\ntransformers==5\n", **CHANGE})
    assert "requirements/common.txt (transformers)" in prepared(case, "main").notes[-1]
    (case.site / "vllm/steady.py").write_text("patched by whoever built it")
    assert any("1 modules" in note and "steady.py" in note for note in prepared(case, "main").notes)
    git(case.clone, "tag", "-d", f"v{VERSION}")
    assert "unproved" in prepared(case, "main").notes[-1]


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


def test_submodules_get_the_bases_files(case: OverlayCase) -> None:
    git(case.clone, "update-index", "--add", "--cacheinfo", f"160000,{case.base_sha},vllm/third_party/sub")
    git(case.clone, "commit", "-q", "-m", "add a submodule")
    environment = prepared(case, "main")
    done = case.run("import vllm.third_party.sub.inside as i; print(i.made_by_the_build)", *environment.pythonpath)
    assert done.stdout.strip() == "True", done.stderr
    assert any("third_party/sub" in note and "submodules" in note for note in environment.notes)


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


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("overlay:nothing@{base}", "names no commit"),
        ("overlay:main", "of which no CPU wheel is known"),
        ("precompiled:main", "no remote of"),
    ],
)
def test_what_cannot_be_told_is_asked_for(case: OverlayCase, spec: str, message: str) -> None:
    parsed = parse_spec(spec.format(base=case.spec))
    with pytest.raises(UsageError, match=message) as caught:
        prepare(parsed, scenario=scenario(), revision=None, repo=case.clone, progress=SilentProgress())
    assert caught.value.remedy
    with pytest.raises(UsageError, match="none was named"):
        prepare(parsed, scenario=scenario(), revision=None, repo=None, progress=SilentProgress())


def test_the_release_of_the_nearest_version_tag_is_the_base_where_none_is_named(case: OverlayCase) -> None:
    git(case.clone, "tag", "-d", f"v{VERSION}")
    git(case.clone, "tag", "v0.32.0rc1")
    commit(case.clone, CHANGE)
    git(case.clone, "tag", "v0.99.0")
    commit(case.clone, {"vllm/added.py": None})
    for tag in ("v0.99.0", "nightly", "v0.31.0.dev5"):
        git(case.clone, "tag", "-f", tag, "main")
    plan = plan_for(OverlaySpec(revision="main~1"), repo=case.clone)
    assert plan.kind == "overlay" and not plan.not_run and "no tag" not in plan.because
    with pytest.raises(UsageError, match=r"nearest version tag is v0.99.0"):
        plan_for(OverlaySpec(revision="main"), repo=case.clone)


def test_plans_that_are_not_run_here_say_what_to_type(case: OverlayCase) -> None:
    sha = commit(case.clone, {"csrc/kernels.cpp": "int z;\n"})
    git(case.clone, "remote", "add", "up", "https://github.com/vllm-project/vllm.git")
    git(case.clone, "update-ref", "refs/remotes/up/main", sha)
    revision = commit(case.clone, CHANGE)
    with pytest.raises(EnvironmentFault, match=r"needs a precompiled installation.*plans but does not run") as caught:
        prepared(case, "main")
    (install,) = [line for line in caught.value.details if "uv pip install" in line]
    assert f"VLLM_USE_PRECOMPILED=1 VLLM_PRECOMPILED_WHEEL_COMMIT={sha} " in install
    for text in ("precompiled:main", f"precompiled:main@{sha}", "source:main"):
        with pytest.raises(EnvironmentFault, match="plans but does not run") as caught:
            prepare(parse_spec(text), scenario=scenario(), revision=None, repo=case.clone, progress=SilentProgress())
        assert caught.value.remedy == (
            f"sparkdiag repro --env existing:{case.folder}/vllm-{revision[:10]}/.venv/bin/python "
            f"--repo {case.folder}/vllm-{revision[:10]}"
        )
    commit(case.clone, {"csrc/kernels.cpp": AT_BASE["csrc/kernels.cpp"] + "int own;\n"})
    with pytest.raises(EnvironmentFault, match="needs a source installation"):
        prepared(case, "main")
    asked = plan_for(PrecompiledSpec(revision="main", wheel_commit=sha), repo=case.clone)
    assert "does not fit" in asked.because and "csrc/kernels.cpp" in asked.because
    unknown = plan_for(PrecompiledSpec(revision="main", wheel_commit="0" * 40), repo=case.clone)
    assert "cannot be told" in unknown.because and unknown.not_run
