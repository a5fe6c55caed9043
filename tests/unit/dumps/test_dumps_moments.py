"""One time stamp above the dumps of several processes."""

from sparkdiag.dumps.read import read_dumps

DUMP = """Process {pid}: VLLM::Worker_TP{rank}
Python v3.12.3 (/usr/bin/python3.12)

Thread {pid} (active): "MainThread"
    all_gather (torch/distributed/distributed_c10d.py:3900)
    execute_model (vllm/v1/worker/gpu_worker.py:600)
"""
BOTH = DUMP.format(pid=1, rank=0) + DUMP.format(pid=2, rank=1)


def moments(text: str) -> list[tuple[int | None, float | None]]:
    looks = read_dumps(text, source="x").looks
    first_s = looks[0].at_s or 0.0
    return [(look.pid, None if look.at_s is None else look.at_s - first_s) for look in looks]


def test_a_date_line_counts_for_every_process_until_the_next() -> None:
    text = f"Mon Nov 30 20:00:00 UTC 2026\n{BOTH}Mon Nov 30 20:02:00 UTC 2026\n{BOTH}"
    assert moments(text) == [(1, 0), (2, 0), (1, 120), (2, 120)]


def test_the_same_process_again_under_one_date_line_is_at_an_unknown_moment() -> None:
    text = f"Mon Nov 30 20:00:00 UTC 2026\n{BOTH}{BOTH}"
    assert moments(text) == [(1, 0), (2, 0), (1, None), (2, None)]
