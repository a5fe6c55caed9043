"""An environment under test, ready to serve: which interpreter, how it serves, what it is expected to contain."""

from typing import Literal

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.run import FileProof

EnvironmentKind = Literal["lab", "existing", "release", "overlay"]


class Environment(Value):
    """What a server is launched from. A value: nothing is locked or kept open by it (see ``cache.hold``)."""

    spec: str
    """As asked: ``lab``, ``existing:/path/python``, ``release:0.32.0``, ``overlay:REV@BASE``."""
    kind: EnvironmentKind
    key: str
    """Names the environment in the cache; for ``existing`` a hash of what was found."""
    also_held: tuple[str, ...] = ()
    """Keys of other environments of the cache that this one stands on."""
    python: str
    serve_prefix: tuple[str, ...]
    """argv before the server's own arguments: ``(/x/vllm, serve)`` or ``(python, -m, <api server module>)``."""
    pythonpath: tuple[str, ...] = ()
    """Folders that go on the server's PYTHONPATH."""
    env: dict[str, str] = {}
    """Variables the server needs beyond the scenario's."""
    drop_env: tuple[str, ...] = ()
    """Variables of sparkdiag's own environment that the server must not inherit."""
    vllm_version: str | None = None
    package_path: str | None = None
    """Folder of the installed ``vllm`` package: the running server must import it from here."""
    model_path: str | None = None
    """The lab's model folder; None elsewhere."""
    asked_revision: str | None = None
    revision_sha: str | None = None
    """40 hex digits; None where the code belongs to no known git revision."""
    repo: str | None = None
    """The clone ``revision_sha`` lives in."""
    vllm_sha: str | None = None
    """The commit of vLLM's own Python tree in an overlay; differs from ``revision_sha`` where that is the lab's."""
    expected_files: tuple[FileProof, ...] = ()
    """The scenario's watched modules as this environment should import them, hashed from git blobs, the wheel's own
    RECORD, or (where neither exists) the files on disk."""
    notes: tuple[str, ...] = ()
