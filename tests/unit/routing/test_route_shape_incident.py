"""The incident's dispatch and later shapes of it, in modules written for this: right, or honestly unknown."""

from __future__ import annotations

import textwrap

import pytest

from sparkdiag.evidence.route import Cache, Route, RouteConfig, SetValue
from sparkdiag.routing.route import find_route
from sparkdiag.scenario.route import RouteValue
from tests.fakes.source_trees import MemoryTree, scenario_with, tree_of
from tests.unit.routing.shape_case import guard, told, when

FUSED, SLOW, TRITON = "topk_fused", "logits_torch", "logits_triton"

VALUES = (
    RouteValue(name="dcp_world_size", value="dcp"),
    RouteValue(name="local_total_seq_lens", value="local_keys"),
    RouteValue(name="q_quant", value="fp8[rows, heads, head_dim]", cache="fp8"),
    RouteValue(name="q_scale", value="None", cache="fp8"),
    RouteValue(name="use_fp4_cache", value="False", cache="fp8"),
    RouteValue(name="q_quant", value="uint8[rows, heads, head_dim // 2]", cache="fp4"),
    RouteValue(name="q_scale", value="int32[rows, heads]", cache="fp4"),
    RouteValue(name="use_fp4_cache", value="True", cache="fp4"),
    RouteValue(name="k_quant", value="fp8[keys, head_dim]"),
    RouteValue(name="chunks", value="some"),
)

INCIDENT = """\
dcp_world_size <= 1
            and chunk.local_total_seq_lens > 0
            and not current_platform.is_xpu()
            and topk_indices(q, kv, out)"""

ENTRY = """
from vllm.indexer_metadata import limit_bytes
from vllm.platforms import current_platform
from vllm.utils.gemm import mqa_logits, topk_indices


def sparse_attn_indexer(metadata, q_quant, q_scale, k_cache, out, use_fp4_cache, candidate_blocks=None):
    dcp_world_size = metadata.dcp_world_size
    pcp_world_size = metadata.pcp_world_size
    assert (q_scale is not None) == use_fp4_cache
    for chunk in metadata.chunks:
        k_quant = k_cache.gather(chunk.slots)
        q = (q_quant, q_scale)
        kv = (k_quant, k_cache.scales)
        if (
            {guard}
        ):
            continue
        logits = mqa_logits(q, kv, clean_logits=False)
        out.copy_(logits)
"""

GEMM = """
from vllm.platforms import current_platform

_impl = None


def _lazy_init():
    global _impl
    if _impl is not None:
        return
    import deep_gemm
    _impl = getattr(deep_gemm, "fp8_fp4_mqa_logits", None)


def topk_indices(q, kv, out):
    if not (current_platform.is_cuda() and current_platform.is_device_capability_family(120) and q[1] is None):
        return False
    from vllm.models.ops import fallbacks

    return fallbacks.topk_fused(q, kv, out)


def mqa_logits(q, kv, clean_logits):
    if current_platform.is_device_capability_family(120) and q[1] is None:
        from vllm.models.ops import fallbacks

        return fallbacks.logits_sm12x(q, kv, clean_logits)
    _lazy_init()
    if _impl is None:
        raise RuntimeError("DeepGEMM is not there")
    return _impl(q, kv, clean_logits=clean_logits)
"""

FALLBACKS = """
import torch


def topk_fused(q, kv, out):
    out.copy_(torch.topk(q[0] @ kv[0], 512))
    return True


def logits_sm12x(q, kv, clean_logits):
    q_values, q_scale = q
    if {gate}q_scale is None and q_values.dim() == 3 and kv[0].dim() == 2:
        from vllm.models.ops.mqa import logits_triton

        return logits_triton(q_values, kv)
    return logits_torch(q, kv, clean_logits)


def logits_torch(q, kv, clean_logits):
    scores = torch.matmul(q[0], kv[0])
    if clean_logits:
        scores = scores.masked_fill(scores < 0, float("-inf"))
    return scores
"""

MQA = """
import torch
import triton


@triton.jit
def _kernel(q, k):
    pass


def logits_triton(q, kv):
    _kernel[(q.shape[0],)](q, kv[0])
    return q
"""

METADATA = """
import os
import vllm.envs as envs
from vllm.platforms import current_platform


def limit_bytes():
    small = current_platform.is_cuda() and current_platform.is_device_capability_family(120)
    return (256 if small else 512) * 1024 * 1024
"""


def incident(
    fused: str = INCIDENT,
    *,
    gate: str = "clean_logits and ",
    dcp: int | None = 1,
    arch: str | None = "sm121",
    cache: Cache = "fp8",
    prompt_tokens: int = 450_560,
    sets: dict[str, str] | None = None,
    extra: str = "",
) -> Route:
    entry = ENTRY.format(guard=fused)
    if extra:
        entry = entry.replace("        if (\n", textwrap.indent(extra, " " * 8) + "\n        if (\n", 1)
    files = tree_of(
        {
            "vllm/layers/indexer.py": entry,
            "vllm/utils/gemm.py": GEMM,
            "vllm/models/ops/fallbacks.py": FALLBACKS.format(gate=gate),
            "vllm/models/ops/mqa.py": MQA,
            "vllm/indexer_metadata.py": METADATA,
        }
    )
    scenario = scenario_with(
        VALUES,
        entry="sparse_attn_indexer",
        modules=("vllm.layers.indexer",),
        kernels=(FUSED, SLOW, TRITON),
    )
    config = RouteConfig(
        arch=arch,
        dcp=dcp,
        cache=cache,
        prompt_tokens=prompt_tokens,
        set=tuple(SetValue(name=name, value=value) for name, value in (sets or {}).items()),
    )
    return find_route(MemoryTree(files), scenario=scenario, config=config)


def exactly(route: Route, kernel: str) -> None:
    assert route.kernels == (kernel,) and route.exact, told(route)


def test_the_incident() -> None:
    exactly(incident(dcp=1), FUSED)
    exactly(incident(dcp=2), SLOW)


def test_why_the_incident_stalls() -> None:
    route = incident(dcp=2)
    found = guard(route, "dcp_world_size <= 1")
    assert (found.path, found.value) == ("vllm/layers/indexer.py", "false")
    assert "--dcp 2" in found.because
    found = guard(route, "clean_logits")
    assert (found.path, found.value) == ("vllm/models/ops/fallbacks.py", "false")
    assert "clean_logits=False" in found.because, told(route)
    family = [one for one in route.guards if "is_device_capability_family" in one.source]
    assert family and all(one.value == "true" and "--arch sm121" in one.because for one in family)
    trail = [step.source for step in route.reached[0].trail]
    assert [step for step in trail if step.startswith("mqa_logits(")], told(route)
    # The fused call stands to the right of what is false: it is not on the way.
    assert not [step for step in trail if step.startswith("topk_indices(")], trail


def test_an_unknown_dcp_size_gives_both_with_their_conditions() -> None:
    route = incident(dcp=None)
    assert set(route.kernels) == {FUSED, SLOW} and not route.exact, told(route)
    for kernel in (FUSED, SLOW):
        assert any("dcp" in line for lines in when(route, kernel) for line in lines), told(route)


def test_the_fix_drops_the_condition() -> None:
    exactly(incident(gate="", dcp=2), TRITON)
    exactly(incident(gate="", dcp=1), FUSED)


@pytest.mark.parametrize("dcp", [1, 2, 8])
def test_before_there_was_a_dcp_guard(dcp: int) -> None:
    exactly(incident("not current_platform.is_xpu() and topk_indices(q, kv, out)", dcp=dcp), FUSED)


@pytest.mark.parametrize("dcp", [1, 2])
def test_before_there_was_a_fused_call(dcp: int) -> None:
    exactly(incident("False", dcp=dcp), SLOW)


@pytest.mark.parametrize("arch", ["sm90", "sm100"])
@pytest.mark.parametrize("dcp", [1, 2])
def test_other_devices_reach_deep_gemm_or_say_what_they_do_not_know(arch: str, dcp: int) -> None:
    route = incident(arch=arch, dcp=dcp)
    assert not {FUSED, SLOW, TRITON} & set(route.kernels), told(route)
    for found in route.reached:
        assert found.external or found.function == "mqa_logits", told(route)
    assert route.reached or route.not_understood


def test_an_unknown_architecture() -> None:
    route = incident(arch=None, dcp=2)
    assert SLOW in route.kernels and FUSED not in route.kernels and not route.exact, told(route)


def test_fp4_queries_go_past_the_fallback() -> None:
    route = incident(cache="fp4", dcp=1)
    assert not {FUSED, SLOW, TRITON} & set(route.kernels), told(route)


def test_no_local_keys() -> None:
    exactly(incident(dcp=1, sets={"local_total_seq_lens": "0"}), SLOW)
    route = incident(dcp=1, sets={"local_total_seq_lens": "unknown"})
    assert set(route.kernels) == {FUSED, SLOW}, told(route)


def honest(route: Route, *, truly: set[str]) -> None:
    """Every kernel that is reached for some value of the unknown is there; one is claimed only if it is one."""
    assert truly <= set(route.kernels) or route.not_understood, told(route)
    if route.exact:
        assert set(route.kernels) == truly, told(route)
    assert set(route.kernels) <= {FUSED, SLOW, TRITON}, told(route)


@pytest.mark.parametrize(
    ("fused", "dcp", "truly"),
    [
        (f"candidate_blocks is None and {INCIDENT}", 1, {FUSED, SLOW}),
        (f"candidate_blocks is None and {INCIDENT}", 2, {SLOW}),
        (f"{INCIDENT} and candidate_blocks is None", 2, {SLOW}),
        ("chunk.global_seq_lens > 0 and topk_indices(q, kv, out)", 1, {FUSED, SLOW}),
        ("max(chunk.global_seq_lens) > 65536 and topk_indices(q, kv, out)", 2, {FUSED, SLOW}),
        ("(chunk.global_seq_lens > 0).all() and dcp_world_size <= 1 and topk_indices(q, kv, out)", 2, {SLOW}),
        ("pcp_world_size * dcp_world_size <= 1 and topk_indices(q, kv, out)", 1, {FUSED, SLOW}),
        ("pcp_world_size <= 1 and dcp_world_size <= 1 and topk_indices(q, kv, out)", 1, {FUSED, SLOW}),
        ("pcp_world_size <= 1 and dcp_world_size <= 1 and topk_indices(q, kv, out)", 2, {SLOW}),
        ("max(pcp_world_size, dcp_world_size) == 1 and topk_indices(q, kv, out)", 1, {FUSED, SLOW}),
        ("metadata.prefers_fused(chunk) and topk_indices(q, kv, out)", 1, {FUSED, SLOW}),
        ("(dcp_world_size, pcp_world_size) == (1, 1) and topk_indices(q, kv, out)", 2, {SLOW}),
        ("dcp_world_size in metadata.sizes and topk_indices(q, kv, out)", 1, {FUSED, SLOW}),
        ("(dcp_world_size > 1 or topk_indices(q, kv, out)) and dcp_world_size == 1", 2, {SLOW}),
    ],
)
def test_later_shapes(fused: str, dcp: int, truly: set[str]) -> None:
    honest(incident(fused, dcp=dcp), truly=truly)


@pytest.mark.parametrize("dcp", [1, 2])
def test_a_guard_on_the_bytes_of_the_logits(dcp: int) -> None:
    # 256 MiB of logits are 8,192 keys for 8,192 rows: the first four chunks of 8,192 tokens stay at or below.
    extra = "logits_bytes = q_quant.shape[0] * k_quant.shape[0] * 4"
    fused = "logits_bytes > limit_bytes() and topk_indices(q, kv, out)"
    honest(incident(fused, dcp=dcp, extra=extra), truly={FUSED, SLOW})
    exactly(incident(fused, dcp=dcp, extra=extra, prompt_tokens=32_768), SLOW)
    fused = f"logits_bytes > 1024 and {INCIDENT}"
    exactly(incident(fused, dcp=dcp, extra=extra), FUSED if dcp == 1 else SLOW)


def test_a_loop_with_another_continue_before() -> None:
    extra = "if chunk.empty:\n    continue"
    route = incident(dcp=2, extra=extra)
    assert route.kernels == (SLOW,), told(route)
    assert when(route, SLOW) in ([()], [("not chunk.empty",)]) or len(when(route, SLOW)) == 1, told(route)


def test_the_result_of_the_fused_call_kept_in_a_name() -> None:
    extra = "done = dcp_world_size <= 1 and topk_indices(q, kv, out)"
    exactly(incident("done", dcp=1, extra=extra), FUSED)
    exactly(incident("done", dcp=2, extra=extra), SLOW)
    extra = "done = False\nif dcp_world_size <= 1:\n    done = topk_indices(q, kv, out)"
    exactly(incident("done", dcp=1, extra=extra), FUSED)
    exactly(incident("done", dcp=2, extra=extra), SLOW)
