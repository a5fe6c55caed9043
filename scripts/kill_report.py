"""What a trial of ``kill_moments.py`` saw, as a line and in a table."""

from dataclasses import dataclass, field

MADE_BEFORE = "made a second or more before the kill: "


@dataclass
class Trial:
    """One kill and what was seen after it."""

    number: int
    phase: str
    target: str
    status: str = "ok"
    """ok | left (something outlived 5 s) | touched (a bystander) | defect (sparkdiag) | missed (ended before it)"""
    at_s: float = 0.0
    """The moment: seconds after loading began, or after the prompt was sent."""
    processes_s: float = 0.0
    private_s: float = 0.0
    shm_s: float = 0.0
    processes: int = 0
    segments: int = 0
    sparkdiag_exit: int | None = None
    left: list[str] = field(default_factory=list)
    note: str = ""
    made: int = 0
    """Shared memory that the run's processes say to have made, where they are asked (``--made-in``)."""
    made_late: list[str] = field(default_factory=list)
    """Of it, what is still there though made about the kill: less than a second before it, or later. What is older
    must be gone."""

    @property
    def outlived_s(self) -> float:
        return max(self.processes_s, self.private_s, self.shm_s)


def shown(trial: Trial) -> str:
    parts = f"processes {trial.processes_s:.2f}, folder {trial.private_s:.2f}, shm {trial.shm_s:.2f} s"
    of = f"of {trial.processes} processes, {trial.segments} segments"
    end = "" if trial.sparkdiag_exit is None else f", sparkdiag ended {trial.sparkdiag_exit}"
    why = f"  {trial.note} {'; '.join(trial.left)}".rstrip()
    head = f"{trial.number:3d} {trial.phase:8} {trial.target:19} at {trial.at_s:6.2f} s {trial.status:8}"
    return f"{head} outlived {trial.outlived_s:5.2f} s ({parts} {of}{end}){why}"


def table(trials: list[Trial]) -> str:
    lines = ["", f"{'phase':9}{'target':20}{'trials':>7}{'missed':>7}{'worst s':>9}{'median s':>9}{'failed':>7}"]
    for phase, target in sorted({(trial.phase, trial.target) for trial in trials}):
        mine = [trial for trial in trials if (trial.phase, trial.target) == (phase, target)]
        done = sorted(trial.outlived_s for trial in mine if trial.status != "missed")
        worst, middle = (done[-1], done[len(done) // 2]) if done else (0.0, 0.0)
        failed = sum(trial.status not in ("ok", "missed") for trial in mine)
        missed = len(mine) - len(done)
        lines.append(f"{phase:9}{target:20}{len(done):7}{missed:7}{worst:9.2f}{middle:9.2f}{failed:7}")
    kills = [trial for trial in trials if trial.status != "missed"]
    worst = max((trial.outlived_s for trial in kills), default=0.0)
    lines.append(f"{len(kills)} kills, worst {worst:.2f} s, {sum(trial.status != 'ok' for trial in kills)} failed")
    if made := sum(trial.made for trial in trials):
        late = [name for trial in trials for name in trial.made_late]
        early = [name for trial in trials for name in trial.left if name.startswith(MADE_BEFORE)]
        lines.append(
            f"shared memory: left {len(late) + len(early)} of made {made}; {len(early)} made a second or more "
            "before the kill"
        )
    return "\n".join(lines)
