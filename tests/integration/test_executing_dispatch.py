"""The dynamic twin on dispatch that is known: small trees of each shape, and the lab's own history."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkdiag.environment.blobs import BlobReader
from sparkdiag.environment.clone import open_clone
from sparkdiag.errors import EnvironmentFault, RouteError
from sparkdiag.evidence.route import RouteConfig
from sparkdiag.executing.session import execute, execute_all
from sparkdiag.lab.history import ensure_lab_repo
from sparkdiag.routing.route import find_route
from sparkdiag.scenario.load import load_scenario
from tests.fakes.source_trees import MemoryTree, scenario_with, tree_of
from tests.integration.executing_case import entry_call, run, torch_python

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

SIZES = {"q": "fp8[rows, heads, head_dim]", "k": "fp8[keys, head_dim]"}
BY_SIZE = """
import torch
from vllm.kernels import fast, slow

LIMIT_BYTES = 512 * 1024 * 1024

def entry(q, k):
    if q.shape[0] * k.shape[0] * torch.float32.itemsize > LIMIT_BYTES:
        return slow(q.float(), k.float().t())
    return fast(q.float(), k.float().t())
"""


def test_a_byte_limit_sees_the_real_sizes_and_no_memory_is_used() -> None:
    scenario = scenario_with(SIZES)
    large = entry_call(run(BY_SIZE, scenario=scenario, config=RouteConfig(prompt_tokens=450_560), memory_mib=256))
    small = entry_call(run(BY_SIZE, scenario=scenario, config=RouteConfig(prompt_tokens=8192), memory_mib=256))
    assert (large.reached, small.reached) == (("slow",), ("fast",))
    assert (large.raised, small.raised) == (None, None)


def test_triton_launches_ops_and_external_kernels_are_told_by_their_names() -> None:
    source = """
    import torch
    from vllm.triton_utils import triton, tl
    import deep_gemm

    _impl = None

    @triton.jit
    def _kernel(x, BLOCK: tl.constexpr):
        tl.store(x, 1)

    def launched(x):
        _kernel[(triton.cdiv(x.shape[0], 128),)](x, BLOCK=128)
        return x

    def entry(q):
        global _impl
        _impl = deep_gemm.fp8_mqa_logits
        logits = _impl(launched(q), clean_logits=False)
        torch.ops._C.rotate(logits, logits.shape[0], logits.stride(0))
        torch.ops._C.top_k_per_row_prefill(logits)
    """
    tree = {"vllm/dispatch.py": source, "vllm/triton_utils.py": "raise RuntimeError('it would load Triton')"}
    call = entry_call(run(tree, scenario=scenario_with(SIZES, support=("torch.ops._C.*top_k*",))))
    assert call.reached == ("launched", "_impl", "torch.ops._C.rotate")
    assert call.raised is None
    assert "DeepGEMM is installed" in call.because


def test_a_decision_on_contents_is_said_to_be_unknown_and_not_made_up() -> None:
    source = """
    from vllm.kernels import fast, slow

    def entry(q):
        if (q.float() > 0).all():
            return fast(q)
        return slow(q)
    """
    call = entry_call(run(source, scenario=scenario_with(SIZES)))
    assert call.reached == ()
    assert call.raised is None
    assert "a tensor's contents" in call.because


def test_a_difference_from_the_source_is_shown_with_both_names() -> None:
    source = "from vllm.kernels import fast, slow\ndef entry(q):\n    return fast(q.float(), q.float())\n"
    scenario = scenario_with({"q": "fp8[rows, rows]"})
    config = RouteConfig(dcp=1, arch="sm121")
    other = find_route(MemoryTree(tree_of(source.replace("fast(q", "slow(q"))), scenario=scenario, config=config)
    assert other.kernels == ("slow",)
    call = entry_call(run(source, scenario=scenario, config=config, route=other))
    assert call.agrees is False
    assert "executed: fast" in call.because
    assert "source: slow" in call.because


def test_a_syntax_error_is_told_with_its_line_and_the_entrys_absence_as_an_error() -> None:
    broken = {"vllm/dispatch.py": "from vllm.b import x\ndef entry():\n    return x()\n", "vllm/b.py": "def x(:\n"}
    assert "SyntaxError: vllm/b.py:1" in (entry_call(run(broken)).raised or "")
    with pytest.raises(RouteError, match="has no function entry"):
        run("def other():\n    pass\n")


def test_an_interpreter_without_torch_and_one_that_is_none_say_how_to_give_one(tmp_path: Path) -> None:
    import sys

    tree = MemoryTree(tree_of("def entry():\n    pass\n"))
    bare = execute(tree, scenario=scenario_with(), config=RouteConfig(), route=None, python=Path(sys.executable))
    if bare.problem is not None:  # else this test's own interpreter has torch
        assert "no torch" in bare.problem
        assert "--env existing:PYTHON" in bare.problem
    with pytest.raises(EnvironmentFault, match="cannot be started"):
        execute(tree, scenario=scenario_with(), config=RouteConfig(), route=None, python=tmp_path / "none")


@pytest.mark.parametrize(
    ("tag", "dcp1", "dcp2"),
    [
        ("fallback-only", "_fp8_mqa_logits_torch", "_fp8_mqa_logits_torch"),
        ("fused", "fp8_mqa_topk_triton", "_fp8_mqa_logits_torch"),
        ("incident", "fp8_mqa_topk_triton", "_fp8_mqa_logits_torch"),
        ("gate-dropped", "fp8_mqa_topk_triton", "fp8_mqa_logits_triton"),
    ],
)
def test_the_labs_history_does_what_its_source_says(tag: str, dcp1: str, dcp2: str, tmp_path: Path) -> None:
    scenario = load_scenario("lab")
    configs = [RouteConfig(dcp=dcp, arch="sm121") for dcp in (1, 2)]
    reader = BlobReader(open_clone(ensure_lab_repo(tmp_path)))
    try:
        tree = reader.named(tag)
        asked = [(config, find_route(tree, scenario=scenario, config=config)) for config in configs]
        answers = execute_all(tree, scenario=scenario, asked=asked, python=torch_python())
    finally:
        reader.close()
    assert [entry_call(answer).reached for answer in answers] == [(dcp1,), (dcp2,)]
    assert all(entry_call(answer).agrees for answer in answers)
    contract = {
        call.clean_logits: call.reached for call in answers[1].calls if call.function == "_fp8_mqa_logits_sm12x"
    }
    if tag == "gate-dropped":
        assert contract == {True: ("fp8_mqa_logits_triton",), False: ("fp8_mqa_logits_triton",)}
    if tag == "incident":
        assert contract == {True: ("fp8_mqa_logits_triton",), False: ("_fp8_mqa_logits_torch",)}
