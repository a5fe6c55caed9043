"""One trial of ``kill_moments.py``: a run of sparkdiag, the moment, the kill, and what is seen after it."""

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any

import psutil
from kill_memory import SHM, held_names, older_than, segments
from kill_processes import Key, children_of, is_guardian, is_part, kept_by_another, key, line_of, lives, parent_of
from kill_report import MADE_BEFORE, Trial
from kill_start import start

LIMIT_S = 5.0
WATCH_S = 30.0
"""How long after a kill is looked for what is left, before it is called a leftover."""
OWN_END_S = 90.0
"""How long sparkdiag may take to write its report when another process was killed."""
SURE_S = 1.0
"""Shared memory that stood for so long before the kill has been seen with its maker by whoever was to remove it. What
is younger may be lost with its maker: it is counted, and only so much of it may be left."""
GAPS = 10.0
"""On a machine so busy that this script itself is not run for a while, a look takes as many times longer: so many of
the longest pause before the kill are added to ``SURE_S``."""
START_S = 1800.0
BYSTANDER = """
import os, signal, sys
segment = sys.argv[1]
held = os.open(segment, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
def note(number, frame):
    os.write(1, b"signal %d\\n" % number)
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    if number not in (32, 33):
        signal.signal(number, note)
os.write(1, b"up\\n")
while sys.stdin.read(1):
    pass
"""


class Run:
    """One sparkdiag and everything below it, as seen from the subreaper above it."""

    def __init__(self, job: "Job", command: list[str], folder: Path) -> None:
        self.job, self.folder = job, folder
        self.before = segments()
        self.held: dict[str, int] = {}
        self.looks: dict[str, int] = {}
        self.known: dict[Key, str] = {}
        place = command.index("repro") + 1
        argv = [*command[:place], "--out", str(folder / "runs"), *command[place:]]
        self.told = folder / "told"
        env = job.env | ({job.options.made_in: str(self.told)} if job.options.made_in else {})
        self.sparkdiag = start(argv, output=folder / "output.txt", env=env, warm=job.options.warm)

    def look(self) -> list[psutil.Process]:
        """Living processes of the run but for sparkdiag and its short-lived tools; all are remembered."""
        own = {self.sparkdiag.pid, *self.job.bystanders}
        below = psutil.Process().children(recursive=True)
        reap(below)
        inside: set[int] = set()
        alive: dict[Key, psutil.Process] = {}
        for process in below:  # parents first
            parent, found = parent_of(process), key(process)
            ours = parent in inside or parent == os.getpid() or found in self.known
            if process.pid in own or not (ours or (parent == self.sparkdiag.pid and is_guardian(process))):
                continue
            inside.add(process.pid)
            if lives(process):
                alive[found] = process
        self.known |= {found: line_of(process)[:120] for found, process in alive.items() if found not in self.known}
        self.look_at_memory(list(alive.values()))
        return list(alive.values())

    def look_at_memory(self, tree: list[psutil.Process]) -> None:
        now = segments()
        pids = {pid for pid, _ in self.known}
        for name, inode in now.items():
            numbers = {int(text) for text in re.split(r"[^0-9A-Za-z]", name) if text.isdecimal()}
            if self.before.get(name) != inode and numbers & pids:
                self.held[name] = inode
        new = [name for name, inode in now.items() if self.before.get(name) != inode and name not in self.held]
        new = [name for name in new if self.looks.get(name, 0) < 20]
        if new:
            holding = {name for process in tree for name in held_names(process.pid)}
            for name in new:
                self.looks[name] = self.looks.get(name, 0) + 1
                if name in holding:
                    self.held[name] = now[name]

    def hold_all(self, tree: list[psutil.Process]) -> None:
        """What the tree holds at this moment, however seldom it was looked at."""
        now = segments()
        holding = {name for process in tree for name in held_names(process.pid)}
        self.held |= {name: inode for name, inode in now.items() if name in holding and self.before.get(name) != inode}

    def made(self) -> set[str]:
        """Every entry of /dev/shm that a process of the run says to have made, whoever has seen it hold it."""
        with contextlib.suppress(OSError):
            return set(re.findall(r" shm /dev/shm/(\S+)$", self.told.read_text(), re.M))
        return set()

    def files(self, name: str) -> list[dict[str, Any]]:
        """The whole lines of a JSON lines file of this run's folder (of the last one, should there be several)."""
        found: list[dict[str, Any]] = []
        for path in sorted((self.folder / "runs").glob(f"*/{name}"))[-1:]:
            for line in path.read_text(errors="replace").splitlines():
                with contextlib.suppress(ValueError):
                    found.append(json.loads(line))
        return found

    def last_line(self) -> str:
        lines = (self.folder / "output.txt").read_text(errors="replace").strip().splitlines()
        return lines[-1][:160] if lines else "it said nothing"

    def is_ready(self) -> bool:
        return any(event.get("phase") == "ready" for event in self.files("timeline.jsonl"))

    def is_prompted(self) -> bool:
        return any(event.get("event") == "sent" for event in self.files("client.jsonl"))

    def find(self, target: str) -> list[psutil.Process]:
        """The processes that a target's name means at this moment; none when it is not there yet."""
        if "+" in target:
            parts = [self.find(part) for part in target.split("+")]
            return [process for part in parts for process in part] if all(parts) else []
        if target == "sparkdiag":
            return [psutil.Process(self.sparkdiag.pid)] if self.sparkdiag.poll() is None else []
        guardians = [one for one in psutil.Process().children(recursive=True) if is_guardian(one) and lives(one)]
        guardians.sort(key=lambda one: key(one)[1])  # the keeper first, which may go alone: the run goes on without
        below = [child for one in guardians for child in children_of(one, deep=False)]
        # Orphans become the guardian's children too: the server itself is the oldest.
        roots = sorted((one for one in below if not is_guardian(one)), key=lambda one: key(one)[1])[:1]
        engines = [child for root in roots for child in children_of(root, deep=False) if is_part(child, "EngineCore")]
        workers = [child for one in engines for child in children_of(one, deep=False) if is_part(child, "Worker")]
        guardian = kept_by_another(guardians)
        found = {"guardians": guardians, "guardian": guardian, "api": roots, "engine": engines, "worker": workers}
        one = found[target]
        return one if target == "guardians" or not one else [self.job.dice.choice(one)]

    def private(self) -> list[str]:
        """What lies where this job's runs put their private folders: the folders, else any socket."""
        folders = [path for path in self.job.temporary.iterdir() if path not in self.job.foreign]
        return [str(path) for path in folders if path.name.startswith("sparkdiag-") or path.is_socket()]

    def memory(self, *, sure_ns: int) -> list[str]:
        """What the tree held and is still there, of what was made before that moment."""
        return [name for name in self.held_still() if older_than(name, sure_ns)]

    def held_still(self) -> list[str]:
        now = segments()
        return [name for name, inode in self.held.items() if now.get(name) == inode]

    def clean(self) -> None:
        """End what the trial left, whatever it was: only remembered processes, found again by pid and start time."""
        for _ in range(50):
            alive = self.look()
            if self.sparkdiag.poll() is None:
                self.sparkdiag.kill()
            elif not alive:
                break
            for process in alive:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            time.sleep(0.1)
        for name in {*self.held_still(), *self.made()}:
            (SHM / name).unlink(missing_ok=True)
        for path in self.private():
            shutil.rmtree(path, ignore_errors=True)


def reap(below: list[psutil.Process]) -> None:
    """Collect the orphans that became this process's children; its own are collected by their owners."""
    for process in below:
        with contextlib.suppress(psutil.Error, ChildProcessError):
            if process.ppid() == os.getpid() and process.pid not in Job.started and not lives(process):
                os.waitpid(process.pid, os.WNOHANG)


class Job:
    """Trials one after another, in a process of its own."""

    started: set[int] = set()

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.dice = random.Random()
        self.longest_pause_s = 0.0
        self.spans_s = {"loading": options.loading_s, "prefill": options.prefill_s}
        self.bystanders: dict[int, tuple[subprocess.Popen[bytes], Path]] = {}
        base = tempfile.gettempdir()
        self.temporary = Path(tempfile.mkdtemp(prefix="km-", dir=base if len(base) < 30 else "/tmp"))
        foreign = self.temporary / "sparkdiag-somebodys"
        foreign.mkdir()
        self.foreign_socket = socket.socket(socket.AF_UNIX)
        self.foreign_socket.bind(str(foreign / "their.sock"))
        self.foreign = {foreign}
        self.env = self.environment()
        self.start_bystanders()

    def environment(self) -> dict[str, str]:
        """Own temporary folder; with several jobs an own machine lock, but the caches that are shared by all."""
        home_cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        user = os.environ.get("LOGNAME") or os.environ.get("USER") or "sparkdiag"
        shared = {
            "SPARKDIAG_CACHE": str(home_cache / "sparkdiag"),
            "TORCHINDUCTOR_CACHE_DIR": f"{tempfile.gettempdir()}/torchinductor_{user}",
            "HF_HOME": str(home_cache / "huggingface"),
            "VLLM_CACHE_ROOT": str(home_cache / "vllm"),
            "UV_CACHE_DIR": str(home_cache / "uv"),
        }
        env = shared | dict(os.environ) | {"TMPDIR": str(self.temporary), "COLUMNS": "200"}
        if self.options.jobs > 1:
            env["XDG_CACHE_HOME"] = str(self.temporary / "cache")
        return env

    def start_bystanders(self) -> None:
        """Two processes of somebody else, with titles and shared memory like vLLM's, who tell every signal."""
        for title in ("VLLM::Worker_TP0_DCP0", "VLLM::EngineCore"):
            segment = SHM / f"psm_km{os.getpid()}_{len(self.bystanders)}"
            argv = [sys.executable, "-I", "-c", BYSTANDER, str(segment), title]
            child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            Job.started.add(child.pid)
            self.bystanders[child.pid] = (child, segment)
            assert child.stdout is not None
            child.stdout.readline()
            os.set_blocking(child.stdout.fileno(), False)

    def ask_bystanders(self) -> list[str]:
        """What happened to them since they were asked last; nothing may."""
        found = [f"a foreign folder is gone: {path}" for path in self.foreign if not (path / "their.sock").exists()]
        for child, segment in self.bystanders.values():
            assert child.stdout is not None
            if told := child.stdout.read():
                found.append(f"bystander {child.pid}: {told.decode().strip()}")
            if child.poll() is not None or not segment.exists():
                found.append(f"bystander {child.pid}: dead, or its shared memory is gone")
        return found

    def run(self, trial: Trial) -> None:
        folder = self.options.work / f"trial-{trial.number:03d}"
        folder.mkdir(parents=True, exist_ok=True)
        self.dice.seed(f"{self.options.seed}-{trial.number}-moment")
        run = Run(self, self.options.command, folder)
        Job.started.add(run.sparkdiag.pid)
        try:
            self.kill_and_watch(run, trial)
        finally:
            run.clean()
        if touched := self.ask_bystanders():
            trial.status, trial.left = "touched", trial.left + touched
        if trial.status == "missed" or (trial.status == "ok" and not self.options.keep):
            shutil.rmtree(folder, ignore_errors=True)

    def kill_and_watch(self, run: Run, trial: Trial) -> None:
        victims = self.wait_for_moment(run, trial)
        if not victims:
            trial.status, trial.note = "missed", f"the run ended before the moment: {run.last_line()}"
            return
        tree = run.look()
        made = run.made()  # before it is asked who holds what: of all these it is then known
        run.hold_all(tree)
        for victim in victims:
            with contextlib.suppress(psutil.Error):
                victim.kill()
        sure_s = SURE_S + GAPS * self.longest_pause_s
        killed_s, sure_ns = time.monotonic(), time.time_ns() - int(sure_s * 1e9)
        trial.processes, trial.segments = len(tree), len(run.held)
        self.watch(run, trial, killed_s=killed_s, sure_ns=sure_ns)
        if trial.outlived_s > LIMIT_S:
            trial.status = "left"
        if "sparkdiag" not in trial.target:
            self.wait_for_sparkdiag(run, trial)
        self.compare(run, trial, made_by=made, sure_ns=sure_ns)

    def compare(self, run: Run, trial: Trial, *, made_by: set[str], sure_ns: int) -> None:
        """What was made with what is on the disk, now that everything has ended. ``made_by``: made before the kill."""
        made = run.made()
        trial.made, here = len(made), made & segments().keys()
        early = {name for name in here & made_by if older_than(name, sure_ns)}
        trial.made_late = sorted(here - early)
        if early:
            trial.status = "left"
            trial.left += [MADE_BEFORE + name for name in sorted(early)]

    def wait_for_moment(self, run: Run, trial: Trial) -> list[psutil.Process]:
        """Sleep until the drawn moment; the processes to kill, or none when the run ended before it."""
        share, extra_s = self.dice.random(), self.dice.uniform(0, 2)
        began_s, due_s = None, time.monotonic() + START_S
        deadline_s, asked_s = due_s, 0.0
        pauses_s: deque[float] = deque(maxlen=20)
        now_s = time.monotonic()
        while run.sparkdiag.poll() is None and time.monotonic() < deadline_s:
            tree = run.look()
            pauses_s.append(time.monotonic() - now_s - self.options.poll_s)
            now_s, self.longest_pause_s = time.monotonic(), max(pauses_s)
            if began_s is None and (tree if trial.phase == "loading" else tree and run.is_prompted()):
                began_s, due_s = now_s, now_s + share * self.spans_s[trial.phase]
            if began_s is not None and trial.phase == "loading" and now_s > asked_s:
                asked_s = now_s + 0.5
                if run.is_ready():
                    due_s, self.spans_s["loading"] = now_s, now_s - began_s
            if began_s is not None and now_s >= due_s:
                if victims := run.find(trial.target):
                    trial.at_s = round(now_s - began_s, 2)
                    return victims
                due_s = now_s + extra_s  # it is not there yet
            time.sleep(self.options.poll_s)
        if began_s is not None:
            self.spans_s[trial.phase] = min(self.spans_s[trial.phase], 0.8 * (time.monotonic() - began_s))
        return []

    def watch(self, run: Run, trial: Trial, *, killed_s: float, sure_ns: int) -> None:
        """Until nothing is left of the run, or ``WATCH_S`` have passed."""
        while True:
            alive = run.look()
            passed_s = round(time.monotonic() - killed_s, 2)
            private, memory = run.private(), run.memory(sure_ns=sure_ns)
            trial.processes_s = passed_s if alive else trial.processes_s
            trial.private_s = passed_s if private else trial.private_s
            trial.shm_s = passed_s if memory else trial.shm_s
            if not (alive or private or memory):
                return
            if passed_s > WATCH_S:
                trial.left += [f"{process.pid} {line_of(process)[:120]}" for process in alive] + private + memory
                return
            time.sleep(self.options.poll_s)

    def wait_for_sparkdiag(self, run: Run, trial: Trial) -> None:
        deadline_s = time.monotonic() + OWN_END_S
        while run.sparkdiag.poll() is None and time.monotonic() < deadline_s:
            run.look()
            time.sleep(self.options.poll_s)
        trial.sparkdiag_exit = run.sparkdiag.poll()
        text = (run.folder / "output.txt").read_text(errors="replace")
        if trial.sparkdiag_exit in (None, 70) or re.search("^Traceback", text, re.M):
            trial.status = "defect" if trial.status == "ok" else trial.status
            trial.note = f"sparkdiag: {run.last_line()}"

    def close(self) -> None:
        for child, segment in self.bystanders.values():
            child.communicate()
            segment.unlink(missing_ok=True)
        self.foreign_socket.close()
        shutil.rmtree(self.temporary, ignore_errors=True)
