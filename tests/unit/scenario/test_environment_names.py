"""What a scenario may set for the server."""

import pytest

from sparkdiag.scenario.environment_names import refused_variable
from sparkdiag.scenario.load import builtin_names, load_scenario

REFUSED = (
    "LD_PRELOAD", "LD_LIBRARY_PATH", "PATH", "HOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT",
    "PYTHONBREAKPOINT", "BASH_ENV", "ENV", "GIT_SSH_COMMAND", "SHELL", "CUDA_INJECTION64_PATH", "OMP_TOOL_LIBRARIES",
    "NCCL_NET_PLUGIN", "VLLM_NCCL_SO_PATH", "VLLM_LOGGING_CONFIG_PATH", "TMPDIR", "VLLM_RPC_BASE_PATH", "VLLM_PORT",
    "https_proxy", "HTTP_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "HF_TOKEN", "VLLM_API_KEY", "AWS_SECRET_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID", "DB_PASSWORD", "SPARKDIAG_TREE", "GCONV_PATH",
)  # fmt: skip
FREE = (
    "VLLM_PLUGINS", "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "NCCL_DEBUG", "NCCL_SOCKET_IFNAME",
    "OMP_NUM_THREADS", "TORCH_COMPILE_DISABLE", "TOKENIZERS_PARALLELISM", "HF_HUB_OFFLINE", "PYTHONUNBUFFERED",
    "PYTHONHASHSEED", "TRITON_CACHE_DIR", "VLLM_CPU_KVCACHE_SPACE", "GLOO_SOCKET_IFNAME", "DO_NOT_TRACK",
)  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_runs_something_else_leads_elsewhere_or_is_secret_is_refused(name: str) -> None:
    refused = refused_variable(name, "some-value")
    assert refused is not None
    assert "some-value" not in refused.found + refused.allowed


@pytest.mark.parametrize("name", FREE)
def test_settings_of_vllm_and_its_libraries_are_free(name: str) -> None:
    assert refused_variable(name, "1") is None


@pytest.mark.parametrize(
    ("value", "fine"), [("127.0.0.1", True), ("::1", True), ("0.0.0.0", False), ("10.1.2.3", False)]
)
def test_the_host_of_the_tree_is_loopback(value: str, fine: bool) -> None:
    assert (refused_variable("VLLM_HOST_IP", value) is None) == fine


def test_every_built_in_scenario_keeps_to_it() -> None:
    for name in builtin_names():
        env = load_scenario(name).server.env
        assert [key for key, value in env.items() if refused_variable(key, value)] == []
