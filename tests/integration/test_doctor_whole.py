"""The whole diagnosis on this machine: well, and with one thing missing after the other."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.doctor_case import SOURCE, Doctor, fake_environment, unprivileged

pytestmark = pytest.mark.integration
SHM = Path("/dev/shm")


@pytest.fixture
def doctor(tmp_path: Path) -> Iterator[Doctor]:
    yield Doctor(tmp_path)


def needs_mounts() -> tuple[str, ...]:
    """argv for a mount namespace of our own; skips where that is not permitted."""
    tried = subprocess.run(["unshare", "-m", "true"], capture_output=True, timeout=30, check=False)
    if tried.returncode != 0:
        pytest.skip(f"no mount namespace here: {tried.stderr.decode().strip()}")
    return ("unshare", "-m")


def test_a_machine_that_is_well_leaves_nothing_behind(doctor: Doctor) -> None:
    before = set(SHM.iterdir()) if SHM.is_dir() else set()
    told = doctor.run()
    assert told.bad == {}
    assert told.code == 0
    assert told.document["schema"] == 1
    assert told.document["ok"] is True
    assert told.document["asked"]["scenario"] == "lab"
    assert "the first repro builds it: download" in told.one("environment")["seen"]
    assert "not tried here" in told.one("uv")["seen"]
    for name in ("sample-child", "sample-other", "sample-environment"):
        assert "function and locals of" in told.one(name)["seen"]
    assert told.one("machine-lock")["seen"] == "no other run of this user"
    assert not doctor.runs.exists()
    assert list(doctor.temporary.iterdir()) == []
    assert not {path for path in SHM.iterdir() if path.name.startswith("sparkdiag")} - before
    assert not (doctor.cache / "sparkdiag" / "envs").exists()


def test_one_line_a_finding_that_fits_a_terminal(doctor: Doctor) -> None:
    done = doctor.text()
    assert done.returncode == 0, done.stdout + done.stderr
    *lines, last = done.stdout.splitlines()
    assert all(len(line) < 80 for line in lines), done.stdout
    assert sum(line.startswith(("ok ", "warn ")) for line in lines) >= 15
    assert last.endswith(": a run can work here")
    assert "using the embedded lab" in done.stderr


def test_dcp_that_does_not_divide_tp(doctor: Doctor) -> None:
    told = doctor.run("--dcp", "4", "--tp", "6")
    assert (told.code, told.bad) == (4, {"dcp-tp": "fail"})
    assert told.one("dcp-tp")["next"]


def test_without_git_the_lab_cannot_run(doctor: Doctor) -> None:
    told = doctor.run(PATH="/nonexistent")
    assert (told.code, told.bad) == (4, {"git": "fail"})


def test_an_existing_environment_is_asked_and_its_gpus_counted(doctor: Doctor) -> None:
    made = fake_environment(doctor.folder / "venv")
    told = doctor.run("--env", f"existing:{made}", CUDA_VISIBLE_DEVICES="")
    assert told.code == 4
    assert told.bad == {"gpu": "fail", "model": "fail"}
    assert told.one("environment")["seen"].startswith("vLLM 0.26.0, torch 2.11.0, Python 3.")
    assert told.one("suspect-code")["seen"].startswith("_fp8_mqa_logits_torch in vllm/utils/deep_gemm.py")
    assert told.named("uv") == told.named("git") == told.named("clone") == []


def test_an_environment_without_the_suspect_function(doctor: Doctor) -> None:
    made = fake_environment(doctor.folder / "venv", source="def something_else(): pass\n")
    told = doctor.run("--env", f"existing:{made}", CUDA_VISIBLE_DEVICES="")
    assert told.bad == {"gpu": "fail", "model": "fail", "suspect-code": "fail"}


def test_a_model_that_is_not_there(doctor: Doctor) -> None:
    made = fake_environment(doctor.folder / "venv")
    for model, status in (("/nonexistent/model", "fail"), ("org/name", "ok")):
        told = doctor.run("--env", f"existing:{made}", "--model", model, CUDA_VISIBLE_DEVICES="")
        assert told.one("model")["status"] == status


@pytest.mark.parametrize(("target", "said"), [("nowhere", "does not exist"), ("plain", "has no vllm")])
def test_an_environment_that_is_none(doctor: Doctor, target: str, said: str) -> None:
    plain = doctor.folder / "plain" / "bin"
    plain.mkdir(parents=True)
    (plain / "python").symlink_to(Path(sys.executable).resolve())
    told = doctor.run("--env", f"existing:{doctor.folder / target}")
    assert told.code == 4
    assert said in told.one("environment")["seen"]
    assert told.one("port")["status"] == "ok"


def test_tiny_shared_memory_and_a_full_disk(doctor: Doctor) -> None:
    doctor.runs.mkdir()
    inside = needs_mounts()
    mounts = f"mount -t tmpfs -o size=512k none {SHM} && mount -t tmpfs -o size=128k none {doctor.runs}"
    told = doctor.run(before=(*inside, "sh", "-c", f'{mounts} && exec "$@"', "sh"))
    assert told.code == 4
    assert told.bad == {"shared-memory": "fail", "disk": "fail"}
    assert "a segment of 1 MiB could not be made: No space left on device" in told.one("shared-memory")["seen"]
    assert "No space left on device" in told.one("disk")["seen"]


def test_read_only_shared_memory_is_a_failure_with_its_cause(doctor: Doctor) -> None:
    mount = f"mount -t tmpfs -o ro none {SHM}"
    told = doctor.run(before=(*needs_mounts(), "sh", "-c", f'{mount} && exec "$@"', "sh"))
    assert told.code == 4
    assert told.bad["shared-memory"] == "fail"
    assert "Read-only file system" in told.one("shared-memory")["seen"]


def test_shared_memory_as_docker_gives_it_is_a_warning(doctor: Doctor) -> None:
    mount = f"mount -t tmpfs -o size=64m none {SHM}"
    told = doctor.run(before=(*needs_mounts(), "sh", "-c", f'{mount} && exec "$@"', "sh"))
    assert (told.code, told.bad) == (0, {"shared-memory": "warn"})


def test_no_cache_no_runs_no_limit(doctor: Doctor) -> None:
    """As a user who may write nowhere but in the temporary folder, with few files to hold open."""
    if shutil.which("prlimit") is None:
        pytest.skip("no prlimit")
    before = ("prlimit", "--nofile=400:400", *unprivileged())
    doctor.folder.chmod(0o555)
    closed = str(doctor.folder / "closed")
    told = doctor.run(before=before, SPARKDIAG_CACHE=closed, XDG_CACHE_HOME=closed)
    assert told.code == 4
    assert told.bad == {"disk": "fail", "open-files": "fail"}
    assert told.one("machine-lock")["status"] == "fail"
    assert [finding["seen"].split(": ")[-1] for finding in told.named("disk")] == ["Permission denied"] * 2


def test_a_lowered_sparkdiag_is_told_so(doctor: Doctor) -> None:
    told = doctor.run(before=("nice", "-n", "5"))
    assert told.bad == {"nice": "warn"}


def test_usage_is_refused_as_everywhere(doctor: Doctor) -> None:
    for arguments in (["--dcp", "0"], ["--env", "venv:x"], ["--scenario", "nonsense"]):
        done = doctor.text(*arguments)
        assert done.returncode == 2, done.stderr
        assert "next:" in done.stderr


def test_help_names_an_example_and_imports_nothing_heavy() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sparkdiag", "doctor", "--help"],
        cwd=SOURCE, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert "Example: sparkdiag doctor" in done.stdout


def test_sessions_without_a_scheduling_group_are_well(doctor: Doctor) -> None:
    """As on a machine of the CI: autogroups enabled, and the kernel's answer about every process empty."""
    patch = """
from sparkdiag.doctor import look_machine
look_machine._autogroup_enabled = lambda: True
look_machine.read_group = lambda path: None
"""
    assert doctor.run(patch=patch).one("autogroup")["status"] == "ok"
