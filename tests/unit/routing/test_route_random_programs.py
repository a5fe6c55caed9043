"""The strongest test of a route: random programs, each run for real under everything that agrees with what is given.

A failure prints the program and a line for ``@reproduce_failure``. The runs are the truth: an answer may say more than
they show, never less, and nothing that they contradict.
"""

from __future__ import annotations

import itertools
import os
import random
from dataclasses import dataclass
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from sparkdiag.evidence.route import Route
from tests.fakes.dispatch_parts import CHOICES, VALUES, Program
from tests.fakes.dispatch_programs import Writer, programs
from tests.fakes.executed_trees import Device, Outcome, run_tree
from tests.fakes.source_trees import ask, config_of, tree_of
from tests.unit.routing.shape_case import DEVICES, contradicted, never_wrong, shown, told

MOST_RUNS = 8
RANDOM = settings(print_blob=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@dataclass(frozen=True)
class Facts:
    """What is said about a program, and what is left open."""

    arguments: dict[str, str]
    open_arguments: dict[str, tuple[str, ...]]
    arch: str | None
    seed: int


def said(program: Program, seed: int, *, everything: bool) -> Facts:
    """Facts for a program, by a seed that shrinks to 0."""
    chosen = random.Random(seed)
    arguments, left = {}, {}
    for name, kind in program.parameters.items():
        if everything or chosen.random() < 0.5:
            arguments[name] = chosen.choice(VALUES[kind])
        else:
            left[name] = VALUES[kind]
    arch = chosen.choice(tuple(DEVICES))
    return Facts(arguments, left, arch if everything or chosen.random() < 0.7 else None, seed)


def runs_of(program: Program, facts: Facts) -> tuple[list[Outcome], bool]:
    """Runs that agree with the facts, and whether they are all of them."""
    devices: tuple[Device, ...] = tuple(DEVICES.values()) if facts.arch is None else (DEVICES[facts.arch],)
    ways = list(
        itertools.product(
            devices,
            itertools.product(*facts.open_arguments.values()),
            itertools.product((True, False), repeat=len(program.flags)),
        )
    )
    complete = len(ways) <= MOST_RUNS
    if not complete:
        ways = random.Random(facts.seed).sample(ways, MOST_RUNS)
    files = tree_of(program.files)
    found = []
    for device, arguments, flags in ways:
        # An environment variable that nobody gives is taken to be unset: that is part of what is asked about.
        with mock.patch.dict(os.environ):
            for name in program.variables:
                os.environ.pop(name, None)
            found.append(
                run_tree(
                    files,
                    {**facts.arguments, **dict(zip(facts.open_arguments, arguments, strict=True))},
                    device=device,
                    attributes=dict(zip(program.flags, flags, strict=True)),
                )
            )
    return found, complete


def answered(program: Program, facts: Facts) -> Route:
    note(program.shown())
    note(f"given {facts.arguments} on {facts.arch}, open {sorted(facts.open_arguments)}")
    route = ask(program.files, facts.arguments, config=config_of(arch=facts.arch))
    note(told(route))
    return route


@settings(RANDOM, max_examples=120)
@given(program=programs(hard=True), seed=st.integers(0, 2**32))
def test_a_route_is_never_wrong(program: Program, seed: int) -> None:
    facts = said(program, seed, everything=False)
    runs, _ = runs_of(program, facts)
    note(shown(runs))
    never_wrong(answered(program, facts), runs)


def test_what_is_wholly_given_is_answered_exactly() -> None:
    # An interpreter that answers "unknown" to everything is never wrong either.
    precise: list[bool] = []
    compared: list[int] = []

    @settings(RANDOM, max_examples=100)
    @given(program=programs(outside=False), seed=st.integers(0, 2**32))
    def collect(program: Program, seed: int) -> None:
        facts = said(program, seed, everything=True)
        runs, complete = runs_of(program, facts)
        assert complete and len(runs) == 1
        route = answered(program, facts)
        never_wrong(route, runs)
        truly = set(runs[0].kernels)
        sure = route.exact if len(truly) == 1 and not runs[0].raised else not any(one.when for one in route.reached)
        precise.append(set(route.kernels) == truly and sure)
        compared.append(contradicted(route, runs))

    collect()
    share = sum(precise) / len(precise)
    assert share >= 0.97, f"{share:.1%} of {len(precise)} programs are answered exactly"
    assert sum(compared) / len(compared) > 1, "hardly a guard was compared with what a run saw"


def test_what_is_partly_given_leaves_open_what_it_must() -> None:
    # Two ways that exclude each other in a manner nobody tracks may stay in the answer, but seldom.
    tight: list[bool] = []

    @settings(RANDOM, max_examples=100)
    @given(program=programs(), seed=st.integers(0, 2**32))
    def collect(program: Program, seed: int) -> None:
        facts = said(program, seed, everything=False)
        runs, complete = runs_of(program, facts)
        route = answered(program, facts)
        never_wrong(route, runs)
        if complete:
            tight.append(set(route.kernels) == {kernel for run in runs for kernel in run.kernels})

    collect()
    share = sum(tight) / len(tight)
    assert share >= 0.9, f"{share:.1%} of {len(tight)} answers hold no kernel that no run reaches"


def test_the_shapes_that_need_not_be_understood_mostly_are() -> None:
    precise: list[bool] = []

    @settings(RANDOM, max_examples=60)
    @given(program=programs(hard=True, outside=False), seed=st.integers(0, 2**32))
    def collect(program: Program, seed: int) -> None:
        facts = said(program, seed, everything=True)
        runs, _ = runs_of(program, facts)
        route = answered(program, facts)
        never_wrong(route, runs)
        precise.append(set(route.kernels) == set(runs[0].kernels))

    collect()
    share = sum(precise) / len(precise)
    assert share >= 0.6, f"{share:.1%} of {len(precise)} programs are answered with the kernels that run"


@pytest.mark.parametrize("seed", range(3))
def test_the_programs_are_worth_asking_about(seed: int) -> None:
    # Were most of them without a kernel, or all alike, the tests above would say little.
    chosen = random.Random(seed)
    kinds = set()
    reached = 0
    for _ in range(60):
        program = Writer(chosen.randbytes(CHOICES), hard=True).program()
        facts = said(program, chosen.randrange(2**32), everything=True)
        runs, _ = runs_of(program, Facts(facts.arguments, {}, facts.arch, 0))
        kernels = frozenset(kernel for run in runs for kernel in run.kernels)
        kinds.add(kernels)
        reached += bool(kernels)
    assert len(kinds) >= 5 and reached >= 30
