"""Reductions over axes, and searches along one: SUM to REDUCE_ALL, ARG_MAX, ARG_MIN, TOPK_V2, CUMSUM.

Lives here: the table of reductions, and the operators that look along one axis.
Not here: normalisations (activation.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import DType, float16, float32, int8, int16, int32, int64, of_numpy, uint8
from ...core.dtypes import bool as bool_
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from ...ops.array_functions import reduced_dims, scanned, sort_order
from ...ops.slots import Input, Output
from . import types
from .definition import EnumAttr, LiteOperator, lite_operator
from .shapes import axis_in, check_one, ints, refuse, spec


def axes_of(found: list[int], rank: int) -> tuple[int, ...]:
    """Axes counted from the front, each once; a second naming of one is ignored, as the official run time has it.

    A scalar may be reduced over 0 and -1: over nothing, then.
    """
    if rank == 0:
        found = [a for a in found if a not in (0, -1)]
    return tuple(sorted({axis_in(a, rank) for a in found}))


def _reduced(op: Any) -> TensorSpec:
    shape, dtype, found = op.x.spec.shape, op.x.spec.dtype, ints(op.axes)
    if op.axes.spec.shape.rank not in (None, 0, 1):
        raise refuse("axes is no list", found=op.axes.spec.short(), wanted="rank 0 or 1")
    if shape.dims is None:
        return TensorSpec(UNKNOWN, dtype)
    if found is None:
        return spec((None,) * shape.rank if op.keep_dims else None, dtype)
    axes = axes_of(found, shape.rank)
    return spec(reduced_dims(shape.dims, axes, op.keep_dims), dtype)


def reduction(name: str, reduce: Any, formula: str, dtypes: tuple[DType, ...]) -> LiteOperator:
    """Define a reduction. reduce: function of an array, a tuple of axes and keepdims."""

    def computed(op: Any, x: Any, axes: Any) -> Any:
        found = axes_of(axes.reshape(-1).tolist(), x.ndim)
        return reduce(x, found, op.keep_dims) if found or x.ndim else np.array(x)

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


def _maximum(x: Any, axes: tuple[int, ...], keep: Any) -> Any:
    """The greatest, NaN left out; of nothing the least number of the type that is finite."""
    least: Any = -np.inf if x.size and x.dtype.kind == "f" else of_numpy(x.dtype).min
    return np.fmax.reduce(x, axes, keepdims=keep, initial=least)


def _minimum(x: Any, axes: tuple[int, ...], keep: Any) -> Any:
    """The least, NaN left out; of nothing the greatest number of the type that is finite."""
    greatest: Any = np.inf if x.size and x.dtype.kind == "f" else of_numpy(x.dtype).max
    return np.fmin.reduce(x, axes, keepdims=keep, initial=greatest)


def _sum(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    """The sum, of 16-bit floats in float32; of truth values, whether one is true."""
    if x.dtype.kind == "b":
        return x.any(axes, keepdims=keep)
    if x.dtype.itemsize == 2:
        return x.sum(axes, keepdims=keep, dtype=np.float32).astype(x.dtype)
    return x.sum(axes, keepdims=keep, dtype=x.dtype)


def _mean(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    """The mean; of integers, truncated toward zero, and 0 where there are none."""
    count = int(np.prod([x.shape[a] for a in axes]))
    if x.dtype.kind == "f":
        total = x.sum(axes, keepdims=keep, dtype=np.float32)
        return (total / np.float32(count)).astype(x.dtype, copy=False)
    total = x.sum(axes, keepdims=keep, dtype=np.int64)
    return (np.sign(total) * (np.abs(total) // max(count, 1))).astype(x.dtype)


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

# On quantised tensors: a rule, or the raw integers.
SETTINGS: dict[str, dict[str, Any]] = {
    "SUM": {"quantized": "reduction.sum"},
    "MEAN": {"quantized": "reduction.mean"},
    "REDUCE_PROD": {"quantized": "reduction.prod"},
    "REDUCE_MAX": {"quantized": "reduction.maximum"},
    "REDUCE_MIN": {"quantized": "reduction.minimum"},
}

for row in REDUCTIONS:
    reduction(*row)


def _single(operand: Any, what: str) -> int | None:
    """The one integer in an operand, None where it is not known. Raises InvalidArgumentError for any other count."""
    check_one(operand, what)
    found = ints(operand)
    return None if found is None else found[0]


def _without(op: Any) -> TensorSpec:
    shape, axis = op.x.spec.shape, _single(op.axis, "axis")
    if op.output_type not in ("INT32", "INT64"):
        raise refuse("output_type is not an index type", found=op.output_type, wanted="INT32 or INT64")
    dtype = types.dtype_of(op.output_type)
    if shape.dims is None:
        return TensorSpec(UNKNOWN, dtype)
    if axis is None:
        return spec((None,) * max(len(shape.dims) - 1, 0), dtype)
    axis = axis_in(axis, len(shape.dims))
    if shape.dims[axis] == 0:
        raise refuse("the axis to search is empty", found=op.x.spec.short(), wanted="at least one element along it")
    return spec(reduced_dims(shape.dims, (axis,), False), dtype)


def _search(name: str, find: Any, word: str, of_two: np.ufunc) -> LiteOperator:
    """of_two: what is searched, as a ufunc that leaves out NaN."""

    def compute(op: Any, x: Any, axis: Any) -> Any:
        along = int(axis.reshape(-1)[0])
        if x.dtype.kind == "f" and np.isnan(x.max(initial=-np.inf)):
            x, first = x == of_two.reduce(x, along, keepdims=True), np.argmax
        else:
            first = find
        return first(x, axis=along).astype(types.dtype_of(op.output_type).np)

    body = {
        "__doc__": f"The first index of the {word} element along an axis.\n\n.. math:: y = \\arg\\{word[:3]} x",
        "__module__": __name__,
        "x": Input((float32, int32, bool_, int8, uint8)),
        "axis": Input((int32, int64)),
        "y": Output(dtype=int32),
        "infer": _without,
        "compute": compute,
        "moves": True,
    }
    return lite_operator(name)(type(name, (), body))


ArgMax = _search("ARG_MAX", np.argmax, "maximal", np.fmax)
ArgMin = _search("ARG_MIN", np.argmin, "minimal", np.fmin)


LIMIT_OF_INT16 = 2**15 - 1


@lite_operator("TOPK_V2", typed_by="indices_type")
class TopK:
    """The k greatest along the last dimension, greatest first, and their indices; of equals the first comes first.

    indices: int32, or int16 where the file has that type
    """

    x = Input((float32, int32, int64, int8, uint8, int16))
    k = Input((int32, int16))
    values = Output(like="x")
    indices = Output(dtype=int32)
    moves = True
    indices_type = EnumAttr("TensorType", default=2)
    typed_output = 1

    def infer(op: Any) -> Any:
        shape, k, places = op.x.spec.shape, _single(op.k, "k"), types.dtype_of(op.indices_type)
        if places not in (int32, int16):
            raise refuse("indices of this type are not supported", found=places.name, wanted="int32 or int16")
        if shape.dims is None:
            return TensorSpec(UNKNOWN, op.x.spec.dtype), TensorSpec(UNKNOWN, places)
        if not shape.dims:
            raise refuse("the input is a scalar", wanted="at least one dimension")
        last = shape.dims[-1]
        if places is int16 and last is not None and last > LIMIT_OF_INT16:
            raise refuse(
                "TopK row size exceeds output index type range",
                found=last,
                wanted=f"at most {LIMIT_OF_INT16} for int16",
            )
        if k is not None and (k < 0 or (last is not None and k > last)):
            raise refuse(
                "TopK k is higher than the internal dimension.",
                found={"k": k, "last dimension": last},
                wanted="k between 0 and the last dimension",
            )
        return spec((*shape.dims[:-1], k), op.x.spec.dtype), spec((*shape.dims[:-1], k), places)

    def compute(op: Any, x: Any, k: Any) -> Any:
        order = sort_order(x, descending=True)[..., : int(k.reshape(-1)[0])]
        return np.take_along_axis(x, order, -1), order.astype(types.dtype_of(op.indices_type).np)


@lite_operator("CUMSUM")
class Cumsum:
    """Running sums along an axis. exclusive: without the element itself; reverse: from the end.

    .. math:: y_i = \\sum_{j \\le i} x_j
    """

    x = Input(_NUMBERS)
    axis = Input((int32,))
    y = Output(like="x")

    def infer(op: Any) -> TensorSpec:
        axis, shape = _single(op.axis, "axis"), op.x.spec.shape
        if axis is not None and shape.rank is not None:
            axis_in(axis, shape.rank)
        return TensorSpec(shape, op.x.spec.dtype)

    def compute(op: Any, x: Any, axis: Any) -> Any:
        return scanned(np.add, x, int(axis.reshape(-1)[0]), 0, op.exclusive, op.reverse)
