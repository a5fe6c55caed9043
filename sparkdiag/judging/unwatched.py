"""A run that nobody samples, by request: what KV cache use and the client alone allow to say.

Which function holds the prefill up is then not known, only that something does. Two sources must agree all the same.
"""

from dataclasses import dataclass
from itertools import pairwise

from sparkdiag.judging.crawling import (
    Crawl,
    NotCrawling,
    look_after_s,
    past_the_limit,
    sure_low_s,
    why_no_proof,
    why_still,
)
from sparkdiag.judging.pace import Limit, Pace
from sparkdiag.judging.scene import Scene
from sparkdiag.scenario.model import Scenario

FAR_BEYOND = 2.0
"""KV use counts chunks, and nothing shows that its unit is right (``pace._agrees`` needs stacks for that): its forecast
must promise so many times the limit."""
ONE_CHUNK = (0.8, 1.5)
"""A rise of KV use, in chunks, that can be one chunk and nothing else."""
CHUNK_RISES = 4
"""The latest rises, each of which must be one chunk: a cache whose size is told in another unit shows others."""
APART = 1.5
"""Times the time between two readings: with a reading in between that shows no rise, no second chunk hides in one."""
WAITED_SHARE = 0.5
"""Without a first token for this share of the limit the client agrees: what is foreseen to take twice the limit would
then have to go on three times faster than so far to be no stall."""
UNSURE_PATIENCE, TIMES_SEEN = 3.0, 3.0
"""Times ``stuck_s``, and times the longest stand of KV use that was seen to end, before flat use counts as a stop."""


@dataclass(frozen=True, slots=True)
class Flat:
    """Beyond the limit, and KV use and all counters have stood still for long."""

    seconds: float
    ever_moved: bool


def find_unwatched_crawl(scene: Scene, scenario: Scenario, pace: Pace, limit: Limit) -> Crawl | NotCrawling:
    """Judge the pace by KV use: beyond the limit as ever, before it only by a forecast far beyond."""
    if scene.moment.now_s - scene.counts_from_s > limit.seconds:
        return past_the_limit(scene, limit, suspicion=None, standing=None)
    if scene.crowd.starved_until_s is not None:
        return NotCrawling(f"{scene.crowd.words}: only {limit.seconds:.0f} s without a first token from then on count")
    if pace.kv is None:
        return NotCrawling("too few points for a forecast")
    low_s = sure_low_s(pace.kv)
    if low_s <= FAR_BEYOND * limit.seconds:
        return NotCrawling(why_no_proof(pace, limit))
    if scene.moment.elapsed_s < max(look_after_s(low_s, limit), WAITED_SHARE * limit.seconds):
        return NotCrawling("looks like a stall, but a slow start could look the same this early")
    if scene.meters.others:
        return NotCrawling("looks like a stall, but the server also ran other requests")
    if not rises_are_chunks(pace, scene, reading_s=scenario.sampling.metrics_period_s):
        return NotCrawling("looks like a stall, but that a rise of KV use is one chunk cannot be told")
    still = why_still(scene)
    if still is not None:
        return NotCrawling(still)
    return Crawl(proof="kv-cache-usage", suspicion=None, standing=None, confirmed_by=("client",))


def rises_are_chunks(pace: Pace, scene: Scene, *, reading_s: float) -> bool:
    """Whether the latest rises of KV use are one chunk each, by their height and by the time between them."""
    if pace.plan is None or pace.kv_pace is None:
        return False
    tokens = [tokens for _, tokens in pace.kv_pace.rises][-CHUNK_RISES - 1 :]
    seen_s = [rise.seen_s for rise in scene.meters.rises][-CHUNK_RISES - 1 :]
    least, most = (share * pace.plan.chunk_tokens for share in ONE_CHUNK)
    return (
        len(tokens) > CHUNK_RISES
        and all(least <= after - before <= most for before, after in pairwise(tokens))
        and all(after - before >= APART * reading_s for before, after in pairwise(seen_s))
    )


def find_flat(scene: Scene, scenario: Scenario, limit: Limit | None) -> Flat | None:
    """A prefill that is beyond the limit and has stopped: no first token, nothing else to do, and nothing moves."""
    meters = scene.meters
    if limit is None or scene.first_token_s is not None or scene.moment.now_s - scene.counts_from_s <= limit.seconds:
        return None
    if not meters.arrived or meters.queued or meters.others:
        return None
    moved_s = max(scene.counts_from_s, meters.moved_s if meters.moved_s is not None else scene.counts_from_s)
    if not meters.read_since(moved_s):
        return None
    flat_s = meters.kv_read_s[-1] - moved_s
    seen_s = [rise.seen_s for rise in meters.rises]
    longest_s = max((after - before for before, after in pairwise(seen_s)), default=0.0)
    if flat_s < max(UNSURE_PATIENCE * scenario.patience.stuck_s, TIMES_SEEN * longest_s):
        return None
    return Flat(seconds=flat_s, ever_moved=len(meters.rises) >= 2)
