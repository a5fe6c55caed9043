"""What the command line changes, and what it refuses."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.errors import UsageError
from sparkdiag.scenario.check import check
from sparkdiag.scenario.load import load_scenario
from sparkdiag.scenario.model import Scenario
from sparkdiag.scenario.overrides import override
from sparkdiag.scenario.vllm_flags import DISTRUSTED, OWNED, distrusted_flag, owned_flag

INCIDENT = load_scenario("sm12x-mqa-prefill")


def test_nothing_given_changes_nothing() -> None:
    assert override(INCIDENT) == INCIDENT


def test_every_option_changes_its_value_and_only_that() -> None:
    got = override(
        INCIDENT, dcp=4, tp=8, prompt_tokens=468_540, seed=9, depth=0.5, model="/m", chunk_tokens=4096, timeout_s=60,
        extra_args=("--enforce-eager",),
    )  # fmt: skip
    server, prompt = got.server, got.prompt
    assert (server.dcp, server.tp, server.model, server.chunk_tokens) == (4, 8, "/m", 4096)
    assert server.args == (*INCIDENT.server.args, "--enforce-eager")
    assert (prompt.tokens, prompt.seed, prompt.depth, got.patience.timeout_s) == (468_540, 9, 0.5, 60)
    assert got.signatures == INCIDENT.signatures
    assert got.baseline == INCIDENT.baseline
    assert INCIDENT.server.dcp == 2


@pytest.mark.parametrize(
    ("options", "message", "remedy"),
    [
        ({"dcp": 3}, "--dcp 3 does not divide the scenario's tensor parallel size 2", "--dcp 3 --tp 3"),
        ({"dcp": 4}, "--dcp 4 does not divide the scenario's tensor parallel size 2", "--dcp 4 --tp 4"),
        ({"tp": 3}, "--tp 3 is not a multiple of the scenario's DCP size 2", "--dcp 2 --tp 4"),
        ({"dcp": 4, "tp": 6}, "--dcp 4 does not divide --tp 6", "--dcp 4 --tp 8"),
        ({"dcp": 0}, "--dcp: server.dcp: found 0; allowed: an integer, at least 1", ""),
        ({"tp": -1}, "--tp: server.tp: found -1", ""),
        ({"prompt_tokens": 3}, "--prompt-tokens: prompt.tokens: found 3", ""),
        (
            {"prompt_tokens": 600_000},
            "600000 prompt tokens and 64 output tokens need more",
            "-- --max-model-len 600064",
        ),
        ({"depth": 2.0}, "--depth: prompt.depth: found 2.0", ""),
        ({"timeout_s": float("nan")}, "--timeout-s: patience.timeout_s: found nan", ""),
        ({"model": "\x1b[2J"}, "--model: server.model: found control characters", ""),
        ({"extra_args": ("--port", "1")}, "'--port' after -- is sparkdiag's own to choose", "leave it out"),
        ({"extra_args": ("--ho=0.0.0.0",)}, "'--ho' after -- is sparkdiag's own to choose", "loopback"),
        ({"extra_args": ("--seed", "1", "--uds", "/x")}, "'--uds' after --", "loopback"),
        ({"extra_args": ("--api_key", "k")}, "'--api-key' after --", "leave it out"),
        ({"extra_args": ("--hf-token=hf_x",)}, "'--hf-token' after --", "export HF_TOKEN="),
        ({"extra_args": ("--config", "/x.yaml")}, "'--config' after --", "one by one"),
        ({"extra_args": ("--headless",)}, "'--headless' after --", "HTTP interface"),
        ({"extra_args": ("--otlp-tr=http://x",)}, "'--otlp-tr' after --", "stays on this machine"),
        ({"extra_args": ("--kv-events-config.publisher", "zmq")}, "'--kv-events-config' after --", "stays on"),
        ({"prompt_tokens": 10**12}, "--prompt-tokens: prompt.tokens: found 1000000000000", ""),
        ({"chunk_tokens": 10**12}, "--chunk-tokens: server.chunk_tokens: found 1000000000000", ""),
        ({"extra_args": ("--max-model-len", "999999999999")}, "-- --max-model-len: server.max_model_len: found", ""),
        ({"extra_args": ("--model=x",)}, "'--model' after --", "--model PATH, before the --"),
        ({"dcp": 1025}, "--dcp: server.dcp: found 1025; allowed: an integer, at least 1, at most 1024", ""),
        ({"tp": 10**11}, "--tp: server.tp: found 100000000000", ""),
        ({"model": "--uds=/x"}, "--model: server.model: found '--uds=/x'; allowed: a name or path", ""),
        ({"extra_args": ("--max-model-len", "auto")}, "--max-model-len needs an integer, found 'auto'", ""),
        ({"extra_args": ("--max-model-len",)}, "--max-model-len needs an integer", ""),
        ({"dcp": 1, "extra_args": ("-dcp", "2")}, "-dcp 2 contradicts --dcp 1", "give --dcp only"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_way_out(options: dict[str, Any], message: str, remedy: str) -> None:
    with pytest.raises(UsageError) as caught:
        override(INCIDENT, **options)
    assert message in caught.value.message
    assert caught.value.message.isprintable()
    assert caught.value.remedy
    assert remedy in caught.value.remedy


SECRET = "sk-planted-7431"


@pytest.mark.parametrize(
    "extra_args",
    [
        ("--api-key", SECRET),
        (f"--api-key={SECRET}",),
        (f"--api_k={SECRET}",),
        ("--hf-token", SECRET),
        (f"--port={SECRET}",),
        (f"--ssl-keyfile={SECRET}",),
    ],
)
def test_a_refused_option_is_named_without_its_value(extra_args: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as caught:
        override(INCIDENT, extra_args=extra_args)
    told = (caught.value.message, caught.value.remedy, *caught.value.details)
    assert not any(SECRET in str(text) for text in told)


@given(
    name=st.sampled_from([name for flag in OWNED for name in flag.names]), cut=st.integers(0, 30), join=st.booleans()
)
def test_no_spelling_of_an_owned_option_slips_through(name: str, cut: int, join: bool) -> None:
    beginning = name[: max(3 if name.startswith("--") else len(name), len(name) - cut)].replace("-", "_")
    written = name[:2].replace("_", "-") + beginning[2:] if name.startswith("--") else name
    argument = f"{written}=x" if join else written
    assert owned_flag(argument) is not None
    with pytest.raises(UsageError):
        override(INCIDENT, extra_args=(argument, "x"))


@pytest.mark.parametrize(
    "argument",
    ["--seed", "--model-impl", "--config-format", "-O3", "-1", "-1.5", "-", "--", "x", "",
     "--reasoning-parser", "-dp", "-dc", "--tokenizer", "--no-trust-remote-code", "--data-parallel-size=2", "-pp"]
)  # fmt: skip
def test_other_options_are_left_to_vllm(argument: str) -> None:
    assert owned_flag(argument) is None
    assert distrusted_flag(argument, "x") is None


DISTRUSTED_NAMES = [name for flag in DISTRUSTED for name in flag.names]


@given(name=st.sampled_from(DISTRUSTED_NAMES), cut=st.integers(0, 3), form=st.sampled_from(["{}", "{}=x", "{}.a=x"]))
def test_no_spelling_of_a_distrusted_option_passes_in_a_file_and_any_may_be_typed(
    name: str, cut: int, form: str
) -> None:
    short = not name.startswith("--")
    written = name if short else "--" + name[2 : max(8, len(name) - cut)].replace("-", "_")
    argument = form.format(written)
    data = INCIDENT.model_dump(mode="python", by_alias=True, exclude_none=True)
    data["server"]["args"] = ["--max-num-seqs", "1", argument, "x"]
    scenario, (problem,) = check(data)
    assert scenario is None
    assert problem.key == "server.args[2]"
    assert "if you trust it, give it after --" in problem.allowed
    assert override(INCIDENT, extra_args=(argument, "x")).server.args[-2:] == (argument, "x")


def test_what_a_file_may_not_ask_for_it_may_not_ask_for_before_typed_arguments_either() -> None:
    distrustful = INCIDENT.server.model_copy(update={"args": ("--trust-remote-code",)})
    with pytest.raises(UsageError, match="if you trust it"):
        override(INCIDENT.model_copy(update={"server": distrustful}), extra_args=("--trust-remote-code",))


@pytest.mark.parametrize("value", ["mp", "uni"])
def test_a_backend_of_this_machine_may_stand_in_a_file(value: str) -> None:
    assert distrusted_flag("--distributed-executor-backend", value) is None
    assert distrusted_flag(f"--distributed_executor_backend={value}", "evil.Executor") is None
    assert distrusted_flag("--distributed-executor-backend=evil.Executor", value) is not None


def test_several_wrong_options_are_told_together() -> None:
    with pytest.raises(UsageError) as caught:
        override(INCIDENT, depth=2.0, prompt_tokens=1)
    assert [detail.split(":")[0] for detail in caught.value.details] == ["--prompt-tokens", "--depth"]


def test_vllm_arguments_that_the_scenario_holds_change_it() -> None:
    extra = ("--decode-context-parallel-size=1", "--max_model_len", "500000", "-tp", "1", "--seed", "3")
    got = override(INCIDENT, extra_args=extra)
    assert (got.server.dcp, got.server.max_model_len, got.server.tp) == (1, 500_000, 1)
    assert got.server.args == (*INCIDENT.server.args, "--seed", "3")


def test_a_reasoning_prompt_gets_room_for_its_answer() -> None:
    got = override(INCIDENT, prompt_kind="reasoning")
    assert got.prompt.kind == "reasoning"
    assert got.prompt.max_output_tokens >= 1024
    assert override(INCIDENT, prompt_kind="needle").prompt == INCIDENT.prompt


def test_the_lab_runs_on_its_own_model() -> None:
    lab = INCIDENT.model_copy(update={"lab": True})
    with pytest.raises(UsageError, match="lab's own model"):
        override(lab, model="/m")


@given(dcp=st.integers(1, 64), tp=st.integers(1, 64))
def test_dcp_divides_tp_in_every_scenario_that_comes_out(dcp: int, tp: int) -> None:
    try:
        got = override(INCIDENT, dcp=dcp, tp=tp)
    except UsageError as error:
        assert tp % dcp
        assert error.remedy
        named = error.remedy.split(",")[0].split()
        assert int(named[3]) % int(named[1]) == 0
        assert int(named[1]) == dcp
        assert int(named[3]) >= tp
    else:
        assert tp % dcp == 0
        assert Scenario.model_validate_json(got.model_dump_json(by_alias=True)) == got
