"""What one run showed, as much of it as the search needs. Pure, but for the reading of a run folder at the end."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from sparkdiag.bisecting.trials.log_tail import tail_of
from sparkdiag.errors import EnvironmentFault, GuardianKilled, SamplingRefused, ServerError, SparkdiagError, UsageError
from sparkdiag.evidence.bisection import Purpose, Signature, TrialOutcome, TrialResult
from sparkdiag.evidence.processes import GUARDIAN_KILLED
from sparkdiag.evidence.run import RunRecord
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.verdict import Baseline, Verdict
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.judging.shares import engine_samples, worker_samples
from sparkdiag.recording.folder import SERVER_LOG
from sparkdiag.recording.read import read_run
from sparkdiag.serving.last_words import telling_line
from sparkdiag.serving.readiness import PortTaken

MOST_FUNCTIONS = 2000
LONGEST_REASON = 300
COARSE_S = 1.0
"""Healthy times are taken for at least this, where a run is said to be slow by them."""


def result_of(stored: StoredRun, *, sha: str, must_prove: bool = True, log_tail: Sequence[str] = ()) -> TrialResult:
    """What the run of ``sha`` showed, whatever became of it.

    ``must_prove``: the point is a revision, so a run whose server did not prove it shows nothing. ``log_tail``: the
    server's last lines, for why it did not start.
    """
    outcome, reason = _outcome(stored, sha=sha if must_prove else None, log_tail=log_tail)
    record, verdict = stored.record, stored.record.verdict
    watched = stored.observation.sampling.wanted
    result = TrialResult(
        sha=sha,
        outcome=outcome,
        reason=reason,
        functions=functions_of(engine_samples(stored.observation)),
        samples=len(worker_samples(stored.observation)),
        watched=watched,
        first_token_s=record.timings_s.prompt_to_first_token_s,
        decided_s=record.timings_s.prompt_to_verdict_s,
        minutes=(record.timings_s.total_s or 0.0) / 60,
        run_dir=stored.run_dir,
    )
    if verdict is None:
        return result
    return result.model_copy(
        update={
            "mode": verdict.mode if outcome == "stalled" else None,
            "signature": signature_of(verdict) if outcome == "stalled" and watched else None,
            "needle": verdict.needle,
            "times_healthy": times_healthy(result.first_token_s, verdict.baseline),
            "evidence_for": verdict.evidence_for,
            "evidence_against": verdict.evidence_against,
        }
    )


def times_healthy(first_token_s: float | None, healthy: Baseline | None) -> float | None:
    """The time to first token by the healthy time; within ``COARSE_S`` a busy machine alone may make one
    many times the other. Pure."""
    if first_token_s is None or healthy is None:
        return None
    return first_token_s / max(healthy.seconds, COARSE_S)


def signature_of(verdict: Verdict) -> Signature:
    """What makes this stall the same as another."""
    return Signature(kind=verdict.kind, function=verdict.function, role=verdict.role)


def _outcome(stored: StoredRun, *, sha: str | None, log_tail: Sequence[str]) -> tuple[TrialOutcome, str]:
    record = stored.record
    verdict = record.verdict
    if verdict is None:
        return _without_verdict(record, log_tail)
    unproved = _unproved(record, sha=sha)
    if unproved is not None:
        return "not-proved", unproved
    return verdict.outcome, _line(verdict.reason or "")


def _unproved(record: RunRecord, *, sha: str | None) -> str | None:
    """Why what ran was not shown to be what was asked for; None where it was. ``sha``: commit or release, if any."""
    revision, dcp = record.revision, record.dcp
    if sha is not None and not revision.proved:
        return _line(f"the running server is not proved to be this revision: {revision.because or 'it was not asked'}")
    if sha is not None and sha not in points_of(record):
        return _line(f"the running server is {revision.sha or revision.version or 'of no known revision'}, not {sha}")
    if dcp is None:
        return "the DCP size of the running server is not known"
    if not dcp.consistent or dcp.size != dcp.asked:
        seen = "; ".join(dcp.witnesses) or "no witness"
        return _line(f"DCP {dcp.asked} was asked for, and the running server does not prove it: {seen}")
    return None


def points_of(record: RunRecord) -> tuple[str, ...]:
    """The points that a run can stand for: its commit; with the lab's source over an overlay also vLLM's own commit,
    which the same proof covers; and its release."""
    release = (record.revision.version or "").partition("+")[0]
    return tuple(str(found) for found in (record.revision.sha, record.environment.get("vllm_sha"), release) if found)


def _without_verdict(record: RunRecord, log_tail: Sequence[str]) -> tuple[TrialOutcome, str]:
    """A server that was ready, and then could not be asked or sampled, did start: that tells nothing about it."""
    error, *details = (record.error or "").split("\n")
    launched, guarded = bool(record.server_argv), GUARDIAN_KILLED not in error
    if record.status == "failed" and launched and guarded and record.timings_s.ready_s is None:
        return "not-started", not_started_reason(error, log_tail or details)
    ended = {"running": "the run was killed", "interrupted": "the run was interrupted"}
    return "inconclusive", _line(error or ended.get(record.status, "the run ended without a verdict"))


def not_started_reason(error: str, log_tail: Sequence[str]) -> str:
    """The error's own line, and the line of the log that tells most."""
    telling = telling_line(log_tail)
    if telling is None:
        return _line(error)
    # The cause first, and once: what follows may be cut in a table.
    rest = error.removesuffix(f": {telling}").replace(f" ({telling})", "")
    return _line(f"{telling} ({rest})" if rest else telling)


def _line(text: str) -> str:
    return one_line(text, limit=LONGEST_REASON)


def functions_of(samples: Sequence[StackSample]) -> tuple[str, ...]:
    """Every function on their stacks, as py-spy writes it and, where it names the class too, without it."""
    return tuple(sorted(set(_names(samples)))[:MOST_FUNCTIONS])


def _names(samples: Sequence[StackSample]) -> Iterator[str]:
    for sample in samples:
        for thread in sample.threads:
            for frame in thread.frames:
                yield frame.function
                yield frame.name


def result_of_run(folder: Path, sha: str, *, must_prove: bool = True) -> TrialResult:
    """The result of an earlier run that stands for ``sha``. Raises ``RunFolderError`` where there is no run."""
    stored = read_run(folder)
    log_tail = tail_of(Path(stored.run_dir) / SERVER_LOG)
    result = result_of(stored, sha=sha, must_prove=must_prove, log_tail=log_tail)
    return result.model_copy(update={"run_dir": str(Path(stored.run_dir).resolve())})


def failed_trial(
    error: SparkdiagError, stored: StoredRun | None, *, sha: str, purpose: Purpose, log_tail: Sequence[str] = ()
) -> TrialResult:
    """The result of a trial that raised ``error``; raises it again where every other point would meet it too.

    ``stored``: what its folder holds, None where the environment could not be made and there is none. An environment
    that cannot be had and a server that does not start are this point's own; so is a server that was ready and then
    could not be asked, which shows nothing. A machine that is busy or a disk that is full is not. Where no search can
    begin, at an end, neither is a server that cannot be sampled, nor an environment that cannot even be asked for.
    """
    match error:
        case EnvironmentFault() if stored is None and not isinstance(error.__cause__, OSError):
            return TrialResult(sha=sha, outcome="not-built", reason=_line(error.message))
        case UsageError() if stored is None and purpose != "end":
            return TrialResult(sha=sha, outcome="not-built", reason=_line(error.message))
        case SamplingRefused() if purpose == "end" or stored is None:
            raise error
        case PortTaken():  # twice: this machine's doing
            return TrialResult(sha=sha, outcome="inconclusive", reason=_line(error.message))
        case ServerError() | GuardianKilled() | SamplingRefused() if stored is not None:
            return result_of(stored, sha=sha, log_tail=log_tail)
        case _:
            raise error
