"""The kernels that are held against the reference and timed: sparkdiag's pair, a revision's, and DeepGEMM's."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sparkdiag.kernels.inside.dispatch import bound
from sparkdiag.kernels.inside.fallback import fp8_mqa_logits_fallback
from sparkdiag.kernels.inside.inputs import Inputs
from sparkdiag.kernels.inside.revision import FALLBACK, TRITON, Loaded

FP32_TOLERANCE = 1e-5
"""For float32 sums of exact products: FP8 values are exact in tf32 as in float32. Seen: 2e-7 to 7e-7."""
FP8_TOLERANCE = 5e-4
"""For FP8 tensor cores, whose sums on Hopper keep some 14 bits: https://arxiv.org/abs/2412.19437, section 3.3.2."""
DEEPGEMM_MODULES = ("deep_gemm", "vllm.third_party.deep_gemm")


@dataclass(frozen=True)
class Subject:
    """One kernel: how to call it, and what is asked of it."""

    name: str
    """As it is written in reports: ``sparkdiag fallback``."""
    key: str
    """As it is written in JSON: ``sparkdiag_fallback``."""
    run: Callable[[Inputs, bool], Any]
    cleans: tuple[bool, ...]
    """Values of ``clean_logits`` that it is called with; one that always cleans gets True only."""
    tolerance: float
    judged: bool = True
    """Whether what it does wrong fails the check; DeepGEMM's numbers are told beside the others."""
    fallback: bool = False
    modules: tuple[Any, ...] = ()


def own_pair(device: str) -> tuple[Subject, Subject]:
    """sparkdiag's fallback and Triton kernel."""
    from sparkdiag.kernels.inside import mqa_triton

    def torch_path(inputs: Inputs, clean: bool) -> Any:
        return fp8_mqa_logits_fallback(
            inputs.q, inputs.kv, inputs.weights, inputs.starts, inputs.ends, clean_logits=clean
        )

    def triton_path(inputs: Inputs, _clean: bool) -> Any:
        return mqa_triton.fp8_mqa_logits(inputs.q, inputs.kv, inputs.weights, inputs.starts, inputs.ends)

    return (
        Subject("sparkdiag fallback", "sparkdiag_fallback", torch_path, (True, False), FP32_TOLERANCE, fallback=True),
        Subject(
            "sparkdiag Triton",
            "sparkdiag_triton",
            triton_path,
            (True,),
            FP32_TOLERANCE if device == "cpu" else FP8_TOLERANCE,
            modules=(mqa_triton,),
        ),
    )


def revision_pair(loaded: Loaded) -> tuple[Subject, ...]:
    """The revision's own; the same two names at every revision."""
    found = []
    fallback, triton = loaded.functions.get(FALLBACK), loaded.functions.get(TRITON)
    if fallback is not None:
        run = _calling(fallback, paired=True)
        found.append(
            Subject(FALLBACK, "revision_fallback", run, (True, False), FP32_TOLERANCE, True, True, loaded.modules)
        )
    if triton is not None:
        run = _calling(triton, paired=False)
        found.append(Subject(TRITON, "revision_triton", run, (True,), FP32_TOLERANCE, modules=loaded.modules))
    return tuple(found)


def _calling(function: Callable[..., Any], *, paired: bool) -> Callable[[Inputs, bool], Any]:
    return lambda inputs, clean: function(**bound(function, inputs, paired=paired, clean=clean))


def deepgemm() -> Subject | None:
    """DeepGEMM's ``fp8_mqa_logits``, by itself or within vLLM's wheel; None where it is not installed.

    https://github.com/deepseek-ai/DeepGEMM: ``fp8_mqa_logits(q, kv, weights, ks, ke, clean_logits)``
    """
    for name in DEEPGEMM_MODULES:
        try:
            if importlib.util.find_spec(name.partition(".")[0]) is None:
                continue
            function = importlib.import_module(name).fp8_mqa_logits
        except Exception:  # noqa: S112 - whatever its import does: it is not to be had here
            continue

        def run(inputs: Inputs, clean: bool, call: Any = function) -> Any:
            return call(inputs.q, inputs.kv, inputs.weights, inputs.starts, inputs.ends, clean)

        return Subject("DeepGEMM", "deepgemm", run, (True,), FP8_TOLERANCE, judged=False)
    return None
