"""What a run's source said it would reach, beside what the stacks of its workers showed."""

from typing import Literal

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.route import Guard

Agreement = Literal["agree", "disagree", "not compared"]


class SeenKernel(Value):
    """A kernel on the workers' stacks, below the entry function."""

    function: str
    samples: int


class RouteAgreement(Value):
    """Whether the stacks show what the source says. No verdict rests on it."""

    answer: Agreement
    because: str = ""
    """Why they were not compared; what a reader should know where they were."""
    predicted: tuple[str, ...] = ()
    """The kernels that the source reaches."""
    guards: tuple[Guard, ...] = ()
    """Those of the source that decide the predicted kernel, in the order in which they run."""
    seen: tuple[SeenKernel, ...] = ()
    """Most often seen first."""
    inside: int = 0
    """Samples below the entry function."""
    samples: int = 0
    """Usable samples of workers while the predicted phase lasted."""
    doubted: tuple[Guard, ...] = ()
    """Where they disagree: guards one of which would have to be otherwise, the nearest to where the ways part first."""
