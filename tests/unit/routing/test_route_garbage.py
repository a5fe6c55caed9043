"""Whatever a file holds, there is an answer or a ``RouteError``, in bounded steps."""

from __future__ import annotations

import ast
import random

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sparkdiag.errors import RouteError
from sparkdiag.evidence.route import Route
from tests.fakes.dispatch_parts import Program
from tests.fakes.dispatch_programs import programs
from tests.fakes.source_trees import ask

GARBAGE = settings(print_blob=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def survived(files: dict[str, str]) -> Route | None:
    """The answer; None for a ``RouteError`` in one line. Any other error is the test's failure."""
    try:
        route = ask(files)
    except RouteError as error:
        assert error.message and "\n" not in error.message
        return None
    for found in route.reached:
        assert found.path in route.files and found.line >= 1
    assert Route.model_validate_json(route.model_dump_json(by_alias=True)) == route
    return route


@settings(GARBAGE, max_examples=100)
@given(text=st.text(max_size=200), where=st.sampled_from(["vllm/dispatch.py", "vllm/kernels.py", "vllm/__init__.py"]))
@example(text="\x00", where="vllm/dispatch.py")
@example(text="\ud800", where="vllm/dispatch.py")
@example(text="def entry(): return fast()", where="vllm/dispatch.py")
def test_any_text(text: str, where: str) -> None:
    survived({"vllm/dispatch.py": "from vllm.kernels import fast\n\ndef entry():\n    return fast()\n", where: text})


@settings(GARBAGE, max_examples=100)
@given(program=programs(hard=True), seed=st.integers(0, 2**32))
def test_a_program_with_pieces_cut_out_and_moved(program: Program, seed: int) -> None:
    chosen = random.Random(seed)
    files = dict(program.files)
    for _ in range(chosen.randint(1, 3)):
        path = chosen.choice(sorted(files))
        text = files[path]
        first, second = sorted(chosen.randint(0, len(text)) for _ in range(2))
        piece = text[first:second]
        where = chosen.randint(0, len(text))
        files[path] = chosen.choice(
            [
                text[:first] + text[second:],
                text[:where] + piece + text[where:],
                text[:first] + piece[::-1] + text[second:],
            ]
        )
    survived(files)


class _Swapped(ast.NodeTransformer):
    """Puts any expression or statement of a module where another one was."""

    def __init__(self, chosen: random.Random, tree: ast.Module) -> None:
        self.chosen = chosen
        self.expressions = [node for node in ast.walk(tree) if isinstance(node, ast.expr)]
        self.statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]

    def visit(self, node: ast.AST) -> ast.AST:
        found = self.generic_visit(node)
        if self.chosen.random() < 0.04:
            if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
                return self.chosen.choice(self.expressions)
            if isinstance(node, ast.stmt):
                return self.chosen.choice(self.statements)
        return found


@settings(GARBAGE, max_examples=150)
@given(program=programs(hard=True), seed=st.integers(0, 2**32))
def test_a_program_with_its_tree_shuffled(program: Program, seed: int) -> None:
    chosen = random.Random(seed)
    files = dict(program.files)
    for path, text in program.files.items():
        tree = ast.parse(text)
        swapped = _Swapped(chosen, ast.parse(text)).visit(tree)
        try:
            files[path] = ast.unparse(ast.fix_missing_locations(swapped))
        except (ValueError, RecursionError, TypeError, AttributeError):
            continue
    survived(files)


STRANGE = """
import torch, os, sys
from vllm.kernels import fast, slow
from vllm import *
from . import *
from .. import nothing
import vllm.dispatch as me

async def waits(x):
    async with x as y, y:
        async for z in y:
            await z
    return [w async for w in x if await w]

def yields(x):
    got = yield x
    yield from x
    return got

class Meta(type):
    def __call__(cls, *args, **kwargs):
        return fast()

class Odd(list, metaclass=Meta):
    __slots__ = ("a",)
    x: int = 3
    def __bool__(self):
        return slow()
    def __enter__(self): return self
    def __exit__(self, *a): return True
    @property
    def size(self): return fast()
    @staticmethod
    def make(): return Odd()

def entry(a, /, b, *rest, c=1, **more):
    global G
    G, *H = a, b, *rest
    x = y = [*rest, *a]
    x[0], y.z, (p, q) = 1, 2, (3, 4)
    x[a:b:c, ...] += 1
    del x[0], y.z
    with Odd() as o, open("f") as (m, n):
        if o: raise
    try:
        raise ValueError from None
    except* (KeyError, ValueError) as group:
        fast()
    match a:
        case {"k": [1, *tail], **others} if tail: fast()
        case Odd(a=1) | str() as named: slow()
        case [_, _, *_]: pass
        case -1 | 2+3j | None | "s": pass
    z = {**more, "k": lambda *v, **w: (yield)}
    s = {i: j for i in a for j in i if j if i}
    t = f"{a!r:{b}}" "x" b"" if 0 else ...
    u = a if b else c if a else (lambda: 0)()
    v = not a < b <= c is not None in rest != 1 @ 2
    for i, (j, *k) in rest: continue
    else: fast()
    while (w := a): break
    else: slow()
    assert (a, "always true")
    nonlocal_ = entry(*a, **b) or me.entry(1, 2)
    print(yields(a), waits(b), Odd.make().size[0](1)(2)(3))
    return x[0][1:2].y(z)(*[1, 2], **{}) @ s
"""


def test_every_kind_of_syntax_at_once() -> None:
    for text in (STRANGE, STRANGE.replace(' b"" if 0', " if 0").replace(", **others} if tail", "}")):
        survived({"vllm/dispatch.py": text})
