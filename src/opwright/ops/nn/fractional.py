"""Fractional pooling: windows whose sizes differ by one, drawn at random.

Lives here: `fractional_max_pool`, `fractional_avg_pool`. Not here: pools of one window size (pooling.py).
Source: Graham, Fractional Max-Pooling, 2015. Composed of gathers and reductions, which have gradients.
"""

from __future__ import annotations

import math as scalar_math
from typing import Any

from ...core.dtypes import float64, int64
from ...core.errors import InvalidArgumentError
from ...core.named_tuples import NamedTuple
from .. import array, dispatch, math
from ..random.functions import shuffle, uniform
from ..tensor import Tensor


class FractionalPool(NamedTuple):
    """The pooled image, and where its rows and columns begin in the input; the last number is the size."""

    output: Tensor
    row_pooling_sequence: Tensor
    col_pooling_sequence: Tensor


def _ratios(pooling_ratio: Any, op: str) -> tuple[float, float]:
    values = [pooling_ratio] if isinstance(pooling_ratio, (int, float)) else list(pooling_ratio)
    if len(values) == 4 and values[0] == values[3] == 1:
        values = values[1:3]
    if len(values) not in (1, 2) or min(values) < 1:
        raise InvalidArgumentError(
            op=op, what="pooling_ratio is a number of 1 or more, two of them, or [1, rows, columns, 1]", found=values
        )
    return float(values[0]), float(values[-1])


def _sequence(size: int, count: int, pseudo_random: bool, seed: Any) -> Tensor:
    """Return where `count` windows of `size` pixels begin, and the size: their widths are size // count, or 1 more."""
    least = size // count
    if pseudo_random:
        share = size / count
        limit = min((least + 2) / share - 1, (size + 1 - least) / share - (count - 1))
        u = uniform([], dtype=float64, seed=seed) * limit
        inner = math.ceil(share * (array.range(1, count, dtype=float64) + u)) - 1.0
        starts = array.concat([[0], array.cast(inner, int64), [size]], 0)
        return array.ensure_shape(starts, [count + 1])
    widths = [least] * (count - size % count) + [least + 1] * (size % count)
    return math.cumsum(array.concat([array.zeros([1], int64), shuffle(array.cast(widths, int64), seed=seed)], 0))


def _pooled(x: Any, starts: Any, axis: int, width: int, overlapping: bool, largest: bool) -> Any:
    """Return the maximum or the mean over the windows of an axis. width: of the largest window."""
    ends = math.minimum(starts[1:] + int(overlapping), starts[-1])
    places = array.expand_dims(starts[:-1], 1) + array.range(width, dtype=int64)
    inside = places < array.expand_dims(ends, 1)
    # The last pixel of a short window is read again, which does not change its maximum.
    windows = array.gather(x, math.minimum(places, array.expand_dims(ends, 1) - 1), axis=axis)
    if largest:
        return math.reduce_max(windows, axis + 1)
    shape = [1] * (x.shape.rank + 1)
    shape[axis], shape[axis + 1] = -1, width
    weights = array.reshape(array.cast(inside, x.dtype), shape)
    return math.reduce_sum(windows * weights, axis + 1) / math.reduce_sum(weights, axis + 1)


def _fractional(
    op: str, value: Any, pooling_ratio: Any, pseudo_random: bool, overlapping: bool, seed: Any, largest: bool
) -> FractionalPool:
    x: Any = dispatch.to_tensor(value)
    sizes = [None, None] if x.shape.rank is None else x.shape.as_list()[1:3]
    if x.shape.rank != 4 or None in sizes:
        raise InvalidArgumentError(
            op=op, what="the image has rank 4, and known height and width", found=f"shape {x.shape}"
        )
    ratios, sequences = _ratios(pooling_ratio, op), []
    for axis, (size, ratio, offset) in enumerate(zip(sizes, ratios, (0, 1)), 1):
        count = scalar_math.floor(size / ratio)
        starts = _sequence(size, count, pseudo_random, seed + offset if seed else None)
        width = size // count + (size % count > 0 or pseudo_random) + overlapping
        x = _pooled(x, starts, axis, width, overlapping, largest)
        sequences.append(starts)
    return FractionalPool(x, *sequences)


def fractional_max_pool(
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> FractionalPool:
    """Return the maxima over windows that divide an image by a ratio which is not an integer.

    value: [batch, height, width, channels]; pooling_ratio: of rows and columns, 1 or more. pseudo_random: whether the
    widths of the windows follow from one random number, as in the source; else they are shuffled. overlapping: whether
    a window has the first pixel of the next. seed: 0 for other windows each time.
    raises InvalidArgumentError for other ratios and unknown sizes
    """
    return _fractional("nn.fractional_max_pool", value, pooling_ratio, pseudo_random, overlapping, seed, True)


def fractional_avg_pool(
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> FractionalPool:
    """Return the means over windows that divide an image by a ratio. Arguments: see `fractional_max_pool`."""
    return _fractional("nn.fractional_avg_pool", value, pooling_ratio, pseudo_random, overlapping, seed, False)
