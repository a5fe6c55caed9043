"""What an overlay stands on: a base environment, and the commit of the clone that its binaries were built from."""

import re
from pathlib import Path

from sparkdiag.environment.clone import Clone
from sparkdiag.environment.given import given
from sparkdiag.environment.lock import KNOWN_FIRST, KNOWN_LAST
from sparkdiag.environment.model import Environment
from sparkdiag.environment.progress import ProgressSink
from sparkdiag.environment.proof import sha_by_version
from sparkdiag.environment.published import published
from sparkdiag.environment.spec import ExistingSpec, OverlaySpec, ReleaseSpec
from sparkdiag.errors import EnvironmentFault, UsageError
from sparkdiag.evidence.base import Value

VERSION_TAG = re.compile(r"v([0-9]+)\.([0-9]+)\.([0-9]+)(?:rc[0-9]+)?")


class Base(Value):
    """A base environment as an overlay sees it."""

    spec: ExistingSpec | ReleaseSpec
    environment: Environment
    sha: str | None = None
    """The commit in the clone that the base was built from; None where that cannot be told."""
    why: str = ""
    """How ``sha`` is known, or why it is not."""

    @property
    def python(self) -> str:
        return self.environment.python

    @property
    def package(self) -> str:
        return self.environment.package_path or ""

    @property
    def checkout(self) -> bool:
        """Whether the base's package is somebody's working tree."""
        return self.environment.revision_sha is not None

    @property
    def cpu(self) -> bool:
        """Whether it is known to be a CPU build."""
        return is_cpu(self.spec, version=self.environment.vllm_version)


def is_cpu(spec: ExistingSpec | ReleaseSpec, *, version: str | None) -> bool:
    """The published wheels that sparkdiag builds from are CPU builds; another names itself one. Pure."""
    return isinstance(spec, ReleaseSpec) or bool(re.search(r"[+.]cpu\b", version or ""))


def base_spec(spec: OverlaySpec, *, clone: Clone, sha: str) -> ExistingSpec | ReleaseSpec:
    """The base that is named, else the release that the revision's nearest version tag names. Raises ``UsageError``."""
    if spec.base is not None:
        return spec.base
    tag = nearest_tag(clone, sha)
    remedy = f"sparkdiag repro --env {spec.text}@release:VERSION --repo {clone.folder} (or @existing:PYTHON)"
    if tag is None:
        raise UsageError(
            f"environment {spec.text}: no version tag of {clone.folder} leads to {sha[:10]}, so its base is not known",
            remedy=remedy,
        )
    numbers = version_of(tag)
    if numbers is None or not KNOWN_FIRST <= numbers <= KNOWN_LAST:
        raise UsageError(
            f"environment {spec.text}: its nearest version tag is {tag}, of which no CPU wheel is known", remedy=remedy
        )
    return ReleaseSpec(version=".".join(map(str, numbers)))


def version_of(tag: str) -> tuple[int, int, int] | None:
    """``v0.32.0rc1`` -> (0, 32, 0); None for what is no version tag. Pure."""
    found = VERSION_TAG.fullmatch(tag)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def nearest_tag(clone: Clone, sha: str) -> str | None:
    """The highest version tag that a commit contains."""
    found = clone.output("for-each-ref", f"--merged={sha}", "--format=%(refname:short)", "refs/tags/v*")
    tags = (found or b"").decode(errors="replace").split()
    return max((tag for tag in tags if version_of(tag)), key=lambda tag: version_of(tag) or (0, 0, 0), default=None)


def find_base(spec: ExistingSpec | ReleaseSpec, *, clone: Clone, progress: ProgressSink) -> Base:
    """Build or find the base. Raises ``EnvironmentFault``, ``BusyError``."""
    if isinstance(spec, ExistingSpec):
        environment = given(spec, modules=(), revision=None, repo=clone.folder)
    else:
        environment = published(spec, modules=(), revision=None, repo=clone.folder, progress=progress)
    if environment.package_path is None or not Path(environment.package_path).is_dir():
        raise EnvironmentFault(f"{spec.text} has no vllm package", remedy="name another base: overlay:REV@BASE")
    sha, why = commit_of(clone, version=environment.vllm_version, checked_out=environment.revision_sha)
    return Base(spec=spec, environment=environment, sha=sha, why=why)


def commit_of(clone: Clone, *, version: str | None, checked_out: str | None) -> tuple[str | None, str]:
    """The commit that an environment was built from, in the clone, and how that is known or why not."""
    if checked_out is not None:
        found = clone.resolve(checked_out)
        return found, f"its checkout is at {checked_out[:10]}" + ("" if found else f", which {clone.folder} lacks")
    found = sha_by_version(version, clone)
    if found is not None:
        return found, f"vllm {version} is {found[:10]} in {clone.folder}"
    return None, f"{clone.folder} has neither a tag nor a commit for vllm {version or '(version unknown)'}"
