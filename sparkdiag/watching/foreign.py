"""What can be told of a server that somebody else started: whether it lives, which version and DCP size it shows."""

import time
from collections.abc import Callable
from typing import Any

from sparkdiag.environment.dcp_proof import prove_dcp
from sparkdiag.evidence.identity import ServerIdentity
from sparkdiag.evidence.processes import ProcessInfo, ServerExit
from sparkdiag.evidence.run import DcpProof, RevisionProof
from sparkdiag.evidence.titles import is_sampled
from sparkdiag.observing.process_tree import is_alive, key_of
from sparkdiag.serving.identity import read_identity
from sparkdiag.watching.target import Target

NOT_PROVED = "the server was started by somebody else: which code its processes imported cannot be read back"
LOOK_EVERY_S = 1.0


class ForeignServer:
    """Looks whether the server still lives, and does nothing else to it."""

    def __init__(self, processes: tuple[ProcessInfo, ...], *, clock: Callable[[], float]) -> None:
        self._names = {key_of(one): f"{one.name} {one.pid}" for one in processes if is_sampled(one.role)}
        self._keys = tuple(self._names)
        self._clock = clock
        self._looked_s = float("-inf")
        self._ended: ServerExit | None = None

    def poll(self) -> ServerExit | None:
        """That all of it is gone; None while any of it lives, and where none of it is known."""
        if self._ended is None and self._keys and time.monotonic() - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = time.monotonic()
            if not any(is_alive(key) for key in self._keys):
                self._ended = ServerExit(at_s=self._clock())
        return self._ended

    def ended_parts(self) -> tuple[str, ...]:
        """Which of its processes have ended while others live."""
        gone = tuple(name for key, name in self._names.items() if not is_alive(key))
        return gone if len(gone) < len(self._names) else ()


def identity_of(target: Target) -> ServerIdentity:
    """What ``/version`` and the command line say; nobody's word is more than that."""
    root_pid = target.roots[0] if target.roots else None
    return read_identity(base_url=target.base_url, root_pid=root_pid, probe_dir=None)


def revision_of(identity: ServerIdentity) -> RevisionProof:
    """The version as told, and that it is not proved."""
    told = f"/version says {identity.version_endpoint}" if identity.version_endpoint else "it tells no version"
    return RevisionProof(version=identity.version_endpoint, proved=False, because=f"{NOT_PROVED}; {told}")


def dcp_of(target: Target, identity: ServerIdentity) -> DcpProof:
    """The size that titles and command line show; nothing was asked for."""
    found = prove_dcp(asked=1, processes=target.processes, identity=identity)
    return found.model_copy(update={"asked": found.size or 1})


def environment_of(target: Target) -> dict[str, Any]:
    """What a run's record says of where the server was found."""
    return {
        "watched": True,
        "url": target.base_url,
        "metrics_url": target.metrics_url,
        "roots": list(target.roots),
        "found_by": target.how,
    }
