"""Pages and slides: alone, complete, honest about what is missing, and nothing in a run breaks out of them."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.timeline import GpuPoint
from sparkdiag.reporting.comparison.compare import compare
from sparkdiag.reporting.pictures.page import bisection_page, comparison_page, run_page, timeline_svg
from tests.unit.reporting import sample_bisections
from tests.unit.reporting.sample_runs import COMPLETED, CRAWLING, EVERY, FAILED, SENT_S, SUSPECT

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = st.text(
    st.sampled_from("<>&\"'`=/ \n\x00\x1b\u2028\u202eaéscriptonload-]"), min_size=1, max_size=60
) | st.sampled_from(
    [
        "</script><script>alert(1)</script>",
        "</style></title></svg>",
        "--><img src=x onerror=alert(1)>",
        "<![CDATA[<b>]]>",
        "{{ page.title }}{% for x in y %}",
        "' onfocus='alert(1)",
        "\ud800",
    ]
)


class _Outline(HTMLParser):
    """Every tag with the names of its attributes, and the values that point elsewhere."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.pointers: list[str] = []
        self.named: list[tuple[str, str]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "code":  # whatever is no plain word stands in one
            self.tags.append(f"{tag}[{' '.join(sorted(name for name, _ in attrs))}]")
        for name, value in attrs:
            self.named.append((name, value or ""))
            if name in ("href", "src", "xlink:href", "action", "srcset", "data", "poster"):
                self.pointers.append(value or "")
        if tag not in ("meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def outline(html: str) -> _Outline:
    made = _Outline()
    made.feed(html)
    made.close()
    assert made.open == [], "every element is closed"
    return made


PAGES = {
    **{f"run {name}": run_page(stored) for name, stored in EVERY.items()},
    **{f"bisection {name}": bisection_page(found) for name, found in sample_bisections.EVERY.items()},
    "comparison": comparison_page(compare(COMPLETED, CRAWLING), COMPLETED, CRAWLING),
}


def planted(stored: StoredRun, text: str) -> StoredRun:
    """``stored`` with ``text`` wherever somebody else's text stands."""

    def hostile(value: object) -> object:
        if isinstance(value, dict):
            return {key: said if key in KEPT else hostile(said) for key, said in value.items()}
        if isinstance(value, list | tuple):
            return [hostile(one) for one in value]
        return text if isinstance(value, str) else value

    data = stored.model_dump(mode="json", by_alias=True)
    for part in ("processes", "samples"):
        data["observation"][part] = hostile(data["observation"][part])
    for key in ("function", "kind", "reason", "ranks", "for", "against"):
        data["record"]["verdict"][key] = hostile(data["record"]["verdict"][key])
    data["record"]["server_argv"] = [text]
    data["run_dir"], data["problems"] = text, [text]
    data["notes"] = [{"t_s": 1.0, "source": text, "text": text}]
    return StoredRun.model_validate(data)


KEPT = ("source", "role", "state", "thread_name", "ranks", "locals", "short_filename")
"""What is one of few words, or decides how much is drawn."""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_points_nowhere_and_runs_only_its_own(name: str) -> None:
    html = PAGES[name]
    made = outline(html)
    assert [where for where in made.pointers if where != "#main"] == []
    assert not [one for one, _ in made.named if one.startswith("on") or one == "style"]
    assert "url(" not in html
    assert "@import" not in html
    policy = next(value for one, value in made.named if one == "content" and "default-src" in value)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert policy.count("'sha256-") == 2


@pytest.mark.parametrize("name", PAGES)
def test_every_picture_has_a_name_and_every_id_is_one(name: str) -> None:
    made = outline(PAGES[name])
    ids = [value for one, value in made.named if one == "id"]
    assert len(ids) == len(set(ids))
    assert [value for one, value in made.named if one == "aria-labelledby" and value not in ids] == []
    pictures = [tag for tag in made.tags if tag.startswith("svg[")]
    assert all("aria-label" in tag and "role" in tag for tag in pictures)
    assert len([tag for tag in made.tags if tag.startswith("h1[")]) == 1
    assert len([tag for tag in made.tags if tag.startswith("main[")]) == 1


@given(HOSTILE)
@settings(max_examples=25)
def test_no_text_of_a_run_changes_what_a_page_is_made_of(text: str) -> None:
    assert outline(run_page(planted(CRAWLING, text))).tags == outline(run_page(planted(CRAWLING, "x" * len(text)))).tags


@given(HOSTILE)
@settings(max_examples=25)
def test_no_text_of_a_bisection_changes_what_a_page_is_made_of(text: str) -> None:
    hostile, harmless = (sample_bisections.poisoned(f"x{said}") for said in (text, "x" * len(text)))
    assert outline(bisection_page(hostile)).tags == outline(bisection_page(harmless)).tags


@given(HOSTILE)
@settings(max_examples=25)
def test_a_slide_is_well_formed_whatever_a_run_says(text: str) -> None:
    drawn = ElementTree.fromstring(timeline_svg(planted(CRAWLING, text)).encode())
    assert drawn.tag == f"{SVG}svg"
    assert {one.tag.removeprefix(SVG) for one in drawn.iter()} <= {
        "svg", "g", "title", "style", "rect", "text", "line", "path", "polygon", "circle",
    }  # fmt: skip


def test_a_slide_is_16_to_9_with_title_and_legend() -> None:
    drawn = ElementTree.fromstring(timeline_svg(CRAWLING).encode())
    assert float(drawn.attrib["width"]) / float(drawn.attrib["height"]) == pytest.approx(16 / 9)
    said = [one.text or "" for one in drawn.iter(f"{SVG}text")]
    assert said[0] == f"sparkdiag: stalled (crawling) in {SUSPECT}"
    assert any(line.startswith((f"A {SUSPECT}, ", f"A  {SUSPECT}, ")) for line in said)


def test_a_page_says_what_it_found_and_how_to_run_it_again() -> None:
    html = run_page(CRAWLING)
    assert f"<h1>sparkdiag: stalled (crawling) in {SUSPECT}</h1>" in html
    for said in ("DCP size", "For", "Against", "Timeline", "Progress and forecast", "Flame graph", "Run it again"):
        assert f">{said}<" in html


def test_what_a_later_judge_says_stands_in_the_page() -> None:
    assert "Judged again by this version" in run_page(CRAWLING, judged_again=COMPLETED)
    assert "Judged again by this version" not in run_page(CRAWLING)


def without(stored: StoredRun, **seen: object) -> StoredRun:
    return stored.model_copy(update={"observation": stored.observation.model_copy(update=seen)})


def test_what_is_missing_is_said_in_its_place() -> None:
    no_samples = run_page(without(CRAWLING, samples=()))
    assert "no stack was taken" in no_samples
    assert "No stack was taken since the prompt was sent." in no_samples
    assert "no reading of /metrics is in this folder" in run_page(without(CRAWLING, metrics=()))
    failed = run_page(FAILED)
    assert "no prompt of ours was sent" in failed
    torn = run_page(CRAWLING.model_copy(update={"problems": ("timeline.jsonl is torn in line 7",)}))
    assert "timeline.jsonl is torn in line 7" in torn


def test_only_the_folders_name_is_shown() -> None:
    html = run_page(CRAWLING.model_copy(update={"run_dir": "/somebody/elses/secret-place/the-run"}))
    assert "the-run" in html
    assert "secret-place" not in html


def test_curves_of_gpus_are_drawn_where_there_are_readings() -> None:
    gpus = tuple(
        GpuPoint(t_s=SENT_S + step, index=index, utilisation_percent=100.0, power_w=500.0 + step)
        for step in range(20)
        for index in (0, 1)
    )
    html = run_page(without(CRAWLING, gpus=gpus))
    assert html.count('data-name="GPU load GPU ') == 2
    assert html.count('data-name="GPU power GPU ') == 2
    assert "GPU load" not in run_page(CRAWLING)


def test_two_runs_share_clock_and_colours() -> None:
    html = comparison_page(compare(COMPLETED, CRAWLING), COMPLETED, CRAWLING)
    axes = re.findall(r'data-from="([^"]+)" data-to="([^"]+)"', html)
    assert len(axes) == 2
    assert axes[0] == axes[1]
    for title in ("KV cache use", "Prompt tokens"):
        highs = re.findall(rf'data-name="{title}"[^>]* data-high="([^"]+)"', html)
        assert len(highs) == 2
        assert len(set(highs)) == 1, title


def test_a_bisection_without_its_runs_folders_has_no_pictures() -> None:
    found = sample_bisections.FOUND
    assert "<svg" not in bisection_page(found)
    beside = bisection_page(found, comparison=compare(COMPLETED, CRAWLING), good=COMPLETED, bad=CRAWLING)
    assert "Timeline, without it" in beside
    assert "Timeline, with it" in beside
