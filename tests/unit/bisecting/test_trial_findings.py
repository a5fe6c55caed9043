"""What each outcome means for each target, and what makes two stalls or crashes the same."""

from typing import get_args

import pytest

from sparkdiag.bisecting.search.findings import (
    Finding,
    compare_ends,
    crash_class,
    finding,
    mark,
    same_suspect_files,
    signature_for,
)
from sparkdiag.evidence.bisection import Direction, Has, Signature, Target, TrialOutcome, TrialResult
from sparkdiag.evidence.verdict import EvidenceItem

STALL = Signature(kind="torch-fallback", function="_fp8_mqa_logits_torch", role="worker")
OTHER = Signature(kind="collective", function="all_reduce", role="worker")
SEEN = ("_fp8_mqa_logits_torch", "forward")


def result(outcome: TrialOutcome, **fields: object) -> TrialResult:
    return TrialResult.model_validate({"sha": "a" * 40, "outcome": outcome, "samples": 30, **fields})


def shown(outcome: TrialOutcome) -> TrialResult:
    """A run of that outcome as a session would write it, with the needle and the frames that speak for every target:
    what does not count must not be counted."""
    reason = {"crashed": "SIGSEGV", "not-started": "ValueError: no such layer"}.get(outcome, "why it is so")
    stalled = {"mode": "crawling", "signature": STALL} if outcome == "stalled" else {}
    return result(outcome, needle="degenerate", functions=SEEN, reason=reason, **stalled)


EVERY: dict[TrialOutcome, dict[str, Has]] = {
    "completed": {"stall": "no", "frame": "yes", "wrong-needle": "yes", "crash": "no"},
    "stalled": {"stall": "yes", "frame": "yes", "wrong-needle": "cannot-tell", "crash": "cannot-tell"},
    "crashed": {"stall": "cannot-tell", "frame": "yes", "wrong-needle": "cannot-tell", "crash": "yes"},
    "not-started": {"stall": "cannot-tell", "frame": "yes", "wrong-needle": "cannot-tell", "crash": "yes"},
    "inconclusive": {"stall": "cannot-tell", "frame": "yes", "wrong-needle": "cannot-tell", "crash": "cannot-tell"},
    "not-built": dict.fromkeys(("stall", "frame", "wrong-needle", "crash"), "cannot-tell"),
    "not-proved": dict.fromkeys(("stall", "frame", "wrong-needle", "crash"), "cannot-tell"),
}


def targets() -> list[Target]:
    return [
        Target(),
        Target(what="frame", frame="_fp8_mqa_logits_torch"),
        Target(what="wrong-needle"),
        Target(what="crash"),
    ]


OUTCOMES: tuple[TrialOutcome, ...] = get_args(TrialOutcome)


@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_every_outcome_means_one_thing_for_every_target(outcome: TrialOutcome, target: Target) -> None:
    found = finding(shown(outcome), target=target, reference=None)
    assert found.has == EVERY[outcome][target.what]
    assert found.because


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_nothing_of_a_result_without_evidence_is_yes_or_no(outcome: TrialOutcome) -> None:
    bare = result(outcome, samples=0)
    has = {target.what: finding(bare, target=target, reference=None).has for target in targets()}
    assert has["frame"] == "cannot-tell"
    assert has["wrong-needle"] == "cannot-tell"
    if outcome == "stalled":
        assert has["stall"] == "cannot-tell"


@pytest.mark.parametrize("target", targets(), ids=str)
def test_what_was_not_proved_is_never_good_or_bad(target: Target) -> None:
    for reference in (None, STALL):
        found = finding(shown("not-proved"), target=target, reference=reference)
        assert found == Finding(has="cannot-tell", because="why it is so")


# Stalls


@pytest.mark.parametrize(
    "other",
    [
        OTHER,
        STALL.model_copy(update={"kind": "collective"}),
        STALL.model_copy(update={"function": "forward"}),
        STALL.model_copy(update={"role": "engine_core"}),
        Signature(kind=None, function=None, role=None),
    ],
    ids=str,
)
def test_another_stall_is_neither_the_stall_nor_its_absence(other: Signature) -> None:
    found = finding(result("stalled", mode="stuck", signature=other), target=Target(), reference=STALL)
    assert found.has == "cannot-tell"


@pytest.mark.parametrize("mode", ["stuck", "crawling"])
def test_the_same_stall_counts_whatever_its_mode(mode: str) -> None:
    assert finding(result("stalled", mode=mode, signature=STALL), target=Target(), reference=STALL).has == "yes"


def test_a_stall_nobody_knows_the_place_of_is_no_reference() -> None:
    nowhere = Signature(kind="torch-fallback", function=None, role="worker")
    assert finding(result("stalled", signature=nowhere), target=Target(), reference=None).has == "cannot-tell"
    assert finding(result("stalled", signature=nowhere), target=Target(), reference=nowhere).has == "cannot-tell"


def test_a_control_nobody_watched_stalls_all_the_same() -> None:
    control = result("stalled", mode="crawling", watched=False, samples=0)
    assert finding(control, target=Target(), reference=None).has == "yes"


# Frames


@pytest.mark.parametrize(
    ("fields", "has"),
    [
        ({"outcome": "completed", "samples": 5}, "no"),
        ({"outcome": "completed", "samples": 4}, "cannot-tell"),
        ({"outcome": "completed", "samples": 0, "watched": False}, "cannot-tell"),
        ({"outcome": "stalled", "mode": "crawling", "signature": STALL}, "no"),
        ({"outcome": "stalled", "mode": "stuck", "signature": STALL}, "cannot-tell"),
        ({"outcome": "crashed"}, "cannot-tell"),
        ({"outcome": "inconclusive"}, "cannot-tell"),
    ],
)
def test_a_frame_is_absent_only_where_it_would_have_been_seen(fields: dict[str, object], has: Has) -> None:
    run = TrialResult.model_validate({"sha": "a", "samples": 30, "functions": ("forward",), **fields})
    assert finding(run, target=Target(what="frame", frame="new_kernel"), reference=None).has == has


def test_a_part_of_a_functions_name_is_not_the_function() -> None:
    run = result("completed", functions=("new_kernel_v2",))
    assert finding(run, target=Target(what="frame", frame="new_kernel"), reference=None).has == "no"


# Needles


@pytest.mark.parametrize(
    ("score", "has"),
    [("retrieved", "no"), ("wrong", "yes"), ("truncated", "yes"), ("degenerate", "yes"), (None, "cannot-tell")],
)
def test_an_answer_counts_only_of_a_run_that_completed(score: str | None, has: Has) -> None:
    target = Target(what="wrong-needle")
    assert finding(result("completed", needle=score), target=target, reference=None).has == has
    for outcome in set(OUTCOMES) - {"completed"}:
        assert finding(result(outcome, needle=score), target=target, reference=None).has == "cannot-tell"


# Crashes


CRASH = Target(what="crash")


def crash(reason: str, outcome: TrialOutcome = "crashed", *, log: str = "") -> TrialResult:
    evidence = (EvidenceItem(source="server-log", text=log),) if log else ()
    return result(outcome, reason=reason, evidence_for=evidence)


def test_a_crash_is_the_same_when_its_class_is() -> None:
    reference = signature_for(crash("torch.OutOfMemoryError: tried to allocate 2.5 GiB"), target=CRASH)
    assert reference is not None and reference.function == "OutOfMemoryError"
    again = crash("OutOfMemoryError: tried to allocate 7 GiB (VLLM::Worker_TP1 ended with exit code 1)")
    assert finding(again, target=CRASH, reference=reference).has == "yes"
    other = finding(crash("RuntimeError: expected 3 heads"), target=CRASH, reference=reference)
    assert other.has == "cannot-tell"
    assert "RuntimeError (crashed), not OutOfMemoryError (crashed)" in other.because


def test_the_same_exception_before_and_after_the_start_is_not_the_same_crash() -> None:
    reference = signature_for(crash("ValueError: x", "not-started"), target=CRASH)
    assert finding(crash("ValueError: x", "crashed"), target=CRASH, reference=reference).has == "cannot-tell"
    assert finding(crash("ValueError: y", "not-started"), target=CRASH, reference=reference).has == "yes"


def test_a_server_that_was_ready_shows_that_it_starts_but_not_that_it_would_not_have_crashed() -> None:
    stalled = result("stalled", mode="crawling", signature=STALL)
    at_start = signature_for(crash("ValueError: x", "not-started"), target=CRASH)
    later = signature_for(crash("ValueError: x", "crashed"), target=CRASH)
    assert finding(stalled, target=CRASH, reference=at_start).has == "no"
    assert finding(stalled, target=CRASH, reference=later).has == "cannot-tell"
    assert finding(stalled, target=CRASH, reference=None).has == "cannot-tell"


@pytest.mark.parametrize(
    ("reason", "found"),
    [
        ("AttributeError: no attribute 'x' (the server ended while it was starting (exit code 1))", "AttributeError"),
        ("ServerError: gone; RuntimeError: CUDA error", "RuntimeError"),
        ("EngineDeadError: see above", "EngineDeadError"),
        ("APIServer ended by itself with SIGSEGV 3.4 s into the run", "SIGSEGV"),
        ("ended by itself with exit code 17 33.4 s into the run", "ended by itself with exit code 17 # s into the run"),
        ("lost /tmp/a/b at 0x7f12 after 3 tries", "lost # at # after # tries"),
        ("", None),
    ],
)
def test_the_class_of_a_crash_leaves_out_what_differs_from_run_to_run(reason: str, found: str | None) -> None:
    assert crash_class(reason) == found


def test_the_servers_last_lines_tell_the_class_where_the_reason_names_none() -> None:
    seen = crash("APIServer ended by itself with exit code 1 3 s into the run", log="RuntimeError: head mismatch")
    found = signature_for(seen, target=CRASH)
    assert found == Signature(kind="crash", function="RuntimeError", role="crashed")


def test_only_stalls_and_crashes_are_locked_on() -> None:
    stalled = result("stalled", signature=STALL)
    assert signature_for(stalled, target=Target()) == STALL
    assert signature_for(result("completed"), target=Target()) is None
    assert signature_for(stalled, target=CRASH) is None
    assert signature_for(stalled, target=Target(what="frame", frame="f")) is None
    assert signature_for(stalled, target=Target(what="wrong-needle")) is None


# Ends and marks


def ends(old: Has, new: Has) -> tuple[Direction | None, str | None, str | None]:
    found = compare_ends(Finding(has=old, because="o"), Finding(has=new, because="n"), reference=STALL, target=Target())
    return found.direction, found.problem, found.lever


def test_the_direction_is_found_from_the_ends() -> None:
    assert ends("yes", "no") == ("fix", None, None)
    assert ends("no", "yes") == ("regression", None, None)


@pytest.mark.parametrize(
    ("old", "new"),
    [("yes", "yes"), ("no", "no"), ("cannot-tell", "no"), ("yes", "cannot-tell"), ("cannot-tell", "cannot-tell")],
)
def test_ends_that_do_not_differ_say_so_and_what_to_try(old: Has, new: Has) -> None:
    direction, problem, lever = ends(old, new)
    assert direction is None and problem and lever


@pytest.mark.parametrize(
    ("has", "direction", "side"),
    [
        ("yes", "fix", "old"),
        ("no", "fix", "new"),
        ("yes", "regression", "new"),
        ("no", "regression", "old"),
        ("cannot-tell", "fix", "skip"),
        ("cannot-tell", "regression", "skip"),
    ],
)
def test_a_finding_is_marked_by_the_direction(has: Has, direction: Direction, side: str) -> None:
    assert mark(has, direction) == side


# Reuse


def test_the_same_watched_files_are_the_same_blob_by_blob() -> None:
    judged = {("b1", "b2"): "judged", ("-", "b2"): "without the first", ("-", "-"): "without any", (): "unasked"}
    assert same_suspect_files(["b1", "b2"], judged) == "judged"
    assert same_suspect_files(["-", "b2"], judged) == "without the first"
    assert same_suspect_files(["b2", "b1"], judged) is None
    assert same_suspect_files(["-", "-"], judged) is None
    assert same_suspect_files([], judged) is None
