"""Tensors made of a few numbers: FILL, RANGE, ONE_HOT.

Lives here: these operators.  Not here: stretching tensors (shaping.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import float32, int8, int32, int64, uint8
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from ...ops.array.constants import number_of_steps
from ...ops.definition import Input, Output
from .definition import lite_operator
from .shapes import axis_in, check_one, ints, refuse, spec, unknown
from .types import ANY, INDEX, NUMBER


@lite_operator("FILL")
class Fill:
    """A tensor of shape `dims` filled with one value."""

    dims = Input(INDEX, rank=1)
    value = Input(ANY, rank=0)
    y = Output(like="value")
    moves = alike = True

    def infer(op: Any) -> TensorSpec:
        sizes = ints(op.dims)
        if sizes is None:
            rank = op.dims.spec.shape[0]
            return spec(None if rank is None else unknown(rank), op.value.spec.dtype)
        if min(sizes, default=0) < 0:
            raise refuse("Fill dimensions must be >= 0", found=sizes, wanted="sizes of at least 0")
        return spec(sizes, op.value.spec.dtype)

    def compute(op: Any, dims: Any, value: Any) -> Any:
        return np.full(tuple(int(d) for d in dims), value, value.dtype)


@lite_operator("RANGE")
class Range:
    """Numbers from start, up to but without limit, in steps of delta.

    .. math:: y_0 = start, \\quad y_{i+1} = y_i + delta

    Floats are counted and added up in float32, so the sums are those of the official kernel.
    """

    start = Input((float32, int32, int64))
    limit = Input((float32, int32, int64), like="start")
    delta = Input((float32, int32, int64), like="start")
    y = Output(like="start")

    def infer(op: Any) -> TensorSpec:
        for operand, name in ((op.start, "start"), (op.limit, "limit"), (op.delta, "delta")):
            check_one(operand, name)
        values = [op.start.constant, op.limit.constant, op.delta.constant]
        known = all(v is not None for v in values)
        return spec((_count(*(v.reshape(-1)[0] for v in values)) if known else None,), op.start.spec.dtype)

    def compute(op: Any, start: Any, limit: Any, delta: Any) -> Any:
        y = np.full(_count(*(v.reshape(-1)[0] for v in (start, limit, delta))), delta.reshape(-1)[0], start.dtype)
        y[:1] = start.reshape(-1)
        return np.add.accumulate(y, out=y)


def _count(start: Any, limit: Any, delta: Any) -> int:
    found = {name: v.item() for name, v in (("start", start), ("limit", limit), ("delta", delta))}
    if delta == 0 or (start > limit and delta > 0) or (start < limit and delta < 0):
        raise refuse("delta does not lead from start to limit", found=found,
                     wanted="a delta other than 0, of the sign of limit - start")  # fmt: skip
    count = number_of_steps(start, limit, delta)
    if count is None:
        raise refuse("the range has no end", found=found, wanted="finite numbers")
    return count


@lite_operator("ONE_HOT")
class OneHot:
    """For each index a vector of `depth`, on_value at the index and off_value elsewhere, put along `axis`."""

    indices = Input((int32, int64))
    depth = Input(NUMBER)
    on_value = Input((float32, int32, int64, int8, uint8, bool_))
    off_value = Input((float32, int32, int64, int8, uint8, bool_), like="on_value")
    y = Output(like="on_value")
    moves = True

    def infer(op: Any) -> TensorSpec:
        for operand, name in ((op.depth, "depth"), (op.on_value, "on_value"), (op.off_value, "off_value")):
            check_one(operand, name)
        dims, depth, dtype = op.indices.spec.shape.dims, ints(op.depth), op.on_value.spec.dtype
        if depth is not None and depth[0] < 0:
            raise refuse("depth is negative", found=depth[0], wanted="at least 0")
        if dims is None:
            return TensorSpec(UNKNOWN, dtype)
        at = axis_in(op.axis, len(dims) + 1)
        return spec((*dims[:at], None if depth is None else depth[0], *dims[at:]), dtype)

    def compute(op: Any, indices: Any, depth: Any, on_value: Any, off_value: Any) -> Any:
        at = op.axis % (indices.ndim + 1)
        places = np.arange(int(depth.reshape(-1)[0])).reshape((-1,) + (1,) * (indices.ndim - at))
        return np.where(np.expand_dims(indices, at) == places, on_value.reshape(-1)[0], off_value.reshape(-1)[0])
