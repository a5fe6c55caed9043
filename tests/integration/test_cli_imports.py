"""What a plain command needs of the machine: no git for help or an existing interpreter, no torch or vllm ever."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration

PREPARE = "import sparkdiag.environment.prepare, sparkdiag.lab.history, sparkdiag.reproducing.session"


def run(code: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120, check=False
    )


def test_nothing_of_a_run_needs_git_to_be_imported() -> None:
    done = run(PREPARE, PATH="/nonexistent")
    assert done.returncode == 0, done.stderr


def test_the_clis_own_process_never_imports_torch_vllm_or_numba() -> None:
    done = run(f"{PREPARE}, sparkdiag.cli.app; import sys; print({{'torch', 'vllm', 'numba'}} & set(sys.modules))")
    assert done.stdout.strip() == "set()", done.stderr


HEAVY = (
    "asyncio",
    "filelock",
    "git",
    "github",
    "httpx",
    "platformdirs",
    "prometheus_client",
    "psutil",
    "pydantic",
    "pynvml",
    "requests",
    "rich",
)
MODULES_AT_THE_END = """
import atexit, runpy, sys
atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr))
sys.argv = ["sparkdiag", *sys.argv[1:]]
runpy.run_module("sparkdiag.cli.app", run_name="__main__", alter_sys=True)
"""


def imported(*args: str, **env: str) -> set[str]:
    """Modules that one call of the command line had imported when it ended."""
    done = subprocess.run(
        [sys.executable, "-c", MODULES_AT_THE_END, *args],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    modules = set((done.stderr.splitlines() or [""])[-1].split())
    assert "typer" in modules, done.stderr
    return modules


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_a_call_that_only_tells_imports_nothing_heavy(option: str) -> None:
    assert imported(option, PATH="/usr/bin:/bin") & set(HEAVY) == set()


def test_listing_runs_imports_none_of_what_a_run_needs() -> None:
    listed = imported("runs", "list", "--out", "/nonexistent", PATH="/usr/bin:/bin", HOME="/nonexistent")
    assert listed & {"asyncio", "git", "httpx", "prometheus_client", "pynvml", "rich"} == set()


def complete(variables: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", "import sys; sys.argv = ['sparkdiag']; from sparkdiag.cli.app import main; main()"],
        env={"PATH": "/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_shell_completion_answers_and_ends_well() -> None:
    words = {"COMP_WORDS": "sparkdiag ru", "COMP_CWORD": "1"}
    done = complete({"_SPARKDIAG_COMPLETE": "complete_bash", **words})
    assert (done.stdout.strip(), done.returncode) == ("runs", 0), done.stderr


@pytest.mark.parametrize(("typed", "code"), [("sparkdiag ru", 0), ("sparkdiag xx", 1)])
def test_fish_reads_from_the_exit_code_whether_there_is_anything_to_complete(typed: str, code: int) -> None:
    asked = {"_TYPER_COMPLETE_FISH_ACTION": "is-args", "_TYPER_COMPLETE_ARGS": typed}
    assert complete({"_SPARKDIAG_COMPLETE": "complete_fish", **asked}).returncode == code


def test_a_folder_that_is_no_clone_is_refused(tmp_path: object) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sparkdiag", "repro", "--repo", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert "no git clone" in done.stderr
