"""Whose vLLM processes are on the machine."""

from typing import Any

from sparkdiag.doctor.leftovers import Resident, Segment, judge_leftovers, orphaned


def resident(pid: int, role: str, parent_pid: int, **more: Any) -> Resident:
    values = {"pid": pid, "role": role, "title": f"VLLM::{role}", "parent_pid": parent_pid}
    return Resident.model_validate(values | more)


def test_nothing_is_well() -> None:
    (found,) = judge_leftovers((), ())
    assert (found.status, found.seen) == ("ok", "no vLLM server, no orphan segments")


def test_an_engine_whose_parent_is_init_is_left_over_with_all_below_it() -> None:
    residents = [resident(10, "engine_core", 1), resident(11, "worker", 10), resident(12, "worker", 11)]
    (found,) = judge_leftovers(residents, ())
    assert found.status == "warn"
    assert "3 processes of a dead vLLM server: 10 VLLM::engine_core, 11" in found.seen
    assert found.next_step == "look, then end them yourself: ps -fp 10,11,12; kill 10 11 12"


def test_a_user_manager_takes_orphans_in_too() -> None:
    assert orphaned([resident(10, "worker", 900, parent_name="systemd")]) == {10}
    assert orphaned([resident(10, "worker", 900, parent_name="python3")]) == frozenset()


def test_an_api_server_below_init_runs_and_is_left_alone() -> None:
    (found,) = judge_leftovers([resident(10, "api_server", 1), resident(11, "engine_core", 10)], ())
    assert found.status == "warn"
    assert "a vLLM server runs here" in found.seen
    assert "sparkdiag does not touch it" in (found.next_step or "")


def test_the_server_of_another_sparkdiag_run_is_no_fault() -> None:
    (found,) = judge_leftovers([resident(10, "api_server", 9, ours=True), resident(11, "worker", 1, ours=True)], ())
    assert (found.status, found.seen) == ("ok", "only a sparkdiag run's server (2 processes), no orphan segments")


def test_many_are_counted_and_not_all_listed() -> None:
    residents = [resident(pid, "worker", 1) for pid in range(10, 30)]
    segments = [Segment(name=f"psm_{number}", bytes=2**20) for number in range(9)]
    dead, shm = judge_leftovers(residents, segments)
    assert "and 14 more" in dead.seen
    assert "9 segment(s) no visible process holds, 9 MiB" in shm.seen
    assert (shm.next_step or "").count("/psm_") == 6
