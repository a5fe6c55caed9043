"""A recorded function answers as it did: values, exceptions, binding, introspection, lifetimes."""

import contextlib
import copy
import gc
import inspect
import pickle
import sys
import types
import weakref
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.probe.ledger_inside import PACKAGE, Inside, calls, counted, module_of

VALUES = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text(max_size=3), st.tuples(st.integers(0, 2)))


class Shape(NamedTuple):
    """A signature: positional-only, plain, keyword-only, how many of the plain have defaults, stars."""

    only_positional: int
    plain: int
    only_keyword: int
    defaults: int
    several: bool
    by_name: bool

    def source(self) -> str:
        positional = [f"p{n}" for n in range(self.only_positional)] + [f"a{n}" for n in range(self.plain)]
        first = len(positional) - min(self.defaults, len(positional))
        declared = [name if n < first else f"{name}={n}" for n, name in enumerate(positional)]
        if self.only_positional:
            declared.insert(self.only_positional, "/")
        declared += ["*more"] if self.several else ["*"] if self.only_keyword else []
        declared += [f"k{n}" if n % 2 else f"k{n}={n}" for n in range(self.only_keyword)]
        declared += ["**rest"] if self.by_name else []
        names = positional + ["more"] * self.several + [f"k{n}" for n in range(self.only_keyword)]
        names += ["rest"] * self.by_name
        told = "".join(f"{name}, " for name in names)
        return f"""
class Wrong(ValueError): pass
def f({", ".join(declared)}):
    values = ({told})
    if any(value == 5 for value in values):
        raise Wrong(repr(values))
    return values
"""


SHAPES = st.builds(Shape, *[st.integers(0, 2)] * 3, st.integers(0, 4), st.booleans(), st.booleans())
KEYWORDS = st.dictionaries(st.sampled_from(["a0", "a1", "k0", "k1", "p0", "z"]), VALUES, max_size=3)
CALLS = st.lists(st.tuples(st.lists(VALUES, max_size=5), KEYWORDS), max_size=6)


def outcome(function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    try:
        return function(*args, **keywords)
    except Exception as error:
        return type(error).__name__, str(error)


@given(shape=SHAPES, sequence=CALLS)
def test_any_calls_of_any_signature_end_as_without_the_probe(
    tmp_path_factory: pytest.TempPathFactory, shape: Shape, sequence: list[tuple[list[Any], dict[str, Any]]]
) -> None:
    source = shape.source()
    inside = Inside(tmp_path_factory.getbasetemp(), {"f": "leaf"})
    plain, wrapped = module_of(source), inside.wrapped(source)
    assert inside.refused == {}
    assert inspect.signature(wrapped.f) == inspect.signature(plain.f)
    bound = 0
    for args, keywords in sequence:
        expected = outcome(plain.f, args, keywords)
        assert outcome(wrapped.f, args, keywords) == expected
        bound += expected[:1] != ("TypeError",)
    assert len(inside.ledger.recorder.waiting) == bound


def test_the_very_exception_comes_out_and_is_counted(tmp_path: Path) -> None:
    inside = Inside(tmp_path, {"f": "leaf"})
    made = inside.wrapped("def f(error):\n    raise error")
    for kind in (ValueError, KeyboardInterrupt, SystemExit, GeneratorExit):
        thrown = kind("secret text")
        with pytest.raises(kind) as caught:
            made.f(thrown)
        assert caught.value is thrown
        assert thrown.__context__ is None and thrown.__cause__ is None
    lines = inside.lines()
    assert [one.raised for one in calls(lines)] == ["ValueError", "KeyboardInterrupt", "SystemExit", "GeneratorExit"]
    assert counted(lines)["f", "raised ValueError"] == 1
    assert "secret" not in "".join(path.read_text() for path in tmp_path.iterdir())


def test_what_is_asked_of_a_function_is_answered_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = Inside(tmp_path, {"f": "leaf", "g": "leaf", "m": "leaf", "s": "leaf", "c": "leaf"})
    made = inside.wrapped(
        "import functools\n"
        "def d(g):\n    @functools.wraps(g)\n    def w(*a, **k):\n        return 'd', g(*a, **k)\n    return w\n"
        "def f(a, /, b=[1], *, c=3):\n    'what it does'\n    return a, b, c\n"
        "@d\ndef g(q, k):\n    return q, k\n"
        "class A:\n"
        "    def m(self, x=1):\n        return type(self).__name__, x, __class__.__name__\n"
        "    @staticmethod\n    def s(x):\n        return x\n"
        "    @classmethod\n    def c(cls, x):\n        return cls.__name__, x\n"
        "class B(A):\n    def m(self, x=2):\n        return 'B', super().m(x)\n"
    )
    monkeypatch.setitem(sys.modules, PACKAGE, types.ModuleType(PACKAGE))
    monkeypatch.setitem(sys.modules, f"{PACKAGE}.kernels", made)
    function = made.f
    assert (function.__name__, function.__qualname__, function.__doc__) == ("f", "f", "what it does")
    assert function.__module__ == f"{PACKAGE}.kernels"
    assert function.__code__.co_filename == f"/nowhere/{PACKAGE}.kernels.py" and function.__code__.co_firstlineno == 7
    assert pickle.loads(pickle.dumps(function)) is function and copy.deepcopy(function) is function
    assert str(inspect.signature(made.g)) == "(q, k)" and made.g.__wrapped__(1, 2) == (1, 2)
    assert made.g(1, k=2) == ("d", (1, 2))
    assert made.B().m() == ("B", ("B", 2, "A")) and made.A.s(3) == 3 and made.B.c(4) == ("B", 4)
    function.__defaults__ = (42,)
    function.__kwdefaults__["c"] = 9
    assert function(1) == (1, 42, 9)
    lines = inside.lines()
    assert calls(lines, "g")[0].arguments == {"q": 1, "k": 2}
    assert [one.function for one in calls(lines, "m")] == ["m", "m"]
    assert {one.function for one in lines if one.event == "wrapped"} == {"f", "g", "m", "s", "c"}


def test_closures_share_their_cells(tmp_path: Path) -> None:
    inside = Inside(tmp_path, {"count": "leaf"})
    made = inside.wrapped(
        "def make():\n    total = 0\n"
        "    def count(by=1):\n        nonlocal total\n        total += by\n        return total\n"
        "    return count, lambda: total\ncount, total = make()"
    )
    assert [made.count(), made.count(5), made.total()] == [1, 6, 6]
    assert [one.returned for one in calls(inside.lines())] == [1, 6]


def test_the_call_s_values_are_freed_when_it_has_ended(tmp_path: Path) -> None:
    class Held:
        pass

    inside = Inside(tmp_path, {"f": "leaf"})
    made = inside.wrapped("def f(x, ends):\n    if ends:\n        raise ValueError\n    return x")
    gc.disable()  # by reference counts alone, as a tensor's memory is wanted back
    try:
        for ends in (False, True):
            held = Held()
            gone = weakref.ref(held)
            with contextlib.suppress(ValueError):
                made.f(held, ends)
            del held
            assert gone() is None
    finally:
        gc.enable()


def test_arguments_are_told_as_they_were_given(tmp_path: Path) -> None:
    inside = Inside(tmp_path, {"f": "leaf"})
    made = inside.wrapped("def f(x):\n    x.append(2)\n    return x")
    made.f([1])
    (call,) = calls(inside.lines())
    assert (call.arguments, call.returned) == ({"x": [1]}, [1, 2])
