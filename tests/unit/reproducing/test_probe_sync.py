"""--probe-sync reaches the server's environment, and only where it was asked for; not without a probe."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkdiag.cli import repro
from sparkdiag.errors import UsageError
from sparkdiag.probe.locate import package_folder
from sparkdiag.reproducing.request import ReproRequest, launched_scenario
from sparkdiag.scenario.load import load_scenario
from sparkdiag.serving.command import server_command

VARIABLE = "SPARKDIAG_PROBE_SYNC"
INSIDE = package_folder() / "sparkdiag_probe"


def environment_of(tmp_path: Path, **asked: bool) -> dict[str, str]:
    request = ReproRequest(scenario=load_scenario("lab"), env_spec="lab", runs_dir="runs", **asked)
    environment: Any = SimpleNamespace(serve_prefix=("vllm",), pythonpath=(), env={}, model_path="m", drop_env=())
    command = server_command(
        scenario=launched_scenario(request),
        environment=SimpleNamespace(**vars(environment), expected_files=()),
        port=1,
        probe_dir=tmp_path / "p",
        run_private_dir=Path("/tmp/p"),
    )
    return command.env


def test_it_is_asked_of_the_probe_as_the_probe_reads_it(tmp_path: Path) -> None:
    (told,) = re.findall(rf'environ.get\("{VARIABLE}"\) == "(.)"', (INSIDE / "ledger.py").read_text(encoding="utf-8"))
    assert environment_of(tmp_path, probe_sync=True)[VARIABLE] == told
    both = environment_of(tmp_path, probe_sync=True, launch_blocking=True)
    assert (both[VARIABLE], both["CUDA_LAUNCH_BLOCKING"]) == (told, "1")
    assert VARIABLE not in environment_of(tmp_path)


def test_without_a_probe_it_is_refused(tmp_path: Path) -> None:
    flags = {"runs_dir": str(tmp_path), "baseline_s": None, "probe": False, "probe_sync": True}
    context: Any = SimpleNamespace(args=[])
    with pytest.raises(UsageError, match="--no-probe"):
        repro._request(context, scenario="lab", env="lab", rev=None, repo=None, overrides={"model": None}, flags=flags)
