"""``ray stack``: the line of ``ps`` above each of py-spy's texts."""

from sparkdiag.dumps.formats import ray

TEXT = """\
Stack dump for ubuntu     2787  5.3  0.0 4421976 332512 pts/0  Sl   03:50   0:15 ray::RayWorkerWrapper.execute_method
Process 2787: ray::RayWorkerWrapper.execute_method
Python v3.10.12 (/usr/bin/python3.10)

Thread 2787 (active): "MainThread"
    synchronize (torch/cuda/streams.py:97)
    main_loop (ray/_private/worker.py:935)
    <module> (ray/_private/workers/default_worker.py:297)

Stack dump for ubuntu     2788  5.2  0.0 4422028 332428 pts/0  Sl   Jan19   0:15 ray_worker --token hf_abcdefghij01234
Thread 0x7FE1FA478700 (active)
\t _periodically_flush_profile_events (ray/profiling.py:97)
\t run (threading.py:864)
Stack dump for abcdef    4165 22.9 12.0 23551868 7893680 pts/0 Sl  Jan19 194:40 ray_RolloutWorker:__ray_terminate__()
error: Found argument '--pid' which wasn't expected
Stack dump for abcdef 4166 ray::IDLE
Thread 0x7FE1FA478700 (idle)
    main_loop (ray/worker.py:382)
"""


def test_each_process_with_its_title_and_those_that_py_spy_did_not_read_in_a_note() -> None:
    first, second, third = ray.read(TEXT.split("\n"))
    assert {first.tool, second.tool, third.tool} == {"ray"}
    assert (first.pid, first.title) == (2787, "ray::RayWorkerWrapper.execute_method")
    assert second.pid == 2788
    assert second.title is not None
    assert second.title.startswith("ray_worker --token")
    assert "hf_abc" not in second.title
    assert (third.pid, third.title) == (4166, "ray::IDLE")
    assert [frame.function for frame in second.threads[0].frames] == ["_periodically_flush_profile_events", "run"]
    assert any("could not read 1 process" in note for note in first.notes)


def test_stacks_above_the_first_header_stay() -> None:
    looks = ray.read(["Thread 5 (idle)", "    f (a.py:1)", *TEXT.split("\n")])
    assert [look.pid for look in looks] == [None, 2787, 2788, 4166]


def test_the_header_is_claimed_and_words_are_not() -> None:
    assert ray.claims(TEXT.split("\n")) > 0.95
    assert ray.claims(["Stack dump for the engine below"]) == 0.0
