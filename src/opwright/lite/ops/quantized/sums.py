"""Exact sums of products of integers: what convolutions and FULLY_CONNECTED of quantized tensors add up.

Lives here: weights as floats, sums over windows and rows.
Not here: what becomes of the sums (images.py, matmul.py, hybrid.py), products of floats (ops/conv_arrays.py).

The sums are integers, and floats hold them exactly if their mantissa holds the greatest that the weights allow; so
products of matrices of floats give them. Images become floats a band at a time and weights a block of outputs at a
time: the integers stay in place, and additional memory is bounded (`SCRATCH`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ....ops import conv_arrays
from ..parts import SCRATCH, Part, tiles
from ..windows import bands, output_piece, windows_of
from .fixed_point import exact_float
from .operand import Operand

Image = Callable[[tuple[slice, ...], Any], np.ndarray]
"""From an index into the image, [n, h, w], and a dtype: the integers there less their zero point, in that dtype."""


class Weights:
    """The filter as floats, centred, some of its outputs at a time: the integers stay where they are in the file.

    A constant filter's type of sums is found once. axis: of the outputs in the filter; sums go over all others.
    """

    def __init__(self, filter: Operand, reach: int, axis: int) -> None:
        self.filter, self.reach, self.axis = filter, reach, axis
        self.dtype = None if filter.constant is None else self._sum_dtype(filter.constant)

    def _sum_dtype(self, q: np.ndarray) -> Any:
        if not q.size:
            return np.float32
        magnitude = max(self.filter.high, -self.filter.low) * (q.size // q.shape[self.axis])
        if exact_float(magnitude * self.reach) is np.float32 and not self.filter.zero_points.any():
            return np.float32  # whatever the weights are
        axes = tuple(i for i in range(q.ndim) if i != self.axis)
        magnitude = max(
            int(np.abs(self.filter.centred(q[part], np.int32)).sum(axes, dtype=np.int64).max())
            for part in self._parts(q, 4)
        )
        return exact_float(magnitude * self.reach)

    def _parts(self, q: np.ndarray, itemsize: int) -> list[tuple[slice, ...]]:
        outputs = q.shape[self.axis]
        step = max(SCRATCH * outputs // max(q.size * itemsize, 1), 1)
        before = (slice(None),) * self.axis
        return [(*before, slice(i, min(i + step, outputs))) for i in range(0, outputs, step)]

    def dtype_for(self, q: np.ndarray) -> Any:
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
    """CONV_2D, in groups where the filter has fewer channels.

    shape: of the image, [n, h, w, c]; f: [o, kh, kw, c / groups]
    """
    windows = windows_of(op, shape[1:3], f.shape[1:3])
    outputs, groups, depth = len(f), shape[3] // f.shape[3], math.prod(f.shape[1:])
    dtype = weights.dtype_for(f)
    blocks: Blocks = weights.blocks(f, dtype) if groups == 1 else [(slice(0, outputs), weights.whole(f))]
    elements = depth * groups + 3 * outputs + math.prod(w.stride for w in windows) * shape[3]
    for band in bands(shape[0], windows, np.dtype(dtype).itemsize * elements):
        sizes = [s.stop - s.start for s in band.y]
        for _, columns in conv_arrays.columns(image(band.x, dtype), band.windows, groups):
            for block, w in blocks:
                sums = np.matmul(columns, w.reshape(groups, -1, depth).transpose(0, 2, 1)).transpose(1, 0, 2)
                part = finish(sums.reshape(*sizes, -1), band.y, block)
                del w, sums  # before the next are made
                yield (*band.y, block), part


def convolved_by_channel(
    op: Any, shape: Sequence[int], f: np.ndarray, weights: Weights, image: Image, finish: Finish
) -> Iterator[Part]:
    """DEPTHWISE_CONV_2D. f: [1, kh, kw, c * multiplier]"""
    windows = windows_of(op, shape[1:3], f.shape[1:3])
    w = weights.whole(f)
    w = w.reshape(*f.shape[1:3], shape[3], -1 if shape[3] else 1)
    strides = math.prod(v.stride for v in windows)
    for band in bands(shape[0], windows, w.itemsize * (3 * f.shape[3] + 2 * strides * shape[3])):
        yield band.y, finish(conv_arrays.depthwise(image(band.x, w.dtype.type), w, band.windows), band.y, slice(None))


def transposed(op: Any, sizes: Any, f: np.ndarray, weights: Weights, image: Image, finish: Finish) -> Iterator[Part]:
    """TRANSPOSE_CONV. sizes: of the result; f: [o, kh, kw, c]"""
    n, h, w, _ = map(int, sizes)
    windows = windows_of(op, (h, w), f.shape[1:3])
    for block, w_block in weights.blocks(f, weights.dtype_for(f)):
        outputs = len(w_block)
        for band in bands(n, windows, w_block.itemsize * (2 * outputs + f.shape[3]), output_piece):
            x = image(band.x, w_block.dtype.type)
            sums = conv_arrays.by_input(x, w_block.transpose(1, 2, 0, 3), (len(x), 0, 0, outputs), band.windows)
            yield (*band.y, block), finish(sums, band.y, block)
            del x, sums


def multiplied(shape: Sequence[int], f: np.ndarray, weights: Weights, rows: Image, finish: Finish) -> Iterator[Part]:
    """FULLY_CONNECTED of rows [..., k] with f [n, k]. shape: of the result, [..., n]"""
    for block, w in weights.blocks(f, weights.dtype_for(f)):
        for where in tiles(shape[:-1], SCRATCH // (w.itemsize * (w.shape[1] + 4 * len(w)))):
            x = rows(where, w.dtype.type)
            sums = np.matmul(x.reshape(-1, w.shape[1]), w.T).reshape(*x.shape[:-1], len(w))
            yield (*where, block), finish(sums, where, block)
            del x, sums
        del w  # before the next is made
