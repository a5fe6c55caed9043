"""Scores: what is retrieved, wrong, cut or degenerate, and that healthy text is never called degenerate."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkdiag.driving.haystack import derivation, haystack_lines
from sparkdiag.driving.outcome import fold
from sparkdiag.driving.repetition import repetition
from sparkdiag.driving.score import score_answer
from sparkdiag.evidence.client import AnswerScored, ClientEvent, PromptSent, ResponseEnd, TokenChunk

EXPECTED = "1234567"

NEEDLES = [
    (" 1234567.\nThe value of key", "length", "retrieved"),
    (" 1,234,567.", "stop", "retrieved"),
    (" 1234567" + ".\nthe end" * 40, "length", "retrieved"),
    (" 7654321. Or rather 1234567.", "stop", "wrong"),
    (" 7654321.", "length", "wrong"),
    (" 12345678.", "stop", "wrong"),
    (" unknown.", "stop", "wrong"),
    ("", "stop", "wrong"),
    (" 123456", "length", "truncated"),
    (" let me see", None, "truncated"),
    ("", "length", "truncated"),
    (" 1" * 64, "length", "degenerate"),
    ("a" * 64, "length", "degenerate"),
    (" 7654321" * 12, "length", "degenerate"),
]


@pytest.mark.parametrize(("text", "reason", "score"), NEEDLES)
def test_needle_answers(text: str, reason: str | None, score: str) -> None:
    got, because = score_answer(text, expected=EXPECTED, kind="needle", finish_reason=reason)
    assert got == score, because
    assert because and because.isprintable()


REASONING = [
    (derivation(3, "nonce").line, "stop", "retrieved"),
    (derivation(3, "nonce").line[:-12], "length", "truncated"),
    (derivation(3, "nonce").line.replace("answer", "answer 7654321, no:")[:-10] + "9999999.", "stop", "wrong"),
    ("step 1 gives 37; " * 60, "length", "degenerate"),
    (" answer 1234567." + " wait, let me check that again." * 30, "length", "degenerate"),
    ("no idea", "stop", "wrong"),
]


@pytest.mark.parametrize(("text", "reason", "score"), REASONING)
def test_reasoning_answers(text: str, reason: str | None, score: str) -> None:
    expected = derivation(3, "nonce").expected
    got, because = score_answer(text, expected=expected, kind="reasoning", finish_reason=reason)
    assert got == score, because


@given(seed=st.integers(0, 10_000), lines=st.integers(0, 300))
@settings(max_examples=60, deadline=None)
def test_varied_text_is_never_degenerate(seed: int, lines: int) -> None:
    source = haystack_lines(seed)
    assert repetition("".join(next(source) for _ in range(lines))) is None


@given(seed=st.integers(0, 10_000), rows=st.integers(1, 120))
@settings(max_examples=60, deadline=None)
def test_lines_of_one_shape_with_other_contents_are_healthy(seed: int, rows: int) -> None:
    draw = random.Random(seed)
    text = "".join(
        f"The value of key K{draw.randrange(10**6):06} is {draw.randrange(10**7):07}.\n" for _ in range(rows)
    )
    assert repetition(text) is None
    assert repetition(derivation(seed, "nonce").line) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no no no no, that is not it",
        "ha ha ha ha ha",
        "A title\n" + "-" * 30 + "\nand then a paragraph about it that goes on for a while and comes to an end here.",
        "the cat sat on the mat and the dog sat on the log and the cat sat on the dog and that was that",
        "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20",
    ],
)
def test_repeated_words_alone_are_healthy(text: str) -> None:
    assert repetition(text) is None


@given(
    unit=st.text(st.characters(min_codepoint=32, max_codepoint=0x24F), min_size=1, max_size=200).filter(str.strip),
    start=st.integers(0, 1000),
)
@settings(max_examples=100, deadline=None)
def test_any_unit_over_and_over_is_degenerate_whatever_came_before(unit: str, start: int) -> None:
    healthy = "".join(next(haystack_lines(start + line)) for line in range(5))
    looping = unit * (1200 // len(unit) + 8)
    assert repetition(looping) is not None
    assert repetition(healthy + looping) is not None


def test_a_loop_with_a_counter_in_it_is_degenerate() -> None:
    text = "".join(f"Wait, I should check this once more before I answer, attempt {n}. " for n in range(60))
    assert repetition(text) is not None


def test_half_a_megabyte_is_scored_at_once() -> None:
    assert repetition("ab" * 250_000) is not None


@given(
    text=st.text(max_size=300),
    reason=st.sampled_from(["stop", "length", None, "abort"]),
    kind=st.sampled_from(["needle", "reasoning"]),
)
@settings(deadline=None)
def test_every_text_has_exactly_one_score_and_a_safe_reason(text: str, reason: str | None, kind: str) -> None:
    score, because = score_answer(text, expected=EXPECTED, kind=kind, finish_reason=reason)
    assert score in ("retrieved", "wrong", "truncated", "degenerate")
    assert because.isprintable()
    assert (score == "retrieved") <= ("1234567" in text.replace(",", "").replace("_", ""))


def sent(*, control: bool = False) -> PromptSent:
    return PromptSent(t_s=1, kind="needle", tokens=100, depth=0.5, seed=0, nonce="nonce", expected=EXPECTED,
                      max_output_tokens=64, control=control)  # fmt: skip


def ended(how: str = "finished", reason: str | None = "stop") -> ResponseEnd:
    return ResponseEnd(t_s=9, how=how, finish_reason=reason)


CHUNKS = [TokenChunk(t_s=3, text=" 123"), TokenChunk(t_s=4, text="4567.")]


@pytest.mark.parametrize(
    ("events", "score"),
    [
        ([], None),
        ([sent()], None),
        ([sent(), *CHUNKS], None),
        ([sent(), *CHUNKS, ended()], "retrieved"),
        ([sent(), CHUNKS[0], ended("cancelled", None)], None),
        ([sent(), CHUNKS[0], ended("error", None)], "truncated"),
        ([sent(), ended("error", None)], None),
        ([sent(), ended()], "wrong"),
        ([sent(), *CHUNKS, ended(), sent(control=True), ended()], "retrieved"),
        ([sent(), *CHUNKS, ended(), AnswerScored(t_s=10, score="wrong")], "wrong"),
    ],
)
def test_fold_scores_what_ended_by_itself(events: list[ClientEvent], score: str | None) -> None:
    assert fold(events).score == score


def test_fold_tells_first_and_last_token() -> None:
    outcome = fold([sent(), *CHUNKS])
    assert (outcome.first_token_s, outcome.last_token_s, outcome.text, outcome.time_to_first_token_s) == (
        3,
        4,
        " 1234567.",
        2,
    )
    assert outcome.in_flight
