"""What `triage GOOD BAD` shows of two servers."""

from diagnosing_cases import frame, look, thread
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.diagnosing.comparing import MOST_DIFFERENCES, differences
from sparkdiag.evidence.diagnosis import Difference
from sparkdiag.evidence.dump import DumpFrame, ProcessDump
from sparkdiag.evidence.processes import Role

OUTER = (frame("worker_busy_loop", 973), frame("execute_model", 1412), frame("sparse_attn_indexer", 478))
FAST = (*OUTER, frame("fp8_fp4_mqa_topk_indices", 12))
SLOW = (*OUTER, frame("fp8_fp4_mqa_logits", 30), frame("_fp8_mqa_logits_torch", 40))
CORE = (frame("run_busy_loop", 1), frame("get_response", 387))


def worker(tp: int, frames: tuple[DumpFrame, ...], *, pid: int = 1) -> ProcessDump:
    return look(thread(*frames), role="worker", tp=tp, pid=pid + tp)


def process(role: Role, frames: tuple[DumpFrame, ...], *, pid: int = 90) -> ProcessDump:
    return look(thread(*frames), role=role, pid=pid)


GOOD = [process("engine_core", CORE), *[worker(tp, FAST) for tp in range(4)]]


def test_the_incident() -> None:
    bad = [process("engine_core", CORE, pid=50), *[worker(tp, SLOW, pid=60) for tp in range(4)]]
    parted, new = differences(GOOD, bad)
    assert parted == Difference(
        name="Worker_TP0, Worker_TP1, Worker_TP2, Worker_TP3 below sparse_attn_indexer (vllm/sparse_attn_indexer.py)",
        good="fp8_fp4_mqa_topk_indices (vllm/fp8_fp4_mqa_topk_indices.py)",
        bad="fp8_fp4_mqa_logits (vllm/fp8_fp4_mqa_logits.py) > _fp8_mqa_logits_torch (vllm/_fp8_mqa_logits_torch.py)",
    )
    assert new.name == "functions in the bad one alone"
    assert new.bad.startswith("_fp8_mqa_logits_torch (vllm/_fp8_mqa_logits_torch.py), fp8_fp4_mqa_logits")


def test_one_rank_that_differs_comes_before_a_process_that_is_gone() -> None:
    bad = [worker(0, FAST), worker(1, SLOW), worker(2, FAST)]
    names = [one.name for one in differences(GOOD, bad)]
    assert names[0].startswith("Worker_TP1 below")
    assert names[-2:] == ["Worker_TP3", "EngineCore"]
    gone = differences(GOOD, bad)[-1]
    assert (gone.good, gone.bad) == ("in get_response (vllm/get_response.py)", "not in the dumps")


def test_a_process_that_only_the_bad_one_has() -> None:
    (new,) = differences([worker(0, FAST)], [worker(0, FAST), process("api_server", FAST)])
    assert (new.name, new.good) == ("APIServer", "not in the dumps")


def test_a_place_that_the_good_one_was_seen_in_is_no_difference() -> None:
    good = [worker(0, FAST), worker(0, SLOW)]
    assert differences(good, [worker(0, SLOW)]) == ()
    assert differences([worker(0, FAST)], [worker(0, FAST), worker(0, FAST), worker(0, SLOW)])[0].name.startswith(
        "functions"
    )


def test_lines_and_folders_of_another_machine_are_no_difference() -> None:
    here = (frame("forward", 7, path="/opt/venv/lib/python3.12/site-packages/vllm/model.py"),)
    there = (frame("forward", 9, path="/usr/lib/python3/dist-packages/vllm/model.py"),)
    assert differences([worker(0, here)], [worker(0, there)]) == ()


def test_the_spin_of_a_wait_is_no_difference() -> None:
    one = (*OUTER[:1], frame("dequeue"), frame("acquire_read"), frame("sched_yield"))
    other = (*OUTER[:1], frame("dequeue"), frame("acquire_read"), frame("wait"), frame("poll"))
    assert differences([worker(0, one)], [worker(0, other)]) == ()


def test_processes_without_role_and_rank_are_compared_in_order() -> None:
    good, bad = look(thread(*FAST), pid=5), look(thread(*SLOW), pid=905)
    assert differences([good], [bad])[0].name.startswith("process no. 1 below sparse_attn_indexer")
    assert differences([good, good], [bad, bad]) == differences([good], [bad])


def test_nothing_to_compare() -> None:
    assert differences([], []) == ()
    assert [one.good for one in differences([], [worker(0, FAST)])] == ["not in the dumps"]
    assert differences([look()], [look()]) == ()


def test_of_many_differences_the_first_are_kept() -> None:
    bad = [worker(tp, (*OUTER, frame(f"strange_{tp}"))) for tp in range(40)]
    good = [worker(tp, FAST) for tp in range(40)]
    assert len(differences(good, bad)) == MOST_DIFFERENCES


STACKS = st.lists(st.builds(frame, st.sampled_from("abcdef"), st.integers(1, 3)), max_size=5)
SERVERS = st.lists(
    st.builds(
        lambda stack, tp, role: look(thread(*stack), role=role, tp=tp),
        STACKS,
        st.integers(0, 4),
        st.sampled_from(["worker", "engine_core", None]),
    ),
    max_size=6,
)


@given(SERVERS)
def test_a_server_does_not_differ_from_itself(looks: list[ProcessDump]) -> None:
    assert differences(looks, looks) == ()


@given(SERVERS, SERVERS)
def test_nothing_breaks_it(good: list[ProcessDump], bad: list[ProcessDump]) -> None:
    assert all(one.good and one.bad and one.good != one.bad for one in differences(good, bad))
