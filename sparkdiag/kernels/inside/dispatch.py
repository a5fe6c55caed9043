"""The incident's dispatch contract: a call of FP8 queries reaches the Triton kernel whatever ``clean_logits`` is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sparkdiag.kernels.inside.inputs import Case, Inputs, make_inputs
from sparkdiag.kernels.inside.revision import DISPATCH, FALLBACK, TRITON, Loaded

CASE = Case(rows=3, keys=5, heads=2, window="full")


class DoesNotFit(Exception):
    """A function wants something that a call of this kind does not have."""


def bound(function: Callable[..., Any], inputs: Inputs, *, paired: bool, clean: bool | None) -> dict[str, Any]:
    """Arguments by the names of the function's parameters, which every revision has kept.

    ``paired``: the queries as (values, None), as the dispatch takes them. Raises ``DoesNotFit``.
    """
    had = {
        "q": (inputs.q, None) if paired else inputs.q,
        "kv": inputs.kv,
        "weights": inputs.weights,
        "cu_seqlen_ks": inputs.starts,
        "cu_seqlen_ke": inputs.ends,
        "clean_logits": bool(clean),
    }
    given = {}
    named = getattr(function, "__name__", "it")
    parameters = inspect.signature(function).parameters
    if "q" not in parameters:
        raise DoesNotFit(f"{named} has no parameter q, only {', '.join(parameters) or 'none'}")
    for name, parameter in parameters.items():
        if name in had:
            given[name] = had[name]
        elif parameter.default is parameter.empty and parameter.kind in (
            parameter.POSITIONAL_ONLY,
            parameter.POSITIONAL_OR_KEYWORD,
            parameter.KEYWORD_ONLY,
        ):
            raise DoesNotFit(f"{named} wants {name}, which this check does not know")
    return given


def dispatch_contract(loaded: Loaded, *, device: str) -> Mapping[str, str]:
    """What a call reaches with ``clean_logits`` true and false: a function's name, or how it ended otherwise."""
    reached = {str(clean).lower(): _reached(loaded, clean=clean, device=device) for clean in (True, False)}
    return {**reached, "device": device}


def _reached(loaded: Loaded, *, clean: bool, device: str) -> str:
    reached: list[str] = []
    inputs = make_inputs(CASE, seed=0, device=device)
    try:
        with _watched(loaded, reached):
            function = loaded.functions[DISPATCH]
            function(**bound(function, inputs, paired=True, clean=clean))
    except DoesNotFit as error:
        return f"cannot tell: {error}"
    except (Exception, SystemExit) as error:
        if not reached:
            return f"raised {type(error).__name__}: {error}"
    return ", then ".join(dict.fromkeys(reached)) or "neither kernel"


@contextmanager
def _watched(loaded: Loaded, reached: list[str]) -> Iterator[None]:
    """Both kernels replaced by ones that note their name, wherever the revision's modules hold them."""
    undo = []
    for name in (FALLBACK, TRITON):
        kernel = loaded.functions.get(name)
        for module in loaded.modules:
            for held, value in tuple(vars(module).items()):
                if kernel is not None and value is kernel:
                    undo.append((module, held, value))
                    setattr(module, held, _noting(name, reached))
    try:
        yield
    finally:
        for module, held, value in undo:
            setattr(module, held, value)


def _noting(name: str, reached: list[str]) -> Callable[..., Any]:
    def kernel(*_args: Any, **_more: Any) -> Any:
        reached.append(name)
        return None

    return kernel
