"""From a clone, or the lab's own history, to an axis of commits."""

from collections.abc import Sequence
from pathlib import Path

from sparkdiag.bisecting.axes.axis import NAMED, SUSPECTED, Axis, ChosenAxis
from sparkdiag.bisecting.axes.commit_ends import Ends, around_ends, named_ends
from sparkdiag.bisecting.search.history import History
from sparkdiag.environment.clone import Clone
from sparkdiag.environment.commits import ABSENT, count_between, first_commit, is_listed, read_commits, with_blobs
from sparkdiag.environment.expected import module_paths, watched_modules
from sparkdiag.environment.named import named_commit
from sparkdiag.errors import UsageError
from sparkdiag.evidence.bisection import Commit
from sparkdiag.scenario.model import Scenario

DEFAULT_SPAN = 32
"""First-parent steps to either side of ``--around``: 64 commits, about six trials."""


def lab_axis(
    repo: Path,
    *,
    scenario: Scenario,
    good: str | None = None,
    bad: str | None = None,
    first_parent: bool = False,
    only_watched_paths: bool = False,
    suspect: Sequence[str] = (),
) -> ChosenAxis:
    """The lab's history in its bare repository (``sparkdiag.lab.history.ensure_lab_repo``); an end not named
    is its first commit or its last.

    Raises ``UsageError`` for ends that make no range, ``EnvironmentFault`` when git fails.
    """
    clone = Clone(repo, bare=True)
    newest = clone.resolve("refs/heads/main")
    oldest = first_commit(clone, newest) if newest else None
    if newest is None or oldest is None:
        raise UsageError(f"{repo} is not the lab's history", remedy="sparkdiag env list")
    ends = named_ends(clone, good=good, bad=bad, oldest=oldest, newest=newest, lab=True)
    return _chosen(
        clone,
        ends,
        scenario=scenario,
        lab=True,
        first_parent=first_parent,
        only_watched_paths=only_watched_paths,
        suspect=suspect,
    )


def clone_axis(
    clone: Clone,
    *,
    scenario: Scenario,
    good: str | None = None,
    bad: str | None = None,
    around: str | None = None,
    span: int | None = None,
    first_parent: bool = False,
    only_watched_paths: bool = False,
    suspect: Sequence[str] = (),
) -> ChosenAxis:
    """The commits of a user's clone between two ends.

    ``good`` and ``bad`` only name the ends: which is the older is asked of git, which one has the stall of the trials.
    Without them the range lies around ``around`` (default: the scenario's suspect commit or a twin of it), ``span``
    first-parent steps to either side. ``suspect``: commits thought to bring the change; default: the scenario's.

    Raises ``UsageError`` for ends that make no range, ``EnvironmentFault`` for a clone that lacks what is asked.
    """
    clone = clone.top()
    if good is not None or bad is not None:
        if around is not None or span is not None:
            raise UsageError("--around and --span make a range of their own", remedy="give --good and --bad only")
        ends = named_ends(clone, good=good, bad=bad)
    else:
        ends = around_ends(clone, around=around, span=DEFAULT_SPAN if span is None else span, scenario=scenario)
    return _chosen(
        clone,
        ends,
        scenario=scenario,
        lab=False,
        first_parent=first_parent,
        only_watched_paths=only_watched_paths,
        suspect=suspect,
    )


def watched_paths(scenario: Scenario) -> tuple[str, ...]:
    """Every file the scenario watches, under every name it had: the suspect's paths and the watched modules'. Pure."""
    modules = (path for module in watched_modules(scenario) for path in module_paths(module))
    return tuple(dict.fromkeys(path.rstrip("/") for path in (*scenario.suspect.paths, *modules)))


def _chosen(
    clone: Clone,
    ends: Ends,
    *,
    scenario: Scenario,
    lab: bool,
    first_parent: bool,
    only_watched_paths: bool,
    suspect: Sequence[str],
) -> ChosenAxis:
    paths = watched_paths(scenario)
    if only_watched_paths and not paths:
        raise UsageError(f"the scenario {scenario.name} watches no file", remedy="leave --only-watched-paths out")
    limited = paths if only_watched_paths else ()
    read = read_commits(clone, old=ends.old, new=ends.new, first_parent=first_parent, paths=limited)
    stand_in = only_watched_paths and not is_listed(
        clone, ends.new, old=ends.old, first_parent=first_parent, paths=paths
    )
    if stand_in and len(read) == 2:
        raise UsageError(
            f"no commit changes a watched file {ends.notes[-1]}",
            remedy="leave --only-watched-paths out, or a wider range",
        )
    commits, present = only_present(with_blobs(clone, read, paths), paths)
    history = History.of(commits)
    predicted, missing = _predicted(clone, history, scenario=scenario, suspect=suspect, lab=lab)
    because = NAMED if suspect else SUSPECTED
    axis = Axis(
        kind="commits",
        history=history,
        old=ends.old,
        new=ends.new,
        repo=None if lab else str(clone.folder),
        read_from=str(clone.folder),
        lab=lab,
        stand_in=stand_in,
    )
    total = count_between(clone, old=ends.old, new=ends.new, first_parent=first_parent) if only_watched_paths else None
    left_out = _left_out(total, len(commits) - 1, only_watched_paths=only_watched_paths, first_parent=first_parent)
    notes = (*ends.notes, *left_out, *missing, *_blind(commits, paths))
    return ChosenAxis(
        axis=axis,
        suspect_paths=present,
        predicted=predicted,
        predicted_because=dict.fromkeys(predicted, because),
        notes=notes,
    )


def only_present(commits: Sequence[Commit], paths: Sequence[str]) -> tuple[tuple[Commit, ...], tuple[str, ...]]:
    """Without the paths that are in no commit: the commits with the blobs of those that are, and these paths. Pure."""
    with_files = [commit.suspect_blobs for commit in commits if commit.suspect_blobs]
    there = [place for place in range(len(paths)) if any(blobs[place] != ABSENT for blobs in with_files)]
    kept = tuple(
        commit.model_copy(update={"suspect_blobs": tuple(commit.suspect_blobs[place] for place in there)})
        if commit.suspect_blobs
        else commit
        for commit in commits
    )
    return kept, tuple(paths[place] for place in there)


def _predicted(
    clone: Clone, history: History, *, scenario: Scenario, suspect: Sequence[str], lab: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The predicted commits on the axis, and a line for each that was asked for and is not."""
    if suspect:
        found = [(revision, named_commit(clone, revision, option="--suspect", lab=lab)) for revision in suspect]
    else:
        known = (scenario.suspect.commit, *scenario.suspect.twins)
        found = [(name, sha) for name in known if name and (sha := clone.resolve_id(name))]
    here = tuple(dict.fromkeys(sha for _, sha in found if sha in history.index))
    missing = tuple(
        f"the suspect commit {name[:10]} is not between the ends, so it predicts nothing"
        for name, sha in found
        if sha not in history.index
    )
    return here, missing


def _left_out(total: int | None, searched: int, *, only_watched_paths: bool, first_parent: bool) -> tuple[str, ...]:
    """What a restricted search cannot see, in the words of who is blamed for it."""
    notes = []
    if only_watched_paths:
        of = f"of {total} commits" if total is not None else "of all commits"
        notes.append(
            f"{of} only {searched} are searched: those that change a watched file, and the newer end; "
            "what another commit brought is blamed on the next one searched"
        )
    if first_parent:
        notes.append("merges count as one commit (--first-parent): a culprit may be a whole merged branch")
    return tuple(notes)


def _blind(commits: Sequence[Commit], paths: Sequence[str]) -> tuple[str, ...]:
    if commits and not any(commit.suspect_blobs for commit in commits):
        return ("no watched file can be compared between the ends: no result is reused",) if paths else ()
    unknown = sum(1 for commit in commits if not commit.suspect_blobs)
    if not paths or not unknown:
        return ()
    return (
        f"the watched files of {unknown} of {len(commits)} commits cannot be compared: no result is reused for them",
    )
