"""Guards on sizes: byte limits against the tensors that the configuration implies, over all chunks of a prompt."""

import pytest

from sparkdiag.evidence.route import Route, RouteConfig
from sparkdiag.scenario.route import RouteValue
from tests.fakes.executed_trees import run_tree
from tests.fakes.source_trees import MemoryTree, ask, scenario_with, tree_of
from tests.unit.routing.shape_case import check, contradicted, guard, told, when

VALUES = (
    RouteValue(name="q", value="(fp8[rows, heads, head_dim], None)", because="cache fp8"),
    RouteValue(name="kv", value="(fp8[keys, head_dim], fp32[keys])", because="the chunk's keys"),
    RouteValue(name="local", value="local_keys", because="keys of a rank"),
)

LIMITED = """
import torch
from vllm.kernels import fast, slow

MAX_LOGITS_BYTES = {limit}

def entry(q, kv, local):
    q_values, q_scale = q
    k_values, _ = kv
    if not (q_scale is None and q_values.dim() == 3 and k_values.dim() == 2):
        raise NotImplementedError("another layout")
    logits_bytes = q_values.shape[0] * k_values.shape[0] * {itemsize}
    if logits_bytes > MAX_LOGITS_BYTES:
        return slow()
    return fast()
"""


def config(prompt_tokens: int, *, chunk_tokens: int = 8192, dcp: int = 1) -> RouteConfig:
    return RouteConfig(arch="sm121", dcp=dcp, prompt_tokens=prompt_tokens, chunk_tokens=chunk_tokens, heads=64)


def truly(source: str, asked: RouteConfig, *, head_dim: int = 128) -> set[str]:
    """The kernels of all chunks of the prompt, each run."""
    kernels: set[str] = set()
    for end in range(asked.chunk_tokens, asked.prompt_tokens + 1, asked.chunk_tokens):
        rows, keys = asked.chunk_tokens, end // asked.compress_ratio
        run = run_tree(
            tree_of(source),
            {
                "q": f"(fp8[{rows}, {asked.heads}, {head_dim}], None)",
                "kv": f"(fp8[{keys}, {head_dim}], fp32[{keys}])",
                "local": str(keys // (asked.dcp or 1)),
            },
        )
        kernels |= set(run.kernels)
    return kernels


def answered(source: str, asked: RouteConfig) -> Route:
    return ask(source, scenario=scenario_with(VALUES), config=asked)


@pytest.mark.parametrize("itemsize", ["4", "torch.float32.itemsize"])
@pytest.mark.parametrize("limit", ["512 * 1024 * 1024", "1 << 29", "0x20000000", "512 * 2**20"])
@pytest.mark.parametrize("prompt_tokens", [8192, 65_536, 73_728, 450_560])
def test_a_byte_limit(limit: str, itemsize: str, prompt_tokens: int) -> None:
    # 8,192 rows of 16,384 keys of 4 bytes are 512 MiB to the byte: the ninth chunk of 8,192 tokens is the first beyond.
    source = LIMITED.format(limit=limit, itemsize=itemsize)
    expected = {"fast"} if prompt_tokens <= 65_536 else {"fast", "slow"}
    asked = config(prompt_tokens)
    assert truly(source, asked) == expected
    route = answered(source, asked)
    assert set(route.kernels) == expected, told(route)
    assert route.exact is (len(expected) == 1), told(route)
    assert route.raises == (), told(route)


def test_later_chunks_take_another_kernel_under_a_condition() -> None:
    route = answered(LIMITED.format(limit="512 * 1024 * 1024", itemsize=4), config(450_560))
    for kernel in ("fast", "slow"):
        assert all(lines for lines in when(route, kernel)), told(route)
        assert any("chunks" in line for lines in when(route, kernel) for line in lines), told(route)
    assert guard(route, "logits_bytes > MAX_LOGITS_BYTES").value == "unknown"


@pytest.mark.parametrize("limit", ["1024", "8192 * 2048 * 4 - 1"])
def test_a_limit_that_every_chunk_breaks(limit: str) -> None:
    route = answered(LIMITED.format(limit=limit, itemsize=4), config(450_560))
    assert route.kernels == ("slow",) and route.exact, told(route)
    found = guard(route, "logits_bytes > MAX_LOGITS_BYTES")
    assert found.value == "true" and found.because, told(route)


@pytest.mark.parametrize("dcp", [1, 2, 4])
def test_the_shard_of_a_rank(dcp: int) -> None:
    source = """
from vllm.kernels import fast, slow

def entry(q, kv, local):
    return slow() if local > 28_160 else fast()
"""
    # 450,560 tokens are 112,640 keys, of which a rank has 28,160 at DCP 4.
    asked = config(450_560, dcp=dcp)
    expected = truly(source, asked)
    route = answered(source, asked)
    assert set(route.kernels) == expected, told(route)
    assert expected == ({"fast"} if dcp == 4 else {"fast", "slow"})


@pytest.mark.parametrize(
    ("test", "holds"),
    [
        ("q[0].shape[0] == 8192", True),
        ("q[0].shape[1] == 64", True),
        ("q[0].shape[2] != 128", False),
        ("q[0].dim() == 3", True),
        ("q[0].ndim == 2", False),
        ("len(q[0].shape) == 3", True),
        ("q[0].size(1) == 64", True),
        ("q[0].numel() == 8192 * 64 * 128", True),
        ("kv[0].shape[-1] % 64 == 0", True),
        ("kv[0].shape[0] == 0", False),
        ("kv[0].shape[0] >= 2048", True),
        ("min(8, q[0].shape[1]) == 8", True),
        ("max(1, kv[0].shape[0]) > 1", True),
        ("(q[0].shape[0], q[0].shape[1]) == (8192, 64)", True),
    ],
)
def test_shapes(test: str, holds: bool) -> None:
    source = f"""
from vllm.kernels import fast, slow

def entry(q, kv, local):
    return fast() if {test} else slow()
"""
    route = answered(source, config(16_384))
    expected = "fast" if holds else "slow"
    assert truly(source, config(16_384)) == {expected}
    assert route.kernels == (expected,) and route.exact, told(route)


def test_two_sizes_with_equal_bounds_are_not_one_size() -> None:
    # Nothing says that the two loops stand at the same place: both pairs happen.
    source = """
    from vllm.kernels import fast, slow

    def entry():
        for head in range(2):
            for key in range(2):
                if head == 0 and key == 1:
                    fast()
                if head == 1 and key == 0:
                    slow()
    """
    route = ask(source)
    assert {"fast", "slow"} <= set(route.kernels), told(route)


def test_a_loop_variable_changes_between_two_passes() -> None:
    source = """
    from vllm.kernels import fast, slow

    def entry():
        seen = False
        for start in range(0, 4, 2):
            if start == 0:
                seen = True
            elif seen:
                fast()
            else:
                slow()
    """
    route = ask(source)
    assert "fast" in route.kernels, told(route)


def test_sizes_that_move_apart_are_not_tied() -> None:
    # rows and keys of one chunk belong together; whether the answer knows it or not, it must not lose a kernel.
    source = """
from vllm.kernels import fast, slow, other

def entry(q, kv, local):
    rows, keys = q[0].shape[0], kv[0].shape[0]
    if keys > 4096:
        return slow() if keys > 8192 else fast()
    if keys > 2048:
        return other()
    return fast()
"""
    asked = config(65_536)
    route = answered(source, asked)
    assert truly(source, asked) <= set(route.kernels), told(route)


@pytest.mark.parametrize(("tokens", "expected"), [("4096", "fast"), ("4097", "slow")])
def test_a_ceiling_division(tokens: str, expected: str) -> None:
    source = """
    from vllm.kernels import fast, slow

    def cdiv(a, b):
        return -(a // -b)

    def entry(n):
        return fast() if cdiv(n, 64) <= 64 else slow()
    """
    check(source, expected, given={"n": tokens})


def test_a_chunk_plan_that_divides_to_zero_heads() -> None:
    source = """
    from vllm.kernels import fast, slow

    BUDGET = 64 * 1024 * 1024

    def head_chunk(rows, keys, heads):
        most = BUDGET // (max(1, rows * keys) * 4)
        return max(1, min(8, heads, most))

    def entry(rows, keys):
        if head_chunk(rows, keys, 64) == 1:
            return slow()
        return fast()
    """
    check(source, "slow", given={"rows": "8192", "keys": "112640"})
    check(source, "fast", given={"rows": "1024", "keys": "2048"})


def test_an_unknown_size_leaves_a_limit_open() -> None:
    source = LIMITED.format(limit="512 * 1024 * 1024", itemsize=4)
    route = ask(source, {"q": "(fp8[8192, 64, 128], None)"}, config=config(450_560))
    assert {"fast", "slow"} <= set(route.kernels) and not route.exact, told(route)


def test_every_guard_value_is_what_running_a_chunk_shows() -> None:
    source = LIMITED.format(limit="1024", itemsize=4)
    route = answered(source, config(8192))
    run = run_tree(
        tree_of(source), {"q": "(fp8[8192, 64, 128], None)", "kv": "(fp8[2048, 128], fp32[2048])", "local": "1"}
    )
    assert contradicted(route, [run]) >= 2, told(route)


def test_the_tree_is_asked_for_each_file_once_or_cheaply() -> None:
    files = tree_of(LIMITED.format(limit="1024", itemsize=4))
    tree = MemoryTree(files)
    from sparkdiag.routing.route import find_route

    find_route(tree, scenario=scenario_with(VALUES), config=config(8192))
    assert max(tree.read_paths.count(path) for path in tree.read_paths) == 1, tree.read_paths
