"""Locality-sensitive hashing: LSH_PROJECTION.

Lives here: its rule.  Not here: the operator (lite/ops/lookup.py), its kernel (compiler/kernels/lsh_projection.py).
"""

from __future__ import annotations

from ...core.dtypes import float32, uint8
from ..loops.hash_forms import Projection
from .below_a_byte import check_whole_bytes
from .context import LoweringContext, NoLowering
from .registry import rule


@rule("LSH_PROJECTION")
def projection(ctx: LoweringContext) -> None:
    """Rows of numbers are hashed as the bytes they are."""
    hash, x, weights = ctx.operand(0), ctx.operand(1), ctx.optional(2)
    check_whole_bytes(x)
    kind = ctx.attr("type")
    if kind not in ("SPARSE", "DENSE") or hash.dtype is not float32 or len(hash.shape) != 2 or not x.shape:
        raise NoLowering(f"hashes of {x} by {hash}, {kind}")
    functions, bits = hash.shape
    if not hash.size or not x.size or bits > 32 or (weights is not None and (
            weights.dtype is not float32 or weights.shape != x.shape[:1])):  # fmt: skip
        raise NoLowering(f"hashes of {x} by {hash} and {weights}")
    y = ctx.output((functions,) if kind == "SPARSE" else (functions * bits,))
    rows = ctx.bits(x.buffer, uint8, (x.shape[0], x.size // x.shape[0] * x.dtype.size))
    ctx.form(Projection, y.buffer, hash.buffer, rows, () if weights is None else (weights.buffer,), kind == "SPARSE")
