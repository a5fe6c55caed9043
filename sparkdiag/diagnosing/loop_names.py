"""What the names of integer locals say: where a loop stands, where it ends, how wide its steps are. Pure.

Names never decide alone: they weigh what the values show (``loops.py``).
"""

from collections.abc import Collection, Mapping
from functools import lru_cache


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEVER = _words(
    "id ids pid tid ptr addr address hash seed fd port time timeout deadline now elapsed timestamp ts t0 t1 ns ms us "
    "sec secs seconds clock tick ticks warning warnings warn retry retries attempt attempts tries spin spins poll "
    "polls heartbeat heartbeats uptime version flags mask handle stream device rank"
)
"""Clocks, identities, and counters of fruitless tries: what advances in them is no work."""
_SIZES = _words(
    "n num nums len lens length size sizes numel rows cols keys heads tokens dim dims shape seq width height"
)
_BOUNDS = _SIZES | _words("total stop end limit max count counts hi upper steps layers blocks batches chunks")
_STEPS = _words("step stride chunk tile width block inc increment")
_DONE = _words("done processed completed finished computed seen read written sent received")
_OVER = _words("i j k l m p q r s x y it layer row col head token block chunk batch page tile step")
"""A loop's index by what it runs over."""
_MARKS = _DONE | _words("start begin index idx pos position offset off cursor iter iteration lo lower cur current")
"""Words that say that a name is an index, and nothing of what it runs over."""
_INDEX = _OVER | _MARKS
_END = _words("end stop hi upper next")
_FILLERS = _words("num nums n total len lens length size sizes max seq stop end count counts limit of the")


@lru_cache(maxsize=4096)
def words_of(name: str) -> tuple[str, ...]:
    """``head_chunk_size`` -> (head, chunk, size)."""
    return tuple(word for word in name.lower().split("_") if word) or ("_",)


@lru_cache(maxsize=4096)
def is_never(name: str) -> bool:
    """No loop, whatever its values."""
    return not _NEVER.isdisjoint(words_of(name)) or name.startswith("__")


@lru_cache(maxsize=4096)
def is_size(name: str) -> bool:
    """Stays the same within one call; another value is another call."""
    words = words_of(name)
    return not _SIZES.isdisjoint(words) and _DONE.isdisjoint(words) and words[-1] not in _MARKS


@lru_cache(maxsize=4096)
def is_step(name: str) -> bool:
    """``k_chunk_size``, ``stride``: how wide a pass is."""
    words = words_of(name)
    return not _STEPS.isdisjoint(words) and (words[-1] in _STEPS or words[-1] in ("size", "len")) and words != ("step",)


@lru_cache(maxsize=4096)
def is_index(name: str) -> bool:
    """``k_start``, ``i``, ``layer``, ``num_done``: where a loop stands."""
    words = words_of(name)
    return name == "_" or words[-1] in _INDEX or words[0] in ("cur", "current") or not _DONE.isdisjoint(words)


def is_end(name: str) -> bool:
    """``k_end``: the far edge of the current pass."""
    return words_of(name)[-1] in _END


def stem_of(name: str) -> tuple[str, ...]:
    """What a loop runs over, without the words that say where it stands: ``k_start`` -> (k,)."""
    return tuple(word for word in words_of(name) if word not in _MARKS and word not in _END)


def same_stem(one: str, other: str) -> bool:
    """``head_start`` and ``head_chunk_size``: of the same loop."""
    stem = stem_of(one)
    return bool(stem) and stem[0] == words_of(other)[0]


def bound_for(name: str, highest: int, constants: Mapping[str, int], taken: Collection[str]) -> tuple[str, bool] | None:
    """(name of the local that ends the loop ``name``, whether their names belong together); None where none, or several
    alike, could be it.

    ``constants``: locals that stay the same; ``taken``: those that end another loop of the frame.
    """
    fitting = [
        other
        for other, value in constants.items()
        if other != name and value >= max(highest, 1) and other not in taken and not is_step(other) and _is_bound(other)
    ]
    stem = stem_of(name)
    kin = [other for other in fitting if stem and _kin(stem[0], other)]
    if kin:
        return (min(kin, key=lambda other: constants[other]), True) if _agree(kin, constants) else None
    free = [other for other in fitting if not _specific(other)]
    if stem and len(stem[0]) > 1 and not is_index(name):
        return None
    if not free and (not stem or len(stem[0]) == 1):
        free = fitting
    return (free[0], False) if len(free) == 1 or (free and _agree(free, constants)) else None


def _agree(names: Collection[str], constants: Mapping[str, int]) -> bool:
    return len({constants[name] for name in names}) == 1


def _is_bound(name: str) -> bool:
    words = words_of(name)
    return not _BOUNDS.isdisjoint(words) or words[0] in ("n", "num") or (words[0][0] == "n" and len(words) == 1)


def _kin(stem: str, bound: str) -> bool:
    """``head`` and ``num_heads``; ``k`` and ``num_keys`` or ``seq_len_kv``."""
    return any(
        word.startswith(stem) or (len(word) > 1 and stem.startswith(word.rstrip("s")))
        for word in words_of(bound)
        if word not in _FILLERS
    )


def _specific(name: str) -> bool:
    return any(word not in _FILLERS for word in words_of(name))
