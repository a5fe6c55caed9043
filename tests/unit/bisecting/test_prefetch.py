"""Environments are prepared while a server loads, and never while it is measured."""

import threading
from collections.abc import Callable

import pytest

from sparkdiag.bisecting.trials import prefetch
from sparkdiag.bisecting.trials.prefetch import Prefetcher
from sparkdiag.environment.progress import ProgressSink
from sparkdiag.errors import EnvironmentFault

LIMIT_S = 20.0


class Work:
    """Preparations that wait to be let go on."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.notes: list[str] = []
        self.under_way = threading.Event()
        self.go = threading.Event()
        self.prefetcher = Prefetcher(self.prepare, note=self.notes.append)

    def prepare(self, sha: str, progress: ProgressSink) -> None:
        self.begun.append(sha)
        self.under_way.set()
        while not self.go.wait(0.01):
            progress.advance(1.0)
        self.ended.append(sha)


@pytest.fixture
def work() -> Work:
    return Work()


def begin(work: Work, *shas: str) -> None:
    work.prefetcher.want(shas)
    work.prefetcher.begin()
    assert work.under_way.wait(LIMIT_S)


def test_what_is_under_way_is_waited_for_before_the_prompt_and_the_rest_is_left(work: Work) -> None:
    begin(work, "a", "b")
    holding = threading.Thread(target=work.prefetcher.hold)
    holding.start()
    holding.join(0.1)
    assert holding.is_alive()
    work.go.set()
    holding.join(LIMIT_S)
    assert (work.begun, work.ended, work.prefetcher.done) == (["a"], ["a"], {"a"})
    assert work.notes == []


def test_both_next_points_and_no_more_and_none_twice(work: Work) -> None:
    work.go.set()
    begin(work, "a", "b", "a", "c")
    work.prefetcher.begin()
    join(work)
    assert work.begun == ["a", "b"]
    work.prefetcher.want(["a", "b"])
    work.prefetcher.begin()
    join(work)
    assert work.begun == ["a", "b"]


def join(work: Work) -> None:
    """As ``hold``, but what is wanted is all done first."""
    thread = next((one for one in threading.enumerate() if one.name == "prefetch"), None)
    if thread is not None:
        thread.join(LIMIT_S)
    work.prefetcher.hold()


def test_the_end_of_a_trial_ends_what_is_being_prepared(work: Work) -> None:
    begin(work, "a")
    work.prefetcher.end()
    assert (work.ended, work.prefetcher.done) == ([], set())
    assert not any(thread.name == "prefetch" for thread in threading.enumerate())


def test_what_cannot_be_prepared_is_noted_and_the_next_is_tried() -> None:
    notes: list[str] = []
    tried: list[str] = []

    def prepare(sha: str, _progress: ProgressSink) -> None:
        tried.append(sha)
        raise EnvironmentFault("no such wheel")

    prefetcher = Prefetcher(prepare, note=notes.append)
    prefetcher.want(["a" * 40, "b" * 40])
    prefetcher.begin()
    thread = next((one for one in threading.enumerate() if one.name == "prefetch"), None)
    if thread is not None:
        thread.join(LIMIT_S)
    prefetcher.hold()
    assert tried == ["a" * 40, "b" * 40] and prefetcher.done == set()
    assert notes == [f"{name * 10} could not be prepared beforehand: no such wheel" for name in "ab"]


def test_nothing_wanted_starts_nothing(work: Work) -> None:
    work.prefetcher.begin()
    work.prefetcher.hold()
    work.prefetcher.end()
    assert work.begun == []


def test_it_runs_at_the_lowest_priority(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int, int]] = []
    record: Callable[[int, int, int], None] = lambda which, who, nice: asked.append((which, who, nice))  # noqa: E731
    monkeypatch.setattr(prefetch.os, "setpriority", record)
    work.go.set()
    begin(work, "a")
    work.prefetcher.hold()
    ((which, who, nice),) = asked
    assert (which, nice) == (prefetch.os.PRIO_PROCESS, 19) and who != threading.get_native_id()


def test_what_goes_on_beside_the_measurement_is_told(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "WAIT_AT_MOST_S", 0.05)
    begin(work, "a")
    work.prefetcher.hold()
    assert len(work.notes) == 1 and "may slow what is measured" in work.notes[0]
    work.prefetcher.end()
