"""Reductions over axes and segments, and cumulative sums: SUM to REDUCE_ALL, SEGMENT_SUM, UNSORTED_SEGMENT_*, CUMSUM.

Lives here: the tables of reductions.  Not here: searches (sorting.py), normalization (activation.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import DType, float16, float32, int8, int16, int32, int64, of_numpy, uint8
from ...core.dtypes import bool as bool_
from ...core.lazy_imports import later
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from ...ops.shape_inference import reduced_dims
from ...ops.slots import Input, Output
from .definition import LiteDefinition, LiteOperator, lite_operator
from .shapes import axis_in, ints, one_int, refuse, spec

if TYPE_CHECKING:
    from ...ops import array_functions, index_shapes
else:  # of operators that few models have
    array_functions = later("...ops.array_functions", __package__)
    index_shapes = later("...ops.index_shapes", __package__)


def axes_of(axes: list[int], rank: int) -> tuple[int, ...]:
    """Return axes counted from the front, each once: duplicates are ignored, as in the official run time.

    A scalar may be reduced over 0 and -1: over nothing, then.
    """
    if rank == 0:
        axes = [a for a in axes if a not in (0, -1)]
    return tuple(sorted({axis_in(a, rank) for a in axes}))


def _reduced(op: Any) -> TensorSpec:
    shape, dtype, axes = op.x.spec.shape, op.x.spec.dtype, ints(op.axes)
    if op.axes.spec.shape.rank not in (None, 0, 1):
        raise refuse("axes is not a list", found=op.axes.spec.short(), wanted="rank 0 or 1")
    if shape.dims is None:
        return TensorSpec(UNKNOWN, dtype)
    if axes is None:
        return spec((None,) * shape.rank if op.keep_dims else None, dtype)
    return spec(reduced_dims(shape.dims, axes_of(axes, shape.rank), op.keep_dims), dtype)


def reduction(name: str, reduce: Any, formula: str, dtypes: tuple[DType, ...]) -> LiteOperator:
    """Define a reduction. reduce: function of an array, a tuple of axes and keepdims."""

    def computed(op: Any, x: np.ndarray, axes: Any) -> np.ndarray:
        dimensions = axes_of(axes.reshape(-1).tolist(), x.ndim)
        return reduce(x, dimensions, op.keep_dims) if dimensions or x.ndim else np.array(x)

    body = {
        "__doc__": f"{name} over axes.\n\n.. math:: y = {formula}\n\naxes: int32, a scalar or [count]",
        "__module__": __name__,
        "x": Input(dtypes),
        "axes": Input((int32,)),
        "y": Output(like="x"),
        "infer": _reduced,
        "compute": computed,
        **SETTINGS.get(name, {}),
    }
    return lite_operator(name)(type(name, (), body))


def _maximum(x: Any, axes: tuple[int, ...], keep: Any) -> np.ndarray:
    """Return the maximum, ignoring NaN; for no elements the least finite number of the type."""
    initial: Any = -np.inf if x.size and x.dtype.kind == "f" else of_numpy(x.dtype).min
    result: np.ndarray = np.fmax.reduce(x, axes, keepdims=keep, initial=initial)
    return result


def _minimum(x: Any, axes: tuple[int, ...], keep: Any) -> np.ndarray:
    """Return the minimum, ignoring NaN; for no elements the greatest finite number of the type."""
    initial: Any = np.inf if x.size and x.dtype.kind == "f" else of_numpy(x.dtype).max
    result: np.ndarray = np.fmin.reduce(x, axes, keepdims=keep, initial=initial)
    return result


def _sum(x: np.ndarray, axes: tuple[int, ...], keep: bool) -> np.ndarray:
    """Return the sum, in float32 for 16-bit floats; for booleans, whether any is true."""
    result: np.ndarray
    if x.dtype.kind == "b":
        result = np.any(x, axes, keepdims=keep)
    elif x.dtype.itemsize == 2:
        result = x.sum(axes, keepdims=keep, dtype=np.float32).astype(x.dtype)
    else:
        result = x.sum(axes, keepdims=keep, dtype=x.dtype)
    return result


def _mean(x: np.ndarray, axes: tuple[int, ...], keep: bool) -> np.ndarray:
    """Return the mean; for integers truncated toward zero, and 0 for no elements."""
    count = int(np.prod([x.shape[a] for a in axes]))
    result: np.ndarray
    if x.dtype.kind == "f":
        total = x.sum(axes, keepdims=keep, dtype=np.float32)
        result = (total / np.float32(count)).astype(x.dtype, copy=False)
    else:
        total = x.sum(axes, keepdims=keep, dtype=np.int64)
        result = (np.sign(total) * (np.abs(total) // max(count, 1))).astype(x.dtype)
    return result


_NUMBERS = (float32, int32, int64)
_SUMMED = (*_NUMBERS, float16)
_RAW = (*_NUMBERS, int8, uint8, int16, bool_)
_ORDERED = (*_RAW, float16)

# name, function of array, axes and keepdims, formula, dtypes
REDUCTIONS = (
    ("SUM", _sum, r"\sum x", (*_SUMMED, bool_)),
    ("MEAN", _mean, r"\bar x", (*_SUMMED, int8, uint8, int16)),
    ("REDUCE_MAX", _maximum, r"\max x", _ORDERED),
    ("REDUCE_MIN", _minimum, r"\min x", _ORDERED),
    ("REDUCE_PROD", lambda x, a, k: x.prod(a, keepdims=k, dtype=x.dtype), r"\prod x", _RAW),
    ("REDUCE_ANY", lambda x, a, k: x.any(a, keepdims=k), r"\bigvee x", (bool_,)),
    ("REDUCE_ALL", lambda x, a, k: x.all(a, keepdims=k), r"\bigwedge x", (bool_,)),
)

# On quantized tensors: a rule, or the raw integers.
SETTINGS: dict[str, dict[str, Any]] = {
    "SUM": {"quantized": "arithmetic.reduce_sum"},
    "MEAN": {"quantized": "arithmetic.mean"},
    "REDUCE_PROD": {"quantized": "arithmetic.reduce_prod"},
    "REDUCE_MAX": {"quantized": "arithmetic.reduce_max"},
    "REDUCE_MIN": {"quantized": "arithmetic.reduce_min"},
}

for row in REDUCTIONS:
    reduction(*row)


@lite_operator("CUMSUM")
class CumsumOp(LiteDefinition):
    """Running sums along an axis. exclusive: without the element itself; reverse: from the end.

    .. math:: y_i = \\sum_{j \\le i} x_j
    """

    x = Input(_NUMBERS)
    axis = Input((int32,))
    y = Output(like="x")

    def infer(op: Any) -> TensorSpec:
        axis, shape = one_int(op.axis, "axis"), op.x.spec.shape
        if axis is not None and shape.rank is not None:
            axis_in(axis, shape.rank)
        return TensorSpec(shape, op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray, axis: np.ndarray) -> np.ndarray:
        return array_functions.scanned(np.add, x, int(axis.reshape(-1)[0]), 0, op.exclusive, op.reverse)


_SEGMENTED = (float32, int32)


@lite_operator("SEGMENT_SUM")
class SegmentSumOp(LiteDefinition):
    """Sums of the rows of each segment; a segment without rows is 0.

    .. math:: y_s = \\sum_{i: segment\\_ids_i = s} x_i

    segment_ids: int32, one a row of x, from 0 up and never falling; y has as many rows as the last of them plus 1
    """

    x = Input(_SEGMENTED)
    segment_ids = Input((int32,), rank=1)
    y = Output(like="x")

    def infer(op: Any) -> TensorSpec:
        return spec(index_shapes.segment_dims(op.x.spec, op.segment_ids.spec, op.segment_ids.constant), op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray, segment_ids: np.ndarray) -> np.ndarray:
        y = np.zeros((index_shapes.count_segments(segment_ids), *x.shape[1:]), x.dtype)
        np.add.at(y, segment_ids, x)
        return y


def _unsorted(op: Any) -> TensorSpec:
    count, ids = one_int(op.num_segments, "num_segments"), ints(op.segment_ids)
    dims = index_shapes.unsorted_segment_dims(op.x.spec, op.segment_ids.spec, count)
    if count is not None and ids is not None:
        _check_range(max(ids, default=-1), count)
    return spec(dims, op.x.spec.dtype)


def _check_range(greatest: int, count: int) -> None:
    if greatest >= count:
        raise refuse("a segment id is out of range", found=greatest, wanted=f"less than {count}")


def unsorted(name: str, ufunc: np.ufunc, formula: str, initial: Any) -> LiteOperator:
    """Define a reduction of each segment. initial: from a dtype to the result of a segment without elements."""

    def compute(op: Any, x: np.ndarray, segment_ids: np.ndarray, num_segments: np.ndarray) -> np.ndarray:
        inner = x.shape[segment_ids.ndim :]
        count = int(num_segments.reshape(-1)[0])
        y = np.full((count, *inner), initial(x.dtype), x.dtype)
        _check_range(int(segment_ids.max(initial=-1)), count)
        ids, rows = segment_ids.reshape(-1), x.reshape(segment_ids.size, *inner)
        ufunc.at(y, ids[ids >= 0], rows[ids >= 0])
        return y

    body = {
        "__doc__": f"{name} of the elements of each segment; those with a negative id are left out.\n\n"
        f".. math:: y_s = {formula}_{{i: segment\\_ids_i = s}} x_i\n\n"
        "segment_ids: int32, its shape that of the first dimensions of x; num_segments: int32, one number",
        "__module__": __name__,
        "x": Input(_SEGMENTED),
        "segment_ids": Input((int32,)),
        "num_segments": Input((int32,)),
        "y": Output(like="x"),
        "infer": _unsorted,
        "compute": compute,
    }
    return lite_operator(name)(type(name, (), body))


def _limits(dtype: np.dtype) -> np.finfo | np.iinfo:
    return np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)


UNSORTED = (
    ("UNSORTED_SEGMENT_SUM", np.add, r"\sum", lambda dtype: 0),
    ("UNSORTED_SEGMENT_PROD", np.multiply, r"\prod", lambda dtype: 1),
    ("UNSORTED_SEGMENT_MAX", np.fmax, r"\max", lambda dtype: _limits(dtype).min),
    ("UNSORTED_SEGMENT_MIN", np.fmin, r"\min", lambda dtype: _limits(dtype).max),
)

for unsorted_row in UNSORTED:
    unsorted(*unsorted_row)
