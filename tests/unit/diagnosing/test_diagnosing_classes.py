"""Who stands where his peers stand, who is odd, and how that is said; in agreement with the rules of a live run."""

import random
from collections.abc import Sequence

import pytest
from diagnosing_cases import diagnosed
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.diagnosing.classes import odd_ones, rank_classes, set_remarks
from sparkdiag.diagnosing.rank_words import folded, missing, telling_dimension
from sparkdiag.evidence.diagnosis import DiagnosisKind, ProcessDiagnosis
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.judging.process_set import Standing, odd_ranks
from sparkdiag.judging.signature import State

GATHER: tuple[DiagnosisKind, str] = ("collective-wait", "all_gather")
REDUCE: tuple[DiagnosisKind, str] = ("collective-wait", "all_reduce")
IDLE: tuple[DiagnosisKind, str] = ("idle", "dequeue")
FALLBACK: tuple[DiagnosisKind, str] = ("torch-fallback", "_fp8_mqa_logits_torch")
FORWARD: tuple[DiagnosisKind, str] = ("forward", "linear")
WAITING = {"collective-wait", "idle", "queue-wait", "ray-wait"}

Place = tuple[DiagnosisKind, str]


def workers(*places: Place, labels: Sequence[str] = ()) -> list[ProcessDiagnosis]:
    names = labels or [f"TP{rank}" for rank in range(len(places))]
    return [diagnosed(label, *place) for label, place in zip(names, places, strict=True)]


def waiting(processes: Sequence[ProcessDiagnosis]) -> frozenset[int]:
    return frozenset(index for index, one in enumerate(processes) if one.kind in WAITING)


def odd(processes: Sequence[ProcessDiagnosis]) -> list[int]:
    return sorted(odd_ones(processes, waiting=waiting(processes)))


def texts(processes: Sequence[ProcessDiagnosis]) -> list[str]:
    return [one.text for one in rank_classes(processes, waiting=waiting(processes))]


def remarks(processes: Sequence[ProcessDiagnosis]) -> tuple[str, ...]:
    return set_remarks(processes, waiting=waiting(processes))


def test_the_incident() -> None:
    labels = ["TP0_DCP0", "TP1_DCP1", "TP2_DCP0", "TP3_DCP1"]
    processes = workers(GATHER, GATHER, GATHER, FALLBACK, labels=labels)
    assert odd(processes) == [3]
    assert texts(processes) == ["TP3_DCP1 is in _fp8_mqa_logits_torch", "TP0 to TP2 wait in all_gather"]
    first, second = rank_classes(processes, waiting=waiting(processes))
    assert (first.members, first.waits) == (("Worker_TP3_DCP1",), False)
    assert (len(second.members), second.waits, second.function) == (3, True, "all_gather")


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ((GATHER, FALLBACK), [1]),
        ((FALLBACK, IDLE), [0]),
        ((GATHER, FALLBACK, FALLBACK, FALLBACK), [1, 2, 3]),
        ((GATHER, GATHER, GATHER, REDUCE), [3]),
        ((GATHER, GATHER, GATHER, IDLE), [3]),
        ((GATHER, GATHER, REDUCE, REDUCE), []),
        ((GATHER, REDUCE), []),
        ((FALLBACK, FORWARD), []),
        ((GATHER, GATHER), []),
        ((IDLE, IDLE, IDLE), []),
        ((FALLBACK, FALLBACK), []),
        ((GATHER,), []),
        ((), []),
    ],
)
def test_the_odd_ones(places: Sequence[Place], expected: list[int]) -> None:
    assert odd(workers(*places)) == expected


def test_an_engine_core_that_waits_for_its_workers_is_a_victim() -> None:
    core = diagnosed(None, "queue-wait", "get_response", role="engine_core", name="EngineCore")
    processes = [core, *workers(GATHER, FALLBACK)]
    assert odd(processes) == [2]
    assert texts(processes) == [
        "TP1 is in _fp8_mqa_logits_torch",
        "TP0 waits in all_gather",
        "EngineCore waits for an answer in get_response",
    ]
    alone = [core, diagnosed("TP0", *FALLBACK)]
    assert odd(alone) == []
    assert texts(alone)[0] == "TP0 is in _fp8_mqa_logits_torch"


def test_all_in_one_collective_is_nobodys_fault() -> None:
    assert "all 3 wait in all_gather: none of them is the odd one" in remarks(workers(GATHER, GATHER, GATHER))[0]
    assert remarks(workers(GATHER, GATHER, FALLBACK)) == ()
    assert remarks(workers(GATHER)) == ()


def test_different_collectives_are_said_to_be_a_mismatch_if_it_lasts() -> None:
    (said,) = remarks(workers(GATHER, REDUCE, GATHER, REDUCE))
    assert "TP0, TP2 in all_gather; TP1, TP3 in all_reduce" in said
    assert "if a second look shows the same" in said


def test_a_rank_that_is_not_in_the_paste_is_said() -> None:
    processes = workers(GATHER, GATHER, GATHER, labels=["TP0", "TP1", "TP3"])
    assert "TP2 is not among the dumps: the odd one may be there" in remarks(processes)
    assert texts(processes) == ["TP0, TP1, TP3 wait in all_gather"]


def test_who_cannot_be_told_is_not_odd() -> None:
    hidden: Place = ("helper-threads-only", "")
    assert odd(workers(GATHER, GATHER, hidden)) == []
    assert texts(workers(GATHER, GATHER, hidden))[-1] == "TP2 shows helper threads alone"


def test_ranks_of_two_servers_are_told_apart_by_name() -> None:
    processes = [
        diagnosed("TP0", *place, name=f"node-{node} Worker_TP0") for node, place in ((1, GATHER), (2, FALLBACK))
    ]
    assert texts(processes) == [
        "node-2 Worker_TP0 is in _fp8_mqa_logits_torch",
        "node-1 Worker_TP0 waits in all_gather",
    ]


def test_idle_ranks_are_in_no_place_and_functions_are_named_bare() -> None:
    named: Place = ("forward", "SparkLab.layer.<locals>.linear")
    assert texts(workers(IDLE, ("idle", "acquire_read"), named)) == ["TP2 is in linear", "TP0, TP1 are idle"]


def test_one_process_has_no_classes() -> None:
    assert rank_classes(workers(GATHER), waiting=frozenset({0})) == ()


@pytest.mark.parametrize(
    ("labels", "peers", "expected"),
    [
        (["TP2", "TP0", "TP1"], 4, "TP0 to TP2"),
        (["TP0", "TP1"], 4, "TP0, TP1"),
        (["TP0", "TP10", "TP9", "TP11"], 12, "TP0, TP9 to TP11"),
        (["DP0_TP0", "DP0_TP3"], 0, "DP0_TP0, DP0_TP3"),
        (["DP1_TP0", "DP1_TP1", "DP1_TP2", "DP0_TP2"], 0, "DP0_TP2, DP1_TP0 to DP1_TP2"),
        (["custom-b", "custom-a"], 0, "custom-a, custom-b"),
        ([f"TP{n}" for n in range(0, 20, 2)], 20, "TP0, TP2, TP4, TP6, TP8 and 5 more"),
        ([], 0, ""),
    ],
)
def test_names_of_ranks_are_folded(labels: list[str], peers: int, expected: str) -> None:
    everybody = [f"TP{n}" for n in range(peers)] or [f"DP{dp}_TP{tp}" for dp in range(2) for tp in range(4)]
    assert folded(labels, peers=everybody) == expected


def test_which_ranks_are_missing() -> None:
    assert missing(["TP0", "TP1", "TP3"]) == ("TP2",)
    assert missing(["TP0_DCP0", "TP3_DCP1"]) == ("TP1", "TP2")
    assert missing(["DP0_TP0", "DP0_TP1", "DP1_TP1"]) == ("DP1_TP0",)
    assert missing(["DP0_TP0", "DP7_TP3"]) == ("DP1", "DP2", "DP3", "DP4", "DP5", "DP6")
    assert missing(["TP0", "TP1"]) == missing([]) == missing(["odd name", "TP3"]) == missing(["TP99999"]) == ()
    assert telling_dimension(["DP0_TP0", "DP0_TP1"]) == "TP"
    assert telling_dimension(["DP0_TP0", "DP0_TP0"]) is None


SAME: dict[State, DiagnosisKind] = {
    "suspect": "torch-fallback",
    "idle": "idle",
    "reply-wait": "queue-wait",
    "collective-wait": "collective-wait",
    "gpu-wait": "gpu-wait",
    "jit-compile": "jit-compile",
    "forward": "forward",
}
FUNCTIONS: dict[State, tuple[str, ...]] = {
    "suspect": ("_fp8_mqa_logits_torch", "mqa_logits_torch_loop"),
    "idle": ("dequeue",),
    "reply-wait": ("get_response",),
    "collective-wait": ("all_gather", "all_reduce"),
    "gpu-wait": ("synchronize",),
    "jit-compile": ("compile", "make_ir"),
    "forward": ("linear", "rms_norm"),
}
LIVE = st.sampled_from([(state, function) for state, functions in FUNCTIONS.items() for function in functions])


@given(st.lists(LIVE, max_size=9))
def test_a_paste_and_a_live_run_call_the_same_ranks_odd(states: list[tuple[State, str]]) -> None:
    standings = [
        Standing(
            worker=ProcessInfo(pid=index, started_at_s=0, role="worker", title=f"VLLM::Worker_TP{index}"),
            state=state,
            function=function,
            share=1.0,
            samples=3,
        )
        for index, (state, function) in enumerate(states)
    ]
    processes = [diagnosed(f"TP{index}", SAME[state], function) for index, (state, function) in enumerate(states)]
    assert frozenset(odd(processes)) == odd_ranks(standings)


@st.composite
def sets(draw: st.DrawFn) -> list[ProcessDiagnosis]:
    places = draw(st.lists(st.sampled_from([GATHER, REDUCE, IDLE, FALLBACK, FORWARD]), min_size=2, max_size=10))
    ranks = draw(st.lists(st.integers(0, 30), min_size=len(places), max_size=len(places), unique=True))
    return workers(*places, labels=[f"TP{rank}" for rank in ranks])


@given(sets(), st.randoms(use_true_random=False))
def test_another_order_of_the_processes_is_the_same_answer(
    processes: list[ProcessDiagnosis], dice: random.Random
) -> None:
    shuffled = list(processes)
    dice.shuffle(shuffled)
    assert {shuffled[index].name for index in odd(shuffled)} == {processes[index].name for index in odd(processes)}
    assert {frozenset(one.members) for one in rank_classes(shuffled, waiting=waiting(shuffled))} == {
        frozenset(one.members) for one in rank_classes(processes, waiting=waiting(processes))
    }
    assert sorted(texts(shuffled)) == sorted(texts(processes))


@given(sets(), st.integers(1, 40))
def test_other_ranks_are_the_same_answer_with_other_names(processes: list[ProcessDiagnosis], more: int) -> None:
    renamed = [diagnosed(f"TP{int((one.rank or '')[2:]) + more}", one.kind, one.function) for one in processes]
    assert odd(renamed) == odd(processes)
    assert [one.kind for one in rank_classes(renamed, waiting=waiting(renamed))] == [
        one.kind for one in rank_classes(processes, waiting=waiting(processes))
    ]


@given(sets())
def test_every_process_is_in_one_class_and_the_odd_come_first(processes: list[ProcessDiagnosis]) -> None:
    classes = rank_classes(processes, waiting=waiting(processes))
    assert sorted(name for one in classes for name in one.members) == sorted(one.name for one in processes)
    strange = {processes[index].name for index in odd(processes)}
    if strange:
        assert set(classes[0].members) <= strange
