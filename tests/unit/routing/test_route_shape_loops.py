"""Loops: over chunks of which nothing is known but that there are some, and over what is known."""

import pytest

from tests.fakes.source_trees import ask
from tests.unit.routing.shape_case import check, told

BOTH = {"fast", "slow"}
HEAD = "\nfrom vllm.kernels import fast, slow, other\n"


def test_a_loop_over_chunks_with_continue() -> None:
    source = (
        HEAD
        + """
def entry(chunks, dcp):
    for chunk in chunks:
        if dcp <= 1 and fused(chunk):
            continue
        slow(chunk)

def fused(chunk):
    fast(chunk)
    return True
"""
    )
    chunks = {"chunks": "(1, 2)"}
    check(source, "fast", given={"dcp": "1"} | chunks)
    check(source, "slow", given={"dcp": "2"} | chunks)
    check(source, BOTH, given=chunks, open_={"dcp": ("1", "2")})


def test_a_loop_over_something_unknown_runs() -> None:
    # Chunks are there whenever there is a prefill; that none might be there is no way to no kernel worth telling,
    # but a loop that is left out would be a wrong answer.
    source = (
        HEAD
        + """
def entry(metadata, dcp):
    for chunk in metadata.prefill.chunks:
        if dcp <= 1:
            fast(chunk)
            continue
        slow(chunk)
"""
    )
    assert ask(source, {"dcp": "1"}).kernels == ("fast",)
    assert ask(source, {"dcp": "2"}).kernels == ("slow",)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for i in range(3):\n        if i == 2:\n            fast()", "fast"),
        ("for i in range(2):\n        if i == 2:\n            fast()\n    slow()", "slow"),
        ("for i in range(2):\n        fast() if i == 0 else slow()", BOTH),
        ("n = 0\n    for i in range(2):\n        n = n + 1\n    fast() if n == 2 else slow()", "fast"),
        ("n = 0\n    for i in range(2):\n        n += 1\n        if n == 2:\n            fast()", "fast"),
        ("for i in range(4):\n        break\n    else:\n        slow()\n    fast()", "fast"),
        ("for i in range(2):\n        pass\n    else:\n        fast()", "fast"),
        ("done = False\n    while not done:\n        fast()\n        done = True", "fast"),
        ("n = 3\n    while n > 1:\n        n -= 1\n    fast() if n == 1 else slow()", "fast"),
        ("while True:\n        fast()\n        break", "fast"),
        ("while False:\n        slow()\n    fast()", "fast"),
        ("first = True\n    for i in range(2):\n        fast() if first else slow()\n        first = False", BOTH),
        ("for i in ():\n        slow()\n    fast()", "fast"),
        ("for a, b in ((1, None), (2, None)):\n        fast() if b is None else slow()", "fast"),
        ("for i, c in enumerate((5, 6)):\n        if c - i != 5:\n            slow()\n    fast()", "fast"),
    ],
)
def test_loops_over_what_is_known(body: str, expected: str | set[str]) -> None:
    # A loop may be summed up rather than run through; then the answer is a superset that does not claim to be exact.
    source = HEAD + f"\ndef entry():\n    {body}\n"
    route = ask(source)
    wanted = {expected} if isinstance(expected, str) else expected
    assert wanted <= set(route.kernels), told(route)
    if route.exact:
        assert set(route.kernels) == wanted


def test_what_a_loop_changes_is_not_known_after_it() -> None:
    source = (
        HEAD
        + """
def entry(chunks):
    found = None
    for chunk in chunks:
        if found is not None:
            slow()
        found = chunk
    if found is None:
        other()
    else:
        fast()
"""
    )
    route = ask(source)
    assert {"slow", "fast"} <= set(route.kernels), told(route)
    assert not route.exact
