"""Routes as pages to paste, and as the one JSON document: what they say, and that nothing in them breaks out."""

import json
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparkdiag.evidence.route import Executed, ExecutedCall, MatrixCell
from sparkdiag.harmless.printable import printable
from sparkdiag.reporting.markdown import MOST_BYTES
from sparkdiag.reporting.route_document import document_text, history_document, matrix_document, route_document
from sparkdiag.reporting.route_markdown import render_history, render_matrix, render_route
from tests.unit.reporting.page_case import PAGE, outline
from tests.unit.reporting.sample_routes import EVERY, HISTORY, MATRIX, MAYBE, STALLS, poisoned, route

HOSTILE = [
    "</details><script>alert(1)</script>",
    "```\n```` diff\n# heading\n```",
    "| a | b |\n|---|---|",
    "@octocat #1 GH-2 https://evil.example [x](javascript:y) <img src=x>",
    "\x1b[2J\u202e\x00\u2028",
    "1. - * # > ",
    "**",
]
RAN = Executed(
    revision="a" * 40,
    python="Python 3.11",
    calls=(ExecutedCall(function="f", clean_logits=True, reached=("k",), agrees=False),),
)


def poisoned_pages(text: str) -> list[str]:
    return [
        render_route(poisoned(MAYBE, text), subject=text, executed=poisoned(RAN, text)),
        render_matrix(poisoned(MATRIX, text)),
        render_history(poisoned(HISTORY, text)),
    ]


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=80)
@given(
    st.one_of(
        st.text(max_size=80).filter(lambda text: text.strip() and printable(text).strip()),
        st.lists(st.sampled_from(HOSTILE), min_size=1, max_size=4).map(" ".join),
    )
)
def test_nothing_from_outside_changes_a_page(text: str) -> None:
    for page, plain in zip(poisoned_pages(text), poisoned_pages("word"), strict=True):
        assert outline(page) == outline(plain)
        inline = {child.type for token in PAGE.parse(page) for child in token.children or []}
        assert inline <= {"text", "code_inline", "strong_open", "strong_close", "em_open", "em_close", "softbreak"}
        assert "\x1b" not in page


@pytest.mark.parametrize("text", ["word " * 400, "` " * 400, "😀 " * 400, "````` " * 200, "é" * 5000])
def test_a_page_never_outgrows_a_comment(text: str) -> None:
    many = MAYBE.model_copy(
        update={
            "reached": MAYBE.reached * 30,
            "raises": MAYBE.raises * 100,
            "not_understood": MAYBE.not_understood * 500,
        }
    )
    matrix = MATRIX.model_copy(update={"cells": MATRIX.cells * 100, "problems": MATRIX.problems * 200})
    history = HISTORY.model_copy(update={"changes": HISTORY.changes * 500})
    for page in (
        render_route(poisoned(many, text), subject=text),
        render_matrix(poisoned(matrix, text)),
        render_history(poisoned(history, text)),
    ):
        assert len(page.encode()) <= MOST_BYTES
        assert page.startswith("## sparkdiag route: ")


@pytest.mark.parametrize("name", list(EVERY))
def test_every_route_has_its_answer_first(name: str) -> None:
    lines = render_route(EVERY[name]).splitlines()
    assert lines[0].startswith("## sparkdiag route: `sparse_attn_indexer` at `1a2b3c4d5e`")
    assert lines[2].startswith("**Answer.** ")


def test_a_route_shows_answer_tree_and_files() -> None:
    page = render_route(STALLS, subject="Route things")
    assert "Reaches `_fp8_mqa_logits_torch` (STALL PATH); exact: one kernel" in page
    assert "**`_fp8_mqa_logits_torch`**, **STALL PATH**" in page
    (tree,) = [token.content for token in PAGE.parse(page) if token.type == "fence"]
    assert tree.splitlines()[0].startswith("sparse_attn_indexer.py:545  dcp_world_size <= 1")
    assert "- `deep_gemm.py`: `vllm/utils/deep_gemm.py`" in page


def test_conditions_errors_and_what_was_not_understood_are_told() -> None:
    page = render_route(MAYBE)
    assert "**1 of 2: `_fp8_mqa_logits_torch`**, **STALL PATH**" in page
    assert "- *when*: `clean_logits is true (sm12x_deep_gemm_fallbacks.py:441)`" in page
    assert "| `deep_gemm.py:470` | `NotImplementedError: no kernel for this shape` | `q.dim() is 4` |" in page
    assert "| `sparse_attn_indexer.py:560` | `match chunk.kind:` | match statements |" in page
    assert "**Executed**: DISAGREES" in render_route(STALLS, executed=RAN)


def test_a_matrix_is_a_table_under_the_sentence_that_narrows_the_claim() -> None:
    page = render_matrix(MATRIX)
    assert page.splitlines()[0] == "## sparkdiag route: 8 configurations"
    assert page.splitlines()[2].startswith("**Answer.** In the 8 cells asked the stall path is reached only when: ")
    tokens = PAGE.parse(page)
    rows = [token for token in tokens if token.type == "tr_open"]
    assert len(rows) == 1 + len(MATRIX.cells)
    assert "| `after` | `2` | `sm121` | **STALL PATH** | `_fp8_mqa_logits_torch` |" in page
    assert "| `before` | `1` | `sm90` | no | `deep_gemm_logits` or `b` |" in page
    assert "- `gone`: no answer, " in page
    assert "- `after` is `f6c6e54f4a` `Route things`" in page


def test_a_history_is_a_table_of_changes() -> None:
    page = render_history(HISTORY, stalls=frozenset({"_fp8_mqa_logits_torch"}))
    assert page.splitlines()[0] == "## sparkdiag route: 2 changes of the route"
    row = "| `f6c6e54f4a` | 2026-05-06 | `Route SM12x DeepGEMM fallbacks (#4711)` | no kernel |"
    assert f"{row} `_fp8_mqa_logits_torch` **STALL PATH** |" in page
    assert "| `fp8_mqa_logits_triton` or `b` | – (not exact) |" in page


def test_the_document_of_a_route_keeps_what_every_version_has() -> None:
    document = json.loads(document_text(route_document(STALLS, subject="x")))
    assert document["schema"] == 1
    assert [(one["function"], one["when"]) for one in document["reached"]] == [("_fp8_mqa_logits_torch", [])]
    assert document["reached"][0]["path"].endswith("sm12x_deep_gemm_fallbacks.py")
    assert document["guards"][0] | {"function": ""} == {
        "function": "",
        "path": "vllm/model_executor/layers/sparse_attn_indexer.py",
        "line": 545,
        "source": "dcp_world_size <= 1",
        "value": "false",
        "because": "--dcp 2",
    }
    assert (document["exact"], document["stall_path"], document["executed"]) == (True, "true", None)
    assert document["files"] == dict(STALLS.files)


def test_a_file_named_like_a_secret_keeps_its_id() -> None:
    found = route(files={"vllm/api_key.py": "d" * 40})
    assert route_document(found)["files"] == {"vllm/api_key.py": "d" * 40}


@pytest.mark.parametrize(
    "made",
    [
        lambda text: route_document(poisoned(MAYBE, text), subject=text, executed=poisoned(RAN, text)),
        lambda text: matrix_document(poisoned(MATRIX, text)),
        lambda text: history_document(poisoned(HISTORY, text)),
    ],
)
def test_documents_are_ascii_and_hold_no_secret(made: Callable[[str], dict[str, object]]) -> None:
    secret = "hf_" + "A1b2C3d4E5" * 4
    text = document_text(made(f"\x1b[2J\u202eé token = '{secret}'"))
    assert text.isascii() and "\x1b" not in text and secret not in text
    assert json.loads(text)["schema"] == 1


def test_the_document_of_a_matrix_has_every_cell() -> None:
    document = json.loads(document_text(matrix_document(MATRIX)))
    assert [MatrixCell.model_validate(cell) for cell in document["cells"]] == list(MATRIX.cells)
    assert document["narrowed"] == list(MATRIX.narrowed)
    assert document["dcp"] == [1, 2]
