"""What a container or slice may use: memory and CPU limits of the control groups above this process."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
UNLIMITED_BYTES = 1 << 60
"""Version 1 writes a page-rounded 2^63 for no limit."""


def memory_free_bytes(*, root: Path = ROOT, own: str | None = None) -> int | None:
    """The least that any group above may still take; None where none limits.

    https://docs.kernel.org/admin-guide/cgroup-v2.html (memory.max, memory.current), cgroup-v1/memory.html
    (memory.limit_in_bytes, memory.usage_in_bytes).
    """
    free: list[int] = []
    for folder in _groups("memory", root=root, own=_own() if own is None else own):
        for limit, usage in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            most, used = _number(folder / limit), _number(folder / usage)
            if most is not None and most < UNLIMITED_BYTES:
                # File cache counts as used and is given back under pressure.
                free.append(max(0, most - (used or 0) + _cache_bytes(folder)))
    return min(free, default=None)


def cpu_quota(*, root: Path = ROOT, own: str | None = None) -> float | None:
    """Cores' worth of CPU time; None without a quota."""
    quotas: list[float] = []
    for folder in _groups("cpu", root=root, own=_own() if own is None else own):
        words = _text(folder / "cpu.max").split()
        if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]):
            quotas.append(int(words[0]) / int(words[1]))
        quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
        if quota is not None and quota > 0 and period:
            quotas.append(quota / period)
    return min(quotas, default=None)


def _own() -> str:
    return _text(Path("/proc/self/cgroup"))


def _groups(controller: str, *, root: Path, own: str) -> Iterator[Path]:
    """The folders of this process's groups up to the root, for version 2 and for the controller of version 1."""
    for line in own.splitlines():
        _hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        base = root / controller if controllers else root
        folder = Path(path.lstrip("/"))
        for part in (folder, *folder.parents):
            if ".." not in part.parts:
                yield base / part


def _cache_bytes(folder: Path) -> int:
    for line in _text(folder / "memory.stat").splitlines():
        name, _, value = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file") and value.strip().isdigit():
            return int(value)
    return 0


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.lstrip("-").isdigit() else None


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(1 << 16)
    except OSError:
        return ""
