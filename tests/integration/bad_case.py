"""``sparkdiag`` itself as a child process, over the fake vLLM tree or without any: for the tests of bad conditions."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psutil

FAKES = Path(__file__).resolve().parents[1] / "fakes"
REPOSITORY = Path(__file__).resolve().parents[2]
LIMIT_S = 120.0
PROGRAM = ("-m", "sparkdiag")
SERVE = """#!{python}
import os, runpy, sys
argv = sys.argv[1:]
assert argv[0] == "serve", argv
if said := os.environ.get("BAD_LAST_WORDS"):
    sys.exit("\\n".join([f"INFO loading {{argv[1]}}", said]))
if dying := os.environ.get("BAD_DIES_AT"):
    from http.server import BaseHTTPRequestHandler as Handler
    parse = Handler.parse_request
    def parse_or_die(self):
        good = parse(self)
        if good and self.path == dying:
            print("ERROR fake: the tokenizer crashed", file=sys.stderr, flush=True)
            os._exit(3)
        return good
    Handler.parse_request = parse_or_die
if knock := os.environ.get("BAD_PORT_KNOCK"):
    with open(knock + ".port", "w") as told:
        told.write(argv[argv.index("--port") + 1])
    with open(knock + ".taken") as taken:
        taken.read()
sys.argv = ["{fakes}/fake_vllm.py", "--model", *argv[1:]]
sys.path.insert(0, "{fakes}")
runpy.run_path(sys.argv[0], run_name="__main__")
"""
SCENARIO = """
schema = 1
name = "fake"
title = "a fake tree"
[server]
model = "org/fake"
tp = 2
dcp = 2
chunk_tokens = 512
max_model_len = 65536
ready_timeout_s = 60
{server}
[prompt]
tokens = 16384
max_output_tokens = 32
[patience]
stuck_s = 6
settle_s = 2
min_samples = 3
timeout_s = 90
[sampling]
cpu_share = 0.2
min_period_s = 0.3
[[signature]]
function = "_fp8_mqa_logits_torch"
kind = "torch-fallback"
call_identity = ["seq_len", "seq_len_kv", "num_heads"]
rows = "seq_len"
keys = "seq_len_kv"
heads = "num_heads"
[[signature.loop]]
index = "head_start"
step = "head_chunk_size"
stop = "num_heads"
[[signature.loop]]
index = "k_start"
step = "k_chunk_size"
stop = "seq_len_kv"
[layer_clock]
function = "sparse_attn_indexer"
variable = "k_cache_prefix"
[work]
layers = 2
heads = 8
"""


class Ended(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        return next((line for line in self.err.splitlines() if line.startswith("error: ")), "")

    @property
    def next(self) -> str:
        return next((line for line in self.err.splitlines() if line.startswith("next: ")), "")


class BadCase:
    """One folder with everything a child may touch: home, cache, runs, and an interpreter that "has vLLM"."""

    def __init__(self, folder: Path, mode: str = "healthy", **env: str) -> None:
        self.folder = folder
        self.runs = folder / "runs"
        self.events_path = folder / "events"
        self.scenario = folder / "fake.toml"
        self.write_scenario()
        home = folder / "home"
        home.mkdir()
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "COVERAGE_PROCESS_START") if name in os.environ}
        self.env = kept | {
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home / "cache"),
            "SPARKDIAG_CACHE": str(folder / "cache"),
            "SPARKDIAG_CONFIG": str(folder / "no-config.toml"),
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_NO_CONFIG": "1",
            "PIP_CONFIG_FILE": os.devnull,
            "PYTHONPATH": str(REPOSITORY),
            "FAKE_VLLM_MODE": mode,
            "FAKE_VLLM_EVENTS": str(self.events_path),
            **env,
        }

    def write_scenario(self, server: str = "") -> None:
        self.scenario.write_text(SCENARIO.format(server=server), encoding="utf-8")

    def venv(self) -> Path:
        """A virtual environment of this Python whose ``vllm`` serves the fake tree."""
        venv = self.folder / "venv"
        base = Path(os.path.realpath(sys.executable))
        site = venv / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
        info = site / "vllm-0.0.1.dist-info"
        info.mkdir(parents=True)
        (venv / "bin").mkdir()
        (venv / "bin" / "python").symlink_to(base)
        (venv / "pyvenv.cfg").write_text(f"home = {base.parent}\n", encoding="utf-8")
        (site / "vllm").symlink_to(FAKES / "site" / "vllm")
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vllm\nVersion: 0.0.1\n", encoding="utf-8")
        (info / "top_level.txt").write_text("vllm\n", encoding="utf-8")
        serve = venv / "bin" / "vllm"
        serve.write_text(SERVE.format(python=venv / "bin" / "python", fakes=FAKES), encoding="utf-8")
        serve.chmod(0o755)
        return venv

    def repro_arguments(self, *more: str) -> tuple[str, ...]:
        """Of a ``repro`` over the fake tree; what begins with ``--`` alone goes last, as on a command line."""
        venv = self.folder / "venv"
        if not venv.exists():
            self.venv()
        named = ("--scenario", str(self.scenario), "--env", f"existing:{venv}", "--out", str(self.runs))
        return ("repro", *named, "--baseline-s", "0.5", *more)

    def start(
        self, *arguments: str, before: tuple[str, ...] = (), program: tuple[str, ...] = PROGRAM, **env: str
    ) -> "subprocess.Popen[str]":
        """``sparkdiag ARGUMENTS``, in a session of its own; ``before``: a command that runs it."""
        return subprocess.Popen(
            [*before, sys.executable, *program, *arguments],
            cwd=self.folder,
            env=self.env | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="surrogateescape",
            start_new_session=True,
        )

    def finish(self, child: "subprocess.Popen[str]", *, limit_s: float = LIMIT_S) -> Ended:
        """Wait for it; what every ending has in common is asserted here."""
        try:
            out, err = child.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            out, err = child.communicate()
            raise AssertionError(f"it did not end within {limit_s:g} s:\n{out}\n{err}") from None
        ended = Ended(child.returncode, out, err)
        # The server's own lines are shown indented: a traceback among them is not ours.
        assert not any(line.startswith("Traceback") for line in (out + err).splitlines()), out + err
        assert all(line.isprintable() for line in (out + err).splitlines()), repr(out + err)
        self.assert_nothing_left()
        return ended

    def run(self, *arguments: str, limit_s: float = LIMIT_S, **start: Any) -> Ended:
        return self.finish(self.start(*arguments, **start), limit_s=limit_s)

    def refused(self, *arguments: str, code: int, limit_s: float = LIMIT_S, **start: Any) -> Ended:
        """A command that ends with one error line, a next command, and nothing on stdout."""
        ended = self.run(*arguments, limit_s=limit_s, **start)
        assert ended.code == code, ended
        assert ended.err.count("error: ") >= 1 and ended.error and ended.next, ended
        assert ended.out == "", ended
        return ended

    def run_folder(self) -> Path:
        """The only one there is."""
        (record,) = self.runs.glob("*/run.json")
        return record.parent

    def record(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.run_folder() / "run.json").read_text(encoding="utf-8"))
        return document

    def events(self, what: str) -> list[int]:
        """Pids of the processes that told an event which begins so (``worker execute``)."""
        text = self.events_path.read_text() if self.events_path.exists() else ""
        split = (line.split(" ", 1) for line in text.splitlines())
        return [int(pid) for pid, event in split if event.startswith(what)]

    def ours(self) -> list[str]:
        """Every process that carries this case's environment."""
        mark = str(self.events_path)
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("FAKE_VLLM_EVENTS") == mark and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(f"{process.pid} {' '.join(process.cmdline())}")
            except (psutil.Error, OSError):
                continue
        return found

    def assert_nothing_left(self) -> None:
        until(lambda: not self.ours(), what=lambda: f"left: {self.ours()}", limit_s=10)


def until(condition: Callable[[], Any], *, what: Callable[[], str] = str, limit_s: float = 60) -> Any:
    """The first true value of ``condition``; fails after ``limit_s``."""
    deadline_s = time.monotonic() + limit_s
    while not (value := condition()):
        assert time.monotonic() < deadline_s, f"it did not happen in time {what()}"
        time.sleep(0.05)
    return value
