from pathlib import Path

from sparkdiag.environment.packages import MOST_PACKAGES, installed_in


def an_environment(root: Path, *distributions: str, torch: str = "") -> tuple[str, Path]:
    """A folder as ``python -m venv`` and an installer leave it: its interpreter, its site-packages."""
    site = root / "lib" / "python3.12" / "site-packages"
    site.mkdir(parents=True)
    (root / "bin").mkdir()
    (root / "bin" / "python").touch()
    (root / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.4\n")
    for name in distributions:
        (site / f"{name}.dist-info").mkdir()
    if torch:
        (site / "torch").mkdir()
        (site / "torch" / "version.py").write_text(torch)
    return str(root / "bin" / "python"), site


def test_versions_are_read_from_the_folders_names_and_the_rest_is_left_alone(tmp_path: Path) -> None:
    python, _ = an_environment(
        tmp_path, "torch-2.9.1+cu130", "nvidia_cudnn_cu13-9.15.1.9", "NumPy-2.3.5", "requests-2.32.0", "my_model-1.0"
    )
    found = installed_in(python)
    assert found.python == "3.12.4"
    assert found.packages == {"numpy": "2.3.5", "nvidia-cudnn-cu13": "9.15.1.9", "torch": "2.9.1+cu130"}


def test_how_pytorch_was_built_is_read_without_importing_it(tmp_path: Path) -> None:
    built = "__version__ = '2.9.1'\ndebug = False\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n"
    python, _ = an_environment(tmp_path, torch=built)
    found = installed_in(python)
    assert (found.torch_cuda, found.torch_rocm, found.torch_debug) == ("13.0", "none", False)


def test_a_version_file_that_runs_something_is_only_read(tmp_path: Path) -> None:
    python, _ = an_environment(tmp_path, torch="raise SystemExit\ncuda = 'x")
    assert installed_in(python).torch_cuda is None


def test_the_commit_that_vllm_was_built_from(tmp_path: Path) -> None:
    python, site = an_environment(tmp_path, "vllm-0.11.1")
    (site / "vllm").mkdir()
    (site / "vllm" / "_version.py").write_text("__commit_id__ = commit_id = 'g3f2a9c41d'\n")
    found = installed_in(python, package_path=str(site / "vllm"))
    assert (found.vllm_commit, found.packages) == ("3f2a9c41d", {"vllm": "0.11.1"})


def test_an_environment_that_is_not_there_tells_nothing(tmp_path: Path) -> None:
    gone = installed_in(str(tmp_path / "bin" / "python"), package_path=str(tmp_path / "vllm"))
    assert (gone.packages, gone.torch_cuda, gone.vllm_commit) == ({}, None, None)
    assert installed_in(None).python is None


def test_it_is_bounded(tmp_path: Path) -> None:
    python, _ = an_environment(tmp_path, *(f"nvidia_{number}-1.0" for number in range(300)))
    assert len(installed_in(python).packages) == MOST_PACKAGES
