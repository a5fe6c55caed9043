"""What ``kernel check`` and ``kernel bench`` share: whose kernels, in which interpreter, shown how; and the check."""

import secrets
import shlex
import sys
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sparkdiag.cli.lent_python import LAB, lent_python
from sparkdiag.cli.talk import say
from sparkdiag.environment.blobs import open_tree
from sparkdiag.environment.config import read_config
from sparkdiag.errors import EnvironmentFault, ExitCode, UsageError
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.kernel_runs import RevisionUnderTest
from sparkdiag.harmless.documents import redact_argv
from sparkdiag.kernels.heard import Heard
from sparkdiag.kernels.orders import Device, check_order
from sparkdiag.kernels.session import Interpreter, converse, fault_of
from sparkdiag.kernels.sources import RevisionKernels, revision_kernels
from sparkdiag.needed import need_git
from sparkdiag.reporting.kernel_check import check_text
from sparkdiag.reporting.route_document import document_text
from sparkdiag.reproducing.signals import Terminated, sigterm_raises

QUIET_S = 5.0
"""Lines of progress where there is no terminal."""


class Asked(Value):
    """What both commands take."""

    repo: str | None = None
    rev: str | None = None
    env: str | None = None
    device: Device = "auto"
    time_limit_s: float
    seed: int | None = None
    as_json: bool = False


class CheckAsked(Asked):
    """``kernel check``."""

    tolerance: float | None = None


class BenchAsked(Asked):
    """``kernel bench``."""

    shapes: tuple[str, ...] = ()
    repeat: int = 20


def run_check(asked: CheckAsked) -> ExitCode:
    """Check, print, and say how it ended."""
    kernels, revision = revision_of(asked)
    seed = asked.seed if asked.seed is not None else secrets.randbelow(2**31)
    heard = Heard(revision)
    order = check_order(device=asked.device, seed=seed, tolerance=asked.tolerance, revision=kernels)
    again = _again(asked, seed=seed)
    try:
        with sigterm_raises():
            interpreter = interpreter_for(asked)
            with Progress(plain=asked.as_json) as progress:
                talk = converse(interpreter, order, heard=progress.hearing(heard), timeout_s=asked.time_limit_s)
    except (KeyboardInterrupt, Terminated) as stop:
        say(f"interrupted, nothing is left running; again: {again}", to_copy=True)
        return ExitCode.INTERRUPTED if isinstance(stop, KeyboardInterrupt) else ExitCode.TERMINATED
    ended_early = None
    if talk.problem is not None:
        if talk.problem[0] != "device lost":
            raise fault_of(talk.problem, interpreter)
        ended_early = talk.problem[1]
    found = heard.checked(seed=seed, ended_early=ended_early)
    if asked.as_json:
        print(document_text(found.model_dump(mode="json", by_alias=True)))
    else:
        print(check_text(found, again=again))
    if found.passed and found.dispatch is not None and found.dispatch.unknown is not None:
        return ExitCode.INCONCLUSIVE
    return ExitCode.DONE if found.passed else ExitCode.STALL


def revision_of(asked: Asked) -> tuple[RevisionKernels | None, RevisionUnderTest | None]:
    """The kernels of the revision that is asked for, straight from git; the clone is not touched.

    Raises ``UsageError`` for what is no clone or no commit, ``RouteError`` where it has no such kernels.
    """
    repo = asked.repo or (read_config().repo if asked.rev is not None else None)
    if repo is None:
        if asked.rev is not None:
            raise UsageError(
                f"--rev {asked.rev} needs a clone",
                remedy=f"sparkdiag kernel check --repo path/to/vllm --rev {asked.rev}",
            )
        return None, None
    if not Path(repo).is_dir():
        raise UsageError(f"--repo {repo} is no folder", remedy="name a git clone of vLLM: --repo path/to/vllm")
    need_git(f"to read {repo}")
    rev = asked.rev or "HEAD"
    with open_tree(Path(repo), rev) as tree:
        kernels = revision_kernels(tree)
    say(f"running the code of {kernels.revision[:10]} ({rev}): its own kernels, read from {repo}, in a child")
    paths = {name: path for name in kernels.places if (path := kernels.path_of(name)) is not None}
    return kernels, RevisionUnderTest(revision=kernels.revision, asked=rev, repo=repo, paths=paths, notes=kernels.notes)


def interpreter_for(asked: Asked) -> Interpreter:
    """Whose torch and Triton are used; one line says which and why. The lab's is built where it is not there yet.

    Raises ``UsageError`` for an environment that lends no interpreter, ``EnvironmentFault`` where it cannot be built.
    """
    spec_text, why = _spec(asked)
    if spec_text is None:
        say(f"environment: {sys.executable}, {why}")
        return Interpreter(
            python=sys.executable,
            spec=f"existing:{sys.executable}",
            takes_pythonpath=not sys.flags.ignore_environment,
        )
    say(f"environment: {spec_text}, {why}")
    takes = "kernels take torch from --env and code from --rev"
    python, others = lent_python(spec_text, takes=takes, plain=asked.as_json)
    return Interpreter(python=python, spec=spec_text, takes_pythonpath=others)


def _spec(asked: Asked) -> tuple[str | None, str]:
    """The environment's spec, None for the interpreter that runs sparkdiag, and why."""
    if asked.env is not None:
        return asked.env, "as asked"
    configured = read_config().env
    if configured is not None:
        return configured, "from your config file"
    if find_spec("torch") is not None and find_spec("triton") is not None:
        return None, "which runs sparkdiag and has torch and Triton"
    if asked.device == "cuda":
        raise EnvironmentFault(
            "no environment is named, sparkdiag's own interpreter has no torch, and the lab's torch knows no CUDA",
            remedy="--env existing:PYTHON with a CUDA torch and Triton (or set env in your config file)",
        )
    return LAB, "the embedded lab's (its torch is for the CPU; --env existing:PYTHON for a GPU)"


class Progress:
    """What the child is at: on a terminal one line drawn over, else a line now and then, on stderr."""

    def __init__(self, *, plain: bool) -> None:
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
        drawn = console.is_terminal and not console.is_dumb_terminal and not plain
        self._status = console.status("starting torch", spinner="line") if drawn else None
        self._next_s = time.monotonic() + QUIET_S

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, text: str) -> None:
        """What goes on now."""
        from rich.markup import escape

        from sparkdiag.harmless.excerpt import one_line

        if self._status is not None:
            self._status.update(escape(one_line(text, limit=120)))
        elif time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + QUIET_S
            say(text)

    def hearing(self, heard: Heard, *, before: Callable[[], str] = str) -> Callable[[Mapping[str, Any]], None]:
        """Takes what the child says: shows what is progress, with ``before`` in front of it, and keeps the rest."""

        def hear(said: Mapping[str, Any]) -> None:
            if "progress" in said:
                self.show(before() + str(said["progress"]))
            heard.hear(said)

        return hear


def _again(asked: CheckAsked, *, seed: int) -> str:
    parts = ["sparkdiag", "kernel", "check"]
    for option, value in (("--repo", asked.repo), ("--rev", asked.rev), ("--env", asked.env)):
        parts += [option, value] if value is not None else []
    parts += ["--device", asked.device] if asked.device != "auto" else []
    parts += ["--tolerance", f"{asked.tolerance:g}"] if asked.tolerance is not None else []
    return shlex.join(redact_argv([*parts, "--seed", str(seed)]))
