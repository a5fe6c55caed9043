"""The child: ``python main.py PARENT``. Standard input: one JSON line, the order. Standard output: JSON lines.

``ready`` (what is here), ``revision`` (how it was loaded), ``progress``, ``checked``, ``pair``, ``dispatch``,
``timed``, ``beat``, and last ``end`` or ``problem``. What kernels and libraries print goes to standard error. A
revision's code runs in this process and could say anything: the parent takes what it hears as data about that revision.
"""

# Imported before anything of sparkdiag's can be: standard library, and no pathlib.
# ruff: noqa: PTH100, PTH120

from __future__ import annotations

import ctypes
import json
import os
import sys
import types
from collections.abc import Callable
from typing import Any

PR_SET_PDEATHSIG, SIGKILL = 1, 9


class Problem(Exception):
    """Why there is no answer: a kind that the parent knows a remedy for, and the words."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


def main() -> None:
    """Take the order, carry it out, say how it ended."""
    parent = int(sys.argv[1])
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    answer = os.dup(1)
    os.dup2(2, 1)
    find_own_folder()

    def say(**what: Any) -> None:
        data = json.dumps(what).encode() + b"\n"
        while data:
            data = data[os.write(answer, data) :]

    try:
        carry_out(json.loads(sys.stdin.buffer.readline()), say)
    except Problem as problem:
        say(problem=problem.kind, text=str(problem))
    except MemoryError:
        say(problem="memory", text="out of memory")
    else:
        say(end=True)
    os._exit(0)  # a device that is lost makes a long farewell


def find_own_folder() -> None:
    """Have this folder found by its name, with nothing else of sparkdiag and without a change of the search path:
    modules called ``inputs`` or ``timing`` must be the environment's own."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if entry and os.path.abspath(entry) != here]
    for name in ("sparkdiag", "sparkdiag.kernels", "sparkdiag.kernels.inside"):
        package = types.ModuleType(name)
        package.__path__ = [here] if name.endswith("inside") else []
        sys.modules[name] = package


def carry_out(order: dict[str, Any], say: Callable[..., None]) -> None:
    """Load what is needed, and check or time it. Raises ``Problem``."""
    facts = look_around(order["device"])
    say(ready=facts)
    device = facts["device"]
    from sparkdiag.kernels.inside import benching, checking, failing, subjects
    from sparkdiag.kernels.inside.inputs import Case

    cases = [Case(**case) for case in order["cases"][device]]
    found = [*subjects.own_pair(device)] if order["own"] else []
    pairs = [("sparkdiag_fallback", "sparkdiag_triton")] if order["own"] else []
    if device != "cpu" and order["deepgemm"]:
        installed = subjects.deepgemm()
        found += [installed] if installed is not None else []
    if order.get("revision"):
        # Last: a kernel that loses the device takes with it what would come after.
        found += of_revision(order["revision"], device, say)
        pairs.append(("revision_fallback", "revision_triton"))
    try:
        if order["what"] == "check":
            checking.check(
                found, cases, seed=order["seed"], device=device, tolerance=order["tolerance"], pairs=pairs, say=say
            )
        else:
            say(subjects=[{"key": one.key, "name": one.name} for one in found])
            benching.bench(
                found,
                cases,
                seed=order["seed"],
                device=device,
                repeat=order["repeat"],
                budget_s=order["budget_s"],
                say=say,
            )
    except failing.EnvironmentTrouble as error:
        raise Problem("toolchain", str(error)) from error
    except failing.DeviceLost as error:
        raise Problem("device lost", str(error)) from error


def of_revision(asked: dict[str, Any], device: str, say: Callable[..., None]) -> list[Any]:
    """The revision's kernels; how they were loaded, and its dispatch contract where it has one, are said."""
    from sparkdiag.kernels.inside import dispatch, revision, subjects

    say(progress="loading the revision's kernels")
    try:
        loaded = revision.load(asked["texts"], places=asked["places"], device=device)
    except revision.NotLoaded as error:
        raise Problem("revision", str(error)) from error
    say(revision=loaded.over)
    if revision.DISPATCH in loaded.functions:
        say(dispatch=dispatch.dispatch_contract(loaded, device=device))
    return list(subjects.revision_pair(loaded))


def look_around(asked: str) -> dict[str, Any]:
    """What this interpreter and this machine have. Raises ``Problem``."""
    try:
        import torch
    except ImportError as error:
        raise Problem("no torch", f"{error}") from error
    seen = torch.cuda.is_available()
    device = asked if asked != "auto" else "cuda" if seen else "cpu"
    if device == "cuda" and not seen:
        built = "its torch was built without CUDA" if torch.version.cuda is None else "torch sees no CUDA device"
        raise Problem("no device", built)
    if device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"
    try:
        import triton
    except ImportError as error:
        raise Problem("no triton", f"{error}") from error
    facts = {
        "device": device,
        "python": ".".join(map(str, sys.version_info[:3])),
        "torch": str(torch.__version__),
        "triton": str(triton.__version__),
    }
    if device == "cpu":
        torch.set_num_threads(max(1, min(4, torch.get_num_threads())))
        return facts
    torch.backends.cuda.matmul.allow_tf32 = False  # torch's own default, whatever the environment's code sets
    properties = torch.cuda.get_device_properties(0)
    free, total = torch.cuda.mem_get_info()
    return {
        **facts,
        "gpu": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "cuda": str(torch.version.cuda),
        "free_bytes": free,
        "total_bytes": total,
    }


if __name__ == "__main__":
    main()
