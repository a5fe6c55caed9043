"""What of one run is held beside the same of another, each as a word or two. Pure."""

from collections.abc import Mapping
from statistics import mean

from sparkdiag.evidence.stored import StoredRun
from sparkdiag.reporting.comparison.times import first_token, time_text, total_s
from sparkdiag.reporting.phrases import CONTAINMENT, headline, percent, seconds

UNKNOWN = "not known"
_DIFFER_ALWAYS = frozenset({"--port", "--host", "--model", "--served-model-name"})
"""Options of the server that tell no two runs apart: sparkdiag chooses them, or another row says it."""
_OWN_ENV = frozenset({"VLLM_RPC_BASE_PATH", "VLLM_PLUGINS", "TORCHINDUCTOR_CACHE_DIR"})
_OWN_PREFIX = "SPARKDIAG_"


def title(stored: StoredRun) -> str:
    """``stalled (crawling) in _fp8_mqa_logits_torch``."""
    verdict = stored.record.verdict
    where = f" in {verdict.function}" if verdict is not None and verdict.function else ""
    return f"{headline(stored)}{where}"


def dcp(stored: StoredRun) -> str:
    proof = stored.record.dcp
    return str(proof.size) if proof is not None and proof.size is not None else UNKNOWN


def revision(stored: StoredRun) -> str:
    proof = stored.record.revision
    name = proof.sha[:10] if proof.sha else proof.version or UNKNOWN
    return f"{name} (proved)" if proof.proved else f"{name} (not proved)" if name != UNKNOWN else name


def vllm_version(stored: StoredRun) -> str:
    return stored.record.revision.version or str(stored.record.environment.get("vllm_version") or UNKNOWN)


def prompt(stored: StoredRun) -> str:
    sent = stored.observation.client.sent
    return f"{sent.tokens} tokens, seed {sent.seed}" if sent is not None else "none was sent"


def machine(stored: StoredRun) -> str:
    host = stored.record.host
    if host is None:
        return UNKNOWN
    gpus = ", ".join(host.gpus) or "no GPU"
    return f"{host.cpu}, {host.cores} cores, {gpus}"


def kernel(stored: StoredRun) -> str:
    """By the dispatch ledger, which counts every call, else by the stacks."""
    summary = stored.ledger
    whole = {rank.whole_in for rank in summary.ranks if rank.whole_in} if summary is not None else set()
    if whole:
        return f"{', '.join(sorted(whole))} (ledger)"
    seen = stored.agreement.seen if stored.agreement is not None else ()
    return f"{', '.join(one.function for one in seen[:3])} (stacks)" if seen else UNKNOWN


def fused(stored: StoredRun) -> str:
    """How often the fused path was tried, of the first rank whose ledger says."""
    ranks = stored.ledger.ranks if stored.ledger is not None else ()
    for rank in ranks:
        if (found := rank.fused) is not None:
            said = (("accepted", found.accepted), ("refused", found.refused), ("not tried", found.not_tried))
            parts = [f"{word} in {count} of {rank.chunks} chunks" for word, count in said if count]
            return ", ".join(parts) or UNKNOWN
    return UNKNOWN


def predicted(stored: StoredRun) -> str:
    found = stored.agreement
    return " or ".join(found.predicted) if found is not None and found.predicted else UNKNOWN


def kv_peak(stored: StoredRun) -> str:
    used = [point.kv_cache_usage for point in stored.observation.metrics if point.kv_cache_usage is not None]
    return f"{max(used):.1%}" if used else UNKNOWN


def gpu_load(stored: StoredRun) -> str:
    """Means since the prompt was sent; shown because somebody will ask, and never decisive."""
    sent = stored.observation.client.sent
    points = [point for point in stored.observation.gpus if sent is None or point.t_s >= sent.t_s]
    load = [point.utilisation_percent for point in points if point.utilisation_percent is not None]
    power = [point.power_w for point in points if point.power_w is not None]
    parts = ([f"{mean(load):.0f} %"] if load else []) + ([f"{mean(power):.0f} W"] if power else [])
    return ", ".join(parts) or "no readings"


def answer(stored: StoredRun) -> str:
    return stored.observation.client.score or "none came"


def looking(stored: StoredRun) -> str:
    stats = stored.observation.sampling
    if not stats.wanted:
        return "not sampled"
    return f"{percent(stats.share)} of the machine" if stats.share is not None else UNKNOWN


def table_of(stored: StoredRun) -> dict[str, str]:
    """Every row's name and this run's side of it, in reading order."""
    record = stored.record
    server = record.scenario.get("server")
    sizes = server if isinstance(server, Mapping) else {}
    whole_s = total_s(stored)
    return {
        "verdict": title(stored),
        "first token": time_text(first_token(stored)),
        "end to end": seconds(whole_s) if whole_s is not None else "did not end by itself",
        "answer": answer(stored),
        "DCP size": dcp(stored),
        "revision": revision(stored),
        "contains the suspect commit": CONTAINMENT[record.revision.contains_suspect_commit],
        "vLLM": vllm_version(stored),
        "kernel": kernel(stored),
        "fused path": fused(stored),
        "kernel by the source": predicted(stored),
        "prompt": prompt(stored),
        "chunk": f"{sizes['chunk_tokens']} tokens" if "chunk_tokens" in sizes else UNKNOWN,
        "TP size": str(sizes.get("tp", UNKNOWN)),
        "scenario": str(record.scenario.get("name", UNKNOWN)),
        "environment": str(record.environment.get("spec", UNKNOWN)),
        "machine": machine(stored),
        "KV cache use, highest": kv_peak(stored),
        "GPU load and power, mean": gpu_load(stored),
        "looking cost": looking(stored),
    }


def settings_of(stored: StoredRun) -> dict[str, str]:
    """The server's options and variables, without those that sparkdiag chooses anew for each run."""
    made: dict[str, str] = {}
    name = ""
    for word in stored.record.server_argv:
        if word.startswith("--"):
            name, given, value = word.partition("=")
            made[name] = value if given else ""
        elif name:
            made[name] = f"{made[name]} {word}".strip()
    made |= {
        key: value
        for key, value in stored.record.server_env.items()
        if key not in _OWN_ENV and not key.startswith(_OWN_PREFIX)
    }
    own = _DIFFER_ALWAYS | {"--tensor-parallel-size", "--decode-context-parallel-size", "--max-num-batched-tokens"}
    return {key: value for key, value in made.items() if key not in own}
