"""What ``report`` and ``post`` are asked about, read from its folder and made fit for others' eyes."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sparkdiag.errors import RunFolderError

if TYPE_CHECKING:
    from sparkdiag.evidence.bisection import Bisection, TrialResult
    from sparkdiag.evidence.comparison import Comparison
    from sparkdiag.evidence.redaction import Redactions
    from sparkdiag.evidence.stored import StoredRun


@dataclass(frozen=True, kw_only=True)
class OneRun:
    """A run, and where today's judge differs, the same with its verdict."""

    folder: Path
    run: "StoredRun"
    again: "StoredRun | None"


@dataclass(frozen=True, kw_only=True)
class TwoRuns:
    """Two runs beside each other."""

    a: "StoredRun"
    b: "StoredRun"

    @property
    def comparison(self) -> "Comparison":
        """Made of the two as they are here: of public ones nothing else can come of it."""
        from sparkdiag.reporting.comparison.compare import compare

        return compare(self.a, self.b)


@dataclass(frozen=True, kw_only=True)
class OneBisection:
    """A bisection; ``good`` and ``bad`` are the runs of its trials beside the change, where their folders are there."""

    folder: Path
    found: "Bisection"
    good: "StoredRun | None" = None
    bad: "StoredRun | None" = None


Subject = OneRun | TwoRuns | OneBisection


def read_subject(folders: list[Path], *, with_trials: bool = False) -> Subject:
    """One folder of a run or a bisection, or two of runs. ``with_trials``: read a bisection's telling trials too.

    Raises ``RunFolderError``.
    """
    from sparkdiag.cli.judged_again import judged_again
    from sparkdiag.recording.listed_bisection import is_bisection_folder
    from sparkdiag.recording.read import read_run

    bisections = [folder for folder in folders if is_bisection_folder(folder)]
    if len(folders) == 1 and bisections:
        return _bisection(folders[0], with_trials=with_trials)
    if bisections:
        raise RunFolderError(
            f"{bisections[0]} is a bisection, and two runs are compared",
            remedy=f"sparkdiag report {bisections[0]}, or name two folders of its trials/",
        )
    if len(folders) == 1:
        stored = read_run(folders[0])
        return OneRun(folder=folders[0], run=stored, again=judged_again(stored))
    a, b = (read_run(folder) for folder in folders)
    return TwoRuns(a=a, b=b)


def made_public(subject: Subject, *, not_secret: frozenset[str]) -> "tuple[Subject, Redactions]":
    """``subject`` without secrets and without what tells whose machine it was; and what went.

    What is made of a run (ledger, agreement, comparison) is made after that: it cuts and combines, and of a secret that
    was cut nobody can tell that it is one. ``not_secret``: fingerprints of texts that a person has found harmless.
    """
    from sparkdiag.evidence.base import Value
    from sparkdiag.evidence.stored import StoredRun
    from sparkdiag.recording.identities import identities_here
    from sparkdiag.reporting.public import public_values
    from sparkdiag.reproducing.ending import compared

    parts = {name: part for name, part in vars(subject).items() if isinstance(part, Value)}
    made, went = public_values(*parts.values(), identities=identities_here(), accepted=not_secret)
    whole = (compared(part) if isinstance(part, StoredRun) else part for part in made)
    return type(subject)(**{**vars(subject), **dict(zip(parts, whole, strict=True))}), went


def _bisection(folder: Path, *, with_trials: bool) -> OneBisection:
    from sparkdiag.recording.listed_bisection import read_bisection
    from sparkdiag.reporting.telling_trials import telling_trials

    try:
        found = read_bisection(folder)
    except RunFolderError as lost:
        from sparkdiag.bisecting.answer.kept import rebuilt_bisection  # all of a search, and git: only where it must be

        found = rebuilt_bisection(folder, lost=lost.message)
    if not with_trials:
        return OneBisection(folder=folder, found=found)
    good, bad = (_trial(folder, result) for result in telling_trials(found))
    return OneBisection(folder=folder, found=found, good=good, bad=bad)


def _trial(folder: Path, result: "TrialResult | None") -> "StoredRun | None":
    """The run of a trial, unless its folder has gone or lies outside (a document names any path it likes)."""
    if result is None or result.run_dir is None:
        return None
    from sparkdiag.recording.read import read_run

    path = folder / result.run_dir
    if not path.resolve().is_relative_to(folder.resolve()):
        return None
    try:
        return read_run(path)
    except RunFolderError:
        return None
