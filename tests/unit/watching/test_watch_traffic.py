"""What counters say, and of whom."""

from typing import Any

import pytest

from sparkdiag.evidence.timeline import MetricPoint
from sparkdiag.watching.traffic import company_of, metrics_words, traffic_of
from sparkdiag.watching.unsampled import diagnosis_without_stacks


def point(t_s: float, **told: Any) -> MetricPoint:
    return MetricPoint(t_s=t_s, **told)


def still(t_s: float, running: float = 1, prompt: float = 100, generated: float = 5) -> MetricPoint:
    return point(
        t_s,
        requests_running=running,
        requests_waiting=0,
        kv_cache_usage=0.25,
        prompt_tokens_total=prompt,
        generation_tokens_total=generated,
        iterations_total=3,
    )


def test_nothing_told_is_no_traffic() -> None:
    assert traffic_of([]) is None
    assert traffic_of([point(1, error="/metrics: refused"), point(2, health_status=200)]) is None


def test_counters_that_stand_still_and_that_move() -> None:
    stuck = traffic_of([still(1), still(20)])
    assert stuck is not None
    assert (stuck.running, stuck.moved, stuck.over_s, stuck.in_flight) == (1, False, 19, True)
    moved = traffic_of([still(1), still(10, prompt=200), still(20, prompt=200)])
    assert moved is not None and moved.moved is True
    once = traffic_of([still(1)])
    assert once is not None and once.moved is None and once.over_s is None


def test_how_long_requests_wait_for_a_token() -> None:
    def silent_s(*points: MetricPoint) -> float | None:
        told = traffic_of(points)
        return told.silent_s if told is not None else None

    assert silent_s(still(1), still(20), still(40)) == 39
    assert silent_s(still(1, running=0), still(20), still(40, prompt=900)) == 20, "from when it was there"
    assert silent_s(still(1), still(20, generated=6), still(40, generated=6)) == 20, "from its last token on"
    assert silent_s(still(1), still(40, running=0)) is None, "nobody waits"
    assert silent_s(point(1, requests_running=1), point(9, requests_running=1)) is None, "it is not told"


def test_running_alone_says_nothing_of_movement() -> None:
    told = traffic_of([point(1, requests_running=1), point(9, requests_running=1)])
    assert told is not None and told.moved is None


def test_the_words_name_what_moved_and_what_did_not() -> None:
    words = metrics_words([still(0), still(30, prompt=180)])
    assert "1 requests running; 0 requests waiting" in words
    assert "KV cache use 25.0%, which did not move" in words
    assert "80 more prompt tokens" in words and "no more generated tokens" in words and "over 30 s" in words
    assert "refused" in metrics_words([point(1, error="/metrics: refused")])


@pytest.mark.parametrize(
    ("points", "shared"),
    [
        ([still(0, running=0), still(5), still(10, running=0, prompt=1100, generated=13)], False),
        ([still(0, running=2), still(5, running=3), still(10, running=2, prompt=1100, generated=13)], True),
        ([still(0, running=0), still(5, running=1), still(10, running=0, prompt=1500, generated=13)], True),
        ([still(0, running=0), still(5, running=1), still(10, running=0, prompt=1100, generated=40)], True),
        ([still(0, running=0), still(5, running=2), still(10, running=0, prompt=1100, generated=13)], True),
        ([point(0), point(5), point(10)], None),
    ],
)
def test_a_prompt_of_ours_among_others(points: list[MetricPoint], shared: bool | None) -> None:
    company = company_of(points, sent_s=2, ended_s=8, own_prompt_tokens=1000, own_generated_tokens=8)
    assert company.shared is shared
    assert company.words


def test_tokens_of_others_are_told_apart_from_ours() -> None:
    points = [still(0, running=0), still(5), still(10, running=0, prompt=1600, generated=13)]
    company = company_of(points, sent_s=2, ended_s=8, own_prompt_tokens=1000, own_generated_tokens=8)
    assert (company.others_prompt_tokens, company.others_generated_tokens) == (500, 0)
    assert "500 prompt tokens of others" in company.words


def test_a_prompt_without_a_first_token_is_counted_by_nobody() -> None:
    points = [still(0, running=0), still(5), still(10, running=0, prompt=600)]
    company = company_of(points, sent_s=2, ended_s=8, own_prompt_tokens=0, own_generated_tokens=0)
    assert company.others_prompt_tokens == 500


def test_metrics_alone_never_say_stalled() -> None:
    for points in ([], [still(0), still(600)], [still(0), still(600, prompt=900)]):
        found = diagnosis_without_stacks(points, why="SYS_PTRACE is missing", remedy="--cap-add")
        assert found.finding in ("unknown", "moving")
        assert found.confidence == "low"
        assert found.reason is not None and "SYS_PTRACE" in found.reason
        assert found.next_step == "--cap-add"
    assert diagnosis_without_stacks([still(0), still(9)], why="x", remedy=None).finding == "unknown"
