"""The whole diagnosis: which checks, in which order, and nothing of ours left at its end."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from sparkdiag.doctor import environment, look_environment, look_machine, look_others, look_sampling
from sparkdiag.doctor.examine import Check, examine, let_end
from sparkdiag.doctor.finding import Finding
from sparkdiag.doctor.need import Asked, Known, Name, needed

ENVIRONMENT_LIMIT_S = 25.0
CLONE_LIMIT_S = 45.0
"""Up to six questions to git, each bounded to less."""
SAMPLING_LIMIT_S = 25.0
"""Five trial looks and the start and end of a child, each bounded."""
END_TIMEOUT_S = 5.0


def diagnose(
    asked: Asked, *, on_start: Callable[[str], None], on_finding: Callable[[Finding], None]
) -> tuple[Finding, ...]:
    """Every finding, told as it comes. Takes seconds where nothing hangs; never raises for what it finds."""
    known: list[Known] = []

    def look() -> tuple[Finding, ...]:
        what, found = look_environment.look_at_environment(asked)
        known.append(what)
        return found

    with _no_child_left():
        first = Check("environment", look, why="the server under test is launched from it", limit_s=ENVIRONMENT_LIMIT_S)
        found = examine([first], on_start=on_start, on_finding=on_finding)
        rest = checks(asked, known[0] if known else Known())
        return (*found, *examine(rest, on_start=on_start, on_finding=on_finding))


def checks(asked: Asked, known: Known) -> tuple[Check, ...]:
    """What is looked at after the environment."""
    looks = _looks(asked, known)
    limits: dict[Name, float] = {
        "clone": CLONE_LIMIT_S,
        "sample-child": SAMPLING_LIMIT_S,
        "sample-other": SAMPLING_LIMIT_S,
        "sample-environment": SAMPLING_LIMIT_S,
    }
    return tuple(
        Check(name, looks[name]) if name not in limits else Check(name, looks[name], limit_s=limits[name])
        for name in needed(asked, known)
    )


def _looks(asked: Asked, known: Known) -> dict[Name, Callable[[], tuple[Finding, ...]]]:
    scenario, ranks = asked.scenario, asked.ranks
    return {
        "model": lambda: look_environment.model(asked),
        "suspect-code": lambda: look_environment.suspect_code(scenario, known),
        "dcp-tp": lambda: (environment.judge_sizes(asked),),
        "git": lambda: look_environment.git(lab=scenario.lab),
        "uv": look_environment.uv,
        "clone": lambda: look_environment.clone(
            scenario, folder=asked.repo or known.checkout or ".", revision=known.revision
        ),
        "sample-child": look_sampling.sample_child,
        "sample-other": look_sampling.sample_other,
        "sample-environment": lambda: look_sampling.sample_environment(known.python or ""),
        "priority": look_machine.priority,
        "gpu": lambda: look_others.gpu(scenario, ranks=ranks),
        "memory": lambda: look_machine.memory(lab=scenario.lab, ranks=ranks),
        "cores": lambda: look_machine.cores(lab=scenario.lab, ranks=ranks),
        "shared-memory": lambda: look_machine.shared_memory(ranks=ranks),
        "disk": lambda: look_machine.disk(runs_dir=Path(asked.runs_dir), build_bytes=known.build_bytes),
        "port": look_machine.port,
        "open-files": look_machine.open_files,
        "clock": look_machine.clock,
        "machine-lock": look_others.lock,
        "leftovers": look_others.leftovers,
    }


@contextmanager
def _no_child_left() -> Iterator[None]:
    """Whatever a check that was given up or interrupted has started is ended: our own children, and only new ones."""
    before = set(psutil.Process().children(recursive=True))
    try:
        yield
    finally:
        started = [one for one in psutil.Process().children(recursive=True) if one not in before]
        for child in started:
            with contextlib.suppress(psutil.Error):
                child.kill()
        # Its own thread reaps it: a child that is reaped here would look lost there.
        let_end(END_TIMEOUT_S)
