"""What a bug report of vLLM asks for of the environment under test: from files and NVML, in milliseconds."""

import os
import platform
import re
from collections.abc import Mapping, Sequence

from sparkdiag.environment.model import Environment
from sparkdiag.environment.packages import installed_in
from sparkdiag.evidence.run import Software
from sparkdiag.harmless.excerpt import one_line
from sparkdiag.harmless.secrets import redact_text
from sparkdiag.observing.gpu_facts import GpuFacts, look_at_gpus

VARIABLES = re.compile(
    r"VLLM_\w+|TORCH\w*|PYTORCH\w*|NCCL_\w+|CUDA_\w+|CUBLAS\w*|CUDNN\w*|OMP_\w+|MKL_\w+|NVIDIA_\w+|TRITON_\w+"
    r"|GLOO_\w+|FLASHINFER_\w+|DG_\w+|LD_LIBRARY_PATH|LD_PRELOAD"
)
"""Of what the server inherits: the prefixes that vLLM's bug form looks at, and those of the kernels' libraries."""
_SECRET = re.compile(r"secret|token|api|access|password|passwd|key|auth|credential|url|proxy|host|user", re.IGNORECASE)
_MOST_VARIABLES, _LONGEST = 60, 200


def software_of(environment: Environment, *, inherited: Mapping[str, str] = os.environ) -> Software:
    """Of an environment that a server is about to be launched from; never raises for what is not there."""
    found = installed_in(environment.python, package_path=environment.package_path)
    dropped = {name: value for name, value in inherited.items() if name not in environment.drop_env}
    return software_here().model_copy(update=found.model_dump() | {"variables": allowed_variables(dropped)})


def software_here() -> Software:
    """Of this machine alone: all that is known where the server is somebody else's."""
    look = look_at_gpus()
    return Software(
        os=_os(),
        libc=" ".join(filter(None, platform.libc_ver())) or None,
        gpus=tuple(gpu_text(gpu) for gpu in look.gpus),
        gpu_problem=look.problem,
        driver=look.driver,
        driver_cuda=look.driver_cuda,
    )


def allowed_variables(inherited: Mapping[str, str]) -> dict[str, str]:
    """Those of the list whose name tells of no secret and no person, their values without secrets. Pure."""
    names = [name for name in sorted(inherited) if VARIABLES.fullmatch(name) and not _SECRET.search(name)]
    return {name: one_line(redact_text(inherited[name]), limit=_LONGEST) for name in names[:_MOST_VARIABLES]}


def gpu_text(gpu: GpuFacts) -> str:
    """``NVIDIA H200, SM90, 139.8 GiB``. Pure."""
    parts: Sequence[str] = (
        gpu.name,
        "SM{}{}".format(*gpu.capability) if gpu.capability is not None else "",
        f"{gpu.memory_total_mib / 1024:.1f} GiB" if gpu.memory_total_mib is not None else "",
    )
    return ", ".join(filter(None, parts))


def _os() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None
