"""Lets samplers get their turn on a machine that the server saturates."""

import time
from pathlib import Path

NICE = 10
BUSY_SHARE = 0.25
"""Of the machine's CPU time, used by others while the server is idle: above it the server keeps its priority."""
LOOK_S = 0.5


def lower_priority(root_pid: int, *, proc: Path = Path("/proc"), look_s: float = LOOK_S) -> str:
    """Write nice +10 to an idle server's own autogroup; returns a note on what happened.

    The kernel shares CPU time between sessions before it looks at processes (sched(7), "The autogroup feature"), so the
    nice value of a sampler in another session does not help it. A launched server leads its own session: its group
    holds nothing else. Measured on two saturated cores: the longest of the stack dumps went from 33 s to 42 ms.

    Not on a machine that others keep busy: there the lowered server would get a tenth of its share, and look like a
    stall of sparkdiag's own making.
    """
    path = proc / str(root_pid) / "autogroup"
    try:
        own = (proc / "self" / "autogroup").read_text().split()[0]
        if path.read_text().split()[0] == own:
            return "server shares sparkdiag's own scheduling group: its priority was left as it is"
        before = (proc / "stat").read_text()
        time.sleep(look_s)
        share = busy_share(before, (proc / "stat").read_text())
        if share > BUSY_SHARE:
            return f"other programs use {share:.0%} of this machine's CPU time: the server's priority was left as it is"
        path.write_text(str(NICE))
        name, *now = path.read_text().split()
    except (OSError, IndexError, ValueError) as error:
        return f"the server's scheduling group was left as it is: {type(error).__name__}"
    return f"the server's own scheduling group ({name.lstrip('/')}) is now at {' '.join(now)}: samplers get their turn"


def busy_share(before: str, after: str) -> float:
    """Share of CPU time spent neither idle nor waiting for I/O between two readings of /proc/stat (proc_stat(5))."""
    first, second = ([int(field) for field in text.split("\n", 1)[0].split()[1:9]] for text in (before, after))
    spent = [b - a for a, b in zip(first, second, strict=True)]
    total = sum(spent)
    return (total - spent[3] - spent[4]) / total if total > 0 else 0.0
