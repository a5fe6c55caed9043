"""Memory that tells on a kernel which leaves an element unwritten: whatever is allocated is full of a given value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

SENTINEL = -12345.0
"""Finite, and no logit of these inputs: an element that is NaN under NaN and this under this was never written."""
_NAMES = ("empty", "empty_like", "empty_strided")


@contextmanager
def poisoned(
    value: float, *, modules: Iterable[Any] = (), spoil: tuple[tuple[int, ...], str] | None = None
) -> Iterator[None]:
    """Within, ``torch.empty`` and its kin return floating-point memory full of ``value``, also under the names that
    ``modules`` imported them by. ``spoil``, a shape and a device, first leaves a block of that size so in the caching
    allocator, for memory that comes by another way."""
    wraps = {getattr(torch, name): _filled(getattr(torch, name), value) for name in _NAMES}
    undo: list[tuple[Any, str, Any]] = []

    def put(owner: Any, name: str, new: Any) -> None:
        undo.append((owner, name, getattr(owner, name)))
        setattr(owner, name, new)

    if spoil is not None:
        torch.full(spoil[0], value, dtype=torch.float32, device=spoil[1])
    try:
        for name in _NAMES:
            put(torch, name, wraps[getattr(torch, name)])
        put(torch.Tensor, "new_empty", _filled(torch.Tensor.new_empty, value))
        for module in modules:
            for name, held in tuple(vars(module).items()):
                wrap = wraps.get(held) if callable(held) and held.__hash__ else None
                if wrap is not None:
                    put(module, name, wrap)
        yield
    finally:
        for owner, name, old in reversed(undo):
            setattr(owner, name, old)


def _filled(allocate: Any, value: float) -> Any:
    def allocate_filled(*args: Any, **kwargs: Any) -> Any:
        made = allocate(*args, **kwargs)
        if made.is_floating_point() and made.element_size() > 1:
            made.fill_(value)
        return made

    return allocate_filled
