"""Takes from this process what a revision's code has no need of. Every step says what was had and what was not.

Order: ``leave_network`` while the process has one thread; ``limit`` and ``refuse`` once torch is loaded, which needs
threads, files and much address space for that. What was given up cannot be had back.
"""

import contextlib
import ctypes
import os
import platform
import resource
import struct
import sys
import time
from typing import Any

from sparkdiag.executing.inside import syscalls

CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWIPC = 0x10000000, 0x40000000, 0x08000000
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 1, 38, 22
SIGKILL = 9
ALLOW, EPERM, ENOSYS, KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
CLONE_THREAD = 0x10000
WRITING = 0o3 | 0o100 | 0o1000 | 0o20000000
"""O_WRONLY and O_RDWR, O_CREAT, O_TRUNC, O_TMPFILE."""
X32_BIT = 0x40000000
FILES = 256

REFUSED_EVENTS = (
    "socket.", "subprocess.", "os.exec", "os.posix_spawn", "os.spawn", "os.system", "os.fork", "os.kill", "os.remove",
    "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "os.utime",
    "os.setxattr", "os.removexattr", "shutil.", "ctypes.dlopen", "ctypes.dlsym", "signal.pthread_kill", "pty.spawn",
    "urllib.", "http.", "ftplib.", "smtplib.", "resource.setrlimit", "resource.prlimit",
)  # fmt: skip
"""Beginnings of audit events (https://docs.python.org/3/library/audit_events.html)."""


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent goes, and end now where it has gone already."""
    _libc().prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def leave_network() -> str:
    """Move to a user, network and IPC namespace of its own, where the kernel lets an unprivileged process."""
    uid, gid = os.getuid(), os.getgid()
    libc = _libc()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC):
        why = os.strerror(ctypes.get_errno())
        return f"network: no namespace of its own ({why})"
    with contextlib.suppress(OSError):  # unmapped ids do as well
        for name, line in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            fd = os.open(f"/proc/self/{name}", os.O_WRONLY)
            os.write(fd, line.encode())
            os.close(fd)
    return "network: a namespace of its own, without any interface up"


def limit(*, memory_bytes: int, cpu_s: int) -> str:
    """Bound memory and processor time (beyond what is used by now), files and their sizes, processes."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - imports little
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    used_s = int(time.process_time()) + 1
    for what, wanted in (
        (resource.RLIMIT_AS, mapped + memory_bytes),
        (resource.RLIMIT_CPU, used_s + cpu_s),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, FILES),
    ):
        hard = resource.getrlimit(what)[1]
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(what, (most, most))
    return f"limits: {memory_bytes >> 20} MiB beyond torch, {cpu_s} s of processor time, files of 0 bytes"


def refuse() -> str:
    """Have the kernel refuse sockets, new processes, signals and every change to files, from now on."""
    machine = platform.machine()
    if machine not in syscalls.AUDIT_ARCH:
        return f"system calls: not filtered on {machine}"
    program = filter_program(machine, pid=os.getpid())
    buffer = ctypes.create_string_buffer(program, len(program))
    fprog = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    libc = _libc()
    wanted = ctypes.create_string_buffer(fprog, len(fprog))
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, 2, wanted, 0, 0):
        return f"system calls: not filtered ({os.strerror(ctypes.get_errno())})"
    return "system calls: sockets, new processes, signals and every change to files refused by the kernel (seccomp)"


def filter_program(machine: str, *, pid: int) -> bytes:
    """The filter as classic BPF (https://docs.kernel.org/userspace-api/seccomp_filter.html). Pure."""
    load, equal, at_least, any_bit, give = 0x20, 0x15, 0x35, 0x45, 0x06
    number, arch, low, high = 0, 4, 16, 20

    def op(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
        return struct.pack("HBBI", code, yes, no, value)

    def when(nr: int, *body: bytes) -> bytes:
        return op(equal, nr, 0, len(body)) + b"".join(body)

    parts = [op(load, arch), op(equal, syscalls.AUDIT_ARCH[machine], 1, 0), op(give, KILL), op(load, number)]
    if machine == "x86_64":
        parts += [op(at_least, X32_BIT, 0, 1), op(give, EPERM)]
    parts += [when(nr, op(give, EPERM)) for nr in syscalls.REFUSED[machine]]
    parts += [when(nr, op(give, ENOSYS)) for nr in (syscalls.CLONE3, syscalls.OPENAT2)]
    allow, deny = op(give, ALLOW), op(give, EPERM)
    parts.append(when(syscalls.CLONE[machine], op(load, low), op(any_bit, CLONE_THREAD, 0, 1), allow, deny))
    for nr, index in syscalls.OPEN[machine].items():
        parts.append(when(nr, op(load, low + 8 * index), op(any_bit, WRITING, 0, 1), deny, allow))
    third = low + 8 * 2, high + 8 * 2
    asks = (op(load, third[0]), op(equal, 0, 0, 2), op(load, third[1]), op(equal, 0, 1, 0), deny, allow)
    parts.append(when(syscalls.PRLIMIT[machine], *asks))
    parts.append(when(syscalls.TGKILL[machine], op(load, low), op(equal, pid, 0, 1), allow, deny))
    return b"".join((*parts, allow))


def audit() -> str:
    """Refuse the same in the interpreter: the second line behind the kernel's, the only one where that is not had."""
    sys.addaudithook(_hook)
    return "interpreter: an audit hook refuses sockets, processes, native libraries and writing to files"


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event.startswith(REFUSED_EVENTS):
        raise PermissionError(f"{event} is refused to a revision's code")
    if event == "open" and len(arguments) > 2:
        _path, mode, flags = arguments[:3]
        if (isinstance(flags, int) and flags & WRITING) or (isinstance(mode, str) and set(mode) & set("wax+")):
            raise PermissionError("writing to files is refused to a revision's code")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
