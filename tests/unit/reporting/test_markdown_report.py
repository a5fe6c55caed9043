import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sparkdiag.evidence.client import ClientOutcome, ResponseEnd
from sparkdiag.evidence.processes import ProcessInfo, ServerExit
from sparkdiag.evidence.run import DcpProof, RevisionProof
from sparkdiag.evidence.stacks import Frame, SamplingStats, StackSample, ThreadStack
from sparkdiag.evidence.stored import StoredRun
from sparkdiag.evidence.timeline import NoteEvent
from sparkdiag.evidence.verdict import EvidenceItem
from sparkdiag.harmless.printable import printable
from sparkdiag.reporting.markdown import MOST_BYTES, render_markdown
from tests.unit.reporting.sample_runs import CRAWLING, EVERY, SENT, SHA, SUSPECT

PAGE = MarkdownIt("gfm-like")
HOSTILE = [
    "</details><script>alert(1)</script>",
    "``` \n\n# heading\n\n```",
    "~~~~\n| a | b |",
    "@octocat #1 https://evil.example [x](javascript:y) <img src=x>",
    "\x1b[2J\u202e\x00",
    "<!--",
    "|||",
    "`",
]


def outline(text: str) -> list[tuple[str, str]]:
    """Headings, tables, fences and raw HTML of a page: what hostile text would have to add to."""
    kept = {"heading_open", "table_open", "fence", "html_block", "tr_open", "bullet_list_open", "code_block", "hr"}
    return [
        (token.type, token.content if token.type == "html_block" else token.info)
        for token in PAGE.parse(text)
        if token.type in kept
    ]


def inline_kinds(text: str) -> set[str]:
    return {child.type for token in PAGE.parse(text) for child in token.children or []}


def poisoned(text: str) -> StoredRun:
    """The crawling run with ``text`` wherever something from outside can stand."""
    frame = Frame(function=text, filename=text, short_filename=text, line=1, locals={text: text})
    sample = StackSample(pid=1, started_s=60, ended_s=60, threads=(ThreadStack(thread_name=text, frames=(frame,)),))
    process = ProcessInfo(pid=1, started_at_s=0, role="worker", title=text)
    verdict = CRAWLING.record.verdict
    assert verdict is not None
    ranks = tuple(rank.model_copy(update={"name": text, "loop_progress": text}) for rank in verdict.ranks)
    item = EvidenceItem(source="stacks", text=text)
    record = CRAWLING.record.model_copy(
        update={
            "verdict": verdict.model_copy(
                update={
                    "function": text,
                    "kind": text,
                    "evidence_for": (item,),
                    "evidence_against": (item,),
                    "ranks": ranks,
                }
            ),
            "revision": RevisionProof(sha=text, version=text, because=text, suspect_commit=text, asked=text),
            "dcp": DcpProof(asked=2, size=2, witnesses=(text, text)),
            "command": ("sparkdiag", text),
            "server_argv": (text,),
            "environment": {"note": text},
        }
    )
    sent = SENT.model_copy(update={"expected": text, "nonce": text})
    end = ResponseEnd(t_s=70, how="error", finish_reason=text, error=text)
    observation = CRAWLING.observation.model_copy(
        update={
            "samples": (sample,),
            "processes": (process,),
            "client": ClientOutcome(sent=sent, text=text, end=end, score="wrong", score_because=text),
            "server_exit": ServerExit(at_s=70, signal=text, process=text, last_log_lines=(text,)),
            "sampling": SamplingStats(taken=1, reason=text, errors={text: 2}),
        }
    )
    return CRAWLING.model_copy(
        update={
            "record": record,
            "observation": observation,
            "notes": (NoteEvent(t_s=1, source=text, text=text),),
            "problems": (text,),
        }
    )


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60)
@given(
    st.one_of(
        st.text(max_size=80).filter(lambda text: printable(text).strip()),
        st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=4).map(" ".join),
    )
)
def test_nothing_from_outside_changes_the_page(text: str) -> None:
    page = render_markdown(poisoned(text))
    assert outline(page) == outline(render_markdown(poisoned("word")))
    assert inline_kinds(page) <= {
        "text",
        "code_inline",
        "strong_open",
        "strong_close",
        "em_open",
        "em_close",
        "softbreak",
    }


@pytest.mark.parametrize("name", list(EVERY))
def test_the_first_screen_answers_the_two_questions_before_the_verdict(name: str) -> None:
    page = render_markdown(EVERY[name])
    first = page.split("<details>")[0]
    dcp, revision, contains = (
        first.index("decode_context_parallel_size"), first.index("2. Revision"), first.index("suspect commit"),
    )  # fmt: skip
    assert dcp < revision < contains < first.index("**Verdict.**") < first.index("**Run it again**")
    assert len(first.splitlines()) < 45


def test_it_says_what_was_seen_and_by_whom() -> None:
    first = render_markdown(CRAWLING).split("<details>")[0]
    assert first.startswith(f"## sparkdiag: stalled (crawling) in `{SUSPECT}`")
    assert "**2** (as asked). Seen by: worker titles:" in first
    assert f"`{SHA}`" in first
    assert "**proved**" in first
    assert "| **yes** |" in first
    assert "29.3 times the healthy 8.2 s (the fast kernel timed on the same shapes" in first
    assert "```sh\nsparkdiag repro --dcp 2\n```" in first


@pytest.mark.parametrize(("answer", "words"), [("no", "**no**"), ("not-in-this-clone", "**not in this clone**")])
def test_containment_is_said_in_words(answer: str, words: str) -> None:
    revision = CRAWLING.record.revision.model_copy(update={"contains_suspect_commit": answer, "proved": False})
    page = render_markdown(
        CRAWLING.model_copy(update={"record": CRAWLING.record.model_copy(update={"revision": revision})})
    )
    assert f"contains the suspect commit `f8f18ce66b`? | {words} |" in page
    assert "**not proved**" in page


def test_disagreeing_witnesses_and_another_size_than_asked_are_said() -> None:
    dcp = DcpProof(asked=4, size=2, witnesses=("a",), consistent=False)
    page = render_markdown(CRAWLING.model_copy(update={"record": CRAWLING.record.model_copy(update={"dcp": dcp})}))
    assert "**2** (asked for 4; **the witnesses disagree**)" in page


def test_ranks_on_the_same_path_are_folded_with_the_locals_of_each() -> None:
    page = render_markdown(CRAWLING)
    assert "**`Worker_TP0_DCP0 (pid 102)`, `Worker_TP1_DCP1 (pid 103)`** share one path" in page
    stacks = page.split("<summary>Stack of each rank</summary>")[1].split("</details>")[0]
    assert stacks.count("worker_busy_loop") == 1
    assert stacks.count("head_start=3") == 2


def test_the_timeline_is_thinned_and_keeps_its_ends() -> None:
    page = render_markdown(CRAWLING)
    table = page.split("| since sending")[1].split("</details>")[0].strip().splitlines()[2:]
    assert 12 <= len(table) <= 20
    assert table[0].startswith("| 1.0 s | ")
    assert table[-1].startswith("| 20.0 s | ")
    assert "`head_start 3/4, k_start 3584/6000`" in table[-1]


def test_an_answer_is_shown_beside_what_was_expected() -> None:
    first = render_markdown(EVERY["completed"]).split("<details>")[0]
    assert "**Answer.** `k3v9`, expected `k3v9`, `finish_reason=stop`. **retrieved**." in first
    assert "**Answer.**" not in render_markdown(CRAWLING)


def test_a_crash_shows_the_last_words_of_the_server() -> None:
    page = render_markdown(EVERY["crashed"])
    assert "The server ended 4.0 s after sending by signal `SIGKILL`.\n\n```text\nkilled\n```" in page


def test_a_run_without_a_verdict_still_shows_the_scenarios_function() -> None:
    record = CRAWLING.record.model_copy(update={"verdict": None})
    assert page_row(render_markdown(CRAWLING.model_copy(update={"record": record}))) == page_row(
        render_markdown(CRAWLING)
    )


def page_row(page: str) -> str:
    return page.split("| since sending")[1].splitlines()[2]


def test_a_verdict_of_today_is_shown_beside_the_stored_one() -> None:
    page = render_markdown(CRAWLING, judged_again=EVERY["inconclusive"])
    assert page.startswith("## sparkdiag: stalled (crawling)")
    assert "**Judged again by this version, the verdict differs:** inconclusive." in page


def long_run(text: str) -> StoredRun:
    run = poisoned(text)
    verdict = run.record.verdict
    assert verdict is not None
    items = tuple(EvidenceItem(source="stacks", text=text) for _ in range(40))
    frames = tuple(Frame(function=f"{text}{index}", filename=text, line=index) for index in range(300))
    processes = tuple(ProcessInfo(pid=pid, started_at_s=0, role="worker", title=text) for pid in range(1, 60))
    samples = tuple(
        StackSample(pid=pid, started_s=60, ended_s=60, threads=(ThreadStack(frames=frames[pid:]),))
        for pid in range(1, 60)
    )
    record = run.record.model_copy(
        update={
            "verdict": verdict.model_copy(update={"evidence_for": items, "evidence_against": items}),
            "dcp": DcpProof(asked=2, witnesses=(text,) * 40),
            "environment": {str(index): text for index in range(50)},
        }
    )
    return run.model_copy(
        update={
            "record": record,
            "problems": (text,) * 40,
            "notes": (NoteEvent(t_s=1, source=text, text=text),) * 200,
            "observation": run.observation.model_copy(update={"processes": processes, "samples": samples}),
        }
    )


@pytest.mark.parametrize("text", ["word " * 400, "` " * 400, "😀 " * 400, "````` " * 200, "\n" * 1000, "é" * 5000])
def test_it_never_outgrows_a_comment(text: str) -> None:
    page = render_markdown(long_run(text))
    assert len(page.encode()) <= MOST_BYTES
    assert page.startswith("## sparkdiag")


def test_what_was_left_out_is_named_least_useful_first() -> None:
    page = render_markdown(long_run("some_words " * 400))
    assert "*Left out to stay under 65,536 bytes: Notes" in page
    assert "**Verdict.**" in page
