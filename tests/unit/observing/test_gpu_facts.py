from pathlib import Path
from types import SimpleNamespace

import pynvml
import pytest

from sparkdiag.observing import gpu_facts
from sparkdiag.observing.gpu_facts import look_at_gpus


def refuse(*_args: object) -> None:
    raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


def answer(monkeypatch: pytest.MonkeyPatch, **changes: object) -> None:
    answers = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetMemoryInfo": lambda _handle: SimpleNamespace(total=2**30, used=0),
        "nvmlDeviceGetCudaComputeCapability": lambda _handle: (12, 1),
        "nvmlDeviceGetName": lambda _handle: "NVIDIA GB10",
        "nvmlDeviceGetUUID": refuse,
        "nvmlSystemGetDriverVersion": lambda: b"580.95.05",
        "nvmlSystemGetCudaDriverVersion": lambda: 13010,
    }
    for name, one in (answers | changes).items():
        monkeypatch.setattr(gpu_facts.pynvml, name, one)


def test_the_driver_and_the_newest_cuda_that_it_serves(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    answer(monkeypatch)
    look = look_at_gpus(tmp_path)
    assert (look.driver, look.driver_cuda, look.gpus[0].capability) == ("580.95.05", "13.1", (12, 1))


def test_a_driver_that_does_not_say_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    answer(monkeypatch, nvmlSystemGetDriverVersion=refuse, nvmlSystemGetCudaDriverVersion=refuse)
    look = look_at_gpus(tmp_path)
    assert (look.driver, look.driver_cuda, len(look.gpus)) == (None, None, 1)
