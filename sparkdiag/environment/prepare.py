"""From a spec to an environment a server can be launched from: build or find it, and say what it should contain."""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from sparkdiag.environment.build import Built, ensure_built
from sparkdiag.environment.cache import cache_root, make_root, writing
from sparkdiag.environment.child import run_step
from sparkdiag.environment.clone import Clone, open_clone
from sparkdiag.environment.expected import from_disk, from_git, from_record, watched_modules
from sparkdiag.environment.facts import HostFacts, gather_facts
from sparkdiag.environment.interrogate import API_SERVER, Findings, interpreter_of, interrogate
from sparkdiag.environment.labtree import LabHistory, lab_tree
from sparkdiag.environment.lock import (
    Lock,
    bundled_lock,
    lock_from_pylock,
    lock_inputs,
    lock_name,
    lock_overrides,
    lock_release,
    parse_lock,
    render_lock,
)
from sparkdiag.environment.model import Environment
from sparkdiag.environment.plan import compile_step, lookup_step, release_of
from sparkdiag.environment.progress import ProgressSink
from sparkdiag.environment.spec import LAB_RELEASE, EnvironmentSpec, ExistingSpec, LabSpec
from sparkdiag.errors import EnvironmentFault, UsageError
from sparkdiag.evidence.run import FileProof
from sparkdiag.needed import need_git
from sparkdiag.scenario.model import Scenario


def prepare(
    spec: EnvironmentSpec,
    *,
    scenario: Scenario,
    revision: str | None,
    repo: Path | None,
    progress: ProgressSink,
    history: LabHistory | None = None,
) -> Environment:
    """Make the environment that ``spec`` asks for ready to serve ``scenario``.

    A lab scenario gets the lab's source on its path, in whichever environment: ``revision`` is then one of the lab's.
    Elsewhere ``revision`` is what the environment must already be. ``history`` is the lab's, for tests.
    Raises ``EnvironmentFault``, ``BusyError`` or ``UsageError``.
    """
    if scenario.lab and history is None:
        need_git("for the lab's history")  # before an environment is built for minutes
    modules = watched_modules(scenario)
    asked = None if scenario.lab else revision
    if isinstance(spec, ExistingSpec):
        environment = _existing(spec, modules=modules, revision=asked, repo=repo)
    else:
        environment = _release(spec, modules=modules, revision=asked, repo=repo, progress=progress)
    if not scenario.lab:
        return environment
    return _with_lab(environment, modules=modules, revision=revision, progress=progress, history=history)


def build_base(spec: EnvironmentSpec, *, progress: ProgressSink, root: Path | None = None) -> Built | None:
    """Build what ``spec`` stands on; None where nothing is built (``existing``)."""
    version = release_of(spec)
    if version is None:
        return None
    root = root or cache_root()
    facts = gather_facts()
    return ensure_built(lock_for(version, facts, root=root, progress=progress), facts, root=root, progress=progress)


def lock_for(version: str, facts: HostFacts, *, root: Path, progress: ProgressSink) -> Lock:
    """The bundled lock, else the cached one, else one resolved now."""
    name = lock_name(vllm=version, python_tag=facts.python_tag, platform=facts.platform)
    bundled = bundled_lock(name)
    if bundled is not None:
        return bundled
    cached = root / "locks" / name
    if cached.exists():
        return parse_lock(cached.read_text(encoding="utf-8"), name=str(cached))
    with writing(root):
        lock = resolve_lock(version, facts, root=root, progress=progress)
        cached.parent.mkdir(exist_ok=True)
        partial = cached.with_suffix(f".{os.getpid()}.partial")
        partial.write_text(render_lock(lock), encoding="utf-8")
        partial.replace(cached)
    return lock


def resolve_lock(version: str, facts: HostFacts, *, root: Path, progress: ProgressSink) -> Lock:
    """Resolve a release with uv, wheels only."""
    make_root(root)
    folder = Path(tempfile.mkdtemp(prefix="resolve-", dir=root))
    try:
        (folder / "requirements.in").write_text(lock_inputs(version), encoding="utf-8")
        (folder / "overrides.txt").write_text(lock_overrides(), encoding="utf-8")
        (folder / "release.in").write_text(lock_release(version), encoding="utf-8")
        steps = (
            lookup_step(version, facts, requirements="release.in", output="release.txt"),
            compile_step(
                version, facts, requirements="requirements.in", overrides="overrides.txt", output="pylock.toml"
            ),
        )
        for step in steps:
            progress.start(step.title, total=None, unit="steps")
            try:
                run_step(step, folder=folder, log=folder / "uv.log", on_tick=lambda _pid: None)
            finally:
                progress.finish()
        text = (folder / "pylock.toml").read_text(encoding="utf-8")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return lock_from_pylock(text, vllm=version, python_tag=facts.python_tag, platform=facts.platform)


def _release(
    spec: EnvironmentSpec, *, modules: tuple[str, ...], revision: str | None, repo: Path | None, progress: ProgressSink
) -> Environment:
    if revision is not None:
        raise UsageError(
            f"--rev {revision}: a {spec.text} environment is the published wheel and has no other revision",
            remedy="sparkdiag repro --env existing:/path/to/python/of/that/revision --rev REV --repo PATH",
        )
    built = build_base(spec, progress=progress)
    if built is None:  # release_of and the kinds of spec disagree: a mistake in the code
        raise AssertionError(spec)
    return Environment(
        spec=spec.text,
        kind="lab" if isinstance(spec, LabSpec) else "release",
        key=built.stamp.key,
        python=built.python,
        serve_prefix=(built.python, "-m", API_SERVER),
        # Its bytecode is written when it is built; a server that may not write the rest starts minutes later.
        drop_env=("PYTHONDONTWRITEBYTECODE",),
        vllm_version=built.stamp.vllm_version,
        package_path=built.package_path,
        repo=str(repo) if repo else None,
        expected_files=from_record(built.record_path, modules=modules),
    )


def _existing(spec: ExistingSpec, *, modules: tuple[str, ...], revision: str | None, repo: Path | None) -> Environment:
    python = interpreter_of(spec.target)
    findings = interrogate(python)
    if findings.package_path is None:
        raise EnvironmentFault(
            f"{python} has no vllm", remedy=f"{python} -m pip install vllm, or name another: --env existing:PYTHON"
        )
    package = Path(findings.package_path)
    sha, clone, notes = revision_of(package, findings=findings)
    _check_revision(revision, sha=sha, repo=repo or clone, python=python)
    return Environment(
        spec=spec.text,
        kind="existing",
        key=_key_of(python, findings=findings, sha=sha),
        python=python,
        serve_prefix=findings.serve_prefix(python),
        vllm_version=findings.vllm_version,
        package_path=str(package),
        asked_revision=revision,
        revision_sha=sha,
        repo=str(clone or repo) if clone or repo else None,
        expected_files=_expected_of(package, findings=findings, modules=modules, sha=sha, clone=clone),
        notes=notes,
    )


def _key_of(python: str, *, findings: Findings, sha: str | None) -> str:
    """Of an environment that somebody else made: a hash of what was found."""
    found = findings.model_dump_json(exclude={"torch_version"})
    return hashlib.sha256(f"{python}\0{found}\0{sha}".encode()).hexdigest()[:12]


def revision_of(package: Path, *, findings: Findings) -> tuple[str | None, Path | None, tuple[str, ...]]:
    """The commit a package is checked out at, the clone's root, and what a reader should know about it."""
    if findings.editable and shutil.which("git") is None:
        return None, None, (f"git is not installed: the revision of {package} cannot be told",)
    clone = Clone(package)
    if not clone.tracks(package / "__init__.py"):
        return None, None, ()
    head = clone.head()
    if head is None:
        return None, None, (f"git could not tell the revision of {package}",)
    how = "editable install" if findings.editable else "checkout"
    notes = [f"vllm {findings.vllm_version or '(version unknown)'} is the {how} {head.root} at {head.sha[:10]}"]
    if head.dirty:
        notes.append(f"{head.root} has uncommitted changes: what runs is not exactly {head.sha[:10]}")
    return head.sha, Path(head.root), tuple(notes)


def _check_revision(revision: str | None, *, sha: str | None, repo: Path | None, python: str) -> None:
    if revision is None:
        return
    if sha is None:
        raise UsageError(
            f"--rev {revision}: {python} has an installed vllm that belongs to no git revision",
            remedy="leave --rev out, or name an interpreter with an editable install of that revision",
        )
    wanted = open_clone(repo).resolve(revision) if repo else None
    if wanted is None:
        raise UsageError(f"--rev {revision} is not in {repo}", remedy=f"git -C {repo} fetch")
    if wanted != sha:
        raise UsageError(
            f"--rev {revision} is {wanted[:10]}, but {python} has {sha[:10]} checked out",
            remedy=f"check {wanted[:10]} out there (and rebuild it), or leave --rev out",
        )


def _expected_of(
    package: Path, *, findings: Findings, modules: tuple[str, ...], sha: str | None, clone: Path | None
) -> tuple[FileProof, ...]:
    if sha is not None and clone is not None:
        prefix = package.parent.relative_to(clone).as_posix()
        prefix = "" if prefix == "." else f"{prefix}/"
        return from_git(Clone(clone), sha, modules=modules, root=package.parent, prefix=prefix)
    if findings.record_path is not None and not findings.editable:
        return from_record(Path(findings.record_path), modules=modules)
    return from_disk(package.parent, modules=modules)


def _with_lab(
    environment: Environment,
    *,
    modules: tuple[str, ...],
    revision: str | None,
    progress: ProgressSink,
    history: LabHistory | None,
) -> Environment:
    if history is None:
        from sparkdiag.lab import history as embedded  # the lab is loaded only by runs that use it

        history = embedded
    tree = lab_tree(history, revision=revision, modules=modules, root=cache_root(), say=progress.say)
    in_lab = {file.module for file in tree.files}
    others = tuple(file for file in environment.expected_files if file.module not in in_lab)
    notes = environment.notes
    if environment.vllm_version != LAB_RELEASE:
        notes = (*notes, f"the lab is tested on vLLM {LAB_RELEASE}, this is {environment.vllm_version}")
    return environment.model_copy(
        update={
            "kind": "lab",
            "pythonpath": (tree.path,),
            "model_path": tree.model_path,
            "asked_revision": revision,
            "revision_sha": tree.sha,
            "repo": tree.repo,
            "expected_files": (*tree.files, *others),
            "notes": notes,
        }
    )
