"""The sentences of a diagnosis, the same in text, page and comment. Pure."""

from sparkdiag.evidence.diagnosis import CANNOT_TELL, Diagnosis, DiagnosisKind, Finding, ProcessDiagnosis

MEANINGS: dict[DiagnosisKind, str] = {
    "torch-fallback": "a slow pure-torch stand-in for a kernel is in the hot path",
    "jit-compile": "a kernel is being compiled inside a request",
    "collective-wait": "it waits in a collective for a rank that has not joined",
    "collective-init": "a communicator is being created or warmed up",
    "gpu-wait": "the host waits for the GPU; what the GPU runs is not in a stack",
    "queue-wait": "it waits for another process's message: a victim, the workers decide",
    "scheduler-loop": "the scheduler spins or never admits the request",
    "kv-transfer": "a KV connector holds things up",
    "ray-wait": "it waits for a Ray call to return",
    "dp-dummy": "it runs dummy batches for another data-parallel rank",
    "warmup": "the engine is still warming up",
    "weight-load": "weights are being loaded",
    "graph-capture": "CUDA graphs are being captured",
    "tokenizer": "text is being tokenized or rendered",
    "gc": "the garbage collector runs",
    "gil": "threads contend for the interpreter lock",
    "shutdown": "the process is shutting down",
    "forward": "inside model execution, at a function that no signature names",
    "idle": "nothing to do, or a normal wait for the next request",
    "helper-threads-only": "only helper threads are shown; what the engine does is not in the stacks",
    "garbled": "the stacks cannot be told apart",
    "not-an-engine": "this is no inference engine's stack",
}
_FINDINGS: dict[Finding, str] = {
    "stalled": "stalled",
    "healthy": "healthy",
    "moving": "it moves",
    "unknown": "whether it is a stall cannot be told from this",
}


def headline(found: Diagnosis) -> str:
    """``torch-fallback in _fp8_mqa_logits_torch, Worker_TP3_DCP1: stalled (high confidence)``."""
    if found.kind in CANNOT_TELL:
        return f"cannot tell: {found.kind}"
    where = f" in {found.function}" if found.function else ""
    who = f", {found.process}" if found.process else ""
    return f"{found.kind}{where}{who}: {_FINDINGS[found.finding]} ({found.confidence} confidence in the kind)"


def meaning(found: Diagnosis) -> str:
    """What the kind means, by its signature where one matched."""
    decides = deciding(found)
    return (decides.meaning if decides is not None else "") or MEANINGS[found.kind]


def deciding(found: Diagnosis) -> ProcessDiagnosis | None:
    """The process that the answer is about."""
    return next((one for one in found.processes if one.name == found.process), None)


def place(one: ProcessDiagnosis) -> str:
    """``_fp8_mqa_logits_torch (sm12x_mqa_fallbacks.py:70)``; a dash where nothing is known."""
    if one.function is None:
        return "-"
    path = (one.path or "").rsplit("/", 1)[-1]
    line = f":{one.line}" if path and one.line is not None else ""
    return f"{one.function} ({path}{line})" if path else one.function


def moved(one: ProcessDiagnosis) -> str:
    """What changed between its looks; a dash for one look."""
    return one.movement.text if one.movement is not None else "-"
