"""What the child said, as data: whatever it says, the answer is harmless and no more than was seen."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.executing.answer import Answer, Event, reached_by
from sparkdiag.executing.confined import LONGEST_LINE, Conversation
from tests.fakes.source_trees import scenario_with

KERNELS = frozenset({"fast", "slow"})
SUPPORT = ("ops.*", "*top_k*")


def event(kind: str, name: str, *stack: str, slot: str = "", at: str = "vllm/dispatch.py") -> Event:
    return Event(kind=kind, name=name, stack=stack, slot=slot, at=(at, 1))


@pytest.mark.parametrize(
    ("events", "reached"),
    [
        ([event("triton", "_kernel", "entry", "slow", "fast")], ("slow",)),
        ([event("triton", "_kernel", "entry", "launcher")], ("launcher",)),
        ([event("torch", "matmul", "entry", "own")], ("own",)),
        ([event("op", "torch.ops._C.logits", "entry")], ("torch.ops._C.logits",)),
        ([event("external", "deep_gemm.logits", "entry", slot="_logits_impl")], ("_logits_impl",)),
        ([event("external", "flash.run", "entry")], ("flash.run",)),
        ([event("op", "torch.ops._C.gather", "entry", "gather", at="vllm/_custom_ops.py")], ()),
        ([event("op", "torch.ops._C.top_k_per_row", "entry")], ()),
        ([event("work", "empty", "entry", "slow")], ("slow",)),
        ([event("work", "empty", "entry")], ()),
        ([event("work", "empty", "entry", "slow"), event("declined", "slow", "entry")], ()),
        ([event("torch", "matmul", "entry", "slow"), event("declined", "slow", "entry")], ("slow",)),
        ([event("torch", "mm", "entry", "fast"), event("torch", "mm", "entry", "slow")], ("fast", "slow")),
    ],
)
def test_the_outermost_kernel_counts_and_support_does_not(events: list[Event], reached: tuple[str, ...]) -> None:
    assert reached_by(tuple(events), kernels=KERNELS, support=SUPPORT) == reached


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
CALL = st.fixed_dictionaries(
    {"job": st.integers(0, 1) | JSON, "function": st.just("entry") | JSON, "clean": st.none() | st.booleans() | JSON},
    optional={"events": JSON, "raised": JSON, "unknown": JSON, "assumed": JSON, "at": JSON, "began": st.booleans()},
)


@given(st.lists(st.fixed_dictionaries({}, optional={"call": CALL | JSON, "ready": JSON, "problem": JSON}), max_size=6))
def test_nothing_that_is_said_breaks_the_answer(said: list[dict[str, Any]]) -> None:
    answer = Answer()
    for one in said:
        answer.hear(one)
    for clean in (None, True, False):
        call = answer.outcome((0, "entry", clean), "it was killed", scenario=scenario_with())
        if call is not None:
            for text in (call.raised or "", call.because, *call.reached):
                assert text.isprintable()
                assert len(text) <= 600


def test_a_call_that_began_and_never_ended_says_why() -> None:
    answer = Answer()
    answer.hear({"call": {"job": 0, "function": "entry", "clean": None, "began": True}})
    call = answer.outcome((0, "entry", None), "it ran past 2 s and was killed", scenario=scenario_with())
    assert call is not None
    assert call.raised == "it ran past 2 s and was killed"
    assert answer.outcome((0, "other", None), "", scenario=scenario_with()) is None


def talk() -> tuple[Conversation, list[Any], list[str]]:
    heard: list[Any] = []
    asked: list[str] = []

    def read(path: str) -> str | None:
        asked.append(path)
        return "text"

    return Conversation(nonce="n0", read=read, heard=heard.append), heard, asked


@pytest.mark.parametrize(
    "line", [b"n1 {}", b"{}", b"n0 []", b"n0 nothing", b"n0 " + b"[" * 100_000, b"", b"n0", b"\xff\xfe {}"]
)
def test_what_is_no_answer_ends_the_talk(line: bytes) -> None:
    conversation, heard, _ = talk()
    conversation.take(line + b'\nn0 {"call": {}}\n')
    assert conversation.wrong
    assert heard == []


@pytest.mark.parametrize("path", ["/etc/passwd.py", "../x.py", "a/../../x.py", "vllm/x.so", "", "a\n.py", 7])
def test_only_paths_of_sources_are_read(path: object) -> None:
    import json

    conversation, _, asked = talk()
    conversation.take(b"n0 " + json.dumps({"need": path}).encode() + b"\n")
    assert asked == []


def test_a_source_that_is_asked_for_is_given_whole() -> None:
    conversation, _, asked = talk()
    conversation.take(b'n0 {"need": "vllm/')
    conversation.take(b'utils/deep_gemm.py"}\n')
    assert asked == ["vllm/utils/deep_gemm.py"]
    assert conversation.outgoing == b'{"text": "text"}\n'


def test_a_line_without_an_end_is_given_up() -> None:
    conversation, _, _ = talk()
    conversation.take(b"x" * (LONGEST_LINE + 1))
    assert conversation.wrong == "it said more than an answer holds"
