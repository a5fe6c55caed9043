import re

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from sparkdiag.harmless.printable import printable
from sparkdiag.reporting.safe_text import code, fence, prose, without_home

PAGE = MarkdownIt("gfm-like")

NASTY = st.one_of(
    st.text(max_size=60),
    st.lists(
        st.sampled_from(
            [
                *"`*_~<>[]()#@|!&$\\\n\r\t\"'",
                "```", "~~~", "</details>", "<script>", "<!--", "-->", "@octocat", "#123", "GH-12", "owner/repo#1",
                "https://evil.example", "www.evil.example", "a@b.example", "deadbeefcafe", "\x1b[31m", "\x1b]8;;x\x07",
                "\u202e", "\u200b", "\x00", "\x9b2J", "&lt;", "- ", "1. ", "# ", "    ", "![x](y)", "[x]: y", "---",
                "words", " ", ":+1:", "\u2028", "\ud800",
            ]
        ),
        max_size=25,
    ).map("".join),
)  # fmt: skip


def leaves(tokens: list[Token]) -> list[Token]:
    found = []
    for token in tokens:
        found += leaves(token.children) if token.children else [token]
    return found


def seen(text: str) -> str:
    """What is left of ``text`` on one line, as the functions promise to show it."""
    return " ".join(printable(text).split())


@given(NASTY)
def test_prose_renders_as_text_and_code_alone(text: str) -> None:
    kinds = PAGE.parse(f"x {prose(text, at_most=10_000)} x")
    assert [token.type for token in kinds] == ["paragraph_open", "inline", "paragraph_close"]
    inside = leaves(kinds)
    assert {token.type for token in inside} <= {"text", "code_inline", "paragraph_open", "paragraph_close"}
    shown = "".join(token.content for token in inside)
    assert "".join(shown.split()) == "".join(f"x{without_home(seen(text)).replace('|', '│')}x".split())


@given(NASTY)
def test_outside_code_prose_holds_nothing_that_a_forge_links(text: str) -> None:
    words = [t.content for t in leaves(PAGE.parse(f"x {prose(text)} x")) if t.type == "text"]
    for word in words:
        assert not set("@#<>&$[]*_`|\\~") & set(word.replace(" > ", " "))
        assert not re.search(r"\b(?:[0-9a-f]{7,40}|GH-\d+)\b", word, re.IGNORECASE)
        assert "://" not in word
        assert "www." not in word


def test_plain_words_stay_as_they_are() -> None:
    text = "KV use rose from 0% to 38 %, 29.3 times the healthy 8.2 s (it doesn't stop)."
    assert prose(text) == text
    assert prose("2 worker(s), 4 process(es) seen") == "2 worker(s), 4 process(es) seen"
    assert prose("seen in _fp8_mqa_logits_torch, twice") == "seen in `_fp8_mqa_logits_torch`, twice"


@given(NASTY)
def test_code_is_one_span_also_in_a_table(text: str) -> None:
    table = f"| a | b |\n|---|---|\n| {code(text, at_most=10_000)} | end |"
    cells = [token for token in PAGE.parse(table) if token.type == "inline"][2:]
    assert len(cells) == 2
    assert cells[1].content == "end"
    [span] = [token for token in leaves([cells[0]]) if token.content]
    expected = without_home(seen(text)).replace("|", "│")
    assert (span.type, span.content) == (("code_inline", expected) if expected else ("text", "(empty)"))


@given(NASTY)
def test_fence_holds_everything(text: str) -> None:
    tokens = PAGE.parse(f"before\n\n{fence(text)}\n\nafter")
    assert [token.type for token in tokens if token.level == 0] == [
        "paragraph_open", "paragraph_close", "fence", "paragraph_open", "paragraph_close",
    ]  # fmt: skip
    assert tokens[-2].content == "after"


def test_home_folders_are_not_told() -> None:
    assert without_home("File /home/alice/env/x.py and /Users/bob/y") == "File ~/env/x.py and ~/y"
