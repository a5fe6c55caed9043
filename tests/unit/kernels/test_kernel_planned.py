"""The whole answer against its parts, call by call."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkdiag.evidence.kernels import Asked, KernelPlan
from sparkdiag.kernels.gpus import known_gpus
from sparkdiag.kernels.plan import chunk_plan
from sparkdiag.kernels.planned import planned
from sparkdiag.kernels.prompt import prompt_chunks
from sparkdiag.kernels.work import fallback_kernels

BUDGET = 64 << 20
INCIDENT = Asked(rows=8192, keys=112_640, heads=64, head_dim=128, budget_bytes=BUDGET, matmul="fp32")


def prompt(tokens: int, **more: int) -> Asked:
    sizes = {"rows": 8192, "chunk_tokens": 8192, "compress_ratio": 4, "dcp": 1} | more
    keys = -(-(tokens // sizes["compress_ratio"]) // sizes["dcp"])
    return Asked(heads=64, head_dim=128, budget_bytes=BUDGET, matmul="fp32", prompt_tokens=tokens, **sizes, keys=keys)


def test_the_incident_s_call() -> None:
    found = planned(INCIDENT, limits_mib=(None, 512))
    assert (found.head_chunk_size, found.k_chunk_size, found.matmuls) == (1, 2048, 3520)
    whole, split = found.cuts
    assert (whole.calls, whole.rows, whole.matmuls) == (1, 8192, 3520)
    assert (split.calls, split.rows, split.k_chunk_size) == (7, 1191, 14_086)
    assert split.matmuls == 6 * 64 * 8 + 64 * 8 == 3584
    assert whole.matmul_flops == split.matmul_flops == found.fast_flops == 2 * 8192 * 112_640 * 64 * 128


def test_the_incident_s_prompt() -> None:
    found = planned(prompt(450_560), limits_mib=(None,))
    (cut,) = found.cuts
    assert len(cut.chunks) == cut.calls == 55
    assert (found.head_chunk_size, found.k_chunk_size, found.matmuls) == (1, 2048, 3520)
    assert (found.collapse.beyond_keys, found.collapse.first_chunk, found.collapse.chunks) == (1024, 1, 55)
    assert cut.matmuls == sum(64 * -(-2048 * number // 2048) for number in range(1, 56))


def test_dcp_halves_the_keys_of_a_rank() -> None:
    found = planned(prompt(450_560, dcp=2), limits_mib=(None,))
    assert found.cuts[0].chunks[-1].keys == 56_320
    assert found.matmuls == 1792
    assert (found.collapse.first_chunk, found.collapse.tokens, found.collapse.chunks) == (2, 16_384, 54)


def test_the_limit_is_held_against_the_keys_of_all_ranks() -> None:
    one, two = (planned(prompt(450_560, dcp=dcp), limits_mib=(512,)).cuts[0] for dcp in (1, 2))
    assert [chunk.calls for chunk in one.chunks] == [chunk.calls for chunk in two.chunks]


def test_a_short_end_is_not_the_chunk_that_is_told_of() -> None:
    found = planned(prompt(450_561), limits_mib=(None,))
    assert found.cuts[0].chunks[-1].rows == 1
    assert (found.head_chunk_size, found.k_chunk_size, found.matmuls) == (1, 2048, 3520)


@settings(max_examples=40)
@given(
    tokens=st.integers(4, 3000),
    chunk_tokens=st.integers(50, 3000),
    dcp=st.integers(1, 3),
    layers=st.integers(1, 3),
    limit_mib=st.sampled_from([None, 1]),
    budget=st.integers(1, 1 << 22),
)
def test_totals_are_the_sum_of_the_calls(
    tokens: int, chunk_tokens: int, dcp: int, layers: int, limit_mib: int | None, budget: int
) -> None:
    asked = prompt(tokens, chunk_tokens=chunk_tokens, rows=min(tokens, chunk_tokens), dcp=dcp, layers=layers)
    asked = asked.model_copy(update={"heads": 5, "head_dim": 16, "budget_bytes": budget})
    matmuls = launches = flops = moved = calls = 0
    for chunk in prompt_chunks(prompt_tokens=tokens, chunk_tokens=chunk_tokens, compress_ratio=4, dcp=dcp):
        most = chunk.rows if limit_mib is None else max(1, (limit_mib << 20) // 4 // chunk.all_keys)
        for start in range(0, chunk.rows, most):
            rows = min(most, chunk.rows - start)
            plan = chunk_plan(rows=rows, keys=chunk.keys, heads=5, budget_bytes=budget)
            calls, matmuls = calls + layers, matmuls + layers * plan.matmuls
            for kernel in fallback_kernels(plan, head_dim=16):
                launches += layers * kernel.count
                flops += layers * kernel.count * kernel.matmul_flops
                moved += layers * kernel.count * (kernel.read + kernel.written)
    cut = planned(asked, limits_mib=(limit_mib,)).cuts[0]
    assert (cut.calls, cut.matmuls, cut.launches) == (calls, matmuls, launches)
    assert (cut.matmul_flops, cut.bytes_moved) == (flops, moved)


@pytest.mark.parametrize("asked", [INCIDENT, prompt(100_000), prompt(100_000, dcp=2)])
def test_the_fast_path_s_floor_is_the_lower_everywhere(asked: Asked) -> None:
    found = planned(asked, limits_mib=(None, 512), gpus=known_gpus())
    for cut in found.cuts:
        assert [floor.gpu for floor in cut.floors] == [gpu.name for gpu in known_gpus()]
        for floor in cut.floors:
            assert 0 < floor.fast_ms < floor.torch.floor_ms <= floor.torch.uncached_ms
            assert floor.fast_bound == "compute"


def test_one_narrow_head_is_bound_by_the_logits_it_writes() -> None:
    narrow = INCIDENT.model_copy(update={"heads": 1, "head_dim": 1})
    found = planned(narrow, limits_mib=(None,), gpus=known_gpus())
    assert {floor.fast_bound for floor in found.cuts[0].floors} == {"memory"}


def test_only_what_lies_inside_the_window_counts_for_the_fast_path() -> None:
    half = planned(INCIDENT.model_copy(update={"window_keys": 56_320}), limits_mib=(None,), gpus=known_gpus())
    whole = planned(INCIDENT, limits_mib=(None,), gpus=known_gpus())
    assert 2 * half.fast_flops == whole.fast_flops
    assert half.cuts[0].matmul_flops == whole.cuts[0].matmul_flops
    for narrow, wide in zip(half.cuts[0].floors, whole.cuts[0].floors, strict=True):
        assert narrow.fast_ms == pytest.approx(wide.fast_ms / 2, rel=0.02)
        assert narrow.torch == wide.torch


def test_it_survives_a_round_trip_through_json() -> None:
    found = planned(prompt(450_000, dcp=2, layers=3), limits_mib=(None, 512), gpus=known_gpus())
    assert KernelPlan.model_validate_json(found.model_dump_json(by_alias=True)) == found
