"""``sparkdiag kernel plan``: what it takes, what it refuses, and its document."""

import json
import re
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from sparkdiag.cli import kernel_plan_asked
from sparkdiag.cli.app import app
from sparkdiag.errors import UsageError
from sparkdiag.evidence.kernels import KernelPlan
from sparkdiag.scenario.load import load_scenario

CALL = ("--seq-len", "8192", "--seq-len-kv", "112640", "--heads", "64")
REFUSED = [
    ((), "nothing to plan was given"),
    (("--heads", "64"), "nothing to plan was given"),
    (("--seq-len", "8192"), "a call needs both --seq-len and --seq-len-kv; found --seq-len"),
    (("--window-keys", "5"), "a call needs both --seq-len and --seq-len-kv; found --window-keys"),
    (("--seq-len", "0", "--seq-len-kv", "1"), "--seq-len: found 0; allowed: an integer from 1 to 10,000,000"),
    (("--seq-len", "-8", "--seq-len-kv", "1"), "--seq-len: found -8"),
    (("--seq-len", "1", "--seq-len-kv", "10000001"), "--seq-len-kv: found 10000001"),
    ((*CALL, "--heads", "0"), "--heads: found 0"),
    ((*CALL, "--head-dim", "65537"), "--head-dim: found 65537; allowed: an integer from 1 to 65,536"),
    ((*CALL, "--window-keys", "112641"), "--window-keys 112641 is more than the 112640 keys of the call"),
    ((*CALL, "--dcp", "2"), "--seq-len is about one call, --dcp about a whole prompt"),
    ((*CALL, "--prompt-tokens", "9000"), "--seq-len is about one call, --prompt-tokens about a whole prompt"),
    ((*CALL, "--scenario", "lab"), "--seq-len is about one call, --scenario about a whole prompt"),
    (("--dcp", "2"), "--dcp is about a prompt, and none was given: --prompt-tokens or --scenario"),
    (("--prompt-tokens", "9000", "--dcp", "0"), "--dcp: found 0; allowed: an integer from 1 to 1,024"),
    (("--prompt-tokens", "9000", "--dcp", "1025"), "--dcp: found 1025"),
    (("--prompt-tokens", "3"), "a prompt of 3 tokens has no indexer key at 4 tokens a key"),
    (("--prompt-tokens", "9000", "--chunk-tokens", "1"), "are 9,000 chunks; allowed: 2,000"),
    (("--prompt-tokens", "9000", "--layers", "0"), "--layers: found 0"),
    ((*CALL, "--budget-mib", "0"), "--budget-mib: found 0; allowed: from 1 byte to 1,048,576 MiB"),
    ((*CALL, "--budget-mib", "nan"), "--budget-mib: found nan"),
    ((*CALL, "--budget-mib", "inf"), "--budget-mib: found inf"),
    ((*CALL, "--budget-mib", "1e-9"), "--budget-mib: found 1e-09"),
    ((*CALL, "--max-logits-mb", "-1"), "--max-logits-mb: found -1; allowed: an integer from 0 to 1,048,576"),
    ((*CALL, "--gpu", "h20"), "--gpu: found 'h20'; known: gb10, rtx-pro-6000, h100, h200, b200, all, none; did you"),
    ((*CALL, "--gpu", "h200,none"), "--gpu: found 'none'"),
    ((*CALL, "--gpu", ""), "--gpu: found ''"),
    (("--scenario", "nope"), "no scenario is called 'nope'"),
]


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["kernel", "plan", *arguments])


def document(*arguments: str) -> dict[str, Any]:
    made = run(*arguments, "--json")
    assert made.exit_code == 0, made.output
    loaded = json.loads(made.stdout)
    assert isinstance(loaded, dict)
    return loaded


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_makes_no_sense_is_refused_in_one_line(arguments: tuple[str, ...], message: str) -> None:
    made = run(*arguments)
    assert isinstance(made.exception, UsageError)
    assert made.exception.exit_code == 2
    assert message in made.exception.message
    assert "\n" not in made.exception.message
    assert made.exception.remedy
    assert made.stdout == ""


def test_the_document_of_the_incident_s_call() -> None:
    found = document(*CALL)
    assert {name: found[name] for name in ("schema", "head_chunk_size", "k_chunk_size", "matmuls")} == {
        "schema": 1,
        "head_chunk_size": 1,
        "k_chunk_size": 2048,
        "matmuls": 3520,
    }
    assert [cut["max_logits_mib"] for cut in found["cuts"]] == [None, 512]
    assert [gpu["name"] for gpu in found["gpus"]] == [floor["gpu"] for floor in found["cuts"][0]["floors"]]
    KernelPlan.model_validate(found)


def test_the_document_of_the_incident_s_prompt() -> None:
    found = document("--prompt-tokens", "450560", "--compress-ratio", "4", "--dcp", "1", "--gpu", "none")
    assert (found["head_chunk_size"], found["k_chunk_size"], found["matmuls"]) == (1, 2048, 3520)
    assert [len(cut["chunks"]) for cut in found["cuts"]] == [55, 55]
    assert found["gpus"] == found["cuts"][0]["floors"] == []


def test_a_scenario_gives_what_is_not_typed() -> None:
    scenario = load_scenario("sm12x-mqa-prefill")
    asked = document("--scenario", "sm12x-mqa-prefill", "--gpu", "gb10")["asked"]
    assert (asked["prompt_tokens"], asked["dcp"]) == (scenario.prompt.tokens, scenario.server.dcp)
    assert (asked["heads"], asked["budget_bytes"]) == (scenario.work.heads, scenario.work.budget_bytes)
    typed = document("--scenario", "sm12x-mqa-prefill", "--gpu", "gb10", "--dcp", "4", "--prompt-tokens", "8192")
    assert (typed["asked"]["dcp"], typed["asked"]["keys"]) == (4, 512)


def test_what_is_taken_without_a_scenario_is_the_incident_s() -> None:
    scenario = load_scenario("sm12x-mqa-prefill")
    assert scenario.work.heads == kernel_plan_asked.HEADS
    assert scenario.route.head_dim == kernel_plan_asked.HEAD_DIM
    assert scenario.server.chunk_tokens == kernel_plan_asked.CHUNK_TOKENS
    assert scenario.work.compress_ratio == kernel_plan_asked.COMPRESS_RATIO
    assert scenario.work.budget_bytes == kernel_plan_asked.DEFAULT_BUDGET_BYTES


def test_the_lab_collapses_at_once_and_has_no_gpu_s_floor() -> None:
    found = document("--scenario", "lab")
    assert (found["head_chunk_size"], found["k_chunk_size"], found["gpus"]) == (1, 1, [])
    assert found["asked"]["layers"] == 3
    assert document("--scenario", "lab", "--gpu", "h200")["gpus"][0]["name"] == "h200"


@pytest.mark.parametrize(("typed", "limits"), [("0", [None]), ("256", [256])])
def test_the_limit_on_logits_can_be_chosen(typed: str, limits: list[int | None]) -> None:
    assert [cut["max_logits_mib"] for cut in document(*CALL, "--max-logits-mb", typed)["cuts"]] == limits


def test_a_small_budget_makes_more_passes() -> None:
    assert document(*CALL, "--budget-mib", "32")["matmuls"] == 2 * 3520


def test_tf32_lowers_the_fallback_s_floor_alone() -> None:
    fp32, tf32 = (document(*CALL, "--gpu", "H200, h200", "--matmul", units) for units in ("fp32", "tf32"))
    ((slow,), (fast,)) = (found["cuts"][0]["floors"] for found in (fp32, tf32))
    assert fast["torch"]["floor_ms"] < slow["torch"]["floor_ms"]
    assert fast["fast_ms"] == slow["fast_ms"]


def test_the_text_of_the_help_s_example() -> None:
    made = run(*CALL)
    assert made.exit_code == 0
    assert "At 8,192 rows a pass takes one head beyond 1,024 keys" in made.stdout


def test_no_summary_of_a_kernel_command_is_cut_or_wrapped() -> None:
    shown = CliRunner().invoke(app, ["kernel", "--help"], terminal_width=80).stdout
    commands = shown[shown.index("Commands:") :].splitlines()[1:]
    assert [line for line in commands if line.endswith("...") or not re.match(r"  [a-z]", line)] == []


def test_every_option_is_in_a_group() -> None:
    command = get_command(app).commands["kernel"].commands["plan"]  # type: ignore[attr-defined]
    loose = [one.name for one in command.params if getattr(one, "rich_help_panel", None) is None]
    assert loose == ["as_json"]
