"""Whole pages: complete, alone, and never more than what was put on them."""

import json
import re
from html.parser import HTMLParser
from itertools import product
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import escape

from sparkdiag.evidence.bisection import Bisection
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.reporting.comparison.compare import compare
from sparkdiag.reporting.details import parts
from sparkdiag.reporting.pictures.page import bisection_page, comparison_page, run_page, timeline_svg
from tests.unit.reporting import sample_bisections
from tests.unit.reporting.sample_runs import COMPLETED, CRAWLING, EVERY, SUSPECT

FIXED = {"schema", "event", "outcome", "mode", "source", "kind", "role", "needle", "status", "how", "axis", "what",
         "purpose", "has", "mark", "direction", "contains_suspect_commit", "phase", "score", "spec"}  # fmt: skip
"""Fields that take one of a few words, or by which a page is put together."""
HOSTILE = st.text(max_size=40) | st.sampled_from(
    [
        "</script><script>alert(1)</script>",
        "</style><img src=x onerror=alert(1)>",
        '" onload="alert(1)" x="',
        "]]><svg onload=alert(1)>",
        "{{ 7 * 7 }}{% raw %}",
        "<!--",
        "\u2028\u202e\x1b[2J\x00",
    ]
)


class Outline(HTMLParser):
    """Tags with the names of their attributes, and every text that could lead elsewhere."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.values: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "code":  # whatever is no plain word stands in one
            self.tags.append((tag, tuple(sorted(name for name, _ in attrs))))
        self.values += [(name, value or "") for name, value in attrs]


def planted(document: object, text: str, field: str = "") -> object:
    match document:
        case str() if field not in FIXED:
            return text
        case list():
            return [planted(one, text, field) for one in document]
        case dict():
            return {key: planted(one, text, key) for key, one in document.items()}
    return document


@pytest.mark.parametrize("stored", EVERY.values(), ids=EVERY)
def test_a_page_stands_alone(stored: StoredRun) -> None:
    page = run_page(stored)
    found = Outline(page)
    loads = {"src", "href", "srcset", "data", "action", "style", "background", "poster"}
    assert {(name, value) for name, value in found.values if name in loads} == {("href", "#main")}
    assert not any(name.startswith("on") for name, _ in found.values)
    assert not re.search(r"url\(|@import", page)
    assert page.count("<script>") == page.count("<style>") == 1
    policy = next(value for _, value in found.values if "default-src" in value)
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none'; style-src 'sha256-")


def test_the_page_of_a_stall_has_every_part() -> None:
    page = run_page(CRAWLING)
    for title in ("For", "Against", "Timeline", "Progress and forecast", "Flame graph", "Run it again"):
        assert f">{title}</h2>" in page
    for part in parts(CRAWLING):
        shown = part.title != "Evidence for and against" and part.make(part.most[0])
        assert (f"<summary>{escape(part.title)}</summary>" in page) == bool(shown)
    assert "forecast 240 s (210 to 290 s)" in page
    assert "healthy 8.2 s" in page
    assert f"sparkdiag: stalled (crawling) in {SUSPECT}</h1>" in page


def test_an_empty_run_says_what_is_missing() -> None:
    page = run_page(EVERY["failed"])
    assert "no stack was taken" in page
    assert "no reading of /metrics is in this folder" in page
    assert "no prompt of ours was sent" in page
    assert "No stack was taken since the prompt was sent." in page


@settings(max_examples=25)
@given(HOSTILE)
def test_nothing_that_was_read_becomes_a_part_of_a_runs_page(text: str) -> None:
    said = f"x{text}"
    run = StoredRun.model_validate(planted(json.loads(CRAWLING.model_dump_json(by_alias=True)), said))
    plain = StoredRun.model_validate(planted(json.loads(CRAWLING.model_dump_json(by_alias=True)), "x"))
    assert Outline(run_page(run)).tags == Outline(run_page(plain)).tags
    ElementTree.fromstring(timeline_svg(run))


@settings(max_examples=25)
@given(HOSTILE)
def test_nothing_that_was_read_becomes_a_part_of_a_bisections_page(text: str) -> None:
    for found in sample_bisections.EVERY.values():
        document = json.loads(found.model_dump_json(by_alias=True))
        one, other = (Bisection.model_validate(planted(document, said)) for said in (f"x{text}", "x"))
        assert Outline(bisection_page(one)).tags == Outline(bisection_page(other)).tags


def test_two_runs_have_one_clock_and_one_set_of_colours() -> None:
    page = comparison_page(compare(COMPLETED, CRAWLING), COMPLETED, CRAWLING)
    for name in ("Timeline", "Progress", "Flame graph"):
        assert f">{name}, A</h2>" in page
        assert f">{name}, B</h2>" in page
    axes = re.findall(r'<g class="axis"[^>]*>(.*?)</g>', page)
    assert len(axes) == 2
    assert re.findall(r">([^<>]+)</text>", axes[0]) == re.findall(r">([^<>]+)</text>", axes[1])


@pytest.mark.parametrize(("one", "other"), list(product(EVERY, repeat=2)))
def test_any_two_runs_make_a_page(one: str, other: str) -> None:
    a, b = EVERY[one], EVERY[other]
    assert "two runs compared" in comparison_page(compare(a, b), a, b)


def test_a_bisection_shows_good_beside_bad_where_both_are_there() -> None:
    found = sample_bisections.FOUND
    assert "Timeline, with it" not in bisection_page(found)
    page = bisection_page(found, comparison=compare(COMPLETED, CRAWLING), good=COMPLETED, bad=CRAWLING)
    assert "Timeline, without it" in page
    assert "Timeline, with it" in page


@pytest.mark.parametrize("stored", EVERY.values(), ids=EVERY)
def test_a_slide_is_one_picture_of_sixteen_to_nine(stored: StoredRun) -> None:
    root = ElementTree.fromstring(timeline_svg(stored))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert float(root.attrib["width"]) / float(root.attrib["height"]) == pytest.approx(16 / 9)
    assert "http" not in timeline_svg(stored).replace("http://www.w3.org/2000/svg", "")
