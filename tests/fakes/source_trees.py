"""Small source trees held in memory, and the question that a route answers about them."""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sparkdiag.evidence.route import Platform, Route, RouteConfig
from sparkdiag.routing.route import find_route
from sparkdiag.routing.source.source_tree import Blob
from sparkdiag.scenario.model import PromptSettings, Scenario, ServerSettings, Signature, WatchedFunction
from sparkdiag.scenario.route import RouteSettings, RouteValue

KERNELS = """\
import torch


def fast(*args, **kwargs):
    return torch.matmul(*args)


def slow(*args, **kwargs):
    return torch.matmul(*args)


def other(*args, **kwargs):
    return torch.matmul(*args)
"""
"""``vllm/kernels.py`` of every tree that brings none of its own: three kernels, listed by every scenario here."""

PLATFORMS = """\
_current_platform = None


def __getattr__(name):
    global _current_platform
    if name == "current_platform":
        if _current_platform is None:
            raise RuntimeError("no device here")
        return _current_platform
    raise AttributeError(name)
"""
"""``vllm/platforms/__init__.py``: as vLLM's, the module makes its object on demand."""

MODULE = "vllm.dispatch"
"""Where the function ``entry`` of a one-module tree is."""


@dataclass
class MemoryTree:
    """A ``SourceTree`` over texts by path."""

    files: Mapping[str, str]
    revision: str = "0123456789" * 4
    read_paths: list[str] = field(default_factory=list)
    """Every path that was asked for, in order."""

    def read(self, path: str) -> Blob | None:
        self.read_paths.append(path)
        text = self.files.get(path)
        if text is None:
            return None
        return Blob(path=path, oid=hashlib.sha1(text.encode("utf-8", "replace")).hexdigest(), text=text)

    def holding(self, text: str) -> tuple[str, ...]:
        return tuple(sorted(path for path, held in self.files.items() if path.endswith(".py") and text in held))


def tree_of(source: str | Mapping[str, str]) -> dict[str, str]:
    """A whole tree from one module's text, or from modules by path: kernels and packages are added, indents removed."""
    given = {"vllm/dispatch.py": source} if isinstance(source, str) else source
    files = {path: textwrap.dedent(text).removeprefix("\n") for path, text in given.items()}
    files.setdefault("vllm/kernels.py", KERNELS)
    files.setdefault("vllm/platforms/__init__.py", PLATFORMS)
    for path in tuple(files):
        parts = path.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            files.setdefault("/".join((*parts[:depth], "__init__.py")), "")
    return files


def scenario_with(
    given: Mapping[str, str] | Iterable[RouteValue] = (),
    *,
    entry: str = "entry",
    modules: tuple[str, ...] = (MODULE,),
    kernels: tuple[str, ...] = ("fast", "slow", "other"),
    support: tuple[str, ...] = (),
) -> Scenario:
    """A scenario that starts at ``entry``; ``given`` says what its parameters hold."""
    values = (
        tuple(RouteValue(name=name, value=value, because=f"given {name}") for name, value in given.items())
        if isinstance(given, Mapping)
        else tuple(given)
    )
    return Scenario(
        name="truth",
        title="a small tree",
        server=ServerSettings(),
        prompt=PromptSettings(tokens=4096),
        signatures=(Signature(function="slow", kind="torch-fallback"),),
        watch=(WatchedFunction(function=entry, role="entry", modules=modules),),
        route=RouteSettings(kernels=kernels, support=support, value=values),
    )


def config_of(*, arch: str | None = "sm121", platform: Platform | None = "cuda", dcp: int | None = 1) -> RouteConfig:
    return RouteConfig(arch=arch, platform=platform, dcp=dcp)


def ask(
    source: str | Mapping[str, str],
    given: Mapping[str, str] | Iterable[RouteValue] = (),
    *,
    config: RouteConfig | None = None,
    scenario: Scenario | None = None,
) -> Route:
    """The static answer for a tree."""
    return find_route(
        MemoryTree(tree_of(source)), scenario=scenario or scenario_with(given), config=config or config_of()
    )
