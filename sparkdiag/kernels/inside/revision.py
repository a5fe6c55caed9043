"""A revision's own kernel modules, from source text that was read from git, under their own dotted names."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sparkdiag.kernels.inside import stand_ins
from sparkdiag.kernels.inside.stand_ins import NotHere

FALLBACK = "_fp8_mqa_logits_torch"
TRITON = "fp8_mqa_logits_triton"
DISPATCH = "_fp8_mqa_logits_sm12x"


class NotLoaded(Exception):
    """The revision's modules cannot be imported here."""


@dataclass(frozen=True)
class Loaded:
    """The functions of a revision, and over what they were loaded."""

    functions: Mapping[str, Callable[..., Any]]
    modules: tuple[types.ModuleType, ...]
    """Every module that came from the revision's source."""
    over: str
    """In words: the environment's vllm, or stand-ins."""


class FromSource(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the revision's modules by name before anybody else, and the packages above them.

    Those packages are empty until somebody wants a name of theirs: the environment's may import half of vLLM, or what
    only another machine has. With ``bare`` all of vllm is stood in for.
    """

    def __init__(self, texts: Mapping[str, tuple[str, str]], *, bare: bool) -> None:
        self._texts = texts
        self._above = {name.rsplit(".", depth)[0] for name in texts for depth in range(1, name.count(".") + 1)}
        self._above -= set() if bare else {"vllm"}
        self._bare = bare

    def find_spec(self, name: str, path: Any = None, _target: Any = None) -> Any:
        if name in self._texts:
            return importlib.machinery.ModuleSpec(name, self, origin=self._texts[name][0])
        if name in self._above or (self._bare and (name == "vllm" or name.startswith("vllm."))):
            spec = importlib.machinery.ModuleSpec(name, self, is_package=True)
            real = None if self._bare else importlib.machinery.PathFinder.find_spec(name, path)
            if real is not None:
                spec.submodule_search_locations = list(real.submodule_search_locations or ())
                spec.loader_state = real
            return spec
        return None

    def create_module(self, spec: Any) -> Any:
        if spec.name in self._texts:
            return None
        return stand_ins.stand_in(spec.name) if self._bare else types.ModuleType(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        name = module.__name__
        if name not in self._texts:
            if not self._bare:
                module.__dict__["__getattr__"] = lambda attribute: self._filled(module, attribute)
            return
        path, text = self._texts[name]
        shown = f"<{path}>"
        # Triton reads a kernel's source back through inspect, which asks linecache.
        linecache.cache[shown] = (len(text), None, text.splitlines(keepends=True), shown)
        module.__file__ = shown
        exec(compile(text, shown, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - what was asked for

    def _filled(self, package: types.ModuleType, attribute: str) -> Any:
        """A name of an empty package: what the environment's own holds, which is executed now. A submodule is left to
        the import that asks for it."""
        name, real = f"{package.__name__}.{attribute}", package.__spec__.loader_state if package.__spec__ else None
        submodule = name in self._texts or name in self._above
        if submodule or real is None or importlib.machinery.PathFinder.find_spec(name, package.__path__) is not None:
            raise AttributeError(attribute)
        package.__dict__.pop("__getattr__", None)
        real.loader.exec_module(package)
        return getattr(package, attribute)

    def get_source(self, name: str) -> str | None:
        """For ``inspect`` and ``linecache``."""
        return self._texts[name][1] if name in self._texts else None


def load(texts: Mapping[str, tuple[str, str]], *, places: Mapping[str, str], device: str) -> Loaded:
    """Import the revision's modules. ``texts``: path and source by dotted name; ``places``: the module of a function.

    Over the environment's vllm where it has one and its parts fit, else over stand-ins. On the CPU vLLM's own
    ``vllm.triton_utils`` leaves Triton out, and gets it back.
    Raises ``NotLoaded``.
    """
    why = "this environment has no vllm"
    if importlib.machinery.PathFinder.find_spec("vllm") is not None:
        try:
            return _load(texts, places, bare=False, device=device, over="the environment's vllm")
        except (Exception, SystemExit) as error:
            why = f"the environment's vllm does not fit: {type(error).__name__}: {error}"
            _forget(texts)
    try:
        return _load(texts, places, bare=True, device=device, over=f"stand-ins for vllm's other modules ({why[:200]})")
    except NotHere as error:
        raise NotLoaded(str(error)) from error
    except (Exception, SystemExit) as error:
        raise NotLoaded(f"{type(error).__name__}: {error}") from error


def _load(
    texts: Mapping[str, tuple[str, str]], places: Mapping[str, str], *, bare: bool, device: str, over: str
) -> Loaded:
    finder = FromSource(texts, bare=bare)
    sys.meta_path.insert(0, finder)
    try:
        if device == "cpu" and not bare:
            stand_ins.with_triton()
        functions = {}
        for function, name in places.items():
            functions[function] = getattr(importlib.import_module(name), function)
    except BaseException:
        sys.meta_path.remove(finder)
        raise
    modules = tuple(sys.modules[name] for name in texts if name in sys.modules)
    return Loaded(functions=functions, modules=modules, over=over)


def _forget(texts: Mapping[str, tuple[str, str]]) -> None:
    """Before a second attempt: what the first one left."""
    for name in tuple(sys.modules):
        if name == "vllm" or name.startswith("vllm.") or name in texts:
            with contextlib.suppress(KeyError):
                del sys.modules[name]
