"""The simulated hours of ``benchmarks watch``: the real pace on a clock that is only counted."""

import pytest

from benchmarks.sixteen import PROCESSES
from benchmarks.watch import DISK_GOAL_MB, MB, ROUND_COST_S, hour, looks
from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack
from sparkdiag.watching.request import WatchRequest, scenario_for, watched_scenario

SAMPLING = watched_scenario(WatchRequest(scenario=scenario_for(None)), processes=(), dcp=1).sampling


@pytest.mark.parametrize("cores", [2, 16])
def test_an_hour_of_sixteen_processes_keeps_to_the_stated_share(cores: int) -> None:
    taken = list(looks(SAMPLING, cores=cores))
    assert {pid for _, pid in taken} == set(range(1, PROCESSES + 1))
    spent_s = len(taken) * ROUND_COST_S / PROCESSES
    assert spent_s <= 3600 * SAMPLING.cpu_share * cores * 1.01 + ROUND_COST_S


def test_an_hour_of_deep_stacks_of_many_threads_stays_small_on_the_disk() -> None:
    frames = tuple(
        Frame(function=f"Model.layer_{depth}", filename=f"/venv/lib/python3.12/site-packages/m{depth}.py", line=depth)
        for depth in range(20)
    )
    deep = StackSample(pid=1, started_s=0, ended_s=0, threads=tuple(ThreadStack(frames=frames) for _ in range(3)))
    whole, written = hour((deep,), SAMPLING, cores=2)
    assert written < whole / 10
    assert written * 16 < DISK_GOAL_MB * MB
