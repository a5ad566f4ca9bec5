"""Computation of results in tiles, so that scratch memory is bounded: parts of a shape, and sliding windows.

Lives here: `tiles` of a shape, `elements` and `rows`, which run a kernel on parts of its operands, `fuse` of a fused
activation; windows from an operator's options, the reduction of windows along one axis, `bands`, which partition the
result of a window operator.
Not here: convolutions (convolution.py) and pools (pooling.py), callers of kernels (registration.py), the bounds of
activations (scalar/formulas.py).

A kernel returns its whole result, or yields parts of it: (where, part), `where` being an index into the result.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType
from ...core.named_tuples import NamedTuple
from ...core.shapes import TensorShape
from ...core.specs import TensorSpec
from ...ops import windows as catalogue
from ...ops.windows import AxisWindow
from ...scalar.formulas import CLAMPS, FUSED_CLAMPS
from .shapes import Size, bounded, refuse, spec

SCRATCH = 1 << 19
"""Bytes of scratch memory that a kernel aims at, besides its inputs and outputs; it takes at most a small multiple."""

BLOCK = 1 << 14
"""Elements at a time of kernels on elements and rows: SCRATCH for four arrays of eight bytes an element."""

Part = tuple[tuple[slice, ...], np.ndarray]


def tiles(shape: Sequence[int], room: int) -> Iterator[tuple[slice, ...]]:
    """Partition an array of this shape into contiguous tiles of at most max(room, 1) elements; yield their indices."""
    inner = math.prod(shape)
    steps = []
    for size in shape:
        inner //= max(size, 1)
        steps.append(min(max(room // max(inner, 1), 1), max(size, 1)))
    if 0 in shape:
        return iter(())
    return itertools.product(
        *([slice(i, min(i + step, size)) for i in range(0, size, step)] for size, step in zip(shape, steps))
    )


def broadcast_slice(array: np.ndarray, where: tuple[slice, ...], inner: int = 0) -> np.ndarray:
    """Return the slice of an operand that a tile of a broadcast result reads. inner: last dimensions kept."""
    last = where[len(where) - array.ndim + inner :]
    index: list[Any] = [slice(None) if size == 1 else part for size, part in zip(array.shape, last)]
    return array[(*index, ...)]  # "...": of a scalar, too, a view


def elements(kernel: Callable[..., Any], arrays: Sequence[np.ndarray], shape: tuple[int, ...]) -> Iterator[Part]:
    """Run an element-wise kernel with broadcasting in parts. shape: of the result."""
    for where in tiles(shape, BLOCK):
        yield where, kernel(*(broadcast_slice(a, where) for a in arrays))


def in_elements(op: Any, x: np.ndarray) -> Iterator[Part]:
    """Compute an element-wise operator in parts, where its quantized kernels are not element-wise."""
    return elements(op.reference, (x,), x.shape)


def rows(kernel: Callable[..., Any], arrays: Sequence[Any], shape: tuple[int, ...]) -> Iterator[Part]:
    """Run a kernel that maps rows of its first input to rows of the result in parts; other inputs are passed unchanged.

    A row is a line along the last dimension; shape: of the result.
    """
    x, *others = arrays
    for where in tiles(shape[:-1], BLOCK // max(x.shape[-1], shape[-1], 1)):
        yield where, kernel(x[where], *others)


def store_parts(parts: Iterable[Part], out: np.ndarray) -> None:
    """Store the parts of a result, whose values are within the range of its type."""
    for where, part in parts:
        index: Any = (*where, ...)  # "...": of a scalar, too, a view
        np.copyto(out[index], part, casting="unsafe")


def merge_parts(parts: Iterable[Part], shape: Sequence[int], dtype: Any) -> np.ndarray:
    """Assemble a result from its parts."""
    result = np.empty(tuple(shape), dtype)
    store_parts(parts, result)
    return result


def fuse(op: Any, y: np.ndarray) -> np.ndarray:
    """Clamp `y` to the bounds of the operator's fused activation; arrays are overwritten."""
    if op.fused_activation_function not in FUSED_CLAMPS:
        return y
    low, high = CLAMPS[op.fused_activation_function]
    if y.dtype.kind == "u":
        low = 0
    if isinstance(y, np.ndarray) and y.dtype.kind == "f":  # five times as fast as `maximum` and `minimum`
        return np.clip(y, low, math.inf if high is None else high, out=y)
    out = y if isinstance(y, np.ndarray) else None
    y = np.maximum(y, y.dtype.type(low), out=out)
    return y if high is None else np.minimum(y, y.dtype.type(high), out=out)


def out_size(size: int | None, kernel: int | None, stride: int, dilation: int, padding: str) -> int | None:
    """Return the number of positions of a window along a dimension; None if unknown. Raises as the catalogue's."""
    return catalogue.out_size(size, kernel, stride, dilation, padding, truncates=True)


def window(size: int, kernel: int, stride: int, dilation: int, padding: str) -> AxisWindow:
    """Return the window of one dimension. Raises as out_size."""
    return catalogue.window(size, kernel, stride, dilation, padding, truncates=True)


def windows_of(op: Any, image: Any, kernel: Any, steps: Sequence[tuple[int, int]] | None = None) -> list[AxisWindow]:
    """Return an operator's windows. image, kernel: sizes. steps: (stride, dilation) of each, by default of h and w."""
    steps = _steps(op) if steps is None else steps
    return [window(size, k, s, d, op.padding) for size, k, (s, d) in zip(image, kernel, steps)]


def _steps(op: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the stride and the dilation along h and w."""
    return (op.stride_h, getattr(op, "dilation_h_factor", 1)), (op.stride_w, getattr(op, "dilation_w_factor", 1))


def check_positive(op: Any, *names: str) -> None:
    """Raise InvalidArgumentError if an attribute is less than 1."""
    for name in names:
        if getattr(op, name) < 1:
            raise refuse(f"{name} must be positive", found=getattr(op, name), wanted="at least 1")


def check_padded(n: int, windows: Sequence[AxisWindow], channels: int, dtype: DType) -> None:
    """Raise ResourceExhaustedError if the padded image under these windows exceeds the limit on activations."""
    padded = [w.before + w.size + w.after for w in windows]
    bounded((n, *padded, channels), dtype, "the padded image" if len(windows) == 2 else "the padded volume")


def sliding_spec(op: Any, x: TensorShape, kernel: Sequence[Size], depth: Size, dtype: DType) -> TensorSpec:
    """Infer the result of sliding a kernel of (h, w) over x [n, h, w, c]; check strides, dilations and padded size."""
    check_positive(op, "stride_w", "stride_h")
    if hasattr(op, "dilation_w_factor"):
        check_positive(op, "dilation_w_factor", "dilation_h_factor")
    n, h, w, c = x.dims or (None,) * 4
    out = [out_size(size, k, s, d, op.padding) for size, k, (s, d) in zip((h, w), kernel, _steps(op))]
    if n is not None and c is not None and None not in (h, w, *kernel):
        check_padded(n, windows_of(op, (h, w), kernel), c, dtype)
    return spec((n, *out, depth), dtype)


def counts(w: AxisWindow, dtype: Any = np.float32) -> np.ndarray:
    """Return the number of image elements under each position of a window."""
    first = np.arange(w.out) * w.stride - w.before
    return (np.minimum(first + w.kernel, w.size) - np.maximum(first, 0)).astype(dtype)


def valid_positions(w: AxisWindow, i: int) -> tuple[slice, slice] | None:
    """Return the positions at which element i of the kernel is inside the image, and the pixels it reads."""
    first = max(0, -((i - w.before) // w.stride))
    last = min(w.out - 1, (w.size - 1 + w.before - i) // w.stride)
    if first > last:
        return None
    pixel = first * w.stride + i - w.before
    return slice(first, last + 1), slice(pixel, pixel + (last - first) * w.stride + 1, w.stride)


def combine_along(x: Any, w: AxisWindow, axis: int, combine: np.ufunc, initial: float) -> np.ndarray:
    """Reduce the elements under each position of a window along one axis, without padding."""
    before = (slice(None),) * axis
    y = np.full((*x.shape[:axis], w.out, *x.shape[axis + 1 :]), initial, x.dtype)
    for i in range(max(0, w.before - (w.out - 1) * w.stride), min(w.kernel, w.before + w.size)):
        positions = valid_positions(w, i)
        if positions is not None:
            target = y[(*before, positions[0])]
            combine(target, x[(*before, positions[1])], out=target)
    return y


class Band(NamedTuple):
    """Some images of a batch, or a piece of one. x, y: where that is in the image and in the result, each
    [n, *spatial]; windows: how the kernel slides over it."""

    x: tuple[slice, ...]
    y: tuple[slice, ...]
    windows: list[AxisWindow]


class Piece(NamedTuple):
    """One dimension of a window: its input pixels, output pixels, and the window itself."""

    x: slice
    y: slice
    window: AxisWindow


def input_piece(w: AxisWindow, first: int, last: int) -> Piece:
    """Return the input piece of positions first to last (exclusive) of a window."""
    start, stop = first * w.stride - w.before, (last - 1) * w.stride - w.before + w.extent
    low = min(max(start, 0), w.size)
    high = min(max(stop, low), w.size)
    before = min(max(-start, 0), stop - start)
    after = stop - start - before - (high - low)
    return Piece(
        slice(low, high),
        slice(first, last),
        AxisWindow(high - low, w.kernel, w.stride, w.dilation, before, after, last - first),
    )


def output_piece(w: AxisWindow, first: int, last: int) -> Piece:
    """Return the positions whose windows overlap pixels first to last (exclusive): x are positions, y the pixels."""
    start, stop = first + w.before, last + w.before  # of the padded image
    low = max(min(-((w.extent - 1 - start) // w.stride), start // w.stride), 0)
    low = min(low, max(w.out - 1, 0))
    high = max(min((stop - 1) // w.stride + 1, w.out), min(low + 1, w.out))
    extent = (high - low - 1) * w.stride + w.extent
    before = start - low * w.stride
    return Piece(
        slice(low, high),
        slice(first, last),
        AxisWindow(
            last - first, w.kernel, w.stride, w.dilation, before, max(extent - before - (last - first), 0), high - low
        ),
    )


def bands(
    n: int, windows: Sequence[AxisWindow], cost: int, piece: Callable[[AxisWindow, int, int], Piece] = input_piece
) -> Iterator[Band]:
    """Partition the results of n images into bands whose scratch memory is at most SCRATCH, or single pixels.

    cost: bytes that a pixel of the result takes. piece: `input_piece` for a convolution or a pool, whose result has the
    windows' positions; `output_piece` for its adjoint, whose result has the pixels.
    """
    sizes = [w.out if piece is input_piece else w.size for w in windows]
    room = max(SCRATCH // max(cost, 1), 1)
    image = math.prod(sizes)
    if image == 0 or n == 0:
        return
    tile = list(sizes)
    for axis in sorted(range(len(sizes)), key=lambda a: -sizes[a]):
        most = max(room // (math.prod(tile) // tile[axis]), 1)  # of this axis, so that others need not be cut
        tile[axis] = -(-sizes[axis] // -(-sizes[axis] // most))
    cuts = [
        [piece(w, i, min(i + step, size)) for i in range(0, size, step)] for w, size, step in zip(windows, sizes, tile)
    ]
    images = max(room // image, 1)
    for first in range(0, n, images):
        batch = slice(first, min(first + images, n))
        for cut in itertools.product(*cuts):
            yield Band((batch, *(c.x for c in cut)), (batch, *(c.y for c in cut)), [c.window for c in cut])
