"""Constant folding: operations on constants are computed once, when a graph is planned.

Lives here: these rules; `filled_operand`, which reads what fills an array instead.
Not here: their order (fusion.py), packing of weights (planner.py).

Files store weights as float16 or quantized integers and convert them by DEQUANTIZE before each reader. Kernels of
products read short floats directly, so those weights are not converted; everything else becomes a constant.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dtypes import bfloat16, float16, float32
from .buffers import Buffer
from .expressions import Expr, evaluate_arrays, simplified
from .graph import Rewriting
from .indexing_ops import Gather
from .map_fusion import reading, tables_of
from .ops import Contract, LoopOp, Map, MatMul, Move, TransposedContract, View, slice_copy

FILTERS: dict[type[LoopOp], str] = {Contract: "filter", TransposedContract: "filter", MatMul: "b"}
"""Operations whose kernels convert a constant operand of short floats, and that operand."""

SHORT = (float16, bfloat16)

GROWTH = 2
"""Maximum ratio of a folded constant's elements to those of its operands."""

BLOCK = 1 << 16
"""Elements computed at a time, as NumPy allocates several float64 arrays of them."""


def constant_view(state: Rewriting, op: View) -> bool:
    """Fold the view of a constant; move the view of a map of one constant to its operand."""
    source = op.input
    constant = source.constant
    if constant is not None and source.parent is None:
        return _fold(state, op, constant.reshape(op.output.shape))
    producer = state.writer(source)
    if not isinstance(producer, Map) or len(producer.operands) != 1 or producer.operands[0].shape != source.shape:
        return False
    (operand,) = producer.operands
    if operand.constant is None:
        return False
    viewed = Buffer(operand.name, operand.dtype, op.output.shape, operand.constant.reshape(op.output.shape))
    state.replace(op, Map(op.output, (viewed,), producer.expr, origin=op.origin))
    return True


def short_filter(state: Rewriting, op: LoopOp) -> bool:
    """Read a filter as the short floats of the file instead of their conversion to float32."""
    name = FILTERS[type(op)]
    producer = state.writer(getattr(op, name))
    if not isinstance(producer, Map) or not _is_widened(producer.expr) or getattr(op, name).dtype is not float32:
        return False
    (operand,) = producer.operands
    if operand.constant is None or operand.shape != producer.output.shape:
        return False
    changes: dict[str, Any] = {name: operand}
    state.replace(op, dataclasses.replace(op, **changes))
    return True


def _is_widened(expr: Expr) -> bool:
    return expr.op == "convert" and expr.dtype is float32 and expr.args[0].op == "arg" and expr.args[0].dtype in SHORT


def gathered_map(state: Rewriting, op: Gather) -> bool:
    """Apply a map of a constant table to the gathered rows, if they are fewer."""
    producer = state.writer(op.input)
    if not isinstance(producer, Map) or len(producer.operands) != 1 or op.output.size >= op.input.size:
        return False
    (table,) = producer.operands
    if table.constant is None or table.shape != op.input.shape:
        return False
    rows = Buffer(f"{op.output.name}.rows", table.dtype, op.output.shape)
    state.replace(
        op, dataclasses.replace(op, output=rows, input=table), Map(op.output, (rows,), producer.expr, origin=op.origin)
    )
    return True


def constant_map(state: Rewriting, op: Map) -> bool:
    """Fold a map of constants."""
    arrays = [b.constant for b in op.operands if b.constant is not None]
    if len(arrays) != len(op.operands) or not _is_small(op):
        return False
    is_output = state.is_output(op.output)
    if not is_output and not state.readers(op.output):
        return False
    try:
        elements = computed(op, arrays)
    except KeyError:  # an operation without a NumPy implementation
        return False
    _fold(state, op, elements)
    if is_output:
        state.replace(op, slice_copy(_constant(op.output, elements), op.output, op.origin))
    return True


def computed(op: Map, arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return the elements that a map writes. arrays: its operands. Raises KeyError for an operation without a NumPy
    implementation."""
    expr, shape = simplified(op.expr), op.output.shape
    with np.errstate(all="ignore"):
        if any(a.shape != shape for a in arrays):
            return np.ascontiguousarray(np.broadcast_to(evaluate_arrays(expr, arrays), shape))
        result = np.empty(shape, op.output.dtype.np)
        flat, flats = result.reshape(-1), [np.ascontiguousarray(a).reshape(-1) for a in arrays]
        for start in range(0, flat.size, BLOCK):
            flat[start : start + BLOCK] = evaluate_arrays(expr, [a[start : start + BLOCK] for a in flats])
    return result


def constant_move(state: Rewriting, op: Move) -> bool:
    """Fold a move of constants."""
    if any(b.constant is None or b.parent is not None for b in op.operands) or not _is_small(op):
        return False
    elements = np.full(op.output.shape, op.fill or 0).astype(op.output.dtype.np)
    for b, box in zip(op.operands, op.maps):
        assert b.constant is not None
        flat = np.ascontiguousarray(b.constant).reshape(-1)
        index = np.full((), box.offset, np.int64)
        for axis, (extent, stride) in enumerate(zip(box.extent, box.strides)):
            steps = np.arange(extent, dtype=np.int64) * stride
            index = index + steps.reshape((1,) * axis + (-1,) + (1,) * (len(box.extent) - axis - 1))
        region = tuple(slice(start, start + extent) for start, extent in zip(box.start, box.extent))
        elements[region] = flat[index]
    return _fold(state, op, elements)


def filled_operand(state: Rewriting, op: Map) -> bool:
    """Read the one element that fills an operand instead of the operand, next to another one of the output's shape."""
    for index, b in enumerate(op.operands):
        others = op.operands[:index] + op.operands[index + 1 :]
        element = _element_of(state, b)
        if element is None or all(o.shape != op.output.shape for o in others) or index in tables_of(op.expr):
            continue
        state.replace(op, dataclasses.replace(op, operands=(*op.operands[:index], element, *op.operands[index + 1 :])))
        return True
    return False


def _element_of(state: Rewriting, b: Buffer) -> Buffer | None:
    """Return the buffer of one element that a move repeats in all of a larger buffer, or under views of it."""
    producer = state.writer(b)
    while isinstance(producer, View):
        producer = state.writer(producer.input)
    if not isinstance(producer, Move) or b.size == 1 or len(producer.operands) != 1:
        return None
    (source,), (box,) = producer.operands, producer.maps
    repeats = box.extent == producer.output.shape and not any(box.strides)
    return source if repeats and source.size == 1 and source.parent is None else None


def _is_small(op: Map | Move) -> bool:
    return (
        bool(op.operands)
        and op.output.parent is None
        and math.prod(op.output.shape) <= GROWTH * sum(b.size for b in op.operands)
    )


def _fold(state: Rewriting, op: LoopOp, elements: np.ndarray) -> bool:
    """Let the readers of an operation read its folded result. Return whether there are any; the operation remains."""
    readers = state.readers(op.output)
    if not readers:
        return False
    constant = _constant(op.output, elements)
    for reader in readers:
        state.replace(reader, reading(reader, op.output, constant))
    return True


def _constant(b: Buffer, elements: np.ndarray) -> Buffer:
    elements.flags.writeable = False
    return Buffer(f"{b.name}.known", b.dtype, b.shape, elements)
