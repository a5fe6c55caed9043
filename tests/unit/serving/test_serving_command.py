import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.errors import EnvironmentFault, UsageError
from sparkdiag.evidence.run import FileProof
from sparkdiag.probe.locate import package_folder
from sparkdiag.scenario.model import PromptSettings, Scenario, ServerSettings, Signature, WatchedFunction
from sparkdiag.serving.command import SPREAD_CORES, ServerCommand, cores_per_rank, server_command


def scenario(**server: Any) -> Scenario:
    settings = {"model": "/m", "tp": 2, "dcp": 2, "chunk_tokens": 512, **server}
    return Scenario(
        name="x",
        title="t",
        server=ServerSettings(**settings),
        prompt=PromptSettings(tokens=100),
        signatures=(Signature(function="slow", kind="torch-fallback"),),
        watch=(WatchedFunction(function="dispatch", modules=("new.module", "old.module")),),
    )


def environment(**fields: Any) -> Any:
    whole: dict[str, Any] = {
        "serve_prefix": ("py", "-m", "api"),
        "pythonpath": ("/lab",),
        "env": {},
        "drop_env": (),
        "model_path": None,
        "expected_files": (),
    }
    return SimpleNamespace(**{**whole, **fields})


def build(case: Scenario | None = None, **changes: Any) -> ServerCommand:
    whole: dict[str, Any] = {
        "environment": environment(),
        "port": 4000,
        "probe_dir": Path("/run/probe"),
        "run_private_dir": Path("/tmp/p"),
    }
    return server_command(scenario=case or scenario(), **{**whole, **changes})


def test_the_module_takes_the_model_by_option_and_vllm_serve_by_position() -> None:
    assert build().argv[:5] == ("py", "-m", "api", "--model", "/m")
    assert build(environment=environment(serve_prefix=("/x/vllm", "serve"))).argv[:3] == ("/x/vllm", "serve", "/m")


def test_sizes_port_and_loopback_are_on_the_command_line() -> None:
    command = build(scenario(max_model_len=9000))
    text = " ".join(command.argv)
    for option in (
        "--served-model-name sparkdiag",
        "--host 127.0.0.1",
        "--port 4000",
        "--tensor-parallel-size 2",
        "--decode-context-parallel-size 2",
        "--max-num-batched-tokens 512",
        "--max-model-len 9000",
    ):
        assert option in text
    assert command.base_url == "http://127.0.0.1:4000"


def test_the_scenarios_arguments_come_last() -> None:
    assert build(scenario(args=("--seed", "1"))).argv[-2:] == ("--seed", "1")


def test_no_model_anywhere_is_refused_and_the_environments_is_used() -> None:
    with pytest.raises(UsageError, match="names no model"):
        build(scenario(model=None))
    argv = build(scenario(model=None), environment=environment(model_path="/lab/model")).argv
    assert argv[argv.index("--model") + 1] == "/lab/model"


def test_what_is_sparkdiags_own_to_set_is_refused_without_its_value() -> None:
    with pytest.raises(UsageError, match=r"server\.args\[2\]: --api-key is sparkdiag's own") as raised:
        build(scenario(args=("--seed", "1", "--api_key=hunter2")))
    assert raised.value.remedy
    assert "hunter2" not in raised.value.message + raised.value.remedy


@given(cores=st.sets(st.integers(0, 63), min_size=1), ranks=st.integers(1, 8))
def test_every_rank_gets_cores_and_none_is_shared_when_there_are_enough(cores: set[int], ranks: int) -> None:
    dealt = [[int(core) for core in part.split(",")] for part in cores_per_rank(sorted(cores), ranks=ranks).split("|")]
    assert len(dealt) == ranks
    assert all(part and set(part) <= cores for part in dealt)
    if len(cores) >= ranks:
        flat = [core for part in dealt for core in part]
        assert len(flat) == len(set(flat))


def test_cores_are_filled_in_where_the_scenario_asks() -> None:
    case = scenario(env={"VLLM_CPU_OMP_THREADS_BIND": SPREAD_CORES})
    assert build(case, cores=(3, 1)).env["VLLM_CPU_OMP_THREADS_BIND"] == "1|3"


def test_pythonpath_is_put_before_an_existing_one() -> None:
    env = build(inherited={"PYTHONPATH": "/mine"}).env
    assert env["PYTHONPATH"] == f"/lab:{package_folder()}:/mine"
    assert build(probe_dir=None).env["PYTHONPATH"] == "/lab"
    assert "PYTHONPATH" not in build(probe_dir=None, environment=environment(pythonpath=())).env


def test_no_probe_leaves_no_trace_of_it() -> None:
    env = build(probe_dir=None, inherited={"VLLM_PLUGINS": "a"}).env
    assert not [name for name in env if name.startswith("SPARKDIAG") or name == "VLLM_PLUGINS"]


def test_an_allow_list_of_plugins_gets_the_probe_once() -> None:
    assert build(inherited={"VLLM_PLUGINS": "a"}).env["VLLM_PLUGINS"] == "a,sparkdiag_probe"
    case = scenario(env={"VLLM_PLUGINS": "sparkdiag_probe,b"})
    assert "VLLM_PLUGINS" not in build().env
    assert build(case).env["VLLM_PLUGINS"] == "sparkdiag_probe,b"


def test_temporary_files_are_private_but_compiled_kernels_are_kept() -> None:
    env = build(inherited={"USER": "u", "TMPDIR": "/scratch"}).env
    assert env["TMPDIR"] == env["VLLM_RPC_BASE_PATH"] == "/tmp/p"
    assert env["TORCHINDUCTOR_CACHE_DIR"] == "/scratch/torchinductor_u"
    assert "TORCHINDUCTOR_CACHE_DIR" not in build(inherited={"TORCHINDUCTOR_CACHE_DIR": "/c"}).env


def test_a_folder_too_long_for_sockets_is_refused_before_anything_starts() -> None:
    with pytest.raises(EnvironmentFault, match="too long"):
        build(run_private_dir=Path("/" + "x" * 80))


def test_an_inherited_key_would_lock_the_client_out_so_it_is_dropped() -> None:
    assert "VLLM_API_KEY" in build().drop_env
    assert ServerCommand.model_validate_json(build().model_dump_json()) == build()


def test_what_an_environment_must_not_inherit_is_dropped_too() -> None:
    dropped = build(environment=environment(drop_env=("PYTHONDONTWRITEBYTECODE",))).drop_env
    assert {"VLLM_API_KEY", "PYTHONDONTWRITEBYTECODE"} <= set(dropped)


def test_a_scenario_cannot_switch_usage_statistics_on() -> None:
    case = scenario(env={"VLLM_NO_USAGE_STATS": "0", "DO_NOT_TRACK": "0"})
    env = build(case, environment=environment(env={"DO_NOT_TRACK": "0"}), inherited={"DO_NOT_TRACK": "0"}).env
    assert (env["VLLM_NO_USAGE_STATS"], env["DO_NOT_TRACK"]) == ("1", "1")


def test_the_probe_is_told_of_the_modules_that_prove_the_revision_too() -> None:
    files = (FileProof(module="vllm", path="/o/vllm/__init__.py", sha256="0"),)
    env = build(environment=environment(expected_files=files)).env
    assert json.loads(env["SPARKDIAG_PROBE_WATCH"]) == ["new.module", "old.module", "vllm"]
