"""A needle prompt of exactly so many tokens, by whatever counts the server's tokens. Pure: the counter is injected."""

import math
import re
from collections.abc import Callable
from itertools import islice

from sparkdiag.driving.haystack import Needle, derivation, haystack_lines, needle
from sparkdiag.errors import UsageError
from sparkdiag.evidence.base import Value
from sparkdiag.scenario.model import PromptSettings

MAX_COUNTS = 12
"""Calls of the counter for one prompt: each tokenizes the whole of it, a second or more for half a million tokens."""
DECOYS = 4
_DECOY_DEPTHS = (0.1, 0.55, 0.75, 0.9)
_PROBE_LINES = 64
_LINE_TRIES = 4
_NONCE = re.compile(r"[A-Za-z0-9-]{4,64}")


class BuiltPrompt(Value):
    """The prompt, and what is needed to score what comes back."""

    text: str
    expected: str
    question: str
    tokens: int
    """As counted, special tokens included."""
    asked_tokens: int
    counts: int
    """How often the counter was asked."""

    @property
    def exact(self) -> bool:
        return self.tokens == self.asked_tokens


def build_prompt(settings: PromptSettings, *, nonce: str, count_tokens: Callable[[str], int]) -> BuiltPrompt:
    """A prompt of ``settings.tokens`` tokens; the same for the same settings, nonce and tokenizer.

    Where no filler gives the exact length within ``MAX_COUNTS`` counts (a tokenizer that merges oddly), the nearest
    one found is returned with its true count. Raises ``UsageError`` where not even the needle and the question fit.
    """
    if not _NONCE.fullmatch(nonce):
        raise ValueError("a nonce is 4 to 64 letters, digits and dashes")
    hidden = _hidden(settings, nonce=nonce, decoys=DECOYS)
    search = _Search(_Layout(settings, hidden, nonce=nonce), target=settings.tokens, count_tokens=count_tokens)
    bare = search.missing(0)
    if hidden.decoys and settings.tokens - bare > settings.tokens / 4:
        hidden = _hidden(settings, nonce=nonce, decoys=0)
        search = _Search(_Layout(settings, hidden, nonce=nonce), target=settings.tokens, count_tokens=count_tokens)
        bare = search.missing(0)
    if bare < 0:
        alone = settings.tokens - bare
        raise UsageError(
            f"a {settings.kind} prompt of {settings.tokens} tokens cannot hold its needle and question: they alone are "
            f"{alone} tokens here",
            remedy=f"--prompt-tokens {alone * 2}, or more",
        )
    _pad_out(search, *_whole_lines(search, bare=bare))
    lines, padding, tokens = search.nearest
    return BuiltPrompt(
        text=search.layout.text(lines, padding),
        expected=hidden.expected,
        question=hidden.question,
        tokens=tokens,
        asked_tokens=settings.tokens,
        counts=search.counts,
    )


class _Layout:
    """Text for a number of haystack lines and a padding; one layout for one prompt."""

    def __init__(self, settings: PromptSettings, hidden: Needle, *, nonce: str) -> None:
        self._front = f"{nonce} opens these notes."
        self._hidden = hidden
        self._depth = settings.depth
        self._source = haystack_lines(settings.seed)
        self._lines: list[str] = []

    def text(self, lines: int, padding: str = "") -> str:
        """Nonce at the very front, needle at its depth, question at the end, padding on the last haystack line."""
        self._grow(lines)
        body = [self._front + "\n", *self._lines[:lines]]
        body[-1] = body[-1][:-1] + padding + "\n"
        placed = [(self._depth, 0, self._hidden.line)]
        placed += [(depth, 1, line) for depth, line in zip(_DECOY_DEPTHS, self._hidden.decoys, strict=False)]
        for depth, _, line in sorted(placed, reverse=True):
            body.insert(1 + round(depth * lines), line)
        return "".join(body) + self._hidden.question

    def lines_within(self, characters: float) -> int:
        """How many haystack lines have at most that many characters together."""
        used, count = 0, 0
        while used <= characters:
            self._grow(count + 1)
            used += len(self._lines[count])
            count += 1
        return max(0, count - 1)

    def characters(self, lines: int) -> int:
        self._grow(lines)
        return sum(map(len, self._lines[:lines]))

    def _grow(self, lines: int) -> None:
        if len(self._lines) < lines:
            self._lines.extend(islice(self._source, lines - len(self._lines) + _PROBE_LINES))


class _Search:
    """Counts layouts, and remembers how often and which came nearest."""

    def __init__(self, layout: _Layout, *, target: int, count_tokens: Callable[[str], int]) -> None:
        self.layout = layout
        self.counts = 0
        self.nearest: tuple[int, str, int] = (0, "", -1)
        self._target = target
        self._count_tokens = count_tokens

    @property
    def exhausted(self) -> bool:
        return self.counts >= MAX_COUNTS

    def missing(self, lines: int, padding: str = "") -> int:
        """Tokens that this layout lacks; negative where it has too many."""
        self.counts += 1
        tokens = self._count_tokens(self.layout.text(lines, padding))
        if self.counts == 1 or abs(self._target - tokens) < abs(self._target - self.nearest[2]):
            self.nearest = (lines, padding, tokens)
        return self._target - tokens


def _whole_lines(search: _Search, *, bare: int) -> tuple[int, int]:
    """A number of haystack lines that leaves a few lines' worth of tokens to fill, and how many tokens these are."""
    layout = search.layout
    if bare == 0:
        return 0, 0
    probe_tokens = max(1, bare - search.missing(_PROBE_LINES))
    probe_characters = layout.characters(_PROBE_LINES)
    lines = layout.lines_within(bare * probe_characters / probe_tokens)
    for _ in range(_LINE_TRIES):
        if lines == 0:
            break
        missing = search.missing(lines)
        per_line = max(1.0, (bare - missing) / lines)
        if 0 <= missing <= 3 * per_line:
            return lines, missing
        lines = max(0, lines + math.floor(missing / per_line))
    return (lines, search.missing(lines)) if lines else (0, bare)


def _pad_out(search: _Search, lines: int, missing: int) -> None:
    """Fills what is missing: one-letter words first (one token each as a rule), then letters on the last of them."""
    if missing <= 0:
        return
    words, left = missing, search.missing(lines, _padding(missing))
    while left and words and not search.exhausted:
        cost = max((missing - left) / words, 0.05)
        step = math.floor(left / cost)
        if step == 0 or words + step < 0:
            break
        words += step
        left = search.missing(lines, _padding(words)) if words else missing
    letters = 0
    while left and not search.exhausted:
        letters += left
        if letters <= 0:
            return
        left = search.missing(lines, _padding(words, letters))


def _padding(words: int, letters: int = 0) -> str:
    return " a" * words + "b" * letters


def _hidden(settings: PromptSettings, *, nonce: str, decoys: int) -> Needle:
    if settings.kind == "reasoning":
        return derivation(settings.seed, nonce)
    return needle(settings.seed, nonce, decoys=decoys)
