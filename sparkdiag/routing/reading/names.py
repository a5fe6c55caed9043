"""What a name at a module's top level holds: through imports, re-exports, constants, and the ``if`` it stands in."""

import ast
from functools import lru_cache

from sparkdiag.routing.reading.context import Context, Frame
from sparkdiag.routing.source.modules import Bound, ModuleSource
from sparkdiag.routing.values.domain import (
    AnyValue,
    External,
    Function,
    Items,
    Known,
    ModuleRef,
    PlatformRef,
    Unknown,
    truth_of,
)
from sparkdiag.routing.values.state import State

PLATFORM = "current_platform"
TRITON = ("triton", "tl")
DECORATED = " decorated"
"""A name that no source can use: the function that a decorator gets."""
ENVIRONMENT_VARIABLES = "environment_variables"
"""vllm/envs.py: a dict of lambdas by name, and a ``__getattr__`` over it."""


class Missing(Exception):
    """An import fails at this revision: the package is the repository's own and has no such module or name."""


def look_up(context: Context, module: ModuleSource, name: str) -> AnyValue:
    """What ``name`` holds at the top level of ``module``."""
    if name in context.given.insisted:
        return context.given.insisted[name]
    if name == PLATFORM and _is_platform(module):
        return PlatformRef()
    key = (module.name, name)
    if key not in context.globals:
        if key in context.resolving:
            return Unknown(f"{module.name}.{name}", "a cyclic import", tensor=False)
        context.resolving.add(key)
        raising, deciding, context.raising = context.raising, context.deciding, []
        context.quiet += 1
        try:
            context.globals[key] = _look_up(context, module, name)
        finally:
            context.quiet -= 1
            context.raising, context.deciding = raising, deciding
            context.resolving.discard(key)
    return context.globals[key]


def reassigned(context: Context, frame: Frame, node: ast.AST, module: ModuleRef, name: object) -> None:
    """The way itself puts something else at a module's top level: what stands there is not known from now on."""
    context.puzzled(frame, node, "it assigns to a name of a module while that is in use")
    line = getattr(node, "lineno", 0)
    because = f"{name} is assigned at run time ({frame.module.path}:{line})"
    context.globals[module.name, str(name)] = Unknown(f"{module.name}.{name}", because)


def _is_platform(module: ModuleSource) -> bool:
    """vLLM's own, and not something that a module happens to call so."""
    places = module.bindings.get(PLATFORM, [])
    return module.name.endswith(".platforms") or all(isinstance(one.node, ast.ImportFrom) for one in places)


def _look_up(context: Context, module: ModuleSource, name: str) -> AnyValue:
    symbol = f"{module.name}.{name}"
    places = module.bindings.get(name)
    if places is None:
        return _elsewhere(context, module, name)
    if name in module.replaced:
        because = f"{name} is assigned at run time ({module.path}:{module.replaced[name]})"
        given = context.given.of(name, entry=False)
        return given or Unknown(symbol, because, slot=name)
    found: AnyValue | None = None
    for bound in places:
        runs = _runs(context, module, bound)
        if runs is None:
            because = f"what binds {name} is not known ({module.path}:{bound.node.lineno})"
            return context.given.of(name, entry=False) or Unknown(symbol, because)
        if runs:
            try:
                found = _bound(context, module, bound.node, name)
            except Missing as error:
                found = Unknown(symbol, str(error), tensor=False)
    return found if found is not None else _elsewhere(context, module, name)


def _elsewhere(context: Context, module: ModuleSource, name: str) -> AnyValue:
    """A name that the module does not bind: a sub-module, a star import's, an environment flag, or a builtin."""
    if module.path.endswith("/__init__.py") and context.program.is_module(f"{module.name}.{name}"):
        return ModuleRef(f"{module.name}.{name}")
    for star in (place.node for place in module.bindings.get("*", ())):
        if isinstance(star, ast.ImportFrom):
            target = context.program.module(absolute(module, star))
            if target is not None and name in target.bindings:
                return look_up(context, target, name)
    flag = environment_flag(context, module, name)
    return flag if flag is not None else External(f"builtins.{name}")


def _runs(context: Context, module: ModuleSource, bound: Bound) -> bool | None:
    """Whether the statements around a binding let it run; None where that is unknown."""
    if not bound.inside:
        return True
    inner: tuple[ast.stmt, ...] = (*bound.inside[1:], bound.node)
    for outer, child in zip(bound.inside, inner, strict=True):
        match outer:
            case ast.If():
                if first_name(outer.test).endswith("TYPE_CHECKING"):
                    truth: bool | None = False
                else:
                    truth = truth_of(_evaluated(context, module, outer.test))
                runs = None if truth is None else truth is (child in outer.body)
            case ast.Try():
                runs = _runs_in_try(context, module, outer, child)
            case ast.With():
                runs = True
            case _:
                runs = None
        if runs is not True:
            return runs
    return True


def _runs_in_try(context: Context, module: ModuleSource, outer: ast.Try, child: ast.stmt) -> bool | None:
    fails = False
    for node in outer.body:
        known = import_fails(context, module, node)
        if known is None:
            return None
        fails = fails or known
    if child in outer.body or child in outer.orelse:
        return not fails
    return True if child in outer.finalbody else fails


def import_fails(context: Context, module: ModuleSource, node: ast.stmt) -> bool | None:
    """Whether a statement in a ``try`` raises; None where that is unknown."""
    if isinstance(node, ast.ImportFrom | ast.Import):
        names = [absolute(module, node)] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
        if not all(context.program.has_package(name) for name in names):
            return None
        try:
            for alias in node.names:
                imported(context, module, node, alias)
        except Missing:
            return True
        return False
    return False if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.Name) else None


def first_name(node: ast.expr) -> str:
    """``typing.TYPE_CHECKING`` as text, for names and their attributes; empty for the rest."""
    if isinstance(node, ast.Attribute):
        inner = first_name(node.value)
        return f"{inner}.{node.attr}" if inner else ""
    return node.id if isinstance(node, ast.Name) else ""


def _bound(context: Context, module: ModuleSource, node: ast.stmt, name: str) -> AnyValue:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return decorated(context, module, Function(module.name, name, node))
        case ast.ClassDef():
            return Unknown(f"{module.name}.{name}", f"class {name}", tensor=False)
        case ast.Import() | ast.ImportFrom():
            alias = next(one for one in node.names if name in (one.asname or one.name, one.name.split(".")[0]))
            return imported(context, module, node, alias)
        case ast.Assign() if name in {one.id for one in node.targets if isinstance(one, ast.Name)}:
            return _constant(context, module, node.value, name)
        case ast.Assign(targets=[ast.Tuple() as target], value=ast.Tuple() as values):
            return _unpacked(context, module, target, values, name=name)
        case ast.AnnAssign(target=ast.Name()) if node.value is not None:
            return _constant(context, module, node.value, name)
        case _:
            return Unknown(
                f"{module.name}.{name}", f"bound in a way that is not followed ({module.path}:{node.lineno})"
            )


def _constant(context: Context, module: ModuleSource, value: ast.expr, name: str) -> AnyValue:
    symbol = f"{module.name}.{name}"
    if isinstance(value, ast.Lambda):
        return Function(module.name, name, value)
    found = _evaluated(context, module, value)
    match found:
        case Known():
            return Known(
                found.value, f"{name} = {found.value!r}"[:120] + (f" ({found.because})" if found.because else "")
            )
        case Items(kind="display"):
            return Unknown(symbol, f"{name} may be changed", tensor=False)
        case Unknown(slot=""):
            return Unknown(symbol, f"{name}: {found.because}" if found.because else name, tensor=found.tensor)
        case _:
            return found


THROUGH = frozenset({
    "cache", "lru_cache", "wraps", "staticmethod", "classmethod", "inference_mode", "no_grad", "enable_grad", "compile",
    "contextmanager", "disable", "deprecated", "override", "final", "overload", "jit", "njit", "autotune", "heuristics",
    "ignore", "export", "unused", "profile", "record_function", "custom_op", "register_fake",
})  # fmt: skip
"""Decorators of Python, torch and triton that call what they decorate, with its arguments, and give what it gives."""


@lru_cache(maxsize=2_000)
def decorators(node: ast.AST) -> tuple[ast.expr, ...]:
    """Decorators that are not known to call straight through, innermost first."""
    return tuple(
        one
        for one in reversed(getattr(node, "decorator_list", ()))
        if first_name(getattr(one, "func", one)).rpartition(".")[2] not in THROUGH
    )


def decorated(context: Context, module: ModuleSource, function: Function) -> AnyValue:
    """What a function's decorators make of it: those of the repository are read, with the function as argument."""
    value: AnyValue = function
    for one in decorators(function.node):
        name = first_name(getattr(one, "func", one)) or ast.unparse(one)[:60]
        node = ast.fix_missing_locations(ast.copy_location(ast.Call(one, [ast.Name(DECORATED, ast.Load())], []), one))
        found = context.evaluate(context, Frame("<module>", module, -1), node, State({DECORATED: value}))
        made = found[0][0] if len(found) == 1 else None
        if not isinstance(made, Function):
            return Unknown(function.symbol, f"what @{name} makes of {function.name} is not known")
        value = made
    return value


def _unpacked(context: Context, module: ModuleSource, target: ast.Tuple, values: ast.Tuple, *, name: str) -> AnyValue:
    plain = all(isinstance(one, ast.Name) for one in target.elts) and len(target.elts) == len(values.elts)
    if not plain or any(isinstance(one, ast.Starred) for one in values.elts):
        return Unknown(f"{module.name}.{name}", "unpacked")
    places = [one.id for one in target.elts if isinstance(one, ast.Name)]
    return _constant(context, module, values.elts[places.index(name)], name)


def look_up_in(context: Context, module: ModuleSource, node: ast.expr) -> AnyValue:
    """What a name or an attribute, as a function writes it, holds at the top level of ``module``; else unknown."""
    if not first_name(node):
        return Unknown(f"{module.name}:{node.lineno}", "not a name")
    context.quiet += 1
    try:
        return _evaluated(context, module, node)
    finally:
        context.quiet -= 1


def _evaluated(context: Context, module: ModuleSource, node: ast.expr) -> AnyValue:
    """An expression at the top level; unknown where it goes more than one way."""
    found = context.evaluate(context, Frame("<module>", module, -1), node, State({}))
    return found[0][0] if len(found) == 1 else Unknown(f"{module.name}:{node.lineno}", "it goes more than one way")


def absolute(module: ModuleSource, node: ast.ImportFrom) -> str:
    """Dotted name of what ``from … import`` names, relative imports resolved."""
    if not node.level:
        return node.module or ""
    parts = module.package.split(".")
    base = ".".join(parts[: len(parts) - node.level + 1])
    return f"{base}.{node.module}" if node.module else base


def imported(context: Context, module: ModuleSource, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> AnyValue:
    """What one name of an import statement holds. Raises ``Missing`` where the import fails at this revision."""
    if isinstance(node, ast.Import):
        if not context.program.has_package(alias.name):
            return External(alias.name if alias.asname else alias.name.split(".")[0])
        if not context.program.is_module(alias.name) and not _is_folder(context, alias.name):
            raise Missing(f"there is no module {alias.name}")
        return ModuleRef(alias.name if alias.asname else alias.name.split(".")[0])
    source = absolute(module, node)
    if alias.name == PLATFORM:
        return PlatformRef()
    if alias.name in TRITON:
        return External(alias.name)  # vllm.triton_utils hands it on, or a stand-in where there is none
    if not context.program.has_package(source):
        return External(f"{source}.{alias.name}")
    return member(context, source, alias.name)


def member(context: Context, source: str, name: str) -> AnyValue:
    """``source.name`` of the repository. Raises ``Missing`` where there is neither such a name nor such a module."""
    if name == PLATFORM:
        return PlatformRef()
    target = context.program.module(source)
    if target is not None and (name in target.bindings or "*" in target.bindings):
        return look_up(context, target, name)
    if context.program.is_module(f"{source}.{name}"):
        return ModuleRef(f"{source}.{name}")
    if source in context.program.faults:
        return Unknown(f"{source}.{name}", context.program.faults[source].message)
    if target is None:
        raise Missing(f"there is no module {source}")
    if "__getattr__" in target.bindings:
        flag = environment_flag(context, target, name)
        return flag or Unknown(f"{source}.{name}", f"{target.path} makes it at run time", tensor=False)
    flag = environment_flag(context, target, name)
    if flag is None:
        raise Missing(f"{source} has no {name}")
    return flag


def _is_folder(context: Context, name: str) -> bool:
    """A package without an ``__init__`` cannot be told from nothing: its sub-modules are asked for one by one."""
    return context.program.is_module(f"{name}.__init__")


def environment_flag(context: Context, module: ModuleSource, name: str) -> AnyValue | None:
    """A flag of vllm/envs.py as it is where the environment does not set it; None for what is no flag."""
    given = context.given.of(name, entry=False)
    if given is not None:
        return given
    for bound in module.bindings.get(ENVIRONMENT_VARIABLES, ()):
        table = bound.node.value if isinstance(bound.node, ast.Assign | ast.AnnAssign) else None
        if isinstance(table, ast.Dict):
            for key, value in zip(table.keys, table.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == name and isinstance(value, ast.Lambda):
                    found = _evaluated(context, module, value.body)
                    because = f"{name} is not set"
                    if isinstance(found, Known):
                        return Known(found.value, f"{because}, {found.value!r} by default")
                    return Unknown(f"{module.name}.{name}", f"{name}: {found.because}", tensor=False)
    return None
