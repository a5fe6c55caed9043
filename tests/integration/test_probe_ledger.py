"""The dispatch ledger inside real processes, on every Python that vLLM runs on, and beside a real torch."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from sparkdiag.evidence.ledger import DispatchCall, DispatchLine, DispatchNotWrapped, DispatchTotals, DispatchWrapped
from sparkdiag.probe.locate import dispatch_file, package_folder
from tests.integration.executing_case import torch_python
from tests.integration.serving_case import until
from tests.integration.test_probe_agent import _interpreter as interpreter

pytestmark = pytest.mark.integration

LINE: TypeAdapter[Any] = TypeAdapter(DispatchLine)
PACKAGE = {
    "__init__": "",
    "kernels": """
def moved(x, *, clean=False):
    "Where it lies today."
    return ("moved", x, clean)

def raising(error):
    raise error
""",
    "top": "from watched_package.kernels import moved\ndef use(x):\n    return moved(x, clean=True)\n",
    "inside": "def use(x):\n    from watched_package.kernels import moved\n    return moved(x)\n",
    "table": "from .kernels import moved as f\nTABLE = {'moved': f}\ndef use(x):\n    return TABLE['moved'](x)\n",
    "star": "from .kernels import *\ndef use(x):\n    return moved(x)\n",
    "circle_a": "from . import circle_b\ndef circular(x):\n    return x * 2\ndef use(x):\n    return circle_b.use(x)\n",
    "circle_b": "from . import circle_a\ndef use(x):\n    return circle_a.circular(x)\n",
    "shapes": """
import functools

def logged(function):
    @functools.wraps(function)
    def inner(*args, **keywords):
        return function(*args, **keywords)
    return inner

@logged
def decorated(q, k, /, v=3, *rest, clean, **more):
    return (q, k, v, rest, clean, sorted(more.items()))

def make(start):
    def closed(by=1):
        nonlocal start
        start += by
        return start
    return closed
closed = make(10)

class Of:
    def method(self, x, y=[1]):
        return (type(self).__name__, x, y, __class__.__name__)
    @staticmethod
    def static(x):
        return x
class Below(Of):
    def method(self, x, y=(2,)):
        return super().method(x, y)
""",
    "left_alone": """
import functools
def generates(x):
    yield x
async def awaits(x):
    return x
@functools.lru_cache(maxsize=None)
def cached(x):
    return x
builtin = max
def recursive(n):
    return 0 if n == 0 else 1 + recursive(n - 1)
class Of:
    def itself(self, n):
        return 0 if n == 0 else 1 + self.itself(n - 1)
def warns(x):
    import warnings
    warnings.warn("from here", stacklevel=2)
""",
    "spawned": """
import sparkdiag_probe
def main():
    sparkdiag_probe.load()
    from watched_package.kernels import moved
    moved("spawned")
""",
}
RECORDED = ("moved", "raising", "circular", "decorated", "closed", "method", "static")
LEFT_ALONE = ("generates", "awaits", "cached", "builtin", "recursive", "itself", "warns")
ROLES = dict.fromkeys((*RECORDED, *LEFT_ALONE), "leaf")
PROGRAM = """
import asyncio, atexit, importlib, inspect, json, multiprocessing, os, pickle, sys, warnings

def everything():
    told = {}
    parts = {name: importlib.import_module("watched_package." + name) for name in json.loads(sys.argv[2])}
    kernels, shapes, alone = parts["kernels"], parts["shapes"], parts["left_alone"]
    for name in ("top", "inside", "table", "star", "circle_a", "circle_b"):
        told[name] = parts[name].use(7)
    told["decorated"] = shapes.decorated(1, 2, 4, 5, clean=True, z=6)
    told["closed"] = [shapes.closed(), shapes.closed(by=5)]
    told["methods"] = [shapes.Below().method(1), shapes.Of.static(2), shapes.Below().static(3)]
    thrown = KeyError("secret")
    try:
        kernels.raising(thrown)
    except KeyError as caught:
        told["raised"] = [caught is thrown, caught.__context__ is None, str(caught)]
    for wrong in (lambda: kernels.moved(), lambda: kernels.moved(1, cleen=2), lambda: shapes.closed(1, 2)):
        try:
            wrong()
        except TypeError as error:
            told.setdefault("wrong", []).append(str(error))
    for function in (kernels.moved, shapes.decorated, shapes.Of.method):
        again = pickle.loads(pickle.dumps(function))
        asked = [str(inspect.signature(function)), inspect.getsource(function), again is function]
        told.setdefault("asked", []).append(asked)
    told["alone"] = [list(alone.generates(1)), asyncio.run(alone.awaits(2)), alone.cached(3), alone.builtin(4, 5)]
    sys.setrecursionlimit(600)
    told["deep"] = [alone.recursive(400), alone.Of().itself(400)]
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        alone.warns(1)
    told["warned"] = [os.path.basename(one.filename) for one in heard]
    return told

def fork():
    from watched_package.kernels import moved
    warnings.simplefilter("ignore")
    pid = os.fork()
    if pid == 0:
        moved("forked")
        atexit._run_exitfuncs()
        os._exit(0)
    os.waitpid(pid, 0)

if __name__ == "__main__":
    if sys.argv[1] == "before":
        for name in json.loads(sys.argv[2]):
            importlib.import_module("watched_package." + name)
    import sparkdiag_probe
    sparkdiag_probe.load()
    print(json.dumps(everything()), flush=True)
    fork()
    import watched_package.spawned
    process = multiprocessing.get_context("spawn").Process(target=watched_package.spawned.main)
    process.start()
    process.join()
"""


def write(folder: Path, program: str, package: dict[str, str]) -> Path:
    (folder / "watched_package").mkdir()
    for name, source in package.items():
        (folder / "watched_package" / f"{name}.py").write_text(source)
    path = folder / "program.py"
    path.write_text(program)
    return path


def environment(folder: Path, probe: Path | None, roles: dict[str, str]) -> dict[str, str]:
    """``probe``: where its files go; None for a process without it."""
    env = {**os.environ, "PYTHONPATH": f"{package_folder()}:{folder}", "PYTHONDONTWRITEBYTECODE": "1"}
    if probe is not None:
        probe.mkdir()
        settings = {"packages": ["watched_package"], "functions": roles, "facts": ["rank"], "guards": ["rank"]}
        env |= {"SPARKDIAG_PROBE_DIR": str(probe), "SPARKDIAG_PROBE_LEDGER": json.dumps(settings)}
    return env


def ran(python: str, path: Path, *args: str, probe: Path | None, roles: dict[str, str]) -> Any:
    """What it printed, as JSON."""
    done = subprocess.run(
        [python, str(path), *args],
        env=environment(path.parent, probe, roles),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return json.loads(done.stdout)


def written(path: Path) -> list[Any]:
    return [LINE.validate_json(line) for line in path.read_text().splitlines()]


def named(lines: list[Any], function: str) -> list[DispatchCall]:
    return [one for one in lines if isinstance(one, DispatchCall) and one.function == function]


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13", "3.14"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_every_python_answers_as_without_it_and_every_call_is_recorded(
    tmp_path: Path, version: str, moment: str
) -> None:
    """``before``: all is imported, and referred to, before the probe is loaded."""
    python, path, probe = interpreter(version), write(tmp_path, PROGRAM, PACKAGE), tmp_path / "probe"
    parts = json.dumps([name for name in PACKAGE if name not in ("__init__", "spawned")])
    plain = ran(python, path, moment, parts, probe=None, roles=ROLES)
    assert ran(python, path, moment, parts, probe=probe, roles=ROLES) == plain
    by_process = [written(one) for one in probe.glob("dispatch-*.jsonl")]
    by_process.sort(key=len)
    forked, spawned = sorted(by_process[:2], key=lambda lines: str(named(lines, "moved")[0].arguments))
    lines = by_process[2]
    for process in (forked, spawned):
        (call,) = named(process, "moved")
        assert call.number == 1 and call.arguments == {"x": "<str>", "clean": False}
    assert len(named(lines, "moved")) == 4 and len(named(lines, "circular")) == 2
    assert {one.arguments["clean"] for one in named(lines, "moved")} == {True, False}
    assert named(lines, "decorated")[0].arguments == {"q": 1, "k": 2, "v": 4, "args": [5], "clean": True, "z": 6}
    assert [one.returned for one in named(lines, "closed")] == [11, 16]
    assert len(named(lines, "method")) == 2 and len(named(lines, "static")) == 2
    assert [one.raised for one in named(lines, "raising")] == ["KeyError"]
    reasons = {one.function: one.reason for one in lines if isinstance(one, DispatchNotWrapped)}
    assert "generator or coroutine" in reasons["generates"] and "generator or coroutine" in reasons["awaits"]
    assert "cache" in reasons["cached"] and "builtin" in reasons["builtin"]
    assert "calls itself" in reasons["recursive"] and "calls itself" in reasons["itself"]
    assert "caller" in reasons["warns"]
    assert not reasons.keys() & {one.function for one in lines if isinstance(one, DispatchWrapped)}
    totals = [one for one in lines if isinstance(one, DispatchTotals)][-1]
    assert sum(one.calls for one in totals.counts) == len([one for one in lines if isinstance(one, DispatchCall)])
    assert "secret" not in "".join(one.read_text() for one in probe.iterdir())


HANGS = """
import sys, sparkdiag_probe
sparkdiag_probe.load()
from watched_package.kernels import entry
entry()
"""


def test_a_process_killed_in_a_call_leaves_its_line(tmp_path: Path) -> None:
    kernels = "def hangs(x):\n    import time\n    time.sleep(100)\ndef entry():\n    rank = 3\n    hangs(5)\n"
    path = write(tmp_path, HANGS, {"__init__": "", "kernels": kernels})
    probe = tmp_path / "probe"
    env = environment(tmp_path, probe, {"hangs": "leaf", "entry": "entry"})
    with subprocess.Popen([sys.executable, str(path)], env=env) as process:
        try:
            found = dispatch_file(probe, process.pid)
            until(
                lambda: found.exists() and '"hangs","module"' in found.read_text() and '"took_s"' in found.read_text()
            )
        finally:
            process.send_signal(signal.SIGKILL)
    lines = written(found)
    (hangs,), (entry,) = named(lines, "hangs"), named(lines, "entry")
    assert (hangs.took_s, hangs.parent, hangs.arguments) == (None, entry.number, {"x": 5})
    assert hangs.seen == {"rank": 3} and entry.took_s is None


TORCH = """
import json, sys, warnings, weakref
import torch
import watched_package.kernels as kernels
op = torch.library.custom_op("watched::op", kernels.op, mutates_args=())
op.register_fake(lambda x, by: torch.empty_like(x))
from watched_package.kernels import compiled, traced, keeps
import sparkdiag_probe
sparkdiag_probe.load()
warnings.simplefilter("ignore")
warnings.simplefilter("error", torch.jit.TracerWarning)
x, told = torch.arange(512.0).reshape(256, 2), {}
def caller(x):
    return compiled(x, 2) * 3
compiled_caller = torch.compile(caller, fullgraph=True, backend="eager")
told["compiled"] = [compiled_caller(x).sum().item(), compiled_caller(x + 1).sum().item(), caller(x).sum().item()]
def of_op(x):
    return torch.ops.watched.op(x, 2.0) + 1
told["op"] = [torch.compile(of_op, fullgraph=True, backend="eager")(x).sum().item(), op(x, 3.0).sum().item()]
graph = torch.jit.trace(traced, (x,), check_trace=False)  # which calls it untraced too
told["traced"] = [str(graph.graph).count("aten::"), graph(x).sum().item()]
box = [torch.ones(300, 4)]
gone = weakref.ref(box[0])
keeps(box.pop())
told["freed"] = gone() is None
told["answers"] = [keeps(x) is x, keeps(None)]
print(json.dumps(told))
"""
TORCH_KERNELS = """
import torch
def op(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by
def compiled(x, by):
    return torch.sin(x) + by
def traced(x):
    return torch.stack([x, x]) + 1
def keeps(x):
    return x
"""


def test_beside_a_real_torch_it_is_compiled_traced_and_freed_as_without_it(tmp_path: Path) -> None:
    python = str(torch_python())
    path = write(tmp_path, TORCH, {"__init__": "", "kernels": TORCH_KERNELS})
    roles = dict.fromkeys(("op", "compiled", "traced", "keeps"), "leaf")
    probe = tmp_path / "probe"
    plain = ran(python, path, probe=None, roles=roles)
    assert plain["freed"]
    assert ran(python, path, probe=probe, roles=roles) == plain
    (found,) = probe.glob("dispatch-*.jsonl")
    lines = written(found)
    assert not [one for one in lines if isinstance(one, DispatchNotWrapped)]
    shape = "float32[256, 2]"
    assert named(lines, "op")[0].arguments == {"x": shape, "by": 2.0}
    assert [(one.arguments["x"], one.returned) for one in named(lines, "compiled")] == [(shape, shape)]
    assert named(lines, "traced") == []
    assert [one.returned for one in named(lines, "keeps")] == ["float32[300, 4]", shape, None]
