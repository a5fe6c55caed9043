"""From ``overlay:REV[@BASE]`` to an environment that can be served from; and why the other plans are not run here."""

from functools import cache
from itertools import islice
from pathlib import Path

from sparkdiag.environment.cache import cache_root
from sparkdiag.environment.clone import Clone, open_clone
from sparkdiag.environment.expected import from_git
from sparkdiag.environment.given import given
from sparkdiag.environment.model import Environment
from sparkdiag.environment.overlay import Overlay, ensure_overlay
from sparkdiag.environment.overlay_base import Base, base_spec, commit_of, find_base, is_cpu
from sparkdiag.environment.overlay_files import OverlayFiles, counted
from sparkdiag.environment.progress import ProgressSink
from sparkdiag.environment.revision_plan import (
    RevisionPlan,
    changed_since,
    plan_of,
    precompiled_plan,
    source_plan,
    upstream_base,
)
from sparkdiag.environment.spec import ExistingSpec, OverlaySpec, PrecompiledSpec, ReleaseSpec, SourceSpec
from sparkdiag.environment.tree import PACKAGE, paths_between
from sparkdiag.errors import EnvironmentFault, UsageError

MOST_TELLING = 12
"""Modules that the probe reads and hashes in each process of the server, beside the watched ones."""

RevisionSpec = OverlaySpec | PrecompiledSpec | SourceSpec


def overlaid(
    spec: OverlaySpec, *, modules: tuple[str, ...], revision: str | None, repo: Path | None, progress: ProgressSink
) -> Environment:
    """The environment of an overlay, its base built where it is not there yet.

    Raises ``EnvironmentFault`` where the base's compiled parts are known not to be the revision's, ``UsageError`` where
    no clone was named, the clone has no such revision, or ``--rev`` names another.
    """
    clone, sha = _revision(spec, repo=repo)
    if revision is not None and clone.resolve(revision) != sha:
        raise UsageError(
            f"--rev {revision} is not {sha[:10]}, which environment {spec.text} is made of", remedy="leave --rev out"
        )
    named = spec.model_copy(update={"base": base_spec(spec, clone=clone, sha=sha)})
    if isinstance(named.base, ReleaseSpec) and (early := _overlay_plan(clone, sha, spec=named)).not_run:
        raise cannot_run(named, early)  # before a base is built for minutes
    base = find_base(base_spec(named, clone=clone, sha=sha), clone=clone, progress=progress)
    plan = plan_of(clone, sha, base=base.sha, why=base.why, cpu=base.cpu)
    if plan.not_run:
        raise cannot_run(named, plan)
    overlay = ensure_overlay(clone, sha, base=base, root=cache_root(), progress=progress)
    return _environment(named, clone=clone, sha=sha, base=base, overlay=overlay, plan=plan, modules=modules)


def with_base(spec: OverlaySpec, *, repo: Path | None) -> OverlaySpec:
    """The same overlay with its base named. Raises ``UsageError`` where that cannot be told."""
    clone, sha = _revision(spec, repo=repo)
    return spec.model_copy(update={"base": base_spec(spec, clone=clone, sha=sha)})


def _overlay_plan(clone: Clone, sha: str, *, spec: OverlaySpec) -> RevisionPlan:
    """What can be told before the base is built: a release is its tag, and who made another is asked once."""
    if isinstance(spec.base, ReleaseSpec):
        base, why = commit_of(clone, version=spec.base.version, checked_out=None)
        return plan_of(clone, sha, base=base, why=why, cpu=True)
    if spec.base is None:
        raise AssertionError(spec)  # a base was named by with_base
    version, checked_out = _asked(spec.base)
    base, why = commit_of(clone, version=version, checked_out=checked_out)
    return plan_of(clone, sha, base=base, why=why, cpu=is_cpu(spec.base, version=version))


@cache
def _asked(spec: ExistingSpec) -> tuple[str | None, str | None]:
    """The version that an interpreter's vllm has, and the commit it is checked out at: a forecast asks it for each of
    many commits, and each answer takes a second."""
    environment = given(spec, modules=(), revision=None, repo=None)
    return environment.vllm_version, environment.revision_sha


def plan_for(spec: RevisionSpec, *, repo: Path | None) -> RevisionPlan:
    """The plan of a spec, for a forecast: nothing is built. Raises ``UsageError``, and ``EnvironmentFault`` where the
    base that was named is none."""
    clone, sha = _revision(spec, repo=repo)
    match spec:
        case OverlaySpec():
            named = spec.model_copy(update={"base": base_spec(spec, clone=clone, sha=sha)})
            return _overlay_plan(clone, sha, spec=named)
        case PrecompiledSpec(wheel_commit=named_commit):
            return _precompiled(clone, sha, spec=spec, commit=named_commit or upstream_base(clone, sha))
        case SourceSpec():
            return source_plan(clone, sha, because="compiled from source, as asked", cpu=False)


def _precompiled(clone: Clone, sha: str, *, spec: PrecompiledSpec, commit: str | None) -> RevisionPlan:
    if commit is None:
        raise UsageError(
            f"environment {spec.text}: no remote of {clone.folder} is vLLM's own: the wheel's commit is not known",
            remedy=f"sparkdiag repro --env {spec.text}@COMMIT with the 40 digits of a commit of vLLM's main branch",
        )
    touched = changed_since(clone, commit, sha, cpu=False)
    because = f"precompiled, as asked; whether the wheel of {commit[:10]} has the same sources cannot be told"
    if touched is not None:
        because = f"precompiled, as asked; the wheel of {commit[:10]} has the same sources"
        if touched.compiled:
            because = f"precompiled, as asked, but the wheel of {commit[:10]} does not fit: {touched.because}"
    return precompiled_plan(clone, sha, wheel_commit=commit, because=because, cpu=False)


def not_run(spec: PrecompiledSpec | SourceSpec, *, repo: Path | None) -> EnvironmentFault:
    """What to raise instead of running such a plan. Raises ``UsageError`` itself where there is not even a plan."""
    return cannot_run(spec, plan_for(spec, repo=repo))


def cannot_run(spec: RevisionSpec, plan: RevisionPlan) -> EnvironmentFault:
    """The error of a plan that is for a person: its commands, and how to use what they make."""
    *making, using = plan.commands
    return EnvironmentFault(
        f"environment {spec.text} needs a {plan.kind} installation, which sparkdiag plans but does not run: "
        f"{plan.because}",
        details=("by hand (not run):", *(f"  {command}" for command in making)),
        remedy=using,
    )


def _revision(spec: RevisionSpec, *, repo: Path | None) -> tuple[Clone, str]:
    if repo is None:
        raise UsageError(
            f"environment {spec.text} is made from a git clone, and none was named",
            remedy=f"sparkdiag repro --env {spec.text} --repo path/to/vllm",
        )
    clone = open_clone(repo.absolute())
    sha = clone.resolve(spec.revision)
    if sha is None:
        raise UsageError(
            f"environment {spec.text}: {spec.revision} names no commit, or several, in {repo}",
            remedy=f"git -C {repo} fetch, or name the commit's 40 digits",
        )
    return clone, sha


def _environment(
    spec: OverlaySpec,
    *,
    clone: Clone,
    sha: str,
    base: Base,
    overlay: Overlay,
    plan: RevisionPlan,
    modules: tuple[str, ...],
) -> Environment:
    tree = Path(overlay.tree)
    proving = (*modules, *_telling(clone, sha, files=overlay.files))
    return base.environment.model_copy(
        update={
            "spec": spec.text,
            "kind": "overlay",
            "key": overlay.key,
            "also_held": () if isinstance(base.spec, ExistingSpec) else (base.environment.key,),
            "pythonpath": (overlay.tree,),
            "package_path": str(tree / PACKAGE),
            "asked_revision": spec.revision,
            "revision_sha": sha,
            "vllm_sha": sha,
            "repo": str(clone.folder),
            "expected_files": from_git(clone, sha, modules=proving, root=tree),
            "notes": (f"overlay: {plan.because}", *_notes(sha, base=base, overlay=overlay), *plan.notes),
        }
    )


def _telling(clone: Clone, sha: str, *, files: OverlayFiles) -> tuple[str, ...]:
    """Modules that prove the revision, beside the watched ones: the package itself, which every process imports, and
    those that the base has not like this, what the commit itself brought first."""
    parent = clone.resolve(f"{sha}^")
    brought = {path.removeprefix(f"{PACKAGE}/") for path in (paths_between(clone, parent, sha) or () if parent else ())}
    ordered = sorted(files.own, key=lambda path: path not in brought)
    modules = (path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in ordered)
    return (PACKAGE, *(f"{PACKAGE}.{module}" for module in islice(modules, MOST_TELLING) if module != "__init__"))


def _notes(sha: str, *, base: Base, overlay: Overlay) -> tuple[str, ...]:
    """What a reader of the run should know about it."""
    files, version = overlay.files, base.environment.vllm_version
    notes = [
        f"vLLM's Python is commit {sha[:10]}; {len(files.links)} generated files ({len(files.compiled)} compiled) are "
        f"those of {base.spec.text}, and so are the version ({version or 'unknown'}) and the metadata it tells"
    ]
    if not files.compiled:
        notes.append(f"the base {base.spec.text} has no compiled extension in its vllm package")
    if files.foreign:
        notes.append(
            f"{len(files.foreign)} modules of {base.spec.text} are not as in its commit {(base.sha or '')[:10]} "
            f"({counted(files.foreign)}); the overlay has the clone's"
        )
    if files.submodules:
        notes.append(f"the base's files stand in for the submodules {counted(files.submodules)}")
    return tuple(notes)
