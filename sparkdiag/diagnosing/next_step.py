"""The single next measurement that would settle it. Pure."""

from collections.abc import Sequence

from sparkdiag.diagnosing.finding import WAIT_STILL_S
from sparkdiag.diagnosing.process import NEVER_ALONE, Read
from sparkdiag.evidence.diagnosis import CANNOT_TELL, Finding

_DUMP = "py-spy dump --nonblocking --locals --pid {pid}"
"""Never the blocking default on somebody's server: https://github.com/benfred/py-spy/issues/872"""


def next_step(reads: Sequence[Read], decides: int, finding: Finding) -> str:
    """One sentence with the command to type."""
    if not reads or reads[decides].found.kind in CANNOT_TELL:
        return (
            "dump the engine's own processes, each into a file of its own: for p in $(pgrep -f 'VLLM::|sglang::'); do "
            f"{_DUMP.format(pid='$p')} > stack-$p.txt; done; sparkdiag triage stack-*.txt"
        )
    found = reads[decides].found
    if reads[decides].waits and len(reads) == 1 and found.kind != "idle":
        return (
            f"{found.name} waits for another process: dump the others too, for they decide: for p in $(pgrep -f "
            f"'VLLM::|sglang::'); do {_DUMP.format(pid='$p')} > stack-$p.txt; done; sparkdiag triage stack-*.txt"
        )
    if finding == "healthy":
        return "nothing to do; to have the evidence when it hangs: sparkdiag watch --url URL --until-stall"
    if finding == "moving" and found.kind in NEVER_ALONE:
        return "it moves, so compare its pace with a healthy server's: a dump of each, then sparkdiag triage GOOD BAD"
    if finding == "unknown" and reads[decides].movement is None:
        pid = found.pid if found.pid is not None else "PID"
        return (
            f"dump {found.name} again after {WAIT_STILL_S:.0f} s and give both: {_DUMP.format(pid=pid)} > later.txt; "
            f"sparkdiag triage --over-time --apart-s {WAIT_STILL_S:.0f} FIRST later.txt"
        )
    return found.next_step or "watch it live: sparkdiag watch --url URL"
