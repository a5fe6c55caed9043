"""The files of any revision, straight from a clone's objects: no checkout, nothing written, nothing fetched.

Paths are looked up in git's own tree objects, which tell a file from a link, and which like the files are kept by id:
whatever two revisions have in common is read once.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from sparkdiag.environment.clone import Clone, open_clone
from sparkdiag.environment.commits import read_differences
from sparkdiag.environment.named import named_commit
from sparkdiag.environment.objects import MAX_OBJECT_BYTES, Found, NotRead, ObjectReader
from sparkdiag.errors import EnvironmentFault, RouteError
from sparkdiag.evidence.blob import Blob
from sparkdiag.harmless.printable import printable

MAX_KEPT_CHARACTERS = 64_000_000
MAX_KEPT_FOLDERS = 4096
MAX_NEAR = 1000
"""Files in which two commits differ; beyond, a search through all files is as quick."""
_SHOWN = 10
_FILES = (b"100644", b"100755", b"100664")
_FOLDER = b"40000"
_ID_BYTES = 20
_LINE_BYTES = 200


class TreeEntry(NamedTuple):
    """What a folder holds under one name."""

    mode: bytes
    oid: str


Folder = dict[str, TreeEntry]


class BlobReader:
    """One clone's files, whatever the revision; what was read is kept by id, within bounds."""

    def __init__(self, clone: Clone, *, limit: int = MAX_OBJECT_BYTES) -> None:
        self.clone = clone.top()
        self._objects = ObjectReader(self.clone, limit=limit)
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._kept_characters = 0
        self._folders: OrderedDict[str, Folder] = OrderedDict()
        self._roots: dict[str, str] = {}
        self._hits: dict[str, dict[str, tuple[str, ...]]] = {}
        self._held: dict[tuple[str, str], bool] = {}

    def close(self) -> None:
        """End the git that was asked."""
        self._objects.close()

    def tree(self, sha: str) -> "RevisionTree":
        """The files of the commit with this id of 40 digits."""
        return RevisionTree(self, sha)

    def named(self, revision: str, *, option: str = "--rev") -> "RevisionTree":
        """The files of a revision as it was typed after ``option``.

        Raises ``UsageError`` where the clone has no such commit.
        """
        return self.tree(named_commit(self.clone, revision, option=option))

    def oid_at(self, sha: str, path: str) -> str | None:
        """Id of the file's content; None where there is none, or a link, a submodule or a folder.

        Raises ``EnvironmentFault`` when git fails.
        """
        *folders, name = path.split("/")
        oid = self._root(sha)
        for part in folders:
            entry = self._folder(oid, sha=sha).get(part)
            if entry is None or entry.mode != _FOLDER:
                return None
            oid = entry.oid
        entry = self._folder(oid, sha=sha).get(name)
        return entry.oid if entry is not None and entry.mode in _FILES else None

    def text(self, oid: str, *, path: str, sha: str) -> str:
        """A file's content as UTF-8, without a byte order mark, undecodable bytes replaced.

        Raises:
            RouteError: it is larger than 8 MiB.
            EnvironmentFault: git failed, or this clone lacks it.
        """
        kept = self._texts.get(oid)
        if kept is not None:
            self._texts.move_to_end(oid)
            return kept
        text = self._content(oid, kind="blob", path=path, sha=sha).decode("utf-8-sig", errors="replace")
        self._texts[oid] = text
        self._kept_characters += len(text)
        while self._kept_characters > MAX_KEPT_CHARACTERS and len(self._texts) > 1:
            self._kept_characters -= len(self._texts.popitem(last=False)[1])
        return text

    def holds(self, oid: str, text: str) -> bool:
        """Whether a file's content holds ``text`` literally; nothing of it is kept. False for one that is too large.

        Raises ``EnvironmentFault`` when git failed, or this clone lacks it.
        """
        found = self._objects.read(oid)
        if isinstance(found, NotRead):
            if found.trouble == "too large":
                return False
            raise self._fault(found, what=f"the file {oid[:_SHOWN]}")
        return text.encode() in found.content

    def holding(self, sha: str, text: str) -> tuple[str, ...]:
        """Paths of the Python files at a commit that hold ``text`` literally, sorted.

        A quarter of a second for 3,000 files; near a commit that was asked about before only what differs is read.
        Raises ``EnvironmentFault`` when git fails.
        """
        if not text or "\n" in text or "\0" in text:
            return ()
        known = self._hits.setdefault(text, {})
        if sha not in known:
            near = next(reversed(known), None)
            found = None if near is None else self._moved(near, sha, text=text)
            known[sha] = tuple(sorted(self._search(sha, text) if found is None else found))
        return known[sha]

    def _search(self, sha: str, text: str) -> set[str]:
        if self._partial and self._lacks_python(sha):  # git grep would go on without them
            raise self._fault(NotRead("missing"), what=f"Python files of {sha[:_SHOWN]}")
        plain = ("--full-name", "--no-recurse-submodules", "--no-color", "--no-textconv")
        said = self.clone.output("grep", "-l", "-z", "-a", "-F", *plain, "-e", text, sha, "--", "*.py", ok=(0, 1))
        if said is None:
            raise self._fault(NotRead("failed"), what=f"the Python files of {sha[:_SHOWN]}")
        return set(_readable_names(said, prefix=f"{sha}:"))

    @cached_property
    def _partial(self) -> bool:
        return self.clone.is_partial()

    def _lacks_python(self, sha: str) -> bool:
        said = self.clone.output("rev-list", "--objects", "--no-walk", "--missing=print", sha, "--", "*.py")
        return said is None or any(line.startswith(b"?") for line in said.split(b"\n"))

    def _moved(self, near: str, sha: str, *, text: str) -> set[str] | None:
        """What holds ``text`` at ``sha``, from what does at ``near``; None where they differ in too many files."""
        plain = ("-r", "--raw", "--no-renames", "--no-abbrev", "-z")
        limit = MAX_NEAR * _LINE_BYTES
        said = self.clone.output("diff-tree", *plain, near, sha, "--", "*.py", limit=limit)
        if said is None or len(said) == limit:
            return None
        differences = tuple(read_differences(said))
        if len(differences) > MAX_NEAR:
            return None
        found = set(self._hits[text][near])
        for one in differences:
            found.discard(one.path)
            if one.status != b"D" and one.mode in _FILES and self._holds_once(one.oid, text):
                found.add(one.path)
        return found

    def _holds_once(self, oid: str, text: str) -> bool:
        known = self._held.get((oid, text))
        if known is None:
            known = self._held[oid, text] = self.holds(oid, text)
        return known

    def _root(self, sha: str) -> str:
        known = self._roots.get(sha)
        if known is None:
            header = self._content(sha, kind="commit", path="", sha=sha).split(b"\n", 1)[0]
            known = self._roots[sha] = header.removeprefix(b"tree ").decode("ascii", errors="replace")
        return known

    def _folder(self, oid: str, *, sha: str) -> Folder:
        kept = self._folders.get(oid)
        if kept is not None:
            self._folders.move_to_end(oid)
            return kept
        folder = self._folders[oid] = parse_folder(self._content(oid, kind="tree", path="", sha=sha))
        if len(self._folders) > MAX_KEPT_FOLDERS:
            self._folders.popitem(last=False)
        return folder

    def _content(self, oid: str, *, kind: str, path: str, sha: str) -> bytes:
        found = self._objects.read(oid)
        where = f"{printable(path)} of {sha[:_SHOWN]}" if path else f"the {kind} {oid[:_SHOWN]}"
        if isinstance(found, Found) and found.kind == kind:
            return found.content
        if isinstance(found, NotRead) and found.trouble == "too large":
            raise RouteError(
                f"{where} has {found.size / 2**20:,.0f} MiB, and a source file that large is not read",
                remedy="name another revision: --rev REV",
            )
        raise self._fault(found if isinstance(found, NotRead) else NotRead("missing"), what=where)

    def _fault(self, found: NotRead, *, what: str) -> EnvironmentFault:
        folder = self.clone.folder
        if self._partial:
            return EnvironmentFault(
                f"{folder} is a partial clone that lacks {what}",
                remedy=f"git -C {quote(str(folder))} fetch --refetch --no-filter",
            )
        said = "lacks" if found.trouble == "missing" else "cannot be asked for"
        return EnvironmentFault(f"{folder} {said} {what}", remedy=f"git -C {quote(str(folder))} fsck (git says why)")


class RevisionTree:
    """One revision's files; a ``sparkdiag.routing.source.source_tree.SourceTree``."""

    def __init__(self, reader: BlobReader, sha: str) -> None:
        self._reader = reader
        self._sha = sha

    @property
    def revision(self) -> str:
        """Id of the commit, 40 digits."""
        return self._sha

    def read(self, path: str) -> Blob | None:
        """The file; None where there is none, or where it is a link. Raises as ``BlobReader.text`` does."""
        oid = self._reader.oid_at(self._sha, path)
        return None if oid is None else Blob(path=path, oid=oid, text=self._reader.text(oid, path=path, sha=self._sha))

    def holding(self, text: str) -> tuple[str, ...]:
        """Paths of Python files that hold ``text`` literally. Raises ``EnvironmentFault`` when git fails."""
        return self._reader.holding(self._sha, text)

    def oids(self, paths: Sequence[str]) -> dict[str, str | None]:
        """Ids of the contents of these files, None where there is no such file."""
        return {path: self._reader.oid_at(self._sha, path) for path in paths}


def parse_folder(content: bytes) -> Folder:
    """Read a tree object: ``MODE NAME NUL ID`` again and again. Names that are no UTF-8 are left out. Pure.

    https://git-scm.com/book/en/v2/Git-Internals-Git-Objects
    """
    folder: Folder = {}
    place = 0
    while (end := content.find(b"\0", place)) >= 0:
        mode, _, name = content[place:end].partition(b" ")
        place = end + 1 + _ID_BYTES
        try:
            folder[name.decode()] = TreeEntry(mode, content[end + 1 : place].hex())
        except UnicodeDecodeError:
            continue
    return folder


def _readable_names(said: bytes, *, prefix: str) -> Iterator[str]:
    for name in said.split(b"\0"):
        with suppress(UnicodeDecodeError):
            path = name.decode()
            if path.startswith(prefix):
                yield path.removeprefix(prefix)


@contextmanager
def open_blobs(folder: Path) -> Iterator[BlobReader]:
    """The clone at ``folder``, for as many revisions as are asked for.

    Raises ``EnvironmentFault`` where there is no clone that git would read.
    """
    reader = BlobReader(open_clone(folder))
    try:
        yield reader
    finally:
        reader.close()


@contextmanager
def open_tree(folder: Path, revision: str) -> Iterator[RevisionTree]:
    """The files of one revision of the clone at ``folder``.

    Raises ``UsageError`` where there is no such commit, ``EnvironmentFault`` where there is no clone.
    """
    with open_blobs(folder) as reader:
        yield reader.named(revision)
