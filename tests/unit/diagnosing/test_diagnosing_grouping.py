"""Which looks are at the same process, and what several texts are to each other."""

from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.diagnosing.grouping import by_process, names_of, over_time
from sparkdiag.diagnosing.order import at_moments, order_of_texts
from sparkdiag.evidence.dump import DumpFrame, DumpThread, Pasted, ProcessDump
from sparkdiag.evidence.processes import Ranks


def look(pid: int | None = None, *, tp: int | None = None, host: str | None = None) -> ProcessDump:
    thread = DumpThread(name="MainThread", frames=(DumpFrame(function="f"),))
    role = None if tp is None else "worker"
    return ProcessDump(pid=pid, role=role, ranks=Ranks(tp=tp), host=host, threads=(thread,))


def text(*looks: ProcessDump) -> Pasted:
    return Pasted(source="x", looks=looks)


def test_the_same_pid_is_the_same_process_later() -> None:
    assert [len(group) for group in by_process([look(1), look(2), look(1)])] == [2, 1]


def test_the_same_pid_on_another_host_is_another_process() -> None:
    assert len(by_process([look(1, host="a"), look(1, host="b")])) == 2


def test_without_a_pid_the_rank_tells_and_without_either_nothing_is_joined() -> None:
    assert len(by_process([look(tp=0), look(tp=1), look(tp=0)])) == 2
    assert len(by_process([look(), look()])) == 2


@given(st.lists(st.tuples(st.integers(1, 4) | st.none(), st.integers(0, 3) | st.none()), max_size=12))
def test_every_look_is_in_one_group_and_every_name_is_different(drawn: list[tuple[int | None, int | None]]) -> None:
    looks = [look(pid, tp=tp) for pid, tp in drawn]
    groups = by_process(looks)
    assert sorted(id(one) for group in groups for one in group) == sorted(id(one) for one in looks)
    assert len(set(names_of(groups))) == len(groups)


def test_two_texts_of_the_same_pids_are_two_moments() -> None:
    assert order_of_texts([text(look(1), look(2)), text(look(2))]) == "over-time"


def test_two_texts_of_the_same_ranks_under_other_pids_are_a_good_and_a_bad_server() -> None:
    assert order_of_texts([text(look(1, tp=0), look(2, tp=1)), text(look(8, tp=0), look(9, tp=1))]) == "compare"


def test_texts_of_other_ranks_are_one_server() -> None:
    assert order_of_texts([text(look(1, tp=0)), text(look(2, tp=1))]) == "together"


def test_three_texts_are_never_taken_for_a_comparison() -> None:
    assert order_of_texts([text(look(1, tp=0)), text(look(2, tp=0)), text(look(3, tp=0))]) == "together"


def test_later_texts_without_pids_are_matched_by_their_place() -> None:
    groups = over_time([[look(), look()], [look(), look()], [look()]])
    assert [len(group) for group in groups] == [3, 2]


def test_later_texts_of_a_server_that_was_started_again_are_matched_by_their_place() -> None:
    assert [len(group) for group in over_time([[look(1)], [look(2)]])] == [2]


def test_seconds_apart_count_only_where_the_dump_names_no_time() -> None:
    timed = look(1).model_copy(update={"at_s": 3.0})
    made = at_moments([text(look(1)), text(look(1)), text(timed)], apart_s=30)
    assert [one.looks[0].at_s for one in made] == [0.0, 30.0, 3.0]
