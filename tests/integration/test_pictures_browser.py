"""The pages in a real headless Chromium: quiet, by keyboard, in the dark, on paper, narrow, and without a script."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page

from sparkdiag.evidence.stored import StoredRun
from sparkdiag.recording.read import read_run
from sparkdiag.reporting.comparison.compare import compare
from sparkdiag.reporting.pictures.page import bisection_page, comparison_page, run_page, timeline_svg
from tests.integration.chromium_case import a_browser, opened
from tests.unit.reporting.sample_bisections import FOUND
from tests.unit.reporting.sample_runs import COMPLETED, CRAWLING, EVERY

RECORDED = Path(__file__).parents[1] / "recordings/h200-ledger/slow250"
HOSTILE = (
    "</style></script><script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>\"' onfocus=alert(4)"
)

PAGES = {
    **{f"run {name}": run_page(stored) for name, stored in EVERY.items()},
    "comparison": comparison_page(compare(COMPLETED, CRAWLING), COMPLETED, CRAWLING),
    "bisection": bisection_page(FOUND, comparison=compare(COMPLETED, CRAWLING), good=COMPLETED, bad=CRAWLING),
    "bisection without folders": bisection_page(FOUND),
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with a_browser() as found:
        yield found


@pytest.fixture(scope="module")
def recorded() -> StoredRun:
    return read_run(RECORDED)


def luminance(page: Page, where: str, what: str) -> float:
    """0 for black, 1 for white, of the first element's computed colour."""
    colour = page.evaluate(f"getComputedStyle(document.querySelector('{where}')).{what}")
    red, green, blue = (int(part) / 255 for part in colour.removeprefix("rgb(").rstrip(")").split(", ")[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def is_wider_than_its_window(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > window.innerWidth"))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_quiet_asks_for_nothing_and_fits(browser: Browser, tmp_path: Path, name: str) -> None:
    with opened(browser, PAGES[name], tmp_path) as shown:
        assert shown.page.locator("h1").count() == 1
        assert shown.page.locator("html.scripted").count() == 1, "the page's own script did not run under its policy"
        for unfolded in (False, True):
            shown.page.evaluate(
                "(open) => document.querySelectorAll('details').forEach((one) => { one.open = open; })", unfolded
            )
            for width in (360, 1280):
                shown.page.set_viewport_size({"width": width, "height": 900})
                assert not is_wider_than_its_window(shown.page), (width, unfolded)
    assert (shown.said, shown.asked) == ([], [])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_stand_out_from_their_ground(
    browser: Browser, tmp_path: Path, recorded: StoredRun, scheme: Literal["light", "dark"]
) -> None:
    with opened(browser, run_page(recorded), tmp_path, scheme=scheme) as shown:
        ground = luminance(shown.page, "body", "backgroundColor")
        assert (ground < 0.2) == (scheme == "dark")
        for where, what in (("body", "color"), ("svg.timeline .title", "fill"), ("svg.timeline .tick", "fill")):
            assert abs(luminance(shown.page, where, what) - ground) > 0.3, where
    assert shown.said == []


def test_paper_is_white_and_shows_no_controls(browser: Browser, tmp_path: Path, recorded: StoredRun) -> None:
    with opened(browser, run_page(recorded), tmp_path, scheme="dark") as shown:
        page = shown.page
        page.emulate_media(media="print")
        assert luminance(page, "body", "backgroundColor") == 1.0
        assert luminance(page, "svg.timeline .title", "fill") < 0.1
        assert not any(one.is_visible() for one in page.locator("button, input, .shows, .told").all())
        assert page.locator("svg.timeline").first.is_visible()
        page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
        assert page.locator("details:not([open])").count() == 0, "folded on paper"
        page.evaluate("window.dispatchEvent(new Event('afterprint'))")
        assert page.locator("details[open]").count() == 0
        assert page.pdf(format="A4").startswith(b"%PDF-")
        page.set_viewport_size({"width": 794, "height": 1123})  # A4 at 96 dots an inch
        cut = "Array.from(document.querySelectorAll('.scroll')).filter((one) => one.scrollWidth > one.clientWidth + 1)"
        assert page.evaluate(f"{cut}.length") == 0
    assert shown.said == []


def test_the_flame_graph_is_walked_by_keyboard(browser: Browser, tmp_path: Path, recorded: StoredRun) -> None:
    with opened(browser, run_page(recorded), tmp_path) as shown:
        page = shown.page
        focused = "document.activeElement.getAttribute('aria-label') || ''"
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.classList.contains('box')"):
                break
        assert page.evaluate(focused).startswith("all looks: "), "Tab leads to the flame graph"
        boxes = page.locator("svg.flame .box:not([display=none])")
        everything = boxes.count()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        process = page.evaluate(focused)
        assert process.startswith("Worker_TP1")
        page.keyboard.press("Enter")
        assert boxes.count() < everything
        width = page.evaluate("Number(document.activeElement.querySelector('rect').getAttribute('width'))")
        assert width == page.evaluate("document.querySelector('svg.flame').viewBox.baseVal.width")
        page.keyboard.press("Escape")
        assert boxes.count() == everything
        assert process.split(":")[0] in page.content()
    assert shown.said == []


def test_a_click_shows_a_function_alone_and_the_button_shows_all(
    browser: Browser, tmp_path: Path, recorded: StoredRun
) -> None:
    with opened(browser, run_page(recorded), tmp_path) as shown:
        boxes = shown.page.locator("svg.flame .box:not([display=none])")
        everything = boxes.count()
        shown.page.locator("svg.flame .box[data-name='mqa_logits_torch_loop']").first.click()
        assert boxes.count() < everything
        shown.page.get_by_role("button", name="Show all").click()
        assert boxes.count() == everything
    assert shown.said == []


def test_a_slash_searches_and_escape_forgets(browser: Browser, tmp_path: Path, recorded: StoredRun) -> None:
    with opened(browser, run_page(recorded), tmp_path) as shown:
        page = shown.page
        page.keyboard.press("/")
        page.keyboard.type("torch_loop")
        assert page.locator(".box.found").count() == 2
        assert page.locator(".hits").inner_text() == "2 boxes"
        page.keyboard.press("Escape")
        assert page.locator(".box.found").count() == 0
    assert shown.said == []


def test_any_moment_of_the_timeline_is_read_out(browser: Browser, tmp_path: Path, recorded: StoredRun) -> None:
    with opened(browser, run_page(recorded), tmp_path) as shown:
        page, told = shown.page, shown.page.locator(".told").first
        page.locator("svg.timeline").first.focus()
        page.keyboard.press("End")
        last = recorded.observation.metrics[-1].kv_cache_usage
        assert last is not None
        assert f"KV cache use {100 * last:.3g} %" in told.inner_text()
        page.keyboard.press("Shift+ArrowLeft")
        assert "Worker_TP0_DCP0 in mqa_logits_torch_loop" in told.inner_text()
        page.keyboard.press("Home")
        assert "KV cache use 0 %" in told.inner_text()
    assert shown.said == []


def test_a_hidden_track_gives_its_room_back(browser: Browser, tmp_path: Path, recorded: StoredRun) -> None:
    with opened(browser, run_page(recorded), tmp_path) as shown:
        picture = shown.page.locator("svg.timeline").first
        before = picture.bounding_box()
        shown.page.get_by_label("GPU power").uncheck()
        after = picture.bounding_box()
        assert before is not None
        assert after is not None
        assert after["height"] < before["height"]
        assert not shown.page.locator("[data-track='GPU power']").first.is_visible()
        shown.page.get_by_label("GPU power").check()
        assert picture.bounding_box() == before
    assert shown.said == []


def test_without_script_everything_is_there(browser: Browser, tmp_path: Path, recorded: StoredRun) -> None:
    with opened(browser, run_page(recorded), tmp_path, scripts=False) as shown:
        page = shown.page
        assert page.locator("svg.timeline").first.is_visible()
        assert page.locator("svg.flame").is_visible()
        assert not any(one.is_visible() for one in page.locator("button, input").all()), "a control that does nothing"
        page.locator("summary").first.click()
        assert page.locator("details .written").first.is_visible()


def planted(stored: StoredRun) -> StoredRun:
    """``stored`` with ``HOSTILE`` as every function, file, process name, folder, reason and problem."""
    seen = stored.observation
    samples = tuple(
        one.model_copy(
            update={
                "threads": tuple(
                    thread.model_copy(
                        update={
                            "frames": tuple(
                                frame.model_copy(
                                    update={"function": HOSTILE, "filename": HOSTILE, "short_filename": HOSTILE}
                                )
                                for frame in thread.frames
                            )
                        }
                    )
                    for thread in one.threads
                )
            }
        )
        for one in seen.samples
    )
    processes = tuple(one.model_copy(update={"name": HOSTILE, "title": HOSTILE}) for one in seen.processes)
    verdict = stored.record.verdict
    if verdict is not None:
        verdict = verdict.model_copy(update={"function": HOSTILE, "kind": HOSTILE, "reason": HOSTILE})
    return stored.model_copy(
        update={
            "run_dir": HOSTILE,
            "problems": (HOSTILE,),
            "observation": seen.model_copy(update={"samples": samples, "processes": processes}),
            "record": stored.record.model_copy(update={"verdict": verdict, "server_argv": ("vllm", HOSTILE)}),
        }
    )


def test_nothing_in_a_run_can_run(browser: Browser, tmp_path: Path) -> None:
    hostile = planted(CRAWLING)
    for html in (run_page(hostile), comparison_page(compare(hostile, hostile), hostile, hostile)):
        with opened(browser, html, tmp_path) as shown:
            page = shown.page
            page.locator("svg.flame .box").nth(3).click()
            page.keyboard.press("/")
            page.keyboard.type("<img")
            assert page.locator("script").count() == 1
            assert page.locator("img, svg[onload], [onerror], [onfocus]").count() == 0
            assert "alert(1)" in page.locator("body").inner_text()
        assert (shown.said, shown.asked) == ([], [])


def test_the_slide_is_drawn_whole(browser: Browser, tmp_path: Path, recorded: StoredRun) -> None:
    with opened(
        browser, f"<!doctype html><title>slide</title>{timeline_svg(recorded).partition('?>')[2]}", tmp_path
    ) as shown:
        box = shown.page.locator("svg").bounding_box()
        assert box is not None
        assert box["width"] / box["height"] == pytest.approx(16 / 9)
        outside = """Array.from(document.querySelectorAll("svg text")).filter((one) => {
            const here = one.getBoundingClientRect(), all = document.querySelector("svg").getBoundingClientRect();
            return here.width && (here.left < all.left || here.right > all.right || here.bottom > all.bottom);
        }).map((one) => one.textContent)"""
        assert shown.page.evaluate(outside) == []
    assert (shown.said, shown.asked) == ([], [])
