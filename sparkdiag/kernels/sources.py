"""Where a revision keeps its two kernels and their dispatch, and the text of what they import beside them."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from sparkdiag.errors import RouteError, UsageError
from sparkdiag.evidence.blob import Blob

FALLBACK = "_fp8_mqa_logits_torch"
TRITON = "fp8_mqa_logits_triton"
DISPATCH = "_fp8_mqa_logits_sm12x"
PACKAGE = "vllm"
MOST_MODULES = 64


class SourceTree(Protocol):
    """One revision's files (``environment/blobs.py``)."""

    @property
    def revision(self) -> str:
        """Id of the commit, 40 digits."""
        ...

    def read(self, path: str) -> Blob | None:
        """The file; None where there is none."""
        ...

    def holding(self, text: str) -> tuple[str, ...]:
        """Paths of Python files that hold ``text`` literally."""
        ...


@dataclass(frozen=True)
class RevisionKernels:
    """What the child is given of a revision."""

    revision: str
    places: Mapping[str, str]
    """Dotted module by function."""
    texts: Mapping[str, tuple[str, str]]
    """Path and source by dotted module: those, and what they import from their own folders."""
    notes: tuple[str, ...] = ()

    def path_of(self, function: str) -> str | None:
        """The file that defines the function."""
        module = self.places.get(function)
        return self.texts[module][0] if module is not None else None


def revision_kernels(tree: SourceTree) -> RevisionKernels:
    """Find the functions by name, wherever they moved.

    Raises ``RouteError`` where the revision has neither kernel, ``EnvironmentFault`` where git fails.
    """
    notes: list[str] = []
    places: dict[str, str] = {}
    texts: dict[str, tuple[str, str]] = {}
    for function in (FALLBACK, TRITON, DISPATCH):
        found = _defining(tree, function)
        if not found:
            notes.append(f"{tree.revision[:10]} has no {function}")
            continue
        # A dispatch in two places is a wrapper and the one that decides: the one beside the fallback.
        beside = [blob for blob in found if places.get(FALLBACK) == module_of(blob.path)]
        blob = (beside or found)[0]
        if len(found) > 1:
            others = ", ".join(other.path for other in found if other is not blob)
            notes.append(f"{function} is taken from {blob.path}, not from {others}")
        places[function] = module_of(blob.path)
        texts[places[function]] = (blob.path, blob.text)
    if FALLBACK not in places and TRITON not in places:
        raise RouteError(
            f"{tree.revision[:10]} has neither {FALLBACK} nor {TRITON}",
            remedy="name a revision that has them: sparkdiag kernel check --repo CLONE --rev REV",
        )
    texts.update(_beside(tree, texts))
    return RevisionKernels(revision=tree.revision, places=places, texts=texts, notes=tuple(notes))


def _defining(tree: SourceTree, function: str) -> list[Blob]:
    """Modules of the package that define it at their top; those under a folder called tests last of all: never."""
    found = []
    for path in sorted(tree.holding(f"def {function}("), key=lambda path: (len(PurePosixPath(path).parts), path)):
        parts = PurePosixPath(path).parts
        if PACKAGE not in parts[:2] or "tests" in parts:
            continue
        blob = tree.read(path)
        if blob is not None and _defines(blob, function):
            found.append(blob)
    return found


def _defines(blob: Blob, function: str) -> bool:
    try:
        body = ast.parse(blob.text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{blob.path} cannot be parsed: {error}", remedy="name another revision: --rev REV") from error
    return any(node.name == function for node in _functions(body))


def _functions(body: Iterable[ast.stmt]) -> Iterator[ast.FunctionDef]:
    """A module's own functions, those under a condition included."""
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.If | ast.Try | ast.With):
            handlers = [one for handler in getattr(node, "handlers", ()) for one in handler.body]
            after = [*getattr(node, "orelse", ()), *getattr(node, "finalbody", ())]
            yield from _functions([*node.body, *handlers, *after])


def module_of(path: str) -> str:
    """``vllm.utils.deep_gemm`` of ``vllm/utils/deep_gemm.py``, also where the package lies in ``src``."""
    parts = PurePosixPath(path).with_suffix("").parts
    parts = parts[parts.index(PACKAGE) :]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _beside(tree: SourceTree, texts: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """Modules of the same folders that the given ones import, and what those import from there: the environment's
    vllm may have them in another state."""
    folders = {str(PurePosixPath(path).parent) for path, _ in texts.values()} - {f"{PACKAGE}/utils", PACKAGE}
    known = dict(texts)
    waiting = list(texts)
    while waiting and len(known) < MOST_MODULES:
        path, text = known[waiting.pop()]
        for name in imported(text, module=module_of(path)):
            found = None if name in known else _in_folders(tree, name, folders)
            if found is not None:
                known[name] = found
                waiting.append(name)
    return known


def _in_folders(tree: SourceTree, name: str, folders: set[str]) -> tuple[str, str] | None:
    for folder in sorted(folders):
        if module_of(f"{folder}/x.py").removesuffix(".x") == name.rpartition(".")[0]:
            blob = tree.read(f"{folder}/{name.rpartition('.')[2]}.py")
            if blob is not None:
                return blob.path, blob.text
    return None


def imported(text: str, *, module: str) -> Iterator[str]:
    """Dotted names that a module's text imports, anywhere in it, and those that a ``from`` may mean."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from _from(node, module.split("."))


def _from(node: ast.ImportFrom, module: list[str]) -> Iterable[str]:
    above = module[: -node.level] if node.level else []
    base = ".".join([*above, *([node.module] if node.module else [])])
    return (base, *(f"{base}.{alias.name}" for alias in node.names))
