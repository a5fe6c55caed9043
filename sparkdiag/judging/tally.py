"""How often a worker was seen where."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sparkdiag.judging.signature import Look, State


@dataclass(frozen=True, slots=True)
class Tally:
    """Looks at one worker, counted."""

    counts: Mapping[tuple[State, str], int] = field(default_factory=dict)
    """By state and function."""
    last_suspect: str | None = None
    """The suspect function seen last."""

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def suspects(self) -> dict[str, int]:
        """Looks by suspect function."""
        return {function: times for (state, function), times in self.counts.items() if state == "suspect"}

    @property
    def suspect_share(self) -> float:
        """Share of the looks that show a suspect function."""
        total = self.total
        return sum(self.suspects.values()) / total if total else 0.0

    @property
    def busy(self) -> bool:
        """Whether it was ever seen to do something other than wait for its next call."""
        return any(state not in ("idle", "reply-wait") for state, _ in self.counts)

    def plus(self, looks: Sequence[Look]) -> "Tally":
        """With more looks, in order of time."""
        if not looks:
            return self
        counts = Counter(dict(self.counts))
        counts.update((look.state, look.function) for look in looks)
        suspects = [look.function for look in looks if look.state == "suspect"]
        return Tally(counts=dict(counts), last_suspect=suspects[-1] if suspects else self.last_suspect)
