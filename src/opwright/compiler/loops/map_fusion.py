"""Fusion of element-wise operations and of data movement.

Lives here: maps into other maps, into look-up tables, into the producer of their operand; moves and views: padding into
windows, parts of a concatenation into its memory.
Not here: the order of the rules, fusion of blocks (fusion.py).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType, float32, int8, uint8
from ..inlined_kernels import is_endless
from .buffers import Buffer, Window, row_major
from .domain_ops import RandomElements, Resize
from .expressions import Expr, arg, evaluate_arrays, lookup, scalar, simplified, substitute, used_arguments
from .graph import Rewriting
from .ops import (
    Contract,
    Depthwise,
    LoopOp,
    Map,
    MatMul,
    Move,
    Pool,
    Reduce,
    RowPass,
    TransposedContract,
    View,
    slice_copy,
)

WRITERS = (Contract, Depthwise, Map, MatMul, Pool)
"""Operations whose kernels can write slices of another buffer."""


def same_shape(state: Rewriting, op: View) -> bool:
    """Remove views of the same shape, and views of views."""
    producer = state.writer(op.input)
    if isinstance(producer, View):
        state.replace(op, dataclasses.replace(op, input=producer.input))
        if not state.is_read(producer.output):  # a view that remained would be a second reader of what it views
            state.replace(producer)
        return True
    if op.input.shape != op.output.shape or state.is_output(op.output):
        return False
    for reader in state.readers(op.output):
        state.replace(reader, reading(reader, op.output, op.input))
    state.replace(op)
    return True


def reading(op: LoopOp, old: Buffer, new: Buffer) -> LoopOp:
    """Return the operation with another buffer as one of its inputs."""
    changes: dict[str, Any] = {}
    for f in dataclasses.fields(op):
        value = getattr(op, f.name)
        if f.name == "output":
            continue
        if value is old:
            changes[f.name] = new
        elif isinstance(value, tuple) and any(v is old for v in value):
            changes[f.name] = tuple(new if v is old else v for v in value)
    return dataclasses.replace(op, **changes)


def into_window(state: Rewriting, op: Move) -> bool:
    """Fuse padding with the value that a window assumes outside of the image; of a maximum, with a value that is no
    greater than any element, such as 0 after RELU."""
    readers = state.readers(op.output)
    if len(readers) != 1 or not state.only_reader(op.output, readers[0]) or not _is_padding(op):
        return False
    (reader,), (box,), x = readers, op.maps, op.operands[0]
    if not isinstance(reader, Contract | Depthwise | Pool) or reader.input is not op.output:
        return False
    shape, start = op.output.shape, box.start
    if len(shape) != 4 or shape[0] != x.shape[0] or shape[3] != x.shape[3]:
        return False
    top, left = start[1], start[2]
    margins = (top, shape[1] - x.shape[1] - top, left, shape[2] - x.shape[2] - left)
    w = reader.window
    if isinstance(reader, Pool):
        if reader.kind != "max" or not _at_least(state, x, op.fill) or not _touches(w, margins):
            return False
    elif op.fill != reader.input_zero or (op.output.dtype.is_floating and not _is_finite(reader.filter)):
        return False  # 0 times an infinity is NaN, but what lies outside a window is not multiplied
    a, b, c, d = w.padding
    window = Window(w.size, w.strides, w.dilations, (a + margins[0], b + margins[1], c + margins[2], d + margins[3]))
    fused = dataclasses.replace(reader, input=x, window=window, origin=reader.origin + op.origin)
    state.join(op, reader, fused)
    return True


def _is_finite(b: Buffer) -> bool:
    return b.constant is None or bool(np.isfinite(b.constant).all())


def _is_padding(op: Move) -> bool:
    """Return whether it is one entire input with a number around it."""
    if len(op.maps) != 1 or op.fill is None:
        return False
    box, x = op.maps[0], op.operands[0]
    return box.extent == x.shape and box.offset == 0 and box.strides == row_major(x.shape)


def _touches(w: Window, more: tuple[int, int, int, int]) -> bool:
    """Return whether every window still covers a pixel of the image."""
    spans = [(k - 1) * d + 1 for k, d in zip(w.size, w.dilations)]
    old = w.padding
    return all(w.dilations[i // 2] == 1 and old[i] + more[i] < spans[i // 2] for i in range(4))


def _at_least(state: Rewriting, x: Buffer, bound: float | None) -> bool:
    """Return whether the expression that wrote a buffer has a lower bound."""
    writer = state.writer(x)
    expr = getattr(writer, "expr", None)
    return isinstance(expr, Expr) and bound is not None and _least(expr) >= bound


def _least(expr: Expr) -> float:
    """Return a lower bound of the expression's result."""
    if expr.op in ("const", "scalar"):
        return float(expr.value)
    if expr.op == "maximum":
        return max(map(_least, expr.args))
    if expr.op == "minimum":
        return min(map(_least, expr.args))
    if expr.op in ("relu", "relu6"):
        return 0.0
    if expr.op == "quantize" and len(expr.args) == 4:
        return _least(expr.args[2])
    return float(expr.dtype.min) if expr.dtype.is_integer else -float("inf")


def into_parent(state: Rewriting, op: Move) -> bool:
    """Fuse a concatenation along the last axis with the producers of its parts, which write in place."""
    if op.fill is not None or len(op.maps) < 2 or op.output.parent is not None or not _is_concatenation(op):
        return False
    parts: list[LoopOp] = []
    is_changed = False
    for x, box in zip(op.operands, op.maps):
        slice_ = Buffer(f"{op.output.name}.{box.start[-1]}", x.dtype, x.shape, None, op.output, box.start[-1])
        writer = state.writer(x)
        if isinstance(writer, WRITERS) and state.only_reader(x, op) and op.operands.count(x) == 1:
            state.replace(writer, dataclasses.replace(writer, output=slice_))
            is_changed = True
        else:
            parts.append(slice_copy(x, slice_, op.origin))
    if is_changed:
        state.replace(op, *parts)
    return is_changed


def _is_concatenation(op: Move) -> bool:
    """Return whether entire operands are concatenated along the last axis and fill the output."""
    offset, shape = 0, op.output.shape
    for x, box in zip(op.operands, op.maps):
        if not shape or x.shape[:-1] != shape[:-1] or box.extent != x.shape or box.offset != 0 or x.parent is not None:
            return False
        if box.start != (*(0,) * (len(shape) - 1), offset):
            return False
        offset += x.shape[-1]
    return offset == shape[-1]


EPILOGUES = (Contract, Depthwise, TransposedContract, MatMul)
"""Operations whose expression may have operands of the output's shape, one number per channel, and tables."""

UNARY_EPILOGUES = (Pool, RandomElements, Reduce, Resize, RowPass)
"""Operations whose expression has no operands other than the result."""

BYTES = (int8, uint8)

MAX_SIZE = 160
"""Maximum size of a fused expression. An expression that reads its operand twice doubles the fused one."""


def scalar_operands(state: Rewriting, op: Map) -> bool:
    """Convert constant operands of one element, or of equal ones, to scalars; remove repeated and unused operands."""
    args: dict[int, Expr] = {}
    operands: list[Buffer] = []
    used, tables = used_arguments(op.expr), tables_of(op.expr)
    for i, b in enumerate(op.operands):
        if i not in used:
            continue
        if b.constant is not None and i not in tables and _is_uniform(b.constant):
            args[i] = scalar(b.constant.reshape(-1)[0].item(), b.dtype)
            continue
        if b not in operands:
            operands.append(b)
        args[i] = arg(operands.index(b), b.dtype)
    if not operands or len(operands) == len(op.operands):
        return False
    state.replace(op, dataclasses.replace(op, operands=tuple(operands), expr=substitute(op.expr, args)))
    return True


def _is_uniform(array: np.ndarray) -> bool:
    """Return whether all elements of an array have the same bits, as those of zeros that a gradient selects."""
    if array.size == 1:
        return True
    if array.size == 0 or array.dtype.itemsize not in (1, 2, 4, 8):
        return False
    bits = np.ascontiguousarray(array).reshape(-1).view(f"u{array.dtype.itemsize}")
    return bool((bits[:64] == bits[0]).all() and (bits == bits[0]).all())


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
    """Replace map(view(x), ...) by view(map(x, ...)) if x comes from an operation with an epilogue."""
    for index, b in enumerate(op.operands):
        view = state.writer(b)
        if not isinstance(view, View) or not state.only_reader(b, op) or b.shape != op.output.shape:
            continue
        x = view.input
        producer = state.writer(x)
        unary = isinstance(producer, UNARY_EPILOGUES)
        if not (unary or isinstance(producer, EPILOGUES)) or not state.only_reader(x, view):
            continue
        views: list[View] = []
        operands = [x if i == index else _viewed(op, i, x.shape, views) for i in range(len(op.operands))]
        if any(o is None for o in operands) or (unary and views):
            continue
        inner = Buffer(f"{op.output.name}.{'x'.join(map(str, x.shape))}", op.output.dtype, x.shape)
        state.replace(view)
        mapped = Map(inner, tuple(o for o in operands if o is not None), op.expr, origin=op.origin)
        state.replace(op, *views, mapped, View(op.output, inner))
        return True
    return False


def _viewed(op: Map, index: int, shape: tuple[int, ...], views: list[View]) -> Buffer | None:
    """Return an operand under the shape of a result that the map's output is a view of; append the views that it takes.

    None for an operand that has neither an element for each of the output's, nor one per channel.
    """
    operand, output = op.operands[index], op.output.shape
    if _is_table(op, index):
        return operand
    if operand.shape == output:
        viewed = shape
    elif operand.shape and operand.size == shape[-1] and operand.shape == output[len(output) - len(operand.shape) :]:
        viewed = (operand.size,)
    else:
        return None
    if viewed == operand.shape:
        return operand
    constant = None if operand.constant is None else operand.constant.reshape(viewed)
    buffer = Buffer(f"{operand.name}.{'x'.join(map(str, viewed))}", operand.dtype, viewed, constant)
    if constant is None:
        views.append(View(buffer, operand))
    return buffer


def _is_table(op: Map, index: int) -> bool:
    return op.operands[index].shape == (256,) and index in tables_of(op.expr)


def tables_of(expr: Expr) -> set[int]:
    """Return the indices of the operands that an expression looks up bytes in."""
    indices = {expr.args[1].value} if expr.op == "lookup" else set()
    return indices.union(*map(tables_of, expr.args))


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
            fitted = _fitted(op, index, producer)
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


REPEATED_SIZE = 2
"""Size of an expression that a reduction repeats although other operations read its result, at most."""


def into_reduction(state: Rewriting, op: Reduce) -> bool:
    """Fuse a map of one operand of float32 into the reduction that reads it, as the negated gradient of a sum."""
    writer = state.writer(op.input)
    if not isinstance(writer, Map) or len(writer.operands) != 1 or is_endless(writer.expr):
        return False
    (x,) = writer.operands
    plain = x.shape == op.input.shape and x.parent is None and {x.dtype, op.input.dtype} == {float32}
    alone = state.only_reader(op.input, op)
    if not plain or not (alone or (writer.expr.size <= REPEATED_SIZE and op.before.op == "arg")):
        return False
    before = simplified(substitute(op.before, {0: writer.expr}))
    state.replace(op, dataclasses.replace(op, input=x, before=before, origin=writer.origin + op.origin))
    if alone:
        state.replace(writer)
    return True


def _fitted(op: Map, index: int, producer: LoopOp) -> Map | None:
    """Return the map with operands that an epilogue supports: of the output's shape, a constant per channel, tables;
    of products of floats also computed numbers per channel."""
    shape, operands = op.output.shape, []
    computed = isinstance(producer, MatMul) and producer.a.dtype is producer.b.dtype is float32
    for i, b in enumerate(op.operands):
        if i != index and b.shape != shape and not _is_table(op, i) and not (computed and b.shape == shape[-1:]):
            if b.constant is None or not shape or b.size != shape[-1] or b.shape[-1] != shape[-1]:
                return None
            b = Buffer(b.name, b.dtype, (b.size,), b.constant.reshape(-1))
        operands.append(b)
    return dataclasses.replace(op, operands=tuple(operands))
