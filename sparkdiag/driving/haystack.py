"""The text around the needle: pseudo-random, without a digit, the same for the same seed. Pure."""

import random
import string
from collections.abc import Callable, Iterator

from sparkdiag.evidence.base import Value

_VOCABULARY = (
    "amber anchor autumn basin beacon birch bridge canyon cedar cinder circle cobalt copper coral cotton "
    "crater current dapple delta drift ember engine fable falcon feather fern field flint forest garden "
    "gentle glacier grain granite harbor hazel hollow indigo island ivory jasmine kernel lantern laurel "
    "ledger linen lively marble meadow mellow metal mirror mosaic narrow nectar nimble north oasis olive "
    "orchard oxide paper pebble pepper pilot plain plume pocket prairie quarry quiet ribbon ridge river "
    "rocket rustic saddle sail salt satin season shadow silver simple slate smooth solar spiral spruce "
    "stone summer sunset tender thicket thunder timber topaz valley velvet violet walnut water willow "
    "window winter wooden yellow zephyr"
)
_WORDS = tuple(_VOCABULARY.split())
_WORDS_PER_LINE = 10


class Needle(Value):
    """One line that the answer is in, and the question that asks for it."""

    line: str
    """With its newline."""
    question: str
    """A prefix of ``line``: the model is to go on as the line does."""
    expected: str
    """The digits that are the answer."""
    decoys: tuple[str, ...] = ()
    """Lines of the same shape with other keys and other answers."""


def haystack_lines(seed: int) -> Iterator[str]:
    """Endless lines of words, each with its newline."""
    draw = random.Random(f"haystack/{seed}")  # noqa: S311 - reproducible filler, no secret
    while True:
        words = draw.choices(_WORDS, k=_WORDS_PER_LINE)
        yield " ".join(words) + "\n"


def needle(seed: int, nonce: str, *, decoys: int) -> Needle:
    """``The value of key K<6> is <7 digits>.``; keys and values are all different, and new with every nonce."""
    draw = random.Random(f"needle/{seed}/{nonce}")  # noqa: S311
    keys = _distinct(lambda: "K" + "".join(draw.choices(string.ascii_uppercase + string.digits, k=6)), decoys + 1)
    values = _distinct(lambda: str(draw.randrange(1_000_000, 10_000_000)), decoys + 1)
    lines = [f"The value of key {key} is {value}.\n" for key, value in zip(keys, values, strict=True)]
    question = f"The value of key {keys[0]} is"
    return Needle(line=lines[0], question=question, expected=values[0], decoys=tuple(lines[1:]))


def derivation(seed: int, nonce: str, *, steps: int = 24) -> Needle:
    """One line of several hundred bytes in which every step differs, so that any loop in the answer is a fault."""
    draw = random.Random(f"derivation/{seed}/{nonce}")  # noqa: S311
    name = "D" + "".join(draw.choices(string.ascii_uppercase + string.digits, k=6))
    factor = draw.randrange(23, 98)
    expected = str(draw.randrange(1_000_000, 10_000_000))
    chain = "; ".join(f"step {step} gives {factor * step}" for step in range(1, steps + 1))
    return Needle(
        line=f"Derivation {name}: {chain}; answer {expected}.\n", question=f"Derivation {name}:", expected=expected
    )


def _distinct(make: Callable[[], str], count: int) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        found[make()] = None
    return list(found)
