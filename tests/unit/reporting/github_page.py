"""A page as GitHub's own renderer makes it, and what GitHub would then make of the text outside code."""

import re
from functools import cache
from html.parser import HTMLParser

import cmarkgfm
from cmarkgfm.cmark import Options

BLOCKS = {
    "h1", "h2", "h3", "h4", "h5", "h6", "table", "tr", "th", "td", "ul", "ol", "li", "pre", "hr", "blockquote",
    "details", "summary",
}  # fmt: skip
INLINE = {"p", "strong", "em", "code", "thead", "tbody", "br"}
ATTRIBUTES = {("details", "open"), ("pre", "lang"), ("code", "class"), ("ol", "start")}
VOID = {"hr", "br"}
LINKS = {
    "mention": re.compile(r"(?<![\w/])@[A-Za-z0-9]"),
    "issue": re.compile(r"#\d|\bGH-\d", re.IGNORECASE),
    "commit": re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{7,40}(?![0-9A-Za-z])", re.IGNORECASE),
    "address": re.compile(r"://|\bwww\.|\S@\S", re.IGNORECASE),
    "emoji": re.compile(r":[a-z0-9_+-]+:"),
    "mathematics": re.compile(r"\$"),
    "footnote": re.compile(r"\[\^"),
    "hidden": re.compile("[\u200b-\u200f\u202a-\u202e\u2066-\u2069\x1b\x00]"),
}


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.outline: list[str] = []
        self.open: list[str] = []
        self.problems: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in BLOCKS | INLINE:
            self.problems.append(f"<{tag}>")
        self.problems += [f"<{tag} {name}>" for name, _ in attrs if (tag, name) not in ATTRIBUTES]
        if tag in BLOCKS:
            self.outline.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        self.text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes nothing")
        self.text.append(" ")

    def handle_comment(self, data: str) -> None:
        self.problems.append(f"<!--{data}-->")

    def handle_data(self, data: str) -> None:
        if "code" not in self.open and "pre" not in self.open:
            self.text.append(data)
        else:
            self.text.append("\N{FULL BLOCK}")


@cache
def rendered(page: str) -> str:
    """HTML, raw HTML let through, footnotes understood."""
    options = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES
    return str(cmarkgfm.github_flavored_markdown_to_html(page, options=options))


def _parsed(page: str) -> _Page:
    parser = _Page()
    parser.feed(rendered(page))
    parser.close()
    parser.problems += [f"<{tag}> is never closed" for tag in parser.open]
    return parser


def outline(page: str) -> list[str]:
    """The blocks in reading order."""
    return _parsed(page).outline


def dangers(page: str) -> list[str]:
    """What no page of ours may have: foreign HTML, tags left open, anything outside code that GitHub links."""
    parser = _parsed(page)
    text = "".join(parser.text)
    links = [f"{kind}: {match[0]!r}" for kind, found in LINKS.items() if (match := found.search(text))]
    return [*parser.problems, *links]
