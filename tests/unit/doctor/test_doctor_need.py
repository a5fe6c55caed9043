"""Only the checks that the scenario needs."""

from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.doctor.need import Asked, Known, needed
from sparkdiag.environment.spec import EnvironmentSpec, ExistingSpec, LabSpec, ReleaseSpec
from sparkdiag.scenario.load import load_scenario

LAB = load_scenario("lab")
INCIDENT = load_scenario("sm12x-mqa-prefill")
EXISTING = ExistingSpec(target="/venv")
ALWAYS = {
    "dcp-tp", "sample-child", "sample-other", "priority", "memory", "cores", "shared-memory", "disk", "port",
    "open-files", "clock", "machine-lock", "leftovers",
}  # fmt: skip


def names(asked: Asked, **known: object) -> set[str]:
    return set(needed(asked, Known.model_validate(known)))


def test_the_built_lab_needs_git_and_neither_gpu_nor_uv_nor_a_clone() -> None:
    asked = Asked(scenario=LAB, spec=LabSpec(), repo="/vllm")
    assert names(asked, python="/p", built=True, cpu_only=True) == ALWAYS | {"git", "sample-environment"}


def test_what_must_be_built_needs_uv() -> None:
    assert names(Asked(scenario=LAB, spec=LabSpec()), python="/p") == ALWAYS | {"git", "uv", "sample-environment"}
    release = Asked(scenario=INCIDENT, spec=ReleaseSpec(version="0.32.0"))
    assert names(release, python="/p") == ALWAYS | {"uv", "model", "sample-environment"}


def test_a_gpu_environment_needs_gpus_and_its_source() -> None:
    asked = Asked(scenario=INCIDENT, spec=EXISTING)
    assert names(asked, python="/p", built=True, import_root="/s") == ALWAYS | {
        "sample-environment",
        "suspect-code",
        "model",
        "gpu",
    }
    assert "gpu" not in names(asked, python="/p", built=True, cpu_only=True)


def test_a_clone_is_asked_where_one_is_named_or_imported_from() -> None:
    for asked, checkout in (
        (Asked(scenario=INCIDENT, spec=EXISTING, repo="/vllm"), None),
        (Asked(scenario=INCIDENT, spec=EXISTING), "/src/vllm"),
    ):
        assert {"git", "clone"} <= names(asked, python="/p", built=True, checkout=checkout)


def test_an_environment_that_could_not_be_looked_at_leaves_the_rest_to_be_checked() -> None:
    assert names(Asked(scenario=INCIDENT, spec=EXISTING)) == ALWAYS | {"model"}


@given(
    st.sampled_from([LAB, INCIDENT]),
    st.sampled_from([LabSpec(), EXISTING, ReleaseSpec(version="0.32.0")]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_no_check_twice_and_the_common_ones_always(
    scenario: object, spec: EnvironmentSpec, repo: bool, built: bool, cpu_only: bool
) -> None:
    asked = Asked.model_validate({"scenario": scenario, "spec": spec, "repo": "/r" if repo else None})
    found = needed(asked, Known(python="/p", built=built, cpu_only=cpu_only))
    assert len(found) == len(set(found))
    assert set(found) >= ALWAYS
