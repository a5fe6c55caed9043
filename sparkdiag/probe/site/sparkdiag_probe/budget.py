"""How many calls may have a line of their own: a line costs 0.15 ms, a call that is only counted 2 µs."""

MANY_ROWS = 128
"""First size of an outermost call's first tensor. Calls of as many rows are long or few, and each has its line."""
PREFILL_AT_ONCE, PREFILL_PER_S = 20_000.0, 400.0
"""The incident's prefill, 58 chunks of 61 layers with up to five calls each, however fast it is."""
OTHERS_AT_ONCE, OTHERS_PER_S = 2_000.0, 50.0
"""A decode calls thousands of times a second: the rest of it is counted only."""
MOST_OVERDRAWN = -2_000.0
"""What is called from within a call that has its line gets one too, this far."""


class Budget:
    """Lines that may be made: ``at_once``, and ``per_s`` from then on."""

    __slots__ = ("at_once", "left", "per_s", "since_s")

    def __init__(self, *, at_once: float, per_s: float, now_s: float) -> None:
        self.at_once = self.left = at_once
        self.per_s = per_s
        self.since_s = now_s

    def allows(self, now_s: float) -> bool:
        """Whether an outermost call may have its line."""
        left = self.left + (now_s - self.since_s) * self.per_s
        self.left = left = self.at_once if left > self.at_once else left
        self.since_s = now_s
        return left > 0
