"""From two neighbouring releases to the commits between them: the search that follows a search over releases.

With a clone at hand the pair's tags become the ends; without one the conclusion names the command to type.
"""

import re
import shlex
from collections.abc import Sequence

from sparkdiag.bisecting.axis import Axis
from sparkdiag.environment.clone import Clone
from sparkdiag.environment.spec import ReleaseSpec
from sparkdiag.errors import UsageError
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import Bisection, Commit, Direction, Target

CLONE = "path/to/vllm"
"""Stands in a command for the clone that nobody named."""
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


class PairEnds(Value):
    """The ends of the commit search, as ``--good`` and ``--bad`` name them."""

    good: str
    bad: str
    notes: tuple[str, ...] = ()


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


def require_tags(versions: Sequence[str], clone: Clone) -> None:
    """Raises ``UsageError`` where a clone lacks the tag of a release: known before the trials, and not after them."""
    tags = dict.fromkeys(tag_of(version) for version in versions)
    missing = [tag for tag in tags if clone.resolve(f"refs/tags/{tag}") is None]
    if missing:
        raise UsageError(
            f"{clone.folder} has no tag {' and no tag '.join(missing)}", remedy=f"git -C {clone.folder} fetch --tags"
        )


def ends_of(pair: ReleasePair, clone: Clone) -> PairEnds:
    """The pair's ends in a clone. Raises ``UsageError`` for a tag that is not there, or without commits between.

    vLLM tags a release on a branch of its own: where the newer does not contain the older, their merge base stands for
    the older one.
    """
    if pair.same_source:
        raise UsageError(
            f"{pair.older} and {pair.newer} are wheels of one source, {pair.older_tag}: there is no commit between",
            remedy="look at what the two wheels are built with",
        )
    require_tags((pair.older, pair.newer), clone)
    if clone.is_ancestor(pair.older_tag, pair.newer_tag):
        return _ends(pair, older=pair.older_tag)
    base = clone.merge_base(pair.older_tag, pair.newer_tag)
    if base is None:
        raise UsageError(
            f"{pair.older_tag} and {pair.newer_tag} share no commit in {clone.folder}",
            remedy=f"git -C {clone.folder} fetch --unshallow --tags",
        )
    note = (
        f"{pair.newer_tag} does not contain {pair.older_tag}: the search starts where their branches part, {base[:10]}"
    )
    return _ends(pair, older=base, notes=(note,))


def _ends(pair: ReleasePair, *, older: str, notes: tuple[str, ...] = ()) -> PairEnds:
    good, bad = (pair.newer_tag, older) if pair.older_has_it else (older, pair.newer_tag)
    return PairEnds(good=good, bad=bad, notes=notes)


def with_bases(axis: Axis, pair: ReleasePair) -> Axis:
    """Each commit's tree over the binaries of the release that is nearer in history order. Pure."""
    older, newer = ReleaseSpec(version=pair.older).text, ReleaseSpec(version=pair.newer).text
    commits = axis.history.commits
    specs = {
        commit.sha: f"overlay:{commit.sha}@{older if 2 * place < len(commits) else newer}"
        for place, commit in enumerate(commits)
    }
    return axis.model_copy(update={"env_specs": specs})


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
    base = ("--env", ReleaseSpec(version=pair.newer).text)
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
