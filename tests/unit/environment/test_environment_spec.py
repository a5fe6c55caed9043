"""What people type as an environment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.environment.plan import release_of
from sparkdiag.environment.spec import ExistingSpec, LabSpec, ReleaseSpec, parse_spec
from sparkdiag.errors import UsageError

TARGETS = st.text(st.characters(categories=("L", "N", "P")), min_size=1)


@given(st.one_of(st.just(LabSpec()), TARGETS.map(lambda text: ExistingSpec(target=text))))
def test_a_spec_survives_being_written_and_read(spec: LabSpec | ExistingSpec) -> None:
    assert parse_spec(spec.text) == spec


@pytest.mark.parametrize("version", ["0.32.0", "0.27.1", "1.0", "0.33.0rc1", "0.31.0.post1"])
def test_releases(version: str) -> None:
    assert parse_spec(f"release:{version}") == ReleaseSpec(version=version)
    assert release_of(parse_spec(f"release:{version}")) == version


def test_the_lab_stands_on_a_release_and_existing_on_none() -> None:
    assert release_of(LabSpec()) == "0.32.0"
    assert release_of(ExistingSpec(target="x")) is None


@pytest.mark.parametrize(
    "text",
    ["", "lab:x", "existing:", "existing:  ", "existing:a\x1b[2Jb", "release:", "release:latest", "release:1;x", "Lab"],
)
def test_nonsense_is_a_usage_error_with_a_remedy(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_spec(text)
    assert caught.value.remedy


@pytest.mark.parametrize("kind", ["overlay", "precompiled", "source"])
def test_plans_of_later_versions_say_so(kind: str) -> None:
    with pytest.raises(UsageError, match="do not exist in this version"):
        parse_spec(f"{kind}:main")
