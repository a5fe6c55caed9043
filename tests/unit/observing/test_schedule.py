import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.evidence.processes import ProcessInfo, Role
from sparkdiag.observing.pace import Pace, focus_of
from sparkdiag.observing.process_tree import key_of, with_api_server
from sparkdiag.observing.schedule import (
    BACK_OFF_FACTOR,
    OTHERS_EVERY,
    backed_off_s,
    periods,
    predicted_share,
    smoothed_cost_s,
)
from sparkdiag.scenario.model import Patience, Sampling

costs = st.floats(min_value=0, max_value=50)


@st.composite
def samplings(draw: st.DrawFn) -> Sampling:
    return Sampling(
        cpu_share=draw(st.floats(min_value=0.001, max_value=1)),
        min_period_s=draw(st.floats(min_value=0.05, max_value=5)),
        max_period_s=draw(st.floats(min_value=0.05, max_value=60)),
    )


@given(costs, costs, st.integers(min_value=1, max_value=256), samplings())
def test_the_budget_is_kept_unless_the_longest_gap_forbids_it(
    focus: float, others: float, cores: int, sampling: Sampling
) -> None:
    found = periods(focus_cost_s=focus, others_cost_s=others, cores=cores, sampling=sampling)
    longest_s = max(sampling.max_period_s, sampling.min_period_s)
    assert sampling.min_period_s <= found.focus_s <= min(longest_s, found.others_s)
    share = predicted_share(found, focus_cost_s=focus, others_cost_s=others, cores=cores)
    if found.focus_s < longest_s:
        assert share <= sampling.cpu_share * (1 + 1e-9)
    if found.focus_s > sampling.min_period_s:
        assert share >= sampling.cpu_share * (1 - 1e-9), "no rarer than the budget asks for"


@given(st.lists(st.floats(min_value=0.005, max_value=0.2), min_size=1, max_size=8), samplings())
def test_looking_for_long_costs_what_was_predicted(costs_s: list[float], sampling: Sampling) -> None:
    """An hour of looks taken at the paces' word, each process at its own cost, the first at once."""
    processes = tuple(process(3 + n, "worker" if n % 2 else "api_server") for n in range(len(costs_s)))
    pace = Pace(sampling, cores=2)
    pace.follow(processes)
    hour_s, spent_s = 3600.0, 0.0
    for _ in range(100):
        for one, cost_s in zip(processes, costs_s, strict=True):
            pace.paid(key_of(one), cost_s, failed=False)
    for one, cost_s in zip(processes, costs_s, strict=True):
        spent_s += cost_s * hour_s / pace.period_s(key_of(one))
    assert spent_s / hour_s / 2 == pytest.approx(pace.planned_share(), rel=1e-3)
    if pace.focus_period_s() < max(sampling.max_period_s, sampling.min_period_s):
        assert pace.planned_share() <= sampling.cpu_share * (1 + 1e-9)


@given(costs, costs, samplings())
def test_dearer_dumps_are_never_taken_more_often(one: float, other: float, sampling: Sampling) -> None:
    low, high = sorted((one, other))
    cheap = periods(focus_cost_s=low, others_cost_s=0.1, cores=2, sampling=sampling)
    dear = periods(focus_cost_s=high, others_cost_s=0.1, cores=2, sampling=sampling)
    assert cheap.focus_s <= dear.focus_s + 1e-9


def test_two_workers_on_two_cores_are_seen_often_enough_for_a_verdict_in_a_minute() -> None:
    found = periods(focus_cost_s=0.06, others_cost_s=0.06, cores=2, sampling=Sampling())
    assert found.focus_s == pytest.approx((0.06 + 0.06 / OTHERS_EVERY) / 0.02)
    assert 1 + Patience().min_samples * found.focus_s < 20
    assert found.others_s == pytest.approx(OTHERS_EVERY * found.focus_s)


def test_plenty_of_cores_stop_at_the_shortest_period() -> None:
    assert periods(focus_cost_s=0.06, others_cost_s=0.06, cores=128, sampling=Sampling()).focus_s == 0.5


def test_a_failing_process_is_tried_less_often_within_the_longest_gap() -> None:
    assert backed_off_s(1.0, failures_in_a_row=0, longest_s=10) == 1.0
    assert backed_off_s(1.0, failures_in_a_row=2, longest_s=10) == 4.0
    assert backed_off_s(1.0, failures_in_a_row=10_000, longest_s=100) == BACK_OFF_FACTOR
    assert backed_off_s(2.0, failures_in_a_row=5, longest_s=10) == 10.0
    assert backed_off_s(12.0, failures_in_a_row=5, longest_s=10) == 12.0


@given(st.lists(st.floats(min_value=0, max_value=10), min_size=1, max_size=50))
def test_the_running_mean_stays_between_the_extremes(measured: list[float]) -> None:
    mean: float | None = None
    for value in measured:
        mean = smoothed_cost_s(mean, value)
    assert mean is not None
    assert min(measured) - 1e-9 <= mean <= max(measured) + 1e-9


def process(pid: int, role: Role, *, parent: int = 1, python: str | None = "/usr/bin/python3") -> ProcessInfo:
    return ProcessInfo(pid=pid, parent_pid=parent, started_at_s=float(pid), role=role, title="t", python=python)


def test_the_model_runs_in_the_workers_or_else_in_the_engine_core() -> None:
    api, core, worker = process(1, "api_server"), process(2, "engine_core"), process(3, "worker")
    assert focus_of((api, core, worker)) == {key_of(worker)}
    assert focus_of((api, core)) == {key_of(core)}
    assert focus_of((api,)) == frozenset()


def test_the_pace_follows_what_dumps_cost() -> None:
    core, worker = process(2, "engine_core"), process(3, "worker")
    pace = Pace(Sampling(), cores=2)
    pace.follow((core, worker))
    before_s = pace.period_s(key_of(worker))
    assert pace.period_s(key_of(core)) == pytest.approx(OTHERS_EVERY * before_s)
    for _ in range(50):
        pace.paid(key_of(worker), 0.2, failed=False)
    assert pace.focus_period_s() > 4 * before_s
    pace.follow((core, process(4, "worker")))
    assert pace.focus_period_s() == pytest.approx(before_s)
    pace.paid(key_of(worker), 9.0, failed=True)
    assert pace.focus_period_s() == pytest.approx(before_s), "a process that is gone costs nothing"


def test_failures_in_a_row_stretch_only_their_own_process() -> None:
    one, other = process(3, "worker"), process(4, "worker")
    pace = Pace(Sampling(), cores=64)
    pace.follow((one, other))
    pace.paid(key_of(one), 0.03, failed=True)
    pace.paid(key_of(one), 0.03, failed=True)
    assert pace.period_s(key_of(one)) == 4 * pace.period_s(key_of(other))
    pace.paid(key_of(one), 0.03, failed=False)
    assert pace.period_s(key_of(one)) == pace.period_s(key_of(other))


def test_a_script_of_the_users_own_above_an_engine_core_is_the_api_server() -> None:
    script, shell, core = process(1, "other", parent=9), process(9, "other", python=None), process(2, "engine_core")
    assert [p.role for p in with_api_server((shell, script, core))] == ["other", "api_server", "engine_core"]
    known = (process(5, "api_server"), script, core)
    assert with_api_server(known) == known
