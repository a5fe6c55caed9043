"""Whether this machine lets py-spy look at other processes, and what to type where it does not."""

import subprocess
import sys
import time
from pathlib import Path
from shlex import quote

from sparkdiag.errors import SamplingRefused
from sparkdiag.evidence.base import Value
from sparkdiag.observing.faults import PermissionFinding, SamplingFault, no_pyspy
from sparkdiag.observing.pyspy import PySpy, can_sample, find_pyspy

CAP_SYS_PTRACE = 19
"""capabilities(7)."""
TRIES, TRY_TIMEOUT_S = 2, 10.0
_CHILD = "import sys; sys.stdout.write('.'); sys.stdout.flush(); sys.stdin.read()"


class PtraceFacts(Value):
    """What decides here whether one process may read another's memory (ptrace(2), "Ptrace access mode checking")."""

    effective: bool = False
    """This process has CAP_SYS_PTRACE."""
    obtainable: bool = True
    """A process started from here can have it: it is in the bounding set, and new privileges are not ruled out."""
    yama_scope: int | None = None
    """``kernel.yama.ptrace_scope``; None where the kernel has no Yama."""


def ptrace_facts(*, proc: Path = Path("/proc")) -> PtraceFacts:
    """As the kernel tells it; what cannot be read is taken for harmless."""
    fields: dict[str, str] = {}
    try:
        lines = (proc / "self" / "status").read_text(encoding="ascii", errors="replace").splitlines()
        fields = {name: value.strip() for name, _colon, value in (line.partition(":") for line in lines)}
    except OSError:
        pass
    try:
        yama_scope: int | None = int((proc / "sys" / "kernel" / "yama" / "ptrace_scope").read_text())
    except (OSError, ValueError):
        yama_scope = None
    return PtraceFacts(
        effective=_has(fields.get("CapEff", "0")),
        obtainable=_has(fields.get("CapBnd", "ffffffffffffffff")) and fields.get("NoNewPrivs", "0") != "1",
        yama_scope=yama_scope,
    )


def _has(mask: str) -> bool:
    try:
        return bool(int(mask, 16) >> CAP_SYS_PTRACE & 1)
    except ValueError:
        return False


def ptrace_remedy(facts: PtraceFacts, *, pyspy: Path) -> str:
    """The next command to type, by what stands in the way. Pure."""
    if facts.yama_scope == 3:
        return "this kernel forbids ptrace until it is rebooted (kernel.yama.ptrace_scope=3): reboot with 0"
    if facts.effective:
        return (
            "sparkdiag has the capability, so a seccomp filter probably stands in the way: "
            "`docker run --security-opt seccomp=unconfined --cap-add SYS_PTRACE`"
        )
    if not facts.obtainable:
        return (
            "start this container with the capability: `docker run --cap-add SYS_PTRACE` "
            "(Kubernetes: securityContext.capabilities.add: [SYS_PTRACE])"
        )
    if facts.yama_scope:
        return "`sudo sysctl kernel.yama.ptrace_scope=0`"
    return f"`sudo setcap cap_sys_ptrace=ep {quote(str(pyspy))}`"


def require_pyspy() -> None:
    """Raises ``SamplingRefused`` where py-spy is missing, broken, or may not look at a child of ours."""
    binary = find_pyspy()
    fault = no_pyspy() if binary is None else _fault_on_a_child(binary)
    if fault is None:
        return
    remedy = fault.remedy
    if binary is not None and fault.cause == "permission":
        remedy = ptrace_remedy(ptrace_facts(), pyspy=binary)
    raise SamplingRefused(
        f"no stack can be taken: {fault.line}, and the probe is off",
        remedy="leave out --no-probe" + (f", or: {remedy}" if remedy else ""),
    )


def _fault_on_a_child(binary: Path) -> SamplingFault | None:
    """None as soon as one look at an idle child succeeds; it is not busy, so whatever fails twice is py-spy's fault."""
    pyspy = PySpy(binary, clock=time.monotonic, timeout_s=TRY_TIMEOUT_S)
    fault: SamplingFault | None = None
    for _ in range(TRIES):
        fault = child_can_be_sampled(pyspy).fault
        if fault is None:
            break
    return fault


def child_can_be_sampled(pyspy: PySpy) -> PermissionFinding:
    """Whether py-spy may look at a child of ours: known before a server is loaded for minutes.

    A server may still refuse (it may have made itself unreadable), so a yes is asked for again when it is ready.
    """
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        try:
            if child.stdout is None or not child.stdout.read(1):
                return PermissionFinding(allowed=None)
            return can_sample(pyspy, child.pid)
        finally:
            child.kill()
