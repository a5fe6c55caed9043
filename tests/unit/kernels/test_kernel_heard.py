"""What the kernels' child says, folded into a document; and what it is told."""

import pytest

from sparkdiag.errors import EnvironmentFault
from sparkdiag.evidence.kernel_runs import KernelCheck
from sparkdiag.kernels.grid import Shape
from sparkdiag.kernels.heard import Heard
from sparkdiag.kernels.orders import bench_order, check_order
from sparkdiag.reporting.kernel_check import check_text

READY = {"ready": {"device": "cpu", "python": "3.11.7", "torch": "2.13.0", "triton": "3.9.0"}}


def checked(**more: object) -> dict[str, object]:
    call = {
        "subject": "one",
        "name": "the one",
        "judged": True,
        "case": {"rows": 2, "keys": 3, "heads": 4, "window": "full"},
        "clean": True,
        "tolerance": 1e-5,
        "problems": [],
        "difference": 2e-7,
        "worst": [0, 1],
    }
    return {"checked": {**call, **more}}


def document(*said: dict[str, object]) -> KernelCheck:
    heard = Heard(None)
    for one in said:
        heard.hear(one)
    return heard.checked(seed=7, ended_early=None)


def test_right_calls_pass_and_a_wrong_one_fails_with_its_problem_told() -> None:
    assert document(READY, checked()).passed
    found = document(READY, checked(), checked(problems=["inside the window is NaN"]))
    text = check_text(found, again="sparkdiag kernel check --seed 7")
    assert not found.passed
    assert "the one: FAILED, 1 of 2 calls right" in text
    assert "[2 x 3 x 4] full: inside the window is NaN" in text
    assert "failed: the one" in text


def test_what_is_told_only_never_fails_the_check() -> None:
    assert document(READY, checked(), checked(judged=False, problems=["differs"])).passed


def test_nothing_called_is_no_pass() -> None:
    with pytest.raises(EnvironmentFault, match="no kernel was checked"):
        document(READY)
    with pytest.raises(EnvironmentFault, match="no kernel was checked: out of memory"):
        document(READY, checked(skipped="out of memory"))


def test_the_contract_fails_alone() -> None:
    gated = {"dispatch": {"true": "fp8_mqa_logits_triton", "false": "_fp8_mqa_logits_torch"}}
    found = document(READY, checked(), gated)
    assert not found.passed
    assert "clean_logits=False reaches _fp8_mqa_logits_torch" in check_text(found, again="")


def test_nonsense_is_an_error_and_a_hostile_text_stays_one_line() -> None:
    with pytest.raises(EnvironmentFault, match="cannot be read"):
        document(READY, {"checked": {"subject": "one"}})
    found = document(READY, checked(problems=["\x1b[31mred\nline"]))
    assert "\x1b" not in found.calls[0].problems[0]
    assert "\n" not in found.calls[0].problems[0]


def test_orders_say_what_is_checked_and_timed() -> None:
    order = check_order(device="cpu", seed=3, tolerance=None, revision=None)
    assert (order["what"], order["own"], order["seed"]) == ("check", True, 3)
    assert {case["window"] for case in order["cases"]["cpu"]} == {"full", "half", "causal", "ragged", "empty"}
    timed = bench_order(device="cpu", seed=1, shapes=[Shape(4, 8, 2)], repeat=2, budget_s=1.0, revision=None)
    assert timed["cases"]["cuda"] == [
        {"rows": 4, "keys": 8, "heads": 2, "window": "full"},
        {"rows": 4, "keys": 8, "heads": 2, "window": "half"},
    ]
