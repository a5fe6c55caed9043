"""py-spy's own way to look: ``record``, which stops every thread of its target for each sample."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sparkdiag.errors import EnvironmentFault, SamplingRefused
from sparkdiag.observing.pyspy import find_pyspy

RATE_HZ = 100
START_S = 3.0
"""Until it has read its target's symbols and samples."""
END_S = 20.0
_STOPPED = ("T", "t")
"""proc_pid_stat(5): stopped by a signal, or by a tracer."""


@contextmanager
def recording(pids: Sequence[int], *, folder: Path) -> Iterator[None]:
    """While the block runs, each process is recorded at ``RATE_HZ``; afterwards none of them is left stopped.

    Only for processes of a server that we started. Raises ``SamplingRefused`` where py-spy does not run to the end.
    """
    binary = find_pyspy()
    if binary is None:
        raise EnvironmentFault("py-spy is not installed beside this interpreter", remedy="pip install py-spy")
    recorders = [_recorder(binary, pid, folder=folder) for pid in pids]
    try:
        time.sleep(START_S)
        yield
        if any(recorder.poll() is not None for recorder in recorders):
            raise SamplingRefused("py-spy record ended by itself", remedy="sparkdiag doctor")
    finally:
        for recorder in recorders:
            with suppress(ProcessLookupError):
                recorder.send_signal(signal.SIGINT)  # it writes its file, and lets go of its target
        for recorder in recorders:
            try:
                recorder.wait(END_S)
            except subprocess.TimeoutExpired:
                recorder.kill()
                recorder.wait()
        for pid in pids:
            _continue(pid)


def _recorder(binary: Path, pid: int, *, folder: Path) -> "subprocess.Popen[bytes]":
    argv = [str(binary), "record", "--pid", str(pid), "--rate", str(RATE_HZ), "--format", "raw"]
    argv += ["--output", str(folder / f"record-{pid}.txt"), "--duration", "600"]
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _continue(pid: int) -> None:
    """A process that its recorder left stopped goes on."""
    with suppress(OSError, IndexError):
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
        if state in _STOPPED:
            os.kill(pid, signal.SIGCONT)
