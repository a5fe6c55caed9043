"""One guard shape: a small tree, what is given, and the kernels that it reaches, checked against running it."""

from __future__ import annotations

import ast
import itertools
import os
from collections.abc import Iterator, Mapping
from typing import TypeVar
from unittest import mock

from sparkdiag.evidence.route import Guard, Platform, Route
from tests.fakes.executed_trees import Device, Outcome, run_tree
from tests.fakes.source_trees import ask, config_of, tree_of

Open = Mapping[str, tuple[str, ...]]
"""What is not given, with the values that it may have."""

DEVICES = {
    "sm80": Device("cuda", (8, 0)),
    "sm89": Device("cuda", (8, 9)),
    "sm90": Device("cuda", (9, 0)),
    "sm100": Device("cuda", (10, 0)),
    "sm120": Device("cuda", (12, 0)),
    "sm121": Device("cuda", (12, 1)),
}


def device_of(arch: str | None, platform: Platform | None) -> Device:
    return DEVICES[arch or "sm121"] if platform in ("cuda", None) else Device(str(platform), None)


def outcomes(
    source: str | Mapping[str, str],
    given: Mapping[str, str],
    open_: Open,
    *,
    devices: tuple[Device, ...],
    flags: Mapping[tuple[str, str], tuple[object, ...]],
    environment: Mapping[str, tuple[str | None, ...]],
) -> Iterator[Outcome]:
    """Every run that agrees with what is given."""
    files = tree_of(source)
    for device in devices:
        for arguments in _choices(open_):
            for attributes in _choices(flags):
                for variables in _choices(environment):
                    with mock.patch.dict(os.environ):
                        for name, value in variables.items():
                            if value is None:
                                os.environ.pop(name, None)
                            else:
                                os.environ[name] = value
                        yield run_tree(files, {**given, **arguments}, device=device, attributes=attributes)


K = TypeVar("K")
V = TypeVar("V")


def _choices(options: Mapping[K, tuple[V, ...]]) -> Iterator[dict[K, V]]:
    for values in itertools.product(*options.values()):
        yield dict(zip(options, values, strict=True))


def check(
    source: str | Mapping[str, str],
    reaches: str | set[str],
    *,
    given: Mapping[str, str] | None = None,
    open_: Open | None = None,
    arch: str | None = "sm121",
    platform: Platform | None = "cuda",
    devices: tuple[Device, ...] | None = None,
    flags: Mapping[tuple[str, str], tuple[object, ...]] | None = None,
    environment: Mapping[str, tuple[str | None, ...]] | None = None,
    exact: bool | None = None,
) -> Route:
    """The answer, after it was compared with what running the tree shows.

    ``exact`` None: expected for one kernel that every run ends in.
    """
    expected = {reaches} if isinstance(reaches, str) else reaches
    runs = list(
        outcomes(
            source,
            given or {},
            open_ or {},
            devices=devices or (device_of(arch, platform),),
            flags=flags or {},
            environment=environment or {},
        )
    )
    truly = {kernel for run in runs for kernel in run.kernels}
    assert truly == expected, f"the fixture itself expects {expected}, running it gives {truly}"
    route = ask(source, given or {}, config=config_of(arch=arch, platform=platform))
    assert set(route.kernels) == expected, told(route)
    always = len(expected) == 1 and all(set(run.kernels) == expected for run in runs)
    assert route.exact is (always if exact is None else exact), told(route)
    contradicted(route, runs)
    return route


def check_open(source: str | Mapping[str, str], reaches: str, *, given: Mapping[str, str] | None = None) -> Route:
    """Of a shape that need not be understood: the answer holds the kernel that runs, and is right where it is sure."""
    runs = list(outcomes(source, given or {}, {}, devices=(device_of("sm121", "cuda"),), flags={}, environment={}))
    assert [set(run.kernels) for run in runs] == [{reaches}]
    route = ask(source, given or {})
    assert reaches in route.kernels or route.not_understood, told(route)
    never_wrong(route, runs)
    return route


def contradicted(route: Route, runs: list[Outcome]) -> int:
    """Fails where a guard's value is not what a run saw; how many guards a run saw.

    A guard of a function that is called more than once tells of one of its calls, which a run that ended in an error
    may not have come to.
    """
    seen: dict[tuple[str, int, str], set[str]] = {}
    for guard in route.guards:
        seen.setdefault((guard.path, guard.line, normalised(guard.source)), set()).add(guard.value)
    compared = 0
    for place, said in seen.items():
        was = {str(value).lower() for run in runs for value in run.guards.get(place, ())}
        compared += bool(was)
        right = "unknown" in said or was & said or not was or any(run.raised for run in runs)
        assert right, f"{place} is said to be {said}, was {was}\n{told(route)}"
    return compared


def never_wrong(route: Route, runs: list[Outcome]) -> None:
    """Nothing that any run did is missing, nothing that the answer is sure of is contradicted."""
    truly = {kernel for run in runs for kernel in run.kernels}
    if route.exact:
        assert len(route.kernels) == 1 and not route.not_understood
        for run in runs:
            assert set(run.kernels) == set(route.kernels) or (run.raised and not run.kernels), "exact, and wrong"
    if not route.not_understood:
        assert truly <= set(route.kernels), "a kernel is missing"
        for run in runs:
            if run.raised == "NotImplementedError" and not run.kernels:
                assert any(found.error.startswith("NotImplementedError") for found in route.raises), (
                    "an error is missing"
                )
    for found in route.reached:
        if not found.when and not route.not_understood:
            for run in runs:
                assert found.function in run.kernels or run.raised, f"{found.function} is not always reached"
    contradicted(route, runs)


def shown(runs: list[Outcome]) -> str:
    return "; ".join(f"{run.kernels} {run.raised or ''}" for run in runs)


def normalised(source: str) -> str:
    try:
        return ast.unparse(ast.parse(source, mode="eval"))
    except SyntaxError:
        return source


def guard(route: Route, source: str) -> Guard:
    """The one guard with this source."""
    wanted = normalised(source)
    found = [guard for guard in route.guards if normalised(guard.source) == wanted]
    assert len(found) == 1, f"{len(found)} guards read {source}\n{told(route)}"
    return found[0]


def when(route: Route, kernel: str) -> list[tuple[str, ...]]:
    """The conditions under which a kernel is reached, for every way there."""
    return [found.when for found in route.reached if found.function == kernel]


def told(route: Route) -> str:
    """An answer in a failure's words."""
    lines = [f"exact {route.exact}"]
    lines += [f"reached {found.function} when {list(found.when)}" for found in route.reached]
    lines += [f"raises {found.error} at {found.path}:{found.line} when {list(found.when)}" for found in route.raises]
    lines += [f"{g.path}:{g.line} {g.source} = {g.value} ({g.because})" for g in route.guards]
    lines += [f"not understood {n.path}:{n.line} {n.source}: {n.reason}" for n in route.not_understood]
    return "\n".join(lines)
