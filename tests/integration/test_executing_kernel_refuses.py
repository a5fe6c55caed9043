"""The kernel's part of the confinement alone, without the interpreter's: nobody is asked nicely."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from sparkdiag.executing.inside import syscalls

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(platform.machine() not in syscalls.AUDIT_ARCH, reason="system calls are not filtered here"),
]

ATTEMPT = """
import errno, os, signal, socket, sys, threading
from sparkdiag.executing.inside import confine
said = confine.refuse()
if "refused" not in said:
    print(said)
    sys.exit(77)
kept = sys.argv[1]
attempts = {
    "fork": os.fork,
    "spawn": lambda: os.posix_spawn("/bin/true", ["true"], {}),
    "exec": lambda: os.execv("/bin/true", ["true"]),
    "socket": lambda: socket.socket(),
    "pair": lambda: socket.socketpair(),
    "kill": lambda: os.kill(os.getppid(), signal.SIGTERM),
    "write": lambda: os.open(kept, os.O_WRONLY),
    "both": lambda: os.open(kept, os.O_RDWR),
    "create": lambda: os.open(kept + ".new", os.O_CREAT),
    "empty": lambda: os.open(kept, os.O_TRUNC),
    "unlink": lambda: os.unlink(kept),
    "rename": lambda: os.rename(kept, kept + ".new"),
    "mkdir": lambda: os.mkdir(kept + ".new"),
    "chmod": lambda: os.chmod(kept, 0o777),
    "times": lambda: os.utime(kept),
    "session": os.setsid,
    "priority": lambda: os.setpriority(os.PRIO_PROCESS, 0, 5),
}
for name, attempt in attempts.items():
    try:
        attempt()
    except OSError as error:
        if error.errno != errno.EPERM:
            print(name, "ended in", error)
    else:
        print(name, "was let through")
with open(kept) as file:
    assert file.read() == "as it was"
thread = threading.Thread(target=lambda: None)
thread.start()
thread.join()
"""


def test_each_way_out_is_refused_and_reading_and_threads_are_not(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("as it was")
    done = subprocess.run(
        [sys.executable, "-c", ATTEMPT, str(kept)], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert kept.read_text() == "as it was"
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
