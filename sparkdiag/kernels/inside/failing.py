"""What a kernel's exception means: its own fault, too little memory, a device that is lost, or the environment's."""

from __future__ import annotations

import subprocess

import torch

LONGEST = 300
_ENVIRONMENT = ("c compiler", "libcuda.so", "python.h", "0 active drivers", "no kernel image is available")
_LOST = (
    "cuda error",
    "illegal memory access",
    "device-side assert",
    "unspecified launch failure",
    "misaligned address",
)


class EnvironmentTrouble(Exception):
    """Nothing can be said of the kernel: what it needs to run is not there."""


class DeviceLost(Exception):
    """After this error the process can use its device no more."""


def told(error: BaseException) -> str:
    """The exception in one line."""
    if isinstance(error, SystemExit):
        return f"SystemExit: it ends the program with {error.code!r}"[:LONGEST]
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    # Triton's compiler shows the source first and says what is wrong in the end.
    said = lines[-1] if type(error).__name__ == "CompilationError" and lines else " ".join(lines)
    return f"{type(error).__name__}: {said}"[:LONGEST]


def is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or (
        isinstance(error, RuntimeError) and "not enough memory" in str(error)
    )


def is_lost(error: BaseException) -> bool:
    said = str(error).lower()
    return isinstance(error, RuntimeError) and any(sign in said for sign in _LOST)


def raise_trouble(error: BaseException) -> None:
    """Raise ``EnvironmentTrouble`` where the environment is at fault."""
    said = f"{error} {getattr(error, 'cmd', '')}".lower()
    compiler = isinstance(error, (subprocess.CalledProcessError, FileNotFoundError))
    if compiler or any(sign in said for sign in _ENVIRONMENT):
        raise EnvironmentTrouble(told(error)) from error
