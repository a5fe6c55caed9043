"""Tiny wheels made by hand, so that real uv has something to install and nothing is fetched."""

import base64
import hashlib
import zipfile
from pathlib import Path


def make_wheel(folder: Path, *, name: str, version: str, files: dict[str, str]) -> tuple[Path, str]:
    """A wheel by hand; returns it and its hash."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    contents = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = []
    path = folder / f"{module}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in contents.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            lines.append(f"{file},sha256={digest},{len(text.encode())}")
            wheel.writestr(file, text)
        wheel.writestr(f"{info}/RECORD", "\n".join([*lines, f"{info}/RECORD,,"]) + "\n")
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


def vllm_files(*, on_import: str = "") -> dict[str, str]:
    return {
        "vllm/__init__.py": "",
        "vllm/entrypoints/__init__.py": "",
        "vllm/entrypoints/openai/__init__.py": "",
        "vllm/entrypoints/openai/api_server.py": on_import,
    }
