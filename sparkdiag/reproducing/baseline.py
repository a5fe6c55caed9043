"""Where the healthy time comes from: a control run, the user, the scenario's reference, the fast kernel timed here.

In the order of design section 4, and never measured on the path under suspicion.
"""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from sparkdiag.environment.model import Environment
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.run import Host, RunRecord
from sparkdiag.evidence.timeline import BUSY_SHARE
from sparkdiag.evidence.verdict import Baseline
from sparkdiag.judging.baseline import reference_baseline
from sparkdiag.observing.cpu import cpu_point, read_cpu
from sparkdiag.recording.listing import list_runs
from sparkdiag.scenario.model import Scenario

FAST_KERNEL_TIMEOUT_S = 120
_LEFT_OUT = {"dcp", "env"}
"""A stored run keeps the values of allow-listed variables only, so ``env`` cannot be compared."""


class KernelTiming(Value):
    """What the environment's fast-kernel timing prints: one JSON line."""

    seconds: float
    layers: int
    chunks: int
    timed_chunks: int
    how: str = ""
    others_share: float | None = None
    """Of the machine's CPU time, used by other programs while it was timed."""


def comparable(record: RunRecord, *, scenario: Scenario, environment: Environment, host: Host) -> bool:
    """Whether a finished run is a healthy control for ``scenario``: same prompt, code and machine, at DCP 1."""
    try:
        theirs = Scenario.model_validate(record.scenario)
    except ValidationError:
        return False
    verdict = record.verdict
    return (
        verdict is not None
        and verdict.outcome == "completed"
        and verdict.needle == "retrieved"
        and record.dcp is not None
        and record.dcp.size == 1
        and record.timings_s.prompt_to_first_token_s is not None
        and record.environment.get("key") == environment.key
        and record.environment.get("revision_sha") == environment.revision_sha
        and theirs.prompt.model_dump(exclude={"seed", "depth"}) == scenario.prompt.model_dump(exclude={"seed", "depth"})
        and theirs.server.model_dump(exclude=_LEFT_OUT) == scenario.server.model_dump(exclude=_LEFT_OUT)
        and record.host is not None
        and (record.host.cpu, record.host.cores, record.host.gpus) == (host.cpu, host.cores, host.gpus)
    )


def baseline_of(record: RunRecord, *, run_name: str) -> Baseline:
    """The control run's own time to first token, in seconds."""
    seconds = record.timings_s.prompt_to_first_token_s
    if seconds is None:
        raise ValueError("the control run has no time to first token")
    return Baseline(kind="control-run", seconds=seconds, source=f"DCP 1, same prompt: {run_name}")


def earlier_control(runs_dir: Path, *, scenario: Scenario, environment: Environment, host: Host) -> Baseline | None:
    """The newest comparable DCP 1 run in ``runs_dir``; none for a scenario that itself runs at DCP 1."""
    if scenario.server.dcp == 1:
        return None
    for path, record in list_runs(runs_dir):
        if comparable(record, scenario=scenario, environment=environment, host=host):
            return baseline_of(record, run_name=path.name)
    return None


def from_fast_kernel(scenario: Scenario, timing: KernelTiming) -> Baseline:
    """The healthy time from the timed kernel and the share it has of a healthy prefill."""
    share = scenario.baseline.fast_kernel_share
    others = timing.others_share
    if others is None:
        beside = ""
    elif others > BUSY_SHARE:
        beside = f"; other programs used {others:.0%} of the machine's CPU time meanwhile, so this may be far too long"
    else:
        beside = f"; other programs used {others:.0%} of the machine's CPU time meanwhile"
    return Baseline(
        kind="fast-kernel",
        seconds=timing.seconds / share,
        source=(
            f"{timing.seconds:.2f} s on this machine over {timing.layers} layers x {timing.chunks} chunks"
            f" ({timing.timed_chunks} timed), taken as {share:.0%} of a healthy prefill{beside}"
        ),
    )


def time_fast_kernel(scenario: Scenario, environment: Environment) -> KernelTiming | str:
    """Run the environment's own timing in a bounded child; a string says why there is none."""
    argv = [environment.python, "-m", "sparklab.baseline"]
    argv += ["--prompt-tokens", str(scenario.prompt.tokens), "--chunk-tokens", str(scenario.server.chunk_tokens)]
    paths = ":".join(environment.pythonpath)
    try:
        before = read_cpu((), t_s=time.monotonic())
        done = subprocess.run(
            argv,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": paths, **environment.env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=FAST_KERNEL_TIMEOUT_S,
            check=False,
        )
        # The child has been waited for: what it used is in our own account.
        point = cpu_point(before, read_cpu((), t_s=time.monotonic()), server_nice=0)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return f"the fast kernel could not be timed: {error}"
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    try:
        timing = KernelTiming.model_validate(json.loads(lines[-1]))
        return timing.model_copy(update={"others_share": point.others_share if point is not None else None})
    except (IndexError, ValueError):
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no output"])[-1]
        return f"the fast kernel could not be timed (exit {done.returncode}): {last[:200]}"


def find_baseline(
    scenario: Scenario,
    *,
    environment: Environment,
    host: Host,
    runs_dir: Path,
    given_s: float | None,
    say: Callable[[str], None],
) -> Baseline | None:
    """The first that can be had; ``say`` hears what was tried in vain."""
    if given_s is not None:
        return Baseline(kind="given", seconds=given_s, source="--baseline-s, as given by the user")
    found = earlier_control(runs_dir, scenario=scenario, environment=environment, host=host)
    found = found or reference_baseline(scenario, prompt_tokens=scenario.prompt.tokens)
    if found is not None or not scenario.baseline.fast_kernel:
        return found
    timing = time_fast_kernel(scenario, environment)
    if isinstance(timing, str):
        say(timing)
        return None
    return from_fast_kernel(scenario, timing)
