"""What is recorded, and how much of it: totals, limits, hostile values, facts, threads."""

import contextlib
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.evidence.ledger import DispatchTotals
from tests.unit.probe.ledger_inside import PACKAGE, Inside, calls, counted, part

HOSTILE = """
class Meta(type):
    def __repr__(cls): raise RuntimeError('meta repr')
    def __hash__(cls): raise RuntimeError('meta hash')
    def __eq__(cls, other): raise RuntimeError('meta eq')
    def __getattribute__(cls, name): raise RuntimeError('meta getattribute')
class Hostile:
    def __getattribute__(self, name): raise RuntimeError('getattribute')
    def __repr__(self): raise RuntimeError('repr')
    __str__ = __len__ = __iter__ = __bool__ = __format__ = __repr__
    def __eq__(self, other): raise RuntimeError('eq')
    def __hash__(self): raise RuntimeError('hash')
    @property
    def __class__(self): raise RuntimeError('class')
class Sub(int):
    def __lt__(self, other): raise RuntimeError('lt')
    __gt__ = __le__ = __ge__ = __repr__ = __lt__
class Metaed(metaclass=Meta):
    pass
class Text(str):
    def __getitem__(self, key): raise RuntimeError('item')
class Several(tuple):
    def __iter__(self): raise RuntimeError('iter')
    __len__ = __getitem__ = __iter__
def f(x):
    return x
"""


def test_no_code_of_a_hostile_value_runs(tmp_path: Path) -> None:
    inside = Inside(tmp_path, {"f": "leaf"}, texts=frozenset({"x"}))
    made = inside.wrapped(HOSTILE)
    looped: list[Any] = [1]
    looped.append(looped)
    given_values = [
        made.Hostile(), made.Sub(3), made.Metaed(), made.Text("abc"), made.Several((1,)), (0,) * 1_000_000,
        looped, float("nan"), float("-inf"), 10**30, {"a": 1}, "x" * 100_000, b"bytes", Ellipsis, [[[[[[1]]]]]],
    ]  # fmt: skip
    for value in given_values:
        assert made.f(value) is value
    lines = inside.lines()
    told = [one.arguments["x"] for one in calls(lines)]
    assert told[:5] == ["<Hostile>", "<Sub>", "<Metaed>", "<Text>", "<Several>"]
    assert told[5] == [0] * 16 + ["<999984 more>"]
    assert told[7:10] == ["nan", "-inf", "<int>"] and told[11] == "x" * 200
    assert sum(counted(lines).values()) == len(given_values)
    assert all(len(str(one)) < 1000 for one in told)


def test_a_text_is_told_only_where_it_may_be(tmp_path: Path) -> None:
    inside = Inside(tmp_path, {"f": "leaf"}, texts=frozenset({"layer"}))
    inside.wrapped("def f(layer, prompt): return prompt").f("layers.1", "a secret")
    (call,) = calls(inside.lines())
    assert (call.arguments, call.returned) == ({"layer": "layers.1", "prompt": "<str>"}, "<str>")


def test_facts_come_from_the_entry_s_frame_and_guards_into_the_counts(tmp_path: Path) -> None:
    facts = ("dcp", "chunk.local", "chunk.deep.none", "prefix")
    inside = Inside(tmp_path, {"entry": "entry", "fused": "dispatch"}, facts=facts, guards=("dcp", "chunk.local"))
    made = inside.wrapped(
        "class Chunk:\n    def __init__(self, n): self.local = n\n"
        "def fused(x): return x\n"
        "def between(x): return fused(x)\n"
        "def entry(dcp, sizes):\n    prefix = 'layers.3'\n    for size in sizes:\n        chunk = Chunk(size)\n"
        "        between(size > 0)\n"
    )
    made.entry(2, [0, 5, 1000])
    made.fused(True)
    lines = inside.lines()
    first, *_, outside = calls(lines, "fused")
    assert first.seen == {"dcp": 2, "chunk.local": 0, "prefix": "layers.3"}
    assert outside.seen == {} and outside.parent is None
    (entry,) = calls(lines, "entry")
    assert [one.parent for one in calls(lines, "fused")] == [entry.number] * 3 + [None]
    totals = next(one for one in reversed(lines) if isinstance(one, DispatchTotals))
    seen = [dict(one.facts) for one in totals.counts if one.function == "fused" and one.facts]
    assert sorted(str(one["chunk.local"]) for one in seen) == ["0", "5", ">64"]


def test_many_calls_have_few_lines_and_every_one_is_counted(tmp_path: Path) -> None:
    inside = Inside(tmp_path, {"f": "leaf", "g": "dispatch"})
    made = inside.wrapped("def f(x): return x\ndef g(x): return f(x % 2 == 0)")
    for number in range(20_000):
        made.g(number)
    lines = inside.lines()
    found = counted(lines)
    assert {key: value for key, value in found.items() if key[0] == "f"} == {
        ("f", "True"): 10_000,
        ("f", "False"): 10_000,
    }
    assert found["g", "True"] + found["g", "False"] == 20_000
    totals = next(one for one in reversed(lines) if isinstance(one, DispatchTotals))
    assert totals.written == len(calls(lines)) and totals.written + totals.dropped == 40_000
    assert len(calls(lines)) < 15_000


def test_many_exceptions_have_few_lines_and_every_one_is_counted(tmp_path: Path) -> None:
    inside = Inside(tmp_path, {"f": "leaf"})
    raise_many = inside.wrapped("def f(): raise ValueError").f
    for _ in range(5_000):
        with contextlib.suppress(ValueError):
            raise_many()
    lines = inside.lines()
    assert counted(lines)["f", "raised ValueError"] == 5_000
    assert len(calls(lines)) < 4_000


def test_recursion_by_turns_keeps_its_parents(tmp_path: Path) -> None:
    inside = Inside(tmp_path, {"even": "leaf", "odd": "leaf"})
    made = inside.wrapped(
        "def even(n): return True if n == 0 else odd(n - 1)\ndef odd(n): return False if n == 0 else even(n - 1)"
    )
    assert made.even(6) is True
    by_number = {one.number: one for one in calls(inside.lines())}
    assert [by_number[n].parent for n in range(1, 8)] == [None, 1, 2, 3, 4, 5, 6]
    assert [by_number[n].arguments["n"] for n in range(1, 8)] == [6, 5, 4, 3, 2, 1, 0]


def test_a_full_file_ends_the_lines_and_not_the_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part("writing"), "LARGEST_FILE_BYTES", 4_000)
    inside = Inside(tmp_path, {"f": "leaf"})
    made = inside.wrapped("def f(x): return None")
    for number in range(500):
        made.f(number)
    lines = inside.lines()
    totals = next(one for one in reversed(lines) if isinstance(one, DispatchTotals))
    assert counted(lines) == {("f", "None"): 500}
    assert 0 < len(calls(lines)) == totals.written < 500 and totals.written + totals.dropped == 500
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 5_000


def test_a_folder_that_vanishes_is_no_concern_of_the_caller(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    inside = Inside(folder, {"f": "leaf"})
    made = inside.wrapped("def f(x): return x")
    folder.rmdir()
    assert made.f(1) == 1
    inside.ledger.tend()
    assert made.f(2) == 2
    inside.ledger.at_exit()
    assert not folder.exists()
    assert made.f(3) == 3


def test_a_broken_recorder_is_no_concern_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = Inside(tmp_path, {"f": "leaf"})
    made = inside.wrapped("def f(x):\n    if x: raise KeyError(x)\n    return x")

    def fails(*_args: Any, **_keywords: Any) -> Any:
        raise RuntimeError("the probe's own fault")

    for owner, name in (
        (inside.ledger.recorder.summaries, "value"),
        (inside.ledger.recorder, "keep"),
        (part("calls"), "monotonic"),
    ):
        monkeypatch.setattr(owner, name, fails)
        assert made.f(0) == 0
        with pytest.raises(KeyError) as caught:
            made.f(1)
        assert caught.value.__context__ is None


def test_a_call_that_goes_on_has_its_line_and_then_its_last(tmp_path: Path) -> None:
    inside = Inside(tmp_path, {"f": "leaf"})
    made = inside.wrapped("def f(entered, leave):\n    entered.set()\n    leave.wait(30)\n    return 7")
    entered, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=made.f, args=(entered, leave))
    thread.start()
    assert entered.wait(30)
    (lane,) = inside.ledger.recorder.lanes.values()
    lane.inner.began -= 5
    inside.ledger.tend()
    leave.set()
    thread.join()
    opened, ended = calls(inside.lines())
    assert (opened.number, opened.took_s, opened.returned) == (ended.number, None, None)
    assert ended.took_s is not None and ended.took_s > 4 and ended.returned == 7


def test_threads_keep_their_own_parents(tmp_path: Path) -> None:
    inside = Inside(tmp_path, {"outer": "entry", "inner": "leaf"})
    made = inside.wrapped("def inner(n): return n\ndef outer(n): return inner(n)")
    threads = [threading.Thread(target=lambda n=n: [made.outer(n) for _ in range(50)]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = inside.lines()
    by_number = {one.number: one for one in calls(lines)}
    assert len(by_number) == 400
    for one in calls(lines, "inner"):
        assert one.parent is not None and by_number[one.parent].arguments["n"] == one.arguments["n"]


@given(plan=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30)), max_size=60))
def test_a_budget_is_never_overdrawn_by_outermost_calls(plan: list[tuple[float, int]]) -> None:
    budget = part("budget").Budget(at_once=10.0, per_s=5.0, now_s=0.0)
    now_s, allowed = 0.0, 0
    for wait_s, asked in plan:
        now_s += wait_s
        for _ in range(asked):
            if budget.allows(now_s):
                budget.left -= 1
                allowed += 1
    assert allowed <= 11 + 5 * now_s


def test_a_size_that_is_no_integer_is_not_compared(tmp_path: Path) -> None:
    class Size:
        def __ge__(self, other: object) -> bool:
            raise RuntimeError("a traced size was compared")

    inside = Inside(tmp_path, {"f": "leaf"})
    made = inside.wrapped("def f(x): return None")
    inside.ledger.recorder.summaries.shape = lambda _value: (Size(), 4)
    assert made.f(1) is None
    assert len(calls(inside.lines())) == 1


def test_under_jit_trace_nothing_is_recorded(tmp_path: Path) -> None:
    inside = Inside(tmp_path, {"f": "leaf"})
    made = inside.wrapped("def f(x): return x")
    inside.ledger.recorder.summaries.tracing = lambda: True
    assert made.f(1) == 1
    assert not calls(inside.lines())


def test_a_function_is_found_by_name_in_whatever_module_defines_it(tmp_path: Path) -> None:
    inside = Inside(tmp_path, {"f": "leaf"})
    for name in ("old.place", "new"):
        assert inside.wrapped(f"def f(x): return '{name}'", name=f"{PACKAGE}.{name}").f(0) == name
    assert [one.module for one in calls(inside.lines())] == [f"{PACKAGE}.old.place", f"{PACKAGE}.new"]
