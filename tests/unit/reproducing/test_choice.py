"""Which environment and scenario a plain command means."""

from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.reproducing.choice import INCIDENT_SCENARIO, LAB_ENVIRONMENT, LAB_SCENARIO, choose


def test_nothing_given_and_no_gpu_is_the_lab_and_says_so() -> None:
    choice = choose(env=None, scenario=None, configured_env=None, gpus=0)
    assert (choice.env_spec, choice.scenario) == (LAB_ENVIRONMENT, LAB_SCENARIO)
    assert "no GPU" in choice.because and "lab" in choice.because


def test_a_gpu_without_an_environment_is_still_the_lab_and_says_what_is_missing() -> None:
    choice = choose(env=None, scenario=None, configured_env=None, gpus=2)
    assert choice.env_spec == LAB_ENVIRONMENT
    assert "2 GPU" in choice.because and "configured" in choice.because


def test_the_config_file_decides_when_nothing_was_asked() -> None:
    choice = choose(env=None, scenario=None, configured_env="existing:/x/python", gpus=2)
    assert (choice.env_spec, choice.scenario) == ("existing:/x/python", INCIDENT_SCENARIO)


@given(
    env=st.sampled_from(["lab", "existing:/x", "release:0.31.0"]),
    scenario=st.one_of(st.none(), st.just("mine.toml")),
    configured=st.one_of(st.none(), st.just("existing:/y")),
    gpus=st.integers(0, 8),
)
def test_what_was_asked_always_wins(env: str, scenario: str | None, configured: str | None, gpus: int) -> None:
    choice = choose(env=env, scenario=scenario, configured_env=configured, gpus=gpus)
    assert choice.env_spec == env
    assert scenario is None or choice.scenario == scenario
