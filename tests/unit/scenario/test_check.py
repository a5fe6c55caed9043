"""Every problem of a scenario at once, each with its key, what was found and what is allowed."""

import copy
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkdiag.scenario.check import check
from sparkdiag.scenario.load import builtin_text
from sparkdiag.scenario.problem import Problem


def incident() -> dict[str, Any]:
    return tomllib.loads(builtin_text("sm12x-mqa-prefill"))


def problems(data: dict[str, Any]) -> dict[str, Problem]:
    scenario, found = check(data)
    assert (scenario is None) == bool(found)
    assert len({problem.key for problem in found}) == len(found), "a key is reported once"
    return {problem.key: problem for problem in found}


def changed(path: str, value: Any) -> dict[str, Any]:
    data = incident()
    *tables, last = path.split("/")
    place: Any = data
    for part in tables:
        place = place[int(part)] if part.isdecimal() else place.setdefault(part, {})
    if value is ...:
        del place[last]
    else:
        place[int(last) if last.isdecimal() else last] = value
    return data


CASES: list[tuple[str, Any, str, str, str]] = [
    ("name", "Not A Name", "name", "'Not A Name'", "a string, matching"),
    ("title", ..., "title", "nothing", "a string"),
    ("lab", "yes", "lab", "'yes'", "true or false"),
    ("schema", 7, "schema", "7", "1"),
    ("colour", 1, "colour", "an unknown key", "one of schema, name"),
    ("pompt", {}, "pompt", "did you mean prompt?", "one of"),
    ("signatures", [], "signatures", "did you mean signature?", "one of"),
    ("server/dpc", 2, "server.dpc", "did you mean dcp?", "one of model"),
    ("server/dcp", 0, "server.dcp", "0", "an integer, at least 1"),
    ("server/dcp", True, "server.dcp", "true", "an integer"),
    ("server/dcp", "2", "server.dcp", "'2'", "an integer"),
    ("server/dcp", 4, "server.dcp", "4 with server.tp 2", "a divisor"),
    ("server/max_model_len", 450_570, "server.max_model_len", "450570", "at least 450624"),
    ("server/args", "--eager", "server.args", "'--eager'", "an array, each a string"),
    ("server/args", ["--eager", 3], "server.args[1]", "3", "a string"),
    ("server/args", ["-dcp=2"], "server.args[0]", "-dcp", "the key server.dcp"),
    ("server/args", ["--port", "80"], "server.args[0]", "--port", "loopback interface only"),
    ("server/env", {"A B": "x"}, "server.env", "'A B'", "letters, digits"),
    ("server/env", {"HF_TOKEN": "x"}, "server.env.HF_TOKEN", "a secret", "set it in the shell"),
    ("server/env", {"TRITON_PTXAS_PATH": "/x"}, "server.env.TRITON_PTXAS_PATH", "which programs", "in the shell"),
    ("server/args", ["--middleware", "evil.X"], "server.args[0]", "'--middleware', which can load", "give it after --"),
    ("server/args", ["--distributed-executor-backend", "ray"], "server.args[0]", "other machines", "only mp, uni in"),
    ("server/args", ["--seed", "1", "-n2"], "server.args[2]", "'-n2', which opens", "give it after --"),
    ("server/args", ["--headless"], "server.args[0]", "'--headless'", "HTTP interface"),
    ("server/max_model_len", 10**12, "server.max_model_len", "1000000000000", "at most 100000000"),
    ("server/chunk_tokens", 10**12, "server.chunk_tokens", "1000000000000", "at most 10000000"),
    ("prompt/tokens", 10**12, "prompt.tokens", "1000000000000", "at most 10000000"),
    ("prompt/max_output_tokens", 10**12, "prompt.max_output_tokens", "1000000000000", "at most 10000000"),
    ("server/env", {"N": 3}, "server.env.N", "3", "a string"),
    ("server", 5, "server", "5", "a table"),
    ("prompt/tokens", ..., "prompt.tokens", "nothing", "an integer, at least 64"),
    ("prompt/kind", "hay", "prompt.kind", "'hay'", "one of 'needle', 'reasoning'"),
    ("prompt/depth", 1.5, "prompt.depth", "1.5", "a number, at least 0, at most 1"),
    ("prompt/depth", float("nan"), "prompt.depth", "nan", "a finite number"),
    ("patience/timeout_s", float("inf"), "patience.timeout_s", "inf", "a finite number"),
    ("patience/settle_s", 9999, "patience.settle_s", "9999", "at most patience.timeout_s"),
    ("sampling/min_period_s", 60, "sampling.min_period_s", "60", "at most sampling.max_period_s"),
    ("signature", [], "signature", "an array of 0", "an array"),
    ("signature", ..., "signature", "nothing", "an array"),
    ("signature/0/loop/1/indx", "k", "signature[0].loop[1].indx", "did you mean index?", "index, step, stop"),
    ("signature/0/loop/1/stop", ..., "signature[0].loop[1].stop", "nothing", "a string"),
    ("signature/0/loop/1/index", "head_start", "signature[0].loop[1].index", "a second time", "loop[0]"),
    ("signature/0/loop/0/step", "head_start", "signature[0].loop[0]", "'head_start'", "another local"),
    ("signature/0/rows", "len(x)", "signature[0].rows", "'len(x)'", "local variable"),
    ("signature/0/function", "a.b", "signature[0].function", "'a.b'", "bare function name"),
    ("signature/1/function", "_fp8_mqa_logits_torch", "signature[1].function", "a second time", "signature[0]"),
    ("signature/0/call_identity", ["k_start"], "signature[0].call_identity[0]", "'k_start'", "loop's index"),
    ("watch/2/modules", ["vllm/utils"], "watch[2].modules[0]", "'vllm/utils'", "dotted module"),
    ("watch/1/function", "sparse_attn_indexer", "watch[1].function", "a second time", "each once"),
    ("suspect/commit", "HEAD", "suspect.commit", "'HEAD'", "hex digits"),
    ("suspect/twins", ["--output=x"], "suspect.twins[0]", "'--output=x'", "hex digits"),
    ("suspect/paths", ["../../etc"], "suspect.paths[0]", "'../../etc'", "inside the repository"),
    ("baseline/reference/0/seconds", 0, "baseline.reference[0].seconds", "0", "a number, greater than 0"),
    ("description", "\x1b[31mred", "description", "\\x1b", "plain text"),
    ("title", "left\u202eright", "title", "\\u202e", "plain text"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "key", "found", "allowed"), CASES)
def test_one_wrong_value_is_reported_with_key_finding_and_what_is_allowed(
    path: str, value: Any, key: str, found: str, allowed: str
) -> None:
    got = problems(changed(path, value))
    assert key in got, got
    assert found in got[key].found
    assert allowed in got[key].allowed
    assert str(got[key]).isprintable()


def test_all_problems_come_at_once() -> None:
    data = incident()
    data["prompt"]["kind"] = "hay"
    data["server"]["dcp"] = -1
    data["colour"] = 1
    del data["title"]
    data["signature"][1]["loop"][0]["sotp"] = "x"
    assert set(problems(data)) == {"prompt.kind", "server.dcp", "colour", "title", "signature[1].loop[0].sotp"}


def test_a_torch_fallback_needs_its_loop_somewhere() -> None:
    data = incident()
    for signature in data["signature"]:
        del signature["loop"]
    assert "crawling cannot be told from stuck" in problems(data)["signature"].allowed


def test_two_references_of_one_length_need_other_hardware() -> None:
    data = incident()
    (reference,) = data["baseline"]["reference"]
    data["baseline"]["reference"] = [reference, reference]
    assert "a second time" in problems(data)["baseline.reference[1].prompt_tokens"].found
    data["baseline"]["reference"] = [reference, reference | {"hardware": "another"}]
    assert problems(data) == {}


def test_a_lab_scenario_has_no_model_of_its_own() -> None:
    data = incident() | {"lab": True}
    assert problems(data) == {}
    data["server"]["model"] = "/some/where"
    assert "server.model" in problems(data)


def test_a_nest_without_end_is_one_problem() -> None:
    data = incident()
    nest: dict[str, Any] = {}
    data["work"] = nest
    for _ in range(500):
        nest["x"] = {}
        nest = nest["x"]
    (problem,) = problems(data).values()
    assert "too deep" in problem.found


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
PLACES = ("name", "server/args", "server/env", "server/dcp", "prompt", "prompt/kind", "signature",
          "signature/0", "signature/0/loop", "layer_clock", "work/heads", "baseline/reference", "watch",
          "watch/0/modules",
          "server", "suspect", "patience/min_samples", "surprise")  # fmt: skip


@given(path=st.sampled_from(PLACES), value=json_values)
@settings(max_examples=150, deadline=None)
def test_any_value_anywhere_gives_a_scenario_or_printable_problems(path: str, value: Any) -> None:
    data = changed(path, copy.deepcopy(value))
    scenario, found = check(data)
    assert (scenario is None) == bool(found)
    for problem in found:
        assert problem.key
        assert str(problem).isprintable()
        assert len(str(problem)) < 1500
