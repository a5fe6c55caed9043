"""sparkdiag's own kernel for the indexer's prefill logits: FP8 tensor cores, and no work outside the window.

    logits[m, n] = scale[n] · Σ_h weights[m, h] · relu(q[m, h] · k[n])   for ks[m] <= n < ke[m], else -inf

Why it is laid out as it is. A score is used once, by one multiply-add of the sum over heads, so what decides is how
cheaply scores leave the tensor cores. Keys stand on the product's M side and heads on its N side:
``scores[keys, rows·heads] = k[keys, D] · q[rows·heads, D]ᵀ``. Then a thread holds many heads of the same key, and the
sum over heads is a chain of multiply-adds in its registers with two shuffles at the end; with keys on the N side one
sum would be spread over warps. A program keeps the query rows of its block (128 columns) and their weights for its
whole life and streams key tiles past them, so the loop's only traffic is 128 bytes a key. Several small programs
share a multiprocessor, so that one's sums run while another's product does.

A block of rows visits only the key tiles between its least ``ks`` and its greatest ``ke``; everything else of its
output is filled with -inf by plain stores. Every element of the output is written, whatever was there.

How exact it is. Hopper's FP8 products keep fewer bits of their sum than float32 (DeepGEMM's kernel shares this);
``precise=True`` multiplies in float16 instead, which holds e4m3 exactly and is summed in float32. The same happens
by itself where there is no FP8 product: below compute capability 8.9 and in the interpreter.

Runs inside the environment under test: imports torch and triton, nothing of sparkdiag. On the CPU it needs Triton's
interpreter (``TRITON_INTERPRET=1`` before triton is imported).
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

FIRST_FP8_CAPABILITY = (8, 9)
"""The first compute capability with an FP8 product: elsewhere operands are widened to float16, which holds e4m3."""
MOST_HEADS = 128
DIMS = range(32, 129)
FILL_KEYS = 1024
"""Keys that one store of -inf covers."""
PROGRAMS_PER_MULTIPROCESSOR = 16
"""So many programs at least, where the call is large enough: the last ones to run then cost little."""
TMA_BYTES = 16
"""What the tensor memory accelerator wants addresses and strides to be multiples of."""


@dataclass(frozen=True, slots=True)
class Config:
    """One way to cut the call."""

    columns: int
    """Query rows a program times heads (padded to a power of two): the product's N side."""
    keys: int
    """Keys a tile: the product's M side."""
    warps: int
    stages: int
    """Key tiles in flight."""
    span: int = 8192
    """Keys that one program visits at most; a multiple of ``keys``."""
    tma: bool = False
    """Key tiles come through the tensor memory accelerator."""


# Of some forty tried on an H200 the fastest that stays fast when the compiler changes: 256 columns a program gain
# nothing more than noise under Triton 3.6 and spill registers under 3.9.
HOPPER = Config(columns=128, keys=128, warps=4, stages=3, tma=True)
HOPPER_PRECISE = Config(columns=128, keys=64, warps=4, stages=2, tma=True)
# Fits the 99 KB of shared memory that the smallest multiprocessors have; compiled for 8.0 to 12.1, not timed there.
PORTABLE = Config(columns=128, keys=64, warps=4, stages=2)


def config_for(capability: tuple[int, int] | None, *, precise: bool) -> Config:
    """The configuration for a compute capability; None is the interpreter."""
    if capability is not None and capability[0] == 9:
        return HOPPER_PRECISE if precise else HOPPER
    return PORTABLE


@triton.jit
def _fill_outside(  # type: ignore[no-untyped-def]
    out_ptr, row_at, row_ok, start, end, BLOCK: tl.constexpr
):
    columns = tl.arange(0, BLOCK)
    for at in tl.range(start, end, BLOCK):
        n = at + columns
        tl.store(out_ptr + row_at[:, None] + n[None, :], float("-inf"), mask=row_ok[:, None] & (n < end)[None, :])


@triton.jit(do_not_specialize=["rows", "span"])
def _mqa_logits(  # type: ignore[no-untyped-def]
    q_ptr,
    k_ptr,
    scale_ptr,
    weights_ptr,
    ks_ptr,
    ke_ptr,
    out_ptr,
    rows,
    keys,
    span,
    HEADS: tl.constexpr,
    DIM: tl.constexpr,
    PADDED_HEADS: tl.constexpr,
    PADDED_DIM: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    STAGES: tl.constexpr,
    TMA: tl.constexpr,
    FILL: tl.constexpr,
):
    # Blocks of rows are the fast axis: programs that run together read the same keys.
    blocks = tl.cdiv(rows, ROWS)
    program = tl.program_id(0)
    first_row = (program % blocks) * ROWS
    begin = (program // blocks) * span
    end = tl.minimum(begin + span, keys)

    m = first_row + tl.arange(0, ROWS)
    row_ok = m < rows
    row_at = m.to(tl.int64) * keys
    ks = tl.load(ks_ptr + m, mask=row_ok, other=0)
    ke = tl.load(ke_ptr + m, mask=row_ok, other=0)
    some = row_ok & (ks < ke)
    low = tl.maximum(tl.min(tl.where(some, ks, keys), axis=0), begin)
    high = tl.minimum(tl.max(tl.where(some, ke, 0), axis=0), end)
    if low < high:
        low = begin + (low - begin) // KEYS * KEYS
        high = begin + tl.cdiv(high - begin, KEYS) * KEYS
    else:
        low = end
        high = end
    _fill_outside(out_ptr, row_at, row_ok, begin, low, FILL)
    _fill_outside(out_ptr, row_at, row_ok, high, end, FILL)

    if low < high:
        d = tl.arange(0, PADDED_DIM)
        column = tl.arange(0, ROWS * PADDED_HEADS)
        row = first_row + column // PADDED_HEADS
        head = column % PADDED_HEADS
        column_ok = (row < rows) & (head < HEADS)
        at = row.to(tl.int64) * HEADS + head
        q = tl.load(q_ptr + at[:, None] * DIM + d[None, :], mask=column_ok[:, None] & (d < DIM)[None, :], other=0.0)
        weights = tl.load(weights_ptr + at, mask=column_ok, other=0.0)
        for n0 in tl.range(low, high, KEYS, num_stages=STAGES):
            n = n0 + tl.arange(0, KEYS)
            n_ok = n < keys
            if TMA:
                k = k_ptr.load([n0, 0])
            else:
                key_at = n.to(tl.int64)[:, None] * DIM + d[None, :]
                k = tl.load(k_ptr + key_at, mask=n_ok[:, None] & (d < DIM)[None, :], other=0.0)
            scores = tl.dot(k, q.T)
            weighted = tl.maximum(scores, 0.0, propagate_nan=tl.PropagateNan.ALL) * weights[None, :]
            scale = tl.load(scale_ptr + n, mask=n_ok, other=0.0)
            logits = tl.sum(tl.reshape(weighted, (KEYS, ROWS, PADDED_HEADS)), axis=2) * scale[:, None]
            inside = (n[:, None] >= ks[None, :]) & (n[:, None] < ke[None, :])
            tl.store(
                out_ptr + row_at[None, :] + n[:, None],
                tl.where(inside, logits, float("-inf")),
                mask=(n < end)[:, None] & row_ok[None, :],
            )


def fp8_mqa_logits(
    q: torch.Tensor,
    kv: tuple[torch.Tensor, torch.Tensor],
    weights: torch.Tensor,
    cu_seqlen_ks: torch.Tensor,
    cu_seqlen_ke: torch.Tensor,
    *,
    precise: bool = False,
) -> torch.Tensor:
    """Logits float32 [M, N] of queries float8_e4m3fn [M, H, D] against keys (float8_e4m3fn [N, D], scales float32 [N]).

    ``weights`` is float32 [M, H]; row ``m`` sees keys ``cu_seqlen_ks[m] <= n < cu_seqlen_ke[m]`` (int32 [M], bounds
    outside 0..N are allowed) and holds -inf elsewhere. ``precise`` trades time for float32's accuracy. Inputs that
    are not contiguous are copied. D is 32 to 128, H at most 128. Raises ``ValueError`` for shapes, types or devices
    that do not fit, ``RuntimeError`` for CPU tensors outside the interpreter.
    """
    _check(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke)
    out = torch.empty((q.shape[0], kv[0].shape[0]), dtype=torch.float32, device=q.device)
    return fp8_mqa_logits_into(out, q, kv, weights, cu_seqlen_ks, cu_seqlen_ke, precise=precise)


def fp8_mqa_logits_into(
    out: torch.Tensor,
    q: torch.Tensor,
    kv: tuple[torch.Tensor, torch.Tensor],
    weights: torch.Tensor,
    cu_seqlen_ks: torch.Tensor,
    cu_seqlen_ke: torch.Tensor,
    *,
    precise: bool = False,
    config: Config | None = None,
) -> torch.Tensor:
    """The same into a contiguous float32 ``out`` [M, N], every element of which is overwritten; returns ``out``."""
    _check(q, kv, weights, cu_seqlen_ks, cu_seqlen_ke)
    rows, heads, dim = q.shape
    keys = kv[0].shape[0]
    if out.shape != (rows, keys) or out.dtype != torch.float32 or not out.is_contiguous() or out.device != q.device:
        raise ValueError(f"out must be a contiguous float32 [{rows}, {keys}] on {q.device}")
    if rows == 0 or keys == 0:
        return out
    capability = torch.cuda.get_device_capability(q.device) if q.is_cuda else None
    precise = precise or capability is None or capability < FIRST_FP8_CAPABILITY
    chosen = config or config_for(capability, precise=precise)
    operand = torch.float16 if precise else torch.float8_e4m3fn
    k = kv[0].to(operand).contiguous()
    padded_heads, padded_dim = triton.next_power_of_2(heads), triton.next_power_of_2(dim)
    block_rows = max(1, chosen.columns // padded_heads)
    blocks = triton.cdiv(rows, block_rows)
    span = _span(chosen, blocks=blocks, keys=keys, device=q.device)
    tma = chosen.tma and k.data_ptr() % TMA_BYTES == 0 and dim * k.itemsize % TMA_BYTES == 0
    _mqa_logits[(blocks * triton.cdiv(keys, span),)](
        q.to(operand).contiguous(),
        TensorDescriptor.from_tensor(k, [chosen.keys, padded_dim]) if tma else k,
        kv[1].contiguous(),
        weights.contiguous(),
        cu_seqlen_ks.contiguous(),
        cu_seqlen_ke.contiguous(),
        out,
        rows,
        keys,
        span,
        HEADS=heads,
        DIM=dim,
        PADDED_HEADS=padded_heads,
        PADDED_DIM=padded_dim,
        ROWS=block_rows,
        KEYS=chosen.keys,
        STAGES=chosen.stages,
        TMA=tma,
        FILL=FILL_KEYS,
        num_warps=chosen.warps,
    )
    return out


def _span(config: Config, *, blocks: int, keys: int, device: torch.device) -> int:
    """Keys a program: as many as the configuration says, fewer where that would leave multiprocessors idle."""
    if device.type != "cuda":
        return config.span
    programs = torch.cuda.get_device_properties(device).multi_processor_count * PROGRAMS_PER_MULTIPROCESSOR
    spans = triton.cdiv(programs, blocks)
    even = triton.cdiv(triton.cdiv(keys, spans), config.keys) * config.keys
    return max(config.keys, min(config.span, even))


def _check(
    q: torch.Tensor,
    kv: tuple[torch.Tensor, torch.Tensor],
    weights: torch.Tensor,
    cu_seqlen_ks: torch.Tensor,
    cu_seqlen_ke: torch.Tensor,
) -> None:
    if q.dim() != 3 or kv[0].dim() != 2 or kv[0].shape[1] != q.shape[2]:
        raise ValueError(f"q must be [M, H, D] and keys [N, D]: got {tuple(q.shape)} and {tuple(kv[0].shape)}")
    rows, heads, dim = q.shape
    if not 1 <= heads <= MOST_HEADS or dim not in DIMS:
        raise ValueError(f"needs 1 to {MOST_HEADS} heads of {DIMS[0]} to {DIMS[-1]} numbers: got {heads} of {dim}")
    wanted = (
        ("q", q, tuple(q.shape), torch.float8_e4m3fn),
        ("keys", kv[0], tuple(kv[0].shape), torch.float8_e4m3fn),
        ("scales", kv[1], (kv[0].shape[0],), torch.float32),
        ("weights", weights, (rows, heads), torch.float32),
        ("cu_seqlen_ks", cu_seqlen_ks, (rows,), torch.int32),
        ("cu_seqlen_ke", cu_seqlen_ke, (rows,), torch.int32),
    )
    for name, tensor, shape, dtype in wanted:
        if tuple(tensor.shape) != shape or tensor.dtype != dtype or tensor.device != q.device:
            raise ValueError(
                f"{name} must be {dtype} {list(shape)} on {q.device}: "
                f"got {tensor.dtype} {list(tensor.shape)} on {tensor.device}"
            )
    if not q.is_cuda and isinstance(_mqa_logits, triton.runtime.JITFunction):
        raise RuntimeError(
            "tensors on the CPU need Triton's interpreter: set TRITON_INTERPRET=1 before triton is imported"
        )
