"""Which watched files an environment should import, and their hashes: from git blobs, a wheel's RECORD, or the disk."""

import base64
import binascii
import csv
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from sparkdiag.environment.clone import Clone
from sparkdiag.evidence.run import FileProof
from sparkdiag.scenario.model import Scenario

MAX_RECORD_BYTES = 32 * 1024 * 1024


def watched_modules(scenario: Scenario) -> tuple[str, ...]:
    """Every module that the scenario's watched functions were seen in, once each. Pure."""
    return tuple(dict.fromkeys(module for watched in scenario.watch for module in watched.modules))


def module_paths(module: str) -> tuple[str, str]:
    """Where a module may lie below its import root. Pure."""
    base = module.replace(".", "/")
    return f"{base}.py", f"{base}/__init__.py"


def parse_record(text: str) -> dict[str, str]:
    """SHA-256 (hex) by path from a wheel's RECORD. Pure.

    https://packaging.python.org/en/latest/specifications/recording-installed-packages/
    """
    hashes: dict[str, str] = {}
    for row in csv.reader(text.splitlines()):
        if len(row) < 2 or not row[1].startswith("sha256="):
            continue
        encoded = row[1].removeprefix("sha256=")
        try:
            digest = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).hex()
        except (binascii.Error, ValueError):
            continue
        hashes[row[0]] = digest
    return hashes


def _expected(modules: tuple[str, ...], *, root: Path, hash_of: Callable[[str], str | None]) -> tuple[FileProof, ...]:
    found: list[FileProof] = []
    for module in modules:
        for path in module_paths(module):
            digest = hash_of(path)
            if digest is not None:
                found.append(FileProof(module=module, path=str(root / path), sha256=digest))
                break
    return tuple(found)


def from_git(
    clone: Clone, sha: str, *, modules: tuple[str, ...], root: Path, prefix: str = ""
) -> tuple[FileProof, ...]:
    """As committed. ``root`` is the import root on disk, ``prefix`` where it lies in the repository (``src/``)."""
    return _expected(modules, root=root, hash_of=lambda path: clone.blob_sha256(sha, prefix + path))


def from_record(record: Path, *, modules: tuple[str, ...]) -> tuple[FileProof, ...]:
    """As published: the hashes that came inside the wheel."""
    try:
        with record.open("rb") as file:
            hashes: Mapping[str, str] = parse_record(file.read(MAX_RECORD_BYTES).decode(errors="replace"))
    except OSError:
        return ()
    return _expected(modules, root=record.parent.parent, hash_of=hashes.get)


def from_disk(root: Path, *, modules: tuple[str, ...]) -> tuple[FileProof, ...]:
    """As found now, where nobody recorded what should be there."""
    return _expected(modules, root=root, hash_of=lambda path: file_sha256(root / path))


def file_sha256(path: Path) -> str | None:
    """Of a file's content; None when it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
