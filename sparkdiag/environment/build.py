"""Build an environment from a lock: under a lock file, on top of nothing, completed by a stamp written last."""

import errno
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from sparkdiag.environment import cache
from sparkdiag.environment.cache import Stamp
from sparkdiag.environment.child import run_step
from sparkdiag.environment.facts import HostFacts
from sparkdiag.environment.growth import GrowthMeter, folder_bytes
from sparkdiag.environment.interrogate import Findings, interrogate
from sparkdiag.environment.lock import DISTRIBUTION, Lock, LockedPackage
from sparkdiag.environment.plan import BuildPlan, Places, build_plan
from sparkdiag.environment.progress import ProgressSink
from sparkdiag.errors import BusyError, EnvironmentFault
from sparkdiag.evidence.base import Value

BUILD_WAIT_S = 3600


class Built(Value):
    """A whole environment in the cache."""

    folder: str
    stamp: Stamp

    @property
    def python(self) -> str:
        return str(Path(self.folder) / self.stamp.python)

    @property
    def package_path(self) -> str:
        return str(Path(self.folder) / self.stamp.package_path)

    @property
    def record_path(self) -> Path:
        return Path(self.folder) / self.stamp.record_path


def ensure_built(lock: Lock, facts: HostFacts, *, root: Path, progress: ProgressSink) -> Built:
    """The environment of this lock, built now when the cache has none that is whole.

    Raises ``EnvironmentFault`` (no network, no space, uv's own words) or ``BusyError`` (another build never ended).
    """
    folder = cache.environments_dir(root) / lock.key
    found = _whole(folder)
    if found is not None:
        return found
    cache.make_root(root)
    with (
        cache.writing(root),
        one_at_a_time(cache.build_lock_path(folder), what=f"environment {lock.key}", say=progress.say),
    ):
        found = _whole(folder)
        if found is not None:
            return found
        cache.discard_attempts(folder, "venv-*")
        cache.mark(folder)
        return _build(lock, facts, folder=folder, progress=progress)


def _whole(folder: Path) -> Built | None:
    stamp = cache.read_stamp(folder)
    if stamp is None or not cache.is_ours(folder):
        return None
    cache.touch_used(folder)
    return Built(folder=str(folder), stamp=stamp)


@contextmanager
def one_at_a_time(path: Path, *, what: str, say: Callable[[str], None]) -> Iterator[None]:
    """Hold ``path``'s lock, waiting for another sparkdiag that holds it; raises ``BusyError`` after an hour."""
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        say(f"another sparkdiag is at work on {what}; waiting for it")
        try:
            lock.acquire(timeout=BUILD_WAIT_S)
        except Timeout:
            raise BusyError(
                f"another sparkdiag has been at work on {what} for an hour", remedy="sparkdiag env list"
            ) from None
    try:
        yield
    finally:
        lock.release()


def _build(lock: Lock, facts: HostFacts, *, folder: Path, progress: ProgressSink) -> Built:
    venv = f"venv-{secrets.token_hex(4)}"
    places = Places(
        venv=str(folder / venv),
        python=str(folder / venv / "bin" / "python"),
        torch_requirements=str(folder / "torch.txt"),
        requirements=str(folder / "lock.txt"),
    )
    plan = build_plan(lock, facts, places)
    check_disk(plan, folder=folder, free_bytes=shutil.disk_usage(folder).free)
    Path(places.torch_requirements).write_text(_requirements((lock.torch,) if lock.torch else ()), encoding="utf-8")
    Path(places.requirements).write_text(_requirements(lock.rest), encoding="utf-8")
    progress.say(f"building the environment {plan.key} once: {plan.forecast}; torch from {plan.torch_from}")
    began_s = time.monotonic()
    try:
        _run_steps(plan, venv=folder / venv, log=folder / "uv.log", progress=progress)
        findings = _check(places.python, lock=lock)
        stamp = _stamp(plan, findings, folder=folder, venv=venv, build_s=time.monotonic() - began_s)
        cache.write_stamp(folder, stamp)
    except BaseException:
        shutil.rmtree(folder / venv, ignore_errors=True)
        raise
    progress.say(f"environment {plan.key} is ready after {stamp.build_s:.0f} s, {stamp.installed_bytes / 1e9:.1f} GB")
    return Built(folder=str(folder), stamp=stamp)


def _requirements(packages: tuple[LockedPackage, ...]) -> str:
    return "".join(f"{package.line}\n" for package in packages)


def check_disk(plan: BuildPlan, *, folder: Path, free_bytes: int) -> None:
    """Raise ``EnvironmentFault`` before anything is downloaded where it would not fit. Its cause says that this is the
    disk's doing: a search must not take it for the environment's own."""
    if free_bytes < plan.needed_bytes:
        raise EnvironmentFault(
            f"{folder.parent} has {free_bytes / 1e9:.1f} GB free, the environment needs "
            f"{plan.needed_bytes / 1e9:.1f} GB",
            remedy=f"sparkdiag env prune --all, or put the cache elsewhere: export {cache.VARIABLE}=/a/larger/disk",
        ) from OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _run_steps(plan: BuildPlan, *, venv: Path, log: Path, progress: ProgressSink) -> None:
    log.write_bytes(b"")
    meter = GrowthMeter(venv)
    total = float(plan.installed_bytes)
    for step in plan.steps:
        progress.start(step.title, total=total, unit="bytes")
        try:
            run_step(
                step,
                folder=log.parent,
                log=log,
                on_tick=lambda pid: progress.advance(min(float(meter.measure(pid)), total)),
            )
        finally:
            progress.finish()


def _check(python: str, *, lock: Lock) -> Findings:
    """Ask the new interpreter what it holds, before the stamp says that it is whole."""
    findings = interrogate(python)
    version = findings.vllm_version
    if version is None or version.split("+")[0] != lock.facts.vllm or findings.record_path is None:
        raise EnvironmentFault(
            f"the new environment holds {findings.distribution or 'no vLLM'} {version or ''} instead of "
            f"{DISTRIBUTION} {lock.facts.vllm}",
            remedy="sparkdiag env prune --all, then: sparkdiag env build",
        )
    return findings


def _stamp(plan: BuildPlan, findings: Findings, *, folder: Path, venv: str, build_s: float) -> Stamp:
    def inside(path: str | None) -> str:
        return os.path.relpath(path or "", folder)

    return Stamp(
        key=plan.key,
        lock_sha256=plan.lock.sha256,
        vllm_version=findings.vllm_version or "",
        venv=venv,
        python=f"{venv}/bin/python",
        package_path=inside(findings.package_path),
        record_path=inside(findings.record_path),
        installed_bytes=folder_bytes(folder / venv),
        built_at=datetime.now(UTC).isoformat(timespec="seconds"),
        build_s=round(build_s, 1),
    )
