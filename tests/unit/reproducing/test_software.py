import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.environment.model import Environment
from sparkdiag.observing.gpu_facts import GpuFacts, GpuLook
from sparkdiag.reproducing import software
from sparkdiag.reproducing.software import allowed_variables, gpu_text, software_of

ENVIRONMENT = Environment(
    spec="lab", kind="lab", key="k", python="/nowhere/bin/python", serve_prefix=("x",), drop_env=("OMP_DROPPED",)
)


def test_a_gpu_in_words() -> None:
    known = GpuFacts(index=0, name="NVIDIA GB10", capability=(12, 1), memory_total_mib=131_072)
    assert gpu_text(known) == "NVIDIA GB10, SM121, 128.0 GiB"
    assert gpu_text(GpuFacts(index=0, name="NVIDIA GB10")) == "NVIDIA GB10"


def test_what_the_driver_says_and_what_the_server_does_not_inherit(monkeypatch: pytest.MonkeyPatch) -> None:
    look = GpuLook(gpus=(GpuFacts(index=0, name="A"),), driver="580.95", driver_cuda="13.0")
    monkeypatch.setattr(software, "look_at_gpus", lambda: look)
    found = software_of(ENVIRONMENT, inherited={"OMP_DROPPED": "1", "OMP_NUM_THREADS": "2", "HOME": "/home/me"})
    assert (found.gpus, found.driver, found.driver_cuda) == (("A",), "580.95", "13.0")
    assert found.variables == {"OMP_NUM_THREADS": "2"}


@pytest.mark.parametrize(
    "name",
    ["VLLM_API_KEY", "CUDA_SECRET", "NCCL_TOKEN", "TORCH_AUTH", "HF_TOKEN", "PATH", "VLLM_HOST_IP", "USER"],
)
def test_a_variable_of_another_kind_or_with_a_telling_name_is_not_kept(name: str) -> None:
    assert allowed_variables({name: "x"}) == {}


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=500), max_size=100))
def test_any_variables_are_bounded_and_on_one_line(inherited: dict[str, str]) -> None:
    kept = allowed_variables({f"VLLM_{name}": value for name, value in inherited.items()})
    assert len(kept) <= 60
    assert all(len(value) <= 200 and value.isprintable() for value in kept.values())
