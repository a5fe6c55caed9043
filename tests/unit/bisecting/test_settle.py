"""Between two trials: what is waited for is what we used, for so long and no longer."""

import threading
from collections.abc import Sequence
from types import SimpleNamespace

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.bisecting.trials import settle as settling
from sparkdiag.bisecting.trials.settle import AT_MOST_S, GpuRoom, bounded, settle, still_held
from sparkdiag.observing import gpu
from sparkdiag.observing.gpu import GpuMemory, gpu_memory

IDLE = (GpuMemory(index=0, used_mib=600), GpuMemory(index=1, used_mib=600))


class Machine:
    """Gives one reading after the other, the last for ever; a second passes with each wait."""

    def __init__(self, *readings: Sequence[GpuMemory]) -> None:
        self.readings = [tuple(reading) for reading in readings]
        self.now_s = 0.0

    def read(self) -> tuple[GpuMemory, ...]:
        return self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]

    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    def settle(self, before: Sequence[GpuMemory]) -> str | None:
        return settle(before, read=self.read, wait=self.wait, clock=lambda: self.now_s)


def test_memory_that_comes_back_late_is_waited_for() -> None:
    full = (GpuMemory(index=0, used_mib=120_000), IDLE[1])
    machine = Machine(full, full, full, IDLE)
    assert machine.settle(IDLE) is None
    assert machine.now_s == 3


def test_memory_that_never_comes_back_is_told_after_a_bounded_time() -> None:
    machine = Machine((IDLE[0], GpuMemory(index=1, used_mib=600 + 2048)))
    told = machine.settle(IDLE)
    assert machine.now_s == AT_MOST_S
    assert told is not None and "GPU 1: 2.0 GiB" in told and "GPU 0" not in told


def test_what_a_living_process_uses_is_somebody_elses() -> None:
    machine = Machine((GpuMemory(index=0, used_mib=40_600, others_mib=40_000), IDLE[1]))
    assert machine.settle(IDLE) is None
    assert machine.now_s == 0


def test_somebody_elses_memory_that_goes_hides_nothing_of_ours() -> None:
    before = (GpuMemory(index=0, used_mib=40_600, others_mib=40_000),)
    assert still_held(before, (GpuMemory(index=0, used_mib=40_600, others_mib=0),)) == {0: 40_000}


@given(st.floats(0, 200_000), st.floats(0, 200_000), st.floats(0, 200_000))
def test_never_more_than_what_is_used_beyond_before(used: float, others: float, was: float) -> None:
    held = still_held((GpuMemory(index=0, used_mib=was),), (GpuMemory(index=0, used_mib=used, others_mib=others),))
    assert all(0 < mib <= used - was or used <= was for mib in held.values())


def test_a_gpu_that_was_not_there_before_is_not_waited_for() -> None:
    assert still_held((), IDLE) == {}
    assert still_held(IDLE[:1], (*IDLE[:1], GpuMemory(index=1, used_mib=99_999))) == {}


def test_a_driver_that_hangs_holds_nobody_for_long() -> None:
    for_ever = threading.Event()

    def hang() -> tuple[GpuMemory, ...]:
        for_ever.wait(30)
        return IDLE

    assert bounded(hang, within_s=0.05) == ()
    for_ever.set()
    assert bounded(lambda: IDLE) == IDLE


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """One GPU; ``processes`` of (pid, bytes)."""
    fake = SimpleNamespace(used=600 * 2**20, processes=[], told=True)
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlShutdown", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: 1)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda index: index)
    monkeypatch.setattr(gpu.psutil, "pid_exists", lambda pid: pid < 100)

    def memory(_handle: int) -> SimpleNamespace:
        if not fake.told:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return SimpleNamespace(used=fake.used)

    def processes(_handle: int) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in fake.processes]

    monkeypatch.setattr(pynvml, "nvmlDeviceGetMemoryInfo", memory)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetComputeRunningProcesses", processes)
    return fake


def test_nvml_tells_what_is_used_and_by_whom_that_lives(nvml: SimpleNamespace) -> None:
    nvml.processes = [(7, 100 * 2**20), (500, 200 * 2**20), (8, None)]
    assert gpu_memory() == (GpuMemory(index=0, used_mib=600, others_mib=100),)


def test_a_trial_of_ours_is_waited_for_and_a_gpu_that_tells_nothing_is_not(
    nvml: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        nvml.used = 600 * 2**20

    monkeypatch.setattr(settling.time, "sleep", wait)
    room = GpuRoom()
    assert room.wait() is None
    room.look()
    nvml.used = 90_000 * 2**20
    assert room.wait() is None and len(waits) == 1
    nvml.told = False
    room.look()
    assert room.wait() is None and len(waits) == 1
