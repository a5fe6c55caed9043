import pytest

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.client import ClientOutcome, PromptSent, ResponseEnd
from sparkdiag.evidence.processes import ProcessInfo, Role
from sparkdiag.evidence.stacks import SamplingStats, StackSample, ThreadStack
from sparkdiag.evidence.timeline import GpuPoint, KvCapacity, MetricPoint, NoteEvent, ProcessesEvent
from sparkdiag.observing.log import ObservationLog

SENT = PromptSent(t_s=10.0, kind="needle", tokens=100, depth=0.5, seed=0, nonce="n", expected="e", max_output_tokens=8)


def make(*, most_samples: int = 100) -> tuple[ObservationLog, list[Value]]:
    sunk: list[Value] = []
    return ObservationLog(clock=lambda: 42.0, sink=sunk.append, most_samples=most_samples), sunk


def sample(pid: int, began: float, *, took: float = 0.1, error: str | None = None, late: bool = False) -> StackSample:
    threads = () if error else (ThreadStack(),)
    return StackSample(pid=pid, started_s=began, ended_s=began + took, threads=threads, error=error, late=late)


def process(pid: int, role: Role, started: float = 1.0) -> ProcessInfo:
    return ProcessInfo(pid=pid, started_at_s=started, role=role, title="t")


def test_samples_count_from_the_prompt_on() -> None:
    log, sunk = make()
    log.add_sample(sample(1, 9.0))
    assert not log.in_flight
    log.set_client(ClientOutcome(sent=SENT))
    assert log.in_flight
    log.add_sample(sample(1, 9.9))
    log.add_sample(sample(1, 10.1))
    found = log.snapshot()
    assert [one.started_s for one in found.samples] == [10.1]
    assert found.sampling.taken == 1
    assert found.client.sent == SENT
    assert [one for one in sunk if isinstance(one, StackSample)] == list(found.samples)
    log.set_client(ClientOutcome(sent=SENT, end=ResponseEnd(t_s=20.0, how="finished")))
    assert not log.in_flight


def test_stats_tell_late_and_failed_apart() -> None:
    log, _sunk = make()
    log.set_client(ClientOutcome(sent=SENT))
    log.add_sample(sample(1, 11.0))
    log.add_sample(sample(1, 12.0, took=3.0, late=True))
    log.add_sample(sample(1, 16.0, took=10.0, error="too slow", late=True), cause="timeout")
    log.add_cost(0.5)
    log.add_cost(0.25)
    stats = log.snapshot().sampling
    assert (stats.taken, stats.late, stats.failed, stats.errors) == (3, 1, 1, {"timeout": 1})
    assert (stats.cpu_s, stats.longest_s) == (0.75, 10.0)


def test_samples_stand_in_order_of_their_end_and_are_bounded() -> None:
    log, sunk = make(most_samples=20)
    log.set_client(ClientOutcome(sent=SENT))
    log.add_sample(sample(1, 11.0, took=5.0))
    log.add_sample(sample(2, 12.0))
    assert [one.pid for one in log.snapshot().samples] == [2, 1]
    for index in range(200):
        log.add_sample(sample(index % 2, 20.0 + index))
    kept = log.snapshot().samples
    assert len(kept) <= 20
    assert kept[-1].started_s == 219.0
    assert sum(isinstance(one, StackSample) for one in sunk) == 202, "the sink has all of them"


def test_a_process_that_was_sampled_keeps_its_name_after_its_end() -> None:
    log, sunk = make()
    log.set_client(ClientOutcome(sent=SENT))
    core, worker, helper = process(1, "engine_core"), process(2, "worker", 2.0), process(3, "other", 3.0)
    log.set_processes((core, worker, helper))
    log.set_processes((core, worker, helper))
    log.add_sample(sample(2, 11.0))
    log.set_processes((core,))
    assert log.processes == (core,)
    assert log.snapshot().processes == (core, worker)
    assert [one.processes for one in sunk if isinstance(one, ProcessesEvent)] == [
        (core, worker, helper),
        (core, worker),
    ]
    assert [one.text for one in sunk if isinstance(one, NoteEvent)] == ["Worker (pid 2) is gone"]
    successor = process(2, "worker", 9.0)
    log.set_processes((core, successor))
    assert log.snapshot().processes == (core, successor), "a reused pid is the new process"


def test_capacity_is_told_once() -> None:
    log, sunk = make()
    for t_s in (1.0, 2.0):
        log.add_metrics(MetricPoint(t_s=t_s), KvCapacity(t_s=t_s, num_blocks=5, block_size_tokens=16))
    log.add_metrics(MetricPoint(t_s=3.0), None)
    assert [one.t_s for one in sunk if isinstance(one, KvCapacity)] == [1.0]
    found = log.snapshot()
    assert found.kv_capacity is not None
    assert [point.t_s for point in found.metrics] == [1.0, 2.0, 3.0]


def test_gpus_and_mode() -> None:
    log, sunk = make()
    log.add_gpus((GpuPoint(t_s=1.0, index=0), GpuPoint(t_s=1.0, index=1)))
    log.set_mode("none", reason="no permission")
    found = log.snapshot()
    assert [gpu.index for gpu in found.gpus] == [0, 1]
    assert (found.sampling.mode, found.sampling.reason) == ("none", "no permission")
    assert isinstance(sunk[-1], NoteEvent)


def test_a_broken_sink_is_counted_and_blinds_nobody() -> None:
    def full(_value: Value) -> None:
        raise OSError("no space left")

    log = ObservationLog(clock=lambda: 1.0, sink=full)
    log.add_metrics(MetricPoint(t_s=1.0), None)
    found = log.snapshot()
    assert len(found.metrics) == 1
    assert found.sampling.errors == {"sink: OSError": 1}


def test_nothing_reaches_the_sink_after_the_close() -> None:
    log, sunk = make()
    log.close()
    log.note("test", "late")
    assert sunk == []


def test_the_cost_of_looking_is_counted_while_the_request_is_under_way() -> None:
    now_s, own_s = [5.0], [100.0]
    stats = SamplingStats(cores=2, budget_share=0.01)
    log = ObservationLog(clock=lambda: now_s[0], sink=lambda _value: None, own_cpu_s=lambda: own_s[0], stats=stats)
    assert log.snapshot().sampling.share is None
    now_s[0], own_s[0] = 10.0, 107.0
    log.set_client(ClientOutcome(sent=SENT))
    now_s[0], own_s[0] = 30.0, 107.1
    log.add_cost(0.3, period_s=4.0, planned_share=0.0125)
    found = log.snapshot().sampling
    assert (round(found.own_cpu_s, 6), found.observed_s, found.cpu_s) == (0.1, 20.0, 0.3)
    assert found.share == pytest.approx(0.4 / 20 / 2)
    assert (found.period_s, found.planned_share) == (4.0, 0.0125)
    log.set_client(ClientOutcome(sent=SENT, end=ResponseEnd(t_s=30.0, how="finished")))
    now_s[0], own_s[0] = 500.0, 900.0
    assert log.snapshot().sampling == found, "reading and reporting afterwards are no part of it"
    log.set_client(ClientOutcome(sent=SENT, end=ResponseEnd(t_s=30.0, how="finished")))
    assert log.snapshot().sampling == found


def test_of_a_server_that_others_use_everything_counts_from_its_first_moment() -> None:
    now_s, spent_s = [5.0], [1.0]
    log = ObservationLog(
        clock=lambda: now_s[0], sink=lambda _value: None, own_cpu_s=lambda: spent_s[0], from_ready=True
    )
    log.mark_ready()
    assert log.in_flight
    log.add_sample(sample(1, 5.0))
    now_s[0], spent_s[0] = 25.0, 1.5
    found = log.snapshot()
    assert [one.started_s for one in found.samples] == [5.0]
    assert (found.sampling.observed_s, found.sampling.own_cpu_s) == (20.0, 0.5)
    log.set_client(ClientOutcome(sent=SENT, end=ResponseEnd(t_s=20.0, how="finished")))
    assert log.in_flight, "somebody else's request may be under way"
