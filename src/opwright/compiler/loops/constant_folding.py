"""Rules of fusion for constants: what follows from constants alone is computed once, when a graph is planned.

Lives here: these rules.  Not here: their order (fusion.py), packing what kernels read (planner.py).

Files keep weights as float16 or as integers with scales and convert them by DEQUANTIZE in front of each reader. Kernels
of products read short floats themselves, so those are packed, or read, as they are; everything else becomes a constant.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import bfloat16, float16, float32
from .buffers import Buffer
from .expression_evaluation import evaluate_arrays
from .expressions import Expr, simplified
from .graph import Rewriting
from .indexing_ops import Gather
from .move_fusion import reading
from .ops import Contract, LoopOp, Map, MatMul, Move, TransposedContract, View, slice_copy

FILTERS: dict[type[LoopOp], str] = {Contract: "filter", TransposedContract: "filter", MatMul: "b"}
"""Forms whose kernels convert a constant operand of short floats, and that operand."""

SHORT = (float16, bfloat16)

GROWTH = 2
"""A constant that is computed has at most so many times the elements of those it is computed of."""

BLOCK = 1 << 16
"""Elements that are computed at a time: NumPy holds several arrays of float64 of them."""


def constant_view(state: Rewriting, op: View) -> bool:
    """The view of a constant is a constant; the view of a map of one constant is the map of its view."""
    source = op.input
    known = source.constant
    if known is not None and source.parent is None:
        return _known(state, op, known.reshape(op.output.shape))
    below = state.writer(source)
    if not isinstance(below, Map) or len(below.operands) != 1 or below.operands[0].shape != source.shape:
        return False
    (operand,) = below.operands
    if operand.constant is None:
        return False
    viewed = Buffer(operand.name, operand.dtype, op.output.shape, operand.constant.reshape(op.output.shape))
    state.replace(op, Map(op.output, (viewed,), below.expr, origin=op.origin))
    return True


def short_filter(state: Rewriting, op: LoopOp) -> bool:
    """A filter that is converted to float32 is read as the short floats that it is in the file."""
    name = FILTERS[type(op)]
    below = state.writer(getattr(op, name))
    if not isinstance(below, Map) or not _is_widened(below.expr) or getattr(op, name).dtype is not float32:
        return False
    (operand,) = below.operands
    if operand.constant is None or operand.shape != below.output.shape:
        return False
    changes: dict[str, Any] = {name: operand}
    state.replace(op, dataclasses.replace(op, **changes))
    return True


def _is_widened(expr: Expr) -> bool:
    return expr.op == "convert" and expr.dtype is float32 and expr.args[0].op == "arg" and expr.args[0].dtype in SHORT


def gathered_map(state: Rewriting, op: Gather) -> bool:
    """Rows gathered from a map of a constant table are mapped after they are gathered, where they are fewer."""
    below = state.writer(op.input)
    if not isinstance(below, Map) or len(below.operands) != 1 or op.output.size >= op.input.size:
        return False
    (table,) = below.operands
    if table.constant is None or table.shape != op.input.shape:
        return False
    rows = Buffer(f"{op.output.name}.rows", table.dtype, op.output.shape)
    state.replace(
        op, dataclasses.replace(op, output=rows, input=table), Map(op.output, (rows,), below.expr, origin=op.origin)
    )
    return True


def constant_map(state: Rewriting, op: Map) -> bool:
    """A map of constants is a constant."""
    arrays = [b.constant for b in op.operands if b.constant is not None]
    if len(arrays) != len(op.operands) or not _is_small(op):
        return False
    is_output = state.is_output(op.output)
    if not is_output and not state.readers(op.output):
        return False
    try:
        found = computed(op, arrays)
    except KeyError:  # an operation that only kernels have
        return False
    _known(state, op, found)
    if is_output:
        state.replace(op, slice_copy(_constant(op.output, found), op.output, op.origin))
    return True


def computed(op: Map, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The elements that a map writes; arrays: its operands. Raises KeyError for an operation that only kernels have."""
    expr, shape = simplified(op.expr), op.output.shape
    with np.errstate(all="ignore"):
        if any(a.shape != shape for a in arrays):
            return np.ascontiguousarray(np.broadcast_to(evaluate_arrays(expr, arrays), shape))
        found = np.empty(shape, op.output.dtype.np)
        flat, flats = found.reshape(-1), [np.ascontiguousarray(a).reshape(-1) for a in arrays]
        for start in range(0, flat.size, BLOCK):
            flat[start : start + BLOCK] = evaluate_arrays(expr, [a[start : start + BLOCK] for a in flats])
    return found


def constant_move(state: Rewriting, op: Move) -> bool:
    """A move of constants is a constant."""
    if any(b.constant is None or b.parent is not None for b in op.operands) or not _is_small(op):
        return False
    found = np.full(op.output.shape, op.fill or 0).astype(op.output.dtype.np)
    for b, box in zip(op.operands, op.maps):
        assert b.constant is not None
        flat = np.ascontiguousarray(b.constant).reshape(-1)
        index = np.full((), box.offset, np.int64)
        for axis, (extent, stride) in enumerate(zip(box.extent, box.strides)):
            steps = np.arange(extent, dtype=np.int64) * stride
            index = index + steps.reshape((1,) * axis + (-1,) + (1,) * (len(box.extent) - axis - 1))
        place = tuple(slice(start, start + extent) for start, extent in zip(box.start, box.extent))
        found[place] = flat[index]
    return _known(state, op, found)


def _is_small(op: Map | Move) -> bool:
    return (
        bool(op.operands)
        and op.output.parent is None
        and math.prod(op.output.shape) <= GROWTH * sum(b.size for b in op.operands)
    )


def _known(state: Rewriting, op: LoopOp, found: np.ndarray) -> bool:
    """Let readers of a form read what it computes. Return whether there are any; the form stays."""
    readers = state.readers(op.output)
    if not readers:
        return False
    known = _constant(op.output, found)
    for reader in readers:
        state.replace(reader, reading(reader, op.output, known))
    return True


def _constant(b: Buffer, found: np.ndarray) -> Buffer:
    found.flags.writeable = False
    return Buffer(f"{b.name}.known", b.dtype, b.shape, found)
