"""``identity-<pid>.json``: what this process imported and which ranks it holds (sparkdiag.evidence.identity).

Read from ``sys.modules`` and plain attributes alone; nothing is ever imported on behalf of the look. The file is
written as soon as vLLM is there and again whenever more is known, so a reader always has the fullest one.
"""

import hashlib
import json
import os
import sys
from typing import Any

LARGEST_FILE_BYTES = 16 << 20


class Teller:
    def __init__(self, folder: str, modules: "list[str]") -> None:
        self.folder = folder
        self.modules = modules
        self.hashes: dict[str, str] = {}
        self.told: dict[str, Any] | None = None

    def tell(self) -> None:
        """Write what is known, if it is more than before."""
        found = self.look()
        if found is None or found == self.told:
            return
        path = os.path.join(self.folder, f"identity-{os.getpid()}.json")  # noqa: PTH118
        with open(path + ".tmp", "w") as file:  # noqa: PTH123
            json.dump(found, file)
        os.replace(path + ".tmp", path)  # noqa: PTH105
        self.told = found

    def look(self) -> "dict[str, Any] | None":
        """None until vLLM is imported."""
        vllm = sys.modules.get("vllm")
        if vllm is None:
            return None
        # vars(), not getattr: vLLM's module-level __getattr__ imports what is asked for.
        return {
            "pid": os.getpid(),
            "vllm_version": _text(vars(vllm).get("__version__")),
            "vllm_path": _text(vars(vllm).get("__file__")),
            "files": [proof for proof in map(self._proof, self.modules) if proof],
            **ranks(),
        }

    def _proof(self, name: str) -> "dict[str, str] | None":
        module = sys.modules.get(name)
        path = _text(vars(module).get("__file__")) if module is not None else None
        if path is None:
            return None
        if name not in self.hashes:
            try:
                if os.path.getsize(path) > LARGEST_FILE_BYTES:  # noqa: PTH202
                    return None
                with open(path, "rb") as file:  # noqa: PTH123
                    self.hashes[name] = hashlib.sha256(file.read()).hexdigest()
            except OSError:
                return None
        return {"module": name, "path": path, "sha256": self.hashes[name]}


def ranks() -> "dict[str, int | None]":
    """This process's place in its groups, as far as they are formed."""
    state = vars(sys.modules.get("vllm.distributed.parallel_state", object)) or {}
    dcp, tp = state.get("_DCP"), state.get("_TP")
    return {
        "dcp_world_size": _number(dcp, "world_size"),
        "dcp_rank": _number(dcp, "rank_in_group"),
        "tp_world_size": _number(tp, "world_size"),
        "tp_rank": _number(tp, "rank_in_group"),
    }


def _text(value: object) -> "str | None":
    return value if isinstance(value, str) else None


def _number(group: object, name: str) -> "int | None":
    value = getattr(group, "__dict__", {}).get(name)
    return value if isinstance(value, int) else None
