"""The parts of pictures: axes, thinned curves, colours, boxes of a flame graph, progress."""

import math
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.recording.read import read_run
from sparkdiag.reporting.bands import Band, Span, bands
from sparkdiag.reporting.call_tree import CallNode
from sparkdiag.reporting.pictures.colours import OTHERS, SUSPECT, palette_of
from sparkdiag.reporting.pictures.curves import path, thinned_curve, usual_gap
from sparkdiag.reporting.pictures.flame import MOST_BOXES, boxes, forest
from sparkdiag.reporting.pictures.forecast_figure import end_of, measured
from sparkdiag.reporting.pictures.run_blocks import run_course
from sparkdiag.reporting.pictures.scale import Scale, amount, ticks, time_label, time_ticks
from sparkdiag.reporting.pictures.svg import element, hint
from sparkdiag.reporting.pictures.tracks import curve_tracks, marks_of, rounded_up, window_of
from tests.unit.reporting import sample_runs
from tests.unit.reporting.sample_runs import COMPLETED, CRAWLING, EVERY

RECORDED = Path(__file__).parents[2] / "recordings" / "h200-ledger" / "slow250"
SPANS = st.floats(1e-3, 1e8)


@given(SPANS, st.integers(1, 20))
def test_ticks_begin_at_zero_and_stay_within(high: float, about: int) -> None:
    found = ticks(high, about=about)
    assert found[0] == 0
    assert found[-1] <= high * (1 + 1e-6)
    assert len(found) <= about + 2
    assert all(a < b for a, b in pairwise(found))


@given(st.floats(-1e5, 1e5), SPANS, st.integers(2, 12))
def test_time_ticks_lie_within_and_name_themselves(low: float, span: float, about: int) -> None:
    found = time_ticks(low, low + span, about=about)
    assert len(found) <= about + 2
    assert all(low - span * 1e-6 <= at <= low + span * (1 + 1e-6) for at in found)
    step = found[1] - found[0] if len(found) > 1 else 1.0
    assert all(time_label(at, step_s=step).split()[-1] in ("s", "min", "h") for at in found)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_no_span_is_no_error(bad: float) -> None:
    assert ticks(bad, about=4) == (0.0,)
    assert len(time_ticks(0.0, bad, about=4)) == 1
    assert Scale(0.0, bad, 10.0, 20.0).at(3.0) in (10.0, 20.0) or bad > 0


@given(st.floats(-1e9, 1e9), st.floats(-1e6, 1e6), SPANS)
def test_what_lies_outside_is_drawn_at_the_edge(value: float, low: float, span: float) -> None:
    assert 10.0 <= Scale(low, low + span, 10.0, 20.0).at(value) <= 20.0


@given(SPANS)
def test_an_axis_holds_its_curve(value: float) -> None:
    assert value * 0.999 <= rounded_up(value) <= value * 2.5


def test_amounts_are_short() -> None:
    assert [amount(value) for value in (0.0, 0.5, 250.0, 12_000.0, 1.5e6)] == ["0", "0.5", "250", "12k", "1.5M"]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9000), st.integers(8, 500))
def test_a_thinned_curve_keeps_its_ends_and_extremes(values: list[float], most: int) -> None:
    points = [(float(n), value) for n, value in enumerate(values)]
    kept = thinned_curve(points, most=most)
    assert len(kept) <= most + 4
    assert kept[0] == points[0]
    assert kept[-1] == points[-1]
    assert max(value for _, value in kept) == max(values)
    assert min(value for _, value in kept) == min(values)
    assert list(kept) == sorted(kept, key=lambda point: point[0])


def test_where_nobody_looked_the_curve_is_interrupted() -> None:
    points = [(0.0, 1.0), (1.0, 1.0), (2.0, 1.0), (60.0, 5.0), (61.0, 5.0)]
    unit = Scale(0.0, 100.0, 0.0, 100.0)
    assert path(points, x=unit, y=unit, gap_x=usual_gap(points)).count("M") == 2
    assert path(points, x=unit, y=unit).count("M") == 1


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag + ",".join(sorted(name for name, _ in attrs)))


@given(st.text(), st.text())
def test_no_text_becomes_an_element(said: str, other: str) -> None:
    reader = _Reader()
    reader.feed(str(element("g", hint(said), said, data_told=other, x=1.0)))
    assert reader.tags == ["gdata-told,x", "title"]


def _band(*functions: str) -> Band:
    process = ProcessInfo(pid=1, started_at_s=0, role="worker", title="w")
    spans = [Span(from_s=n, to_s=n + 1, function=name, looks=1) for n, name in enumerate(functions)]
    return Band(process=process, spans=tuple(spans))


def test_the_suspect_has_the_first_colour_and_the_rare_ones_share_the_last() -> None:
    names = [f"f{number}" for number in range(20)]
    palette = palette_of([_band("Kernels.slow", *names, *names[:3])], suspect="slow")
    assert palette.of("Kernels.slow") == palette.of("slow") == SUSPECT
    assert [palette.of(name) for name in names[:3]] == [1, 2, 3]
    assert palette.of("f19") == palette.of("never seen") == OTHERS


@given(st.recursive(st.just([]), lambda inner: st.lists(inner, max_size=4), max_leaves=30))
def test_boxes_lie_within_their_callers(shape: list[object]) -> None:
    def grown(shape: list[object], name: str) -> CallNode:
        node = CallNode(name=name, own=1, samples=1)
        for place, below in enumerate(shape):
            assert isinstance(below, list)
            child = grown(below, f"{name}.{place}")
            node.children[child.name, ""] = child
            node.samples += child.samples
        return node

    root = grown(shape, "f")
    made, left = boxes(root)
    assert left == 0
    assert len(made) == sum(1 for _ in root.walk())
    by_name = {box.node.name: box for box in made}
    for name, box in by_name.items():
        caller = by_name.get(name.rpartition(".")[0])
        if caller is not None:
            assert caller.x - 1e-9 <= box.x
            assert box.x + box.width <= caller.x + caller.width + 1e-9
            assert box.depth == caller.depth + 1


def test_of_too_many_boxes_the_widest_are_drawn() -> None:
    root = CallNode(name="all", samples=10_000)
    for number in range(5000):
        root.children[str(number), ""] = CallNode(name=str(number), samples=2, own=2)
    made, left = boxes(root, most=100)
    assert len(made) <= 100 <= MOST_BOXES
    assert left == 5001 - len(made)


def test_a_flame_graph_begins_with_the_workers() -> None:
    root = forest(CRAWLING, function=sample_runs.SUSPECT)
    assert [name.startswith("Worker_") for name, _ in root.children][:2] == [True, True]
    assert root.samples == sum(child.samples for child in root.children.values())
    assert sum(node.own for _, node in root.walk()) == root.samples


def test_tracks_and_marks_are_on_the_prompts_clock() -> None:
    window = window_of(CRAWLING)
    assert window.from_sending
    assert window.begin_s < 0 < window.end_s
    kv, tokens = curve_tracks(CRAWLING, window)
    assert (kv.title, kv.missing, tokens.missing) == ("KV cache use", "", "")
    assert kv.lines[0].points[0] == (0.0, 0.0)
    assert max(value for _, value in kv.lines[0].points) <= kv.high
    assert [mark.label for mark in marks_of(CRAWLING, window)] == ["server ready", "prompt sent", "verdict"]
    labels = [mark.label for mark in marks_of(COMPLETED, window_of(COMPLETED))]
    assert labels == ["prompt sent", "first token", "answer complete", "verdict"]


def test_what_is_missing_is_said() -> None:
    empty = EVERY["failed"]
    assert [track.missing for track in curve_tracks(empty, window_of(empty))] == [
        "no reading of /metrics is in this folder"
    ] * 2
    assert marks_of(empty, window_of(empty)) == ()
    assert bands(empty.observation, function=None) == ()


def test_progress_rises_and_ends_with_the_first_token() -> None:
    for stored in EVERY.values():
        points = measured(stored, run_course(stored))
        assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairwise(points))
        assert all(0 <= share <= 1 for _, share in points)
        assert end_of(stored, points) > 0
    assert measured(COMPLETED, run_course(COMPLETED))[-1] == (pytest.approx(8.4), 1.0)
    assert measured(CRAWLING, run_course(CRAWLING)) == ((0.0, 0.0), (pytest.approx(21.5), 0.09))


def test_progress_of_a_real_stall_is_what_its_loops_showed() -> None:
    stored = read_run(RECORDED)
    points = measured(stored, run_course(stored))
    assert len(points) > 20
    verdict = stored.record.verdict
    assert verdict is not None
    assert points[-1][1] == pytest.approx(verdict.forecasts[0].fraction_done, abs=0.02)
