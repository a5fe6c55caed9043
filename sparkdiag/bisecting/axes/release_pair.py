"""From two neighbouring releases to the commits between them: the search that follows a search over releases.

With a clone at hand the pair's tags become the ends; without one ``reporting.follow_up`` names the command to type.
"""

from collections.abc import Sequence

from sparkdiag.bisecting.axes.axis import Axis
from sparkdiag.environment.clone import Clone
from sparkdiag.environment.spec import ReleaseSpec
from sparkdiag.errors import UsageError
from sparkdiag.evidence.base import Value
from sparkdiag.reporting.follow_up import ReleasePair, tag_of


class PairEnds(Value):
    """The ends of the commit search, as ``--good`` and ``--bad`` name them."""

    good: str
    bad: str
    notes: tuple[str, ...] = ()


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
