"""One parsed module: what stands at its top level, and which of its names are changed at run time. Pure."""

import ast
import warnings
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from sparkdiag.errors import RouteError
from sparkdiag.routing.source.source_tree import Blob

MOST_CHARACTERS = 4_000_000
"""Some 60,000 lines of a megabyte or two are parsed (seconds); more is refused."""


@dataclass(frozen=True)
class Bound:
    """One place at a module's top level that binds a name."""

    node: ast.stmt
    """The statement that binds it."""
    inside: tuple[ast.stmt, ...] = ()
    """The ``if``, ``try`` and ``with`` statements around it, outermost first."""


@dataclass(frozen=True)
class ModuleSource:
    """A module of the repository."""

    name: str
    blob: Blob
    tree: ast.Module = field(compare=False)

    @property
    def path(self) -> str:
        return self.blob.path

    @property
    def package(self) -> str:
        """What relative imports start from."""
        return self.name if self.path.endswith("/__init__.py") else self.name.rpartition(".")[0]

    @cached_property
    def bindings(self) -> dict[str, list[Bound]]:
        """Every name that the top level binds, with the places in order."""
        found: dict[str, list[Bound]] = {}
        _collect(self.tree.body, (), found)
        return found

    @cached_property
    def replaced(self) -> dict[str, int]:
        """Names that some function assigns through ``global``, with the line."""
        found: dict[str, int] = {}
        lines = [number for number, line in enumerate(self.blob.text.split("\n"), start=1) if "global" in line]
        holding = [one for one in self.tree.body if any(one.lineno <= line <= (one.end_lineno or 0) for line in lines)]
        for function in (inner for one in holding for inner in ast.walk(one)):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                globals_ = {name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names}
                if globals_:
                    for name, line in assigned_names(function).items():
                        if name in globals_:
                            found.setdefault(name, line)
        return found

    @cached_property
    def fillings(self) -> dict[str, list[ast.expr]]:
        """What functions assign through ``global``, by name."""
        found: dict[str, list[ast.expr]] = {}
        for node in ast.walk(self.tree) if self.replaced else ():
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name) and target.id in self.replaced:
                        found.setdefault(target.id, []).append(node.value)
        return {
            name: [one for one in values if not (isinstance(one, ast.Constant) and one.value is None)]
            for name, values in found.items()
        }

    @cached_property
    def rebinding(self) -> ast.stmt | ast.expr | None:
        """Where the module changes names of a module by other means than assignment, if it does: ``globals()[...] =``,
        ``setattr(sys.modules[...], ...)``, or an attribute of itself."""
        signs = ("globals()", "vars()", "sys.modules", f"import {self.name}")
        if not any(sign in self.blob.text for sign in signs):
            return None
        own = {
            alias.asname or alias.name
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.name == self.name
        }
        for node in ast.walk(self.tree):
            text = ast.unparse(node) if isinstance(node, ast.Assign | ast.Call) and _may_rebind(node) else ""
            if text.startswith(("globals()[", "vars()[", "globals().update", "setattr(sys.modules")):
                return node  # type: ignore[return-value]
            if any(text.startswith((f"{name}.", f"setattr({name},")) for name in own) and isinstance(node, ast.Assign):
                return node
        return None

    @cached_property
    def properties(self) -> frozenset[str]:
        """Names of the properties of the module's classes."""
        return frozenset(
            node.name
            for one in self.tree.body
            if isinstance(one, ast.ClassDef)
            for node in one.body
            if isinstance(node, ast.FunctionDef) and any("property" in ast.unparse(by) for by in node.decorator_list)
        )

    @cached_property
    def functions(self) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
        """Functions of the top level, the last one of a name."""
        return {
            name: bound.node
            for name, places in self.bindings.items()
            for bound in places[-1:]
            if isinstance(bound.node, ast.FunctionDef | ast.AsyncFunctionDef)
        }


def _may_rebind(node: ast.Assign | ast.Call) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name | ast.Attribute) and len(node.args) > 0
    return isinstance(node.targets[0], ast.Subscript | ast.Attribute)


def _collect(body: list[ast.stmt], inside: tuple[ast.stmt, ...], found: dict[str, list[Bound]]) -> None:
    for node in body:
        for name in bound_by(node):
            found.setdefault(name, []).append(Bound(node, inside))
        match node:
            case ast.If() | ast.For() | ast.While():
                _collect([*node.body, *node.orelse], (*inside, node), found)
            case ast.Try():
                rest = [one for handler in node.handlers for one in handler.body]
                _collect([*node.body, *rest, *node.orelse, *node.finalbody], (*inside, node), found)
            case ast.With():
                _collect(node.body, (*inside, node), found)


def bound_by(node: ast.stmt) -> tuple[str, ...]:
    """Names that a statement itself binds; those of its body are not among them."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return (node.name,)
        case ast.Import():
            return tuple(alias.asname or alias.name.split(".")[0] for alias in node.names)
        case ast.ImportFrom():
            return tuple(alias.asname or alias.name for alias in node.names)
        case ast.Assign():
            return tuple(name for target in node.targets for name in target_names(target))
        case ast.AnnAssign() if node.value is not None:
            return target_names(node.target)
        case ast.AugAssign():
            return target_names(node.target)
        case ast.For():
            return target_names(node.target)
        case _:
            return ()


def target_names(target: ast.expr) -> tuple[str, ...]:
    """The plain names among the targets of an assignment."""
    match target:
        case ast.Name():
            return (target.id,)
        case ast.Tuple() | ast.List():
            return tuple(name for item in target.elts for name in target_names(item))
        case ast.Starred():
            return target_names(target.value)
        case _:
            return ()


@lru_cache(maxsize=20_000)
def assigned_names(function: ast.AST) -> dict[str, int]:
    """Every name that is assigned anywhere inside, with the first line."""
    found: dict[str, int] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            found.setdefault(node.id, node.lineno)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for name in bound_by(node):
                found.setdefault(name, node.lineno)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node is not function:
            found.setdefault(node.name, node.lineno)
    return found


def parse(name: str, blob: Blob) -> ModuleSource:
    """The module in ``blob``. Raises ``RouteError`` where it is no Python that this interpreter can parse."""
    return _module(name, blob.path, blob.oid, _Text(blob))


class _Text:
    """A file's text that takes no part in the memo's key: its id stands for it."""

    def __init__(self, blob: Blob) -> None:
        self.blob = blob

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Text)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=256)
def _module(name: str, _path: str, _oid: str, text: _Text) -> ModuleSource:
    """By content: over a history the same file is parsed once, and what was found in it stays."""
    return ModuleSource(name, text.blob, _parsed(text.blob))


def _parsed(blob: Blob) -> ast.Module:
    if len(blob.text) > MOST_CHARACTERS:
        raise RouteError(f"{blob.path} is too large to be read ({len(blob.text):,} characters)")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the source that is read: invalid escapes
            return ast.parse(blob.text)
    except SyntaxError as error:
        raise RouteError(f"{blob.path}:{error.lineno or 1}: {error.msg}, so this revision cannot be read") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise RouteError(f"{blob.path} cannot be parsed ({type(error).__name__})") from None
