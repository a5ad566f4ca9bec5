"""Fixed-point arithmetic on NumPy arrays: the formulas of `scalar`, their in-place forms for large tensors, lookup
tables of functions of 8 and 16 bits, and exact sums of products.

Lives here: `INT16`, `INT32`, `requantizer` and its variants, building and reading of tables; weights as floats and sums
over windows and rows, for convolutions and FULLY_CONNECTED of quantized tensors.
Not here: the formulas (opwright/scalar), the rules that use them (activation.py, images.py, matmul.py and others),
products of floats (ops/array_convolution.py).

The sums are integers, and floats represent them exactly if their mantissa has room for the greatest sum that the
weights allow; so products of matrices of floats compute them. Images become floats a band at a time and weights a block
of outputs at a time: the integers stay in place, and additional memory is bounded (`SCRATCH`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ....ops.array_convolution import convolve_by_input, convolve_depthwise, im2col
from ....scalar import numpy_namespace
from ....scalar.fixed_point import MOST_LEFT, FixedPoint, FixedPointInt32, short_multiplier
from ....scalar.fixed_point import array_round_away as round_away
from ..tiling import BLOCK, SCRATCH, Part, bands, output_piece, tiles, windows_of
from .operand import Operand

INT16, INT32 = FixedPoint(numpy_namespace, 16), FixedPointInt32(numpy_namespace)
"""On int64 that hold int16, int32."""


def rounded_quotient(a: np.ndarray, n: np.ndarray | int) -> np.ndarray:
    """Divide integers, n > 0, rounding half away from zero."""
    result: np.ndarray = np.sign(a) * ((np.abs(a) + (n >> 1)) // n)
    return result


def exact_float(magnitude: int) -> type[np.floating]:
    """Return the narrowest float dtype in which integers up to this magnitude are exact."""
    return np.float32 if magnitude <= 1 << 24 else np.float64


def finishing(m: Any, e: Any, bias: Any, zero_point: int, low: int, high: int) -> Callable[[Any], Any]:
    """Return a function that computes clamp(rescale(x + bias, m, e) + zero_point) in place on int64 [..., n].

    m, e, bias: numbers or vectors of n. The rounding offsets of `rescale` are precomputed.
    """
    left, right = np.minimum(np.maximum(e, 0), MOST_LEFT), np.maximum(-e, 0)
    shifts = left.any()
    offset = (1 << 30) + (0 if shifts else np.asarray(bias, np.int64) * m)
    half = (np.left_shift(1, right) >> 1) + np.left_shift(zero_point, right)
    some, every = (right > 0).any(), (right > 0).all()

    def finish(x: np.ndarray) -> np.ndarray:
        if shifts:
            x += bias
            x = INT32.wrapped(np.left_shift(x, left))
        x *= m
        x += offset
        x >>= 31
        if some:
            x += x >> 63 if every else np.where(right > 0, x >> 63, 0)
        x += half
        x >>= right
        return np.clip(x, low, high, out=x)

    return finish


def finishing_wide(m: Any, e: Any, bias: Any, zero_point: int, low: int, high: int) -> Callable[[Any], Any]:
    """Return the same function with `rescale_wide`."""
    short = short_multiplier(m)
    return lambda x: np.clip(INT32.rescale_wide(x + bias, short, e) + zero_point, low, high)


def by_rows(finish: Function, sums: np.ndarray, dtype: Any) -> np.ndarray:
    """Apply `finish` to blocks of rows of an array [..., n]; results, which fit, are stored as `dtype`."""
    rows = sums.reshape(-1, sums.shape[-1])
    if rows.size <= BLOCK:
        result: np.ndarray = finish(rows).reshape(sums.shape)
        return result
    out, step = np.empty(rows.shape, dtype), max(1, BLOCK // sums.shape[-1])
    for first in range(0, len(rows), step):
        np.copyto(out[first : first + step], finish(rows[first : first + step]), casting="unsafe")
    return out.reshape(sums.shape)


Function = Callable[[Any], Any]
_f = np.float32


def byte_table(f: Function, x: Operand, y: Operand) -> np.ndarray:
    """Tabulate f, a function on float32, from the 256 integers of x, ordered by their bytes, to those of y."""
    q = np.arange(x.low, x.high + 1)
    real = x.scale * (q - x.zero_point).astype(_f)
    t = round_away(f(real) * (_f(1) / y.scale)).astype(np.float64)
    entries = y.saturated(np.nan_to_num(t, posinf=2.0**40, neginf=-(2.0**40)))
    return np.roll(entries, x.low).astype(np.int16)


def look_up(table: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Return the table's entry for each 8-bit integer."""
    return table[q.view(np.uint8)]


def tabulated(f: Function, x: Operand) -> Function:
    """Return an element-wise function of x's integers, by table lookup if they have 8 bits."""
    if x.type not in BYTES:
        return f
    table = np.asarray(f(np.arange(256, dtype=np.uint8).view(BYTES[x.type])))
    return lambda q: look_up(table, q)


BYTES = {"INT8": np.int8, "UINT8": np.uint8}


def interpolated(table: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Interpolate between the two nearest entries for each int16."""
    return INT16.interpolated(table, v.astype(np.int64, copy=False))


Image = Callable[[tuple[slice, ...], Any], np.ndarray]
"""From an index into the image, [n, h, w], and a dtype: the integers there less their zero point, in that dtype."""


class Weights:
    """The filter as floats, centred, some of its outputs at a time: the integers stay where they are in the file.

    A constant filter's type of sums is found once. axis: of the outputs in the filter; sums go over all others.
    """

    def __init__(self, filter: Operand, reach: int, axis: int) -> None:
        self.filter, self.reach, self.axis = filter, reach, axis
        self.dtype = None if filter.constant is None else self._sum_dtype(filter.constant)

    def _sum_dtype(self, q: np.ndarray) -> type[np.floating]:
        if not q.size:
            return np.float32
        magnitude = max(self.filter.high, -self.filter.low) * (q.size // q.shape[self.axis])
        if exact_float(magnitude * self.reach) is np.float32 and not self.filter.zero_points.any():
            return np.float32  # whatever the weights are
        axes = tuple(i for i in range(q.ndim) if i != self.axis)
        magnitude = max(
            int(np.abs(self.filter.centred(q[part], np.int16)).sum(axes, dtype=np.int64).max())  # 8 bits at most
            for part in self._parts(q, 2)
        )
        return exact_float(magnitude * self.reach)

    def _parts(self, q: np.ndarray, itemsize: int) -> list[tuple[slice, ...]]:
        outputs = q.shape[self.axis]
        step = max(SCRATCH * outputs // max(q.size * itemsize, 1), 1)
        before = (slice(None),) * self.axis
        return [(*before, slice(i, min(i + step, outputs))) for i in range(0, outputs, step)]

    def dtype_for(self, q: np.ndarray) -> type[np.floating]:
        """Return the float dtype in which sums are exact."""
        return self._sum_dtype(q) if self.dtype is None else self.dtype

    def whole(self, q: np.ndarray) -> np.ndarray:
        """Convert the whole filter to floats in which sums are exact."""
        return self.filter.centred(q, self.dtype_for(q))

    def blocks(self, q: np.ndarray, dtype: Any) -> Blocks:
        """Return blocks of outputs with their part of the filter as floats; a single block is converted once."""
        parts = self._parts(q, np.dtype(dtype).itemsize)
        if len(parts) == 1:
            return [(parts[0][-1], self.filter.centred(q, dtype))]
        return _RepeatableBlocks(lambda: ((part[-1], self.filter.centred(q[part], dtype)) for part in parts))


Finish = Callable[[np.ndarray, tuple[slice, ...], slice], np.ndarray]
"""From exact sums, where in the result they belong and of which outputs they are, to what stands there."""

Blocks = Iterable[tuple[slice, np.ndarray]]


class _RepeatableBlocks:
    """An iterable that converts its blocks in each iteration, so that only one exists at a time."""

    def __init__(self, iterate: Callable[[], Iterator[tuple[slice, np.ndarray]]]) -> None:
        self.iterate = iterate

    def __iter__(self) -> Iterator[tuple[slice, np.ndarray]]:
        return self.iterate()


def convolved(
    op: Any, shape: Sequence[int], f: np.ndarray, weights: Weights, image: Image, finish: Finish
) -> Iterator[Part]:
    """Compute the sums of CONV_2D, in groups where the filter has fewer channels.

    shape: of the image, [n, h, w, c]; f: [o, kh, kw, c / groups]
    """
    windows = windows_of(op, shape[1:3], f.shape[1:3])
    outputs, groups, depth = len(f), shape[3] // f.shape[3], math.prod(f.shape[1:])
    dtype = weights.dtype_for(f)
    blocks: Blocks = weights.blocks(f, dtype) if groups == 1 else [(slice(0, outputs), weights.whole(f))]
    elements = depth * groups + 3 * outputs + math.prod(w.stride for w in windows) * shape[3]
    for band in bands(shape[0], windows, np.dtype(dtype).itemsize * elements):
        sizes = [s.stop - s.start for s in band.y]
        for _, columns in im2col(image(band.x, dtype), band.windows, groups):
            for block, w in blocks:
                sums = np.matmul(columns, w.reshape(groups, -1, depth).transpose(0, 2, 1)).transpose(1, 0, 2)
                part = finish(sums.reshape(*sizes, -1), band.y, block)
                del w, sums  # before the next are made
                yield (*band.y, block), part


def convolved_by_channel(
    op: Any, shape: Sequence[int], f: np.ndarray, weights: Weights, image: Image, finish: Finish
) -> Iterator[Part]:
    """Compute the sums of DEPTHWISE_CONV_2D. f: [1, kh, kw, c * multiplier]"""
    windows = windows_of(op, shape[1:3], f.shape[1:3])
    w = weights.whole(f)
    w = w.reshape(*f.shape[1:3], shape[3], -1 if shape[3] else 1)
    strides = math.prod(v.stride for v in windows)
    for band in bands(shape[0], windows, w.itemsize * (3 * f.shape[3] + 2 * strides * shape[3])):
        yield band.y, finish(convolve_depthwise(image(band.x, w.dtype.type), w, band.windows), band.y, slice(None))


def transposed(op: Any, sizes: Any, f: np.ndarray, weights: Weights, image: Image, finish: Finish) -> Iterator[Part]:
    """Compute the sums of TRANSPOSE_CONV. sizes: of the result; f: [o, kh, kw, c]"""
    n, h, w, _ = map(int, sizes)
    windows = windows_of(op, (h, w), f.shape[1:3])
    for block, w_block in weights.blocks(f, weights.dtype_for(f)):
        outputs = len(w_block)
        for band in bands(n, windows, w_block.itemsize * (2 * outputs + f.shape[3]), output_piece):
            x = image(band.x, w_block.dtype.type)
            sums = convolve_by_input(x, w_block.transpose(1, 2, 0, 3), (len(x), 0, 0, outputs), band.windows)
            yield (*band.y, block), finish(sums, band.y, block)
            del x, sums


def multiplied(shape: Sequence[int], f: np.ndarray, weights: Weights, rows: Image, finish: Finish) -> Iterator[Part]:
    """Compute the sums of rows [..., k] with f [n, k]. shape: of the result, [..., n]

    A panel of rows becomes floats once, which takes as long as 20 products of a row, and then meets all blocks.
    """
    dtype, depth = weights.dtype_for(f), f.shape[1]
    itemsize = np.dtype(dtype).itemsize
    blocks = weights.blocks(f, dtype)
    for panel in tiles(shape[:-1], 2 * SCRATCH // (itemsize * depth)):
        sizes = [part.stop - part.start for part in panel]
        x = np.empty((*sizes, depth), dtype)
        for where in tiles(sizes, SCRATCH // (4 * itemsize * depth)):
            x[where] = rows(_inside(panel, where), dtype)
        for block, w in blocks:
            for where in tiles(sizes, SCRATCH // (itemsize * (depth + 4 * len(w)))):
                part = x[where]
                sums = np.matmul(part.reshape(-1, depth), w.T).reshape(*part.shape[:-1], len(w))
                whole = _inside(panel, where)
                yield (*whole, block), finish(sums, whole, block)
                del part, sums  # a part is a view, which would keep the panel while the next one is made
            del w  # before the next is made
        del x


def _inside(panel: tuple[slice, ...], where: tuple[slice, ...]) -> tuple[slice, ...]:
    """Return a part of a panel as an index into the whole."""
    return tuple(slice(p.start + w.start, p.start + w.stop) for p, w in zip(panel, where))
