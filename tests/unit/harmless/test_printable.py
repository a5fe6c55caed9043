import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkdiag.harmless.excerpt import excerpt, one_line
from sparkdiag.harmless.printable import escaped, hidden_characters, printable, without_sequences

HOSTILE = st.lists(
    st.one_of(
        st.text(max_size=6),
        st.sampled_from(
            [
                "\x1b[31m", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x9b2J", "\x00", "\x7f", "\x85", "\r", "\b",
                "\u202e", "\u2066", "\u200b", "\u200d", "\ufeff", "\u2028", "\xad", "\ud800", "\udfff", "\ue000",
                "\U000e0041", "\u3164", "\u2800", "\u034f", "\ufe0f", "words", " ", "\n", "\t",
            ]
        ),
    ),
    max_size=12,
).map("".join)  # fmt: skip


@given(HOSTILE, st.booleans())
def test_nothing_is_left_that_steers_or_hides(text: str, newlines: bool) -> None:
    shown = printable(text, newlines=newlines)
    for char in shown.replace("\n", "") if newlines else shown:
        assert unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
        assert char == " " or unicodedata.category(char) != "Zs"
    assert hidden_characters(shown, allowed="\n") == ()
    shown.encode()


@given(HOSTILE, st.booleans())
def test_twice_is_once(text: str, newlines: bool) -> None:
    once = printable(text, newlines=newlines)
    assert printable(once, newlines=newlines) == once
    assert escaped(escaped(text)) == escaped(text)


@given(HOSTILE, st.integers(min_value=1, max_value=30))
def test_a_limit_holds(text: str, limit: int) -> None:
    assert len(printable(text, limit=limit)) <= limit
    assert len(excerpt(text, limit=limit)) <= limit
    assert len(one_line(text, limit=limit)) <= limit
    assert "\n" not in one_line(text, limit=limit)


@pytest.mark.parametrize("length", range(1, 60, 7))
def test_a_secret_is_gone_before_the_text_is_cut(length: int) -> None:
    text = "x" * length + " https://me:Qx7wPz4Rm8Kt@host.test/ and more that is cut away"
    for limit in range(length, length + 40):
        assert "Qx7" not in excerpt(text, limit=limit) + one_line(text, limit=limit)


@given(st.text(st.characters(categories=["L", "N", "P", "S"], exclude_characters="\u034f\u2800\u3164")))
def test_what_can_be_read_stays(text: str) -> None:
    assert hidden_characters(text) or printable(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[31mred", "a\\x1b[31mred"),
        ("a\u202eevil", "a\\u202eevil"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("lone\ud800", "lone\\ud800"),
        ("c1\x9b2J", "c1\\x9b2J"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("filler\u3164", "filler\\u3164"),
        ("one\ntwo\tthree\xa0four", "one two three four"),
        ("back\rover", "back\\rover"),
        ("größer 日本語 Привет", "größer 日本語 Привет"),
    ],
)
def test_what_hides_is_written_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_lines_stay_lines_where_asked() -> None:
    assert printable("one\r\ntwo\n", newlines=True) == "one\ntwo\n"


def test_whole_sequences_of_a_terminal_go() -> None:
    assert without_sequences("\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x1b\\\x9b2J.") == "red link."


def test_an_unfinished_sequence_takes_no_other_line_with_it() -> None:
    assert without_sequences("\x1b]0;title\nnext") == "\nnext"
