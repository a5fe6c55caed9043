"""What follows a search over releases: the command line of the one over the commits between the two it found. Pure."""

import re
import shlex
from collections.abc import Sequence

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import Bisection, Commit, Direction, Target

CLONE = "path/to/vllm"
"""Stands in a command for the clone that nobody named."""
_RELEASE = re.compile(r"[0-9]+(\.[0-9]+){1,3}((a|b|rc)[0-9]+)?(\.post[0-9]+)?")
_POST = re.compile(r"\.post[0-9]+$")
_WITH_VALUE = frozenset(
    (
        *("--releases", "--env", "--axis", "--repo", "--good", "--bad", "--around", "--span", "--suspect"),
        *("--good-run", "--bad-run", "--folder", "--import", "--export"),
    )
)
"""Options of a search over releases that mean nothing, or something else, to one over commits."""
_ALONE = frozenset(("--dry-run", "--resume", "--reuse", "--no-reuse"))


class ReleasePair(Value):
    """The last release on the old side of the change, and the first on the new side."""

    older: str
    newer: str
    older_has_it: bool
    """Which of the two has what is looked for."""

    @property
    def older_tag(self) -> str:
        return tag_of(self.older)

    @property
    def newer_tag(self) -> str:
        return tag_of(self.newer)

    @property
    def same_source(self) -> bool:
        """The same source packaged twice (``0.12.0`` and ``0.12.0.post2``): there are no commits between."""
        return self.older_tag == self.newer_tag


def tag_of(version: str) -> str:
    """vLLM's tag of a release; a post-release of the wheel has no tag of its own. Pure."""
    return f"v{_POST.sub('', version)}"


def pair_of(bisection: Bisection) -> ReleasePair | None:
    """Between which releases the change came, also where some between them could not be judged. Pure."""
    if bisection.axis != "releases" or bisection.outcome not in ("found", "candidates"):
        return None
    return pair_around(bisection.commits, direction=bisection.direction)


def pair_around(commits: Sequence[Commit], *, direction: Direction | None) -> ReleasePair | None:
    """The pair with the candidates ``commits`` between them, oldest first; None without any. Pure."""
    if not commits or not commits[0].parents:
        return None
    return ReleasePair(older=commits[0].parents[0], newer=commits[-1].sha, older_has_it=direction == "fix")


def next_command(
    pair: ReleasePair, *, command: Sequence[str], target: Target, scenario: str, clone: str | None = None
) -> str:
    """The command line of the search that follows ``command``, for a shell. Pure.

    The older end is asked of git by the command itself, because releases are tagged on branches of their own.
    """
    folder = shlex.quote(clone) if clone is not None else CLONE
    parted = f'"$(git -C {folder} merge-base {pair.older_tag} {pair.newer_tag})"'
    good, bad = (pair.newer_tag, parted) if pair.older_has_it else (parted, pair.newer_tag)
    rest = kept_options(pair, command=command, target=target, scenario=scenario)
    return f"sparkdiag bisect --repo {folder} --good {good} --bad {bad} {shlex.join(rest)}"


def kept_options(pair: ReleasePair, *, command: Sequence[str], target: Target, scenario: str) -> tuple[str, ...]:
    """What the search that follows is asked beside its ends: as ``command``, on the newer release's binaries. Pure."""
    options, server = _parted(command)
    kept = _kept(options[2:])
    named = any(word.partition("=")[0] == "--scenario" for word in kept)
    # What is no stall may lie outside the watched files, by which results are reused.
    reuse = () if target.what == "stall" else ("--no-reuse",)
    base = ("--env", f"release:{pair.newer}")
    return (*base, *(() if named else ("--scenario", scenario)), *reuse, *kept, *server)


def _parted(command: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """sparkdiag's words, and from ``--`` on vLLM's."""
    at = command.index("--") if "--" in command else len(command)
    return tuple(command[:at]), tuple(command[at:])


def _kept(options: Sequence[str]) -> tuple[str, ...]:
    kept: list[str] = []
    words = iter(options)
    for word in words:
        name, equals, _ = word.partition("=")
        if name in _WITH_VALUE:
            if not equals:
                next(words, None)
        elif name not in _ALONE:
            kept.append(word)
    return tuple(kept)


def follow_up(found: Bisection) -> str | None:
    """The command that goes on after ``found``; None after anything but two releases of different sources. Pure.

    A document may be somebody else's: nothing of it stands in the command unquoted but two release numbers.
    """
    pair = pair_of(found)
    if pair is None or pair.same_source:
        return None
    if not (_RELEASE.fullmatch(pair.older) and _RELEASE.fullmatch(pair.newer)):
        return None
    return next_command(pair, command=found.command, target=found.target, scenario=found.scenario, clone=found.repo)
