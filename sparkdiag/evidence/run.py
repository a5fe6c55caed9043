"""``run.json``: what was run, on what, and what it was found to be."""

from typing import Any, Literal

from pydantic import Field

from sparkdiag.evidence.base import SCHEMA, Value
from sparkdiag.evidence.diagnosis import Diagnosis
from sparkdiag.evidence.route import Route
from sparkdiag.evidence.verdict import Verdict

Containment = Literal["yes", "no", "not-in-this-clone", "unknown"]


class FileProof(Value):
    """A source file as the running server imported it."""

    module: str
    path: str
    sha256: str


class RevisionProof(Value):
    """What the running server itself showed about its code; compared with what was asked for."""

    asked: str | None = None
    sha: str | None = None
    """40 hex digits, where the code belongs to a git revision."""
    version: str | None = None
    import_path: str | None = None
    files: tuple[FileProof, ...] = ()
    proved: bool = False
    because: str = ""
    """What was compared with what; for ``proved=False`` what is missing or differs."""
    suspect_commit: str | None = None
    contains_suspect_commit: Containment = "unknown"


class DcpProof(Value):
    """The DCP size as the running server shows it, by every witness that spoke."""

    asked: int
    size: int | None = None
    witnesses: tuple[str, ...] = ()
    """``worker titles: DCP0, DCP1``; ``probe: dcp_world_size 2 in 2 workers``; ``argv: ...``."""
    consistent: bool = True


class Host(Value):
    """The machine, as far as a report needs it; no host or user name."""

    platform: str
    cpu: str
    cores: int
    memory_gib: float
    gpus: tuple[str, ...] = ()
    python: str
    sparkdiag: str


class Software(Value):
    """What a bug report of vLLM is asked for beside :class:`Host`, read from files and NVML; None: not collected."""

    os: str | None = None
    """``Debian GNU/Linux 12 (bookworm)``."""
    libc: str | None = None
    """``glibc 2.36``."""
    python: str | None = None
    """Of the environment under test."""
    packages: dict[str, str] = {}
    """Versions of the distributions that matter, by normalised name."""
    torch_cuda: str | None = None
    """CUDA that PyTorch was built with; ``none`` for a build without."""
    torch_rocm: str | None = None
    """The same of ROCm."""
    torch_debug: bool | None = None
    vllm_commit: str | None = None
    """As the installed package names it."""
    gpus: tuple[str, ...] = ()
    """``NVIDIA H200, SM90, 139.8 GiB``; empty where NVML shows none."""
    gpu_problem: str | None = None
    """NVML's own words where it could not be asked."""
    driver: str | None = None
    driver_cuda: str | None = None
    """The newest CUDA that the driver serves."""
    variables: dict[str, str] = {}
    """By allow-list, of what the server inherited."""


class ServerPriority(Value):
    """What was done to the launched server's own scheduling group (autogroup, sched(7))."""

    nice: int | None = None
    """The value written to it last; None where it was left alone."""
    because: str
    """What happened, why, and what it may cost the server."""


class PredictedRoute(Value):
    """Which kernel the source under test reaches in this run's configuration, read before the server was started."""

    route: Route | None = None
    """Cut down to what is reached and the guards on the way there."""
    read_from: str = ""
    """Where the source was read: ``the lab's history at 1cea6e7154``, ``the files installed in …``."""
    problem: str | None = None
    """Why there is no route; one line."""
    scope: str = ""
    """Which configurations reach the stall by the same source, and what was asked for that; empty: not asked."""
    took_s: float | None = None


class Timings(Value):
    environment_s: float | None = None
    ready_s: float | None = None
    prompt_to_first_token_s: float | None = None
    prompt_to_verdict_s: float | None = None
    shutdown_s: float | None = None
    total_s: float | None = None


class RunRecord(Value):
    """The document ``run.json``. Written at the start and again whenever a field becomes known."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    sparkdiag_version: str
    started_at: str
    """ISO 8601, UTC."""
    status: Literal["running", "finished", "interrupted", "failed", "unknown"]
    """``unknown`` is never written: it stands for a record that cannot be read back."""
    scenario: dict[str, Any]
    """The resolved scenario, overrides applied."""
    command: tuple[str, ...]
    """What the user typed, secrets removed."""
    environment: dict[str, Any] = {}
    server_argv: tuple[str, ...] = ()
    server_env: dict[str, str] = {}
    """By allow-list."""
    server_priority: ServerPriority | None = None
    revision: RevisionProof = RevisionProof()
    dcp: DcpProof | None = None
    predicted: PredictedRoute | None = None
    """None in a run from before routes were read."""
    host: Host | None = None
    software: Software | None = None
    """None in a run from before it was collected."""
    timings_s: Timings = Timings()
    verdict: Verdict | None = None
    diagnosis: Diagnosis | None = None
    """What the stacks of a server that was only watched were found to mean; None in a reproduction."""
    error: str | None = None

    @property
    def watched(self) -> bool:
        """Whether the server was somebody else's: nothing was started, and nothing asked for by us can be proved."""
        return self.environment.get("watched") is True
