"""What one reproduction is asked to do: everything resolved, nothing started."""

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.verdict import Baseline
from sparkdiag.probe.locate import PROBE_SYNC
from sparkdiag.scenario.model import Scenario

LAUNCH_BLOCKING = {"CUDA_LAUNCH_BLOCKING": "1"}
"""Each kernel is waited for where it is launched (CUDA programming guide, "Environment Variables")."""


class ReproRequest(Value):
    """One ``repro``: a scenario with its overrides applied (the arguments after ``--`` among them), where to run it,
    and where to leave the evidence."""

    scenario: Scenario
    env_spec: str
    revision: str | None = None
    repo: str | None = None
    runs_dir: str
    baseline_s: float | None = None
    """Healthy time to first token given by the user, in seconds."""
    baseline: Baseline | None = None
    """Healthy time from elsewhere (the healthy end of a bisection): nothing else is looked for."""
    control: bool = False
    """Run the same prompt at DCP 1 first and take its time as the baseline."""
    probe: bool = True
    """Load the probe into the server: what proves its identity, and the dispatch ledger."""
    probe_sync: bool = False
    """Let the probe wait for the device around each kernel, so that its times are the kernels' own; slower."""
    take_stacks: bool = True
    """False: a run that nobody samples, to see whether the stall is there without a watcher."""
    launch_blocking: bool = False
    """Start the server with ``CUDA_LAUNCH_BLOCKING=1``: a frame then says what the GPU runs; slower."""
    keep_priority: bool = False
    """Leave the launched server's scheduling group as it is."""
    wait_for_machine: bool = True
    command: tuple[str, ...] = ()
    """What the user typed; redacted before it is kept."""


def control_request(request: ReproRequest) -> ReproRequest:
    """The healthy twin: same prompt, same process shape (TP), DCP 1."""
    server = request.scenario.server.model_copy(update={"dcp": 1})
    scenario = request.scenario.model_copy(update={"server": server})
    return request.model_copy(update={"scenario": scenario, "control": False})


def launched_scenario(request: ReproRequest) -> Scenario:
    """The scenario as the server is started by it."""
    server = request.scenario.server
    more = (LAUNCH_BLOCKING if request.launch_blocking else {}) | (PROBE_SYNC if request.probe_sync else {})
    if not more:
        return request.scenario
    return request.scenario.model_copy(update={"server": server.model_copy(update={"env": {**server.env, **more}})})
