"""What the shell is offered; the protocol itself is tested with a real child."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.cli.completion import MOST_OFFERED, PLAIN_WORD, divisors, offered


@given(st.lists(st.text(max_size=20), max_size=20), st.text(max_size=5))
def test_only_plain_words_that_begin_as_typed_are_offered(words: list[str], typed: str) -> None:
    found = offered(words, typed)
    assert all(word.startswith(typed) and PLAIN_WORD.fullmatch(word) for word in found)
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    "name", ["a b", "$(id)", "`id`", "a'b", 'a"b', "a\\b", "a\nb", "a;b", "\x1b[2J", "~x", "a*", ""]
)
def test_what_a_shell_would_read_as_more_than_a_word_is_not_offered(name: str) -> None:
    assert offered([name, "lab"], "") == ["lab"]


def test_not_more_than_a_screen_can_take() -> None:
    assert len(offered((str(number) for number in range(100_000)), "")) == MOST_OFFERED


@pytest.mark.parametrize(
    ("size", "found"), [(1, [1]), (8, [1, 2, 4, 8]), (6, [1, 2, 3, 6]), (0, []), (-2, []), (10**9, [])]
)
def test_dcp_sizes_divide_tp(size: int, found: list[int]) -> None:
    assert divisors(size) == found
