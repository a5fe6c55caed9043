"""Which system calls the confined child is refused, by processor; numbers of the kernel's own tables.

https://github.com/torvalds/linux/blob/master/arch/x86/entry/syscalls/syscall_64.tbl and
https://github.com/torvalds/linux/blob/master/scripts/syscall.tbl (aarch64).
"""

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_NEW = (424, 425, 426, 427, 428, 429, 430, 432, 434, 438, 440, 442, 452)
"""Alike everywhere: pidfd_send_signal, io_uring, open_tree, move_mount, fsopen, fsmount, pidfd_open, pidfd_getfd,
process_madvise, mount_setattr, fchmodat2."""

REFUSED = {
    "x86_64": (
        *(57, 58, 59, 322),  # fork, vfork, execve, execveat
        *(62, 200, 129, 297),  # kill, tkill, rt_sigqueueinfo, rt_tgsigqueueinfo
        *(41, 42, 43, 44, 46, 49, 50, 53, 288, 307),  # sockets
        *(101, 310, 311, 321, 298, 323),  # ptrace, process_vm_*, bpf, perf_event_open, userfaultfd
        *(165, 166, 155, 161, 272, 308, 163, 167, 169, 170, 171, 179),  # mounts, namespaces, the machine
        *(246, 320, 175, 313, 176, 248, 249, 250, 172, 173, 300, 304),  # kexec, modules, keys, ports, handles
        *(159, 164, 227, 305),  # clocks
        *(87, 263, 82, 264, 316, 83, 258, 84, 86, 265, 88, 266, 133, 259, 85, 76),  # names in folders
        *(90, 91, 268, 92, 93, 94, 260, 132, 235, 261, 280, 188, 189, 190, 197, 198, 199),  # modes, owners, times
        *(29, 30, 31, 64, 68, 240),  # System V and POSIX shared memory and queues
        *(160, 141, 251, 142, 144, 314, 203, 157, 112, 109),  # limits, priorities, prctl, setsid, setpgid
        *_NEW,
    ),
    "aarch64": (
        *(221, 281),
        *(129, 130, 138, 240),
        *(198, 199, 200, 201, 202, 203, 206, 211, 242, 269),
        *(117, 270, 271, 280, 241, 282),
        *(40, 39, 41, 51, 97, 268, 89, 224, 142, 161, 162, 60),
        *(104, 294, 105, 273, 106, 217, 218, 219, 262, 265),
        *(171, 170, 112, 266),
        *(35, 38, 276, 34, 37, 36, 33, 45),
        *(52, 53, 54, 55, 88, 5, 6, 7, 14, 15, 16),
        *(194, 195, 196, 190, 186, 180),
        *(164, 140, 30, 118, 119, 274, 122, 167, 157, 154),
        *_NEW,
    ),
}
"""Answered with EPERM."""

CLONE = {"x86_64": 56, "aarch64": 220}
"""Allowed for threads only."""
CLONE3 = 435
"""Answered with ENOSYS: its flags lie in memory, where a filter cannot look; the C library falls back to clone."""
OPENAT2 = 437
OPEN = {"x86_64": {2: 1, 257: 2}, "aarch64": {56: 2}}
"""Number: index of the argument that holds the flags. Allowed for reading only."""
PRLIMIT = {"x86_64": 302, "aarch64": 261}
"""Allowed for asking only."""
TGKILL = {"x86_64": 234, "aarch64": 131}
"""Allowed for itself only: ``abort`` uses it."""
