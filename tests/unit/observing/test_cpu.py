"""Who had the CPU time, from two readings of /proc."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.observing.cpu import CpuReading, cpu_point, read_cpu

TICKS = st.integers(0, 10**6)


def put(proc: Path, pid: int | str, *, ticks: int, started: int = 5, number: int | None = None) -> None:
    (proc / str(pid)).mkdir(exist_ok=True)
    rest = " ".join(["S", *["0"] * 10, str(ticks), "0", "0", "0", *["0"] * 4, str(started), "0"])
    (proc / str(pid) / "stat").write_text(f"{number or pid} (a ) name) {rest}\n")


def machine(proc: Path, *, user: int, idle: int) -> None:
    (proc / "stat").write_text(f"cpu  {user} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1\n")


def test_the_time_of_server_sparkdiag_and_others(tmp_path: Path) -> None:
    machine(tmp_path, user=1000, idle=1000)
    put(tmp_path, "self", ticks=10, number=3)
    put(tmp_path, 7, ticks=100)
    before = read_cpu((7, 8), t_s=1, proc=tmp_path)
    machine(tmp_path, user=1180, idle=1020)
    put(tmp_path, "self", ticks=20, number=3)
    put(tmp_path, 7, ticks=150)
    put(tmp_path, 8, ticks=20)
    point = cpu_point(before, read_cpu((7, 8), t_s=3, proc=tmp_path), server_nice=10)
    assert point is not None
    assert (point.t_s, point.span_s, point.server_nice) == (3, 2, 10)
    assert point.server_share == 70 / 200
    assert point.others_share == 100 / 200


def test_a_reused_pid_counts_from_its_own_start(tmp_path: Path) -> None:
    machine(tmp_path, user=0, idle=0)
    put(tmp_path, "self", ticks=0, number=3)
    put(tmp_path, 7, ticks=5000, started=5)
    before = read_cpu((7,), t_s=1, proc=tmp_path)
    machine(tmp_path, user=100, idle=0)
    put(tmp_path, 7, ticks=30, started=9)
    point = cpu_point(before, read_cpu((7,), t_s=2, proc=tmp_path), server_nice=0)
    assert point is not None and point.server_share == 0.3


READINGS = st.builds(
    CpuReading,
    t_s=st.floats(0, 100),
    total=TICKS,
    idle=TICKS,
    own=TICKS,
    server=st.dictionaries(st.tuples(st.integers(1, 4), st.integers(1, 3)), TICKS),
)


@given(before=READINGS, after=READINGS)
def test_shares_are_shares_whatever_the_counters_say(before: CpuReading, after: CpuReading) -> None:
    point = cpu_point(before, after, server_nice=0)
    if after.total <= before.total or after.t_s <= before.t_s:
        assert point is None
    else:
        assert point is not None
        assert 0 <= point.server_share <= 1
        assert 0 <= point.others_share <= 1
