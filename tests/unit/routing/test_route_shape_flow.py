"""Statements that decide: early ends, raises, handlers, matches, and what joins after them."""

import pytest

from tests.fakes.source_trees import ask
from tests.unit.routing.shape_case import check, told, when

BOTH = {"fast", "slow"}
HEAD = "\nfrom vllm.kernels import fast, slow, other\n"


def test_an_early_return() -> None:
    source = (
        HEAD
        + """
def entry(a):
    if not a:
        return
    fast()
"""
    )
    check(source, "fast", given={"a": "True"})
    check(source, set(), given={"a": "False"}, exact=False)


def test_elif_in_order() -> None:
    source = (
        HEAD
        + """
def entry(n):
    if n > 100:
        return other()
    elif n > 10:
        return fast()
    else:
        return slow()
"""
    )
    check(source, "other", given={"n": "101"})
    check(source, "fast", given={"n": "100"})
    check(source, "slow", given={"n": "10"})


def test_raise_on_one_path() -> None:
    source = (
        HEAD
        + """
def entry(q):
    if q[1] is not None:
        raise NotImplementedError("FP8 queries only")
    return fast()
"""
    )
    route = check(source, "fast", given={"q": "(fp8[8, 4, 2], None)"})
    assert route.raises == (), told(route)
    route = check(source, set(), given={"q": "(fp8[8, 4, 2], fp32[8])"}, exact=False)
    assert [(found.path, found.line) for found in route.raises] == [("vllm/dispatch.py", 5)]
    assert route.raises[0].error.startswith("NotImplementedError")
    route = ask(source)
    assert route.kernels == ("fast",) and not route.exact, told(route)
    assert len(route.raises) == 1 and route.raises[0].when, told(route)


def test_a_raise_in_a_callee_ends_the_caller_too() -> None:
    source = (
        HEAD
        + """
def missing(*args):
    raise RuntimeError("backend is not available")

def entry(a):
    if a:
        missing()
        slow()
    return fast()
"""
    )
    route = check(source, set(), given={"a": "True"}, exact=False)
    assert [found.error.partition("(")[0] for found in route.raises] == ["RuntimeError"], told(route)
    check(source, "fast", given={"a": "False"})


def test_an_assert_is_taken_to_hold_or_told() -> None:
    source = (
        HEAD
        + """
def entry(a, b):
    assert a is not None, "needs a"
    if a is None:
        return slow()
    return fast()
"""
    )
    route = ask(source, {"b": "1"})
    assert route.kernels == ("fast",), told(route)
    check(source, set(), given={"a": "None", "b": "1"}, exact=False)
    check(source, "fast", given={"a": "3", "b": "1"})


@pytest.mark.parametrize(
    ("module", "expected"),
    [("vllm.kernels", "fast"), ("vllm.nowhere", "slow")],
)
def test_an_import_that_may_fail(module: str, expected: str) -> None:
    source = f"""
    from vllm.kernels import slow

    def entry():
        try:
            from {module} import fast
        except ImportError:
            return slow()
        return fast()
    """
    route = ask(source)
    # A module that is not in the tree may be a compiled one: an answer that leaves both ways open is right as well.
    assert expected in route.kernels or route.not_understood, told(route)
    if route.exact:
        assert route.kernels == (expected,)


def test_a_module_level_import_that_may_fail_sets_a_flag() -> None:
    source = """
    from vllm.kernels import fast, slow
    try:
        from vllm.kernels import other
        HAVE = True
    except ImportError:
        HAVE = False

    def entry():
        return fast() if HAVE else slow()
    """
    route = ask(source)
    assert "fast" in route.kernels, told(route)
    if route.exact:
        assert route.kernels == ("fast",)


def test_a_package_from_outside_may_be_there_or_not() -> None:
    source = """
    from vllm.kernels import fast, slow

    def entry():
        try:
            import deep_gemm
            have = True
        except ImportError:
            have = False
        return fast() if have else slow()
    """
    route = ask(source)
    assert set(route.kernels) == BOTH and not route.exact, told(route)


@pytest.mark.parametrize("error", ["NotImplementedError", "Exception", "(ValueError, NotImplementedError)"])
def test_a_handler_that_falls_back(error: str) -> None:
    source = (
        HEAD
        + f"""
def strict(q):
    if q is not None:
        raise NotImplementedError("no")
    return fast()

def entry(q):
    try:
        return strict(q)
    except {error}:
        return slow()
"""
    )
    for given, expected in (("None", "fast"), ("3", "slow")):
        route = check_superset(source, {"q": given}, expected)
        assert expected in route


def check_superset(source: str, given: dict[str, str], expected: str) -> tuple[str, ...]:
    route = ask(source, given)
    assert expected in route.kernels or route.not_understood, told(route)
    if route.exact:
        assert route.kernels == (expected,), told(route)
    return route.kernels


def test_a_handler_of_another_error_does_not_catch() -> None:
    source = (
        HEAD
        + """
def entry():
    try:
        raise NotImplementedError("no")
    except ValueError:
        return slow()
    return fast()
"""
    )
    route = ask(source)
    assert not route.exact
    assert "fast" not in route.kernels, told(route)


def test_finally_runs_whatever_happened() -> None:
    source = (
        HEAD
        + """
def entry(a):
    try:
        if a:
            return fast()
    finally:
        slow()
"""
    )
    route = ask(source, {"a": "True"})
    assert {"fast", "slow"} == set(route.kernels), told(route)
    route = ask(source, {"a": "False"})
    assert "slow" in route.kernels, told(route)


def test_with_runs_its_body() -> None:
    source = """
    import contextlib
    from vllm.kernels import fast, slow

    def entry(a):
        with contextlib.nullcontext() as span, contextlib.nullcontext():
            if a:
                return fast()
        return slow()
    """
    check(source, "fast", given={"a": "True"})
    check(source, "slow", given={"a": "False"})


@pytest.mark.parametrize(("n", "expected"), [("1", "fast"), ("3", "fast"), ("2", "other"), ("7", "slow")])
def test_match(n: str, expected: str) -> None:
    source = (
        HEAD
        + """
def entry(n):
    match n:
        case 1 | 3:
            return fast()
        case 2:
            return other()
        case _:
            return slow()
"""
    )
    route = ask(source, {"n": n})
    assert expected in route.kernels, told(route)
    if route.exact:
        assert route.kernels == (expected,)


def test_a_walrus_keeps_what_it_named() -> None:
    source = (
        HEAD
        + """
def pick(n):
    return n if n > 4 else None

def entry(n):
    if (found := pick(n)) is None:
        return slow()
    return fast(found)
"""
    )
    check(source, "fast", given={"n": "5"})
    check(source, "slow", given={"n": "4"})


def test_strings_and_f_strings() -> None:
    source = (
        HEAD
        + """
def entry(a):
    kind = "fp8" if a else "fp4"
    name = f"mqa_{kind}"
    message = f"unused {a!r:>10}"
    if name == "mqa_fp8":
        return fast()
    return slow()
"""
    )
    for a, expected in (("True", "fast"), ("False", "slow")):
        route = ask(source, {"a": a})
        assert expected in route.kernels, told(route)
        if route.exact:
            assert route.kernels == (expected,)


def test_two_kernels_in_a_row_are_both_reached_and_not_exact() -> None:
    route = check(HEAD + "\ndef entry():\n    fast()\n    slow()\n", BOTH, exact=False)
    assert when(route, "fast") == [()] and when(route, "slow") == [()], told(route)


def test_deleted_and_augmented_names() -> None:
    source = (
        HEAD
        + """
def entry(n):
    size = n
    size *= 4
    unused = 1
    del unused
    if size > 16:
        return fast()
    return slow()
"""
    )
    check(source, "fast", given={"n": "5"})
    check(source, "slow", given={"n": "4"})


def test_code_after_a_return_is_not_reached() -> None:
    check(HEAD + "\ndef entry():\n    return fast()\n    slow()\n", "fast")


def test_a_comprehension_runs_a_kernel_for_each() -> None:
    route = ask(HEAD + "\ndef entry(chunks):\n    return [fast(chunk) for chunk in chunks if chunk > 2]\n")
    assert "fast" in route.kernels or route.not_understood, told(route)
    assert not set(route.kernels) - {"fast"}
