"""Looks at the environment, its source, the clone, git and uv. Nothing is built and no network is used."""

import shutil
import subprocess
from pathlib import Path

from sparkdiag.doctor import environment
from sparkdiag.doctor.environment import CloneLook, CodeLook, ExistingLook
from sparkdiag.doctor.finding import Finding
from sparkdiag.doctor.gpu import uses_nvml
from sparkdiag.doctor.need import Asked, Known
from sparkdiag.environment import cache
from sparkdiag.environment.clone import Clone, containment
from sparkdiag.environment.expected import module_paths
from sparkdiag.environment.facts import HostFacts, find_uv, gather_facts
from sparkdiag.environment.given import revision_of
from sparkdiag.environment.interrogate import interpreter_of, interrogate
from sparkdiag.environment.lock import Lock, bundled_lock, lock_name, parse_lock
from sparkdiag.environment.overlaid import not_run, with_base
from sparkdiag.environment.plan import (
    SPARE_BYTES,
    TYPICAL_INSTALLED_BYTES,
    BuildPlan,
    Places,
    build_plan,
    release_of,
)
from sparkdiag.environment.spec import (
    EnvironmentSpec,
    ExistingSpec,
    OverlaySpec,
    PrecompiledSpec,
    SourceSpec,
    stands_on,
)
from sparkdiag.errors import EnvironmentFault
from sparkdiag.scenario.model import Scenario
from sparkdiag.serving.model_path import check_model, is_path

ASK_TIMEOUT_S = 15.0
"""An interpreter on a cold disk takes seconds."""
GIT_TIMEOUT_S = 10
VERSION_TIMEOUT_S = 5.0
SOURCE_LIMIT_BYTES = 4 * 2**20


def look_at_environment(asked: Asked) -> tuple[Known, tuple[Finding, ...]]:
    """What the environment is, and what to say about it. Raises ``EnvironmentFault``, ``UsageError``."""
    repo = Path(asked.repo) if asked.repo else None
    if isinstance(asked.spec, PrecompiledSpec | SourceSpec):
        raise not_run(asked.spec, repo=repo)
    if isinstance(asked.spec, OverlaySpec):
        known, findings = _look(stands_on(with_base(asked.spec, repo=repo)), lab=asked.scenario.lab)
        # The base's Python is not what would run: neither its code nor its checkout tells anything of the revision.
        return known.model_copy(update={"import_root": None, "checkout": None, "revision": None}), findings
    return _look(asked.spec, lab=asked.scenario.lab)


def _look(spec: EnvironmentSpec, *, lab: bool) -> tuple[Known, tuple[Finding, ...]]:
    return _existing(spec, lab=lab) if isinstance(spec, ExistingSpec) else _built(spec)


def _built(spec: EnvironmentSpec) -> tuple[Known, tuple[Finding, ...]]:
    facts = gather_facts()
    root = cache.cache_root()
    lock = _lock(release_of(spec) or "", facts, root=root)
    if lock is None:
        known = Known(python=facts.python, build_bytes=TYPICAL_INSTALLED_BYTES + SPARE_BYTES)
        return known, (environment.judge_unbuilt(spec.text, None),)
    folder = cache.environments_dir(root) / lock.key
    stamp = cache.read_stamp(folder) if cache.is_ours(folder) else None
    if stamp is None:
        plan = _plan(lock, facts, folder=folder)
        known = Known(python=facts.python, build_bytes=plan.needed_bytes)
        return known, (environment.judge_unbuilt(spec.text, plan),)
    known = Known(
        python=str(folder / stamp.python),
        built=True,
        cpu_only=True,
        vllm_version=stamp.vllm_version,
        import_root=str((folder / stamp.package_path).parent),
    )
    found = environment.judge_built(spec.text, vllm_version=stamp.vllm_version, installed_bytes=stamp.installed_bytes)
    return known, (found,)


def _lock(version: str, facts: HostFacts, *, root: Path) -> Lock | None:
    """The lock that ``prepare`` would use; None where it would have to resolve one."""
    name = lock_name(vllm=version, python_tag=facts.python_tag, platform=facts.platform)
    cached = root / "locks" / name
    if (bundled := bundled_lock(name)) is not None:
        return bundled
    return parse_lock(cached.read_text(encoding="utf-8"), name=str(cached)) if cached.exists() else None


def _plan(lock: Lock, facts: HostFacts, *, folder: Path) -> BuildPlan:
    inside = Places(venv=str(folder), python=str(folder), torch_requirements=str(folder), requirements=str(folder))
    return build_plan(lock, facts, inside)


def _existing(spec: ExistingSpec, *, lab: bool) -> tuple[Known, tuple[Finding, ...]]:
    python = interpreter_of(spec.target)
    found = interrogate(python, timeout_s=ASK_TIMEOUT_S)
    if found.package_path is None:
        return Known(python=python), (environment.judge_existing(ExistingLook(python=python, findings=found), lab=lab),)
    package = Path(found.package_path)
    sha, clone, notes = revision_of(package, findings=found)
    known = Known(
        python=python,
        built=True,
        cpu_only=not uses_nvml(found.distribution, found.vllm_version, found.torch_version),
        vllm_version=found.vllm_version,
        import_root=str(package.parent),
        checkout=str(clone) if clone else None,
        revision=sha,
    )
    look = ExistingLook(python=python, findings=found, notes=notes)
    return known, (environment.judge_existing(look, lab=lab),)


def suspect_code(scenario: Scenario, known: Known) -> tuple[Finding, ...]:
    """Reads the modules that the scenario watches, and the suspect commit's files."""
    root = Path(known.import_root or "")
    modules = {watched.function: watched.modules for watched in scenario.watch}
    every = tuple(dict.fromkeys(module for watched in scenario.watch for module in watched.modules))
    defined: dict[str, str] = {}
    absent: list[str] = []
    for signature in scenario.signatures:
        where = modules.get(signature.function) or every
        path = next((path for module in where if (path := _defining(root, module, signature.function))), None)
        if path is not None:
            defined[signature.function] = path
        elif where:
            absent.append(signature.function)
    files = tuple(path for path in scenario.suspect.paths if (root / path).is_file())
    look = CodeLook(defined=defined, absent=tuple(absent), suspect_files=files)
    return (environment.judge_code(look, scenario, vllm_version=known.vllm_version),)


def _defining(root: Path, module: str, function: str) -> str | None:
    """The module's file, relative to the root, where it defines the function."""
    for path in module_paths(module):
        try:
            with (root / path).open("rb") as file:
                source = file.read(SOURCE_LIMIT_BYTES)
        except OSError:
            continue
        if f"def {function}(".encode() in source:
            return path
    return None


def clone(scenario: Scenario, *, folder: str, revision: str | None) -> tuple[Finding, ...]:
    """Asks the clone what a run would ask it."""
    asked = Clone(Path(folder), timeout_s=GIT_TIMEOUT_S)
    if not Path(folder).is_dir() or not asked.is_clone():
        return environment.judge_clone(CloneLook(folder=folder, readable=False), scenario)
    commits = tuple(filter(None, (scenario.suspect.commit, *scenario.suspect.twins)))
    held = next((commit for commit in commits if asked.resolve(commit) is not None), None)
    contained = containment(asked, revision, commits=commits)[1] if revision is not None and held else None
    look = CloneLook(
        folder=folder, shallow=asked.is_shallow(), partial=asked.is_partial(), held=held, contained=contained
    )
    return environment.judge_clone(look, scenario)


def model(asked: Asked) -> tuple[Finding, ...]:
    """Whether a model that is a path can be read. Raises ``UsageError``, as ``repro`` would."""
    name = asked.model or asked.scenario.server.model
    check_model(name)
    return (environment.judge_model(name, is_path=name is not None and is_path(name)),)


def git(*, lab: bool) -> tuple[Finding, ...]:
    executable = shutil.which("git")
    return (environment.judge_git(_version(executable) if executable else None, lab=lab),)


def uv() -> tuple[Finding, ...]:
    try:
        executable = find_uv()
    except EnvironmentFault as error:
        return (environment.judge_uv(None, problem=error.message, remedy=error.remedy),)
    version = _version(executable)
    return (environment.judge_uv(version, problem=f"{executable} does not tell its version"),)


def _version(executable: str) -> str | None:
    """The first line of ``--version``; None where there is none in time."""
    try:
        done = subprocess.run(
            [executable, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.decode(errors="replace").splitlines()
    return lines[0][:80] if done.returncode == 0 and lines else None
