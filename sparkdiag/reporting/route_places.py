"""Short names for the files of a route, each its own. Pure."""

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Self

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.route import Route
from sparkdiag.harmless.excerpt import one_line

MOST_CHARS = 24
_PATH_CHARS = 300


class Places(Value):
    """How each file is called in the tree, and the path behind it."""

    labels: dict[str, str] = {}

    @classmethod
    def of(cls, found: Route) -> Self:
        """The files of every line that the text shows, in order."""
        steps = [step.path for one in found.reached for step in one.trail]
        kernels = [one.path for one in found.reached]
        others = [raised.path for raised in found.raises] + [line.path for line in found.not_understood]
        return cls(labels=labelled((found.entry_path, *steps, *kernels, *others)))

    def line(self, path: str, number: int, *, same_file: bool = False) -> str:
        """``deep_gemm.py:452``; ``:452`` where the file is the one last named."""
        return f":{number}" if same_file else f"{self.labels.get(path) or short(path)}:{number}"

    def readable(self, text: str, *, limit: int = 300) -> str:
        """``text`` on one line and harmless, with the short names of the files that it speaks of."""
        shown = one_line(text, limit=limit)
        for path, label in sorted(self.labels.items(), key=lambda one: -len(one[0])):
            if path:
                shown = shown.replace(path, label)
        return shown

    def legend(self) -> list[tuple[str, str]]:
        """Label and path, where the path says more."""
        return [(label, shown) for path, label in self.labels.items() if (shown := one_line(path)) != label]


def labelled(paths: Iterable[str]) -> dict[str, str]:
    """A label for each path: its last part, its last two where several end alike, else all of it."""
    unique = list(dict.fromkeys(paths))
    ways = ([short(path) for path in unique], [short(path, parts=2) for path in unique])
    found: dict[str, str] = {}
    for position, path in enumerate(unique):
        alone = [way[position] for way in ways if way.count(way[position]) == 1 and way[position] not in found.values()]
        whole = one_line(path, limit=_PATH_CHARS)
        found[path] = alone[0] if alone else whole if whole not in found.values() else f"{whole} ({position + 1})"
    return found


def short(path: str, *, parts: int = 1) -> str:
    """The last parts of a path, of which at most ``MOST_CHARS`` characters are left."""
    name = one_line("/".join(PurePosixPath(path).parts[-parts:]), limit=_PATH_CHARS) or "?"
    return name if len(name) <= MOST_CHARS else "…" + name[-(MOST_CHARS - 1) :]
