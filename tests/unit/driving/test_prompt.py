"""The needle prompt: its exact length for tokenizers of every temper, its shape, its determinism."""

import math
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkdiag.driving.prompt import MAX_COUNTS, build_prompt
from sparkdiag.errors import UsageError
from sparkdiag.scenario.model import PromptSettings

Counter = Callable[[str], int]


def by_bytes(text: str) -> int:
    return len(text.encode()) + 1  # with a beginning-of-sequence token


def by_words(text: str) -> int:
    return len(re.findall(r"\s?\w+|[^\w\s]|\s", text))


def by_pieces(text: str) -> int:
    """BPE-like: common words whole, digits in threes, the rest in pairs of letters; counts do not add up."""
    return sum(
        math.ceil(len(digits) / 3) if digits else math.ceil(len(word.strip()) / 7) if len(word) < 9 else len(word) // 3
        for digits, word in re.findall(r"(\d+)|( ?[^\W\d]+|[^\w\s]|\s)", text)
    )


def by_quarters(text: str) -> int:
    return math.ceil(len(text) / 4)


COUNTERS = {"bytes": by_bytes, "words": by_words, "pieces": by_pieces, "quarters": by_quarters}


def prompt(
    tokens: int, count: Counter, *, kind: str = "needle", seed: int = 0, depth: float = 0.35, nonce: str = "n0nce-1"
):
    asked = PromptSettings(kind=kind, tokens=tokens, seed=seed, depth=depth)
    return build_prompt(asked, nonce=nonce, count_tokens=count)


@pytest.mark.parametrize("name", COUNTERS)
@settings(max_examples=25, deadline=None)
@given(
    tokens=st.integers(700, 20_000),
    seed=st.integers(0, 50),
    depth=st.floats(0, 1),
    kind=st.sampled_from(["needle", "reasoning"]),
)
def test_the_length_is_exact_within_the_allowed_counts(
    name: str, tokens: int, seed: int, depth: float, kind: str
) -> None:
    calls = []

    def count(text: str) -> int:
        calls.append(1)
        return COUNTERS[name](text)

    built = prompt(tokens, count, seed=seed, depth=depth, kind=kind)
    assert built.tokens == tokens == COUNTERS[name](built.text)
    assert built.exact
    assert len(calls) <= MAX_COUNTS + 1


def test_every_small_length_that_holds_the_needle_is_exact_by_bytes() -> None:
    for tokens in range(130, 420):
        assert prompt(tokens, by_bytes).tokens == tokens


def test_a_prompt_too_short_for_its_needle_says_what_would_do() -> None:
    with pytest.raises(UsageError, match="they alone are") as caught:
        prompt(64, by_bytes)
    assert "--prompt-tokens" in (caught.value.remedy or "")


def test_the_longest_prompt_of_the_incident_needs_few_counts() -> None:
    built = prompt(468_540, by_bytes)
    assert (built.tokens, built.exact) == (468_540, True)
    assert built.counts <= 6


@given(seed=st.integers(0, 10_000), depth=st.floats(0, 1), nonce=st.from_regex(r"[A-Za-z0-9-]{4,64}", fullmatch=True))
@settings(max_examples=25, deadline=None)
def test_a_needle_prompt_has_one_line_that_answers_its_question(seed: int, depth: float, nonce: str) -> None:
    built = prompt(3000, by_bytes, seed=seed, depth=depth, nonce=nonce)
    assert built.text.startswith(nonce)
    assert built.text.endswith(f"\n{built.question}")
    assert re.fullmatch(r"The value of key K[A-Z0-9]{6} is", built.question)
    lines = built.text.split("\n")[:-1]
    answers = [line for line in lines if line.startswith(built.question)]
    assert answers == [f"{built.question} {built.expected}."]
    values = re.findall(r"^The value of key (K\w{6}) is (\d{7})\.$", built.text, re.MULTILINE)
    assert len({key for key, _ in values}) == len({value for _, value in values}) == len(values) == 5


@pytest.mark.parametrize("depth", [0.0, 0.25, 0.5, 1.0])
def test_the_needle_lies_at_its_depth(depth: float) -> None:
    built = prompt(60_000, by_bytes, depth=depth)
    assert built.text.index(f"{built.question} {built.expected}") / len(built.text) == pytest.approx(depth, abs=0.02)


def test_a_reasoning_prompt_hides_one_derivation_whose_steps_all_differ() -> None:
    built = prompt(20_000, by_bytes, kind="reasoning")
    assert built.text.count(built.question) == 2
    (line,) = [line for line in built.text.split("\n") if line.startswith(built.question + " ")]
    assert line.endswith(f"; answer {built.expected}.")
    assert 300 <= len(line) <= 700
    steps = re.findall(r"step \d+ gives \d+", line)
    assert len(set(steps)) == len(steps) >= 10


def test_the_same_settings_and_nonce_give_the_same_text_and_a_new_nonce_another_answer() -> None:
    first, again, other = prompt(5000, by_bytes), prompt(5000, by_bytes), prompt(5000, by_bytes, nonce="n0nce-2")
    assert first == again
    assert first.text[:7] != other.text[:7]
    assert first.expected != other.expected
    assert first.tokens == other.tokens


def test_where_no_filler_is_exact_the_nearest_length_is_told() -> None:
    def in_fives(text: str) -> int:
        return 5 * (len(text) // 20)

    built = prompt(5003, in_fives)
    assert not built.exact
    assert built.tokens == in_fives(built.text)
    assert abs(built.tokens - 5003) <= 5
    assert built.counts <= MAX_COUNTS + 1


def test_a_counter_that_always_says_the_same_ends() -> None:
    assert prompt(5000, lambda text: 100).counts <= MAX_COUNTS + 1


@pytest.mark.parametrize("nonce", ["", "abc", "has blank", "x" * 65, "new\nline", "\x1b[31mred"])
def test_a_nonce_that_could_do_more_than_be_unique_is_refused(nonce: str) -> None:
    with pytest.raises(ValueError, match="nonce"):
        prompt(5000, by_bytes, nonce=nonce)
