"""Reductions of windows: AVERAGE_POOL_2D, MAX_POOL_2D, L2_POOL_2D of images; REDUCE_WINDOW and DILATE of any rank.

Lives here: these operators, and `reduce_windows`, which STABLEHLO_REDUCE_WINDOW shares.
Not here: windows (tiling.py), pools of integers (quantized/images.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from ...ops.slots import Input, Output
from ...ops.windows import AxisWindow
from . import types
from .definition import LiteDefinition, lite_operator
from .shapes import check_one, ints, refuse, same, spec, text
from .tiling import Part, bands, check_positive, combine_along, counts, fuse, merge_parts, sliding_spec, windows_of

_F = (float32,)


def _pooled_spec(op: Any) -> TensorSpec:
    check_positive(op, "filter_width", "filter_height")
    x = op.x.spec.shape
    return sliding_spec(op, x, (op.filter_height, op.filter_width), x[3] if x.rank else None, op.x.spec.dtype)


def _pool(op: Any, x: np.ndarray) -> np.ndarray:
    return merge_parts(op.parts(x), (len(x), *(w.out for w in pool_windows(op, x)), x.shape[3]), x.dtype)


def _mean(x: np.ndarray, rows: AxisWindow, columns: AxisWindow) -> np.ndarray:
    total = combine_along(combine_along(x, rows, 1, np.add, 0.0), columns, 2, np.add, 0.0)
    total /= np.multiply.outer(counts(rows), counts(columns))[..., None]
    return total


def _greatest(x: np.ndarray, rows: AxisWindow, columns: AxisWindow) -> np.ndarray:
    return combine_along(combine_along(x, rows, 1, np.fmax, -np.inf), columns, 2, np.fmax, -np.inf)


def _root_mean_square(x: np.ndarray, rows: AxisWindow, columns: AxisWindow) -> np.ndarray:
    result: np.ndarray = np.sqrt(_mean(np.square(x), rows, columns))
    return result


@lite_operator("AVERAGE_POOL_2D")
class AveragePool2DOp(LiteDefinition):
    """The mean over each window; padding does not count. float16 is added up in float32.

    .. math:: y_{npqc} = act(\\operatorname{mean}_{ij} x_{n, p s + i, q s + j, c})
    """

    x = Input((float32, float16), rank=4)
    y = Output(like="x")
    quantized = "images.average"
    infer = _pooled_spec
    compute = _pool

    def parts(op: Any, x: np.ndarray) -> Iterator[Part]:
        return pooled(op, x, lambda seen, *windows: fuse(op, _mean(seen.astype(np.float32, copy=False), *windows)))


@lite_operator("MAX_POOL_2D")
class MaxPool2DOp(LiteDefinition):
    """The greatest of each window, NaN aside.

    .. math:: y_{npqc} = act(\\max_{ij} x_{n, p s + i, q s + j, c})
    """

    x = Input(_F, rank=4)
    y = Output(like="x")
    quantized = "images.maximum"
    infer = _pooled_spec
    compute = _pool

    def parts(op: Any, x: np.ndarray) -> Iterator[Part]:
        return pooled(op, x, lambda *seen: fuse(op, _greatest(*seen)))


@lite_operator("L2_POOL_2D")
class L2Pool2DOp(LiteDefinition):
    """The root of the mean of the squares in each window; padding does not count.

    .. math:: y_{npqc} = act(\\sqrt{\\operatorname{mean}_{ij} x_{n, p s + i, q s + j, c}^2})
    """

    x = Input(_F, rank=4)
    y = Output(like="x")
    infer = _pooled_spec
    compute = _pool

    def parts(op: Any, x: np.ndarray) -> Iterator[Part]:
        return pooled(op, x, lambda *seen: fuse(op, _root_mean_square(*seen)))


def pool_windows(op: Any, x: Any) -> list[AxisWindow]:
    """Return the windows of a pool over x [n, h, w, c]."""
    return windows_of(op, x.shape[1:3], (op.filter_height, op.filter_width))


def pooled(op: Any, x: Any, pool: Callable[..., Any], itemsize: int = 8) -> Iterator[Part]:
    """Compute a pool over x [n, h, w, c] in parts. pool: fn(images, rows, columns); itemsize: of its accumulator."""
    windows = pool_windows(op, x)
    strides = math.prod(w.stride for w in windows)
    for band in bands(len(x), windows, itemsize * x.shape[3] * (2 + strides)):
        yield band.y, pool(x[band.x], *band.windows)


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
    """Return the number of windows along each dimension.

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
    """Reduce each window to one element, starting with `initial`."""
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
class ReduceWindowOp(LiteDefinition):
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

    def compute(
        op: Any,
        x: np.ndarray,
        init_value: np.ndarray,
        window_shape: np.ndarray,
        window_strides: np.ndarray,
        window_dilations: np.ndarray,
    ) -> np.ndarray:
        lists = (window_shape.tolist(), window_strides.tolist(), window_dilations.tolist())
        return reduce_windows(x, op.reducer(), init_value.reshape(-1)[0], *lists)


@lite_operator("DILATE")
class DilateOp(LiteDefinition):
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
        (factors,) = _lists(op, "dilations")
        check_one(op.padding_value, "padding_value")
        if dims is None:
            return TensorSpec(UNKNOWN, op.x.spec.dtype)
        if not dims or 0 in dims:
            raise refuse("there is nothing to move apart", found=text(dims), wanted="no dimension of size 0")
        if factors is None:
            return spec((None,) * len(dims), op.x.spec.dtype)
        if min(factors) < 1:
            raise refuse("dilations are positive", found=factors, wanted="numbers of at least 1")
        return spec((None if d is None else (d - 1) * k + 1 for d, k in zip(dims, factors)), op.x.spec.dtype)

    def compute(op: Any, x: np.ndarray, dilations: np.ndarray, padding_value: np.ndarray) -> np.ndarray:
        steps = [int(k) for k in dilations]
        y = np.full([(d - 1) * k + 1 for d, k in zip(x.shape, steps)], padding_value.reshape(-1)[0], x.dtype)
        y[tuple(slice(None, None, k) for k in steps)] = x
        return y
