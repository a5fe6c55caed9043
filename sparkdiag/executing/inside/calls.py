"""Calls what the order names, each in a world of its own, and says what was reached."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import CodeType
from typing import Any

from sparkdiag.executing.inside import tensors
from sparkdiag.executing.inside.stubs import MARK, Enough, NotKnown, Opaque
from sparkdiag.executing.inside.world import Ask, World

LONGEST = 250
Say = Callable[..., None]


def run(order: Mapping[str, Any], *, torch: Any, ask: Ask, say: Say) -> None:
    """Every call of every job, in order."""
    now: list[World] = []
    watch: Any = None
    kind: Any = object()
    codes: dict[str, CodeType] = {}
    for job in order["jobs"]:
        if watch is None:
            watch = tensors.prepared(torch, lambda: now[-1])
        if kind != job.get("platform"):
            kind = job.get("platform")
            watch.become(kind)
        for call in job["calls"]:
            say(call={"job": job["job"], **call, "began": True})
            now[:] = [World(job, ask=ask, torch=torch, codes=codes)]
            say(call={"job": job["job"], **call, **_outcome(now[-1], call, watch)})


def _outcome(world: World, call: Mapping[str, Any], watch: Any) -> dict[str, Any]:
    """What one call reached, and how it ended."""
    ended: dict[str, str] = {}
    try:
        with watch:
            _called(world, call)
    except NotKnown as unknown:
        ended = {"unknown": _short(str(unknown))}
    except Enough:
        pass
    except SyntaxError as error:
        path = (error.filename or "").removeprefix(MARK)
        ended = {"broken": f"{path}:{error.lineno}: {_short(str(error.msg))}"}
    except MemoryError:
        ended = {"raised": "MemoryError: it asked for more memory than it may have"}
    except BaseException as error:
        ended = {"raised": _short(f"{type(error).__name__}: {error}")}
        ended["at"] = _where(error)
    return {"events": world.events, "assumed": list(world.assumed), **ended}


def _called(world: World, call: Mapping[str, Any]) -> None:
    module = world.module(call["module"])
    world.run(module)
    function = module._names.get(call["function"])
    if function is None:
        raise NotKnown(f"{call['module']} has no function {call['function']}")
    module._names["__held__"] = lambda name, value: world.names.get(name, value) if type(value) is Opaque else value
    world.dispatching = True
    function(**_arguments(world, function, call))


def _arguments(world: World, function: Any, call: Mapping[str, Any]) -> dict[str, Any]:
    """A value a parameter: as the call says, as the configuration names it, its default, else a stand-in."""
    given: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in call["with"]:
            given[name] = world.built(name, call["with"][name])
        elif name in world.names:
            given[name] = world.names[name]
        elif (
            parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            or parameter.default is not parameter.empty
        ):
            continue
        else:
            given[name] = Opaque(world, name)
    return given


def _where(error: BaseException) -> str:
    """The innermost line of the revision that the error came through."""
    found, step = "", error.__traceback__
    while step is not None:
        path = step.tb_frame.f_code.co_filename
        if path.startswith(MARK):
            found = f"{path.removeprefix(MARK)}:{step.tb_lineno}"
        step = step.tb_next
    return found


def _short(text: str) -> str:
    return text.splitlines()[0].replace(MARK, "")[:LONGEST] if text else ""
