from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.evidence.route import MatrixCell, RouteConfig, Truth
from sparkdiag.reproducing.scope import axes_of, scope_sentence
from sparkdiag.routing.across.matrix import MatrixAxes
from sparkdiag.scenario.load import load_scenario

INCIDENT, LAB = load_scenario("sm12x-mqa-prefill"), load_scenario("lab")
CUDA = RouteConfig(dcp=2, arch="sm121", prompt_tokens=450_560)
AXES = axes_of(INCIDENT, CUDA)
STALL = "_fp8_mqa_logits_torch"
ASKED = "(16 configurations asked: DCP 1 and 2; SM90, SM100, SM120, SM121; FP8 and FP4 cache)"


def cells(stalls: dict[tuple[int, str, str], Truth], *, axes: MatrixAxes = AXES) -> list[MatrixCell]:
    """One for each configuration; those that are not named do not stall."""
    made = []
    for place in product(axes.dcp, axes.arch, axes.cache):
        truth = stalls.get(place, "false")  # type: ignore[call-overload]
        kernels = (STALL,) if truth != "false" else ("fast",)
        named = dict(zip(("dcp", "arch", "cache"), place, strict=True))
        made.append(MatrixCell.model_validate(named | {"revision": "a" * 40, "stall": truth, "kernels": kernels}))
    return made


def said(stalls: dict[tuple[int, str, str], Truth]) -> str:
    return scope_sentence(cells(stalls), axes=AXES, config=CUDA, stalls={STALL})


def test_the_incidents_scope_in_the_incidents_words() -> None:
    assert said({(2, "sm120", "fp8"): "true", (2, "sm121", "fp8"): "true"}) == (
        f"a prefill of 450,560 tokens reaches {STALL} only when DCP > 1 on SM12x with an FP8 indexer cache {ASKED}"
    )


@pytest.mark.parametrize(
    ("stalls", "words"),
    [
        ({}, f"reaches {STALL} in none of the configurations asked"),
        (dict.fromkeys(product((1, 2), AXES.arch, ("fp8", "fp4")), "true"), "in all of the configurations asked"),
        (dict.fromkeys(product((1, 2), AXES.arch, ("fp8", "fp4")), "unknown"), "the source leaves it open"),
        ({(2, arch, cache): "true" for arch in AXES.arch for cache in ("fp8", "fp4")}, "only when DCP > 1 ("),
        ({(dcp, "sm121", "fp8"): "true" for dcp in (1, 2)}, "only on SM121 with an FP8 indexer cache ("),
        ({(1, arch, "fp4"): "true" for arch in ("sm90", "sm121")}, "only when DCP = 1 on SM90 or SM121 with an FP4"),
        ({(2, "sm120", "fp8"): "true", (2, "sm121", "fp8"): "unknown"}, "1 for certain and 1 not known"),
        ({(2, "sm120", "fp8"): "unknown", (2, "sm121", "fp8"): "unknown"}, f"may reach {STALL} only when DCP > 1 on"),
        ({(1, "sm90", "fp4"): "true", (2, "sm121", "fp8"): "true"}, "2 of the configurations asked; no one condition"),
    ],
)
def test_it_says_no_more_than_the_cells(stalls: dict[tuple[int, str, str], Truth], words: str) -> None:
    assert words in said(stalls)


def test_a_source_that_could_not_be_read_has_no_scope() -> None:
    broken = [cell.model_copy(update={"problem": "no such function"}) for cell in cells({})]
    assert scope_sentence(broken, axes=AXES, config=CUDA, stalls={STALL}) == ""


TRUTHS: list[Truth] = ["true", "false", "unknown"]


@given(st.dictionaries(st.sampled_from(list(product((1, 2), AXES.arch, ("fp8", "fp4")))), st.sampled_from(TRUTHS)))
def test_only_is_said_where_every_other_configuration_is_known_not_to_stall(
    stalls: dict[tuple[int, str, str], Truth],
) -> None:
    text = said(stalls)
    perhaps = {place for place, truth in stalls.items() if truth != "false"}
    if " only when DCP > 1" in text:
        assert all(place[0] == 2 for place in perhaps)
    if "with an FP8 indexer" in text:
        assert all(place[2] == "fp8" for place in perhaps)
    if "on SM12x" in text:
        assert {place[1] for place in perhaps} == {"sm120", "sm121"}
    if "true" not in stalls.values():
        assert f"reaches {STALL} " not in text or "in none" in text


def test_the_lab_varies_its_dcp_size_alone_and_a_cpu_build_no_architecture() -> None:
    lab = axes_of(LAB, RouteConfig(dcp=1, platform="cpu"))
    assert (lab.dcp, lab.arch, lab.cache) == ((1, 2), (None,), ("fp8",))
    cpu = axes_of(INCIDENT, RouteConfig(dcp=4, platform="cpu"))
    assert (cpu.dcp, cpu.arch, cpu.cache) == ((1, 4), (None,), ("fp8", "fp4"))
    assert axes_of(INCIDENT, RouteConfig(dcp=2, arch="sm89")).arch == ("sm89", "sm90", "sm100", "sm120", "sm121")
