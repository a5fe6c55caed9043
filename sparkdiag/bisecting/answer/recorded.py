"""Details of an answer from what is recorded: the clone's history and the trials' run folders."""

from pathlib import Path

from sparkdiag.bisecting.question.request import BisectRequest
from sparkdiag.bisecting.trials.culprit import suspect_diff
from sparkdiag.bisecting.trials.stack_difference import stack_difference
from sparkdiag.evidence.bisection import StackShare, TrialResult
from sparkdiag.recording.bisection import BisectionFolder


class RecordedDetails:
    """``seams.AnswerDetails`` of a real search."""

    def __init__(self, request: BisectRequest, *, folder: BisectionFolder) -> None:
        self._request = request
        self._folder = folder

    def suspect_diff(self, *, old: str, new: str) -> str:
        """Of commits only: releases and values have no source here."""
        axis = self._request.axis
        if axis.kind != "commits" or axis.read_from is None:
            return ""
        return suspect_diff(Path(axis.read_from), old_sha=old, new_sha=new, paths=self._request.suspect_paths)

    def stack_difference(self, *, with_it: TrialResult, without: TrialResult) -> tuple[StackShare, ...]:
        """Between two runs; none where one left no folder."""
        if with_it.run_dir is None or without.run_dir is None:
            return ()
        return stack_difference(self._folder.path / with_it.run_dir, self._folder.path / without.run_dir)
