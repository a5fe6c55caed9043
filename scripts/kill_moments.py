"""Kill parts of real runs at random moments, and measure what outlives them. Nothing may, by more than 5 s.

    python scripts/kill_moments.py --trials 20
    python scripts/kill_moments.py --trials 200 --jobs 4 -- /venv/bin/python -m sparkdiag repro --env existing:...

What stands after ``--`` is the ``sparkdiag repro`` command (default: the lab). Every trial starts it, waits for a
random moment while the server loads or in the first seconds after the prompt was sent, kills -9 one target, and looks
from the kill on for processes of the run, the private folder with its sockets, and shared memory that they held.

Each job is a child *subreaper*: whatever a run leaves behind becomes the job's own descendant, so that nothing can
hide from it, and what is found outliving a trial is ended after it. Two bystanders with handlers for every signal,
titles and shared memory like vLLM's live beside each run; they must never be signalled. One JSON line a trial goes to
``--out``, a line a trial and a table at the end to the terminal. Exit 1 when anything outlived 5 s, shared memory
is left that was made a second before the kill (``--made-in``), a bystander was touched, or sparkdiag failed by itself.
A trial whose run ended before its moment is begun again.
"""

import argparse
import ctypes
import json
import random
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from kill_memory import segments
from kill_report import Trial, shown, table
from kill_trial import Job

PR_SET_CHILD_SUBREAPER = 36
RETRIES = 4
"""How often a trial is begun whose run ended before its moment; the moments come earlier each time."""
PHASES = ("loading", "prefill")
TARGETS = ("sparkdiag", "guardian", "api", "engine", "worker", "sparkdiag+guardian", "guardians")


def drawn(options: argparse.Namespace) -> list[Trial]:
    """The trials: every phase and target equally often, in random order."""
    dice = random.Random(str(options.seed))
    pairs = [(phase, target) for phase in options.phase for target in options.targets]
    dice.shuffle(pairs)
    return [Trial(number, *pairs[number % len(pairs)]) for number in range(options.trials)]


def work(options: argparse.Namespace) -> int:
    """One job: its share of the trials, a JSON line each on standard output."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    deadline_s = time.monotonic() + options.limit_s
    job = Job(options)
    try:
        for trial in drawn(options)[options.job :: options.jobs]:
            if time.monotonic() > deadline_s:
                break
            for _ in range(RETRIES):
                job.run(trial)
                if trial.status != "missed":
                    break
                trial.status, trial.note = "ok", ""
            else:
                trial.status, trial.note = "missed", f"the run ended before the moment, {RETRIES} times"
            print(json.dumps(asdict(trial)), flush=True)
    finally:
        job.close()
    return 0


def supervise(options: argparse.Namespace) -> int:
    """Start the jobs, show and keep what they say, and sum it up."""
    before = segments()
    print(f"seed {options.seed}; evidence of failed trials: {options.work}", flush=True)
    argv = [sys.executable, __file__, *sys.argv[1 : sys.argv.index("--") if "--" in sys.argv else None]]
    rest = ["--seed", str(options.seed), "--work", str(options.work)]
    jobs = [
        subprocess.Popen(
            [*argv, *rest, "--job", str(number), "--", *options.command], stdout=subprocess.PIPE, text=True
        )
        for number in range(options.jobs)
    ]
    trials = []
    try:
        with options.out.open("a", encoding="utf-8") as file:
            for line in lines_of(jobs):
                file.write(line)
                file.flush()
                trials.append(Trial(**json.loads(line)))
                print(shown(trials[-1]), flush=True)
    finally:
        for job in jobs:
            job.terminate()
            job.wait()
    new = sorted(name for name, inode in segments().items() if before.get(name) != inode)
    if new:
        print(f"new in /dev/shm, held by no process that was seen (perhaps another program's): {', '.join(new)}")
    print(table(trials))
    failed = [trial for trial in trials if trial.status not in ("ok", "missed")]
    broken = [job.returncode for job in jobs if job.returncode not in (0, -signal.SIGTERM, 143)]
    return 1 if failed or broken or all(trial.status == "missed" for trial in trials) else 0


def lines_of(jobs: list[subprocess.Popen[str]]) -> Iterator[str]:
    """Lines of several children as they come."""
    with selectors.DefaultSelector() as selector:
        for job in jobs:
            assert job.stdout is not None
            selector.register(job.stdout, selectors.EVENT_READ)
        while selector.get_map():
            for chosen, _ in selector.select():
                line = chosen.fileobj.readline()  # type: ignore[union-attr]
                if line:
                    yield line
                else:
                    selector.unregister(chosen.fileobj)


def parse(argv: list[str]) -> argparse.Namespace:
    place = argv.index("--") if "--" in argv else len(argv)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=14)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, each with a machine lock of its own")
    parser.add_argument("--phase", choices=("both", *PHASES), default="both")
    parser.add_argument("--targets", default="sparkdiag,guardian,api,engine", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--limit-s", type=float, default=1e9, help="start no trial later than this")
    parser.add_argument("--loading-s", type=float, default=30.0, help="moments are drawn from this many seconds ...")
    parser.add_argument("--prefill-s", type=float, default=20.0, help="... of loading, of the prefill")
    parser.add_argument("--poll-s", type=float, default=0.05, help="how often the run is looked at")
    parser.add_argument(
        "--warm", action="store_true", help="fork sparkdiag instead of starting it: of this interpreter"
    )
    parser.add_argument(
        "--made-in",
        metavar="VARIABLE",
        help="the server appends a line '... shm /dev/shm/NAME' for all it makes to the file that this variable names",
    )
    parser.add_argument("--out", type=Path, default=Path("kill_moments.jsonl"))
    parser.add_argument("--keep", action="store_true", help="keep the run folders of all trials, not of failed ones")
    parser.add_argument("--work", type=Path, default=None, help="where the run folders go (default: a new folder)")
    parser.add_argument("--job", type=int, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args(argv[:place])
    options.command = argv[place + 1 :] or [sys.executable, "-m", "sparkdiag", "repro"]
    options.phase = PHASES if options.phase == "both" else (options.phase,)
    options.targets = options.targets.split(",")
    if set(options.targets) - set(TARGETS) or "repro" not in options.command:
        parser.error(f"targets are {', '.join(TARGETS)}; the command is a sparkdiag repro")
    options.work = options.work or Path(tempfile.mkdtemp(prefix="kill-moments-"))
    return options


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    given = parse(sys.argv[1:])
    sys.exit(supervise(given) if given.job is None else work(given))
