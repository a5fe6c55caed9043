"""Given interpreters and real git: what is found there, and what a running server's words prove."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkdiag.environment.clone import Clone, containment, open_clone
from sparkdiag.environment.interrogate import interrogate
from sparkdiag.environment.model import Environment
from sparkdiag.environment.prepare import prepare
from sparkdiag.environment.progress import SilentProgress
from sparkdiag.environment.proof import prove_revision
from sparkdiag.environment.spec import ExistingSpec
from sparkdiag.errors import EnvironmentFault, UsageError
from sparkdiag.evidence.identity import ProcessIdentity, ServerIdentity
from sparkdiag.evidence.run import FileProof
from sparkdiag.scenario.model import PromptSettings, Scenario, ServerSettings, Signature, Suspect, WatchedFunction

pytestmark = pytest.mark.integration

SIGNATURE = Signature(function="f", kind="torch-fallback")


def scenario(*, lab: bool = False, modules: tuple[str, ...] = ("vllm.indexer",)) -> Scenario:
    return Scenario(
        schema=1,
        name="x",
        title="x",
        lab=lab,
        server=ServerSettings(),
        prompt=PromptSettings(tokens=64),
        signature=(SIGNATURE,),
        watch=(WatchedFunction(function="f", modules=modules),),
    )


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout.strip()


def commit(repo: Path, name: str, text: str) -> str:
    path = repo / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    git(repo, "add", name)
    git(repo, "commit", "-q", "-m", f"write {name}")
    return git(repo, "rev-parse", "HEAD")


@pytest.fixture
def source(tmp_path: Path) -> Iterator[tuple[Path, str, str, str]]:
    """A clone of a small vllm: first, suspect, head."""
    repo = tmp_path / "src"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main")
    first = commit(repo, "vllm/__init__.py", "")
    suspect = commit(repo, "vllm/indexer.py", "fused = True")
    head = commit(repo, "vllm/indexer.py", "fused = False")
    yield repo, first, suspect, head


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A bare environment, without pip."""
    folder = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=120)
    return folder


def site_of(venv: Path) -> Path:
    return next((venv / "lib").glob("python3*")) / "site-packages"


def install_editable(venv: Path, repo: Path) -> None:
    """What an editable install leaves: a path file and metadata."""
    (site_of(venv) / "vllm.pth").write_text(f"{repo}\n")
    info = site_of(venv) / "vllm-0.32.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0\n")
    (info / "top_level.txt").write_text("vllm\n")
    (info / "direct_url.json").write_text('{"url": "file:///x", "dir_info": {"editable": true}}')


def prepared(venv: Path, **more: object) -> Environment:
    options = {"scenario": scenario(), "revision": None, "repo": None, **more}
    return prepare(ExistingSpec(target=str(venv)), progress=SilentProgress(), **options)  # type: ignore[arg-type]


def test_an_interpreter_without_vllm(venv: Path) -> None:
    assert interrogate(str(venv / "bin" / "python")).package_path is None
    with pytest.raises(EnvironmentFault, match="has no vllm"):
        prepared(venv)


def test_vllm_is_not_imported_nor_found_in_the_current_folder(
    venv: Path, source: tuple[Path, str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (source[0] / "vllm" / "__init__.py").write_text("raise SystemExit(7)")
    monkeypatch.chdir(source[0])
    assert interrogate(str(venv / "bin" / "python")).package_path is None
    install_editable(venv, source[0])
    assert interrogate(str(venv / "bin" / "python")).package_path == str(source[0] / "vllm")


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 3\n", "#!/bin/sh\necho hello\n", "no program"])
def test_something_that_is_no_interpreter(tmp_path: Path, text: str) -> None:
    fake = tmp_path / "python"
    fake.write_text(text)
    fake.chmod(0o755)
    with pytest.raises(EnvironmentFault, match="does not work as a Python interpreter"):
        interrogate(str(fake))


def test_an_editable_install_is_its_checkout(venv: Path, source: tuple[Path, str, str, str]) -> None:
    repo, first, _, head = source
    install_editable(venv, repo)
    environment = prepared(venv)
    assert environment.revision_sha == head and environment.repo == str(repo) and environment.kind == "existing"
    assert environment.expected_files[0].sha256 == hashlib.sha256(b"fused = False").hexdigest()
    assert environment.serve_prefix[1:] == ("-m", "vllm.entrypoints.openai.api_server")
    script = venv / "bin" / "vllm"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    assert prepared(venv).serve_prefix == (str(script), "serve")
    assert prepared(venv, revision="HEAD").asked_revision == "HEAD"
    with pytest.raises(UsageError, match="checked out"):
        prepared(venv, revision=first)
    with pytest.raises(UsageError, match="is not in"):
        prepared(venv, revision="nonsense")


def test_uncommitted_changes_are_told_and_not_proved(venv: Path, source: tuple[Path, str, str, str]) -> None:
    repo = source[0]
    install_editable(venv, repo)
    (repo / "vllm" / "indexer.py").write_text("edited")
    environment = prepared(venv)
    assert any("uncommitted changes" in note for note in environment.notes)
    running = FileProof(
        module="vllm.indexer", path=str(repo / "vllm/indexer.py"), sha256=hashlib.sha256(b"edited").hexdigest()
    )
    identity = ServerIdentity(
        processes=(
            ProcessIdentity(pid=1, vllm_version="0.32.0", vllm_path=str(repo / "vllm/__init__.py"), files=(running,)),
        )
    )
    proof = prove_revision(environment, identity, suspect=Suspect(), repo=None)
    assert not proof.proved and "differs" in proof.because


def test_an_environment_inside_a_checkout_is_not_that_checkout(tmp_path: Path) -> None:
    repo = tmp_path / "checkout"
    repo.mkdir()
    git(repo, "init", "-q")
    commit(repo, "README", "x")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", repo / ".venv"], check=True, timeout=120)
    package = site_of(repo / ".venv") / "vllm"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "indexer.py").write_text("x")
    environment = prepared(repo / ".venv")
    assert environment.revision_sha is None and environment.repo is None
    assert [file.module for file in environment.expected_files] == ["vllm.indexer"]
    with pytest.raises(UsageError, match="belongs to no git revision"):
        prepared(repo / ".venv", revision="main")


class FakeHistory:
    """A lab of two files."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.exports = 0

    def ensure_lab_repo(self, folder: Path) -> Path:
        return self.source

    def resolve(self, repo: Path, rev: str | None) -> str:
        return git(repo, "rev-parse", rev or "HEAD")

    def export(self, repo: Path, sha: str, dest: Path) -> Path:
        self.exports += 1
        for path in git(repo, "ls-tree", "-r", "--name-only", sha).splitlines():
            target = dest / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(git(repo, "show", f"{sha}:{path}"))
        return dest


def test_a_lab_scenario_gets_the_lab_source_whatever_serves_it(
    venv: Path, tmp_path: Path, source: tuple[Path, str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKDIAG_CACHE", str(tmp_path / "cache"))
    install_editable(venv, source[0])
    lab = tmp_path / "lab"
    lab.mkdir()
    git(lab, "init", "-q")
    sha = commit(lab, "sparklab/indexer.py", "lab = 1")
    history = FakeHistory(lab)
    watched = scenario(lab=True, modules=("sparklab.indexer", "vllm.indexer"))
    environment = prepared(venv, scenario=watched, history=history)
    assert (environment.kind, environment.revision_sha, environment.repo) == ("lab", sha, str(lab))
    (tree,) = environment.pythonpath
    assert Path(tree, "sparklab/indexer.py").read_text() == "lab = 1"
    assert environment.model_path == f"{tree}/model"
    assert [file.module for file in environment.expected_files] == ["sparklab.indexer", "vllm.indexer"]
    prepared(venv, scenario=watched, history=history)
    assert history.exports == 1
    Path(tree, "sparklab/indexer.py").write_text("tampered")
    prepared(venv, scenario=watched, history=history)
    assert history.exports == 2 and Path(tree, "sparklab/indexer.py").read_text() == "lab = 1"
    assert sorted(path.name for path in Path(tree).parent.iterdir()) == [sha, "lab.lock"]


def ask(repo: Path, sha: str | None, *commits: str) -> tuple[str, str]:
    return containment(Clone(repo), sha, commits=commits)


def test_containment(source: tuple[Path, str, str, str]) -> None:
    repo, first, suspect, head = source
    assert ask(repo, head, suspect[:10])[0] == "yes"
    assert ask(repo, suspect, suspect)[0] == "yes"
    assert ask(repo, first, suspect)[0] == "no"
    assert ask(repo, head, "f8f18ce66b")[0] == "not-in-this-clone"
    answer, why = ask(repo, head, "f8f18ce66b", suspect[:9])
    assert answer == "yes" and "twin of f8f18ce66b" in why
    assert ask(repo, "0" * 40, suspect)[0] == "not-in-this-clone"
    assert ask(repo, None, suspect)[0] == "unknown"
    assert ask(repo, head)[0] == "unknown"
    assert ask(repo.parent, head, suspect)[0] == "unknown"


def test_a_revision_is_never_an_option(source: tuple[Path, str, str, str], tmp_path: Path) -> None:
    target = tmp_path / "written"
    assert Clone(source[0]).resolve(f"--output={target}") is None
    assert not target.exists()


def test_a_shallow_clone_never_says_no(source: tuple[Path, str, str, str], tmp_path: Path) -> None:
    repo, first, suspect, head = source
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repo}", "shallow")
    answer, why = ask(tmp_path / "shallow", head, suspect)
    assert answer == "not-in-this-clone" and "unshallow" in why
    git(tmp_path / "shallow", "fetch", "-q", "--depth", "1", "origin", first)
    assert ask(tmp_path / "shallow", first, head)[0] == "unknown"


def test_a_clone_cannot_make_us_run_its_programs(source: tuple[Path, str, str, str], tmp_path: Path) -> None:
    repo = source[0]
    witness = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {witness}\n")
    program.chmod(0o755)
    git(repo, "config", "core.fsmonitor", str(program))
    head = Clone(repo).head()
    assert head is not None and not head.dirty and not witness.exists()


def test_a_callers_git_variables_do_not_choose_the_clone(
    source: tuple[Path, str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    repo, _, _, head = source
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert Clone(repo).resolve("HEAD") == head
    assert os.environ["GIT_DIR"]


def test_no_clone_is_a_fault(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(EnvironmentFault, match="no git clone"):
            open_clone(folder)


def test_the_release_tag_places_a_wheel_in_history(source: tuple[Path, str, str, str]) -> None:
    repo, first, suspect, head = source
    git(repo, "tag", "v0.32.0", head)
    git(repo, "tag", "v0.27.1", first)
    environment = Environment(spec="release:0.32.0", kind="release", key="k", python="/p", serve_prefix=("/p",))
    answers = {}
    for version in ("0.32.0", "0.27.1", f"0.28.0.dev1+g{suspect[:9]}", "0.31.0"):
        at = environment.model_copy(update={"vllm_version": version})
        proof = prove_revision(at, ServerIdentity(), suspect=Suspect(commit=suspect), repo=repo)
        answers[version] = proof.contains_suspect_commit
    assert list(answers.values()) == ["yes", "no", "yes", "unknown"]


def test_env_build_checks_an_existing_environment(venv: Path, source: tuple[Path, str, str, str]) -> None:
    install_editable(venv, source[0])
    command = [sys.executable, "-m", "sparkdiag", "env", "build", f"existing:{venv}", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    document = json.loads(done.stdout)
    assert document["environment"]["revision_sha"] == source[3] and document["schema"] == 1
