"""Fusion of moves and views: padding into windows, parts of a concatenation into its memory.

Lives here: these rules.  Not here: their order (fusion.py), maps (map_fusion.py).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .buffers import Buffer, Window
from .expressions import Expr
from .graph import Rewriting
from .ops import Contract, Depthwise, LoopOp, Map, MatMul, Move, Pool, View, slice_copy

WRITERS = (Contract, Depthwise, Map, MatMul, Pool)
"""Operations whose kernels can write slices of another buffer."""


def same_shape(state: Rewriting, op: View) -> bool:
    """Remove views of the same shape, and views of views."""
    producer = state.writer(op.input)
    if isinstance(producer, View):
        state.replace(op, dataclasses.replace(op, input=producer.input))
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
    """Whether it is one entire input with a number around it."""
    if len(op.maps) != 1 or op.fill is None:
        return False
    box, x = op.maps[0], op.operands[0]
    strides, step = [], 1
    for n in reversed(x.shape):
        strides.append(step)
        step *= n
    return box.extent == x.shape and box.offset == 0 and box.strides == tuple(reversed(strides))


def _touches(w: Window, more: tuple[int, int, int, int]) -> bool:
    """Whether every window still covers a pixel of the image."""
    spans = [(k - 1) * d + 1 for k, d in zip(w.size, w.dilations)]
    old = w.padding
    return all(w.dilations[i // 2] == 1 and old[i] + more[i] < spans[i // 2] for i in range(4))


def _at_least(state: Rewriting, x: Buffer, bound: float | None) -> bool:
    """Whether the expression that wrote a buffer has a lower bound."""
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
    """Whether entire operands are concatenated along the last axis and fill the output."""
    offset, shape = 0, op.output.shape
    for x, box in zip(op.operands, op.maps):
        if not shape or x.shape[:-1] != shape[:-1] or box.extent != x.shape or box.offset != 0 or x.parent is not None:
            return False
        if box.start != (*(0,) * (len(shape) - 1), offset):
            return False
        offset += x.shape[-1]
    return offset == shape[-1]
