"""Every problem of a scenario at once: unknown keys, wrong values, values that contradict each other. Pure."""

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from sparkdiag.evidence.base import SCHEMA
from sparkdiag.harmless.printable import escaped, hidden_characters
from sparkdiag.scenario.allowed import described_at, element_model, fields_by_key
from sparkdiag.scenario.consistency import contradictions
from sparkdiag.scenario.model import Scenario
from sparkdiag.scenario.problem import Problem
from sparkdiag.scenario.shown import shown

MAX_DEPTH = 16
"""Tables and arrays inside each other; a real scenario has four."""

Checked = tuple[Scenario | None, tuple[Problem, ...]]


def check(data: Mapping[str, Any], *, typed_args: int = 0) -> Checked:
    """A scenario read from TOML and checked: the scenario when there is no problem, and the problems.

    ``typed_args``: how many of the last ``server.args`` come from the command line and not from the file.
    """
    too_deep = next(_too_deep(data, path=()), None)
    if too_deep is not None:
        return None, (too_deep,)
    problems = [*_unknown(Scenario, data, path=()), *_strange_values(data, path=())]
    version = data.get("schema", SCHEMA)
    if version != SCHEMA:
        problems.append(Problem(key="schema", found=shown(version), allowed=f"{SCHEMA}, which this sparkdiag reads"))
    try:
        scenario = Scenario.model_validate(_tuples(data), strict=True)
    except ValidationError as error:
        problems.extend(problem for problem in _from_pydantic(error) if problem.key not in {p.key for p in problems})
        return None, tuple(problems)
    problems.extend(contradictions(scenario, typed_args=typed_args))
    return (None if problems else scenario), tuple(problems)


def dotted(path: Sequence[str | int]) -> str:
    """``signature[0].kind``: a place in the file as a person writes it."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{escaped(part)}" if text else escaped(part)
    return text


def did_you_mean(word: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def _unknown(model: type[BaseModel], data: Any, *, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """Keys that the model does not have; values ignore them (an old reader of a new run), a scenario file must not."""
    if isinstance(data, list):
        for index, item in enumerate(data):
            yield from _unknown(model, item, path=(*path, index))
        return
    if not isinstance(data, Mapping):
        return
    fields = fields_by_key(model)
    for key, value in data.items():
        if key not in fields:
            hint = did_you_mean(key, tuple(fields))
            names = ", ".join(fields)
            yield Problem(key=dotted((*path, key)), found="an unknown key" + hint, allowed=f"one of {names}")
        elif (inner := element_model(fields[key].annotation)) is not None:
            yield from _unknown(inner, value, path=(*path, key))


def _strange_values(data: Any, *, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """Values no key may hold: characters that a terminal obeys, and numbers that are none."""
    match data:
        case Mapping():
            for key, value in data.items():
                if hidden_characters(key):
                    yield Problem(key=dotted((*path, key)), found="control characters in a key", allowed="plain text")
                yield from _strange_values(value, path=(*path, key))
        case list():
            for index, value in enumerate(data):
                yield from _strange_values(value, path=(*path, index))
        case str():
            hidden = hidden_characters(data, allowed="\n\t")
            if hidden:
                names = ", ".join(ascii(character)[1:-1] for character in hidden[:5])
                yield Problem(key=dotted(path), found=f"control characters ({names})", allowed="plain text")
        case float() if not math.isfinite(data):
            yield Problem(key=dotted(path), found=shown(data), allowed="a finite number")


def _too_deep(data: Any, *, path: tuple[str | int, ...]) -> Iterator[Problem]:
    if len(path) > MAX_DEPTH:
        allowed = f"at most {MAX_DEPTH} tables and arrays inside each other"
        yield Problem(key=dotted(path[:4]) + "…", found="a nest that is too deep", allowed=allowed)
        return
    if isinstance(data, Mapping):
        items: Iterator[tuple[str | int, Any]] = iter(data.items())
    elif isinstance(data, list):
        items = iter(enumerate(data))
    else:
        return
    for key, value in items:
        yield from _too_deep(value, path=(*path, key))


def _tuples(data: Any) -> Any:
    """TOML gives lists, the values are tuples, and strict validation tells them apart."""
    if isinstance(data, list):
        return tuple(_tuples(item) for item in data)
    if isinstance(data, Mapping):
        return {key: _tuples(value) for key, value in data.items()}
    return data


def _from_pydantic(error: ValidationError) -> Iterator[Problem]:
    for item in error.errors(include_url=False):
        location = item["loc"]
        if item["type"] == "too_short" and item["input"]:
            continue  # said of an array whose items are all wrong, each of which is reported itself
        found = "nothing (the key is missing)" if item["type"] == "missing" else shown(item["input"])
        yield Problem(key=dotted(location), found=found, allowed=described_at(Scenario, location) or item["msg"])
