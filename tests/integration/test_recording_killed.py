"""What is left of a run whose process was killed, and what a really full device does."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sparkdiag.evidence.timeline import NoteEvent
from sparkdiag.recording.folder import RunFolder
from sparkdiag.recording.listing import ListedRun, listed_runs
from sparkdiag.recording.prune import Limits, choose, delete
from sparkdiag.recording.read import read_run

pytestmark = pytest.mark.integration

WRITER = """
import sys, threading
from datetime import UTC, datetime
from pathlib import Path
from sparkdiag.evidence.run import RunRecord
from sparkdiag.evidence.stacks import Frame, StackSample, ThreadStack
from sparkdiag.evidence.timeline import PhaseEvent
from sparkdiag.recording.folder import RunFolder

folder = RunFolder.create(Path(sys.argv[1]), scenario_name="lab", short_sha="abc", dcp=2, now=datetime.now(UTC))
record = RunRecord(sparkdiag_version="0.1.0", started_at="now", status="running", scenario={"name": "lab"}, command=())
folder.append(PhaseEvent(t_s=0.0, phase="ready"))
frames = tuple(Frame(function=f"f{n}", filename="a.py", line=n) for n in range(200))

def write(pid):
    step = 0
    while True:
        step += 1
        folder.append(StackSample(pid=pid, started_s=step, ended_s=step, threads=(ThreadStack(frames=frames),)))
        folder.write_record(record)
        if step == 5:
            print(folder.path, flush=True)

for pid in (1, 2):
    threading.Thread(target=write, args=(pid,)).start()
"""


def only(runs: Path) -> ListedRun:
    [run] = listed_runs(runs)
    return run


def test_a_killed_run_is_known_for_one_can_be_read_and_may_go(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    runs = tmp_path / "runs"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(runs)], stdout=subprocess.PIPE, text=True, env=environment
    ) as child:
        try:
            assert child.stdout is not None
            ready, _, _ = select.select([child.stdout], [], [], 60)
            assert ready, "the writer wrote nothing in 60 s"
            path = Path(child.stdout.readline().strip())
            going = only(runs)
            assert (going.state, going.held) == ("running", True)
            assert choose((going,), Limits(keep=0), now_s=going.began_s) == ((), ())
            assert delete(going) == "it is being written"
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait(timeout=30)
    stored = read_run(path)
    assert (stored.record.status, stored.held) == ("running", False)
    assert stored.observation.ready_at_s == 0
    assert len(stored.observation.samples) >= 5
    assert all(len(sample.threads[0].frames) == 200 for sample in stored.observation.samples)
    assert set(stored.problems) <= {"stacks.jsonl: the last line is torn; it was left out"}
    killed = only(runs)
    assert (killed.state, killed.held, killed.foreign) == ("killed", False, ())
    assert choose((killed,), Limits(keep=0), now_s=killed.began_s) == ((killed,), ())
    assert delete(killed) == ""
    assert not path.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_device_does_not_end_the_run(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    (tmp_path / "timeline.jsonl").symlink_to("/dev/full")
    run.append(NoteEvent(t_s=0, source="x", text="y"))
    run.append(NoteEvent(t_s=1, source="x", text="y"))
    [problem] = run.problems
    assert problem.startswith("timeline.jsonl: ")
    assert problem.endswith("(2 times)")
