"""A launched fake server for the tests of serving and probe: real processes, one folder a test."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from sparkdiag.evidence.run import FileProof
from sparkdiag.scenario.model import PromptSettings, Scenario, ServerSettings, Signature, WatchedFunction
from sparkdiag.serving.command import ServerCommand, server_command
from sparkdiag.serving.launch import LaunchedServer, launch
from sparkdiag.serving.private_folder import unused_path
from sparkdiag.serving.readiness import free_port

FAKES = Path(__file__).resolve().parents[1] / "fakes"
LIMIT_S = 30.0


class FakeEnvironment(NamedTuple):
    env: dict[str, str]
    serve_prefix: tuple[str, ...] = (sys.executable, str(FAKES / "fake_vllm.py"))
    pythonpath: tuple[str, ...] = (str(FAKES / "site"),)
    drop_env: tuple[str, ...] = ()
    model_path: str | None = "fake"
    expected_files: tuple[FileProof, ...] = ()


class Case:
    """Where things lie, and what to start."""

    def __init__(self, folder: Path, mode: str = "", **env: str) -> None:
        self.folder = folder
        self.private_dir = unused_path()
        self.probe_dir = folder / "probe"
        self.probe_dir.mkdir()
        self.events_path = folder / "events"
        self.log_path = folder / "server.log"
        self.env = {"FAKE_VLLM_MODE": mode, "FAKE_VLLM_EVENTS": str(self.events_path), **env}

    def command(self, *, dcp: int = 2, port: int | None = None) -> ServerCommand:
        scenario = Scenario(
            name="fake",
            title="fake",
            server=ServerSettings(tp=2, dcp=dcp, chunk_tokens=512),
            prompt=PromptSettings(tokens=100),
            signatures=(Signature(function="_fp8_mqa_logits_torch", kind="torch-fallback"),),
            watch=(WatchedFunction(function="sparse_attn_indexer", modules=("vllm.utils.deep_gemm",)),),
        )
        return server_command(
            scenario=scenario,
            environment=FakeEnvironment(self.env),
            port=port or free_port(),
            probe_dir=self.probe_dir,
            run_private_dir=self.private_dir,
            inherited=os.environ,
            ptracer_pid=os.getpid(),
        )

    def launch(self, **changes: Any) -> LaunchedServer:
        command = self.command(**changes)
        return launch(command, log_path=self.log_path, private_dir=self.private_dir, make=("inside",))

    def events(self, what: str) -> list[tuple[int, str]]:
        """(pid, rest of the event) for every event that starts with ``what`` (``worker up``, ``worker shm``)."""
        text = self.events_path.read_text() if self.events_path.exists() else ""
        found = (line.split(" ", 1) for line in text.splitlines())
        return [(int(pid), rest[len(what) :].strip()) for pid, rest in found if rest.startswith(what)]


def until(condition: Callable[[], Any], *, limit_s: float = LIMIT_S) -> Any:
    """The first true value of ``condition``; fails after ``limit_s``."""
    deadline_s = time.monotonic() + limit_s
    while not (value := condition()):
        assert time.monotonic() < deadline_s, "it did not happen in time"
        time.sleep(0.05)
    return value


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Complete lines only, as a reader of the sampler's file must do."""
    whole = path.read_text().rsplit("\n", 1)[0] if path.exists() else ""
    return [json.loads(line) for line in whole.splitlines()]
