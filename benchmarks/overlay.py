"""What does the environment of an adjacent commit cost: an overlay, against a fresh install from the lock?

The install takes its packages from uv's cache where they are there (a first install downloads 900 MB more). Both end
with an environment whose server can be started at once: the install imports it once to have its bytecode, the overlay
takes over its base's. Each install goes into a cache of its own, and the overlay into the same one.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.asked import Asked, Benchmark, Findings, say
from benchmarks.overlay_history import OverlayHistory, make_history
from benchmarks.paired import compare
from sparkdiag.environment.cache import VARIABLE
from sparkdiag.environment.model import Environment
from sparkdiag.environment.prepare import prepare
from sparkdiag.environment.progress import SilentProgress
from sparkdiag.environment.published import published
from sparkdiag.environment.spec import LAB_RELEASE, OverlaySpec, ReleaseSpec
from sparkdiag.scenario.load import load_scenario

GOAL_S = 10.0
SCENARIO = "sm12x-mqa-prefill"
RELEASE = ReleaseSpec(version=LAB_RELEASE)
INSTALL, OVERLAY, AGAIN = "fresh install from the lock", "overlay of an adjacent commit", "an overlay that is there"


def measure(asked: Asked) -> Findings:
    count = asked.pairs_or(5, quick=1)
    made: list[tuple[float, float]] = []
    found: list[tuple[float, float]] = []
    history: OverlayHistory | None = None
    scratch = asked.out / "overlay"
    for number in range(count):
        with private_cache(scratch / f"cache-{number}"):
            install_s, base = timed(install)
            if history is None:
                history = make_history(
                    Path(base.package_path or ""), scratch / "clone", version=LAB_RELEASE, adjacent=count + 1
                )
            # The first overlay reads the base's modules from the disk for both of those that are timed.
            overlay(history, history.adjacent[-1])
            adjacent = partial(overlay, history, history.adjacent[number])
            overlay_s, _ = timed(adjacent)
            again_s, _ = timed(adjacent)
        say(f"  {number + 1} of {count}: install {install_s:.1f} s, overlay {overlay_s:.1f} s, again {again_s:.1f} s")
        made.append((install_s, overlay_s))
        found.append((overlay_s, again_s))
    middle_s = median(overlay_s for _, overlay_s in made)
    answer = "met" if middle_s <= GOAL_S else "missed"
    return Findings(
        (compare(made, measured=OVERLAY, reference=INSTALL), compare(found, measured=AGAIN, reference=OVERLAY)),
        {"pairs": count, "vllm": LAB_RELEASE},
        (f"an adjacent commit's environment took {middle_s:.1f} s (median); goal under {GOAL_S:.0f} s: {answer}",),
    )


def install() -> Environment:
    """Everything that ``release:VERSION`` does where nothing is there yet."""
    return published(RELEASE, modules=(), revision=None, repo=None, progress=SilentProgress())


def overlay(history: OverlayHistory, sha: str) -> Environment:
    """Everything that ``overlay:SHA@release:VERSION`` does."""
    return prepare(
        OverlaySpec(revision=sha, base=RELEASE),
        scenario=load_scenario(SCENARIO),
        revision=None,
        repo=history.repo,
        progress=SilentProgress(),
    )


def timed(make: Callable[[], Environment]) -> tuple[float, Environment]:
    """Seconds, and what was made."""
    began_s = time.perf_counter()
    environment = make()
    return time.perf_counter() - began_s, environment


@contextmanager
def private_cache(folder: Path) -> Iterator[None]:
    """Within, sparkdiag's cache is a folder of its own, deleted at the end: an environment is gigabytes."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
        shutil.rmtree(folder, ignore_errors=True)


BENCHMARK = Benchmark(
    question="preparing an adjacent commit's environment by overlay against a fresh install",
    about_s=500,
    measure=measure,
)
"""Needs about 4 GB of disk while it runs."""
