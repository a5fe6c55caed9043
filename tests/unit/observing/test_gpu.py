from types import SimpleNamespace

import pynvml
import pytest

from sparkdiag.observing import gpu
from sparkdiag.observing.gpu import GpuReader, gpu_names


def refuse(*_args: object) -> None:
    raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetUtilizationRates": lambda _handle: SimpleNamespace(gpu=96),
        "nvmlDeviceGetPowerUsage": lambda handle: 530_000 + handle,
        "nvmlDeviceGetMemoryInfo": refuse,
        "nvmlDeviceGetName": lambda handle: b"GB10\x1b" if handle else "NVIDIA GB10",
    }
    for name, answer in answers.items():
        monkeypatch.setattr(gpu.pynvml, name, answer)


@pytest.mark.usefixtures("two_gpus")
def test_each_gpu_is_read_and_what_it_does_not_tell_is_none() -> None:
    reader = GpuReader(clock=lambda: 3.0)
    assert reader.present
    one, two = reader.read()
    assert (one.t_s, one.index, one.utilisation_percent, one.power_w, one.memory_used_mib) == (
        3.0,
        0,
        96.0,
        530.0,
        None,
    )
    assert two.index == 1
    reader.close()
    assert reader.read() == ()


@pytest.mark.usefixtures("two_gpus")
def test_names_are_clean() -> None:
    assert gpu_names() == ("NVIDIA GB10", "GB10\\x1b")


@pytest.mark.parametrize("where", ["nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex"])
@pytest.mark.usefixtures("two_gpus")
def test_without_nvml_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    monkeypatch.setattr(gpu.pynvml, where, refuse)
    reader = GpuReader(clock=lambda: 0.0)
    assert not reader.present
    assert reader.read() == ()
    assert gpu_names() == ()
