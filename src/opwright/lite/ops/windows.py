"""Windows over tensors of any rank: REDUCE_WINDOW, DILATE.

Lives here: the two operators, and `reduce_windows`.
Not here: windows over images (sliding.py), pools (convolution.py).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from ...ops.definition import Input, Output
from . import types
from .definition import lite_operator
from .shapes import check_one, ints, refuse, same, spec, text

NUMBERS = (float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64)
REDUCERS: dict[str, Any] = {
    "ADD": np.add,
    "MUL": np.multiply,
    "MINIMUM": np.minimum,
    "MAXIMUM": np.maximum,
    "ALL": np.logical_and,
    "ANY": np.logical_or,
}
MOST_ELEMENTS = 1 << 16  # of one window, each of which is a pass over the output


def windows_over(dims: Any, window: Any, strides: Any, dilations: Any) -> list[int | None]:
    """How many windows there are along each dimension: none where one is larger than that.

    raises InvalidArgumentError for sizes below 1 and windows of too many elements
    """
    out: list[int | None] = []
    if min((*window, *strides, *dilations), default=1) < 1:
        raise refuse(
            "windows, strides and dilations are positive",
            found={"window": [*window], "strides": [*strides], "dilations": [*dilations]},
            wanted="numbers of at least 1",
        )
    if np.prod(window, dtype=np.float64) > MOST_ELEMENTS:
        raise refuse("the window is too large", found=list(window), wanted=f"at most {MOST_ELEMENTS} elements")
    for size, w, s, d in zip(dims, window, strides, dilations):
        out.append(None if size is None else max(0, (size - (w - 1) * d - 1) // s + 1))
    return out


def reduce_windows(x: Any, ufunc: Any, initial: Any, window: Any, strides: Any, dilations: Any) -> np.ndarray:
    """Each window reduced to one element, from `initial`."""
    out: Any = windows_over(x.shape, window, strides, dilations)
    y = np.full(out, initial, x.dtype)
    if 0 in out:
        return y
    for place in itertools.product(*(range(w) for w in window)):
        seen = x[tuple(slice(i * d, i * d + (n - 1) * s + 1, s) for i, d, n, s in zip(place, dilations, out, strides))]
        y = ufunc(y, seen).astype(x.dtype, copy=False)
    return y


def _lists(op: Any, *names: str) -> list[Any]:
    rank = op.x.spec.shape.rank
    for name in names:
        shape = getattr(op, name).spec.shape
        if not same(shape[0], rank):
            raise refuse(f"{name} does not fit the input", found=text(shape), wanted=f"[{rank}]")
    return [ints(getattr(op, name)) for name in names]


@lite_operator("REDUCE_WINDOW")
class ReduceWindow:
    """Each window of a tensor reduced to one element, beginning with init_value.

    .. math:: y_p = \\operatorname{reduce}_q x_{p \\cdot strides + q \\cdot dilations}

    window_shape, window_strides, window_dilations: int64 [rank]. Only windows that lie inside x count.
    """

    x = Input((*NUMBERS, bool_))
    init_value = Input((*NUMBERS, bool_), like="x")
    window_shape = Input((int64,), rank=1)
    window_strides = Input((int64,), rank=1)
    window_dilations = Input((int64,), rank=1)
    y = Output(like="x")
    moves = True

    def reducer(op: Any) -> np.ufunc | None:
        """Return the function of two elements that reduces a window, None for an unknown one."""
        return REDUCERS.get(op.reduce_function)

    def infer(op: Any) -> TensorSpec:
        if op.reducer() is None:
            raise refuse("reduce_function is none", found=op.reduce_function, wanted=", ".join(REDUCERS))
        check_one(op.init_value, "init_value")
        dims = op.x.spec.shape.dims
        lists = _lists(op, "window_shape", "window_strides", "window_dilations")
        if dims is None:
            return TensorSpec(UNKNOWN, op.x.spec.dtype)
        if not 1 <= len(dims) <= 6:
            raise refuse("the rank is out of range", found=text(dims), wanted="1 to 6 dimensions")
        return spec((None,) * len(dims) if None in lists else windows_over(dims, *lists), op.x.spec.dtype)

    def compute(op: Any, x: Any, init_value: Any, window_shape: Any, window_strides: Any, window_dilations: Any) -> Any:
        lists = (window_shape.tolist(), window_strides.tolist(), window_dilations.tolist())
        return reduce_windows(x, op.reducer(), init_value.reshape(-1)[0], *lists)


@lite_operator("DILATE")
class Dilate:
    """Elements moved apart: dilations[i] - 1 times the padding value between two of dimension i.

    dilations: int32 [rank]; padding_value: one number
    """

    x = Input(types.FIXED)
    dilations = Input((int32,), rank=1)
    padding_value = Input(types.FIXED, like="x")
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        dims = op.x.spec.shape.dims
        (found,) = _lists(op, "dilations")
        check_one(op.padding_value, "padding_value")
        if dims is None:
            return TensorSpec(UNKNOWN, op.x.spec.dtype)
        if not dims or 0 in dims:
            raise refuse("there is nothing to move apart", found=text(dims), wanted="no dimension of size 0")
        if found is None:
            return spec((None,) * len(dims), op.x.spec.dtype)
        if min(found) < 1:
            raise refuse("dilations are positive", found=found, wanted="numbers of at least 1")
        return spec((None if d is None else (d - 1) * k + 1 for d, k in zip(dims, found)), op.x.spec.dtype)

    def compute(op: Any, x: Any, dilations: Any, padding_value: Any) -> Any:
        steps = [int(k) for k in dilations]
        y = np.full([(d - 1) * k + 1 for d, k in zip(x.shape, steps)], padding_value.reshape(-1)[0], x.dtype)
        y[tuple(slice(None, None, k) for k in steps)] = x
        return y
