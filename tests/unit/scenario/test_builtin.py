"""The scenarios that come with sparkdiag, and what the incident's one says."""

import json

import pytest
from typer.testing import CliRunner

from sparkdiag.cli.scenario import app
from sparkdiag.scenario.load import builtin_names, builtin_text, load_scenario


@pytest.mark.parametrize("name", builtin_names())
def test_every_built_in_scenario_loads_and_is_called_as_its_file(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.name == name
    assert sum("#" in line for line in builtin_text(name).splitlines()) > 10, "a scenario is commented"


def test_the_incident_is_what_was_reported() -> None:
    incident = load_scenario("sm12x-mqa-prefill")
    prefill = incident.signatures[0]
    assert (incident.server.tp, incident.server.dcp, incident.server.chunk_tokens) == (2, 2, 8192)
    assert incident.prompt.tokens // incident.work.compress_ratio == 112_640
    assert (incident.work.heads, incident.work.budget_bytes) == (64, 64 * 2**20)
    assert [(loop.index, loop.step, loop.stop) for loop in prefill.loop] == [
        ("head_start", "head_chunk_size", "num_heads"),
        ("k_start", "k_chunk_size", "seq_len_kv"),
    ]
    (reference,) = incident.baseline.references
    assert (reference.prompt_tokens, reference.seconds) == (468_540, 498)
    longest = reference.prompt_tokens + 9_938
    assert incident.server.max_model_len is not None
    assert longest <= incident.server.max_model_len
    assert incident.suspect.commit == "f8f18ce66b"
    assert incident.kept_locals == {"k_cache_prefix"}


def test_list_names_every_scenario() -> None:
    result = CliRunner().invoke(app, ["list"])
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == list(builtin_names())
    document = json.loads(CliRunner().invoke(app, ["list", "--json"]).stdout)
    assert document["schema"] == 1
    assert [scenario["name"] for scenario in document["scenarios"]] == list(builtin_names())


def test_show_prints_the_file_itself_or_every_value() -> None:
    assert CliRunner().invoke(app, ["show", "sm12x-mqa-prefill"]).stdout == builtin_text("sm12x-mqa-prefill")
    document = json.loads(CliRunner().invoke(app, ["show", "sm12x-mqa-prefill", "--json"]).stdout)
    assert document["scenario"]["signature"][0]["function"] == "_fp8_mqa_logits_torch"


def test_check_says_fine() -> None:
    assert "fine" in CliRunner().invoke(app, ["check", "sm12x-mqa-prefill"]).stdout
    assert json.loads(CliRunner().invoke(app, ["check", "sm12x-mqa-prefill", "--json"]).stdout)["ok"] is True
