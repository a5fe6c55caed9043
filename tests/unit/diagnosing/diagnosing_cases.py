"""Looks at processes, made up for tests of what is found in them."""

import random
from collections.abc import Callable, Mapping, Sequence

from sparkdiag.evidence.diagnosis import DiagnosisKind, ProcessDiagnosis
from sparkdiag.evidence.dump import DumpFrame, DumpThread, ProcessDump
from sparkdiag.evidence.processes import Ranks, Role

OUTER = (("worker_busy_loop", 973), ("execute_model", 1412), ("forward", 88))
"""Callers, outermost first."""


def frame(function: str, line: int | None = 1, *, path: str | None = None, **values: int) -> DumpFrame:
    return DumpFrame(function=function, path=path or f"vllm/{function}.py", line=line, locals=values)


def thread(*frames: DumpFrame, name: str | None = "MainThread", whole: bool = True) -> DumpThread:
    """``frames`` outermost first, as one thinks of calls."""
    return DumpThread(name=name, frames=tuple(frames[::-1]), whole=whole)


def look(
    *threads: DumpThread,
    at_s: float | None = None,
    pid: int | None = 7,
    role: Role | None = None,
    tp: int | None = None,
) -> ProcessDump:
    return ProcessDump(pid=pid, role=role, ranks=Ranks(tp=tp), at_s=at_s, threads=threads)


def in_function(values: Mapping[str, int], *, at_s: float | None = None, line: int = 40) -> ProcessDump:
    """A look at a worker inside of ``logits``, which has these locals."""
    callers = [frame(function, at) for function, at in OUTER]
    return look(thread(*callers, frame("logits", line, **values)), at_s=at_s)


def series(locals_at: Callable[[float], Mapping[str, int]], times_s: Sequence[float]) -> list[ProcessDump]:
    return [in_function(locals_at(at_s), at_s=at_s) for at_s in times_s]


class NestedLoop:
    """The fallback's two loops at a constant pace, as real samples show them."""

    def __init__(self, *, heads: int = 64, keys: int = 20480, k_chunk: int = 5121, passes_per_s: float = 7.0) -> None:
        self.heads, self.keys, self.k_chunk, self.passes_per_s = heads, keys, k_chunk, passes_per_s
        self.per_head = -(-keys // k_chunk)

    @property
    def seconds(self) -> float:
        return self.heads * self.per_head / self.passes_per_s

    def at(self, at_s: float) -> dict[str, int]:
        done = min(int(at_s * self.passes_per_s), self.heads * self.per_head - 1)
        head, pass_of_head = divmod(done, self.per_head)
        start = pass_of_head * self.k_chunk
        return {
            "num_rows": 3276,
            "num_heads": self.heads,
            "num_keys": self.keys,
            "head_chunk_size": 1,
            "k_chunk_size": self.k_chunk,
            "matmuls": done + 1,
            "head_start": head,
            "head_end": head + 1,
            "k_start": start,
            "k_end": min(start + self.k_chunk, self.keys),
        }


def random_times(dice: random.Random, *, looks: int, until_s: float) -> list[float]:
    return sorted(dice.uniform(0, until_s) for _ in range(looks))


def diagnosed(
    label: str | None,
    kind: DiagnosisKind,
    function: str | None = None,
    *,
    role: Role | None = "worker",
    name: str | None = None,
) -> ProcessDiagnosis:
    return ProcessDiagnosis(
        name=name or "_".join(filter(None, ("Worker" if role == "worker" else "EngineCore", label))),
        role=role,
        rank=label,
        kind=kind,
        function=function,
    )
