"""What people type as an environment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.environment.plan import release_of
from sparkdiag.environment.spec import (
    ExistingSpec,
    LabSpec,
    OverlaySpec,
    PrecompiledSpec,
    ReleaseSpec,
    SourceSpec,
    parse_spec,
    stands_on,
)
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


BASES = st.one_of(
    st.none(), TARGETS.map(lambda text: ExistingSpec(target=text)), st.just(ReleaseSpec(version="0.32.0rc1"))
)


@given(st.from_regex(r"[A-Za-z0-9/_.^~{}@]{1,20}", fullmatch=True), BASES)
def test_an_overlay_survives_being_written_and_read(revision: str, base: ExistingSpec | ReleaseSpec | None) -> None:
    spec = OverlaySpec(revision=revision, base=base)
    assert parse_spec(spec.text) == spec
    assert stands_on(spec) == (base or spec)
    assert release_of(spec) == (base.version if isinstance(base, ReleaseSpec) else None)


def test_plans_of_a_revision() -> None:
    commit = "0123456789" * 4
    assert parse_spec(f"precompiled:main~3@{commit}") == PrecompiledSpec(revision="main~3", wheel_commit=commit)
    assert parse_spec("precompiled:v0.9@{1}") == PrecompiledSpec(revision="v0.9@{1}")
    assert parse_spec("source:f6c6e54f4") == SourceSpec(revision="f6c6e54f4")
    assert parse_spec("overlay:a@existing:/x@release:1/python").text == "overlay:a@existing:/x@release:1/python"
    assert release_of(SourceSpec(revision="x")) is None


@pytest.mark.parametrize(
    "text",
    [
        "overlay:", "overlay:@release:0.32.0", "overlay:--upload-pack=x", "overlay:a b", "overlay:a@release:latest",
        "overlay:a@existing:", "overlay:a@existing:x\x1b", "overlay:a\n@existing:x", "overlay:a@existing",
        "overlay:a:b", "source:", "precompiled:", "source:-x", "precompiled:-x@" + "0" * 40,
    ],
)  # fmt: skip
def test_no_revision_or_no_base(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_spec(text)
    assert caught.value.remedy
