"""Slowness for want of CPU time, while sparkdiag itself had the server yield, is no stall."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_cases import BASELINE, HEALTHY_S, scenario_for

from sparkdiag.evidence.timeline import CpuPoint
from sparkdiag.evidence.verdict import Verdict
from sparkdiag.judging.crowd import crowd_of
from sparkdiag.judging.judge import judge
from sparkdiag.judging.simulation import PrefillModel, SimulatedRun, simulate

LIMIT_S = HEALTHY_S * scenario_for(PrefillModel(seconds=1)).baseline.factor


def point(t_s: float, others: float, *, nice: int = 10, span_s: float = 1.5) -> CpuPoint:
    return CpuPoint(t_s=t_s, span_s=span_s, others_share=others, server_share=0.1, server_nice=nice)


def at(run: SimulatedRun, after_s: float, *points: CpuPoint) -> Verdict:
    observation = run.until(after_s).model_copy(update={"cpu": points})
    return judge(observation, scenario_for(run.model), BASELINE)


def test_a_stall_seen_while_the_server_was_starved_is_none_until_fresh_time_has_shown_it() -> None:
    run = simulate(PrefillModel(seconds=HEALTHY_S * 40, seed=3))
    sent_s = run.model.sent_s
    starved = point(sent_s + 20, 0.5)
    before = LIMIT_S + 15
    assert at(run, before).mode == "crawling", "the same looks without the crowd"
    verdict = at(run, before, starved, point(sent_s + 22, 0.5, nice=0))
    assert verdict.outcome == "inconclusive"
    assert "yield" in (verdict.reason or "")
    assert any(item.source == "cpu" and "50%" in item.text for item in verdict.evidence_against)
    later = at(run, LIMIT_S + 45, starved)
    assert later.mode == "crawling"
    assert any(item.source == "cpu" for item in later.evidence_against)


@pytest.mark.parametrize("nice", [0, 10])
def test_a_server_that_shares_fairly_or_meets_nobody_is_judged_as_ever(nice: int) -> None:
    run = simulate(PrefillModel(seconds=HEALTHY_S * 40, seed=3))
    others = 0.6 if nice == 0 else 0.2
    verdict = at(run, LIMIT_S + 15, point(run.model.sent_s + 20, others, nice=nice))
    assert verdict.mode == "crawling"
    told = [item.text for item in verdict.evidence_against if item.source == "cpu"]
    assert told == (["other programs used 60% of the machine's CPU time meanwhile"] if nice == 0 else [])


def test_time_stood_still_while_starved_does_not_count_as_stuck() -> None:
    run = simulate(PrefillModel(seconds=40, seed=3, freeze_at=0.5), after_freeze_s=400)
    first_s = next(after for after in range(5, 300) if at(run, after).mode == "stuck")
    starved = point(run.model.sent_s + first_s - 1, 0.9)
    assert at(run, first_s + 20, starved).outcome == "inconclusive"
    assert at(run, first_s + 300, starved).mode == "stuck"


@settings(deadline=None)
@given(
    times=st.lists(st.floats(0, 100), max_size=12),
    shares=st.lists(st.floats(0, 1), min_size=12, max_size=12),
    nices=st.lists(st.sampled_from([0, 10]), min_size=12, max_size=12),
)
def test_evidence_counts_from_the_last_starving_look_on(
    times: list[float], shares: list[float], nices: list[int]
) -> None:
    points = [point(t_s, share, nice=nice) for t_s, share, nice in zip(times, shares, nices, strict=False)]
    crowd = crowd_of(points, sent_s=20, until_s=80)
    starving = [one.t_s for one in points if one.starving and 20 <= one.t_s <= 80]
    assert crowd.starved_until_s == max(starving, default=None)
    assert 0 <= crowd.others_share <= 1 + 1e-9
    assert crowd == crowd_of(points[::-1], sent_s=20, until_s=80) or crowd.others_share == pytest.approx(
        crowd_of(points[::-1], sent_s=20, until_s=80).others_share
    )


@given(st.lists(st.tuples(*[st.floats(allow_nan=True, allow_infinity=True)] * 3), max_size=6))
def test_no_number_breaks_it(rows: list[tuple[float, float, float]]) -> None:
    points = [point(t_s, others, span_s=span_s) for t_s, others, span_s in rows]
    assert crowd_of(points, sent_s=0, until_s=10).starved_until_s is None or points
