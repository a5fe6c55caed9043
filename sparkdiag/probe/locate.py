"""Where the probe lies and how it is told what to do. Nothing here runs inside the server."""

import json
from pathlib import Path

from sparkdiag.scenario.model import Scenario

PLUGIN = "sparkdiag_probe"
"""Name of its ``vllm.general_plugins`` entry point, for ``VLLM_PLUGINS``."""
CONTROL_FILE = "sample.on"
"""Its presence in the probe's folder starts the in-process sampler; JSON content may set ``period_s``."""


PROBE_SYNC = {"SPARKDIAG_PROBE_SYNC": "1"}
"""The probe waits for the device before and after each leaf function, so that its time is the kernel's."""


def package_folder() -> Path:
    """The folder for the server's PYTHONPATH: it holds the package and the metadata that make vLLM load it."""
    return Path(__file__).parent / "site"


def probe_environment(
    scenario: Scenario,
    *,
    folder: Path,
    ptracer_pid: int | None = None,
    also: tuple[str, ...] = (),
) -> dict[str, str]:
    """Variables for the server. ``ptracer_pid``: the process that may sample, with its descendants (Yama).

    ``also``: modules to tell of beside the scenario's, because they prove which revision runs.
    """
    modules = dict.fromkeys((*(module for watched in scenario.watch for module in watched.modules), *also))
    functions = {signature.function for signature in scenario.signatures}
    functions |= {watched.function for watched in scenario.watch}
    if scenario.layer_clock:
        functions.add(scenario.layer_clock.function)
    env = {
        "SPARKDIAG_PROBE_DIR": str(folder),
        "SPARKDIAG_PROBE_WATCH": json.dumps(list(modules)),
        "SPARKDIAG_PROBE_LOCALS": json.dumps(sorted(scenario.kept_locals)),
        "SPARKDIAG_PROBE_FUNCTIONS": json.dumps(sorted(functions)),
    }
    if scenario.watch:
        env["SPARKDIAG_PROBE_LEDGER"] = json.dumps(_ledger(scenario))
    if ptracer_pid is not None:
        env["SPARKDIAG_PROBE_PTRACER"] = str(ptracer_pid)
    return env


def _ledger(scenario: Scenario) -> dict[str, object]:
    """What the probe's ``ledger.py`` is told. Functions are matched by name, in any module of these packages."""
    packages = {module.partition(".")[0] for watched in scenario.watch for module in watched.modules}
    return {
        "packages": sorted(packages),
        "functions": {watched.function: watched.role for watched in scenario.watch},
        "facts": list(scenario.ledger.facts),
        "guards": sorted({guard.fact for guard in scenario.ledger.guards}),
    }


def dispatch_file(folder: Path, pid: int) -> Path:
    """Where the dispatch ledger of process ``pid`` is written."""
    return folder / f"dispatch-{pid}.jsonl"


def stacks_file(folder: Path, pid: int) -> Path:
    """Where the in-process sampler of process ``pid`` writes."""
    return folder / f"stacks-{pid}.jsonl"
