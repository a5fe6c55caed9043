"""The observer on the fake vLLM tree: real processes with vLLM's titles, real py-spy, real HTTP."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.client import ClientOutcome, PromptSent, ResponseEnd
from sparkdiag.evidence.processes import ProcessInfo
from sparkdiag.evidence.stacks import StackSample
from sparkdiag.evidence.timeline import MetricPoint, NoteEvent, ProcessesEvent
from sparkdiag.observing.observer import Observer
from sparkdiag.observing.process_tree import ProcessTree, is_alive, key_of
from sparkdiag.observing.pyspy import find_pyspy
from sparkdiag.scenario.model import LayerClock, PromptSettings, Sampling, Scenario, ServerSettings, Signature

pytestmark = pytest.mark.integration

FAKE = Path(__file__).parents[1] / "fakes" / "fake_vllm.py"
WITHIN_S = 60.0

SCENARIO = Scenario(
    name="observed",
    title="observed",
    server=ServerSettings(dcp=2, tp=2),
    prompt=PromptSettings(tokens=4096),
    signature=(Signature(function="_fp8_mqa_logits_torch", kind="torch-fallback"),),
    layer_clock=LayerClock(function="sparse_attn_indexer", variable="k_cache_prefix"),
    sampling=Sampling(cpu_share=1.0, min_period_s=0.2, max_period_s=1.0, metrics_period_s=0.2),
)


class Tree:
    """A fake server with what a test needs to reach it."""

    def __init__(self, mode: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.base_url = f"http://127.0.0.1:{self.port}"
        argv = [sys.executable, str(FAKE), "--model", "x", "--port", str(self.port), "-tp", "2", "-dcp", "2"]
        self.process = subprocess.Popen(
            [*argv, "--api-key", "s3cr3tvalue"] if mode == "secret" else argv,
            env={**os.environ, "FAKE_VLLM_MODE": mode},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.pid = self.process.pid

    def wait_up(self) -> None:
        assert eventually(self._is_up), "the fake server did not come up"

    def _is_up(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.base_url}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def end(self) -> None:
        members = psutil.Process(self.pid).children(recursive=True) if psutil.pid_exists(self.pid) else []
        for member in members:
            if member.is_running():
                member.kill()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()


def eventually(condition: Callable[[], object], *, within_s: float = WITHIN_S) -> bool:
    until_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > until_s:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def tree(request: pytest.FixtureRequest) -> Iterator[Tree]:
    found = Tree(getattr(request, "param", "healthy"))
    try:
        found.wait_up()
        yield found
    finally:
        found.end()


class Watch:
    """An observer with its sink; stopped at the end, whatever happens."""

    def __init__(self, tree: Tree, **options: object) -> None:
        began_s = time.monotonic()
        self.clock = lambda: time.monotonic() - began_s
        self.sunk: list[Value] = []
        settings: dict[str, object] = {
            "scenario": SCENARIO,
            "base_url": tree.base_url,
            "clock": self.clock,
            "sink": self.sunk.append,
            "server_is_ours": True,
            **options,
        }
        self.observer = Observer(tree.pid, **settings)  # type: ignore[arg-type]

    def send(self) -> None:
        sent = PromptSent(
            t_s=self.clock(), kind="needle", tokens=9, depth=0, seed=0, nonce="n", expected="e", max_output_tokens=1
        )
        self.observer.set_client(ClientOutcome(sent=sent))

    def usable_of(self, process: ProcessInfo) -> list[StackSample]:
        return [sample for sample in self.observer.snapshot().samples_of(process.pid) if sample.usable]

    def notes(self) -> list[str]:
        return [value.text for value in tuple(self.sunk) if isinstance(value, NoteEvent)]


@pytest.fixture
def watch(tree: Tree) -> Iterator[Callable[..., Watch]]:
    watches: list[Watch] = []

    def start(**options: object) -> Watch:
        found = Watch(tree, **options)
        watches.append(found)
        found.observer.start()
        return found

    yield start
    for found in watches:
        found.observer.stop()
    assert eventually(lambda: our_pyspies() == [], within_s=10), "stop() leaves no py-spy"


def our_pyspies() -> list[psutil.Process]:
    members = {p.pid for p in psutil.Process().children(recursive=True)}
    return [p for p in psutil.process_iter() if p.pid in members and "py-spy" in " ".join(command(p))]


def command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def wrapper(folder: Path, body: str) -> Path:
    script = folder / "py-spy"
    script.write_text(f'#!/bin/sh\nfor target in "$@"; do :; done\n{body}\nexec {find_pyspy()} "$@"\n')
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("tree", ["secret"], indirect=True)
def test_the_tree_has_roles_and_ranks_and_outlives_its_root(tree: Tree) -> None:
    known = ProcessTree(tree.pid)
    processes = known.look()
    assert [process.name for process in processes if process.role != "other"] == [
        "APIServer",
        "EngineCore",
        "Worker_TP0_DCP0",
        "Worker_TP1_DCP1",
    ]
    assert "s3cr3tvalue" not in repr(processes)
    assert all(is_alive(key_of(process)) for process in processes)
    root = processes[0]
    assert not is_alive((root.pid, root.started_at_s - 1)), "another start time is another process"
    tree.process.kill()
    tree.process.wait()
    assert [process.name for process in known.look()][:2] == ["EngineCore", "Worker_TP0_DCP0"]
    assert ProcessTree(tree.pid).look() == ()


@pytest.mark.parametrize("tree", ["crawling"], indirect=True)
def test_a_crawling_prefill_is_seen_from_every_side(tree: Tree, watch: Callable[..., Watch]) -> None:
    watched = watch()
    assert watched.observer.snapshot().processes, "the tree is known when start returns"
    body = json.dumps({"model": "x", "prompt": "a" * 6000, "stream": True, "max_tokens": 4}).encode()
    request = urllib.request.Request(
        f"{tree.base_url}/v1/completions", data=body, headers={"Content-Type": "application/json"}
    )
    watched.send()
    threading.Thread(target=quietly, args=(request,), daemon=True).start()
    workers = watched.observer.snapshot().workers
    assert [worker.ranks.label for worker in workers] == ["TP0_DCP0", "TP1_DCP1"]
    for worker in workers:
        assert eventually(lambda pid=worker: len(set(loop_places(watched.usable_of(pid)))) >= 3), worker.name
    observation = watched.observer.snapshot()
    core = next(process for process in observation.processes if process.role == "engine_core")
    assert eventually(lambda: watched.usable_of(core))
    assert observation.sampling.mode == "py-spy"
    assert observation.sampling.cpu_s > 0
    assert observation.sampling.taken >= 6
    assert observation.ready_at_s is not None
    assert all(sample.ended_s >= sample.started_s for sample in observation.samples)
    assert [sample.ended_s for sample in observation.samples] == sorted(s.ended_s for s in observation.samples)
    layers = {
        frame.locals.get("k_cache_prefix")
        for sample in observation.samples
        for thread in sample.threads
        for frame in thread.frames
        if frame.name == "sparse_attn_indexer"
    }
    assert any(isinstance(layer, str) and layer.startswith("model.layers.") for layer in layers)
    assert eventually(lambda: any(point.kv_cache_usage is not None for point in watched.observer.snapshot().metrics))
    assert {point.health_status for point in observation.metrics} <= {200, None}
    assert observation.metrics[0].health_status == 200
    observation = watched.observer.snapshot()
    watched.observer.stop()
    assert {type(value) for value in watched.sunk} >= {StackSample, MetricPoint, ProcessesEvent}
    in_sink = [value for value in watched.sunk if isinstance(value, StackSample)]
    assert len(in_sink) >= len(observation.samples)


def quietly(request: urllib.request.Request) -> None:
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            answer.read()
    except OSError:
        return


def loop_places(samples: list[StackSample]) -> list[tuple[object, object]]:
    found = []
    for sample in samples:
        for thread in sample.threads:
            hit = thread.find("_fp8_mqa_logits_torch")
            if hit is not None and "k_start" in hit[1].locals:
                found.append((hit[1].locals["head_start"], hit[1].locals["k_start"]))
    return found


def test_nothing_is_sampled_without_a_request(tree: Tree, watch: Callable[..., Watch]) -> None:
    watched = watch()
    assert eventually(lambda: len(watched.observer.snapshot().metrics) >= 5)
    assert watched.observer.snapshot().samples == ()
    watched.send()
    assert eventually(lambda: watched.observer.snapshot().samples)
    sent = watched.observer.snapshot().client.sent
    assert sent is not None
    end = ResponseEnd(t_s=watched.clock(), how="finished")
    watched.observer.set_client(ClientOutcome(sent=sent, end=end))
    costs = []
    for _ in range(2):  # the looks that were under way at the end are let finish
        enough = len(watched.observer.snapshot().metrics) + 10
        assert eventually(lambda most=enough: len(watched.observer.snapshot().metrics) >= most)  # type: ignore[misc]
        stats = watched.observer.snapshot().sampling
        costs.append((stats.taken, stats.cpu_s, stats.own_cpu_s))
    assert costs[0] == costs[1]


def test_a_dump_that_hangs_holds_nobody_else(tree: Tree, watch: Callable[..., Watch], tmp_path: Path) -> None:
    workers = [process for process in ProcessTree(tree.pid).look() if process.role == "worker"]
    script = wrapper(tmp_path, f'if [ "$target" = {workers[0].pid} ]; then exec sleep 300; fi')
    watched = watch(pyspy_binary=script)
    watched.send()
    assert eventually(lambda: len(watched.usable_of(workers[1])) >= 5)
    assert watched.usable_of(workers[0]) == []
    began_s = time.monotonic()
    watched.observer.stop()
    assert time.monotonic() - began_s < SCENARIO.sampling.dump_timeout_s, "stop does not wait for the hung dump"


def test_a_late_sample_is_marked_and_counted(tree: Tree, watch: Callable[..., Watch], tmp_path: Path) -> None:
    watched = watch(pyspy_binary=wrapper(tmp_path, "sleep 0.5"), late_after_s=0.3)
    watched.send()
    assert eventually(lambda: watched.observer.snapshot().sampling.late >= 2)
    observation = watched.observer.snapshot()
    assert all(sample.late and not sample.usable for sample in observation.samples)
    assert observation.sampling.longest_s >= 0.5


def test_a_metrics_endpoint_that_hangs_stops_no_stacks(tree: Tree, watch: Callable[..., Watch]) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        watched = watch(base_url=f"http://127.0.0.1:{silent.getsockname()[1]}")
        watched.send()
        worker = watched.observer.snapshot().workers[0]
        assert eventually(lambda: len(watched.usable_of(worker)) >= 3)
        assert eventually(lambda: watched.observer.snapshot().metrics, within_s=30)
        point = watched.observer.snapshot().metrics[0]
        assert point.health_status is None
        assert point.error is not None
        assert point.error.startswith("/metrics")


def test_a_worker_that_dies_is_noted_and_keeps_its_name(tree: Tree, watch: Callable[..., Watch]) -> None:
    watched = watch()
    watched.send()
    worker = watched.observer.snapshot().workers[1]
    assert eventually(lambda: watched.usable_of(worker))
    psutil.Process(worker.pid).kill()
    assert eventually(lambda: f"Worker_TP1_DCP1 (pid {worker.pid}) is gone" in watched.notes())
    assert worker in watched.observer.snapshot().processes


DENIED = 'echo "Error: Failed to copy Py_Version symbol: Permission denied (os error 13)" >&2; exit 1'


def test_where_pyspy_is_refused_the_probe_takes_over(tree: Tree, watch: Callable[..., Watch], tmp_path: Path) -> None:
    folder = tmp_path / "probe"
    folder.mkdir()
    watched = watch(pyspy_binary=wrapper(tmp_path, DENIED), in_process_dir=folder)
    assert eventually((folder / "sample.on").exists)
    stats = watched.observer.snapshot().sampling
    assert stats.mode == "in-process"
    assert stats.reason is not None
    assert "SYS_PTRACE" in stats.reason
    watched.send()
    worker = watched.observer.snapshot().workers[0]
    frame = {"function": "f", "filename": "x.py", "line": 1, "locals": {"head_start": 7, "prompt": "secret"}}
    now_s = time.monotonic()
    document = {
        "schema": 1,
        "pid": worker.pid,
        "started_monotonic_s": now_s,
        "ended_monotonic_s": now_s + 0.001,
        "threads": [{"thread_name": "MainThread", "frames": [frame]}],
        "cpu_s": 0.25,
    }
    (folder / f"stacks-{worker.pid}.jsonl").write_text(json.dumps(document, separators=(",", ":")) + "\n")
    assert eventually(lambda: watched.observer.snapshot().samples)
    (sample,) = watched.observer.snapshot().samples
    assert sample.source == "in-process"
    assert sample.usable
    assert sample.threads[0].frames[0].locals == {"head_start": 7}
    assert abs(sample.started_s - watched.clock()) < WITHIN_S
    assert eventually(lambda: watched.observer.snapshot().sampling.cpu_s == 0.25)
    watched.observer.stop()
    assert not (folder / "sample.on").exists()


def test_nothing_is_written_to_a_server_that_is_not_ours(
    tree: Tree, watch: Callable[..., Watch], tmp_path: Path
) -> None:
    folder = tmp_path / "probe"
    folder.mkdir()
    watched = watch(pyspy_binary=wrapper(tmp_path, DENIED), in_process_dir=folder, server_is_ours=False)
    assert eventually(lambda: watched.observer.snapshot().sampling.mode == "none")
    assert list(folder.iterdir()) == []
    assert any("SYS_PTRACE" in note for note in watched.notes())


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="drops a capability: needs root")
def test_a_real_refusal_by_the_kernel(tree: Tree, watch: Callable[..., Watch], tmp_path: Path) -> None:
    script = wrapper(tmp_path, f'exec setpriv --bounding-set=-sys_ptrace {find_pyspy()} "$@"')
    watched = watch(pyspy_binary=script)
    assert eventually(lambda: watched.observer.snapshot().sampling.mode == "none")


def test_without_pyspy_the_rest_is_still_observed(tree: Tree, watch: Callable[..., Watch], tmp_path: Path) -> None:
    watched = watch(pyspy_binary=tmp_path / "absent")
    watched.send()
    assert eventually(lambda: watched.observer.snapshot().sampling.mode == "none")
    assert eventually(lambda: watched.observer.snapshot().metrics)
    reason = watched.observer.snapshot().sampling.reason
    assert reason is not None
    assert reason.startswith("py-spy is not installed")
