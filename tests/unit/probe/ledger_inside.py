"""The probe's ledger in this process: modules made from source, wrapped, called, and what was recorded of it."""

import importlib
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from sparkdiag.evidence.ledger import DispatchCall, DispatchLine, DispatchNotWrapped, DispatchTotals
from sparkdiag.probe.locate import package_folder

LINE: TypeAdapter[Any] = TypeAdapter(DispatchLine)
PACKAGE = "watched_package"


def part(name: str) -> Any:
    """A module of the probe."""
    if str(package_folder()) not in sys.path:
        sys.path.insert(0, str(package_folder()))
    return importlib.import_module(f"sparkdiag_probe.{name}")


def module_of(source: str, *, name: str = f"{PACKAGE}.kernels") -> Any:
    """A module that is in no ``sys.modules``."""
    made = types.ModuleType(name)
    exec(compile(source, f"/nowhere/{name}.py", "exec"), made.__dict__)
    return made


class Inside:
    """A ledger that no thread tends."""

    def __init__(self, folder: Path, roles: dict[str, str], *, facts: tuple[str, ...] = (), **more: Any) -> None:
        settings = {"packages": [PACKAGE], "functions": roles, "facts": list(facts), "guards": more.get("guards", ())}
        texts = more.get("texts", frozenset())
        self.ledger = part("ledger").Ledger(str(folder), settings, texts=texts, synced=False)
        self.folder = folder

    def wrapped(self, source: str, *, name: str = f"{PACKAGE}.kernels") -> Any:
        made = module_of(source, name=name)
        self.ledger.wrapper.look(made)
        return made

    @property
    def refused(self) -> dict[str, str]:
        return {name: why for (name, _), why in self.ledger.wrapper.refused.items()}

    def lines(self) -> list[Any]:
        """Everything written, after a last writing; each line is one of the contract's."""
        self.ledger.at_exit()
        text = "".join(path.read_text() for path in self.folder.glob("dispatch-*.jsonl"))
        return [LINE.validate_json(line) for line in text.splitlines()]


def calls(lines: list[Any], function: str | None = None) -> list[DispatchCall]:
    return [one for one in lines if isinstance(one, DispatchCall) and function in (None, one.function)]


def counted(lines: list[Any]) -> dict[tuple[str, str], int]:
    """Calls by function and answer, of the last totals."""
    totals = [one for one in lines if isinstance(one, DispatchTotals)]
    found: dict[tuple[str, str], int] = {}
    for one in totals[-1].counts if totals else ():
        found[one.function, one.answer] = found.get((one.function, one.answer), 0) + one.calls
    return found


def not_wrapped(lines: list[Any]) -> dict[str, str]:
    return {one.function: one.reason for one in lines if isinstance(one, DispatchNotWrapped)}


@contextmanager
def recursion_limit(limit: int) -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
