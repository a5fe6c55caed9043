"""The logits in float64, as the incident defines them, and the scale that a difference is held against.

``logits[m, n] = sum over h of weights[m, h] * relu(sum over d of q[m, h, d] * keys[n, d] * scales[n])``
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from sparkdiag.kernels.inside.inputs import Inputs

BLOCK_BYTES = 256 << 20


@dataclass(frozen=True)
class Reference:
    """What a kernel's answer is held against."""

    logits: Any
    """float64 [M, N], of every key, whatever the windows"""
    row_scale: Any
    """float64 [M]: the largest ``sum over h of |weights| * relu(score)`` of the row's keys, the logit before heads of
    either sign cancel. A difference divided by it does not grow without end where they do."""
    inside: Any
    """bool [M, N]"""


def make_reference(inputs: Inputs) -> Reference:
    """Evaluate the definition a head at a time, in blocks of rows."""
    rows, heads, _ = inputs.q.shape
    count = inputs.keys.shape[0]
    keys = (inputs.keys.to(torch.float64) * inputs.scales.to(torch.float64)[:, None]).T.contiguous()
    logits = torch.zeros((rows, count), dtype=torch.float64, device=inputs.q.device)
    scale = torch.zeros(rows, dtype=torch.float64, device=inputs.q.device)
    step = max(1, BLOCK_BYTES // (8 * count))
    for first in range(0, rows, step):
        block = slice(first, min(first + step, rows))
        sizes = torch.zeros_like(logits[block])
        for head in range(heads):
            scores = (inputs.q[block, head].to(torch.float64) @ keys).relu_()
            weights = inputs.weights[block, head, None].to(torch.float64)
            logits[block] += weights * scores
            sizes += weights.abs() * scores
        scale[block] = sizes.amax(dim=1)
    return Reference(logits=logits, row_scale=scale, inside=inputs.inside())
