"""A text as a tracker, a chat or a terminal left it -> plain lines. Pure.

Every step is taken only where a cheap look finds a sign that it is needed, and is linear in the text.
"""

import html
import re

from sparkdiag.harmless.printable import without_sequences

MOST_CHARACTERS = 8 * 1024 * 1024
"""About 5,000 dumps; what is beyond it is left out, and said."""
MOST_LINES = 400_000
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});")
_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)
_TAG = re.compile(r"</?(?:details|summary|pre|code|blockquote|div)(?: [^<>\n]{0,200})?>", re.IGNORECASE)
_BARE_COLOUR = re.compile(
    r"(?:\^\[|\\x1[bB]|\\033|\\e|\\u001[bB]|\u241b)\[\d{0,3}(?:;\d{1,3}){0,4}[mK]|\[(?:0;)?\d{1,2}(?:;\d{1,3}){0,4}m"
)
"""Colours whose escape character was lost on the way, or written out."""
_FENCE = re.compile(r"(?:`{3,}[ \t]*(?P<rest>.*)|~{3,4}[ \t]*[\w+.#-]{0,30}\s*\Z)")
_QUOTE = re.compile(r"(?:> ?){1,20}")
_TICKED = re.compile(r"\A(\s{0,20}(?:[-*] )?)`([^`\n]+)`\s{0,20}\Z")
_INFO = re.compile(r"[\w+.#-]{0,30}(?: *\{.{0,100}\})?")
FENCE = "```"
"""How a fence's line is handed on, whatever it was: what is on its two sides was pasted apart."""


def plain_lines(text: str) -> tuple[list[str], tuple[str, ...]]:
    """The lines without markup, and notes on what had to be left out."""
    notes = []
    if len(text) > MOST_CHARACTERS:
        notes.append(f"of {len(text) / 2**20:.1f} MiB the first 2 and the last 6 MiB were read")
        # At lines' ends, and apart: no stack goes on over the gap. A dump mostly stands at a log's end.
        begin = text[: MOST_CHARACTERS // 4]
        end = text[-(MOST_CHARACTERS - MOST_CHARACTERS // 4) :]
        text = "\n".join((begin[: begin.rfind("\n") + 1] or begin, FENCE, end[end.find("\n") + 1 :]))
    text = _plain(text)
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        notes.append(f"of {len(lines)} lines the first {MOST_LINES // 4} and the last {MOST_LINES * 3 // 4} were read")
        del lines[MOST_LINES // 4 : -MOST_LINES * 3 // 4]
    if "```" in text or "~~~" in text:
        lines = _without_fences(lines)
    if "\n>" in text or text.startswith(">"):
        lines = [_unquoted(line) for line in lines]
    if "`" in text:
        lines = [_TICKED.sub(r"\1\2", line) if line.rstrip()[-1:] == "`" else line for line in lines]
    return lines, tuple(notes)


def _plain(text: str) -> str:
    if "\r" in text:
        text = re.sub(r"\r+\n", "\n", text).replace("\r", "\n")
    if "&" in text:
        for _ in range(2):  # ``&amp;lt;`` is what a tracker's API makes of a tracker's page
            text = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
    if "\0" in text:
        text = text.replace("\0", "")
    if "\ufeff" in text:
        text = text.replace("\ufeff", "")
    if "\x1b" in text or "\x9b" in text:
        text = without_sequences(text)
    if "m" in text and ("[0m" in text or "[0;" in text or "[39m" in text):
        text = _BARE_COLOUR.sub("", text)
    if "<" in text:
        text = _TAG.sub("\n", _BREAK.sub("\n", text))
    return text


def _without_fences(lines: list[str]) -> list[str]:
    """A fence becomes a line of its own; what else stands on its line (`````Process 4970: ...``) stays."""
    kept = []
    for line in lines:
        if "```" not in line and "~~~" not in line:
            kept.append(line)
            continue
        fence = _FENCE.match(line.lstrip(" \t>"))
        if fence is None:
            body = line.rstrip()
            closed = body.endswith("```")
            kept.append(body.rstrip("`") if closed else line)
            if closed:
                kept.append(FENCE)
            continue
        kept.append(FENCE)
        rest = (fence["rest"] or "").strip()
        if not _INFO.fullmatch(rest):
            kept.append(rest.rstrip("`"))
            if rest.endswith("```"):
                kept.append(FENCE)
    return kept


def _unquoted(line: str) -> str:
    quote = _QUOTE.match(line)
    return line if quote is None else line[quote.end() :]
