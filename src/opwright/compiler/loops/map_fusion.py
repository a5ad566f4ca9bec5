"""Rules of fusion for maps: into other maps, into tables, into what produces their operand.

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
"""Forms whose expression may have operands of the output's shape, of one number a channel, and tables."""

ALONE = (Pool, Reduce, Resize, RowPass)
"""Forms whose expression has no operands besides the form's own result."""

BYTES = (int8, uint8)

LARGEST = 160
"""Operations and leaves of an expression that fusion makes. One that reads its operand twice doubles what comes in."""


def _used(expr: Expr) -> set[int]:
    return {expr.value} if expr.op == "arg" else set().union(*map(_used, expr.args))


def scalar_operands(state: Rewriting, op: Map) -> bool:
    """Operands of one element, known, become scalars; operands that stand twice or are not needed go."""
    args: dict[int, Expr] = {}
    kept: list[Buffer] = []
    used = _used(op.expr)
    for i, b in enumerate(op.operands):
        if i not in used:
            continue
        if b.constant is not None and b.size == 1:
            args[i] = scalar(b.constant.reshape(-1)[0].item(), b.dtype)
            continue
        if b not in kept:
            kept.append(b)
        args[i] = arg(kept.index(b), b.dtype)
    if not kept or len(kept) == len(op.operands):
        return False
    state.replace(op, dataclasses.replace(op, operands=tuple(kept), expr=substitute(op.expr, args)))
    return True


def into_chain(state: Rewriting, op: Map) -> bool:
    """f(g(a), b) for b' = g(a), of the output's shape and read by nobody else. A function of one byte that does not
    make another with what follows becomes a table first."""
    for place, b in enumerate(op.operands):
        producer = state.writer(b)
        once = op.operands.count(b) == 1  # the other place would read what nobody writes any more
        if isinstance(producer, Map) and once and b.shape == op.output.shape and state.only_reader(b, op):
            x = _byte(producer)
            if (
                x is not None
                and any(o not in (b, x, *producer.operands) for o in op.operands)
                and into_table(state, producer)
            ):
                producer = state.writer(b)
                assert isinstance(producer, Map)
            operands, expr = _inlined(op, place, producer.operands, producer.expr, 0)
            if expr.size > LARGEST:
                continue
            whole = Map(op.output, operands, simplified(expr), origin=producer.origin + op.origin)
            state.join(producer, op, whole)
            return True
    return False


def _inlined(
    op: Map, place: int, operands: Sequence[Buffer], expr: Expr, first: int
) -> tuple[tuple[Buffer, ...], Expr]:
    """The form's expression with another in the place of an operand. operands: of that expression, from arg `first`
    on; the result is for all operands together, each once."""
    merged = list(operands)
    args: dict[int, Expr] = {}
    for i, b in enumerate(op.operands):
        if i == place:
            args[i] = expr
            continue
        if b not in merged:
            merged.append(b)
        args[i] = arg(merged.index(b) + first, b.dtype)
    return tuple(merged), substitute(op.expr, args)


def into_table(state: Rewriting, op: Map) -> bool:
    """A function of one byte, to a byte: all its 256 values."""
    x = _byte(op)
    if x is None or (op.expr.op == "lookup" and op.expr.args[0].op == "arg"):
        return False
    others = tuple(None if b is x or b.constant is None else (b.dtype, b.constant.tobytes()) for b in op.operands)
    known = _table(op.expr, x.dtype, op.output.dtype, others)
    table = Buffer(f"{op.output.name}.table", op.output.dtype, (256,), known)
    state.replace(op, dataclasses.replace(op, operands=(x, table), expr=lookup(arg(0, x.dtype), arg(1, table.dtype))))
    return True


def _byte(op: Map) -> Buffer | None:
    """The one operand of a function of a byte that gives bytes; its others are tables."""
    inputs = [b for i, b in enumerate(op.operands) if not _is_table(op, i)]
    if len(inputs) != 1 or op.output.dtype not in BYTES:
        return None
    x = inputs[0]
    return x if x.dtype in BYTES and x.shape == op.output.shape and x.constant is None else None


@functools.lru_cache(maxsize=1024)
def _table(expr: Expr, dtype: DType, result: DType, tables: tuple[tuple[DType, bytes] | None, ...]) -> np.ndarray:
    """The results for the bytes 0 to 255, seen as dtype. tables: the operands of its look-ups with their dtypes, None
    for the byte."""
    x = np.arange(256, dtype=np.uint8).view(dtype.np)
    operands = [x if t is None else np.frombuffer(t[1], t[0].np) for t in tables]
    with np.errstate(all="ignore"):
        found: np.ndarray = np.ascontiguousarray(evaluate_arrays(expr, operands))
    found.flags.writeable = False
    return found.view(result.np)


def over_view(state: Rewriting, op: Map) -> bool:
    """map(view(x)) is view(map(x)), where x comes from a form that takes epilogues."""
    for place, b in enumerate(op.operands):
        view = state.writer(b)
        if not isinstance(view, View) or not state.only_reader(b, op) or b.shape != op.output.shape:
            continue
        x = view.input
        producer = state.writer(x)
        if not isinstance(producer, (*EPILOGUES, *ALONE)) or not state.only_reader(x, view):
            continue
        if any(i != place and not _is_table(op, i) for i in range(len(op.operands))):
            continue
        inner = Buffer(f"{op.output.name}.{'x'.join(map(str, x.shape))}", op.output.dtype, x.shape)
        operands = tuple(x if i == place else o for i, o in enumerate(op.operands))
        state.replace(view)
        state.replace(op, Map(inner, operands, op.expr, origin=op.origin), View(op.output, inner))
        return True
    return False


def _is_table(op: Map, place: int) -> bool:
    return op.operands[place].shape == (256,) and place in _tables(op.expr)


def _tables(expr: Expr) -> set[int]:
    found = {expr.args[1].value} if expr.op == "lookup" else set()
    return found.union(*map(_tables, expr.args))


def into_producer(state: Rewriting, op: Map) -> bool:
    """A map of a contraction's or a pool's result, in its expression. These compute what is no element of it, too."""
    if is_endless(op.expr):
        return False
    for place, b in enumerate(op.operands):
        producer = state.writer(b)
        if b.shape != op.output.shape or not state.only_reader(b, op) or op.operands.count(b) > 1:
            continue
        if isinstance(producer, ALONE) and len(op.operands) == 1:
            if producer.expr.size * op.expr.size > LARGEST:
                continue
            whole: LoopOp = dataclasses.replace(
                producer,
                output=op.output,
                expr=simplified(substitute(op.expr, {0: producer.expr})),
                origin=producer.origin + op.origin,
            )
        elif isinstance(producer, EPILOGUES):
            fitted = _fitted(op, place)
            if fitted is None:
                continue
            operands, expr = _inlined(fitted, place, producer.operands, producer.expr, 1)
            if expr.size > LARGEST:
                continue
            whole = dataclasses.replace(
                producer, output=op.output, operands=operands, expr=simplified(expr), origin=producer.origin + op.origin
            )
        else:
            continue
        state.join(producer, op, whole)
        return True
    return False


def _fitted(op: Map, place: int) -> Map | None:
    """The map with operands that an epilogue takes: of the output's shape, a constant a channel, tables."""
    shape, operands = op.output.shape, []
    for i, b in enumerate(op.operands):
        if i != place and b.shape != shape and not _is_table(op, i):
            if b.constant is None or not shape or b.size != shape[-1] or b.shape[-1] != shape[-1]:
                return None
            b = Buffer(b.name, b.dtype, (b.size,), b.constant.reshape(-1))
        operands.append(b)
    return dataclasses.replace(op, operands=tuple(operands))
