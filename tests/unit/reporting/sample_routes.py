"""Routes made by hand: what ``find_route`` says of the incident's shape, and of less clear ones."""

from typing import TypeVar

from sparkdiag.evidence.base import Value
from sparkdiag.evidence.route import (
    Guard,
    MatrixCell,
    MatrixRevision,
    NotUnderstood,
    Raises,
    Reached,
    Route,
    RouteChange,
    RouteConfig,
    RouteHistory,
    RouteMatrix,
    RouteProblem,
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

MATRIX = RouteMatrix(
    scenario="sm12x-mqa-prefill",
    config=RouteConfig(dcp=None, arch=None),
    dcp=(1, 2),
    arch=("sm90", "sm121"),
    cache=("fp8",),
    revisions=(
        MatrixRevision(name="before", revision=SHA, subject="Begin"),
        MatrixRevision(name="after", revision=OTHER_SHA, subject="Route things"),
    ),
    cells=tuple(
        MatrixCell.model_validate(
            {
                "revision": revision,
                "dcp": dcp,
                "arch": arch,
                "cache": "fp8",
                "kernels": ("_fp8_mqa_logits_torch",) if arch == "sm121" and dcp == 2 else ("deep_gemm_logits", "b"),
                "stall": "true" if arch == "sm121" and dcp == 2 else "false",
                "exact": arch == "sm121",
            }
        )
        for revision in (SHA, OTHER_SHA)
        for dcp in (1, 2)
        for arch in ("sm90", "sm121")
    ),
    narrowed=(
        "In the 8 cells asked the stall path is reached only when: dcp > 1, arch sm121 (in all 2 of these cells).",
    ),
    problems=(RouteProblem(revision="gone", message="--rev 'gone' is no commit of vllm", remedy="git fetch"),),
)
HISTORY = RouteHistory(
    scenario="sm12x-mqa-prefill",
    config=CONFIG,
    old=SHA,
    new=OTHER_SHA,
    commits=17_785,
    evaluated=212,
    changes=(
        RouteChange(
            sha=OTHER_SHA,
            subject="Route SM12x DeepGEMM fallbacks (#4711)",
            committed_at="2026-05-06T10:00:00+00:00",
            before=(),
            after=("_fp8_mqa_logits_torch",),
            exact=True,
            because="deep_gemm.py:452 is_device_capability_family(120) is new",
        ),
        RouteChange(sha=SHA, before=("_fp8_mqa_logits_torch",), after=("fp8_mqa_logits_triton", "b"), exact=False),
    ),
    problems=(RouteProblem(revision="c" * 40, message="a file cannot be parsed"),),
)

_OURS = {"kind", "value", "arch", "platform", "cache", "phase", "stall", "committed_at", "exact", "name"}
_Model = TypeVar("_Model", bound=Value)


def poisoned(model: _Model, text: str) -> _Model:
    """``model`` with ``text`` wherever a repository, a file or a user can put some."""
    return type(model).model_validate(_poisoned(model.model_dump(by_alias=True), text))


def _poisoned(value: object, text: str, key: str = "") -> object:
    if isinstance(value, dict):
        return {name: _poisoned(inner, text, name) for name, inner in value.items() if name != "files"}
    if isinstance(value, (list, tuple)):
        return [_poisoned(inner, text, key) for inner in value]
    if not isinstance(value, str) or key in _OURS:
        return value
    return f"folder/{text}" if key in ("path", "entry_path") else text
