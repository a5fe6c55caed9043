"""Sources that cannot be answered: one clear line, or an answer that says what it did not understand."""

import pytest

from sparkdiag.errors import RouteError
from sparkdiag.routing.route import find_route
from sparkdiag.scenario.route import RouteValue
from tests.fakes.source_trees import MemoryTree, ask, config_of, scenario_with, tree_of
from tests.unit.routing.shape_case import told

ENTRY = "from vllm.kernels import fast, slow\n"


def one_line(error: RouteError) -> str:
    assert "\n" not in error.message, error.message
    return error.message


def test_no_entry_function() -> None:
    with pytest.raises(RouteError) as caught:
        ask("def something_else():\n    pass\n")
    assert "entry" in one_line(caught.value)
    assert caught.value.remedy


def test_an_empty_tree() -> None:
    with pytest.raises(RouteError):
        find_route(MemoryTree({}), scenario=scenario_with(), config=config_of())


def test_the_entry_is_a_class_or_a_constant() -> None:
    for source in ("class entry:\n    pass\n", "entry = 4\n"):
        with pytest.raises(RouteError):
            ask(source)


def test_a_syntax_error_in_the_entrys_file() -> None:
    with pytest.raises(RouteError) as caught:
        ask("def entry(:\n    pass\n")
    message = one_line(caught.value)
    assert "vllm/dispatch.py" in message and "1" in message


def test_a_syntax_error_in_a_module_on_the_way() -> None:
    files = {
        "vllm/dispatch.py": "from vllm.ops import pick\n\ndef entry():\n    return pick()\n",
        "vllm/ops.py": "def pick():\n    return (\n",
    }
    try:
        route = ask(files)
    except RouteError as error:
        assert "vllm/ops.py" in one_line(error)
    else:
        assert not route.exact and route.kernels == (), told(route)
        assert any(found.path == "vllm/ops.py" or "ops" in found.reason for found in route.not_understood), told(route)


def test_a_syntax_error_in_a_module_that_no_way_needs() -> None:
    files = {
        "vllm/dispatch.py": f"{ENTRY}from vllm.ops import pick\n\ndef entry(a):\n    return pick() if a else fast()\n",
        "vllm/ops.py": "def pick(:\n",
    }
    route = ask(files, {"a": "False"})
    assert route.kernels == ("fast",) and route.exact, told(route)


@pytest.mark.parametrize("text", ["\x00", "﻿def entry():\n    pass\n", "", "\\", "# -*- coding: klingon -*-\n"])
def test_text_that_is_no_program(text: str) -> None:
    try:
        ask({"vllm/dispatch.py": text})
    except RouteError as error:
        one_line(error)


def test_nesting_beyond_the_parser() -> None:
    deep = "def entry():\n    return " + "(" * 3000 + "1" + ")" * 3000 + "\n"
    with pytest.raises(RouteError):
        ask(deep)


@pytest.mark.parametrize("operator", [" and ", " or ", " + ", "."])
def test_a_chain_of_thousands(operator: str) -> None:
    # Parsed well, but deep: an interpreter that recurses must say so in its own words.
    chain = operator.join(["a"] * 3000)
    try:
        route = ask(f"{ENTRY}def entry(a):\n    return fast() if {chain} else slow()\n")
    except RouteError as error:
        one_line(error)
    else:
        assert not route.exact, told(route)


def test_calls_as_deep_as_the_stack() -> None:
    functions = "\n".join(f"def f{n}(a):\n    return f{n + 1}(a)\n" for n in range(500))
    source = f"{ENTRY}{functions}\ndef f500(a):\n    return fast()\n\ndef entry(a):\n    return f0(a)\n"
    try:
        route = ask(source)
    except RouteError as error:
        one_line(error)
    else:
        assert "fast" in route.kernels or route.not_understood, told(route)
        assert "slow" not in route.kernels


def test_a_file_of_sixty_thousand_lines() -> None:
    filler = "\n".join(
        f"def unused_{n}(a, b):\n    if a > {n} and b is None:\n        return slow()\n    return fast()\n"
        for n in range(12_000)
    )
    source = f"{ENTRY}{filler}\ndef entry(a):\n    if a:\n        return fast()\n    return unused_7(a, None)\n"
    assert source.count("\n") >= 60_000
    route = ask({"vllm/dispatch.py": source}, {"a": "True"})
    assert route.kernels == ("fast",) and route.exact
    assert route.guards[0].line == 60_003


def test_thousands_of_guards_in_one_function() -> None:
    # Every one is unknown: ways must be joined, not multiplied.
    guards = "\n".join(f"    if p{n}:\n        x = {n}\n" for n in range(400))
    parameters = ", ".join(f"p{n}" for n in range(400))
    source = f"{ENTRY}def entry({parameters}):\n    x = 0\n{guards}\n    return fast()\n"
    route = ask(source)
    assert route.kernels == ("fast",), told(route)


def test_thousands_of_early_returns() -> None:
    guards = "\n".join(f"    if p{n}:\n        return {'fast' if n % 2 else 'slow'}()\n" for n in range(300))
    parameters = ", ".join(f"p{n}" for n in range(300))
    source = f"{ENTRY}def entry({parameters}):\n{guards}\n    return fast()\n"
    route = ask(source)
    assert set(route.kernels) == {"fast", "slow"} and not route.exact


def test_calls_that_double_at_every_level() -> None:
    functions = "\n".join(
        f"def f{n}(a, b):\n    if a[{n}]:\n        return f{n + 1}(a, b)\n    return f{n + 1}(b, a)\n"
        for n in range(24)
    )
    source = f"{ENTRY}{functions}\ndef f24(a, b):\n    return fast()\n\ndef entry(a, b):\n    return f0(a, b)\n"
    route = ask(source)
    assert set(route.kernels) == {"fast"} or route.not_understood, told(route)


def test_a_loop_that_never_ends() -> None:
    loop = "    while True:\n        n += 1\n        if n > 10**9:\n            return fast()\n"
    source = f"{ENTRY}def entry():\n    n = 0\n{loop}"
    route = ask(source)
    assert "fast" in route.kernels or route.not_understood, told(route)
    assert "slow" not in route.kernels


@pytest.mark.parametrize(
    "expression",
    ["2 ** 10 ** 10", "1 << 10 ** 12", "'a' * 10 ** 12", "[0] * 10 ** 12", "list(range(10 ** 15))", "10 ** 9 ** 9 > 4"],
)
def test_arithmetic_that_would_not_fit(expression: str) -> None:
    route = ask(f"{ENTRY}def entry():\n    return fast() if {expression} else slow()\n")
    assert not route.exact or route.kernels == ("fast",), told(route)


def test_division_by_zero() -> None:
    route = ask(f"{ENTRY}ZERO = 0\n\ndef entry(n):\n    return fast() if n // ZERO else slow()\n", {"n": "4"})
    assert not route.exact, told(route)


def test_a_value_of_the_scenario_that_makes_no_sense() -> None:
    values = (RouteValue(name="a", value="fp8[rows,"),)
    try:
        route = ask(f"{ENTRY}def entry(a):\n    return fast() if a else slow()\n", values)
    except Exception as error:
        assert type(error).__module__ == "sparkdiag.errors", repr(error)
    else:
        assert not route.exact, told(route)


def test_nothing_that_is_read_is_run(tmp_path: object) -> None:
    marker = f"{tmp_path}/ran"
    source = f"""
    import pathlib
    from vllm.kernels import fast
    pathlib.Path({marker!r}).touch()

    def entry(a=pathlib.Path({marker!r}).touch()):
        __import__("pathlib").Path({marker!r}).touch()
        eval("1")
        exec("2")
        return fast()
    """
    ask(source)
    import pathlib

    assert not pathlib.Path(marker).exists()


def test_a_tree_that_is_a_path_out_of_the_repository() -> None:
    files = tree_of("from ....outside import pick\n\ndef entry():\n    return pick()\n")
    tree = MemoryTree(files)
    try:
        find_route(tree, scenario=scenario_with(), config=config_of())
    except RouteError as error:
        one_line(error)
    assert not [path for path in tree.read_paths if path.startswith(("/", "..")) or "//" in path], tree.read_paths
