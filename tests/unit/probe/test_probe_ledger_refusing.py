"""What the probe leaves alone, and what it says of it."""

import sys
from pathlib import Path

import pytest

from tests.unit.probe.ledger_inside import Inside, calls, not_wrapped, recursion_limit

REFUSED = {
    "def f(x):\n    yield x": "a generator or coroutine",
    "async def f(x):\n    return x": "a generator or coroutine",
    "async def f(x):\n    yield x": "a generator or coroutine",
    "import functools\n@functools.lru_cache\ndef f(x):\n    return x": "answers from its cache",
    "import functools\n@functools.cache\ndef f(x):\n    return x": "answers from its cache",
    "f = len": "no Python function but builtin_function_or_method",
    "import functools\nf = functools.partial(print, 1)": "no Python function but partial",
    "class f:\n    pass": "a class",
    "f = None": "None",
    "f = 3": "no Python function but int",
    "import sys\ndef f(x):\n    return sys._getframe(1)": "its caller's frame",
    "import inspect\ndef f(x):\n    return inspect.stack()[1]": "its caller's frame",
    "import inspect\ndef f(x):\n    return [inspect.currentframe() for _ in x]": "its caller's frame",
    "import traceback\ndef f(x):\n    return traceback.extract_stack()": "its caller's frame",
    "import warnings\ndef f(x):\n    warnings.warn('old', DeprecationWarning, 2)": "its caller's frame",
    "def f(x, log):\n    log.warning('old', stacklevel=2)": "its caller's frame",
    "def f(x):\n    return 0 if x == 0 else 1 + f(x - 1)": "it calls itself",
    "def f(x):\n    return [f(one) for one in x]": "it calls itself",
    "def made():\n    def f(x):\n        return 0 if x == 0 else f(x - 1)\n    return f\nf = made()": "it calls itself",
    "class A:\n    def f(self, x):\n        return 0 if x == 0 else self.f(x - 1)": "it calls itself",
    "import functools\n"
    "def d(g):\n    @functools.wraps(g)\n    def w(*a):\n        return g(*a)\n    return w\n"
    "@d\ndef f(x):\n    return 0 if x == 0 else f(x - 1)": "it calls itself",
    "def f(x, *, _sparkdiag_call=5):\n    return _sparkdiag_call": "names are like those of the probe",
    "def f(_sparkdiag_result):\n    return _sparkdiag_result": "names are like those of the probe",
    "def made():\n    _sparkdiag_call = 1\n    def f(x):\n        return _sparkdiag_call\n    return f\nf = made()": (
        "names are like those of the probe"
    ),
}
RECORDED = (
    "import types\nm = types.SimpleNamespace(f=lambda x: x)\ndef f(x):\n    return m.f(x)",
    "import types\nm = types.SimpleNamespace(stack=lambda x: x)\ndef f(x):\n    return m.stack(x)",
    "def f(x):\n    import operator as f\n    return f.pos(x)",
    "class Of:\n    def f(self, x):\n        return x\n"
    "class A:\n    inner = Of()\n    def f(self, x):\n        return self.inner.f(x)",
    "import functools\n"
    "def d(f):\n    @functools.wraps(f)\n    def w(*a):\n        return f(*a)\n    return w\n"
    "@d\ndef f(x):\n    return x",
    "def f(_spark, sparkdiag_call=2):\n    return _spark",
)


@pytest.mark.parametrize("source", REFUSED)
def test_what_a_frame_more_would_change_is_left_alone_and_told(tmp_path: Path, source: str) -> None:
    inside = Inside(tmp_path, {"f": "leaf"})
    inside.wrapped(source)
    assert REFUSED[source] in inside.refused["f"]
    lines = inside.lines()
    assert REFUSED[source] in not_wrapped(lines)["f"]
    assert not [one for one in lines if one.event == "wrapped"]


@pytest.mark.parametrize("source", RECORDED)
def test_what_only_looks_like_it_is_recorded(tmp_path: Path, source: str) -> None:
    inside = Inside(tmp_path, {"f": "leaf"})
    made = inside.wrapped(source)
    assert inside.refused == {}
    assert (made.A().f(1) if hasattr(made, "A") else made.f(1)) == 1
    assert calls(inside.lines(), "f")[-1].returned == 1


def test_recursion_reaches_as_deep_as_without_the_probe(tmp_path: Path) -> None:
    inside = Inside(tmp_path, {"deep": "leaf"})
    made = inside.wrapped("def deep(n):\n    return 0 if n == 0 else 1 + deep(n - 1)")
    depth, frame = 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]
    with recursion_limit(depth + 400):
        assert made.deep(300) == 300


def test_a_name_that_is_no_function_s_is_told_once_a_module(tmp_path: Path) -> None:
    inside = Inside(tmp_path, {"f": "leaf"})
    for number in range(3):
        inside.wrapped("f = None", name=f"watched_package.m{number % 2}")
    assert len([one for one in inside.lines() if one.event == "not_wrapped"]) == 2
