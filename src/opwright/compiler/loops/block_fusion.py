"""Rule of fusion for attention: a product, softmax over its rows, and a product with those.

Lives here: this rule.  Not here: its place among the others (fusion.py), the kernel (../kernels/attention.py).
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
    """softmax(f(q k^T, mask)) v, where nobody else reads what lies between."""
    if op.kind != "softmax" or op.operands or not _plain(op.expr):
        return False
    readers = state.readers(op.output)
    product = readers[0] if readers else None
    if not isinstance(product, MatMul) or not state.only_reader(op.output, product) or product.a is not op.output:
        return False
    if product.transpose_a or product.transpose_b or product.operands or not _plain(product.expr):
        return False
    between: list[LoopOp] = [op]
    found = _scores(state, op, op.input, op.before, between)
    if found is None:
        return False
    scores, operands, before = found
    whole = Attention(
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
    state.replace(product, whole)
    state.parts[whole] = (scores, *between, product)
    return True


def _plain(expr: Expr) -> bool:
    return expr.op == "arg" and expr.value == 0 and expr.dtype is float32


def _scores(
    state: Rewriting, reader: LoopOp, buffer: Buffer, before: Expr, between: list[LoopOp]
) -> tuple[MatMul, tuple[Buffer, ...], Expr] | None:
    """The product that makes the scores, operands besides it and the expression of all. A map between them, of scales
    and masks, is put in front of `between`."""
    writer = state.writer(buffer)
    if not state.only_reader(buffer, reader) or (writer is not None and writer.output.parent is not None):
        return None
    if isinstance(writer, MatMul) and not writer.transpose_a and writer.a.dtype is float32:
        return writer, writer.operands, substitute(before, {0: writer.expr})
    if not isinstance(writer, Map) or reader is not between[-1] or len(between) > 1:
        return None
    for place, operand in enumerate(writer.operands):
        scores = state.writer(operand)
        same = operand.shape == buffer.shape and state.only_reader(operand, writer)
        if not same or not isinstance(scores, MatMul) or scores.transpose_a or scores.a.dtype is not float32:
            continue
        others = [b for i, b in enumerate(writer.operands) if i != place]
        count = len(scores.operands)
        args = {i: arg(others.index(b) + 1 + count, b.dtype) for i, b in enumerate(writer.operands) if i != place}
        mapped = substitute(writer.expr, {place: scores.expr, **args})
        between.insert(0, writer)
        return scores, (*scores.operands, *others), substitute(before, {0: mapped})
    return None


MUCH = 2
"""A tensor does not stay near from this share of the cache on: half of it, where the next one is as large."""
NEAR = 8
"""The share of the cache that lines between two parts may take: others need room, too, and fewer lines do as well."""
LINES = (16, 8, 4, 2)
"""Of the depthwise convolution's output in a band: even numbers, as its kernel makes two lines at a time."""


def into_bands(state: Rewriting, op: Depthwise) -> bool:
    """With a convolution whose result nobody else reads, and with the projection of its own result."""
    if not _can_be_cut(op):
        return False
    before, after = _before(state, op), _after(state, op)
    lines = _chosen(op, before, after)
    whole: LoopOp = op
    if before is not None and lines:
        whole = Banded(op.output, (before, op), lines, origin=before.origin + op.origin)
        state.join(before, op, whole)
    if after is not None and lines:
        parts = whole.parts if isinstance(whole, Banded) else (op,)
        banded = Banded(after.output, (*parts, after), lines, origin=whole.origin + after.origin)
        state.join(whole, after, banded)
        whole = banded
    return whole is not op


def _chosen(op: Depthwise, before: Contract | None, after: Contract | None) -> int:
    """Lines in a band, or 0. By default there are bands where what a convolution before it writes is much, or what one
    after it reads."""
    parts = tuple(part for part in (before, op, after) if part is not None)
    much = (before is not None and _is_much(op.input)) or (after is not None and _is_much(op.output))
    default = _lines(op) if much else 0
    number, height, width, channels = op.output.shape
    fewer = before.input.shape[3] if before is not None else 0
    features = after.output.shape[3] if after is not None else 0
    ways = (0, *(n for n in LINES if n <= max(height, LINES[-1]))) if len(parts) > 1 else (0,)
    return choose(
        BANDS,
        ways,
        default,
        parts,
        number,
        height,
        width,
        channels,
        fewer,
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
    found = state.writer(x)
    alone = state.only_reader(x, op) and x.parent is None and x not in op.operands
    return found if isinstance(found, Contract) and alone and _is_plain(found) else None


def _after(state: Rewriting, op: Depthwise) -> Contract | None:
    y, pixel = op.output, Window((1, 1))
    found = next(iter(state.readers(y)), None)
    if not isinstance(found, Contract) or not state.only_reader(y, found) or y.parent is not None:
        return None
    reads = found.input is y and y not in found.operands
    return found if reads and found.window == pixel and _is_plain(found) else None


def _is_plain(op: Contract) -> bool:
    return op.filter.constant is not None and op.groups == 1 and not op.rounding and op.scales is None


def _is_much(b: Buffer) -> bool:
    return b.size * b.dtype.size > cache_bytes() // MUCH


def _lines(op: Depthwise) -> int:
    _, _, width, channels = op.input.shape
    line = width * channels * op.input.dtype.size
    return next((n for n in LINES if ring_lines(op.window, n) * line <= cache_bytes() // NEAR), LINES[-1])
