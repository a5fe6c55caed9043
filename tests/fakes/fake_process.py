"""What every process of the fake vLLM tree does: a title like vLLM's, plugins, events for tests. Standard library only.

Behaviour comes from the environment, so that a server under test inherits it:

``FAKE_VLLM_MODE``    comma-separated flags, see ``fake_vllm.py``
``FAKE_VLLM_EVENTS``  a file (or FIFO with a reader) that gets one line a thing that happened: ``<pid> <role> <event>``
``FAKE_VLLM_GATE``    a FIFO: flag ``slow-start`` waits until somebody has written to it and closed it
``FAKE_VLLM_IMPORT_S``  how long API server, EngineCore and workers each "import vLLM", untitled (default 0)
``FAKE_VLLM_HANG``    a FIFO: while it is there, flag ``hang`` makes worker 0 wait for its writer to come and go
``FAKE_VLLM_PASS``    iterations of integer arithmetic in one pass of the fallback (default 200000, about 10 ms)
"""

import contextlib
import ctypes
import functools
import importlib.metadata
import mmap
import os
import signal
import socket
import sys
import threading
import time
import uuid
from pathlib import Path

SITE = Path(__file__).resolve().parent / "site"
PR_SET_DUMPABLE, PR_SET_NAME = 4, 15


NASTY = frozenset({"shm", "orphan", "churn", "moody", "linger"})


def flags() -> frozenset[str]:
    """Of the environment, and of the revision that is served: its ``vllm/fake_mode.txt``."""
    given = frozenset(filter(None, ",".join((os.environ.get("FAKE_VLLM_MODE", ""), _mode_of_tree())).split(",")))
    return given | NASTY if "nasty" in given else given


@functools.cache
def _mode_of_tree() -> str:
    for folder in (*os.environ.get("PYTHONPATH", "").split(os.pathsep), *sys.path):
        mode = Path(folder, "vllm", "fake_mode.txt")
        if mode.is_file():
            return mode.read_text().strip()
    return ""


def version() -> str:
    """Of the tree that is served: a release's wheel has its own."""
    if str(SITE) not in sys.path:
        sys.path.append(str(SITE))  # last, as in load_plugins
    import vllm

    return str(vllm.__version__)


def import_vllm() -> None:
    """As vLLM's processes do, which have no title of their own meanwhile."""
    time.sleep(float(os.environ.get("FAKE_VLLM_IMPORT_S", "0")))


def emit(role: str, event: str) -> None:
    """Tell the test. Never blocks: a FIFO without reader loses the line."""
    path = os.environ.get("FAKE_VLLM_EVENTS")
    if not path:
        return
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o600)
        try:
            os.write(fd, f"{os.getpid()} {role} {event}\n".encode())
        finally:
            os.close(fd)


def set_title(title: str) -> None:
    """Write over the process's own argv, as setproctitle does; /proc/PID/cmdline then reads like vLLM's."""
    fields = Path("/proc/self/stat").read_text().rsplit(")", 1)[1].split()
    start, end = int(fields[45]), int(fields[46])
    room = end - start
    if start <= 0 or room <= 1:
        return
    ctypes.memmove(start, title.encode()[: room - 1].ljust(room, b"\0"), room)
    ctypes.CDLL(None).prctl(PR_SET_NAME, title.encode()[:15], 0, 0, 0)


def load_plugins() -> None:
    """As vLLM does it in every process: the entry points of one group, none of which may end the server."""
    if str(SITE) not in sys.path:
        sys.path.append(str(SITE))  # last: an overlay stands before it
    import vllm

    allowed = os.environ.get("VLLM_PLUGINS")
    for point in importlib.metadata.entry_points(group="vllm.general_plugins"):
        if allowed is not None and point.name not in allowed.split(","):
            continue
        try:
            point.load()()
        except Exception as error:
            log(f"ERROR Failed to load plugin {point.name} of vllm {vllm.__version__}: {error}")


def log(text: str) -> None:
    print(time.strftime("INFO %m-%d %H:%M:%S [fake.py:1] ") + text, file=sys.stderr, flush=True)


def hide_memory() -> None:
    """The kernel then lets nobody without CAP_SYS_PTRACE read this process's memory (prctl(2))."""
    if "undumpable" in flags():
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def wait_while_hung() -> None:
    """As a rank does whose peer never comes."""
    path = os.environ.get("FAKE_VLLM_HANG", "")
    if "hang" in flags() and Path(path).exists():
        emit("worker", "hangs")
        with Path(path).open("rb") as hanging:
            hanging.read()
        emit("worker", "goes on")


def tell_of_signals() -> None:
    """Whatever signal may be caught becomes an event, and does nothing else."""
    if "tell-signals" in flags():
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
            with contextlib.suppress(OSError):
                signal.signal(number, lambda number, _frame: emit("any", f"signal {number}"))


def obey_signals() -> None:
    tell_of_signals()
    if "ignore-term" in flags() or ("moody" in flags() and os.getpid() % 3 == 0):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def wait_forever() -> None:
    """As vLLM's children do when their parent is gone: they stay."""
    while True:
        signal.pause()


def leave_shared_memory(role: str) -> None:
    """A segment in /dev/shm that stays mapped and is not unlinked at exit, like vLLM's message queue after kill -9."""
    globals()["_shared_memory"] = new_segment(role, f"psm_fake_{os.getpid()}")


def new_segment(role: str, name: str) -> mmap.mmap:
    fd = os.open(f"/dev/shm/{name}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    os.ftruncate(fd, 4096)
    mapped = mmap.mmap(fd, 4096)
    os.close(fd)
    emit(role, f"shm /dev/shm/{name}")
    return mapped


def churn(role: str) -> None:
    """Something new all the time: segments that are let go of and not unlinked, orphans that end soon."""
    held: list[mmap.mmap] = []
    for number in range(40):
        held.append(new_segment(role, f"psm_{uuid.uuid4().hex[:8]}"))
        if len(held) > 6:
            held.pop(0).close()
        if number % 4 == 0:
            leave_orphan(role, life_s=2)
        time.sleep(0.25)


def start_churn(role: str) -> None:
    if "churn" in flags():
        threading.Thread(target=churn, args=(role,), name="churn", daemon=True).start()


def leave_socket() -> None:
    """Where vLLM leaves its own: in the folder for its ipc, else nowhere."""
    base = os.environ.get("VLLM_RPC_BASE_PATH")
    if base:
        ipc = socket.socket(socket.AF_UNIX)
        ipc.bind(f"{base}/{uuid.uuid4()}")
        _sockets.append(ipc)


_sockets: list[socket.socket] = []


def leave_orphan(role: str, *, life_s: float | None = None) -> None:
    """A grandchild in its own session whose parent is gone: only a subreaper still knows whose it is."""
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            set_title("fake-orphan")
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            emit(role, "orphan" if life_s is None else "short-lived orphan")
            if life_s is None:
                wait_forever()
            time.sleep(life_s)
        os._exit(0)
    os.waitpid(child, 0)
