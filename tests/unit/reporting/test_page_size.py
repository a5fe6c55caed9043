"""However much a run holds, its page fits a comment, is well formed, and says by name what was cut."""

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.timeline import NoteEvent
from sparkdiag.evidence.verdict import EvidenceItem, RankFinding
from sparkdiag.reporting.bisection import render_bisection
from sparkdiag.reporting.fitted import MOST_BYTES, Form, Section, fitted, folded
from sparkdiag.reporting.markdown import render_markdown
from tests.unit.reporting.github_page import dangers
from tests.unit.reporting.planted import HOSTILE, planted
from tests.unit.reporting.sample_bisections import FOUND
from tests.unit.reporting.sample_runs import CRAWLING


def monster(text: str, *, processes: int, depth: int, samples: int, notes: int) -> StoredRun:
    """The crawling run with so many of everything, each made of ``text``."""
    made = tuple(
        ProcessInfo(pid=pid, started_at_s=0, role="worker", title=f"{text}{pid}") for pid in range(1, processes + 1)
    )
    frames = tuple(
        Frame(function=f"{text[:200]}{place}", filename=text[:200], line=place, locals={text[:50]: place})
        for place in range(depth)
    )
    looks = tuple(
        StackSample(
            pid=1 + number % processes,
            started_s=60 + number,
            ended_s=60 + number,
            threads=(ThreadStack(frames=frames[number % 7 :]),),
        )
        for number in range(samples)
    )
    verdict = CRAWLING.record.verdict
    assert verdict is not None
    item = EvidenceItem(source="stacks", text=text)
    rank = RankFinding(pid=1, name=text, top_function=text, top_share=1, samples=1, loop_progress=text, differs=True)
    record = CRAWLING.record.model_copy(
        update={
            "verdict": verdict.model_copy(
                update={"evidence_for": (item,) * 40, "evidence_against": (item,) * 40, "ranks": (rank,) * processes}
            ),
            "server_argv": (text,) * 40,
            "environment": {f"{text[:40]}{place}": text for place in range(40)},
        }
    )
    return CRAWLING.model_copy(
        update={
            "record": record,
            "problems": (text,) * 40,
            "notes": (NoteEvent(t_s=1, source=text, text=text),) * notes,
            "observation": CRAWLING.observation.model_copy(update={"processes": made, "samples": looks}),
        }
    )


def well_formed(page: str) -> bool:
    return len(page.encode()) <= MOST_BYTES and dangers(page) == []


@pytest.mark.parametrize("text", ["word " * 20_000, "😀" * 25_000, "` @a #1 " * 10_000, "\x1b" * 30_000, "é\n" * 9_000])
def test_monsters_fit(text: str) -> None:
    page = render_markdown(monster(text, processes=2000, depth=500, samples=300, notes=100_000))
    assert well_formed(page)
    assert page.startswith("## sparkdiag: stalled (crawling)")
    assert "**Verdict.**" in page and "**Run it again**" in page
    assert "to stay under 65,536 bytes" in page


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=60)), min_size=1, max_size=3).map(" ".join),
    st.integers(1, 400),
    st.integers(1, 60),
    st.integers(1, 80),
    st.integers(0, 200),
    st.integers(0, 200),
)
def test_any_run_fits(text: str, times: int, processes: int, depth: int, samples: int, notes: int) -> None:
    page = render_markdown(monster(text * times, processes=processes, depth=depth, samples=samples, notes=notes))
    assert well_formed(page)


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=60)), min_size=1, max_size=3).map(" ".join),
    st.integers(1, 300),
    st.integers(1, 400),
)
def test_any_bisection_fits(text: str, times: int, many: int) -> None:
    found = planted(FOUND, text * times, but=frozenset({"axis"}))
    page = render_bisection(
        found.model_copy(
            update={"trials": found.trials * many, "commits": found.commits * many, "notes": found.notes * many}
        )
    )
    assert well_formed(page)


def test_long_parts_are_shortened_before_useful_ones_are_left_out() -> None:
    page = render_markdown(monster("a_name " * 60, processes=12, depth=60, samples=60, notes=60))
    said = re.search(r"\*((?:Left out|Shortened) to stay under 65,536 bytes: [^*]+)\*\n$", page)
    assert said is not None
    assert "Stack of each rank (at most" in said[1]
    assert "The run folder has it all." in said[1]
    assert "<summary>Stack of each rank</summary>" in page


def part(rank: int, *sizes: int) -> Section:
    title = f"Part {rank}"
    first, *shorter = (folded(title, "x" * size) for size in sizes)
    forms = tuple(
        Form(markdown=text, shows=f"{size} of {sizes[0]}") for text, size in zip(shorter, sizes[1:], strict=True)
    )
    return Section(rank=rank, title=title, markdown=first, shorter=forms)


def test_nothing_is_said_where_nothing_is_cut() -> None:
    assert (
        fitted("head", [part(1, 10), part(2, 10)], where="It")
        == "\n\n".join(["head", folded("Part 1", "x" * 10), folded("Part 2", "x" * 10)]) + "\n"
    )


def test_the_longest_is_shortened_first_and_then_the_least_useful() -> None:
    page = fitted("head", [part(1, 50_000, 20_000), part(2, 30_000, 9_000)], where="It")
    assert page.endswith("*Shortened to stay under 65,536 bytes: Part 1 (20000 of 50000). It has it all.*\n")
    page = fitted("head", [part(1, 40_000), part(2, 30_000), part(3, 9_000, 3_000)], where="It")
    assert "Left out to stay under 65,536 bytes: Part 3 (8.8 KiB), Part 2 (29.3 KiB). It has" in page


def test_a_head_of_blocks_loses_its_last_ones_where_nothing_else_is_left() -> None:
    page = fitted(["title", *["paragraph " * 1500] * 9], [part(1, 50_000)], where="It")
    assert len(page.encode()) <= MOST_BYTES
    assert page.startswith("title\n\nparagraph")
    assert "paragraphs above" in page


@given(st.lists(st.tuples(st.integers(0, 9), st.lists(st.integers(1, 60_000), min_size=1, max_size=4)), max_size=12))
def test_any_sections_fit_and_are_whole_or_away(made: list[tuple[int, list[int]]]) -> None:
    sections = [part(rank, *sorted(sizes, reverse=True)) for rank, sizes in made]
    page = fitted("head", sections, where="It")
    assert len(page.encode()) <= MOST_BYTES
    assert page.count("<details>") == page.count("</details>")
