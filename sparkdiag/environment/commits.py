"""Commits of a clone, thousands at a time: their order, the watched files they hold, what they say and change.

Paths are the repository's own, so the clone must be asked from its top (``Clone.top``). Git's plumbing commands only:
unlike ``git log`` and ``git diff`` they obey no setting that runs a program (``log.showSignature``, ``diff.external``).
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from shlex import quote
from typing import NamedTuple

from sparkdiag.environment.clone import SHA, Clone
from sparkdiag.errors import EnvironmentFault, UsageError
from sparkdiag.evidence.bisection import Commit
from sparkdiag.harmless.printable import printable
from sparkdiag.harmless.secrets import redact_text

MAX_COMMITS = 20_000
"""Who contains whom is kept as one bit a pair: 50 MB."""
MAX_SUBJECT = 300
ABSENT = "-"
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}([+-][0-9:]{5}|Z)")
LINKS = (b"120000", b"160000")
"""Modes of a symbolic link and a submodule: what they hold is another file's to say."""
_LITERAL = "--literal-pathspecs"
_FORMAT = "--format=%cI%x00%s"
_TREE = ("ls-tree", "-z", "--full-tree")
_DIFFERENCES = ("diff-tree", "--stdin", "-t", "--raw", "--no-renames", "--no-abbrev", "-z")


def read_commits(
    clone: Clone, *, old: str, new: str, first_parent: bool = False, paths: Sequence[str] = ()
) -> tuple[Commit, ...]:
    """``old`` and all that ``new`` contains and ``old`` does not, oldest first; ids of 40 digits, ``old`` an ancestor.

    With ``first_parent`` merges are passed by their first parent; with ``paths`` only commits that change one of these
    files are left, and parents skip what is left out: both as ``git bisect`` does it. The ends are kept in any case.
    Parents outside are cut.

    Raises:
        EnvironmentFault: git failed or took too long, or the history is cut off in between (a shallow clone).
        UsageError: more than ``MAX_COMMITS``.
    """
    only = ("--first-parent",) if first_parent else ()
    where = ("--", *paths)
    said = _listed(clone, "--parents", *only, f"^{old}", new, *where)
    if len(said) > MAX_COMMITS:
        raise UsageError(
            f"more than {MAX_COMMITS:,} commits between {old[:10]} and {new[:10]}",
            remedy="nearer ends: --around REV --span N, or fewer commits: --first-parent, --only-watched-paths",
        )
    listed = {commit.sha: commit for commit in said}
    if paths:
        listed |= {commit.sha: commit for commit in _end(clone, new, listed=listed)}
    first = _listed(clone, "--no-walk", old, "--")
    commits = (*first, *listed.values())
    _refuse_cut(clone, "rev-list", *only, f"^{old}", new, "--")
    known = {commit.sha for commit in commits}
    return tuple(_within(commit, known=known, first=old, first_parent=first_parent) for commit in commits)


def _listed(clone: Clone, *words: str) -> list[Commit]:
    bound = ("--topo-order", "--reverse", "--encoding=UTF-8", f"--max-count={MAX_COMMITS + 1}")
    said = clone.output(_LITERAL, "rev-list", *bound, _FORMAT, *words)
    if said is None:
        raise unlisted(clone)
    return list(parse_commits(said))


def unlisted(clone: Clone) -> EnvironmentFault:
    """Why git could not list commits, or what changes in them."""
    if clone.is_partial():
        return EnvironmentFault(
            f"git could not list the commits of {clone.folder}: a partial clone that lacks what this needs",
            remedy=f"git -C {quote(str(clone.folder))} fetch --refetch --no-filter",
        )
    return EnvironmentFault(
        f"git could not list the commits of {clone.folder}",
        remedy=f"git -C {quote(str(clone.folder))} fsck --connectivity-only",
    )


def parse_commits(said: bytes) -> Iterator[Commit]:
    """What ``git rev-list --parents --format=%cI%x00%s`` says: two lines a commit. Pure.

    A subject is one line whatever the message holds (git joins its first paragraph), so a line tells of one commit.
    """
    for header, line in pairwise(said.split(b"\n")):
        ids = header.decode("ascii", errors="replace").split(" ")
        if ids[0] != "commit" or not all(SHA.fullmatch(sha) for sha in ids[1:]) or b"\0" not in line:
            continue
        at, subject = line.split(b"\0", 1)
        date = at.decode("ascii", errors="replace")
        yield Commit(
            sha=ids[1],
            parents=tuple(dict.fromkeys(ids[2:])),
            subject=harmless_line(subject),
            committed_at=date if _DATE.fullmatch(date) else "",
        )


def harmless_line(said: bytes) -> str:
    """One line that somebody else wrote, without secrets and without anything a terminal obeys. Pure."""
    return printable(redact_text(said[: 16 * MAX_SUBJECT].decode(errors="replace")), limit=MAX_SUBJECT)


def _end(clone: Clone, new: str, *, listed: dict[str, Commit]) -> list[Commit]:
    """The new end where no watched file changes in it: it contains all that is listed."""
    if new in listed:
        return []
    inner = {parent for commit in listed.values() for parent in commit.parents}
    heads = tuple(sha for sha in listed if sha not in inner)
    return [commit.model_copy(update={"parents": heads}) for commit in _listed(clone, "--no-walk", new, "--")]


def _within(commit: Commit, *, known: set[str], first: str, first_parent: bool) -> Commit:
    parents = commit.parents[:1] if first_parent else commit.parents
    inside = () if commit.sha == first else tuple(parent for parent in parents if parent in known)
    return commit.model_copy(update={"parents": inside})


def _refuse_cut(clone: Clone, *between: str) -> None:
    """A commit whose parents are missing would be blamed for all that they brought, whatever files are watched."""
    ends = clone.cut_off()
    cut = ends.intersection((clone.output(*between) or b"").decode(errors="replace").split()) if ends else ()
    if cut:
        raise EnvironmentFault(
            f"{clone.folder} is a shallow clone: its history is cut off at {min(cut)[:10]}, between the two ends",
            remedy=f"git -C {quote(str(clone.folder))} fetch --unshallow",
        )


def blobs_of(clone: Clone, shas: Sequence[str], paths: Sequence[str]) -> dict[str, tuple[str, ...]] | None:
    """For each commit the object ids of ``paths`` (files, or folders), ``-`` where there is none; one git call for all.

    Each commit's tree is compared with the first one's: this reads no file's content, so that it works in a partial
    clone, and fails where a tree is missing instead of taking its files for absent. None when git could not tell; a
    commit that has a symbolic link or a submodule in place of a file is left out: its id says nothing of the content.
    """
    if not shas or not paths:
        return {}
    base = _tree(clone, shas[0], paths)
    asked = "".join(f"{sha} {shas[0]}\n" for sha in shas[1:]).encode()
    said = clone.output(_LITERAL, *_DIFFERENCES, "--", *paths, stdin=asked) if asked else b""
    if base is None or said is None:
        return None
    changed = parse_differences(said)
    found: dict[str, tuple[str, ...]] = {}
    for sha in shas:
        entries = base | changed.get(sha, {})
        if not any(mode in LINKS for mode, _ in (entries[path] for path in paths if path in entries)):
            found[sha] = tuple(entries[path][1] if path in entries else ABSENT for path in paths)
    return found


Entries = dict[str, tuple[bytes, str]]
"""Mode and object id by path."""


def _tree(clone: Clone, sha: str, paths: Sequence[str]) -> Entries | None:
    said = clone.output(_LITERAL, *_TREE, sha, "--", *paths)
    if said is None:
        return None
    entries: Entries = {}
    for line in filter(None, said.split(b"\0")):
        described, path = line.split(b"\t", 1)
        mode, _, blob = described.split(b" ")
        entries[path.decode(errors="replace")] = (mode, blob.decode())
    return entries


class Difference(NamedTuple):
    """One file in which a commit differs from another."""

    sha: str
    path: str
    mode: bytes
    oid: str
    status: bytes
    """``A``, ``M``, ``D`` or ``T``: git-diff-tree(1), "Raw output format"."""


def read_differences(said: bytes) -> Iterator[Difference]:
    """What ``git diff-tree --stdin --raw -z`` says. Pure."""
    sha = ""
    words = iter(said.split(b"\0"))
    for word in words:
        if not word.startswith(b":"):
            sha = word.decode("ascii", errors="replace").strip()
            continue
        _, mode, _, oid, status = word.split(b" ")
        path = next(words, b"").decode(errors="replace")
        yield Difference(sha=sha, path=path, mode=mode, oid=oid.decode(), status=status)


def parse_differences(said: bytes) -> dict[str, Entries]:
    """Of what ``git diff-tree --stdin --raw -z`` says the entries that are other than the first commit's, by commit.
    Pure."""
    changed: dict[str, Entries] = {}
    for found in read_differences(said):
        entries = changed.setdefault(found.sha, {})
        if found.status != b"D":
            entries[found.path] = (found.mode, found.oid)
        else:
            entries.setdefault(found.path, (found.mode, ABSENT))  # a file that became a folder is told twice
    return changed


def with_blobs(clone: Clone, commits: Sequence[Commit], paths: Sequence[str]) -> tuple[Commit, ...]:
    """``commits`` with the ids of the watched files; unchanged where git could not tell: then nothing is reused."""
    blobs = blobs_of(clone, [commit.sha for commit in commits], paths) or {}
    return tuple(commit.model_copy(update={"suspect_blobs": blobs.get(commit.sha, ())}) for commit in commits)


def described(clone: Clone, shas: Sequence[str]) -> tuple[Commit, ...]:
    """These commits with subject and date, in this order, without their parents."""
    if not shas:
        return ()
    said = clone.output(
        "rev-list", "--no-walk=unsorted", "--stdin", "--encoding=UTF-8", _FORMAT, stdin="\n".join([*shas, ""]).encode()
    )
    if said is None:
        raise unlisted(clone)
    return tuple(parse_commits(said))


def first_commit(clone: Clone, sha: str) -> str | None:
    """The oldest commit without a parent that ``sha`` contains."""
    said = clone.output("rev-list", "--max-parents=0", "--date-order", sha, "--")
    return said.decode().split()[-1] if said else None


def first_parents(clone: Clone, sha: str, *, most: int) -> tuple[str, ...]:
    """``sha``, its first parent, that one's first parent and so on: at most ``most``."""
    said = clone.output("rev-list", "--first-parent", f"--max-count={most}", sha, "--")
    return tuple((said or b"").decode().split())


def steps_towards(clone: Clone, sha: str, head: str) -> tuple[str, ...]:
    """The commits on ``head``'s line of first parents that contain ``sha``, without it, the nearest to it first."""
    line = clone.output("rev-list", "--first-parent", "--reverse", f"^{sha}", head, "--")
    containing = clone.output("rev-list", "--ancestry-path", f"^{sha}", head, "--")
    inside = set((containing or b"").split())
    return tuple(step.decode() for step in (line or b"").split() if step in inside)


def is_listed(clone: Clone, sha: str, *, old: str, first_parent: bool = False, paths: Sequence[str]) -> bool:
    """Whether the newer end itself is among the commits that change one of ``paths``."""
    only = ("--first-parent",) if first_parent else ()
    said = clone.output(_LITERAL, "rev-list", "--topo-order", "--max-count=1", *only, f"^{old}", sha, "--", *paths)
    return said is not None and said.decode(errors="replace").strip() == sha


def count_between(clone: Clone, *, old: str, new: str, first_parent: bool = False) -> int | None:
    """How many commits ``new`` contains and ``old`` does not; None when git could not tell."""
    only = ("--first-parent",) if first_parent else ()
    said = clone.output("rev-list", "--count", *only, f"^{old}", new, "--")
    return int(said) if said is not None and said.strip().isdigit() else None


def commit_date(clone: Clone, sha: str) -> str | None:
    """When the commit was made, ISO 8601."""
    return next((commit.committed_at for commit in _listed(clone, "--no-walk", sha, "--")), None)


def unified_diff(clone: Clone, old: str, new: str, paths: Sequence[str], *, limit: int) -> tuple[str, bool] | None:
    """What changed in ``paths``, as git prints it, moves among them shown as such, and whether it was cut at ``limit``
    bytes; None when git could not tell. No external program and no text conversion of the clone's takes part."""
    plain = ("--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
    said = clone.output(_LITERAL, "diff-tree", "-r", "-p", "-M", *plain, old, new, "--", *paths, limit=limit + 1)
    return None if said is None else (said[:limit].decode(errors="replace"), len(said) > limit)
