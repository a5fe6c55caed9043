"""Environments built from a published wheel: the lock of a release, found or resolved, and what is built from it."""

import os
import shutil
import tempfile
from pathlib import Path

from sparkdiag.environment.build import Built, ensure_built
from sparkdiag.environment.cache import cache_root, make_root, writing
from sparkdiag.environment.child import run_step
from sparkdiag.environment.expected import from_record
from sparkdiag.environment.facts import HostFacts, gather_facts
from sparkdiag.environment.interrogate import API_SERVER
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
from sparkdiag.environment.spec import EnvironmentSpec, LabSpec
from sparkdiag.errors import UsageError


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


def published(
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
