"""The scheduling group of a session that this benchmark started: read and set its nice value.

See sched(7), "The autogroup feature". Lowering a nice value again takes a right that root has.
"""

from pathlib import Path

from sparkdiag.serving.priority import write_group_nice


def set_nice(pid: int, nice: int) -> None:
    """Set the group's nice value. Raises ``OSError`` where the system does not let us."""
    write_group_nice(_path(pid), nice)


def get_nice(pid: int) -> int | None:
    """The group's nice value; None on a kernel without such groups."""
    try:
        return int(_path(pid).read_text(encoding="ascii").rsplit(maxsplit=1)[-1])
    except (OSError, ValueError, IndexError):
        return None


def may_lift(pid: int) -> bool:
    """Whether the group's nice value can be raised and taken back; it is as before afterwards."""
    before = get_nice(pid)
    if before is None:
        return False
    try:
        set_nice(pid, before + 1)
        set_nice(pid, before)
    except OSError:
        return False
    return get_nice(pid) == before


def _path(pid: int) -> Path:
    return Path(f"/proc/{pid}/autogroup")
