"""The report of a bisection: what it says, and that nothing in it breaks out of the page."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkdiag.evidence.bisection import Bisection
from sparkdiag.harmless.printable import printable
from sparkdiag.reporting.bisection import render_bisection
from sparkdiag.reporting.bisection_phrases import pull_request
from sparkdiag.reporting.markdown import MOST_BYTES
from tests.unit.reporting.page_case import PAGE, outline
from tests.unit.reporting.sample_bisections import CANDIDATES, EVERY, FOUND, SAME, SHAS, SMALLEST, poisoned

HOSTILE = [
    "</details><script>alert(1)</script>",
    "```\n```` diff\n# heading\n```",
    "~~~~\n| a | b |\n|---|---|",
    "@octocat #1 GH-2 https://evil.example [x](javascript:y) <img src=x>",
    "\x1b[2J\u202e\x00\u2028",
    "<!--",
    "|||",
    "`",
    "1. - * # > ",
]


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=80)
@given(
    st.one_of(
        st.text(max_size=80).filter(lambda text: text.strip() and printable(text).strip()),
        st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=4).map(" ".join),
    )
)
def test_nothing_from_outside_changes_the_page(text: str) -> None:
    page = render_bisection(poisoned(text))
    assert outline(page) == outline(render_bisection(poisoned("word")))
    inline = {child.type for token in PAGE.parse(page) for child in token.children or []}
    assert inline <= {"text", "code_inline", "strong_open", "strong_close", "em_open", "em_close", "softbreak"}
    assert "\x1b" not in page


@pytest.mark.parametrize("text", ["word " * 400, "` " * 400, "😀 " * 400, "````` " * 200, "\n" * 1000, "é" * 5000])
def test_it_never_outgrows_a_comment(text: str) -> None:
    page = render_bisection(poisoned(text, times=60))
    assert len(page.encode()) <= MOST_BYTES
    assert page.startswith("## sparkdiag bisect: ")


@pytest.mark.parametrize("name", list(EVERY))
def test_every_outcome_has_its_answer_first(name: str) -> None:
    lines = render_bisection(EVERY[name]).splitlines()
    assert lines[0].startswith("## sparkdiag bisect: ")
    assert lines[2].startswith("**Answer.** ")


def test_the_culprit_is_named_with_subject_date_and_pull_request() -> None:
    page = render_bisection(FOUND)
    answer = page.split("\n\n")[1]
    assert f"**`{SHAS[3][:10]}`** `change number 3 (#4003)` (2026-05-13, pull request 4003)" in answer
    assert "begins at" in answer
    assert "is gone from" in render_bisection(FOUND.model_copy(update={"direction": "fix"}))
    assert "at DCP 2, among 5 commits of the lab's own history" in page


def test_candidates_are_a_list_in_history_order_with_the_reason() -> None:
    page = render_bisection(CANDIDATES)
    assert page.index(f"1. **`{SHAS[2][:10]}`**") < page.index(f"2. **`{SHAS[3][:10]}`**")
    assert "could not be tried" in page
    assert "## sparkdiag bisect: 2 candidates" in page


def test_how_sure_it_is_tells_of_ends_controls_the_boundary_and_what_was_reused() -> None:
    page = render_bisection(FOUND)
    assert "both ends did the same when nobody sampled" in page
    assert f"`{SHAS[3][:10]}` was run: stalled (crawling); `{SHAS[2][:10]}` was run: completed, retrieved" in page
    assert "1 of 8 results are those of other points" in page
    assert "1 of 8 trials could not tell" in page
    without = FOUND.model_copy(update={"trials": tuple(one for one in FOUND.trials if one.purpose != "control")})
    assert "no end was run without sampling" in render_bisection(without)


def test_a_culprit_whose_result_is_anothers_is_not_said_to_have_been_run() -> None:
    reused = tuple(
        one.model_copy(update={"result": one.result.model_copy(update={"reused_from": SHAS[5]})})
        if one.result.sha == SHAS[3]
        else one
        for one in FOUND.trials
    )
    page = render_bisection(FOUND.model_copy(update={"trials": reused}))
    assert f"`{SHAS[3][:10]}` was not run itself, its result is that of `{SHAS[5][:10]}`" in page


def test_a_control_that_disagrees_is_said() -> None:
    odd = tuple(
        one.model_copy(update={"has": "no", "because": "completed, needle retrieved"})
        if one.purpose == "control"
        else one
        for one in FOUND.trials
    )
    page = render_bisection(FOUND.model_copy(update={"trials": odd}))
    assert "an end did not do the same when nobody sampled: completed, needle retrieved" in page


def test_the_trials_table_shows_each_with_verdict_side_evidence_and_folder() -> None:
    page = render_bisection(FOUND)
    rows = [line for line in page.splitlines() if line.startswith(f"| `{SHAS[3][:10]}`")]
    assert rows == [
        f"| `{SHAS[3][:10]}` | `change number 3 (#4003)` | search | stalled (crawling) | new | forecast 240 s to the "
        f"first token: 29.3 times the healthy 8.2 s | 2.1 | `trials/20260601T000000Z-lab-{SHAS[3][:10]}-dcp2` |"
    ]
    assert f"| as `{SHAS[3][:10]}` |" in page
    assert "7 run in 14.7 minutes, 1 reused" in page


def test_skips_diff_stacks_and_the_command_are_there() -> None:
    page = render_bisection(FOUND)
    assert f"- `{SHAS[1][:10]}` (search): ImportError: no topk" in page
    assert "```diff\ndiff --git a/vllm/a.py" in page
    assert "| `_fp8_mqa_logits_torch` | 95% | 0% |" in page
    assert "```sh\nsparkdiag bisect --dcp 2\n```" in page


def test_the_same_at_both_ends_says_which_lever_to_pull() -> None:
    page = render_bisection(SAME)
    assert "**Answer.** There is no answer." in page
    assert "a wider range, or another `--dcp`" in page


def test_the_smallest_value_is_said_to_be_that() -> None:
    assert "The smallest value with the stall" in render_bisection(SMALLEST)
    assert "DCP 2" in render_bisection(SMALLEST)


def test_more_trials_than_a_screen_holds_are_folded() -> None:
    page = render_bisection(FOUND)
    assert "<details open>\n<summary>Trials</summary>" in page
    many = FOUND.model_copy(update={"trials": FOUND.trials * 8})
    page = render_bisection(many)
    assert "<details>\n<summary>Trials</summary>" in page
    assert page.count("| `4444444444` |") == 8 * render_bisection(FOUND).count("| `4444444444` |")


@pytest.mark.parametrize(
    ("subject", "number"),
    [
        ("Drop the gate (#41834)", 41834),
        ("Merge pull request #7 from a/b", 7),
        ("Fix #12", None),
        ("Revert (#1) again", None),
        ("(#99999999999999)", None),
        ("", None),
    ],
)
def test_a_pull_request_is_only_what_a_merge_writes(subject: str, number: int | None) -> None:
    assert pull_request(subject) == number


def test_a_bisection_survives_its_document() -> None:
    for found in EVERY.values():
        again = Bisection.model_validate_json(found.model_dump_json(by_alias=True))
        assert render_bisection(again) == render_bisection(found)
