"""guardian.py, of which two of sparkdiag, keeper and guardian die at its n-th step: ``DIE_AT`` (``N VICTIM VICTIM``).

A step is whatever the interpreter audits (a file opened, a folder made, a fork), so between two of them nothing changes
on the disk. Steps count on over the fork into keeper and guardian; the server's process is no part of it. What was to
be done next is appended to the file ``DIED_AT``.
"""

import os
import signal
import sys

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))  # noqa: PTH120

from sparkdiag.serving import guardian

first, owner = os.getpid(), os.getppid()
at, *victims = os.environ["DIE_AT"].split()
TOLD_FD = 100
"""Far from where the guardian puts its own."""
os.dup2(os.open(os.environ["DIED_AT"], os.O_WRONLY | os.O_CREAT), TOLD_FD)
left = int(at)
forked = False


def step(event: str, args: tuple[object, ...]) -> None:
    global left, forked
    me = os.getpid()
    if (me == first and forked) or (me != first and os.getppid() != first):
        return
    forked = forked or event == "os.fork"
    left -= 1
    if left != -1:
        return
    os.write(TOLD_FD, f"{event} {args[0] if args else ''}\n".encode())
    pids = {"sparkdiag": owner, "keeper": first, "guardian": me}
    for victim in victims:
        if pids[victim] != me:
            os.kill(pids[victim], signal.SIGKILL)
    if pids["guardian"] in {pids[victim] for victim in victims}:
        os.kill(me, signal.SIGKILL)


sys.addaudithook(step)
guardian.main()
