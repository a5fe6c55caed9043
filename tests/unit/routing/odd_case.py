"""A program by hand, run under every value of what is open and held against its route."""

from __future__ import annotations

from tests.fakes.source_trees import ask
from tests.unit.routing.shape_case import Open, device_of, never_wrong, outcomes, told

HEAD = """
import contextlib
import enum
import functools
import torch
from vllm.kernels import fast, slow, other

FLAG = False
LIMIT = 512
"""


def say_nothing_wrong(program: str, *, on_attribute: bool) -> None:
    """``on_attribute``: the program asks for an attribute of its parameter ``a``, which then is an object."""
    source = HEAD + program
    open_: Open = {"a": ("True", "False", "0", "None", "[1]", "{}", "(None, 1)")}
    if on_attribute:
        open_ = {"a": ("__import__('types').SimpleNamespace(use=True)",)}
    runs = list(outcomes(source, {}, open_, devices=(device_of("sm121", "cuda"),), flags={}, environment={}))
    route = ask(source)
    never_wrong(route, runs)
    for given in ("True", "False"):
        runs = list(outcomes(source, {"a": given}, {}, devices=(device_of("sm121", "cuda"),), flags={}, environment={}))
        if not on_attribute:
            route = ask(source, {"a": given})
            never_wrong(route, runs)
            assert route.kernels or route.not_understood or route.raises or not any(run.kernels for run in runs), told(
                route
            )
