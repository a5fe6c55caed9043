"""What counts as a kernel, which of several, and how the answer tells the way to it."""

import pytest

from tests.fakes.source_trees import ask, scenario_with
from tests.unit.routing.shape_case import check, guard, told

HEAD = "\nfrom vllm.kernels import fast, slow, other\n"


def test_a_kernel_in_an_argument_runs() -> None:
    check(HEAD + "\ndef entry():\n    return print_nothing(fast())\n\ndef print_nothing(x):\n    return None\n", "fast")
    route = ask(HEAD + "\ndef entry(log):\n    log.debug(fast())\n")
    assert "fast" in route.kernels, told(route)


def test_a_kernel_that_is_only_named_does_not_run() -> None:
    route = ask(HEAD + "\ndef entry():\n    unused = slow\n    return fast()\n")
    assert route.kernels == ("fast",) and route.exact, told(route)


@pytest.mark.parametrize(
    "body",
    [
        "return torch.matmul(x, y)",
        "return x @ y",
        "logits_kernel[(8,)](x, y)\n    return x",
        "return torch.ops._C.scores(x, y)",
        "return torch.nn.functional.linear(x, y)",
    ],
)
def test_a_function_that_runs_an_op_itself_is_a_kernel(body: str) -> None:
    source = f"""
import torch
import triton

@triton.jit
def logits_kernel(x_ptr, y_ptr):
    pass

def scores(x, y):
    {body}

def entry(x, y):
    return scores(x, y)
"""
    route = ask(source, scenario=scenario_with(kernels=()))
    assert len(route.kernels) == 1, told(route)
    # The op itself counts as the kernel where its source is outside.
    assert route.kernels == ("scores",) or route.reached[0].external or "kernel" in route.kernels[0], told(route)
    assert route.reached[0].path == "vllm/dispatch.py"


def test_allocations_and_shapes_are_no_kernels() -> None:
    source = (
        HEAD
        + """
import torch

def entry(x, n):
    out = torch.empty((n, 4), dtype=torch.float32, device=x.device)
    out = torch.zeros(n)
    mask = torch.full((n,), 1)
    offsets = torch.arange(0, n)
    y = x.view(torch.int8).reshape(-1, 4).contiguous().to(torch.float32)
    rows = x.shape[0]
    z = x.unsqueeze(0).transpose(0, 1).squeeze(-1)
    return fast(y, z, out, offsets, mask, rows)
"""
    )
    check(source, "fast", given={"n": "4", "x": "fp8[8, 4]"})


def test_support_ops_are_not_followed() -> None:
    source = (
        HEAD
        + """
from vllm import ops

def entry(k):
    ops.cache_insert(k)
    logits = fast(k)
    ops.top_k_rows(logits)
"""
    )
    files = {
        "vllm/dispatch.py": source,
        "vllm/ops.py": """
        import torch

        def cache_insert(k):
            torch.ops._C.cache_insert(k)

        def top_k_rows(logits):
            torch.ops._C.top_k(logits)
        """,
    }
    route = ask(files, scenario=scenario_with(support=("cache_*", "top_k_*")))
    assert route.kernels == ("fast",) and route.exact, told(route)
    route = ask(files, scenario=scenario_with(support=("nothing",)))
    assert len(route.kernels) == 3 and not route.exact, told(route)


def test_the_outermost_listed_kernel_counts() -> None:
    source = """
    import torch

    def inner(x):
        return torch.matmul(x, x)

    def outer(x):
        if x.shape[0] > 4:
            return inner(x)
        return torch.matmul(x, x)

    def entry(x):
        return outer(x)
    """
    route = ask(source, scenario=scenario_with(kernels=("outer", "inner")))
    assert route.kernels == ("outer",) and route.exact, told(route)
    assert (route.reached[0].path, route.reached[0].line) == ("vllm/dispatch.py", 6)


def test_the_stall_path_is_marked() -> None:
    route = check(HEAD + "\ndef entry():\n    return slow()\n", "slow")
    assert [found.stall for found in route.reached] == ["torch-fallback"]
    assert route.reached[0].path == "vllm/kernels.py"
    route = check(HEAD + "\ndef entry():\n    return fast()\n", "fast")
    assert [found.stall for found in route.reached] == [None]


def test_the_trail_tells_calls_with_what_they_pass() -> None:
    source = (
        HEAD
        + """
def gate(x, clean_logits):
    if clean_logits:
        return fast(x)
    return slow(x)

def entry(x):
    return gate(x, clean_logits=False)
"""
    )
    route = check(source, "slow", open_={"x": ("1",)})
    found = guard(route, "clean_logits")
    assert (found.function, found.line, found.value) == ("gate", 4, "false")
    assert "clean_logits=False" in found.because, told(route)
    trail = route.reached[0].trail
    assert [step.kind for step in trail if "gate" in step.source] == ["call"]
    call = next(step for step in trail if "gate" in step.source)
    assert (call.depth, call.function, call.line) == (0, "entry", 9) and "clean_logits=False" in call.source
    assert [step.depth for step in trail if step.source == "clean_logits"] == [1]
