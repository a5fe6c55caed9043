"""Both logits kernels and both top-k paths against float64."""

import numpy as np
import pytest
import reference
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sparklab import sm12x_deep_gemm_fallbacks as fallbacks
from sparklab.compiled import FP8_VALUES
from sparklab.sm12x_mqa import fp8_mqa_logits_triton, fp8_mqa_topk_triton
from sparklab.topk import top_k_per_row

SHAPES = st.fixed_dictionaries(
    {
        "rows": st.integers(1, 9),
        "heads": st.sampled_from([1, 3, 4, 9]),
        "dims": st.sampled_from([8, 48, 64]),
        "keys": st.sampled_from([1, 2, 63, 127, 128, 129, 300]),
        "windowed": st.booleans(),
    }
)


def fast(q, kv, weights, starts, ends):
    return fp8_mqa_logits_triton(q, kv, weights, starts, ends)


def fallback(q, kv, weights, starts, ends):
    return fallbacks._fp8_mqa_logits_torch(q, kv, weights, starts, ends, True)


def assert_same(got, wanted):
    got = got.numpy()
    assert not np.isnan(got).any()
    outside = np.isneginf(wanted)
    assert (np.isneginf(got) == outside).all(), "the -inf masks differ"
    scale = max(1.0, np.abs(wanted[~outside]).max(initial=0))
    assert np.abs(got[~outside] - wanted[~outside]).max(initial=0) <= 5e-6 * scale


@pytest.mark.parametrize("kernel", [fast, fallback])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), shape=SHAPES)
def test_logits_match_float64(kernel, seed, shape):
    operands = reference.operands(seed, **shape)
    assert_same(kernel(*operands), reference.logits(*operands))


@pytest.mark.parametrize("kernel", [fast, fallback])
def test_nan_in_an_operand_is_not_hidden(kernel):
    q, (keys, scales), weights, starts, ends = reference.operands(0, rows=2, heads=2, dims=8, keys=5, windowed=False)
    scales[3] = float("nan")
    logits = kernel(q, (keys, scales), weights, starts, ends)
    assert logits[:, 3].isnan().all()
    assert not logits[:, [0, 1, 2, 4]].isnan().any()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), shape=SHAPES, count=st.sampled_from([1, 4, 8]), integers=st.booleans())
def test_fused_topk_is_logits_then_topk_is_the_reference(seed, shape, count, integers):
    operands = reference.operands(seed, **shape, integers=integers)
    starts, ends = operands[3:]
    rows = shape["rows"]
    fused = torch.empty((rows, count)), torch.empty((rows, count), dtype=torch.int32)
    split = torch.empty((rows, count)), torch.empty((rows, count), dtype=torch.int32)
    fp8_mqa_topk_triton(*operands, *fused)
    logits = fp8_mqa_logits_triton(*operands)
    top_k_per_row(logits, starts, ends, *split)
    assert torch.equal(fused[0], split[0])
    assert torch.equal(fused[1], split[1])
    # Against float32 scores, so that a tie is a tie for both.
    scores, indices = reference.topk(logits.numpy(), starts, count)
    assert (split[1].numpy() == indices).all()
    assert (split[0].numpy() == scores).all()


def test_topk_reads_nothing_outside_its_bounds():
    starts, ends = torch.tensor([2], dtype=torch.int32), torch.tensor([4], dtype=torch.int32)
    logits = torch.tensor([[9.0, float("nan"), 1.0, 2.0, 9.0, float("inf")]])
    scores, indices = torch.empty((1, 3)), torch.empty((1, 3), dtype=torch.int32)
    top_k_per_row(logits, starts, ends, scores, indices)
    assert scores.tolist() == [[2.0, 1.0, float("-inf")]]
    assert indices.tolist() == [[1, 0, -1]]


def test_the_unclean_fallback_agrees_inside_the_bounds():
    operands = reference.operands(5, rows=7, heads=4, dims=48, keys=40, windowed=True)
    unclean = fallbacks._fp8_mqa_logits_torch(*operands, False).numpy()
    wanted = reference.logits(*operands)
    inside = ~np.isneginf(wanted)
    assert inside.any()
    assert np.allclose(unclean[inside], wanted[inside], rtol=1e-5, atol=1e-5)


@settings(max_examples=80, deadline=None)
@given(rows=st.integers(1, 9000), heads=st.integers(1, 64), keys=st.integers(1, 120_000))
def test_the_chunk_plan_is_the_incidents(rows, heads, keys):
    budget = fallbacks.SCORE_BUDGET_BYTES
    head_chunk = fallbacks._fp8_mqa_logits_head_chunk_size(rows, heads, keys)
    k_chunk = fallbacks._fp8_mqa_logits_k_chunk_size(rows, head_chunk, keys)
    assert head_chunk == max(1, min(budget // (rows * keys * 4), 8, heads))
    assert k_chunk == max(1, min(budget // (rows * head_chunk * 4), keys))


@pytest.mark.parametrize("clean_logits", [True, False])
def test_both_contracts_reach_the_fast_kernel(monkeypatch, clean_logits):
    q, kv, weights, starts, ends = reference.operands(1, rows=2, heads=4, dims=48, keys=5, windowed=False)
    monkeypatch.setattr(fallbacks, "_fp8_mqa_logits_torch", lambda *_: pytest.fail("fell back"))
    logits = fallbacks._fp8_mqa_logits_sm12x((q, None), kv, weights, starts, ends, clean_logits)
    assert_same(logits, reference.logits(q, kv, weights, starts, ends))


def test_a_query_scale_falls_back(monkeypatch):
    q, kv, weights, starts, ends = reference.operands(1, rows=2, heads=4, dims=48, keys=5, windowed=False)
    monkeypatch.setattr(fallbacks, "fp8_mqa_logits_triton", lambda *_: pytest.fail("took the fast kernel"))
    logits = fallbacks._fp8_mqa_logits_sm12x((q, torch.ones(2)), kv, weights, starts, ends, True)
    assert_same(logits, reference.logits(q, kv, weights, starts, ends))


def test_the_fp8_table_is_torchs():
    table = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float().numpy()
    assert np.array_equal(FP8_VALUES, table, equal_nan=True)
