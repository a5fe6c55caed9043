"""Every page under GitHub's own renderer (cmark-gfm): what nobody meant to say is not said."""

from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkdiag.evidence.bisection import Bisection
from sparkdiag.evidence.run import Software
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.recording.read import read_run
from sparkdiag.reporting.bisection import render_bisection
from sparkdiag.reporting.fitted import MOST_BYTES
from sparkdiag.reporting.markdown import render_markdown
from sparkdiag.reproducing.ending import compared
from tests.unit.reporting.github_page import dangers, outline, rendered
from tests.unit.reporting.planted import HOSTILE, planted
from tests.unit.reporting.sample_bisections import EVERY as BISECTIONS
from tests.unit.reporting.sample_runs import EVERY

RECORDINGS = Path(__file__).parents[2] / "recordings"
RECORDED = {
    "with a ledger": "h200-ledger/slow250",
    "completed, with a ledger": "h200-ledger/dcp1",
    "watched": "h200-watch/slow",
}
SOFTWARE = Software(
    os="os", libc="libc", python="3", packages={"torch": "2"}, torch_cuda="13", torch_rocm="none", vllm_commit="c",
    gpus=("gpu",), gpu_problem="none", driver="1", driver_cuda="2", variables={"VLLM_X": "y"},
)  # fmt: skip
NO_ORDER = {"scenario", "command", "run_dir", "event"}
"""A scenario in which every name is hostile is none, and the page says so; a command is planted by itself."""


@cache
def sample(name: str) -> StoredRun:
    """A run of everything that a run may know."""
    run = EVERY[name] if name in EVERY else compared(read_run(RECORDINGS / RECORDED[name]))
    predicted = run.record.predicted
    predicted = predicted.model_copy(update={"scope": "scope"}) if predicted is not None else None
    return run.model_copy(
        update={"record": run.record.model_copy(update={"software": SOFTWARE, "predicted": predicted})}
    )


RUNS = (*EVERY, *RECORDED)


def hostile_run(name: str, text: str) -> StoredRun:
    run = planted(sample(name), text, but=frozenset(NO_ORDER))
    return run.model_copy(
        update={
            "problems": (text, text),
            "record": run.record.model_copy(update={"command": ("sparkdiag", "repro", text)}),
        }
    )


def hostile_bisection(name: str, text: str) -> Bisection:
    return planted(BISECTIONS[name], text, but=frozenset({"axis"}))


@cache
def meant(name: str) -> list[str]:
    return outline(render_markdown(hostile_run(name, "word")))


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("name", EVERY)
def test_a_run_says_nothing_to_github_that_its_texts_say(name: str, text: str) -> None:
    page = render_markdown(hostile_run(name, text))
    assert dangers(page) == []
    assert outline(page) == meant(name)


@pytest.mark.parametrize("text", [" ".join(HOSTILE), "\n".join(HOSTILE[::-1]), "\n".join(HOSTILE[5:])])
@pytest.mark.parametrize("name", RECORDED)
def test_nor_does_one_of_real_hardware(name: str, text: str) -> None:
    page = render_markdown(hostile_run(name, text))
    assert dangers(page) == []
    assert page.count("script") > 20


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("name", list(BISECTIONS))
def test_neither_does_a_bisection(name: str, text: str) -> None:
    page = render_bisection(hostile_bisection(name, text))
    assert dangers(page) == []
    assert outline(page) == outline(render_bisection(hostile_bisection(name, "word")))


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=30)), min_size=1, max_size=4).map(" ".join))
def test_nor_any_mixture_of_them(text: str) -> None:
    page = render_markdown(hostile_run("crawling", text))
    assert dangers(page) == []
    assert len(page.encode()) <= MOST_BYTES


@pytest.mark.parametrize("name", RUNS)
def test_a_page_of_ours_renders_as_meant(name: str) -> None:
    page = render_markdown(sample(name))
    assert dangers(page) == []
    assert outline(page)[0] == "h2"
    assert "**" not in rendered(page).split("<pre")[0]


def test_what_is_looked_for_is_found() -> None:
    page = "\n\n".join(
        ["@octocat", "fixes #1", "see 03c767c50c", "https://evil.example", "<img src=x>", "<details>", ":+1:", "$x$"]
    )
    found = " ".join(dangers(page))
    assert all(
        word in found for word in ("mention", "issue", "commit", "address", "<img>", "details", "emoji", "mathem")
    )
