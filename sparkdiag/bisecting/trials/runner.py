"""Runs a trial for real: one ``reproduce``, its folder kept, its outcome made a result of the search."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sparkdiag.bisecting.axes.axis import trial_request
from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.bisecting.trials.expectation import READY_MINUTES, cached_releases, environment_minutes, run_minutes
from sparkdiag.bisecting.trials.log_tail import tail_of
from sparkdiag.bisecting.trials.prefetch import Prefetcher
from sparkdiag.bisecting.trials.result import failed_trial, result_of, times_healthy
from sparkdiag.bisecting.trials.settle import GpuRoom
from sparkdiag.environment.clone import open_clone
from sparkdiag.environment.interrogate import interpreter_of
from sparkdiag.environment.progress import ProgressSink
from sparkdiag.environment.spec import ExistingSpec, parse_spec, stands_on
from sparkdiag.errors import SparkdiagError
from sparkdiag.evidence.bisection import Purpose, TrialResult
from sparkdiag.evidence.observation import Observation
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.timeline import Phase
from sparkdiag.evidence.verdict import Baseline, Verdict
from sparkdiag.judging.baseline import scaled_seconds
from sparkdiag.recording.bisection import BisectionFolder
from sparkdiag.recording.folder import SERVER_LOG, RunFolder
from sparkdiag.recording.listing import list_runs
from sparkdiag.recording.read import read_run
from sparkdiag.reproducing.ending import keep_report, stored_run
from sparkdiag.reproducing.progress import View
from sparkdiag.reproducing.request import ReproRequest
from sparkdiag.reproducing.session import environment_for, reproduce


class ReproRunner:
    """``seams.TrialRunner`` over ``reproduce``. Each trial takes the machine for itself and lets it go after.

    ``view`` hears of the run of each trial, as it does of a single ``repro``.
    """

    def __init__(self, request: BisectRequest, *, folder: BisectionFolder, view: View) -> None:
        self._request = request
        self._folder = folder
        self._view = view
        self._room = GpuRoom()
        self._prefetcher = Prefetcher(self._prepare, note=view.note)
        self._tried: set[str] = set()
        self._learn()

    def run(self, sha: str, *, purpose: Purpose, healthy: TrialResult | None) -> TrialResult:
        """One trial of ``sha``; see ``seams.TrialRunner`` for what is a result and what is raised."""
        request = self._trial(sha, purpose=purpose, healthy=healthy)
        began_s = time.monotonic()
        self._room.look()
        try:
            result = self._run(sha, request, purpose=purpose)
        finally:
            self._prefetcher.end()
            self._tried.add(sha)
            self._learn()
        left = self._room.wait()
        if left is not None:
            self._view.note(left)
        # A run that came to its end has its own time, in which no other run held the machine.
        minutes = result.minutes or (time.monotonic() - began_s) / 60
        times = times_healthy(result.first_token_s, self._healthy_time(sha, healthy))
        times = result.times_healthy if times is None else times  # by the run's own healthy time
        return result.model_copy(update={"minutes": minutes, "watched": request.take_stacks, "times_healthy": times})

    def _healthy_time(self, sha: str, healthy: TrialResult | None) -> Baseline | None:
        if healthy is None:
            return None
        template, axis = self._request.repro, self._request.axis
        tokens, of = (trial_request(template, axis, one).scenario.prompt.tokens for one in (sha, healthy.sha))
        return healthy_baseline(healthy, tokens=of, for_tokens=tokens)

    def prefetch(self, shas: Sequence[str]) -> None:
        """Their environments are prepared while the next trial's server loads."""
        self._prefetcher.want(shas)

    def minutes(self, sha: str) -> float:
        """What a trial of ``sha`` is expected to take. Looks at no disk: it is asked of thousands of points."""
        axis, template = self._request.axis, self._request.repro
        if sha in self._tried or sha in self._prefetcher.done:
            environment = READY_MINUTES
        else:
            environment = environment_minutes(axis.env_specs.get(sha, template.env_spec), releases=self._releases)
        return environment + self._run_minutes

    def _learn(self) -> None:
        """From the trials so far, those before a resume among them."""
        records = [record for _, record in list_runs(self._folder.trials)]
        self._run_minutes = run_minutes([record.timings_s for record in records], lab=self._request.repro.scenario.lab)
        self._releases = cached_releases()

    def _run(self, sha: str, request: ReproRequest, *, purpose: Purpose) -> TrialResult:
        made: list[Path] = []
        view = _TrialView(self._view, prefetcher=self._prefetcher)
        try:
            folder, record = reproduce(request, view=view, on_folder=made.append)
            stored = stored_run(folder, record)
        except SparkdiagError as error:
            if not made:
                self._need_what_all_stand_on()
                return failed_trial(error, None, sha=sha, purpose=purpose)
            folder, stored = RunFolder(made[-1]), read_run(made[-1])
            result = failed_trial(error, stored, sha=sha, purpose=purpose, log_tail=tail_of(made[-1] / SERVER_LOG))
            return self._kept(result, folder, stored)
        result = result_of(stored, sha=sha, must_prove=self._request.axis.kind in ("commits", "releases"))
        return self._kept(result, folder, stored)

    def _need_what_all_stand_on(self) -> None:
        """Raises ``EnvironmentFault`` where the clone or the base itself is gone: every point would meet that, and a
        search that skipped them all would be over before it is back."""
        if self._request.axis.repo is not None:
            open_clone(Path(self._request.axis.repo))
        base = stands_on(parse_spec(self._request.repro.env_spec))
        if isinstance(base, ExistingSpec):
            interpreter_of(base.target)

    def _kept(self, result: TrialResult, folder: RunFolder, stored: StoredRun) -> TrialResult:
        """With the report beside the evidence, and the folder named as seen from the bisection's."""
        _, lost = keep_report(folder, stored)
        if lost:
            self._view.note(f"not everything could be written to {folder.path}: {'; '.join(lost)}")
        return result.model_copy(update={"run_dir": os.path.relpath(folder.path, self._folder.path.resolve())})

    def _trial(self, sha: str, *, purpose: Purpose, healthy: TrialResult | None) -> ReproRequest:
        template = self._request.repro.model_copy(update={"runs_dir": str(self._folder.trials), "control": False})
        request = trial_request(template, self._request.axis, sha)
        changes: dict[str, object] = {
            "take_stacks": purpose != "control",
            "launch_blocking": purpose == "confirm",
        }
        if request.baseline_s is None:
            changes["baseline"] = self._healthy_time(sha, healthy)
        return request.model_copy(update=changes)

    def _prepare(self, sha: str, progress: ProgressSink) -> None:
        environment_for(trial_request(self._request.repro, self._request.axis, sha), progress=progress)


def healthy_baseline(healthy: TrialResult, *, tokens: int, for_tokens: int) -> Baseline | None:
    """The healthy end's time to first token as the baseline of another point; None where it has none, or where the
    prompts' lengths are too far apart to scale it. Pure."""
    if healthy.outcome != "completed" or healthy.first_token_s is None:
        return None
    same = tokens == for_tokens
    seconds = (
        healthy.first_token_s
        if same
        else scaled_seconds(healthy.first_token_s, from_tokens=tokens, to_tokens=for_tokens)
    )
    if seconds is None:
        return None
    run = f": {Path(healthy.run_dir).name}" if healthy.run_dir else ""
    return Baseline(
        kind="control-run",
        seconds=seconds,
        source=f"the healthy end of the bisection, {healthy.sha[:10]}{run}",
        scaled_from_tokens=None if same else tokens,
    )


@dataclass
class _TrialView:
    """Passes on what a run tells, and keeps preparing and measuring apart."""

    view: View
    prefetcher: Prefetcher = field(kw_only=True)

    def phase(self, name: Phase, detail: str = "") -> None:
        """The server begins to load, or the prompt is about to be built and sent."""
        self.view.phase(name, detail)
        if name == "launching":
            self.prefetcher.begin()
        elif name == "prompting":
            self.prefetcher.hold()

    def update(self, observation: Observation, verdict: Verdict) -> None:
        """A look."""
        self.view.update(observation, verdict)

    def note(self, text: str) -> None:
        """A line."""
        self.view.note(text)

    def progress_sink(self) -> ProgressSink:
        """Of the run's own environment."""
        return self.view.progress_sink()
