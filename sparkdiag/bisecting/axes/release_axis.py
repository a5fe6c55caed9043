"""Published releases as an axis: which are searched, oldest first. Pure, but for ``choose_releases``, which asks.

A release's wheel is ready to install, so releases are searched before commits; ``release_pair`` goes on from there.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from packaging.version import Version

from sparkdiag.bisecting.axes.axis import Axis, ChosenAxis
from sparkdiag.bisecting.search.history import History
from sparkdiag.environment.facts import HostFacts
from sparkdiag.environment.lock import DISTRIBUTION
from sparkdiag.environment.releases import LeftOut, Published, Release, ask, built_here
from sparkdiag.environment.spec import RELEASE_PATTERN, ReleaseSpec
from sparkdiag.errors import EnvironmentFault, UsageError
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.bisection import Commit
from sparkdiag.scenario.shown import shown

EXAMPLE = "sparkdiag bisect --releases 0.27.1..0.32.0 (or a list: 0.30.0,0.31.0,0.32.0)"
MOST_NAMED = 8
"""Releases that one message names."""


class ReleasesAsked(Value):
    """``--releases`` as typed."""

    versions: tuple[str, ...]
    """Both ends of a range, or every release of a list; oldest first."""
    is_range: bool

    @property
    def wants_pre(self) -> bool:
        """Pre-releases are searched where one is named, as in a requirement."""
        return any(Version(version).is_prerelease for version in self.versions)


class ChosenReleases(Value):
    """What is searched, and what a reader should know about the choice."""

    releases: tuple[Release, ...]
    notes: tuple[str, ...] = ()


def parse_releases(text: str) -> ReleasesAsked:
    """Read ``OLDER..NEWER`` or ``A,B,C``; a leading ``v`` is a tag's and left out. Raises ``UsageError``."""
    older, dots, newer = text.partition("..")
    if dots:
        ends = (_version(older, of=text), _version(newer, of=text))
        if Version(ends[0]) >= Version(ends[1]):
            raise UsageError(
                f"--releases {ends[0]}..{ends[1]}: the first is to be the older of the two", remedy=EXAMPLE
            )
        return ReleasesAsked(versions=ends, is_range=True)
    listed = {Version(version): version for part in text.split(",") for version in (_version(part, of=text),)}
    if len(listed) < 2:
        raise UsageError(f"--releases {shown(text)} names one release, a search needs two or more", remedy=EXAMPLE)
    return ReleasesAsked(versions=tuple(listed[version] for version in sorted(listed)), is_range=False)


def _version(text: str, *, of: str) -> str:
    version = text.strip().removeprefix("v")
    if RELEASE_PATTERN.fullmatch(version) is None:
        raise UsageError(f"--releases {shown(of)}: {shown(text)} is no release number", remedy=EXAMPLE)
    return version


def choose_releases(text: str, *, facts: HostFacts, root: Path, asking: Callable[..., Published] = ask) -> ChosenAxis:
    """The axis that ``--releases`` asks for.

    Where the index cannot be asked, a list is taken as typed, and a range is what of it is built in the cache
    (``root``) when both ends are. Raises ``UsageError`` for releases that are not published or do not fit this machine,
    ``EnvironmentFault`` where the index is needed and cannot be asked.
    """
    asked = parse_releases(text)
    here = built_here(facts, root=root)
    if not asked.is_range and all(here.find(version) for version in asked.versions):
        return release_axis(select(asked, here))
    try:
        return release_axis(select(asked, asking(facts, pre=asked.wants_pre)))
    except EnvironmentFault as fault:
        if asked.is_range and not all(here.find(version) for version in asked.versions):
            raise
        note = f"{fault.message}: " + (
            "only releases that are built here are searched" if asked.is_range else "the releases are taken as typed"
        )
        found = select(asked, here) if asked.is_range else as_typed(asked)
        return release_axis(found.model_copy(update={"notes": (note, *found.notes)}))


def select(asked: ReleasesAsked, known: Published) -> ChosenReleases:
    """The releases to search out of those that are known. What is named is taken also where it was withdrawn or is a
    pre-release, and that is said. Raises ``UsageError`` for a named one that cannot be installed. Pure."""
    named = [_named(version, known) for version in asked.versions]
    notes = [f"{known.problem}: only {known.source} are known"] if known.problem else []
    notes += [f"{one.version} is searched as it is named, although {why}" for one, why in named if why]
    if not asked.is_range:
        return ChosenReleases(releases=tuple(one for one, _ in named), notes=tuple(notes))
    first, last = named[0][0], named[-1][0]
    between = [one for one in known.releases if _inside(one.version, first.version, last.version)]
    left_out = [one for one in known.left_out if _inside(one.version, first.version, last.version)]
    if left_out:
        notes.append(f"left out: {_listed(left_out)}")
    return ChosenReleases(releases=(first, *between, last), notes=tuple(notes))


def _named(version: str, known: Published) -> tuple[Release, str | None]:
    found = known.find(version)
    if found is not None:
        return found, None
    left_out = known.find_left_out(version)
    if left_out is not None and left_out.installable:
        return Release(version=left_out.version), left_out.because
    because = left_out.because if left_out else f"{known.source} has no such release"
    raise UsageError(f"{DISTRIBUTION} {version} cannot be searched: {because}", remedy=_nearest(version, known))


def _nearest(version: str, known: Published) -> str:
    """Releases around the one that is not there."""
    before = [one.version for one in known.releases if Version(one.version) < Version(version)][-MOST_NAMED // 2 :]
    after = [one.version for one in known.releases if Version(one.version) > Version(version)][: MOST_NAMED // 2]
    return f"name another: {', '.join((*before, *after))}" if before or after else EXAMPLE


def _inside(version: str, first: str, last: str) -> bool:
    return Version(first) < Version(version) < Version(last) and RELEASE_PATTERN.fullmatch(version) is not None


def _listed(left_out: Sequence[LeftOut]) -> str:
    told = [f"{one.version} ({one.because})" for one in left_out[:MOST_NAMED]]
    more = len(left_out) - len(told)
    return ", ".join(told) + (f" and {more} more" if more else "")


def as_typed(asked: ReleasesAsked) -> ChosenReleases:
    """A list that nobody could be asked about; building one that does not exist fails with its own reason. Pure."""
    return ChosenReleases(releases=tuple(Release(version=version) for version in asked.versions))


def release_axis(chosen: ChosenReleases) -> ChosenAxis:
    """A chain, oldest first, each release in an environment of its own with a lock of its own. Pure."""
    versions = [one.version for one in chosen.releases]
    commits = tuple(
        Commit(
            sha=one.version,
            parents=(before,) if before else (),
            subject=f"{DISTRIBUTION} {one.version}",
            committed_at=one.uploaded_at,
        )
        for one, before in zip(chosen.releases, (None, *versions[:-1]), strict=True)
    )
    axis = Axis(
        kind="releases",
        history=History.of(commits),
        old=versions[0],
        new=versions[-1],
        env_specs={version: ReleaseSpec(version=version).text for version in versions},
    )
    return ChosenAxis(axis=axis, notes=chosen.notes)
