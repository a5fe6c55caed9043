"""What a scenario may set for the server."""

import pytest

from sparkdiag.scenario.environment_names import refused_variable
from sparkdiag.scenario.load import builtin_names, load_scenario

REFUSED = (
    "LD_PRELOAD", "LD_LIBRARY_PATH", "PATH", "HOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT",
    "PYTHONBREAKPOINT", "BASH_ENV", "ENV", "GIT_SSH_COMMAND", "SHELL", "CUDA_INJECTION64_PATH", "OMP_TOOL_LIBRARIES",
    "NCCL_NET_PLUGIN", "VLLM_NCCL_SO_PATH", "VLLM_LOGGING_CONFIG_PATH", "TMPDIR", "VLLM_RPC_BASE_PATH", "VLLM_PORT",
    "https_proxy", "HTTP_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "HF_TOKEN", "VLLM_API_KEY", "AWS_SECRET_ACCESS_KEY",
    "AWS_ACCESS_KEY_ID", "DB_PASSWORD", "SPARKDIAG_TREE", "GCONV_PATH", "TRITON_PTXAS_PATH", "HF_ENDPOINT", "CUDA_HOME",
    "CUDA_PATH", "NCCL_CONF_FILE", "MASTER_ADDR", "VLLM_ALLOW_INSECURE_SERIALIZATION", "VLLM_USAGE_STATS_SERVER",
    "HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "VLLM_CACHE_ROOT", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR",
    "TORCH_EXTENSIONS_DIR", "NVCC_PREPEND_FLAGS", "CXXFLAGS", "OTEL_EXPORTER_OTLP_ENDPOINT", "RAY_ADDRESS",
    "VLLM_DP_MASTER_IP", "VLLM_NIXL_SIDE_CHANNEL_HOST", "VLLM_MODEL_REDIRECT_PATH", "VLLM_SERVER_DEV_MODE",
    "AWS_ENDPOINT_URL_S3", "VLLM_USE_MODELSCOPE", "PIP_INDEX_URL", "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME",
    "VLLM_NO_USAGE_STATS", "DO_NOT_TRACK", "VLLM_DO_NOT_TRACK",
)  # fmt: skip
FREE = (
    "VLLM_PLUGINS", "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "NCCL_DEBUG", "NCCL_P2P_DISABLE",
    "OMP_NUM_THREADS", "TORCH_COMPILE_DISABLE", "TOKENIZERS_PARALLELISM", "HF_HUB_OFFLINE", "PYTHONUNBUFFERED",
    "PYTHONHASHSEED", "TORCHINDUCTOR_FX_GRAPH_CACHE", "VLLM_CPU_KVCACHE_SPACE", "DO_NOT_TRACK",
    "VLLM_DISABLE_COMPILE_CACHE", "VLLM_NO_USAGE_STATS", "VLLM_ATTENTION_BACKEND", "TRITON_INTERPRET",
    "PYTORCH_CUDA_ALLOC_CONF", "VLLM_LOGGING_LEVEL", "VLLM_ALLREDUCE_USE_FLASHINFER_PCIE_IPC", "TORCH_CUDA_ARCH_LIST",
)  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_runs_something_else_leads_elsewhere_or_is_secret_is_refused(name: str) -> None:
    refused = refused_variable(name, "some-value")
    assert refused is not None
    assert "some-value" not in refused.found + refused.allowed
    assert "set it in the shell" in refused.allowed or "leave it out" in refused.allowed


@pytest.mark.parametrize("name", FREE)
def test_settings_of_vllm_and_its_libraries_are_free(name: str) -> None:
    assert refused_variable(name, "1") is None


@pytest.mark.parametrize(
    ("value", "fine"), [("127.0.0.1", True), ("::1", True), ("0.0.0.0", False), ("10.1.2.3", False)]
)
def test_the_host_of_the_tree_is_loopback(value: str, fine: bool) -> None:
    assert (refused_variable("VLLM_HOST_IP", value) is None) == fine


@pytest.mark.parametrize("name", ["MASTER_ADDR", "VLLM_HOST_IP", "VLLM_LOOPBACK_IP", "GLOO_SOCKET_IFNAME"])
def test_an_address_or_interface_may_be_loopback_alone(name: str) -> None:
    loopback, other = ("lo", "eth0") if "IFNAME" in name else ("127.0.0.1", "10.0.0.1")
    assert refused_variable(name, loopback) is None
    assert refused_variable(name, other) is not None


@pytest.mark.parametrize("name", ["VLLM_NO_USAGE_STATS", "DO_NOT_TRACK", "VLLM_DO_NOT_TRACK"])
@pytest.mark.parametrize("value", ["0", "", "false", " 1"])
def test_usage_statistics_cannot_be_switched_on(name: str, value: str) -> None:
    assert refused_variable(name, value) is not None
    assert refused_variable(name, "1") is None


def test_every_built_in_scenario_keeps_to_it() -> None:
    for name in builtin_names():
        env = load_scenario(name).server.env
        assert [key for key, value in env.items() if refused_variable(key, value)] == []
