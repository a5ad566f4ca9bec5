"""Fusion of maps: into other maps, into look-up tables, into the producer of their operand.

Lives here: these rules.  Not here: their order (fusion.py), moves (move_fusion.py).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np

from ...core.dtypes import DType, int8, uint8
from ..inlined_kernels import is_endless
from .buffers import Buffer
from .expression_evaluation import evaluate_arrays
from .expressions import Expr, arg, lookup, scalar, simplified, substitute
from .graph import Rewriting
from .image_ops import Resize
from .ops import Contract, Depthwise, LoopOp, Map, MatMul, Pool, Reduce, RowPass, TransposedContract, View

EPILOGUES = (Contract, Depthwise, TransposedContract, MatMul)
"""Operations whose expression may have operands of the output's shape, one number per channel, and tables."""

UNARY_EPILOGUES = (Pool, Reduce, Resize, RowPass)
"""Operations whose expression has no operands other than the result."""

BYTES = (int8, uint8)

MAX_SIZE = 160
"""Maximum size of a fused expression. An expression that reads its operand twice doubles the fused one."""


def _used(expr: Expr) -> set[int]:
    return {expr.value} if expr.op == "arg" else set().union(*map(_used, expr.args))


def scalar_operands(state: Rewriting, op: Map) -> bool:
    """Convert constant operands of one element to scalars, and remove repeated and unused operands."""
    args: dict[int, Expr] = {}
    operands: list[Buffer] = []
    used = _used(op.expr)
    for i, b in enumerate(op.operands):
        if i not in used:
            continue
        if b.constant is not None and b.size == 1:
            args[i] = scalar(b.constant.reshape(-1)[0].item(), b.dtype)
            continue
        if b not in operands:
            operands.append(b)
        args[i] = arg(operands.index(b), b.dtype)
    if not operands or len(operands) == len(op.operands):
        return False
    state.replace(op, dataclasses.replace(op, operands=tuple(operands), expr=substitute(op.expr, args)))
    return True


def into_chain(state: Rewriting, op: Map) -> bool:
    """Fuse f(g(a), b) if g(a) has the output's shape and no other readers. A function of one byte that would not stay
    one becomes a table first."""
    for index, b in enumerate(op.operands):
        producer = state.writer(b)
        is_single = op.operands.count(b) == 1  # another read would have no writer
        if isinstance(producer, Map) and is_single and b.shape == op.output.shape and state.only_reader(b, op):
            x = _byte(producer)
            if (
                x is not None
                and any(o not in (b, x, *producer.operands) for o in op.operands)
                and into_table(state, producer)
            ):
                producer = state.writer(b)
                assert isinstance(producer, Map)
            operands, expr = _inlined(op, index, producer.operands, producer.expr, 0)
            if expr.size > MAX_SIZE:
                continue
            fused = Map(op.output, operands, simplified(expr), origin=producer.origin + op.origin)
            state.join(producer, op, fused)
            return True
    return False


def _inlined(
    op: Map, index: int, operands: Sequence[Buffer], expr: Expr, first: int
) -> tuple[tuple[Buffer, ...], Expr]:
    """Return the operation's expression with another one as an operand. operands: of that expression, from arg `first`
    on; the result is for all operands, each once."""
    merged = list(operands)
    args: dict[int, Expr] = {}
    for i, b in enumerate(op.operands):
        if i == index:
            args[i] = expr
            continue
        if b not in merged:
            merged.append(b)
        args[i] = arg(merged.index(b) + first, b.dtype)
    return tuple(merged), substitute(op.expr, args)


def into_table(state: Rewriting, op: Map) -> bool:
    """Replace a function of one byte, to a byte, by the table of its 256 values."""
    x = _byte(op)
    if x is None or (op.expr.op == "lookup" and op.expr.args[0].op == "arg"):
        return False
    others = tuple(None if b is x or b.constant is None else (b.dtype, b.constant.tobytes()) for b in op.operands)
    values = _table(op.expr, x.dtype, op.output.dtype, others)
    table = Buffer(f"{op.output.name}.table", op.output.dtype, (256,), values)
    state.replace(op, dataclasses.replace(op, operands=(x, table), expr=lookup(arg(0, x.dtype), arg(1, table.dtype))))
    return True


def _byte(op: Map) -> Buffer | None:
    """Return the one operand of a function from bytes to bytes; its other operands are tables."""
    inputs = [b for i, b in enumerate(op.operands) if not _is_table(op, i)]
    if len(inputs) != 1 or op.output.dtype not in BYTES:
        return None
    x = inputs[0]
    return x if x.dtype in BYTES and x.shape == op.output.shape and x.constant is None else None


@functools.lru_cache(maxsize=1024)
def _table(expr: Expr, dtype: DType, result: DType, tables: tuple[tuple[DType, bytes] | None, ...]) -> np.ndarray:
    """Return the results for the bytes 0 to 255, viewed as dtype. tables: the operands of its look-ups with their
    dtypes, None for the byte."""
    x = np.arange(256, dtype=np.uint8).view(dtype.np)
    operands = [x if t is None else np.frombuffer(t[1], t[0].np) for t in tables]
    with np.errstate(all="ignore"):
        results: np.ndarray = np.ascontiguousarray(evaluate_arrays(expr, operands))
    results.flags.writeable = False
    return results.view(result.np)


def over_view(state: Rewriting, op: Map) -> bool:
    """Replace map(view(x)) by view(map(x)) if x comes from an operation with an epilogue."""
    for index, b in enumerate(op.operands):
        view = state.writer(b)
        if not isinstance(view, View) or not state.only_reader(b, op) or b.shape != op.output.shape:
            continue
        x = view.input
        producer = state.writer(x)
        if not isinstance(producer, (*EPILOGUES, *UNARY_EPILOGUES)) or not state.only_reader(x, view):
            continue
        if any(i != index and not _is_table(op, i) for i in range(len(op.operands))):
            continue
        inner = Buffer(f"{op.output.name}.{'x'.join(map(str, x.shape))}", op.output.dtype, x.shape)
        operands = tuple(x if i == index else o for i, o in enumerate(op.operands))
        state.replace(view)
        state.replace(op, Map(inner, operands, op.expr, origin=op.origin), View(op.output, inner))
        return True
    return False


def _is_table(op: Map, index: int) -> bool:
    return op.operands[index].shape == (256,) and index in _tables(op.expr)


def _tables(expr: Expr) -> set[int]:
    indices = {expr.args[1].value} if expr.op == "lookup" else set()
    return indices.union(*map(_tables, expr.args))


def into_producer(state: Rewriting, op: Map) -> bool:
    """Fuse a map into the expression of the contraction or pooling that produces its operand; kernels also evaluate it
    on padding elements."""
    if is_endless(op.expr):
        return False
    for index, b in enumerate(op.operands):
        producer = state.writer(b)
        if b.shape != op.output.shape or not state.only_reader(b, op) or op.operands.count(b) > 1:
            continue
        if isinstance(producer, UNARY_EPILOGUES) and len(op.operands) == 1:
            if producer.expr.size * op.expr.size > MAX_SIZE:
                continue
            fused: LoopOp = dataclasses.replace(
                producer,
                output=op.output,
                expr=simplified(substitute(op.expr, {0: producer.expr})),
                origin=producer.origin + op.origin,
            )
        elif isinstance(producer, EPILOGUES):
            fitted = _fitted(op, index)
            if fitted is None:
                continue
            operands, expr = _inlined(fitted, index, producer.operands, producer.expr, 1)
            if expr.size > MAX_SIZE:
                continue
            fused = dataclasses.replace(
                producer, output=op.output, operands=operands, expr=simplified(expr), origin=producer.origin + op.origin
            )
        else:
            continue
        state.join(producer, op, fused)
        return True
    return False


def _fitted(op: Map, index: int) -> Map | None:
    """Return the map with operands that an epilogue supports: of the output's shape, a constant per channel, tables."""
    shape, operands = op.output.shape, []
    for i, b in enumerate(op.operands):
        if i != index and b.shape != shape and not _is_table(op, i):
            if b.constant is None or not shape or b.size != shape[-1] or b.shape[-1] != shape[-1]:
                return None
            b = Buffer(b.name, b.dtype, (b.size,), b.constant.reshape(-1))
        operands.append(b)
    return dataclasses.replace(op, operands=tuple(operands))
