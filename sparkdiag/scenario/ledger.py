"""``[ledger]``: what the probe reads beside the calls themselves, and what the fused path asks for."""

from typing import Self

from pydantic import Field, model_validator

from sparkdiag.evidence.base import Value


class LedgerGuard(Value):
    """``[[ledger.guard]]``: a condition of the fused path, on one of the facts. Exactly one comparison."""

    fact: str
    at_most: int | None = None
    more_than: int | None = None

    @model_validator(mode="after")
    def _one_comparison(self) -> Self:
        if (self.at_most is None) == (self.more_than is None):
            raise ValueError("give either at_most or more_than")
        return self

    def holds(self, value: int) -> bool:
        """Whether the guard lets the fused path be tried."""
        if self.at_most is not None:
            return value <= self.at_most
        return self.more_than is not None and value > self.more_than


class LedgerSettings(Value):
    """``[ledger]``."""

    fused: str | None = None
    """The watched function that is the fused path; True from it means that the chunk is done."""
    decode: tuple[str, ...] = ()
    """Watched functions that only a decode calls: what runs below them is no prefill."""
    facts: tuple[str, ...] = ()
    """Locals of the entry function, dotted for attributes: ``dcp_world_size``, ``chunk.local_total_seq_lens``."""
    empty: str | None = None
    """The fact whose 0 means that this rank has no key of the chunk."""
    guards: tuple[LedgerGuard, ...] = Field(default=(), alias="guard")
