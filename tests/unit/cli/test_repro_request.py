"""From the command line to the server's: what stands after ``--`` reaches vLLM, and once."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkdiag.cli import repro
from sparkdiag.errors import UsageError
from sparkdiag.serving.command import server_command


def test_the_users_arguments_reach_the_server_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKDIAG_CONFIG", str(tmp_path / "none.toml"))
    context: Any = SimpleNamespace(args=["--gpu-memory-utilization", "0.9"])
    names = ("dcp", "tp", "prompt_tokens", "prompt_kind", "seed", "timeout_s")
    request = repro._request(
        context,
        scenario="sm12x-mqa-prefill",
        env="existing:/no/such/python",
        rev=None,
        repo=None,
        overrides={**dict.fromkeys(names), "model": "org/m"},
        flags={"runs_dir": str(tmp_path), "baseline_s": None},
    )
    environment: Any = SimpleNamespace(
        serve_prefix=("vllm", "serve"), pythonpath=(), env={}, model_path=None, drop_env=()
    )
    command = server_command(
        scenario=request.scenario, environment=environment, port=1, probe_dir=None, run_private_dir=Path("/tmp/p")
    )
    assert command.argv[-2:] == ("--gpu-memory-utilization", "0.9")
    assert command.argv.count("--gpu-memory-utilization") == 1


@pytest.mark.parametrize("env", ["existing:/no/such/python", "release:0.32.0", "lab"])
def test_a_scenario_without_a_model_is_refused_before_anything_is_made(
    env: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKDIAG_CONFIG", str(tmp_path / "none.toml"))
    names = ("dcp", "tp", "prompt_tokens", "prompt_kind", "seed", "timeout_s", "model")
    context: Any = SimpleNamespace(args=[])
    given: dict[str, Any] = {"env": env, "rev": None, "repo": None, "overrides": dict.fromkeys(names)}
    flags = {"runs_dir": str(tmp_path / "runs"), "baseline_s": None}
    with pytest.raises(UsageError, match="names no model"):
        repro._request(context, scenario="sm12x-mqa-prefill", flags=flags, **given)
    assert repro._request(context, scenario="lab", flags=flags, **given).scenario.server.model is None
    assert not list(tmp_path.iterdir())
