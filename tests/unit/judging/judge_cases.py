"""A scenario and a baseline for simulated runs."""

from sparkdiag.evidence.verdict import Baseline
from sparkdiag.judging.simulation import PrefillModel
from sparkdiag.scenario.model import (
    LayerClock,
    LoopVariable,
    Patience,
    PromptSettings,
    Scenario,
    ServerSettings,
    Signature,
    Work,
)

FUNCTION = "_fp8_mqa_logits_torch"
HEALTHY_S = 7.0
BASELINE = Baseline(kind="control-run", seconds=HEALTHY_S, source="the same prompt at DCP 1")

SIGNATURE = Signature(
    function=FUNCTION,
    kind="torch-fallback",
    loop=(
        LoopVariable(index="head_start", step="head_chunk_size", stop="num_heads"),
        LoopVariable(index="k_start", step="k_chunk_size", stop="seq_len_kv"),
    ),
    call_identity=("seq_len", "seq_len_kv", "num_heads"),
    rows="seq_len",
    keys="seq_len_kv",
    heads="num_heads",
)


def scenario_for(model: PrefillModel, *, layers: int | None = -1) -> Scenario:
    return Scenario(
        name="simulated",
        title="Simulated prefill",
        server=ServerSettings(dcp=model.dcp, tp=2, chunk_tokens=model.chunk_tokens),
        prompt=PromptSettings(tokens=model.tokens),
        signatures=(SIGNATURE,),
        layer_clock=LayerClock(function="sparse_attn_indexer", variable="k_cache_prefix"),
        work=Work(layers=model.layers if layers == -1 else layers),
        patience=Patience(stuck_s=60, settle_s=5, min_samples=5),
    )
