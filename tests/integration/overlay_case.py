"""A small vllm with a history, and an environment it is installed in, compiled extension and all."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from sparkdiag.environment.cache import environments_dir
from sparkdiag.environment.model import Environment
from sparkdiag.environment.prepare import prepare
from sparkdiag.environment.progress import SilentProgress
from sparkdiag.environment.spec import parse_spec
from sparkdiag.evidence.base import Value
from sparkdiag.evidence.identity import ProcessIdentity
from sparkdiag.evidence.run import FileProof
from sparkdiag.scenario.model import PromptSettings, Scenario, ServerSettings, Signature, WatchedFunction

VERSION = "0.99.0"
EXTENSIONS = ("_heapq", "_bisect", "_random", "_json")
"""Any extension of the standard library stands in for vLLM's: it is compiled, and Python loads it for real."""
AT_BASE = {
    "vllm/__init__.py": "from vllm.version import __version__\n",
    "vllm/version.py": "from vllm._version import __version__\n",
    "vllm/feature.py": "def prefill():\n    return 'base'\n",
    "vllm/steady.py": "def steady():\n    return steady.__code__.co_filename\n",
    "vllm/gone.py": "",
    "vllm/data/config.json": "{}\n",
    "vllm/entrypoints/__init__.py": "",
    "csrc/kernels.cpp": "int x;\n",
    "csrc/kernels.cu": "int y;\n",
    "requirements/common.txt": "numpy>=1\n",
    "setup.py": "from setuptools import setup\n",
    ".gitignore": "*.so\n/vllm/_version.py\n",
}


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True, timeout=60
    )
    return done.stdout.strip()


def commit(repo: Path, files: dict[str, str | None], *, message: str = "change") -> str:
    """Write (or with None delete) files and commit them; the commit's id."""
    for name, text in files.items():
        path = repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink()
        else:
            path.write_text(text)
    git(repo, "add", "--all", "--force", *files)
    git(repo, "commit", "-q", "-m", message)
    return git(repo, "rev-parse", "HEAD")


def extension() -> Path:
    specs = (importlib.util.find_spec(name) for name in EXTENSIONS)
    return next(Path(spec.origin) for spec in specs if spec and spec.origin and spec.origin.endswith(".so"))


class OverlayCase:
    """The clone (its base tagged), and a base environment of the base's commit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clone = folder / "clone"
        self.clone.mkdir()
        git(self.clone, "init", "-q", "-b", "main")
        self.base_sha = commit(self.clone, dict(AT_BASE), message="base")
        git(self.clone, "tag", f"v{VERSION}")
        self.venv = folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.venv], check=True, timeout=120)
        self.site = next((self.venv / "lib").glob("python3*")) / "site-packages"
        self.install()

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    @property
    def spec(self) -> str:
        return f"existing:{self.python}"

    @property
    def extension_name(self) -> str:
        return extension().name.split(".")[0]

    def install(self) -> None:
        """What a built wheel of the base holds: its Python, and what the build made."""
        package = self.site / "vllm"
        shutil.copytree(self.clone / "vllm", package)
        (package / "_version.py").write_text(f'__version__ = "{VERSION}"\n')
        shutil.copyfile(extension(), package / extension().name)
        for name in ("vllm_flash_attn/copied.py", "third_party/sub/inside.py"):
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            (package / name).write_text("made_by_the_build = True\n")
        info = self.site / f"vllm-{VERSION}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}\n")
        (info / "top_level.txt").write_text("vllm\n")
        (info / "RECORD").write_text("")

    def run(self, code: str, *path: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Run ``code`` as a server would run: the base's interpreter, the overlay before its packages."""
        environ = {**os.environ, "PYTHONPATH": ":".join(path)}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        return subprocess.run(
            [str(self.python), *options, "-c", code],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
            env=environ,
            cwd=self.folder,
        )


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below ``folder`` with its time of change and content."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


CHANGE: dict[str, str | None] = {
    "vllm/feature.py": "def prefill():\n    return 'revision'\n",
    "vllm/added.py": "here = True\n",
    "vllm/gone.py": None,
}
ASK = """
import json, sys, hashlib
import vllm, vllm.feature
print(json.dumps({
    "version": vllm.__version__, "path": vllm.__file__, "prefill": vllm.feature.prefill(),
    "files": [{"module": m, "path": sys.modules[m].__file__,
               "sha256": hashlib.sha256(open(sys.modules[m].__file__, "rb").read()).hexdigest()}
              for m in ("vllm", "vllm.feature")],
}))
"""


def scenario(*, lab: bool = False) -> Scenario:
    return Scenario(
        schema=1,
        name="x",
        title="x",
        lab=lab,
        server=ServerSettings(),
        prompt=PromptSettings(tokens=64),
        signatures=(Signature(function="f", kind="torch-fallback"),),
        watch=(WatchedFunction(function="f", modules=("vllm.steady",)),),
    )


class Said(SilentProgress):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


def prepared(case: OverlayCase, revision: str, *, repo: Path | None = None, said: Said | None = None) -> Environment:
    spec = parse_spec(f"overlay:{revision}@{case.spec}")
    return prepare(spec, scenario=scenario(), revision=None, repo=repo or case.clone, progress=said or SilentProgress())


class Told(Value):
    """What ``ASK`` prints."""

    version: str
    path: str
    prefill: str
    files: tuple[FileProof, ...]


def run(case: OverlayCase, environment: Environment) -> ProcessIdentity:
    """What a process of the server would tell of itself."""
    done = case.run(ASK, *environment.pythonpath)
    assert done.returncode == 0, done.stderr
    told = Told.model_validate_json(done.stdout)
    return ProcessIdentity(pid=1, vllm_version=told.version, vllm_path=told.path, files=told.files)


def attempts(root: Path) -> list[Path]:
    return list(environments_dir(root).glob("overlay-*/overlay-*"))
