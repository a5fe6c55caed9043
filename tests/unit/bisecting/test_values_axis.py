"""``--axis``: what was typed, as a chain of values that each make a run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.bisecting.axes.axis import ChosenAxis, trial_request
from sparkdiag.bisecting.axes.values_axis import MAX_POINTS, grid, parse_axis, values_axis
from sparkdiag.errors import UsageError
from sparkdiag.evidence.bisection import Commit
from sparkdiag.reproducing.request import ReproRequest
from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.model import Scenario
from sparkdiag.scenario.overrides import override

INCIDENT = load_scenario("sm12x-mqa-prefill")
LAB = load_scenario("lab")


def commits_of(chosen: ChosenAxis) -> tuple[Commit, ...]:
    return chosen.axis.history.commits


def values_of(text: str, *, scenario: Scenario = INCIDENT) -> list[int]:
    return [int(commit.sha) for commit in commits_of(values_axis(text, scenario=scenario))]


def test_dcp_sizes_are_a_chain_from_the_smallest() -> None:
    chosen = values_axis("dcp=4,1,2,1", scenario=override(INCIDENT, tp=4))
    assert [(commit.sha, commit.parents) for commit in commits_of(chosen)] == [("1", ()), ("2", ("1",)), ("4", ("2",))]
    assert (chosen.axis.kind, chosen.axis.old, chosen.axis.new, chosen.axis.repo) == ("dcp", "1", "4", None)
    assert commits_of(chosen)[2].subject == "DCP size 4"


def test_a_range_of_dcp_sizes_holds_those_that_fit() -> None:
    assert values_of("dcp=1..12", scenario=override(INCIDENT, tp=12)) == [1, 2, 3, 4, 6, 12]


def test_k_is_1024_and_prompts_grow_by_the_chunk() -> None:
    values = values_of("prompt-tokens=16K..440K")
    assert values[:2] == [16_384, 16_384 + INCIDENT.server.chunk_tokens]
    assert values[-1] == INCIDENT.prompt.tokens
    assert values_of("prompt-tokens=1K..4k/1_024") == [1024, 2048, 3072, 4096]
    assert values_of("prompt_tokens = 100, 1K..2K/600") == [100, 1024, 1624, 2048]


def test_a_long_range_is_coarser_in_whole_chunks() -> None:
    chosen = values_axis(
        "prompt-tokens=64..10000000", scenario=override(INCIDENT, extra_args=["--max-model-len=20000000"])
    )
    values = [int(commit.sha) for commit in commits_of(chosen)]
    assert len(values) <= MAX_POINTS and values[-1] == 10_000_000
    assert (values[1] - values[0]) % INCIDENT.server.chunk_tokens == 0
    assert f"{values[1] - values[0]:,}" in chosen.notes[0]


@given(st.integers(64, 5_000_000), st.integers(1, 5_000_000), st.integers(1, 300_000))
def test_a_grid_rises_keeps_its_ends_and_is_bounded(first: int, width: int, chunk: int) -> None:
    server = INCIDENT.server.model_copy(update={"chunk_tokens": chunk})
    scenario = INCIDENT.model_copy(update={"server": server})
    values, _ = grid(parse_axis(f"prompt-tokens={first}..{first + width}"), scenario=scenario)
    assert (values[0], values[-1]) == (first, first + width)
    assert list(values) == sorted(set(values)) and len(values) <= MAX_POINTS
    assert all((value - first) % chunk == 0 for value in values[:-1])


@given(st.text(max_size=40))
def test_whatever_is_typed_is_an_axis_or_a_usage_error(text: str) -> None:
    for typed in (text, f"dcp={text}", f"prompt-tokens={text}"):
        try:
            values = values_of(typed)
        except UsageError as error:
            assert error.remedy and (error.message + "".join(error.details)).isprintable()
        else:
            assert len(values) >= 2


@given(st.text("0123456789kKmM_./, ", max_size=20))
def test_numbers_and_dots_are_an_axis_or_a_usage_error(text: str) -> None:
    try:
        values = values_of(f"prompt-tokens={text}")
    except UsageError as error:
        assert error.remedy
    else:
        assert values == sorted(set(values)) and values[0] >= 64


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dcp=1", "one value only"),
        ("dcp=2,2", "one value only"),
        ("dcp", "needs values"),
        ("tp=1,2", "no known axis"),
        ("dcp=1,,2", "is no number"),
        ("prompt-tokens=2K..1K", "goes up"),
        ("prompt-tokens=1K..2K/0", "goes up"),
        ("prompt-tokens=1K..400K/1", "more than 1,000 points"),
        ("prompt-tokens=16K..468K,500K", "--max-model-len 512064"),
        ("dcp=1,2,3", "--tp 6"),
    ],
)
def test_what_is_wrong_is_said(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        values_axis(text, scenario=INCIDENT)
    assert words in f"{caught.value.message} {caught.value.remedy}"


def test_every_problem_is_told_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        values_axis("prompt-tokens=1,2K,20M,9K", scenario=LAB)
    assert len(caught.value.details) == 2
    assert "found 1;" in caught.value.details[0] and "20971520" in caught.value.details[1]
    with pytest.raises(UsageError) as caught:
        values_axis("dcp=a,1..,3", scenario=LAB)
    assert len(caught.value.details) == 2


@pytest.mark.parametrize("values", ["1,2,4", "1,2,3,4", "0,4", "3"])
def test_sizes_that_do_not_fit_lead_to_a_number_of_ranks_and_to_no_option_that_the_axis_refuses(values: str) -> None:
    scenario = override(LAB, dcp=1)
    with pytest.raises(UsageError) as caught:
        values_axis(f"dcp={values}", scenario=scenario)
    remedy = caught.value.remedy or ""
    assert "--dcp" not in remedy
    tp = int(remedy.rpartition("--tp ")[2])
    fitting = [value for value in values.split(",") if value != "0"]
    assert all(tp % int(value) == 0 for value in fitting)
    if len(fitting) > 1:
        values_axis(f"dcp={','.join(fitting)}", scenario=override(scenario, tp=tp, dcp=1))


def request_of(scenario: Scenario) -> ReproRequest:
    return ReproRequest(scenario=scenario, env_spec="existing:/venv", runs_dir="runs", repo="/clone", revision="HEAD")


def test_a_trial_changes_its_value_alone() -> None:
    template = request_of(override(INCIDENT, extra_args=["--trust-remote-code"]))
    dcp = values_axis("dcp=1,2", scenario=template.scenario).axis
    one = trial_request(template, dcp, "1")
    assert one.scenario.server == template.scenario.server.model_copy(update={"dcp": 1})
    assert one == template.model_copy(update={"scenario": one.scenario})
    prompts = values_axis("prompt-tokens=16K,32K", scenario=template.scenario).axis
    longer = trial_request(template, prompts, "32768").scenario
    assert longer.prompt.tokens == 32768 and longer.server == template.scenario.server


def test_a_point_that_is_not_on_the_axis() -> None:
    with pytest.raises(KeyError):
        trial_request(request_of(INCIDENT), values_axis("dcp=1,2", scenario=INCIDENT).axis, "3")
