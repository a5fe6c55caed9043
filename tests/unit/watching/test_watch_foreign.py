"""What is known of a watched server's end, from outside."""

import os
import time

import psutil

from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.watching.foreign import ForeignServer


def info(pid: int, started_at_s: float) -> ProcessInfo:
    return ProcessInfo(pid=pid, started_at_s=started_at_s, role="worker", title="VLLM::Worker")


def test_a_process_that_ended_while_others_live_is_named() -> None:
    alive = info(os.getpid(), psutil.Process().create_time())
    gone = info(os.getpid(), 1.0)  # the number of another process, long ago
    server = ForeignServer((alive, gone), clock=time.monotonic)
    assert server.poll() is None
    assert server.ended_parts() == (f"Worker {os.getpid()}",)
    assert ForeignServer((alive,), clock=time.monotonic).ended_parts() == ()


def test_where_all_of_it_is_gone_that_is_its_end_and_no_part() -> None:
    server = ForeignServer((info(os.getpid(), 1.0),), clock=lambda: 7.0)
    assert server.ended_parts() == ()
    ended = server.poll()
    assert ended is not None and ended.at_s == 7.0
