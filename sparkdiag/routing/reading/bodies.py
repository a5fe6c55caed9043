"""What can be told of a function or a statement by its shape alone. Pure; each node is looked at once."""

import ast
from functools import lru_cache

from sparkdiag.routing.reading.names import first_name

MATTERS_ALWAYS = "*"
"""Stands for how the function goes on, among the names of what a guard decides."""


@lru_cache(maxsize=20_000)
def declared(function: ast.AST) -> tuple[frozenset[str], frozenset[str], bool]:
    """The names that a function declares global, those that inner functions assign, and whether it is a generator."""
    nodes = list(ast.walk(function))
    names = frozenset(name for node in nodes if isinstance(node, ast.Global) for name in node.names)
    shared = frozenset(name for node in nodes if isinstance(node, ast.Nonlocal) for name in node.names)
    return names, shared, any(isinstance(node, ast.Yield | ast.YieldFrom) for node in nodes)


@lru_cache(maxsize=2_000)
def stored_names(function: ast.AST) -> dict[str, int]:
    """How often each name is assigned in a function, parameters once."""
    found: dict[str, int] = {}
    for node in ast.walk(function):
        name = node.arg if isinstance(node, ast.arg) else node.id if isinstance(node, ast.Name) else ""
        if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)):
            found[name] = found.get(name, 0) + 1
    return found


@lru_cache(maxsize=20_000)
def decides(node: ast.stmt) -> tuple[str, ...]:
    """Names of what is called in what a statement's guards decide; ``*`` where they decide how the function goes on."""
    calls = {first_name(one.func).rpartition(".")[2] for one in ast.walk(node) if isinstance(one, ast.Call)}
    ends = isinstance(node, ast.Return) or any(
        isinstance(one, ast.Return | ast.Raise | ast.Continue | ast.Break) for one in ast.walk(node)
    )
    return tuple(sorted(calls - {""})) + ((MATTERS_ALWAYS,) if ends else ())
