"""Rank equivalence classes: who stands where his peers stand, and who is the odd one out. Pure."""

from collections.abc import Sequence

from sparkdiag.evidence.diagnosis import ProcessDiagnosis, RankClass


def rank_classes(processes: Sequence[ProcessDiagnosis], *, waiting: frozenset[int]) -> tuple[RankClass, ...]:
    """Processes of one role by where they stand; ``waiting``: indices into ``processes`` of those that wait for
    somebody else. The class that decides comes first."""
    raise NotImplementedError


def odd_ones(processes: Sequence[ProcessDiagnosis], *, waiting: frozenset[int]) -> frozenset[int]:
    """Indices into ``processes`` of the odd ones out; empty where nothing tells them apart."""
    raise NotImplementedError
