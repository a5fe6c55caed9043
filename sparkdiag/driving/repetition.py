"""When text has degenerated into a loop. Pure.

Three shapes are looked for: a tail that repeats one unit exactly, words that go round with small changes, and the same
without white space. Text that merely repeats words is none of them: a unit has to come back several times and fill a
good part of what was said.
"""

WINDOW_CHARACTERS = 16_384
"""Only the end is looked at: a loop, once entered, is where a text ends."""
_MIN_TAIL = 32
_LONG_TAIL = 400
_WORD_WINDOW = 400
_MIN_WORDS = 60
_WORD_GRAM = 4
_WORD_DISTINCT = 0.5
"""Ordinary prose has over 0.9; lines of one shape with other numbers in them about 0.85."""
_CHARACTER_WINDOW = 2_000
_MIN_CHARACTERS = 240
_CHARACTER_GRAM = 12
_CHARACTER_DISTINCT = 0.2


def repetition(text: str) -> str | None:
    """What repeats, for people; None for healthy text."""
    tail = text[-WINDOW_CHARACTERS:].rstrip()
    return _exact_tail(tail) or _word_loop(tail) or _character_loop(tail)


def _exact_tail(text: str) -> str | None:
    """The longest end of ``text`` that is one unit over and over: at least 4 times, 8 for a short unit."""
    period_length, length = _periodic_suffix(text)
    if length < _MIN_TAIL or (length < len(text) / 2 and length < _LONG_TAIL):
        return None
    return f"the last {length} characters repeat a unit of {period_length}, {length // period_length} times"


def _periodic_suffix(text: str) -> tuple[int, int]:
    """Period and length of the longest suffix with enough repeats; (1, 0) for none. Linear: KMP's failure function."""
    backwards = text[::-1]
    failure = [0] * len(backwards)
    best = (1, 0)
    matched = 0
    for index in range(1, len(backwards)):
        while matched and backwards[index] != backwards[matched]:
            matched = failure[matched - 1]
        if backwards[index] == backwards[matched]:
            matched += 1
        failure[index] = matched
        length = index + 1
        period = length - matched
        if length >= period * (8 if period < 8 else 4):
            best = (period, length)
    return best


def _word_loop(text: str) -> str | None:
    words = text.split()[-_WORD_WINDOW:]
    if len(words) < _MIN_WORDS:
        return None
    grams = [tuple(words[index : index + _WORD_GRAM]) for index in range(len(words) - _WORD_GRAM + 1)]
    share = len(set(grams)) / len(grams)
    if share >= _WORD_DISTINCT:
        return None
    return f"only {share:.0%} of the last {len(grams)} runs of {_WORD_GRAM} words are distinct"


def _character_loop(text: str) -> str | None:
    end = text[-_CHARACTER_WINDOW:]
    count = len(end) - _CHARACTER_GRAM + 1
    if count < _MIN_CHARACTERS:
        return None
    share = len({end[index : index + _CHARACTER_GRAM] for index in range(count)}) / count
    if share >= _CHARACTER_DISTINCT:
        return None
    return f"only {share:.0%} of the last {count} runs of {_CHARACTER_GRAM} characters are distinct"
