"""Which variables a scenario may set for the server. Pure.

A scenario is a file that people pass on. It may tune vLLM, CUDA, NCCL or OpenMP; it may not decide which programs and
libraries are loaded, where files and connections go, switch usage statistics on, or carry a secret (it is copied into
every run folder). Whoever wants one of these sets it in the shell that starts sparkdiag, which the server inherits.
"""

import re
from typing import NamedTuple

from sparkdiag.harmless.names import is_telling

_LOADING = re.compile(
    r"(LD|DYLD|BASH|GIT|SPARKDIAG)(_|[A-Z]|$)"
    r"|PYTHON(?!(UNBUFFERED|HASHSEED|FAULTHANDLER|DONTWRITEBYTECODE|MALLOC|OPTIMIZE)$)"
    r"|(XDG|PIP|UV|CONDA|NVCC)_"
    r"|(PATH|HOME|SHELL|ENV|IFS|USER|LOGNAME|VIRTUAL_ENV|GLIBC_TUNABLES|GCONV_PATH|CC|CXX|OPENSSL_CONF)$"
    r"|(CUDA_INJECTION(32|64)_PATH|OMP_TOOL_LIBRARIES|NCCL_(NET|TUNER|PROFILER|ENV)_PLUGIN)$"
    r"|(CUDACXX|CUDAHOSTCXX|NVCC|CPATH|GCC_EXEC_PREFIX|(C|CPP|CXX|LD)FLAGS|TRITON_PLUGIN\w*)$"
    r"|(VLLM_\w+_SO_PATH|TRITON_\w+_PATH|(CUDA|ROCM|HIP)_(HOME|PATH|ROOT))$"
    r"|VLLM_(ALLOW_INSECURE_SERIALIZATION|ALLOW_RUNTIME_LORA_UPDATING|SERVER_DEV_MODE)$"
)
_PLACES = re.compile(
    r"\w+_(PATH|PATHS|DIR|DIRS|ROOT|HOME|FOLDER|FILE)$"
    r"|(HF|HUGGINGFACE)_(HUB|MODULES|ASSETS|XET)_CACHE$|(TRANSFORMERS|VLLM_ASSETS|VLLM_MEDIA)_CACHE$"
    r"|FLASHINFER_WORKSPACE_BASE$|TORCH_(TRACE|LOGS_OUT)$"
)
"""Caches hold compiled kernels and downloaded code: who names the folder decides what is loaded from it."""
_OURS = re.compile(r"(TMPDIR|TEMP|TMP|VLLM_RPC_BASE_PATH|VLLM_PORT)$")
_TRAFFIC = re.compile(
    r"(HTTPS?|FTP|ALL|NO)_PROXY$|(SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)$", re.IGNORECASE
)
_ELSEWHERE = re.compile(
    r"\w+_(ENDPOINTS?|ENDPOINT_\w+|URL|URI|SERVER)$|(OTEL|LMCACHE|MODELSCOPE)_|VLLM_USE_MODELSCOPE$"
)
_HOST = re.compile(r"\w+_(IPS?|ADDR|ADDRESS|HOST|HOSTNAME)$")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_INTERFACE = re.compile(r"\w+_SOCKET_IFNAME$")
_QUIET = ("VLLM_NO_USAGE_STATS", "DO_NOT_TRACK", "VLLM_DO_NOT_TRACK", "HF_HUB_DISABLE_TELEMETRY")
_SHELL = "set it in the shell that starts sparkdiag"


class Refused(NamedTuple):
    """Why a variable may not stand in a scenario, without its value."""

    found: str
    allowed: str


def refused_variable(name: str, value: str) -> Refused | None:
    """What is wrong with setting ``name``; None for what a scenario may set."""
    if is_telling(name):
        return Refused("the name of a secret", f"no secrets: a scenario is copied into run folders; {_SHELL}")
    if _LOADING.match(name):
        found = "a variable that decides which programs or libraries run"
        return Refused(found, f"settings of vLLM and its libraries only; {_SHELL}")
    if _OURS.match(name):
        return Refused("a variable that sparkdiag sets itself", "nothing: leave it out")
    if _PLACES.match(name):
        found = "a variable that says where files are read and written"
        return Refused(found, f"nothing of the kind in a scenario; {_SHELL}")
    if _TRAFFIC.match(name) or _ELSEWHERE.match(name):
        return Refused("a variable that leads connections elsewhere", f"nothing of the kind in a scenario; {_SHELL}")
    return _refused_value(name, value)


def _refused_value(name: str, value: str) -> Refused | None:
    if _HOST.match(name) and value not in _LOOPBACK:
        return Refused("an address other than loopback", f"one of {', '.join(_LOOPBACK)}; {_SHELL}")
    if _INTERFACE.match(name) and value not in ("lo", "=lo"):
        return Refused("a network interface other than loopback", f"lo; {_SHELL}")
    if name in _QUIET and value != "1":
        return Refused("a value that may switch usage statistics on", "1, or nothing: leave it out")
    return None
