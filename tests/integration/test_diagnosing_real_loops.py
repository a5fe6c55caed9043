"""Loops inferred from real py-spy looks at a real child, beside what the judge finds when a scenario names them."""

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from sparkdiag.diagnosing.loop_rate import median_slope
from sparkdiag.diagnosing.loops import loops_in
from sparkdiag.diagnosing.movement import movement_of
from sparkdiag.evidence.dump import ProcessDump
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.judging.progress import CallPosition, position_of
from sparkdiag.judging.signature import look_at
from sparkdiag.observing.pyspy import PySpy, find_pyspy
from sparkdiag.scenario.model import LoopVariable, Signature
from sparkdiag.watching.looks import looks_of

pytestmark = pytest.mark.integration

SIGNATURE = Signature(
    function="logits",
    kind="torch-fallback",
    loop=(
        LoopVariable(index="head_start", step="head_chunk_size", stop="num_heads"),
        LoopVariable(index="k_start", step="k_chunk_size", stop="num_keys"),
    ),
    call_identity=("num_rows", "num_heads", "num_keys"),
    rows="num_rows",
    keys="num_keys",
)
RATE_TOLERANCE = 0.05
"""Of the inferred rate against the named loops' on the same looks."""

CHILD = """
import os, sys

gate, said = os.open(sys.argv[1], os.O_RDONLY), os.open(sys.argv[2], os.O_WRONLY)
FREE = sys.argv[3] == "free"

def one_pass(begun):
    if not FREE:
        os.write(said, b".")
        os.read(gate, 1)
    elif not begun:
        os.write(said, b".")
    else:
        sum(range(20_000))

def logits(num_rows, num_heads, num_keys):
    head_chunk_size, k_chunk_size, matmuls = 2, 512, 0
    for head_start in range(0, num_heads, head_chunk_size):
        head_end = min(head_start + head_chunk_size, num_heads)
        for k_start in range(0, num_keys, k_chunk_size):
            k_end = min(k_start + k_chunk_size, num_keys)
            one_pass(matmuls)
            matmuls += 1

def forward():
    for chunk in range(1, 40):
        logits(8192, 100_000 if FREE else 64, 3900 * chunk)

forward()
"""


@dataclass(frozen=True)
class Child:
    """``gate``: a byte lets it do one pass; ``said``: a byte each time it stands before one."""

    process: "subprocess.Popen[bytes]"
    gate: int
    said: int

    def passes(self, count: int) -> None:
        os.write(self.gate, b"." * count)
        for _ in range(count):
            assert os.read(self.said, 1), "the child ended"


@pytest.fixture(params=["stepped"])
def child(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Child]:
    fifos = [tmp_path / "gate", tmp_path / "said"]
    for fifo in fifos:
        os.mkfifo(fifo)
    script = tmp_path / "child.py"
    script.write_text(textwrap.dedent(CHILD), encoding="utf-8")
    process = subprocess.Popen([sys.executable, str(script), *map(str, fifos), request.param])
    gate, said = os.open(fifos[0], os.O_WRONLY), os.open(fifos[1], os.O_RDONLY)
    try:
        assert os.read(said, 1), "the child ended before its loop"
        yield Child(process, gate, said)
    finally:
        process.kill()
        process.wait()
        os.close(gate)
        os.close(said)


@pytest.fixture
def pyspy() -> PySpy:
    binary = find_pyspy()
    assert binary is not None, "py-spy is a dependency of sparkdiag"
    return PySpy(binary, clock=time.monotonic, timeout_s=60)


def look(pyspy: PySpy, child: Child) -> StackSample:
    """A usable look: one that was torn is taken again."""
    for _ in range(20):
        sample = pyspy.dump(child.process.pid).sample
        if sample.usable and sample.main_thread is not None and sample.main_thread.find("logits"):
            return sample
    raise AssertionError(f"no usable look: {sample.error}")


def positions(samples: Sequence[StackSample]) -> list[CallPosition]:
    found = [position_of(look_at(sample, (SIGNATURE,)), None) for sample in samples]
    return [position for position in found if position is not None]


def at(samples: Sequence[StackSample], times_s: Sequence[float]) -> tuple[ProcessDump, ...]:
    looks = looks_of(samples, ())
    return tuple(look.model_copy(update={"at_s": at_s}) for look, at_s in zip(looks, times_s, strict=True))


def named_rate(named: Sequence[CallPosition], times_s: Sequence[float], *, stop: int) -> float:
    points = [(at_s, position.fraction * stop) for at_s, position in zip(times_s, named, strict=True)]
    slope = median_slope(points)
    assert slope is not None
    return slope


def test_the_loops_of_a_call_are_found_as_if_they_had_been_named(child: Child, pyspy: PySpy) -> None:
    samples = [look(pyspy, child)]
    for passes in (7, 11, 3, 20, 16):
        child.passes(passes)
        samples.append(look(pyspy, child))
    times_s = (0.0, 7.0, 18.0, 21.0, 41.0, 57.0)
    movement = movement_of(at(samples, times_s))
    assert movement is not None
    outer, inner = movement.loops
    assert [(one.variable, one.stop_variable, one.stop, one.scope) for one in movement.loops] == [
        ("head_start", "num_heads", 64, "call"),
        ("k_start", "num_keys", 3900, "pass"),
    ]
    named = positions(samples)
    assert [position.passed for position in named] == [0, 7, 18, 21, 41, 57]
    last = {name: index for name, index, _ in named[-1].loops}
    assert (outer.last, inner.last) == (last["head_start"], last["k_start"])
    assert outer.per_s == pytest.approx(named_rate(named, times_s, stop=64), rel=RATE_TOLERANCE)
    assert outer.left_s == pytest.approx((named[-1].total - 57) / 1.0, rel=RATE_TOLERANCE)


def test_a_child_that_stands_still_has_no_loops(child: Child, pyspy: PySpy) -> None:
    child.passes(9)
    movement = movement_of(at([look(pyspy, child) for _ in range(4)], (0.0, 10.0, 20.0, 30.0)))
    assert movement is not None
    assert (movement.what, movement.loops, movement.over_s) == ("nothing", (), 30.0)


def test_calls_that_are_over_before_the_next_look_show_the_size_that_grows(child: Child, pyspy: PySpy) -> None:
    samples = [look(pyspy, child)]
    for call in range(1, 8):
        child.passes(32 * -(-3900 * call // 512) + call)
        samples.append(look(pyspy, child))
    loops = loops_in(at(samples, [2.5 * n for n in range(8)]))
    assert [(one.function, one.variable, one.scope, one.first, one.last) for one in loops] == [
        ("forward", "chunk", "call", 1, 8),
        ("logits", "num_keys", "calls", 3900, 31200),
    ]
    assert [one.per_s for one in loops] == [pytest.approx(0.4), pytest.approx(1560)]


@pytest.mark.parametrize("child", ["free"], indirect=True)
def test_a_loop_that_runs_while_it_is_looked_at_is_found(child: Child, pyspy: PySpy) -> None:
    """Whatever is misread meanwhile, and however slow the machine: both measures are of the same looks."""
    samples: list[StackSample] = []
    for _ in range(40):
        sample = look(pyspy, child)
        heads = {p.loops[0][1] for p in positions([*samples, sample]) if p.loops}
        samples.append(sample)
        if len(samples) >= 8 and len(heads) >= 6:
            break
    outer = loops_in(looks_of(samples, ()))[0]
    assert (outer.variable, outer.stop_variable, outer.scope) == ("head_start", "num_heads", "call")
    named = positions(samples)
    rate = named_rate(named, [position.at_s for position in named], stop=100_000)
    assert outer.per_s == pytest.approx(rate, rel=3 * RATE_TOLERANCE)
