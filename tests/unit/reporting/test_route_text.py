"""What the terminal shows of a route, a matrix and a history."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.evidence.route import Executed, ExecutedCall, NotUnderstood, Route
from sparkdiag.harmless.printable import hidden_characters
from sparkdiag.reporting.route import route_text
from sparkdiag.reporting.route_open import runs
from sparkdiag.reporting.route_places import labelled, short
from sparkdiag.reporting.route_rows import Row, laid_out
from sparkdiag.reporting.route_tables import history_text, matrix_text
from tests.unit.reporting.sample_routes import (
    EVERY,
    EXTERNAL,
    FAILS,
    FALLBACKS,
    HISTORY,
    MATRIX,
    MAYBE,
    STALLS,
    poisoned,
    route,
)

STALL = "STALL PATH (scenario sm12x-mqa-prefill)"


def test_the_tree_names_each_guard_with_line_value_and_what_decided_it() -> None:
    lines = route_text(STALLS, columns=None).splitlines()
    at = lines.index("") + 1
    tree = lines[at : lines.index("", at)]
    assert [line.split("  ")[0].strip() or line.strip().split("  ")[0] for line in tree] == [
        "sparse_attn_indexer.py:545",
        "-> :576",
        "deep_gemm.py:452",
        "-> :455",
        "…_deep_gemm_fallbacks.py:441",
        "-> :449",
    ]
    assert tree[0].split()[-3:] == ["False", "--dcp", "2"]
    assert tree[2].split()[-3:] == ["True", "--arch", "sm121"]
    assert tree[4].endswith("False     clean_logits=False")
    assert tree[5].endswith(STALL)
    assert [len(line) - len(line.lstrip()) for line in tree] == [0, 0, 3, 3, 6, 6]


def test_values_stand_below_each_other() -> None:
    lines = route_text(EXTERNAL, columns=79).splitlines()
    guards = [line for line in lines if "False     --" in line]
    assert len({line.index("False     --") for line in guards}) == 1
    assert len(guards) == 2


def test_the_answer_and_how_sure_it_is_come_last() -> None:
    assert route_text(STALLS, columns=None).splitlines()[-2:] == [
        "Reaches _fp8_mqa_logits_torch (STALL PATH).",
        "exact: one kernel, whatever is unknown",
    ]
    assert route_text(MAYBE, columns=None).splitlines()[-2:] == [
        "Reaches _fp8_mqa_logits_torch (STALL PATH) or fp8_mqa_logits_triton; may end in NotImplementedError; "
        "what was not understood may lead elsewhere.",
        "not exact: 2 kernels, by what is unknown; 1 error may come first; 1 line not understood",
    ]
    assert route_text(FAILS, columns=None).splitlines()[-1] == "not exact: no kernel is reached; it ends in an error"
    assert route_text(route(), columns=None).splitlines()[-2] == "No kernel was found."


def test_each_of_several_kernels_has_its_conditions_and_shows_only_where_it_parts() -> None:
    text = route_text(MAYBE, columns=None)
    first, second = text.index("1 of 2: _fp8_mqa_logits_torch, STALL PATH"), text.index("2 of 2: fp8_mqa_logits_triton")
    assert first < text.index("when  clean_logits is false") < second < text.index("when  clean_logits is true")
    assert "(the first 4 steps as above)" in text[second:]
    assert "if True   clean_logits was set to unknown" in text[second:]
    assert text.count("dcp_world_size <= 1") == 1
    assert "may end in  deep_gemm.py:470  NotImplementedError: no kernel for this shape\n  when  q.dim() is 4" in text
    assert "not understood  sparse_attn_indexer.py:560  match chunk.kind:  (match statements)" in text


def test_many_lines_with_one_reason_are_told_together() -> None:
    lines = [
        NotUnderstood(path=FALLBACKS, line=number, source="x", reason="there is too much to follow")
        for number in (361, 348, 349, 350, 362, 419)
    ]
    text = route_text(route(not_understood=(*lines, *MAYBE.not_understood)), columns=None)
    told = [line for line in text.splitlines() if line.startswith("not understood")]
    assert told == [
        "not understood  …_deep_gemm_fallbacks.py:348-350, 361-362, 419  6 lines  (there is too much to follow)",
        "not understood  sparse_attn_indexer.py:560  match chunk.kind:  (match statements)",
    ]
    assert text.splitlines()[-1] == "not exact: no kernel is reached; 7 lines not understood"


@given(st.sets(st.integers(1, 60)))
def test_runs_hold_each_number_once(numbers: set[int]) -> None:
    found = runs(sorted(numbers))
    assert [number for first, last in found for number in range(first, last + 1)] == sorted(numbers)
    assert all(later[0] > earlier[1] + 1 for earlier, later in pairwise(found))


def test_conditions_speak_of_files_by_their_short_names() -> None:
    one = MAYBE.reached[1].model_copy(update={"when": (f"x is true ({FALLBACKS}:441)",)})
    assert "when  x is true (…_deep_gemm_fallbacks.py:441)" in route_text(route(one), columns=None)


def test_a_single_kernel_with_a_condition_tells_it() -> None:
    one = MAYBE.reached[1]
    assert "when  clean_logits is true" in route_text(route(one), columns=None)


def test_a_kernel_outside_the_repository_is_said_to_be_one() -> None:
    assert "_fp8_fp4_mqa_logits_impl" in route_text(EXTERNAL, columns=None)
    assert "kernel, not in the repository" in route_text(EXTERNAL, columns=None)


def test_what_ran_stands_beside_what_was_read() -> None:
    call = ExecutedCall(function="fp8_fp4_mqa_logits", clean_logits=False, reached=("fp8_mqa_logits_triton",))
    failed_call = ExecutedCall(function="fp8_fp4_mqa_logits", clean_logits=True, raised="TypeError: no")
    calls = (
        call.model_copy(update={"agrees": False}),
        failed_call.model_copy(update={"because": "no stub"}),
    )
    executed = Executed(revision="a" * 40, python="Python 3.11, torch 2.13", sandbox=("no network",), calls=calls)
    text = route_text(STALLS, columns=None, executed=executed)
    assert text.splitlines()[-1] == "executed: DISAGREES with what was read: 1 of 2 calls, 1 cannot be compared"
    assert "executed with Python 3.11, torch 2.13:\n" in text
    assert "  fp8_fp4_mqa_logits(clean_logits=False)  fp8_mqa_logits_triton, DISAGREES\n" in text
    assert "  fp8_fp4_mqa_logits(clean_logits=True)   TypeError: no, not compared: no stub\n" in text
    assert "  sandbox: no network\n" in text
    failed = Executed(revision="a" * 40, python="", problem="no torch")
    assert route_text(STALLS, columns=None, executed=failed).endswith("executed: nothing, because: no torch")


@pytest.mark.parametrize("columns", [60, 79, 100, 140])
@pytest.mark.parametrize("name", list(EVERY))
def test_no_line_is_wider_than_the_terminal(name: str, columns: int) -> None:
    shown = route_text(EVERY[name], columns=columns, subject="Route SM12x things " * 6)
    assert [line for line in shown.splitlines() if len(line) > columns] == []
    assert [line for line in shown.splitlines() if line != line.rstrip()] == []


@pytest.mark.parametrize("name", list(EVERY))
def test_breaking_lines_loses_no_word(name: str) -> None:
    whole, broken = (route_text(EVERY[name], columns=columns).split() for columns in (None, 79))
    plain = [word.rpartition(".py")[2] for word in whole]
    assert sorted(set(plain)) == sorted({word.rpartition(".py")[2] for word in broken})


HOSTILE = ["\x1b[2J\x1b]0;x\x07", "\u202e\u2028\x00", "a\nb\r\nc", "x" * 5000, "  ", "\U000e0100", "é" * 300]


@pytest.mark.parametrize("columns", [None, 79])
@given(text=st.one_of(st.text(max_size=60), st.sampled_from(HOSTILE)))
def test_nothing_from_outside_steers_the_terminal(text: str, columns: int | None) -> None:
    model: Route = MAYBE
    shown = [
        route_text(poisoned(model, text), columns=columns, subject=text),
        matrix_text(poisoned(MATRIX, text), columns=columns),
        history_text(poisoned(HISTORY, text), columns=columns),
    ]
    for one in shown:
        assert hidden_characters(one, allowed="\n") == ()
        if columns is not None:
            to_copy = "  next: "
            assert all(len(line) <= columns or line.startswith(to_copy) for line in one.splitlines())
    assert len(shown[0].splitlines()) < 400


def test_a_secret_in_a_source_line_is_not_shown() -> None:
    secret = "hf_" + "A1b2C3d4E5" * 4
    assert secret not in route_text(poisoned(MAYBE, f"token = '{secret}'"), columns=None)


def test_files_of_one_name_have_labels_of_their_own() -> None:
    paths = ("a/ops/x.py", "b/ops/x.py", "c/other/x.py", "x.py", FALLBACKS)
    labels = labelled(paths)
    assert len(set(labels.values())) == len(paths)
    assert (labels["a/ops/x.py"], labels["b/ops/x.py"]) == ("a/ops/x.py", "b/ops/x.py")
    assert (labels["c/other/x.py"], labels["x.py"]) == ("other/x.py", "x.py")
    assert short(FALLBACKS) == "…_deep_gemm_fallbacks.py"


@given(st.lists(st.text(min_size=1, max_size=60), max_size=6))
def test_every_path_has_a_label_that_prints(paths: list[str]) -> None:
    labels = labelled(paths)
    assert set(labels) == set(paths)
    assert len(set(labels.values())) == len(labels)
    assert all(label and hidden_characters(label) == () for label in labels.values())


def test_a_long_line_pushes_only_its_own_value_aside() -> None:
    rows = [
        Row(indent=0, label="a.py:1", source="x", value="True", because="--dcp 1"),
        Row(indent=0, label="a.py:2", source="y" * 60, value="False", because="--dcp 1"),
    ]
    short_, long_, right = laid_out(rows, columns=79)
    assert short_.index("True") == right.index("False")
    assert long_ == f"a.py:2  {'y' * 60}"


def test_the_matrix_shows_the_axes_that_vary_and_what_it_says_together() -> None:
    lines = matrix_text(MATRIX, columns=79).splitlines()
    head = next(line for line in lines if "stall path" in line)
    assert head.split() == ["rev", "dcp", "arch", "stall", "path", "reaches"]
    assert "after   2    sm121  STALL PATH  _fp8_mqa_logits_torch" in lines
    assert "before  1    sm90   no          deep_gemm_logits" in lines
    assert lines[lines.index("before  1    sm90   no          deep_gemm_logits") + 1].split() == ["or", "b"]
    assert "gone  no answer: --rev 'gone' is no commit of vllm" in lines
    assert 'after = f6c6e54f4a "Route things"' in lines
    assert " ".join(lines[-2:]).split() == MATRIX.narrowed[0].split()


def test_errors_are_told_below_the_table() -> None:
    errors = ("RuntimeError('DeepGEMM is not there')", "AssertionError: not fp4")
    one, other, *_ = MATRIX.cells
    cells = (one.model_copy(update={"raises": errors}), other.model_copy(update={"kernels": (), "raises": errors[1:]}))
    lines = matrix_text(MATRIX.model_copy(update={"cells": cells}), columns=None).splitlines()
    assert "before  1    sm90   no          deep_gemm_logits [1,2]" in lines
    assert "before  1    sm121  no          error [2]" in lines
    assert "[1] may end in RuntimeError('DeepGEMM is not there')" in lines
    assert "[2] may end in AssertionError: not fp4" in lines


def test_an_unknown_cell_does_not_look_safe() -> None:
    cells = tuple(cell.model_copy(update={"stall": "unknown"}) for cell in MATRIX.cells)
    shown = matrix_text(MATRIX.model_copy(update={"cells": cells}), columns=None)
    assert shown.count("  unknown  ") == len(cells)


def test_a_cell_without_an_answer_tells_why() -> None:
    cells = (MATRIX.cells[0].model_copy(update={"problem": "x.py:3 is no Python", "stall": "unknown"}),)
    assert "unknown     no answer: x.py:3 is no Python" in matrix_text(
        MATRIX.model_copy(update={"cells": cells}), columns=None
    )


def test_a_history_tells_each_change_and_how_many_commits_were_read() -> None:
    text = history_text(HISTORY, columns=None, stalls=frozenset({"_fp8_mqa_logits_torch"}))
    assert (
        "f6c6e54f4a  2026-05-06  Route SM12x DeepGEMM fallbacks (#4711)\n"
        "  before  no kernel\n"
        "  after   _fp8_mqa_logits_torch (STALL PATH)\n"
        "  because deep_gemm.py:452 is_device_capability_family(120) is new\n"
    ) in text
    assert "  after   fp8_mqa_logits_triton or b\n  not exact:" in text
    assert "cccccccccc  no answer: a file cannot be parsed" in text
    assert text.splitlines()[-1] == (
        "2 changes among 17,785 commits from 1a2b3c4d5e to f6c6e54f4a; 212 of them had to be read; "
        "1 commit without an answer"
    )
