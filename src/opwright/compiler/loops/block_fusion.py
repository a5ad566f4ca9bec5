"""Fusion of blocks: attention, and depthwise convolutions with their neighbors.

Lives here: `into_attention`, `into_bands`.
Not here: their order among the passes (fusion.py), kernels (../kernels/attention.py, row_band_fusion.py).

A depthwise convolution does little arithmetic per element, so that its speed is that of the memory it reads. The output
of a convolution before it exceeds a core's cache if it is large; a band of a few lines does not. The same applies to a
projection after it.
"""

from __future__ import annotations

from ...core.dtypes import float32
from ..native.host import cache_bytes
from ..tuning.choices import BANDS, choose
from .buffers import Buffer, Window, ring_lines
from .expressions import Expr, arg, substitute
from .graph import Rewriting
from .ops import Attention, Banded, Contract, Depthwise, LoopOp, Map, MatMul, RowPass


def into_attention(state: Rewriting, op: RowPass) -> bool:
    """Fuse softmax(f(q k^T, mask)) v if its intermediate values have no other readers."""
    if op.kind != "softmax" or op.operands or not _plain(op.expr):
        return False
    readers = state.readers(op.output)
    product = readers[0] if readers else None
    if not isinstance(product, MatMul) or not state.only_reader(op.output, product) or product.a is not op.output:
        return False
    if product.transpose_a or product.transpose_b or product.operands or not _plain(product.expr):
        return False
    between: list[LoopOp] = [op]
    scores_and_operands = _scores(state, op, op.input, op.before, between)
    if scores_and_operands is None:
        return False
    scores, operands, before = scores_and_operands
    attention = Attention(
        product.output,
        scores.a,
        scores.b,
        product.b,
        operands,
        before,
        not scores.transpose_b,
        origin=scores.origin + sum((f.origin for f in between), ()) + product.origin,
    )
    for part in (scores, *between):
        state.replace(part)
    state.replace(product, attention)
    state.parts[attention] = (scores, *between, product)
    return True


def _plain(expr: Expr) -> bool:
    return expr.op == "arg" and expr.value == 0 and expr.dtype is float32


def _scores(
    state: Rewriting, reader: LoopOp, buffer: Buffer, before: Expr, between: list[LoopOp]
) -> tuple[MatMul, tuple[Buffer, ...], Expr] | None:
    """Return the product that computes the scores, the other operands and the combined expression; a map of scales and
    masks between them is prepended to `between`."""
    writer = state.writer(buffer)
    if not state.only_reader(buffer, reader) or (writer is not None and writer.output.parent is not None):
        return None
    if isinstance(writer, MatMul) and not writer.transpose_a and writer.a.dtype is float32:
        return writer, writer.operands, substitute(before, {0: writer.expr})
    if not isinstance(writer, Map) or reader is not between[-1] or len(between) > 1:
        return None
    for index, operand in enumerate(writer.operands):
        scores = state.writer(operand)
        same = operand.shape == buffer.shape and state.only_reader(operand, writer)
        if not same or not isinstance(scores, MatMul) or scores.transpose_a or scores.a.dtype is not float32:
            continue
        others = [b for i, b in enumerate(writer.operands) if i != index]
        count = len(scores.operands)
        args = {i: arg(others.index(b) + 1 + count, b.dtype) for i, b in enumerate(writer.operands) if i != index}
        mapped = substitute(writer.expr, {index: scores.expr, **args})
        between.insert(0, writer)
        return scores, (*scores.operands, *others), substitute(before, {0: mapped})
    return None


LARGE_SHARE = 2
"""Inverse of the cache share from which a tensor is evicted before it is read: half, as its successor is as large."""
BAND_SHARE = 8
"""Inverse of the cache share of the lines between two parts; other data needs the rest."""
LINES = (16, 8, 4, 2)
"""Candidate lines of the depthwise convolution's output per band; even, as its kernel computes two lines at a time."""


def into_bands(state: Rewriting, op: Depthwise) -> bool:
    """Fuse a depthwise convolution with the convolution before it and the projection after it."""
    if not _can_be_cut(op):
        return False
    before, after = _before(state, op), _after(state, op)
    lines = _band_lines(op, before, after)
    fused: LoopOp = op
    if before is not None and lines:
        fused = Banded(op.output, (before, op), lines, origin=before.origin + op.origin)
        state.join(before, op, fused)
    if after is not None and lines:
        parts = fused.parts if isinstance(fused, Banded) else (op,)
        banded = Banded(after.output, (*parts, after), lines, origin=fused.origin + after.origin)
        state.join(fused, after, banded)
        fused = banded
    return fused is not op


def _band_lines(op: Depthwise, before: Contract | None, after: Contract | None) -> int:
    """Return the lines per band, or 0. By default, bands are used if the input from a convolution, or the output to
    one, is large."""
    parts = tuple(part for part in (before, op, after) if part is not None)
    is_large = (before is not None and _is_large(op.input)) or (after is not None and _is_large(op.output))
    default = _lines(op) if is_large else 0
    number, height, width, channels = op.output.shape
    input_channels = before.input.shape[3] if before is not None else 0
    features = after.output.shape[3] if after is not None else 0
    candidates = (0, *(n for n in LINES if n <= max(height, LINES[-1]))) if len(parts) > 1 else (0,)
    return choose(
        BANDS,
        candidates,
        default,
        parts,
        number,
        height,
        width,
        channels,
        input_channels,
        features,
        *op.window.size,
        op.window.strides[0],
        op.output.dtype.size,
    )


def _can_be_cut(op: Depthwise) -> bool:
    return (
        op.filter.constant is not None
        and op.multiplier == 1
        and not op.rounding
        and op.window.dilations == (1, 1)
        and len(op.output.shape) == 4
    )


def _before(state: Rewriting, op: Depthwise) -> Contract | None:
    x = op.input
    producer = state.writer(x)
    is_only_reader = state.only_reader(x, op) and x.parent is None and x not in op.operands
    return producer if isinstance(producer, Contract) and is_only_reader and _is_plain(producer) else None


def _after(state: Rewriting, op: Depthwise) -> Contract | None:
    y, pixel = op.output, Window((1, 1))
    reader = next(iter(state.readers(y)), None)
    if not isinstance(reader, Contract) or not state.only_reader(y, reader) or y.parent is not None:
        return None
    reads = reader.input is y and y not in reader.operands
    return reader if reads and reader.window == pixel and _is_plain(reader) else None


def _is_plain(op: Contract) -> bool:
    return op.filter.constant is not None and op.groups == 1 and not op.rounding and op.scales is None


def _is_large(b: Buffer) -> bool:
    return b.size * b.dtype.size > cache_bytes() // LARGE_SHARE


def _lines(op: Depthwise) -> int:
    _, _, width, channels = op.input.shape
    line = width * channels * op.input.dtype.size
    return next((n for n in LINES if ring_lines(op.window, n) * line <= cache_bytes() // BAND_SHARE), LINES[-1])
