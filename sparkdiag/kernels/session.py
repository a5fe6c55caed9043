"""Starts the kernels' child in the environment under test and hears it out: bounded, and gone afterwards.

The kernel kills the child when this process dies, and its whole session is killed here in any case: by Ctrl-C too,
which the child, in a session of its own, does not get.
"""

import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkdiag.errors import EnvironmentFault
from sparkdiag.harmless.excerpt import one_line

MAIN = Path(__file__).parent / "inside" / "main.py"
LONGEST_LINE = 1 << 20
MOST_SAID_BYTES = 32 << 20
TAIL_BYTES = 8192
READ_BYTES = 1 << 16
BEFORE_READY_S = 300.0
"""For loading torch from a cold disk on a busy machine."""

PASSED_ON = (
    "PATH", "HOME", "USER", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "CC", "CXX",
    "XDG_CACHE_HOME", "CONDA_PREFIX", "VIRTUAL_ENV",
)  # fmt: skip
PASSED_ON_FAMILIES = ("LC_", "CUDA_", "NVIDIA_", "TRITON_", "TORCH_", "PYTORCH_", "OMP_", "MKL_", "DG_", "VLLM_")
"""What torch, Triton, DeepGEMM and vLLM go by. A revision's code runs in the child: nothing else of ours is its own to
read, tokens least of all."""

Said = Mapping[str, Any]


class OutOfTime(EnvironmentFault):
    """The child was not done when its time was up."""


@dataclass(frozen=True)
class Interpreter:
    """Whose torch and Triton are used."""

    python: str
    spec: str
    """As the environment was asked for, for the next command."""
    takes_pythonpath: bool
    """An interpreter that somebody set up by PYTHONPATH keeps it; one that sparkdiag built gets none."""

    def argv(self, parent: int) -> tuple[str, ...]:
        """The child's command line."""
        isolated = () if self.takes_pythonpath else ("-E", "-s")
        return (self.python, *isolated, str(MAIN), str(parent))

    def environ(self, ours: Mapping[str, str], *, folder: str) -> dict[str, str]:
        """The child's environment, of ours. Compiled kernels go to ``folder`` unless the user named a place. Pure."""
        kept = {name: value for name, value in ours.items() if name in PASSED_ON or name.startswith(PASSED_ON_FAMILIES)}
        if self.takes_pythonpath:
            kept |= {name: ours[name] for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE") if name in ours}
        kept.setdefault("TRITON_CACHE_DIR", folder)
        kept.pop("TRITON_INTERPRET", None)  # decided by the device
        return {
            **kept,
            "PYTHONDONTWRITEBYTECODE": "1",
            "VLLM_NO_USAGE_STATS": "1",
            "VLLM_PLUGINS": "",
            "VLLM_LOGGING_LEVEL": "ERROR",
        }


class Talk:
    """What the child has said so far."""

    def __init__(self, heard: Callable[[Said], None]) -> None:
        self._heard = heard
        self._rest = b""
        self._bytes = 0
        self.ready = self.ended = False
        self.problem: tuple[str, str] | None = None
        self.wrong = ""
        self.doing = "starting"
        """The last progress, for what is said of a crash."""

    def take(self, data: bytes) -> None:
        """Hear bytes; sets ``wrong`` where they are more than an answer holds, or none."""
        self._bytes += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if self._bytes > MOST_SAID_BYTES or len(self._rest) > LONGEST_LINE:
            self.wrong = "it said more than an answer holds"
        for line in lines:
            if not (self.wrong or self.ended or self.problem):
                self._line(line)

    def _line(self, line: bytes) -> None:
        said: Any = None
        with suppress(ValueError, RecursionError):
            said = json.loads(line)
        if not isinstance(said, dict):
            self.wrong = "what it said is no answer"
        elif "end" in said:
            self.ended = True
        elif "problem" in said:
            self.problem = (str(said["problem"]), one_line(str(said.get("text", ""))))
        else:
            self.ready = self.ready or "ready" in said
            if "progress" in said:
                self.doing = one_line(str(said["progress"]), limit=120)
            self._heard(said)


def converse(
    interpreter: Interpreter, order: Mapping[str, Any], *, heard: Callable[[Said], None], timeout_s: float
) -> Talk:
    """Run the child to its end; ``heard`` gets each thing it says.

    Returns the talk, whose ``problem`` tells what the child found missing. Raises ``OutOfTime`` ``timeout_s`` after it
    was ready, ``EnvironmentFault`` where it cannot be started, crashes or says nonsense.
    """
    talk = Talk(heard)
    with ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="sparkdiag-kernel-", ignore_cleanup_errors=True)
        )
        errors = stack.enter_context(tempfile.TemporaryFile())
        # On disk, so that a large order cannot block against a child that does not read.
        orders = stack.enter_context(tempfile.TemporaryFile())
        orders.write(json.dumps(order).encode() + b"\n")
        orders.seek(0)
        try:
            child = subprocess.Popen(
                interpreter.argv(os.getpid()),
                cwd=folder,
                env=interpreter.environ(os.environ, folder=str(Path(folder) / "triton")),
                stdin=orders,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            raise EnvironmentFault(
                f"{interpreter.python} cannot be started: {error.strerror or error}",
                remedy="name an interpreter that has torch and triton: --env existing:PYTHON",
            ) from error
        stack.callback(_end, child)
        _hear(child, talk, timeout_s=timeout_s)
        if not (talk.ended or talk.problem):
            raise _crashed(child, talk, python=interpreter.python, tail=_tail(errors))
    return talk


def _hear(child: "subprocess.Popen[bytes]", talk: Talk, *, timeout_s: float) -> None:
    assert child.stdout is not None  # noqa: S101 - asked for above
    running, began, limit_s = False, time.monotonic(), BEFORE_READY_S
    with selectors.DefaultSelector() as wanted:
        wanted.register(child.stdout, selectors.EVENT_READ)
        while not (talk.ended or talk.wrong or talk.problem):
            if talk.ready and not running:
                running, began, limit_s = True, time.monotonic(), timeout_s
            left_s = began + limit_s - time.monotonic()
            if left_s <= 0:
                raise OutOfTime(
                    f"the kernels were not done after {limit_s:g} s (at: {talk.doing})",
                    remedy="give it longer, --time-limit SECONDS, or fewer shapes",
                )
            if not wanted.select(left_s):
                continue
            data = os.read(child.stdout.fileno(), READ_BYTES)
            if not data:
                return
            talk.take(data)


def _crashed(child: "subprocess.Popen[bytes]", talk: Talk, *, python: str, tail: str) -> EnvironmentFault:
    remedy = f"see whether it can be had by itself: {python} -c 'import torch, triton'"
    if talk.ready:
        remedy = "run it once more; with the same --seed the inputs are the same"
    return EnvironmentFault(
        f"the kernels' process {talk.wrong or _how(child)} (at: {talk.doing})",
        remedy=remedy,
        details=(tail,) if tail else (),
    )


def _how(child: "subprocess.Popen[bytes]") -> str:
    try:
        code = child.wait(5)
    except subprocess.TimeoutExpired:
        return "closed its answer and went on"
    if code >= 0:
        return f"ended with exit status {code}"
    name = str(-code)
    with suppress(ValueError):
        name = signal.Signals(-code).name
    also = ", perhaps by the system for want of memory" if code == -signal.SIGKILL else ""
    return f"was killed by {name}{also}"


def _tail(errors: Any) -> str:
    """The last line that the child left on standard error, which is where Python's own last words are."""
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - TAIL_BYTES))
    lines = [line for line in errors.read(TAIL_BYTES).decode(errors="replace").splitlines() if line.strip()]
    return one_line(lines[-1]) if lines else ""


def _end(child: "subprocess.Popen[bytes]") -> None:
    """Kill the session, whatever is left of it, and collect the child."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    with suppress(ProcessLookupError):
        child.kill()
    if child.stdout is not None:
        with suppress(OSError):
            child.stdout.close()
    child.wait()


def fault_of(problem: tuple[str, str], interpreter: Interpreter) -> EnvironmentFault:
    """What the child found missing, with the next thing to do. Pure."""
    kind, text = problem
    python = interpreter.python
    another = "or name another environment: --env existing:PYTHON"
    told = {
        "no torch": (f"{python} has no torch ({text})", f"{python} -m pip install torch triton, {another}"),
        "no triton": (f"{python} has no Triton that would do ({text})", f"{python} -m pip install triton, {another}"),
        "no device": (
            f"no GPU for the kernels: {text}",
            "sparkdiag kernel check --device cpu checks the numbers without one, in Triton's interpreter",
        ),
        "toolchain": (
            f"Triton cannot compile here: {text}",
            f"it needs a C compiler (CC) and Python's headers, and a driver that fits torch's CUDA; {another}",
        ),
        "revision": (
            f"the revision's kernels cannot be loaded: {text}",
            "give an environment whose vLLM is near that revision: --env existing:PYTHON",
        ),
        "device lost": (f"the device failed: {text}", "compute-sanitizer, or CUDA_LAUNCH_BLOCKING=1, tells where"),
        "crash": (text, "time the rows that are missing by themselves: sparkdiag kernel bench --shape MxNxH"),
        "memory": (f"the kernels' process ran {text}", "smaller shapes: sparkdiag kernel bench --shape 1024x8192x64"),
    }
    message, remedy = told.get(kind, (f"the kernels' process says {kind}: {text}", another))
    return EnvironmentFault(message, remedy=remedy)
