"""Which variables a scenario may set for the server. Pure.

A scenario is a file that people pass on. It may tune vLLM, CUDA, NCCL or OpenMP; it may not decide which programs and
libraries are loaded, where files and connections go, or carry a secret (it is copied into every run folder). Whoever
wants one of these sets it in the shell that starts sparkdiag, which the server inherits.
"""

import re
from typing import NamedTuple

from sparkdiag.harmless.names import is_telling

_LOADING = re.compile(
    r"(LD|DYLD|BASH|GIT|SPARKDIAG)(_|[A-Z]|$)"
    r"|PYTHON(?!(UNBUFFERED|HASHSEED|FAULTHANDLER|DONTWRITEBYTECODE|MALLOC|OPTIMIZE)$)"
    r"|(PATH|HOME|SHELL|ENV|IFS|USER|LOGNAME|VIRTUAL_ENV|GLIBC_TUNABLES|GCONV_PATH|CC|CXX|OPENSSL_CONF)$"
    r"|(CUDA_INJECTION(32|64)_PATH|OMP_TOOL_LIBRARIES|NCCL_(NET|TUNER|PROFILER|ENV)_PLUGIN)$"
    r"|(VLLM_\w+_SO_PATH|VLLM_LOGGING_CONFIG_PATH)$"
)
_OURS = re.compile(r"(TMPDIR|TEMP|TMP|VLLM_RPC_BASE_PATH|VLLM_PORT)$")
_TRAFFIC = re.compile(
    r"(HTTPS?|FTP|ALL|NO)_PROXY$|(SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE)$", re.IGNORECASE
)
_HOST = "VLLM_HOST_IP"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
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
    if _TRAFFIC.match(name):
        return Refused("a variable that leads connections elsewhere", f"nothing of the kind in a scenario; {_SHELL}")
    if _OURS.match(name):
        return Refused("a variable that sparkdiag sets itself", "nothing: leave it out")
    if name == _HOST and value not in _LOOPBACK:
        return Refused("an address other than loopback", f"one of {', '.join(_LOOPBACK)}")
    return None
