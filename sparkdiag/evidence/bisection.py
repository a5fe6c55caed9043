"""What a bisection looked for, what its trials showed, and what it found."""

from typing import Literal

from pydantic import Field

from sparkdiag.evidence.base import SCHEMA, Value
from sparkdiag.evidence.client import NeedleScore
from sparkdiag.evidence.verdict import EvidenceItem, Outcome, StallMode

AxisKind = Literal["commits", "releases", "dcp", "prompt-tokens"]
TrialOutcome = Literal[Outcome, "not-built", "not-started", "not-proved"]
Purpose = Literal["end", "control", "search", "confirm"]
"""Why a trial is run: an end of the range; an end again without sampling; a step of the search; the culprit once more
under ``CUDA_LAUNCH_BLOCKING=1``."""
Has = Literal["yes", "no", "cannot-tell"]
Direction = Literal["fix", "regression"]
Mark = Literal["old", "new", "skip"]
"""On which side of the change a point lies: like the old end, like the new end, or the trial could not tell."""


class Commit(Value):
    """One point of the axis: a commit, or a release, a DCP size, a prompt length (then ``sha`` is its text)."""

    sha: str
    parents: tuple[str, ...] = ()
    subject: str = ""
    committed_at: str = ""
    """ISO 8601."""
    suspect_blobs: tuple[str, ...] = ()
    """Object ids of the watched files at this commit, in the watch list's order, ``-`` where a file is not there; empty
    when not asked for."""


class Signature(Value):
    """What makes two stalls the same stall, whatever the mode and the line."""

    kind: str | None
    function: str | None
    role: str | None

    def __str__(self) -> str:
        return f"{self.kind or 'unknown'} in {self.function or '?'} ({self.role or '?'})"


class Target(Value):
    """What is looked for: ``--looks-for``."""

    what: Literal["stall", "frame", "wrong-needle", "crash"] = "stall"
    frame: str | None = None

    def __str__(self) -> str:
        return f"frame:{self.frame}" if self.what == "frame" else self.what


class TrialResult(Value):
    """One run of one point, as much of it as the search needs; the run folder holds the rest."""

    sha: str
    outcome: TrialOutcome
    reason: str = ""
    """Why it is inconclusive, did not start, or how it crashed; one line."""
    mode: StallMode | None = None
    signature: Signature | None = None
    """Of a stall."""
    needle: NeedleScore | None = None
    functions: tuple[str, ...] = ()
    """Functions seen in the sampled stacks of the engine's processes, sorted."""
    samples: int = 0
    watched: bool = True
    """False: a control run, no process was sampled."""
    first_token_s: float | None = None
    """Time to first token, from sending."""
    times_healthy: float | None = None
    """``first_token_s`` by that of the bisection's healthy end, while there was none by the run's own healthy time."""
    decided_s: float | None = None
    """From sending the prompt to the verdict."""
    minutes: float = 0.0
    evidence_for: tuple[EvidenceItem, ...] = ()
    evidence_against: tuple[EvidenceItem, ...] = ()
    run_dir: str | None = None
    """Of the run's folder, relative to the bisection's, or absolute where it lies elsewhere."""
    reused_from: str | None = None
    """The point whose result this is: the same suspect files, or an earlier run that was named."""


class Trial(Value):
    """One trial as it took place."""

    purpose: Purpose
    result: TrialResult
    subject: str = ""
    """Of the commit; the report names each trial's point by it."""
    has: Has
    because: str
    """Why ``has``: one line."""
    mark: Mark | None = None
    """None while the direction is not known, and for controls."""


class StackShare(Value):
    """How much of the workers' samples a function is innermost in, with what is looked for and without it."""

    function: str
    share_with: float
    share_without: float


class Bisection(Value):
    """The document ``bisection.json``: everything a report needs, rebuilt from the journal alone."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    outcome: Literal["found", "candidates", "inconclusive", "unfinished"]
    """``unfinished`` is never a command's answer: it stands in the file while the search goes on."""
    reason: str | None = None
    """Why it is not ``found``; one line, with the lever to pull next."""
    axis: AxisKind = "commits"
    target: Target = Target()
    direction: Direction | None = None
    reference: Signature | None = None
    """The stall at the end that has it."""
    old_end: str = ""
    new_end: str = ""
    commits: tuple[Commit, ...] = ()
    """The culprit, or all candidates in history order."""
    confidence: float | None = None
    """Of the culprit, where verdicts may be wrong (``--confidence``)."""
    trials: tuple[Trial, ...] = ()
    scenario: str = ""
    dcp: int | None = None
    repo: str | None = None
    searched: int = 0
    """Points between the ends, the new end included."""
    suspect_paths: tuple[str, ...] = ()
    suspect_diff: str = ""
    """Unified diff of the watched files between the last old and the first new point, as git prints it; bounded."""
    stack_difference: tuple[StackShare, ...] = ()
    """Largest difference first."""
    notes: tuple[str, ...] = ()
    """What a reader should know: wrong predictions, results that were reused, ends taken from earlier runs."""
    command: tuple[str, ...] = ()
