"""Routes made by hand: what ``find_route`` says of the incident's shape, and of less clear ones."""

from sparkdiag.evidence.route import (
    Guard,
    NotUnderstood,
    Raises,
    Reached,
    Route,
    RouteConfig,
    TrailStep,
)

ENTRY = "vllm/model_executor/layers/sparse_attn_indexer.py"
DISPATCH = "vllm/utils/deep_gemm.py"
FALLBACKS = "vllm/v1/attention/ops/deepseek_v4_ops/sm12x_deep_gemm_fallbacks.py"
MQA = "vllm/v1/attention/ops/deepseek_v4_ops/sm12x_mqa.py"
SHA = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d"
OTHER_SHA = "f6c6e54f4a6f708192a3b4c5d6e7f8091a2b3c4d"
CONFIG = RouteConfig(dcp=2, arch="sm121")


def guard(depth: int, function: str, path: str, line: int, source: str, value: str, because: str) -> TrailStep:
    return TrailStep.model_validate(
        {
            "kind": "guard",
            "depth": depth,
            "function": function,
            "path": path,
            "line": line,
            "source": source,
            "value": value.removeprefix("if "),
            "because": because,
            "assumed": value.startswith("if "),
        }
    )


def call(depth: int, function: str, path: str, line: int, source: str) -> TrailStep:
    return TrailStep(kind="call", depth=depth, function=function, path=path, line=line, source=source)


BEGIN = (
    guard(0, "sparse_attn_indexer", ENTRY, 545, "dcp_world_size <= 1", "false", "--dcp 2"),
    call(0, "sparse_attn_indexer", ENTRY, 576, "fp8_fp4_mqa_logits(clean_logits=False)"),
    guard(1, "fp8_fp4_mqa_logits", DISPATCH, 452,
          "current_platform.is_device_capability_family(120)", "true", "--arch sm121"),
    call(1, "fp8_fp4_mqa_logits", DISPATCH, 455, "_fp8_mqa_logits_sm12x(clean_logits=False)"),
)  # fmt: skip
GATE = "clean_logits and q_scale is None and q.dim() == 3 and kv[0].dim() == 2"
TORCH = Reached(
    function="_fp8_mqa_logits_torch",
    path=FALLBACKS,
    line=120,
    stall="torch-fallback",
    trail=(
        *BEGIN,
        guard(2, "_fp8_mqa_logits_sm12x", FALLBACKS, 441, GATE, "false", "clean_logits=False"),
        call(2, "_fp8_mqa_logits_sm12x", FALLBACKS, 449, "_fp8_mqa_logits_torch(clean_logits=False)"),
    ),
)
TRITON = Reached(
    function="fp8_mqa_logits_triton",
    path=MQA,
    line=85,
    when=("clean_logits is true (sm12x_deep_gemm_fallbacks.py:441)",),
    trail=(
        *BEGIN,
        guard(2, "_fp8_mqa_logits_sm12x", FALLBACKS, 441, GATE, "if true", "clean_logits was set to unknown"),
        call(2, "_fp8_mqa_logits_sm12x", FALLBACKS, 442, "fp8_mqa_logits_triton(q, kv)"),
    ),
)
DEEP_GEMM = Reached(
    function="_fp8_fp4_mqa_logits_impl",
    path=DISPATCH,
    line=460,
    external=True,
    trail=(*BEGIN[:2], guard(1, "fp8_fp4_mqa_logits", DISPATCH, 452, "is_family(120)", "false", "--arch sm90")),
)


def route(*reached: Reached, exact: bool = False, **more: object) -> Route:
    guards = [step for one in reached for step in one.trail if step.kind == "guard"]
    return Route.model_validate(
        {
            "revision": SHA,
            "scenario": "sm12x-mqa-prefill",
            "config": CONFIG,
            "entry": "sparse_attn_indexer",
            "entry_path": ENTRY,
            "entry_line": 391,
            "reached": reached,
            "guards": [Guard.model_validate(step.model_dump()) for step in dict.fromkeys(guards)],
            "exact": exact,
            "files": {ENTRY: "a" * 40, DISPATCH: "b" * 40},
        }
        | more
    )


STALLS = route(TORCH, exact=True)
FAST = route(TRITON.model_copy(update={"when": ()}), exact=True)
EXTERNAL = route(DEEP_GEMM, exact=True)
MAYBE = route(
    TORCH.model_copy(update={"when": ("clean_logits is false (sm12x_deep_gemm_fallbacks.py:441)",)}),
    TRITON,
    raises=(
        Raises(error="NotImplementedError: no kernel for this shape", path=DISPATCH, line=470, when=("q.dim() is 4",)),
    ),
    not_understood=(NotUnderstood(path=ENTRY, line=560, source="match chunk.kind:", reason="match statements"),),
)
FAILS = route(raises=(Raises(error="RuntimeError: DeepGEMM is not there", path=DISPATCH, line=470),))
EVERY = {"stalls": STALLS, "fast": FAST, "external": EXTERNAL, "maybe": MAYBE, "fails": FAILS, "nothing": route()}
