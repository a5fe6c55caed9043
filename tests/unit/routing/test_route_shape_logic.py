"""Guards made of and, or, not, ternaries and comparisons: three values, in Python's own order."""

import itertools

import pytest

from tests.fakes.source_trees import ask
from tests.unit.routing.shape_case import check, check_open, guard, told, when

BOTH = {"fast", "slow"}


def program(test: str, *, parameters: str = "a, b, c", before: str = "pass") -> str:
    """``fast`` where the test holds, else ``slow``; the test is on line 5."""
    return f"""
from vllm.kernels import fast, slow

def entry({parameters}):
    {before}
    if {test}:
        return fast()
    return slow()
"""


TRUTHS = (True, False, None)


def three_valued(operator: str, left: bool | None, right: bool | None) -> set[bool]:
    sides = [(True, False) if side is None else (side,) for side in (left, right)]
    return {(a and b) if operator == "and" else (a or b) for a, b in itertools.product(*sides)}


@pytest.mark.parametrize("operator", ["and", "or"])
@pytest.mark.parametrize("left", TRUTHS)
@pytest.mark.parametrize("right", TRUTHS)
def test_and_or_have_three_values(operator: str, left: bool | None, right: bool | None) -> None:
    values = {"a": left, "b": right}
    given = {name: str(value) for name, value in values.items() if value is not None}
    open_ = {name: ("True", "False") for name, value in values.items() if value is None}
    expected = {"fast" if value else "slow" for value in three_valued(operator, left, right)}
    check(program(f"a {operator} b", parameters="a, b"), expected, given=given, open_=open_)


@pytest.mark.parametrize(
    ("test", "given", "expected"),
    [
        ("not a", {"a": "False"}, "fast"),
        ("not a", {"a": "True"}, "slow"),
        ("not (a and b)", {"a": "False"}, "fast"),
        ("not (a or b)", {"a": "True"}, "slow"),
        ("not not a", {"a": "True"}, "fast"),
        ("a or b and c", {"a": "True"}, "fast"),
        ("(a or b) and c", {"c": "False"}, "slow"),
        ("a and (b or not c)", {"a": "True", "c": "False"}, "fast"),
        ("a if b else c", {"b": "True", "a": "False"}, "slow"),
        ("a if b else c", {"b": "False", "c": "True"}, "fast"),
        ("a if b else c", {"a": "True", "c": "True"}, "fast"),
        ("a is None", {"a": "None"}, "fast"),
        ("a is None", {"a": "fp8[8, 4, 2]"}, "slow"),
        ("a is not None", {"a": "None"}, "slow"),
        ("a is None and b is not None", {"a": "None", "b": "fp8[8, 4, 2]"}, "fast"),
        ("a == 3", {"a": "3"}, "fast"),
        ("a != 3", {"a": "3"}, "slow"),
        ("a <= 1", {"a": "1"}, "fast"),
        ("a <= 1", {"a": "2"}, "slow"),
        ("a < 1 or a > 4", {"a": "5"}, "fast"),
        ("1 < a <= 4", {"a": "4"}, "fast"),
        ("1 < a <= 4", {"a": "1"}, "slow"),
        ("0 < a < b < 9", {"a": "9", "b": "9"}, "slow"),
        ("a in (512, 1024)", {"a": "1024"}, "fast"),
        ("a in (512, 1024)", {"a": "2048"}, "slow"),
        ("a not in [512, 1024]", {"a": "512"}, "slow"),
        ("a in {512, 1024}", {"a": "512"}, "fast"),
        ("a % 64 == 0", {"a": "128"}, "fast"),
        ("a // 64 >= 2", {"a": "127"}, "slow"),
        ("bool(a)", {"a": "True"}, "fast"),
        ("min(a, b) > 2", {"a": "2", "b": "8"}, "slow"),
        ("max(1, a // b) == 1", {"a": "2", "b": "8"}, "fast"),
        ("a", {"a": "0"}, "slow"),
        ("a", {"a": "7"}, "fast"),
        ("not a", {"a": "None"}, "fast"),
        ("a is True", {"a": "True"}, "fast"),
        ("a is False", {"a": "True"}, "slow"),
        ("all((a, b))", {"a": "True", "b": "False"}, "slow"),
        ("any([a, b])", {"a": "True", "b": "False"}, "fast"),
        ("(n := a + 1) > 2 and n < 5", {"a": "3"}, "fast"),
        ("a & b", {"a": "True", "b": "False"}, "slow"),
    ],
)
def test_a_guard_of_what_is_given(test: str, given: dict[str, str], expected: str) -> None:
    rest = {name: ("5", "6") for name in "abc" if name not in given}
    check(program(test), expected, given=given, open_=rest)


def test_nothing_after_the_deciding_operand_is_asked() -> None:
    # Were the right side looked at, its error would end the way to the kernel.
    source = """
    from vllm.kernels import fast, slow

    def broken():
        raise NotImplementedError("never asked")

    def entry(a):
        if a or broken():
            return fast()
        return slow()
    """
    route = check(source, "fast", given={"a": "True"})
    assert route.raises == ()


def test_what_stands_left_of_the_deciding_operand_is_asked() -> None:
    source = """
    from vllm.kernels import fast, slow

    def broken():
        raise NotImplementedError("asked first")

    def entry(a):
        if broken() or a:
            return fast()
        return slow()
    """
    route = check(source, set(), given={"a": "True"}, exact=False)
    assert [found.error.partition("(")[0] for found in route.raises] == ["NotImplementedError"], told(route)
    assert route.raises[0].line == 4


def test_an_unknown_guard_is_followed_both_ways_under_its_condition() -> None:
    route = check(program("a and b"), BOTH, given={"a": "True"}, open_={"b": ("True", "False"), "c": ("1",)})
    found = guard(route, "b")
    assert (found.line, found.value, found.function) == (5, "unknown", "entry")
    assert found.because
    assert len(when(route, "fast")) == 1 and any("b" in line for line in when(route, "fast")[0])
    assert all(when(route, kernel) != [()] for kernel in BOTH)


def test_a_guard_tells_its_line_value_and_what_decided_it() -> None:
    route = check(program("a"), "slow", given={"a": "False", "b": "1", "c": "1"})
    found = guard(route, "a")
    assert (found.path, found.line, found.value) == ("vllm/dispatch.py", 5, "false")
    assert "given a" in found.because
    assert [step.value for step in route.reached[0].trail if step.kind == "guard" and step.source == "a"] == ["false"]


@pytest.mark.parametrize(
    ("before", "test"),
    [
        ("pass", "a and not a"),
        ("pass", "not (a or not a)"),
        ("b = not a", "a and b"),
        ("b = a", "b and not a"),
    ],
)
def test_the_same_unknown_is_never_both(before: str, test: str) -> None:
    # Either the impossible pair is seen to be impossible, or the answer is an honest superset.
    source = program(test, parameters="a", before=before)
    route = ask(source)
    assert "slow" in route.kernels
    if set(route.kernels) != {"slow"}:
        assert not route.exact


def test_correlated_guards_in_two_statements_give_no_impossible_pair() -> None:
    source = """
    from vllm.kernels import fast, slow, other

    def entry(a):
        if a:
            mode = 1
        else:
            mode = 2
        if a:
            return fast() if mode == 1 else other()
        return slow() if mode == 2 else other()
    """
    check(source, BOTH, open_={"a": ("True", "False")})


def test_a_flag_set_on_one_of_two_unknown_ways() -> None:
    source = """
    from vllm.kernels import fast, slow

    def entry(a, b):
        use = False
        if a:
            use = True
        if not use:
            return slow()
        if b:
            return slow()
        return fast()
    """
    check(source, BOTH, given={"b": "False"}, open_={"a": ("True", "False")})
    check(source, "slow", given={"a": "False"}, open_={"b": ("True", "False")})


def test_both_ways_to_one_kernel_are_exact() -> None:
    source = """
    from vllm.kernels import fast

    def entry(a):
        if a:
            return fast(1)
        return fast(2)
    """
    check(source, "fast", open_={"a": ("True", "False")})


def test_a_comparison_with_an_unknown_size_is_unknown() -> None:
    route = check(program("a > 512"), BOTH, given={"b": "1", "c": "1"}, open_={"a": ("512", "513")})
    assert guard(route, "a > 512").value == "unknown"


def test_a_parameter_of_the_entry_function_is_not_taken_to_be_its_default() -> None:
    # Who calls the entry function is not known: a default is no fact.
    route = check(program("a", parameters="a=True"), BOTH, open_={"a": ("True", "False")})
    assert not route.exact


def test_a_ternary_chooses_the_function_that_is_called() -> None:
    source = """
    from vllm.kernels import fast, slow

    def entry(a):
        kernel = fast if a else slow
        return kernel(1)
    """
    check(source, "fast", given={"a": "True"})
    check(source, BOTH, open_={"a": ("True", "False")})


@pytest.mark.parametrize(("q", "expected"), [("(fp8[8, 4, 2], None)", "fast"), ("(fp8[8, 4, 2], fp32[8])", "slow")])
@pytest.mark.parametrize(
    "body",
    [
        "scale = q[1]",
        "_, scale = q",
        "values, scale = q[0], q[1]",
        "(values, scale) = q",
        "scale = q[-1]",
        "pair = (q, q[1]); scale = pair[1]",
        "values, *rest = q; scale = rest[0]",
    ],
)
def test_a_tuple_is_indexed_and_unpacked(body: str, q: str, expected: str) -> None:
    check(program("scale is None", parameters="q", before=body), expected, given={"q": q})
    check(program("q[1] is None", parameters="q"), expected, given={"q": q})
    check_open(program("{'scale': q[1]}['scale'] is None", parameters="q"), expected, given={"q": q})
