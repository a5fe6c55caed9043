"""Tell when a module of the watched packages has been executed. What is found, and how it is loaded, stays the same."""

import contextlib
import sys
from collections.abc import Callable
from typing import Any


class Finder:
    """First on ``sys.meta_path``: asks the finders after it, and hears when what they found has been executed."""

    def __init__(self, packages: "frozenset[str]", done: "Callable[[Any], None]") -> None:
        self._packages = packages
        self._done = done

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname.partition(".")[0] not in self._packages:
            return None
        for finder in list(sys.meta_path):
            if finder is self:
                continue
            find = getattr(finder, "find_spec", None)
            spec = find(fullname, path, target) if find is not None else None
            if spec is not None:
                self._hear(spec)
                return spec
        return None

    def _hear(self, spec: Any) -> None:
        try:
            loader = spec.loader
            execute = loader.exec_module

            def exec_module(module: Any) -> None:
                loader.__dict__.pop("exec_module", None)
                execute(module)
                with contextlib.suppress(Exception):
                    self._done(module)

            if "exec_module" not in loader.__dict__:
                loader.exec_module = exec_module
        except Exception:  # noqa: S110 - a loader of another make: its modules are found by looking through them later
            pass
