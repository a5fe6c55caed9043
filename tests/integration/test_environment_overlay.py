"""Overlays for real: git, a worktree, a base with a compiled extension, and the interpreter that runs them."""

import subprocess
import sys
from pathlib import Path

import pytest

from sparkdiag.cleaning.cached import in_cache, remove_environment
from sparkdiag.environment import cache, overlay
from sparkdiag.environment.cache import environments_dir, hold, list_environments
from sparkdiag.environment.overlaid import plan_for
from sparkdiag.environment.prepare import prepare
from sparkdiag.environment.progress import SilentProgress
from sparkdiag.environment.proof import prove_revision
from sparkdiag.environment.prune import prune
from sparkdiag.environment.spec import ExistingSpec, OverlaySpec, PrecompiledSpec, parse_spec
from sparkdiag.errors import BusyError, EnvironmentFault, UsageError
from sparkdiag.evidence.identity import ServerIdentity
from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.model import Suspect
from tests.integration.overlay_case import (
    AT_BASE,
    CHANGE,
    VERSION,
    OverlayCase,
    Said,
    attempts,
    commit,
    git,
    prepared,
    run,
    scenario,
)

pytestmark = pytest.mark.integration


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OverlayCase:
    monkeypatch.setenv("SPARKDIAG_CACHE", str(tmp_path / "cache"))
    return OverlayCase(tmp_path)


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
from tests.integration.overlay_case import scenario
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


def test_submodules_get_the_bases_files(case: OverlayCase) -> None:
    git(case.clone, "update-index", "--add", "--cacheinfo", f"160000,{case.base_sha},vllm/third_party/sub")
    git(case.clone, "commit", "-q", "-m", "add a submodule")
    environment = prepared(case, "main")
    done = case.run("import vllm.third_party.sub.inside as i; print(i.made_by_the_build)", *environment.pythonpath)
    assert done.stdout.strip() == "True", done.stderr
    assert any("third_party/sub" in note and "submodules" in note for note in environment.notes)


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
