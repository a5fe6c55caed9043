"""``gpus.toml`` as values: the peaks that floors are reckoned by."""

import tomllib
from functools import cache
from importlib.resources import files

from pydantic import TypeAdapter

from sparkdiag.evidence.kernels import Gpu

FILE = "gpus.toml"


@cache
def known_gpus() -> tuple[Gpu, ...]:
    """All of them, in the file's order."""
    text = files("sparkdiag.kernels").joinpath(FILE).read_text(encoding="utf-8")
    return TypeAdapter(tuple[Gpu, ...]).validate_python(tomllib.loads(text)["gpu"])


def gpu_named(name: str) -> Gpu | None:
    """By the name that ``--gpu`` takes: ``h200``."""
    return next((gpu for gpu in known_gpus() if gpu.name == name), None)


def gpu_of_device(device: str) -> Gpu | None:
    """By the name that the driver gives the device: ``NVIDIA H200``. None for a variant that has other peaks."""
    return next((gpu for gpu in known_gpus() if device in gpu.devices), None)
