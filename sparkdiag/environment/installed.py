"""The source of an installed package as it lies on the disk: what a server imports where no clone tells more."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from sparkdiag.errors import EnvironmentFault
from sparkdiag.evidence.blob import Blob

MOST_BYTES = 8 * 1024 * 1024
"""A module larger than this is no source that anybody wrote."""
MOST_FILES = 20_000


class InstalledTree:
    """A ``routing.SourceTree`` over one package's folder; nothing is imported. Paths begin with the package's name."""

    def __init__(self, package: Path, *, revision: str) -> None:
        """``revision``: what stands for a commit's id; the id where the files are a checkout's."""
        self._package = package
        self._revision = revision

    @property
    def revision(self) -> str:
        return self._revision

    def read(self, path: str) -> Blob | None:
        """The file; None where there is none, and for whatever lies outside the package. An installer may have put
        links to its own cache in place of files: those are followed.

        Raises ``EnvironmentFault`` for a file that is there and cannot be read.
        """
        content = self._content(path)
        if content is None:
            return None
        oid = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
        return Blob(path=path, oid=oid, text=content.decode("utf-8-sig", errors="replace"))

    def holding(self, text: str) -> tuple[str, ...]:
        """Paths of the package's Python files that hold ``text``, in order of their names."""
        wanted = text.encode()
        return tuple(path for path in self._python_files() if wanted in (self._content(path) or b""))

    def _content(self, path: str) -> bytes | None:
        parts = PurePosixPath(path).parts
        if not parts or parts[0] != self._package.name or ".." in parts or "\0" in path:
            return None
        try:
            # A pipe would never answer.
            fd = os.open(self._package.joinpath(*parts[1:]), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(fd, "rb") as file:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    return None
                content = file.read(MOST_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise EnvironmentFault(
                f"{path} in {self._package.parent} cannot be read: {error.strerror or error}",
                remedy=f"ls -l {self._package}",
            ) from error
        return content if len(content) <= MOST_BYTES else None

    def _python_files(self) -> Iterator[str]:
        count = 0
        for folder, inner, names in os.walk(self._package):
            inner.sort()
            for name in sorted(name for name in names if name.endswith(".py")):
                count += 1
                if count > MOST_FILES:
                    return
                yield (Path(self._package.name) / Path(folder, name).relative_to(self._package)).as_posix()
