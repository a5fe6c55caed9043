"""The probe inside real processes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from uv import find_uv_bin

from sparkdiag.evidence.identity import ProcessIdentity
from sparkdiag.evidence.stacks import ThreadStack
from sparkdiag.probe.locate import CONTROL_FILE, package_folder, stacks_file
from tests.integration.serving_case import FAKES, Case, read_json_lines, until

pytestmark = pytest.mark.integration
LOADS = """
import sys, vllm
from importlib.metadata import entry_points
for point in entry_points(group="vllm.general_plugins"):
    point.load()()
    point.load()()
print("loaded", flush=True)
sys.stdin.readline()
print("result", 6 * 7, flush=True)
"""


def child(**env: str) -> "subprocess.Popen[str]":
    path = f"{FAKES / 'site'}:{package_folder()}"
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", LOADS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **env},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "loaded\n"
    return process


def test_a_plain_process_tells_who_it_is(tmp_path: Path) -> None:
    with child(SPARKDIAG_PROBE_DIR=str(tmp_path), SPARKDIAG_PROBE_WATCH='["vllm"]') as process:
        path = tmp_path / f"identity-{process.pid}.json"
        until(path.exists)
        found = ProcessIdentity.model_validate_json(path.read_text())
        assert found.pid == process.pid
        assert found.vllm_version == "0.0.1+fake"
        assert [proof.module for proof in found.files] == ["vllm"]
        assert process.communicate("\n") == ("result 42\n", "")
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize(
    "env",
    [
        {"SPARKDIAG_PROBE_DIR": "/no/such/folder"},
        {"SPARKDIAG_PROBE_DIR": "/proc"},
        {"SPARKDIAG_PROBE_DIR": "/proc", "SPARKDIAG_PROBE_WATCH": "{", "SPARKDIAG_PROBE_PTRACER": "x"},
        {"SPARKDIAG_PROBE_DIR": ""},
    ],
)
def test_a_broken_environment_is_no_concern_of_the_server(env: dict[str, str]) -> None:
    with child(**env) as process:
        assert process.communicate("\n") == ("result 42\n", "")
        assert process.returncode == 0


def test_a_ptracer_is_named_without_harm(tmp_path: Path) -> None:
    with child(SPARKDIAG_PROBE_DIR=str(tmp_path), SPARKDIAG_PROBE_PTRACER=str(os.getpid())) as process:
        assert process.communicate("\n") == ("result 42\n", "")


def test_the_sampler_shows_the_loop_only_while_asked(tmp_path: Path) -> None:
    case = Case(tmp_path, "crawling", FAKE_VLLM_PASS="2000")
    with case.launch() as server:
        server.wait_ready(30)
        worker = case.events("worker up")[0][0]
        path = stacks_file(case.probe_dir, worker)
        control = case.probe_dir / CONTROL_FILE
        assert not path.exists()
        control.write_text(json.dumps({"period_s": 0.05}))
        with httpx.stream(
            "POST", f"{server.base_url}/v1/completions", json={"prompt": "x" * 200_000}, timeout=60, trust_env=False
        ):
            loops = until(lambda: [found for line in read_json_lines(path) if (found := _loop(line))])
            control.unlink()
    first = loops[0]
    assert first["num_heads"] == 8
    assert first["clean_logits"] is False
    assert {"head_start", "k_start", "head_chunk_size", "k_chunk_size", "seq_len", "seq_len_kv"} <= set(first)


def _loop(line: dict[str, Any]) -> dict[str, object] | None:
    threads = [ThreadStack.model_validate(thread) for thread in line["threads"]]
    for thread in threads:
        found = thread.find("_fp8_mqa_logits_torch")
        if found and "k_start" in found[1].locals:
            return dict(found[1].locals)
    return None


LOOP = """
import sys, sparkdiag_probe, vllm
def slow_loop(total):
    held = [object()]
    for head_start in range(total):
        if head_start == 5:
            print("looping", flush=True)
            sys.stdin.readline()
    return (head_start, len(held), total)
sparkdiag_probe.load()
print(slow_loop(9), flush=True)
"""


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_every_python_that_vllm_runs_on_shows_its_loop_and_keeps_its_result(tmp_path: Path, version: str) -> None:
    python = _interpreter(version)
    (tmp_path / CONTROL_FILE).write_text('{"period_s": 0.05}')
    env = {
        "PYTHONPATH": f"{FAKES / 'site'}:{package_folder()}",
        "SPARKDIAG_PROBE_DIR": str(tmp_path),
        "SPARKDIAG_PROBE_FUNCTIONS": '["slow_loop"]',
    }
    with subprocess.Popen(
        [python, "-W", "error", "-c", LOOP],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **env},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "looping\n"
        path = stacks_file(tmp_path, process.pid)
        found = until(lambda: [frame for line in read_json_lines(path) for frame in _frames(line, "slow_loop")])
        assert found[0]["locals"] == {"total": 9, "head_start": 5}
        assert process.communicate("\n") == ("(8, 1, 9)\n", "")


def _frames(line: dict[str, Any], function: str) -> list[dict[str, Any]]:
    return [frame for thread in line["threads"] for frame in thread["frames"] if frame["function"] == function]


def _interpreter(version: str) -> str:
    """An interpreter of that version, by uv's or pyenv's knowledge of this machine."""
    uv = shutil.which("uv") or find_uv_bin()
    found = subprocess.run(
        [uv, "python", "find", "--no-python-downloads", version],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    if found.returncode == 0:
        return found.stdout.strip()
    for python in _pyenv_interpreters(version):
        return str(python)
    pytest.skip(f"no Python {version} on this machine")


def _pyenv_interpreters(version: str) -> list[Path]:
    """Those that pyenv installed: its shims answer for the chosen versions only, and uv asks the shims."""
    pyenv = shutil.which("pyenv")
    if pyenv is None:
        return []
    root = subprocess.run([pyenv, "root"], check=False, capture_output=True, text=True, timeout=60).stdout.strip()
    return sorted(Path(root).glob(f"versions/{version}.*/bin/python")) if root else []
