"""What a Python environment has installed, read from its files: nothing is imported and no child is started."""

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from sparkdiag.evidence.base import Value

PACKAGES = (
    "vllm*", "torch", "torchvision", "torchaudio", "triton", "pytorch-triton*", "numpy", "transformers", "tokenizers",
    "flashinfer*", "flash-attn*", "deep-gemm", "deep-ep", "pyzmq", "nvidia-*", "pynvml", "cuda-python", "cuda-bindings",
    "compressed-tensors", "xgrammar", "ray", "numba", "cupy*", "helion", "optree", "onnx", "safetensors", "tilelang",
    "sparkdiag",
)  # fmt: skip
"""Patterns of the distributions that decide which kernels run, and of those that vLLM's bug form asks for."""
MOST_PACKAGES = 80
_MOST_ENTRIES = 20_000
_MOST_BYTES = 64 * 1024
_INFO = re.compile(r"(?P<name>[A-Za-z0-9][\w.]*)-(?P<version>[\w.+!]+)\.dist-info")
_PYTHON = re.compile(r"python(\d+\.\d+)")
_PYVENV = re.compile(r"^version(?:_info)?\s*=\s*(\d+\.\d+(?:\.\d+)?)", re.MULTILINE)
_ASSIGNED = r"^{name}\s*(?::[^=\n]*)?=\s*(?:'([^'\n]*)'|\"([^\"\n]*)\"|(\w+))"


class Installed(Value):
    """None for what the files do not tell."""

    python: str | None = None
    packages: dict[str, str] = {}
    """By normalised name, sorted."""
    torch_cuda: str | None = None
    torch_rocm: str | None = None
    torch_debug: bool | None = None
    vllm_commit: str | None = None


def installed_in(python: str | None, *, package_path: str | None = None) -> Installed:
    """Of the environment of an interpreter, and of the folder that its ``vllm`` lies in. Never raises."""
    folders = [*_site_packages(python), *([Path(package_path).parent] if package_path else [])]
    packages: dict[str, str] = {}
    for folder in dict.fromkeys(folders):
        for name, version in _distributions(folder):
            packages.setdefault(name, version)
    torch = _first_text(folders, "torch/version.py")
    return Installed(
        python=_python_version(python),
        packages=dict(sorted(packages.items())[:MOST_PACKAGES]),
        torch_cuda=_assigned(torch, "cuda"),
        torch_rocm=_assigned(torch, "hip"),
        torch_debug={"True": True, "False": False}.get(_assigned(torch, "debug") or ""),
        vllm_commit=_vllm_commit(package_path),
    )


def _site_packages(python: str | None) -> Sequence[Path]:
    """A virtual environment's own folders, else those beside the interpreter it links to."""
    if python is None:
        return ()
    for prefix in dict.fromkeys((Path(python).parent.parent, Path(os.path.realpath(python)).parent.parent)):
        found = sorted((*prefix.glob("lib/python3*/site-packages"), *prefix.glob("lib/python3*/dist-packages")))
        if found:
            return found
    return ()


def _distributions(folder: Path) -> Iterator[tuple[str, str]]:
    try:
        with os.scandir(folder) as entries:
            for count, entry in enumerate(entries):
                if count >= _MOST_ENTRIES:
                    return
                match = _INFO.fullmatch(entry.name)
                if match is not None:
                    name = re.sub(r"[-_.]+", "-", match["name"]).lower()
                    if any(fnmatchcase(name, pattern) for pattern in PACKAGES):
                        yield name, match["version"]
    except OSError:
        return


def _python_version(python: str | None) -> str | None:
    """``3.11.7``, of an interpreter outside a virtual environment ``3.11``."""
    if python is None:
        return None
    said = _PYVENV.search(_text(Path(python).parent.parent / "pyvenv.cfg"))
    if said is not None:
        return said[1]
    named = _PYTHON.search(os.path.realpath(python))
    return named[1] if named is not None else None


def _vllm_commit(package_path: str | None) -> str | None:
    if package_path is None:
        return None
    text = _text(Path(package_path) / "_version.py")
    found = re.search(r"^(?:__)?commit_id(?:__)? = (?:\w+ = )?'([^'\n]{1,60})'", text, re.MULTILINE)
    return found[1].removeprefix("g") if found is not None else None


def _assigned(text: str, name: str) -> str | None:
    """What a generated file sets ``name`` to: ``none`` for None, None where it does not set it."""
    found = re.search(_ASSIGNED.format(name=name), text, re.MULTILINE)
    if found is None:
        return None
    value = found[1] or found[2] or found[3]
    return "none" if value == "None" else value


def _first_text(folders: Sequence[Path], name: str) -> str:
    return next(filter(None, (_text(folder / name) for folder in folders)), "")


def _text(path: Path) -> str:
    """The beginning of a file; empty where there is none."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_BYTES)
    except OSError:
        return ""
