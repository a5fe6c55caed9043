"""What ``watch`` may be asked, before anything is looked at."""

from typing import Any

import pytest
from typer.testing import CliRunner

from sparkdiag.cli.app import app
from sparkdiag.errors import UsageError
from sparkdiag.evidence.processes import ProcessInfo, Ranks
from sparkdiag.watching.request import LOOK_S, NEEDLE_GIVEN_UP_S, WatchRequest, scenario_for, watched_scenario

URL = ["--url", "http://127.0.0.1:8000"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "which server"),
        ([*URL, "--prompt-tokens", "9000"], "nothing is sent"),
        ([*URL, "--model", "m"], "nothing is sent"),
        ([*URL, "--api-key-env", "NO_SUCH_KEY"], "nothing is sent"),
        ([*URL, "--send-needle", "--api-key-env", "NO_SUCH_KEY"], "there is no variable of that name"),
        ([*URL, "--send-needle", "--until-stall"], "sends nothing"),
        ([*URL, "--for-s", "0"], "allowed: from 1"),
        ([*URL, "--for-s", "nan"], "allowed: from 1"),
        ([*URL, "--send-needle", "--prompt-tokens", "3"], "allowed: from 64"),
        ([*URL, "--send-needle", "--baseline-s", "-1"], "--baseline-s: found -1"),
        ([*URL, "--scenario", "no-such"], "no-such"),
        (["--url", "http://192.0.2.7:8000"], "is not this machine"),
        (["--url", "ftp://127.0.0.1"], "is no http address"),
        (["--url", "http://me:pw@127.0.0.1:1"], "carries a user name or password"),
        ([*URL, "--metrics-url", "http://192.0.2.7:9"], "is not this machine"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: list[str], words: str) -> None:
    refused = CliRunner().invoke(app, ["watch", *options])
    assert isinstance(refused.exception, UsageError), refused.exception
    assert words in refused.exception.message
    assert refused.exception.remedy


def test_an_address_elsewhere_is_allowed_by_the_option_that_the_error_names() -> None:
    refused = CliRunner().invoke(app, ["watch", "--url", "http://192.0.2.7:8000"])
    assert isinstance(refused.exception, UsageError)
    assert (refused.exception.remedy or "").startswith("--remote")


def test_the_help_has_an_example_and_says_what_was_tried_on_recordings_only() -> None:
    shown = " ".join(CliRunner().invoke(app, ["watch", "--help"], env={"COLUMNS": "200"}).output.split())
    assert "Example: sparkdiag watch --url http://127.0.0.1:8000" in shown
    assert "recordings only" in shown
    assert "never signals, pauses or kills" in shown


def request(**more: Any) -> WatchRequest:
    return WatchRequest(scenario=scenario_for(None), **more)


def test_nothing_of_another_model_is_taken_for_granted() -> None:
    scenario = scenario_for(None)
    assert scenario.name == "watched"
    assert (scenario.work.layers, scenario.work.compress_ratio) == (None, 1)
    assert scenario.baseline.references == ()
    assert scenario.suspect.commit is None
    assert "_fp8_mqa_logits_torch" in {one.function for one in scenario.signatures}
    named = scenario_for("sm12x-mqa-prefill")
    assert named.baseline.references, "the user says that it is this one"


def test_sizes_are_those_that_the_server_shows() -> None:
    ranks = [ProcessInfo(pid=tp, started_at_s=0, role="worker", ranks=Ranks(tp=tp), title="") for tp in range(4)]
    asked = request(send_needle=True, prompt_tokens=9000, model="m", for_s=50)
    scenario = watched_scenario(asked, processes=tuple(ranks), dcp=2)
    assert (scenario.server.tp, scenario.server.dcp, scenario.server.served_model_name) == (4, 2, "m")
    assert (scenario.prompt.tokens, scenario.patience.timeout_s) == (9000, 50)
    assert (scenario.server.args, scenario.server.env, scenario.server.max_model_len) == ((), {}, None)
    assert type(scenario).model_validate(scenario.model_dump(mode="json", by_alias=True)) == scenario


def test_how_long_without_being_told() -> None:
    assert request().patience_s == LOOK_S
    assert request(send_needle=True).patience_s == NEEDLE_GIVEN_UP_S
