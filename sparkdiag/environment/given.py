"""Environments that somebody else made: what an interpreter has, and which git revision that is."""

import hashlib
import shutil
from pathlib import Path

from sparkdiag.environment.clone import Clone, open_clone
from sparkdiag.environment.expected import from_disk, from_git, from_record
from sparkdiag.environment.interrogate import Findings, interpreter_of, interrogate
from sparkdiag.environment.model import Environment
from sparkdiag.environment.spec import ExistingSpec
from sparkdiag.errors import EnvironmentFault, UsageError
from sparkdiag.evidence.run import FileProof


def given(spec: ExistingSpec, *, modules: tuple[str, ...], revision: str | None, repo: Path | None) -> Environment:
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
