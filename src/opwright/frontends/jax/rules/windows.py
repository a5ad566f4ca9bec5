"""Rules of windows without weights: sums and extrema of windows, and the places where gradients of pools go.

Lives here: reduce_window_sum, _max and _min; select_and_scatter_add. Not here: convolutions (convolution.py).

Windows are reduced along one axis after the other, except for two-dimensional pools of floating point numbers.
"""

from __future__ import annotations

import itertools
import math as numbers
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....ops import array, math, nn
from ...importing import tensor_of
from ..execution import RULES, JaxprContext
from ..operands import batched, dims, like, like_shape, transpose
from .arrays import padded, part, strided
from .convolution import _padding_kind
from .cumulative import highest, lowest


def _zero(dtype: Any) -> np.ndarray:
    return np.zeros((), dtype.as_numpy_dtype)


def _pool(name: str, x: Any, params: Any) -> Any:
    """Return a pool of images, or None if no pool computes these windows."""
    window, strides = params["window_dimensions"], params["window_strides"]
    padding = [tuple(p) for p in params["padding"]]
    axes = [i for i, w in enumerate(window) if w > 1 or strides[i] > 1]
    plain = all(d == 1 for d in (*params["base_dilation"], *params["window_dilation"]))
    if not plain or x.dtype.name not in ("float32", "float16", "bfloat16", "float64") or len(dims(x)) != 4:
        return None
    if not axes or len(axes) > 2 or name == "reduce_window_min":
        return None
    rest = [i for i in range(4) if i not in axes]
    if any(any(padding[i]) for i in rest):
        return None
    images = [rest[0], *axes, *rest[1:]] if len(axes) == 2 else [rest[0], axes[0], rest[1], rest[2]]
    spatial = images[1:3]
    x = transpose(x, images)
    sizes = [window[i] for i in spatial]
    steps = [strides[i] for i in spatial]
    pads = [padding[i] for i in spatial]
    kind = _padding_kind(dims(x)[1:3], sizes, steps, pads)
    maximum = name == "reduce_window_max"
    if kind is None or (kind == "SAME" and not maximum):  # averages leave the border out
        config = [(0, 0, 0), *((low, high, 0) for low, high in pads), (0, 0, 0)]
        x, kind = tensor_of(padded(x, lowest(x.dtype) if maximum else _zero(x.dtype), config)), "VALID"
    pool = nn.max_pool2d if maximum else nn.avg_pool2d
    result = batched(pool(tensor_of(x), sizes, steps, kind), dims(x)[0])
    if not maximum:
        result = like_shape(math.multiply(result, like(numbers.prod(sizes), result)), result)
    return transpose(result, [int(i) for i in np.argsort(images)])


def _window(name: str, function: Any, neutral: Any) -> None:
    @RULES.rule(name)
    def rule(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
        x = tensor_of(inputs[0])
        pool = _pool(name, x, params)
        if pool is not None:
            return pool
        padded_x = tensor_of(padded_window(x, neutral(x.dtype), params))
        return reduced_windows([padded_x], lambda a, b: [function(*a, *b)], params)[0]


def padded_window(x: Any, value: Any, params: Any) -> Any:
    """Return the operand of windows with its padding and dilation."""
    rows = zip(params["padding"], params["base_dilation"])
    return padded(x, value, [(low, high, base - 1) for (low, high), base in rows])


def reduced_windows(
    values: Sequence[Any], combine: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]], params: Any
) -> list[Any]:
    """Return windows of padded operands reduced by an associative function of two tuples of tensors."""
    rows = zip(params["window_dimensions"], params["window_strides"], params["window_dilation"])
    for axis, (size, stride, dilation) in enumerate(rows):
        count = (dims(values[0])[axis] - (size - 1) * dilation - 1) // stride + 1
        if size == 1 and stride == 1:
            continue
        begins = [i * dilation for i in range(size)]
        pieces: list[Sequence[Any]] = [
            [tensor_of(part(x, axis, b, b + (count - 1) * stride + 1, stride)) for x in values] for b in begins
        ]
        while len(pieces) > 1:
            pairs = [list(map(like_shape, combine(a, b), a)) for a, b in zip(pieces[::2], pieces[1::2])]
            pieces = pairs + ([pieces[-1]] if len(pieces) % 2 else [])
        values = pieces[0]
    return list(values)


_window("reduce_window_sum", math.add, _zero)
_window("reduce_window_max", math.maximum, lowest)
_window("reduce_window_min", math.minimum, highest)


@RULES.rule("select_and_scatter_add")
def select_and_scatter_add(context: JaxprContext, inputs: Sequence[Any], params: Any) -> Any:
    """Return source added at the greatest (or least) element of each window of the operand, the first of equal ones."""
    source, operand = tensor_of(inputs[0]), tensor_of(inputs[1])
    greatest = params["select_prim"].name == "ge"
    neutral = lowest(operand.dtype) if greatest else highest(operand.dtype)
    config = [(low, high, 0) for low, high in params["padding"]]
    x = tensor_of(padded(operand, neutral, config))
    window, strides = params["window_dimensions"], params["window_strides"]
    counts = dims(source)
    offsets = list(itertools.product(*map(range, window)))
    best: Any = None
    winner: Any = None
    for i, offset in enumerate(offsets):
        ends = [o + (c - 1) * s + 1 for o, c, s in zip(offset, counts, strides)]
        current = tensor_of(strided(x, offset, ends, strides))
        number = array.broadcast_to(tensor_of(np.asarray(i, np.int32)), list(counts))
        if best is None:
            best, winner = current, number
            continue
        better = math.greater(current, best) if greatest else math.less(current, best)
        best, winner = array.where(better, current, best), array.where(better, number, winner)
    total: Any = None
    for i, offset in enumerate(offsets):
        chosen = array.where(math.equal(winner, tensor_of(np.asarray(i, np.int32))), source, array.zeros_like(source))
        rows = [(o, size - o - (c - 1) * s - 1, s - 1) for o, size, c, s in zip(offset, dims(x), counts, strides)]
        placed = tensor_of(padded(chosen, _zero(source.dtype), rows))
        total = placed if total is None else math.add(total, placed)
    return padded(total, _zero(source.dtype), [(-low, -high, 0) for low, high in params["padding"]])
