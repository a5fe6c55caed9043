"""``sparkdiag kernel plan``: how the torch fallback cuts a call up, and the least time it can take."""

from sparkdiag.cli import kernel_plan_options as given


def plan(
    seq_len: given.SeqLen = None,
    seq_len_kv: given.SeqLenKv = None,
    window_keys: given.WindowKeys = None,
    prompt_tokens: given.PromptTokens = None,
    compress_ratio: given.CompressRatio = None,
    dcp: given.Dcp = None,
    chunk_tokens: given.ChunkTokens = None,
    layers: given.Layers = None,
    scenario: given.Scenario = None,
    heads: given.Heads = None,
    head_dim: given.HeadDim = None,
    budget_mib: given.BudgetMib = None,
    max_logits_mb: given.MaxLogitsMb = None,
    gpu: given.GpuName = None,
    matmul: given.MatmulUnits = given.Matmul.FP32,
    as_json: given.AsJson = False,
) -> None:
    """Count how the torch fallback cuts a prefill up, and the least time that it and a fast kernel can take.

    Example: sparkdiag kernel plan --seq-len 8192 --seq-len-kv 112640

    \b
    Another: sparkdiag kernel plan --prompt-tokens 450000 --dcp 2

    \b
    Another: sparkdiag kernel plan --scenario sm12x-mqa-prefill --gpu gb10

    Arithmetic alone: nothing is run, no GPU is needed.
    """
    typed = locals() | {"matmul": matmul.value}
    from sparkdiag.cli.kernel_plan_answer import answer
    from sparkdiag.cli.kernel_plan_asked import Typed

    answer(Typed.model_validate(typed))
