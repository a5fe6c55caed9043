"""How often a loop is found that is none, and missed that is one: measured over simulated series, seed fixed."""

import random
from collections.abc import Callable

import pytest
from diagnosing_cases import NestedLoop, in_function, random_times

from sparkdiag.diagnosing.loops import loops_in

SERIES = 150
LOOKS = (3, 5, 8, 14)
SIZES = {"num_heads": 64, "num_keys": 20480, "n": 5000}

Values = Callable[[random.Random, int], list[int]]


def walk(dice: random.Random, looks: int) -> list[int]:
    value, found = dice.randrange(20, 40), []
    for _ in range(looks):
        value += dice.choice((-2, -1, 1, 2))
        found.append(max(0, value))
    return found


def noise(dice: random.Random, looks: int) -> list[int]:
    return [dice.randrange(64) for _ in range(looks)]


def level(dice: random.Random, looks: int) -> list[int]:
    """A constant with a misread value or two."""
    found = [dice.randrange(64)] * looks
    for _ in range(dice.randrange(3)):
        found[dice.randrange(looks)] = dice.choice((0, 1, 360, 3276, 462_281_264))
    return found


def found_share(values: Values, name: str, *, looks: int) -> float:
    dice = random.Random(f"{values.__name__} {name} {looks}")
    found = 0
    for _ in range(SERIES):
        series = [in_function({name: value} | SIZES, at_s=1.7 * n) for n, value in enumerate(values(dice, looks))]
        found += bool(loops_in(series))
    return found / SERIES


@pytest.mark.parametrize(
    ("values", "name", "most"),
    [
        (walk, "x_total", 0.01),
        (walk, "balance", 0.01),
        (walk, "i", 0.14),
        (walk, "head_start", 0.1),
        (noise, "balance", 0.005),
        (noise, "i", 0.02),
        (noise, "head_start", 0.04),
        (level, "balance", 0.005),
        (level, "i", 0.005),
        (level, "head_start", 0.01),
        (walk, "num_tokens", 0.03),
        (noise, "num_tokens", 0.005),
    ],
)
def test_what_is_no_loop_is_seldom_found(values: Values, name: str, most: float) -> None:
    """A name without meaning needs eight rises and more; an index with an end of its own, of which nearly every one is
    a loop, but a few."""
    shares = {looks: found_share(values, name, looks=looks) for looks in LOOKS}
    print(f"{values.__name__} {name}: found in {shares}")
    assert max(shares.values()) <= most


def test_real_loops_are_seldom_missed() -> None:
    dice = random.Random(11)
    shares = {}
    for looks in LOOKS:
        hits = 0
        for _ in range(SERIES):
            loop = NestedLoop(heads=dice.randrange(8, 128), keys=dice.randrange(4096, 60_000), k_chunk=2048)
            times = random_times(dice, looks=looks, until_s=loop.seconds)
            findings = loops_in([in_function(loop.at(at_s), at_s=at_s) for at_s in times])
            hits += bool(findings) and findings[0].variable == "head_start"
        shares[looks] = hits / (SERIES)
    print(f"nested loops: found in {shares}")
    assert min(shares.values()) > 0.9
