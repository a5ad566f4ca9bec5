"""Windows sliding over images and over tensors of any rank, of floats and of integers; REDUCE_WINDOW and DILATE.

Lives here: windows from an operator's options, the reduction of each window along an axis, bands of positions,
`reduce_windows`; the two operators.
Not here: convolutions and pools (convolution.py), which share them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import bool as bool_
from ...core.dtypes import float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64
from ...core.shapes import UNKNOWN
from ...core.specs import TensorSpec
from ...ops import windows as catalogue
from ...ops.slots import Input, Output
from ...ops.windows import Window
from . import types
from .definition import lite_operator
from .parts import SCRATCH, Part
from .shapes import check_one, ints, refuse, same, spec, text


def out_size(size: int | None, kernel: int | None, stride: int, dilation: int, padding: str) -> int | None:
    """Return the number of positions of a window along a dimension; None if unknown. Raises as the catalogue's."""
    return catalogue.out_size(size, kernel, stride, dilation, padding, truncates=True)


def window(size: int, kernel: int, stride: int, dilation: int, padding: str) -> Window:
    """Return the Window of one dimension. Raises as out_size."""
    return catalogue.window(size, kernel, stride, dilation, padding, truncates=True)


def pool_windows(op: Any, x: Any) -> list[Window]:
    """The windows of a pool over x [n, h, w, c]."""
    return windows_of(op, x.shape[1:3], (op.filter_height, op.filter_width))


def windows_of(op: Any, image: Any, kernel: Any) -> list[Window]:
    """The windows over h and w. image, kernel: (h, w) sizes."""
    steps = ((op.stride_h, getattr(op, "dilation_h_factor", 1)), (op.stride_w, getattr(op, "dilation_w_factor", 1)))
    return [window(size, k, s, d, op.padding) for size, k, (s, d) in zip(image, kernel, steps)]


def counts(w: Window, dtype: Any = np.float32) -> np.ndarray:
    """How many elements of the image each position of a window sees."""
    first = np.arange(w.out) * w.stride - w.before
    return (np.minimum(first + w.kernel, w.size) - np.maximum(first, 0)).astype(dtype)


def places(w: Window, i: int) -> tuple[slice, slice] | None:
    """The positions of a window at which element i of the kernel lies on the image, and what it sees there."""
    first = max(0, -((i - w.before) // w.stride))
    last = min(w.out - 1, (w.size - 1 + w.before - i) // w.stride)
    if first > last:
        return None
    pixel = first * w.stride + i - w.before
    return slice(first, last + 1), slice(pixel, pixel + (last - first) * w.stride + 1, w.stride)


def along(x: Any, w: Window, axis: int, combine: np.ufunc, initial: float) -> np.ndarray:
    """Combine what each position of a window sees along one axis; what lies outside the image is left out."""
    before = (slice(None),) * axis
    y = np.full((*x.shape[:axis], w.out, *x.shape[axis + 1 :]), initial, x.dtype)
    for i in range(max(0, w.before - (w.out - 1) * w.stride), min(w.kernel, w.before + w.size)):
        found = places(w, i)
        if found is not None:
            target = y[(*before, found[0])]
            combine(target, x[(*before, found[1])], out=target)
    return y


class Band(NamedTuple):
    """Some images of a batch, or a piece of one. x, y: where that is in the image and in the result, each
    [n, *spatial]; windows: how the kernel slides over it."""

    x: tuple[slice, ...]
    y: tuple[slice, ...]
    windows: list[Window]


class Piece(NamedTuple):
    """Of one dimension: the pixels needed, the pixels made, and the window between them."""

    x: slice
    y: slice
    window: Window


def gathered(w: Window, first: int, last: int) -> Piece:
    """What positions first to last (excluded) of a window see."""
    start, stop = first * w.stride - w.before, (last - 1) * w.stride - w.before + w.extent
    low = min(max(start, 0), w.size)
    high = min(max(stop, low), w.size)
    before = min(max(-start, 0), stop - start)
    after = stop - start - before - (high - low)
    return Piece(
        slice(low, high),
        slice(first, last),
        Window(high - low, w.kernel, w.stride, w.dilation, before, after, last - first),
    )


def spread(w: Window, first: int, last: int) -> Piece:
    """Which positions of a window reach pixels first to last (excluded): x are positions, y the pixels."""
    start, stop = first + w.before, last + w.before  # of the padded image
    low = max(min(-((w.extent - 1 - start) // w.stride), start // w.stride), 0)
    low = min(low, max(w.out - 1, 0))
    high = max(min((stop - 1) // w.stride + 1, w.out), min(low + 1, w.out))
    reach = (high - low - 1) * w.stride + w.extent
    before = start - low * w.stride
    return Piece(
        slice(low, high),
        slice(first, last),
        Window(
            last - first, w.kernel, w.stride, w.dilation, before, max(reach - before - (last - first), 0), high - low
        ),
    )


def bands(
    n: int, windows: Sequence[Window], cost: int, piece: Callable[[Window, int, int], Piece] = gathered
) -> Iterator[Band]:
    """The results of n images in bands for which SCRATCH is enough, as far as single pixels go.

    cost: bytes that a pixel of the result takes. piece: `gathered` for a convolution or a pool, whose result has the
    windows' positions; `spread` for its adjoint, whose result has the pixels.
    """
    sizes = [w.out if piece is gathered else w.size for w in windows]
    room = max(SCRATCH // max(cost, 1), 1)
    image = math.prod(sizes)
    if image == 0 or n == 0:
        return
    tile = list(sizes)
    for axis in sorted(range(len(sizes)), key=lambda a: -sizes[a]):
        pieces = min(-(-math.prod(tile) // room), sizes[axis])
        tile[axis] = -(-sizes[axis] // pieces)
    cuts = [
        [piece(w, i, min(i + step, size)) for i in range(0, size, step)] for w, size, step in zip(windows, sizes, tile)
    ]
    images = max(room // image, 1)
    for first in range(0, n, images):
        batch = slice(first, min(first + images, n))
        for cut in itertools.product(*cuts):
            yield Band((batch, *(c.x for c in cut)), (batch, *(c.y for c in cut)), [c.window for c in cut])


def pooled(op: Any, x: Any, pool: Callable[..., Any], itemsize: int = 8) -> Iterator[Part]:
    """The result of a pool over x [n, h, w, c] in parts. pool: fn(images, rows, columns); itemsize: of what it adds."""
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
