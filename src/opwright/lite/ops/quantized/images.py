"""Integer rules of operators whose windows slide over images, and of RESIZE_BILINEAR.

Lives here: the rules of CONV_2D, DEPTHWISE_CONV_2D and TRANSPOSE_CONV (int8 by channel, uint8, int16 with int8
weights), of AVERAGE_POOL_2D and MAX_POOL_2D, and of RESIZE_BILINEAR.
Not here: sums of products (fixed_point.py), float activations with integer weights (hybrid.py), the windows
(lite/ops/tiling.py), RESIZE_NEAREST_NEIGHBOR, which moves integers.

.. math:: q_y = clamp(z_y + M_o (b_o + \\sum (q_w - z_w)(q_x - z_x))),   M_o = s_x s_{w,o} / s_y

Sums of convolutions are exact (fixed_point.py); each band of the result is finished before the next is begun. Pools
work on raw integers, which input and output scale alike: a mean is the sum divided by the taps inside the image, halves
away from zero. Resizing computes positions and weights in steps of 1/1024 of a pixel (uint8: in floats).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ....scalar import numpy_namespace
from ....scalar.fixed_point import multipliers
from ....scalar.fixed_point_layers import FixedMean, Places, Sampling
from ..images import stretched
from ..pooling import pooled
from ..tiling import Part, combine_along, counts
from .fixed_point import (
    Finish,
    Image,
    Weights,
    by_rows,
    convolved,
    convolved_by_channel,
    finishing,
    finishing_wide,
    rounded_quotient,
    transposed,
)
from .operand import BIASES, Operand, check_axis, check_scaled, check_symmetric, check_types, fused_bounds

TYPES = (
    "INT8 INT8 INT8",
    "INT8 INT4 INT8",
    "INT8 INT2 INT8",
    "UINT8 UINT8 UINT8",
    "INT16 INT8 INT16",
    "INT16 INT4 INT16",
)
STORED = {"INT8": np.int8, "UINT8": np.uint8, "INT16": np.int16}


def check_conv(op: Any, x: Operand, filter: Operand, bias: Operand | None, y: Operand, axis: int) -> None:
    """Check types and parameters of an integer convolution; `axis`: of the filter's output channels."""
    kind = check_types(op, TYPES, x, filter, y)
    check_types(op, BIASES[kind], bias) if bias is not None else None
    check_scaled(x, y)
    if kind != "UINT8":
        check_symmetric(filter)
    else:
        check_scaled(filter, zero=True)
    if kind == "INT16":
        check_symmetric(x, y)
    check_axis(filter, axis)
    if not len(filter.scales):
        raise filter.wrong("has no scale", "0 scales", "one, or one for each output channel")


def finisher(
    op: Any, x: Operand, weights: Operand, bias: Operand | None, y: Operand, low: int, high: int
) -> Callable[[Any], Finish]:
    """Return a function from the bias to the requantization of exact sums (floats)."""
    if x.type == "UINT8":
        m, e = multipliers(float(x.scale * weights.scale) / float(y.scale))
    else:
        m, e = multipliers(float(x.scale) * weights.scales.astype(np.float64) / float(y.scale))
    wide = x.type == "INT16" and (bias is None or bias.type == "INT64")
    dtype = STORED[y.type]

    def of_block(b: Any, block: slice) -> Callable[[Any], Any]:
        factors = (m, e) if np.ndim(m) == 0 else (m[block], e[block])
        return (finishing_wide if wide else finishing)(
            *factors, 0 if b is None else b.reshape(-1)[block], y.zero_point, low, high
        )

    def with_bias(b: Any) -> Finish:
        by_block: dict[int, Callable[[Any], Any]] = {}  # by the first output of a block, as long as the kernel runs

        def finish(sums: np.ndarray, where: tuple[slice, ...], block: slice) -> np.ndarray:
            first = block.start or 0
            if first not in by_block:
                by_block[first] = of_block(b, block)
            return by_rows(lambda part: by_block[first](part.astype(np.int64)), sums, dtype) if sums.size else sums

        return finish

    return with_bias


def _image(x: Operand, q: Any) -> Image:
    """Return the image of integers less their zero point."""
    return lambda where, dtype: x.centred(q[where], dtype)


def conv_2d(op: Any, x: Operand, filter: Operand, bias: Operand | None, y: Operand) -> Callable[..., Any]:
    check_conv(op, x, filter, bias, y, 0)
    weights = Weights(filter, x.reach, 0)
    finish = finisher(op, x, filter, bias, y, *fused_bounds(op.fused_activation_function, y))

    def run(q: Any, f: Any, b: Any) -> Iterator[Part]:
        return convolved(op, q.shape, f, weights, _image(x, q), finish(b))

    return run


def depthwise_conv_2d(op: Any, x: Operand, filter: Operand, bias: Operand | None, y: Operand) -> Callable[..., Any]:
    check_conv(op, x, filter, bias, y, 3)
    weights = Weights(filter, x.reach, 3)
    finish = finisher(op, x, filter, bias, y, *fused_bounds(op.fused_activation_function, y))

    def run(q: Any, f: Any, b: Any) -> Iterator[Part]:
        return convolved_by_channel(op, q.shape, f, weights, _image(x, q), finish(b))

    return run


def transpose_conv(
    op: Any, output_shape: Operand, filter: Operand, x: Operand, bias: Operand | None, y: Operand
) -> Callable[..., Any]:
    check_conv(op, x, filter, bias, y, 0)
    weights = Weights(filter, x.reach, 0)
    finish = finisher(op, x, filter, bias, y, *fused_bounds(op.fused_activation_function, y))

    def run(shape: Any, f: Any, q: Any, b: Any) -> Iterator[Part]:
        return transposed(op, shape, f, weights, _image(x, q), finish(b))

    return run


POOL_TYPES = ("INT8 INT8", "UINT8 UINT8", "INT16 INT16")


def average(op: Any, x: Operand, y: Operand) -> Callable[..., Any]:
    check_types(op, POOL_TYPES, x, y)
    check_scaled(x, y)
    low, high = fused_bounds(op.fused_activation_function, y)

    def mean(q: np.ndarray, rows: Any, columns: Any) -> np.ndarray:
        total = combine_along(combine_along(q.astype(np.int32), rows, 1, np.add, 0), columns, 2, np.add, 0)
        n = np.multiply.outer(counts(rows, np.int32), counts(columns, np.int32))[..., None]
        result: np.ndarray = np.clip(rounded_quotient(total, n), low, high)
        return result

    return lambda q: pooled(op, q, mean)


def maximum(op: Any, x: Operand, y: Operand) -> Callable[..., Any]:
    check_types(op, POOL_TYPES, x, y)
    check_scaled(x, y)
    low, high = fused_bounds(op.fused_activation_function, y)

    def pool(q: np.ndarray, rows: Any, columns: Any) -> np.ndarray:
        greatest = combine_along(combine_along(q, rows, 1, np.maximum, y.low), columns, 2, np.maximum, y.low)
        result: np.ndarray = np.clip(greatest, low, high)
        return result

    return lambda q: pooled(op, q, pool, q.itemsize)


_f = np.float32
MEAN = FixedMean(numpy_namespace)


def _in_floats(q: np.ndarray, rows: Places, columns: Places) -> np.ndarray:
    """Interpolate in float32 and round half up, as the official kernel for uint8."""
    (top, bottom, down), (left, right, across) = rows, columns
    v = q[:, top, left].astype(np.float32) * (_f(1) - down) * (_f(1) - across)
    v += q[:, bottom, left].astype(np.float32) * down * (_f(1) - across)
    v += q[:, top, right].astype(np.float32) * (_f(1) - down) * across
    v += q[:, bottom, right].astype(np.float32) * down * across
    result: np.ndarray = np.clip(np.trunc(v + _f(0.5)), 0, 255)
    return result


def resize_bilinear(op: Any, x: Operand, size: Operand, y: Operand) -> Callable[..., Any]:
    check_types(op, ("INT8 INT8", "UINT8 UINT8", "INT16 INT16"), x, y)
    check_scaled(x, y)
    if x.type == "UINT8":
        return lambda q, size: stretched(op, q, size, Sampling.between, _in_floats, 4)

    def in_steps(q: np.ndarray, rows: Places, columns: Places) -> np.ndarray:
        left, right, across = columns
        four = [q[:, row, column] for row in rows[:2] for column in (left, right)]
        result: np.ndarray = np.clip(MEAN.of_four(four, across, rows[2]), y.low, y.high)
        return result

    return lambda q, size: stretched(op, q, size, Sampling.between_steps, in_steps, 8)
