"""One thing that is wrong with a scenario."""

from sparkdiag.evidence.base import Value


class Problem(Value):
    key: str
    """Dotted path with array indexes: ``signature[0].loop[1].index``; empty for the file as a whole."""
    found: str
    allowed: str

    def __str__(self) -> str:
        where = f"{self.key}: " if self.key else ""
        return f"{where}found {self.found}; allowed: {self.allowed}"
