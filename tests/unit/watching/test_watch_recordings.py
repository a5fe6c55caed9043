"""What was recorded of a real server on two H200s, concluded again: the crawl is a stall, the healthy prefill none."""

from pathlib import Path

import pytest

from sparkdiag.evidence.timeline import MetricPoint
from sparkdiag.recording.read import read_run
from sparkdiag.watching.conclusion import Conclusion, conclusion_of
from sparkdiag.watching.patience import Patience
from sparkdiag.watching.signs import Seen, Sign, after_point, sign_of

RECORDINGS = Path(__file__).resolve().parents[2] / "recordings" / "h200-watch"


def concluded(name: str) -> Conclusion:
    return conclusion_of(read_run(RECORDINGS / name).observation, prompt=None, why_no_stacks="")


@pytest.mark.parametrize("name", ["slow", "vigil"])
def test_the_crawl_is_a_stall_though_the_cache_fills(name: str) -> None:
    found = concluded(name)
    assert (found.verdict.outcome, found.verdict.mode) == ("stalled", "crawling")
    assert (found.diagnosis.kind, found.diagnosis.function) == ("torch-fallback", "mqa_logits_torch_loop")
    points = read_run(RECORDINGS / name).observation.metrics
    assert len({point.kv_cache_usage for point in points if point.kv_cache_usage is not None}) > 5  # it moves


def test_the_healthy_prefill_of_the_same_prompt_is_none() -> None:
    found = concluded("healthy250")
    assert found.verdict.outcome == "inconclusive"
    assert found.diagnosis.finding == "moving"


def test_what_was_kept_is_kept_with_what_led_to_it() -> None:
    """The folder of a capture comes to the capture's own verdict, from its history too."""
    points = read_run(RECORDINGS / "vigil").observation.metrics
    assert first_sign(points) is not None


def first_sign(points: tuple[MetricPoint, ...]) -> Sign | None:
    seen, patience = Seen(), Patience()
    for point in points:
        seen = after_point(seen, point, patience)
        if (sign := sign_of(seen, patience)) is not None:
            assert sign.kind == "no-output"
            return sign
    return None
