"""Stacks of several ranks, written at once: told apart where prefixes allow it, else refused, never mixed up."""

import random

import pytest

from sparkdiag.dumps.read import read_dumps
from tests.unit.dumps.paste_case import ENGINE, functions, mixed, prefixed, without_indent, worker

LEAVES = ("all_gather (vllm/distributed/parallel_state.py:167)", "_fp8_mqa_logits_torch (vllm/deep_gemm.py:40)")


def shuffled(texts: list[str], *, seed: int) -> str:
    """The lines in an order that keeps each text's own, as the kernel hands them through."""
    chance = random.Random(seed)
    rest = [text.rstrip("\n").split("\n") for text in texts]
    lines = []
    while any(rest):
        column = chance.choice([column for column in rest if column])
        lines += [column.pop(0) for _ in range(min(len(column), chance.randint(1, 3)))]
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    "prefix",
    [
        "(Worker_TP{rank} pid={pid}) ",
        "worker-{rank}  | ",
        "[rank{rank}]: ",
        "(VllmWorker TP{rank} pid={pid}) ERROR 07-12 10:00:00 [a.py:1] ",
    ],
)
def test_ranks_are_told_apart_by_their_prefixes(prefix: str, seed: int) -> None:
    texts = [
        prefixed(worker(rank, leaf=LEAVES[rank == 2]), prefix.format(rank=rank, pid=1000 + rank)) for rank in range(4)
    ]
    pasted = read_dumps(shuffled(texts, seed=seed), source="log")
    assert pasted.refused is None
    assert sorted(look.ranks.label for look in pasted.looks) == ["TP0", "TP1", "TP2", "TP3"]
    assert "lines of several processes were told apart by their prefixes" in pasted.notes
    for look in pasted.looks:
        (alone,) = read_dumps(worker(look.ranks.tp or 0, leaf=LEAVES[look.ranks.tp == 2]), source="alone").looks
        assert [functions(thread) for thread in look.threads] == [functions(thread) for thread in alone.threads]
        assert look.pid == alone.pid


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("indented", [True, False])
def test_without_prefixes_mixed_lines_are_refused(seed: int, indented: bool) -> None:
    texts = [worker(rank) for rank in range(3)]
    text = shuffled(texts, seed=seed)
    pasted = read_dumps(text if indented else without_indent(text), source="log")
    assert pasted.refused_kind == "garbled", text
    assert pasted.refused
    assert not pasted.looks


@pytest.mark.parametrize("seed", range(60))
def test_two_different_processes_mixed_are_refused(seed: int) -> None:
    pasted = read_dumps(shuffled([ENGINE, worker(0)], seed=seed), source="log")
    assert pasted.refused_kind == "garbled"


@pytest.mark.parametrize("seed", range(20))
def test_bytes_of_two_processes_in_a_line_are_refused(seed: int) -> None:
    chance = random.Random(seed)
    one, two = worker(0), worker(1)
    pieces = []
    while one or two:
        size = chance.randint(15, 60)
        pieces.append(one[:size])
        one = one[size:]
        size = chance.randint(15, 60)
        pieces.append(two[:size])
        two = two[size:]
    pasted = read_dumps("".join(pieces), source="log")
    assert pasted.refused_kind == "garbled", "".join(pieces)


def test_faulthandlers_of_two_ranks_in_each_other_are_refused() -> None:
    text = (
        "Thread 0x00007f0000000001 (most recent call first):\n"
        '  File "/a/buffer.py", line 88 in __init__\n  File "/a/moThread 0x00007f0000000002 (most recent call first):\n'
        '  File "/a/b  File "/a/c.py", line 1uffer.py", line 88 in __init__\n'
        '  File "/a/mode in forward\nl.py", line 3 in forward\n  File "/a/x.p  File "/a/y.py", liney", line 9\n'
    )
    assert read_dumps(text, source="log").refused_kind == "garbled"


def test_ranks_one_after_the_other_are_not_interleaved() -> None:
    pasted = read_dumps("\n".join(worker(rank) for rank in range(8)), source="loop")
    assert [look.ranks.label for look in pasted.looks] == [f"TP{rank}" for rank in range(8)]
    assert all(not look.notes for look in pasted.looks)


def test_the_same_process_again_is_a_later_look() -> None:
    pasted = read_dumps(worker(0) + worker(0, leaf=LEAVES[1]) + worker(1) + worker(0), source="loop")
    assert [look.pid for look in pasted.looks] == [1000, 1000, 1001, 1000]
    assert [look.threads[0].frames[0].name for look in pasted.looks][:2] == ["all_gather", "_fp8_mqa_logits_torch"]


@pytest.mark.parametrize("between", ["", "\n\n", "\nand a minute later\n\n", "```\n```\n"])
def test_again_without_its_header_it_is_one_too(between: str) -> None:
    body = "\n".join(worker(0).split("\n")[3:])
    pasted = read_dumps(f"```\n{body}{between}{body}```", source="loop")
    assert [look.pid for look in pasted.looks] == [1000, 1000]
    assert [len(look.threads) for look in pasted.looks] == [2, 2]


def test_a_second_main_thread_is_another_process() -> None:
    bodies = ["\n".join(worker(rank).split("\n")[3:]) for rank in range(2)]
    assert [look.pid for look in read_dumps("\n".join(bodies), source="x").looks] == [1000, 1001]


def test_stacks_without_any_header_stay_apart() -> None:
    one = "\n".join(worker(0).split("\n")[4:11])
    pasted = read_dumps(f"Rank 0:\n\n{one}\n\nRank 1:\n\n{one}\n", source="x")
    assert [(look.ranks.label, len(look.threads[0].frames)) for look in pasted.looks] == [("TP0", 7), ("TP1", 7)]
    assert all(not thread.whole for look in pasted.looks for thread in look.threads)


def test_other_logs_between_prefixed_lines_do_not_disturb() -> None:
    noise = '(APIServer pid=1) INFO:     10.0.0.1:1234 - "GET /health HTTP/1.1" 200 OK'
    lines = prefixed(worker(0), "(Worker_TP0 pid=1000) ").split("\n")
    text = "\n".join(line for pair in zip(lines, [noise] * len(lines), strict=True) for line in pair)
    (look,) = read_dumps(text, source="log").looks
    assert look.notes == ()
    assert [len(thread.frames) for thread in look.threads] == [7, 3]


def test_mixed_halves_of_a_text_leave_the_other_stacks() -> None:
    gdb = "\n\nThread 1 (LWP 77):\n#0  0x00007f00 in poll () from /lib/libc.so.6\n#1  0x00007f01 in main () at m.c:1\n"
    pasted = read_dumps(mixed([worker(0), worker(1)]) + gdb, source="x")
    assert pasted.refused is None
    assert [look.tool for look in pasted.looks] == ["gdb"]
    assert "a part was left out" in pasted.notes[0]
