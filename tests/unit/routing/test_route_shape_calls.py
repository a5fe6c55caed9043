"""Calls: a callee's value decides the caller's branch; arguments reach their parameters; odd callables."""

import pytest

from tests.fakes.source_trees import ask
from tests.unit.routing.shape_case import check, check_open, told

BOTH = {"fast", "slow"}
HEAD = "\nfrom vllm.kernels import fast, slow, other\n"


def test_the_value_a_callee_returns_decides_the_branch() -> None:
    source = (
        HEAD
        + """
def tried(q):
    if not (q[1] is None):
        return False
    fast(q)
    return True

def entry(q):
    if tried(q):
        return
    slow(q)
"""
    )
    check(source, "fast", given={"q": "(fp8[8, 4, 2], None)"})
    check(source, "slow", given={"q": "(fp8[8, 4, 2], fp32[8])"})
    route = check(source, BOTH, given={}, open_={"q": ("(1, None)", "(1, 2)")})
    # The kernel and the True belong together: no way runs both, none runs nothing.
    for found in route.reached:
        kinds = {step.value for step in found.trail if step.kind == "guard" and step.source == "tried(q)"}
        assert kinds <= ({"true"} if found.function == "fast" else {"false"}), told(route)


def test_three_callees_deep_with_early_returns() -> None:
    source = (
        HEAD
        + """
def third(n):
    if n in (512, 1024):
        return True
    return False

def second(n, a):
    if not a:
        return False
    return third(n)

def first(n, a):
    return second(n, a=a) and n > 600

def entry(n, a):
    if first(n, a):
        return fast()
    return slow()
"""
    )
    check(source, "fast", given={"n": "1024", "a": "True"})
    check(source, "slow", given={"n": "512", "a": "True"})
    check(source, "slow", given={"a": "False"}, open_={"n": ("512", "1024")})
    check(source, BOTH, given={"n": "1024"}, open_={"a": ("True", "False")})


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("pick(True)", "fast"),
        ("pick(False)", "slow"),
        ("pick(use=True)", "fast"),
        ("pick()", "slow"),
        ("pick(*(True,))", "fast"),
        ("pick(*[False])", "slow"),
        ("pick(**{'use': True})", "fast"),
        ("pick(True, size=4)", "slow"),
        ("pick(size=9, use=True)", "fast"),
        ("passed(True, size=4)", "slow"),
        ("passed(True)", "fast"),
        ("strict(1, use=True)", "fast"),
        ("strict(1, use=False)", "slow"),
        ("gathered(1, 2)", "fast"),
        ("gathered(1)", "slow"),
        ("named(use=True)", "fast"),
        ("named()", "slow"),
        ("partial()", "fast"),
    ],
)
def test_arguments_reach_their_parameters(call: str, expected: str) -> None:
    source = (
        HEAD
        + f"""
import functools

def pick(use=False, size=8):
    return fast() if use and size > 4 else slow()

def passed(*args, **kwargs):
    return pick(*args, **kwargs)

def strict(a, /, *, use):
    return fast() if use else slow()

def gathered(*args):
    return fast() if len(args) == 2 else slow()

def named(**options):
    return fast() if options.get("use") else slow()

partial = functools.partial(pick, True)

def entry():
    return {call}
"""
    )
    if "**" in call or call.startswith(("partial", "named", "passed")):
        check_open(source, expected)
    else:
        check(source, expected)


@pytest.mark.parametrize(
    "decorator",
    [
        "@functools.cache",
        "@functools.lru_cache(maxsize=None)",
        "@torch.inference_mode()",
        "@functools.wraps(fast)",
        "@through",
        "@with_options(size=3)",
    ],
)
def test_a_decorated_function_is_looked_into(decorator: str) -> None:
    source = (
        HEAD
        + f"""
import functools
import torch

def through(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper

def with_options(*, size):
    def decorate(function):
        return function
    return decorate

{decorator}
def chosen(n):
    return n > 4

def entry(n):
    return fast() if chosen(n) else slow()
"""
    )
    for n, expected in (("5", "fast"), ("4", "slow")):
        route = ask(source, {"n": n})
        assert expected in route.kernels, told(route)
        assert route.kernels == (expected,) or not route.exact, told(route)


def test_a_decorated_entry_function() -> None:
    source = (
        HEAD
        + """
def eager_break(function):
    return function

@eager_break
def entry(n):
    return fast() if n > 4 else slow()
"""
    )
    check(source, "fast", given={"n": "5"})


def test_a_custom_op_that_is_registered_leads_to_its_function() -> None:
    source = (
        HEAD
        + """
import torch
from vllm.register import direct_register_custom_op

def scores_impl(x: torch.Tensor) -> torch.Tensor:
    return fast(x)

def scores_fake(x: torch.Tensor) -> torch.Tensor:
    return torch.empty(1)

direct_register_custom_op(op_name="scores", op_func=scores_impl, fake_impl=scores_fake)

def entry(x):
    return torch.ops.vllm.scores(x)
"""
    )
    files = {"vllm/dispatch.py": source, "vllm/register.py": "def direct_register_custom_op(**kwargs):\n    pass\n"}
    route = ask(files)
    # Either the op is known to run fast, or it counts as a kernel from outside that entry runs itself.
    assert len(route.kernels) == 1, told(route)
    if route.kernels != ("fast",):
        assert route.reached[0].external or route.kernels == ("entry",), told(route)


def test_nested_functions_and_lambdas() -> None:
    source = (
        HEAD
        + """
def entry(n):
    limit = n * 2

    def large():
        return limit > 8

    small = lambda x: x < 3
    if large():
        return fast()
    if small(n):
        return slow()
    return other()
"""
    )
    check(source, "fast", given={"n": "5"})
    check(source, "slow", given={"n": "2"})
    check(source, "other", given={"n": "4"})


def test_a_nested_function_that_changes_an_outer_name() -> None:
    source = (
        HEAD
        + """
def entry():
    done = False

    def mark():
        nonlocal done
        done = True

    mark()
    return fast() if done else slow()
"""
    )
    route = ask(source)
    assert "fast" in route.kernels, told(route)
    if route.exact:
        assert route.kernels == ("fast",)


@pytest.mark.parametrize(("n", "expected"), [("3", "fast"), ("0", "slow")])
def test_recursion_that_ends(n: str, expected: str) -> None:
    source = (
        HEAD
        + """
def down(n, more):
    if n == 0:
        return fast() if more else slow()
    return down(n - 1, True)

def entry(n):
    return down(n, False)
"""
    )
    route = ask(source, {"n": n})
    assert expected in route.kernels or route.not_understood, told(route)
    assert route.kernels == (expected,) or not route.exact, told(route)


def test_recursion_without_an_end_in_sight() -> None:
    source = (
        HEAD
        + """
def ping(n):
    if n > 4:
        return fast()
    return pong(n)

def pong(n):
    if n < 2:
        return slow()
    return ping(n)

def entry(n):
    return ping(n)
"""
    )
    route = ask(source)
    assert set(route.kernels) >= BOTH, told(route)
    assert not route.exact


def test_a_method_of_an_object_from_elsewhere_is_not_understood() -> None:
    source = """
    class Layer:
        def entry(self, x):
            return self.impl.forward(x)

    def entry(layer, x):
        return layer.impl.forward(x)
    """
    route = ask(source)
    assert not route.exact and route.kernels == (), told(route)
    assert [found.line for found in route.not_understood] == [6], told(route)
    assert "layer.impl.forward" in route.not_understood[0].source


def test_a_method_of_a_class_of_this_revision() -> None:
    source = (
        HEAD
        + """
class Impl:
    def __init__(self, use):
        self.use = use

    def forward(self):
        return fast() if self.use else slow()

def entry(a):
    return Impl(a).forward()
"""
    )
    for a, expected in (("True", "fast"), ("False", "slow")):
        route = ask(source, {"a": a})
        assert expected in route.kernels or route.not_understood, told(route)
        assert route.kernels == (expected,) or not route.exact, told(route)


def test_a_table_of_functions() -> None:
    source = (
        HEAD
        + """
TABLE = {"fp8": fast, "fp4": slow}

def entry(a):
    return TABLE["fp8" if a else "fp4"]()
"""
    )
    for a, expected in (("True", "fast"), ("False", "slow")):
        route = ask(source, {"a": a})
        assert expected in route.kernels or route.not_understood, told(route)
        assert route.kernels == (expected,) or not route.exact, told(route)


def test_a_function_that_is_handed_on() -> None:
    source = (
        HEAD
        + """
def run(kernel, *, times):
    for _ in range(times):
        kernel()

def entry(a):
    run(fast if a else slow, times=2)
"""
    )
    check(source, "fast", given={"a": "True"})
    check(source, BOTH, open_={"a": ("True", "False")})


@pytest.mark.parametrize("defaults", ["a=tried()", "a=tried(), b=tried()", "a=tried(), b=tried(), c=other_one()"])
def test_a_default_that_calls_its_own_function_ends(defaults: str) -> None:
    source = (
        HEAD
        + f"""
def other_one(a=tried()):
    return a

def tried({defaults}):
    return True

def entry(q):
    if tried():
        return fast()
    return slow()
"""
    )
    route = ask(source, {"q": "(1, 2)"})
    assert {found.function for found in route.reached} >= {"fast"}, told(route)
