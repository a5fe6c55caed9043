"""One run at a time on a machine: two servers would slow each other, and each would look like a stall."""

import contextlib
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from sparkdiag.errors import BusyError, EnvironmentFault
from sparkdiag.harmless.excerpt import one_line

POLL_S = 0.5
SAY_EVERY_S = 30.0
MAX_HOLDER_BYTES = 4096


@contextlib.contextmanager
def machine_lock(
    *,
    what: str,
    on_wait: Callable[[float, str], None] = lambda *_: None,
    no_wait: bool = False,
    folder: Path | None = None,
) -> Iterator[None]:
    """Hold the machine while the block runs. The lock ends with this process, however that ends.

    ``what`` tells others who holds it. While waiting, ``on_wait(waited_s, holder)`` is called at once and every half
    minute. Raises ``BusyError`` with ``no_wait``, ``EnvironmentFault`` where the lock's file cannot be made.
    """
    path = lock_path(folder)
    holder = path.with_suffix(".json")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        _acquire(lock, holder=holder, on_wait=on_wait, no_wait=no_wait)
    except BrokenPipeError:
        raise  # of ``on_wait``: whoever reads what we say is gone
    except OSError as error:
        raise EnvironmentFault(
            f"the machine's lock {path} cannot be made: {error.strerror or error}",
            remedy="export XDG_CACHE_HOME=/a/writable/folder",
        ) from error
    try:
        with contextlib.suppress(OSError):  # who holds it is good to know, and no reason not to run on a full disk
            holder.write_text(json.dumps({"pid": os.getpid(), "what": what}), encoding="utf-8")
        yield
    finally:
        with contextlib.suppress(OSError):
            holder.unlink()
        lock.release()


def lock_path(folder: Path | None = None) -> Path:
    """The lock file. A cache folder may be shared by machines (a network home): the name keeps them apart."""
    return (folder or user_cache_path("sparkdiag")) / f"machine-{socket.gethostname()}.lock"


def _acquire(lock: FileLock, *, holder: Path, on_wait: Callable[[float, str], None], no_wait: bool) -> None:
    began_s = time.monotonic()
    next_say_s = 0.0
    while True:
        try:
            lock.acquire(timeout=0)
            return
        except Timeout:
            waited_s = time.monotonic() - began_s
            if no_wait:
                raise BusyError(
                    f"another run holds this machine: {_holder(holder)}",
                    remedy="run it without --no-wait to wait for its end",
                ) from None
            if waited_s >= next_say_s:
                on_wait(waited_s, _holder(holder))
                next_say_s += SAY_EVERY_S
            time.sleep(POLL_S)


def _holder(path: Path) -> str:
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(MAX_HOLDER_BYTES))
        return f"{one_line(str(found['what']), limit=80)} (pid {int(found['pid'])})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another sparkdiag"
