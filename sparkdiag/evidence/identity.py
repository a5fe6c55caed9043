"""What the running server said about itself, before anything is compared with what was asked for."""

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.run import FileProof


class ProcessIdentity(Value):
    """Written by the probe inside one server process (``identity-<pid>.json``)."""

    pid: int
    vllm_version: str | None = None
    vllm_path: str | None = None
    """``vllm.__file__`` as imported."""
    files: tuple[FileProof, ...] = ()
    """The scenario's watched modules, once imported, with the hash of the file they came from."""
    dcp_world_size: int | None = None
    """Read from the process's own distributed state; None where it has none (API server, EngineCore)."""
    dcp_rank: int | None = None
    tp_world_size: int | None = None
    tp_rank: int | None = None


class ServerIdentity(Value):
    """Every witness of what is running: the /version endpoint, the argv, the probe in each process."""

    version_endpoint: str | None = None
    argv: tuple[str, ...] = ()
    processes: tuple[ProcessIdentity, ...] = ()
