"""Whether this kernel shares CPU time between sessions (sched(7), "The autogroup feature")."""

import subprocess
from pathlib import Path

from sparkdiag.serving.priority import read_group


def sessions_are_grouped() -> bool:
    """Tried with a child in a session of its own: the file may be there and stay empty."""
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as child:
        try:
            return read_group(Path(f"/proc/{child.pid}/autogroup")) is not None
        except OSError:
            return False
        finally:
            child.kill()
