"""Integer rules of CONV_2D, DEPTHWISE_CONV_2D and TRANSPOSE_CONV: int8 by channel, uint8, int16 with int8 weights.

Lives here: these rules.  Not here: float activations with integer weights (hybrid.py).

.. math:: q_y = clamp(z_y + M_o (b_o + \\sum (q_w - z_w)(q_x - z_x))),   M_o = s_x s_{w,o} / s_y

The sums run through the float kernels: they are integers, and exact in floats whose mantissa holds the greatest sum
that the weights allow (`sum_dtype`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....ops.nn import conv_arrays
from ..sliding import windows_of
from .fixed_point import by_rows, multipliers, rescale, rescale_wide
from .operand import Operand, check_scaled, check_symmetric, check_types, fused_bounds

TYPES = ("INT8 INT8 INT8", "INT8 INT4 INT8", "INT8 INT2 INT8", "UINT8 UINT8 UINT8", "INT16 INT8 INT16",
         "INT16 INT4 INT16")  # fmt: skip
STORED = {"INT8": np.int8, "UINT8": np.uint8, "INT16": np.int16}
BIASES = {"INT8": ("", "INT32"), "UINT8": ("", "INT32"), "INT16": ("", "INT64", "INT32")}


def sum_dtype(weights: np.ndarray, reach: int, axes: tuple[int, ...]) -> Any:
    """The narrowest float in which sums of products with `weights` over `axes` are exact; inputs go up to `reach`."""
    if not weights.size:
        return np.float32
    greatest = int(np.abs(weights.astype(np.int64)).sum(axes).max()) * reach
    return np.float32 if greatest <= 1 << 24 else np.float64


class Weights:
    """The filter as floats, centred and laid out for the float kernels; made once where it is constant."""

    def __init__(self, filter: Operand, x: Operand, layout: Callable[[np.ndarray], np.ndarray], axes: Any) -> None:
        self.filter, self.reach, self.layout, self.axes = filter, x.reach, layout, axes
        self.made = None if filter.constant is None else self.make(filter.constant)

    def make(self, q: np.ndarray) -> np.ndarray:
        """The weights of integers."""
        centred = self.filter.centred(q, np.int32)
        return np.ascontiguousarray(self.layout(centred.astype(sum_dtype(centred, self.reach, self.axes))))

    def __call__(self, q: np.ndarray) -> np.ndarray:
        return self.made if self.made is not None else self.make(q)


def check_conv(op: Any, x: Operand, filter: Operand, bias: Operand | None, y: Operand, axis: int) -> None:
    """The types and parameters that integer convolutions take; `axis`: of the filter's output channels."""
    kind = check_types(op, TYPES, x, filter, y)
    check_types(op, BIASES[kind], bias) if bias is not None else None
    check_scaled(x, y)
    if kind != "UINT8":
        check_symmetric(filter)
    else:
        check_scaled(filter, zero=True)
    if kind == "INT16":
        check_symmetric(x, y)
    if filter.per_channel and filter.axis != axis:
        raise filter.wrong("has scales along another dimension than that of the output channels", filter.axis, axis)
    if not len(filter.scales):
        raise filter.wrong("has no scale", "0 scales", "one, or one for each output channel")


def finisher(op: Any, x: Operand, weights: Operand, bias: Operand | None, y: Operand, low: int, high: int
             ) -> Callable[[Any, Any], Any]:  # fmt: skip
    """From exact sums (floats) and the bias to integers of the output."""
    if x.type == "UINT8":
        m, e = multipliers(float(x.scale * weights.scale) / float(y.scale))
    else:
        m, e = multipliers(float(x.scale) * weights.scales.astype(np.float64) / float(y.scale))
    scaled = rescale_wide if x.type == "INT16" and (bias is None or bias.type == "INT64") else rescale
    zero_point = y.zero_point

    dtype = STORED[y.type]

    def finish(sums: Any, b: Any) -> Any:
        offsets = None if b is None else b.reshape(-1)

        def rows(part: Any) -> Any:
            acc = part.astype(np.int64)
            if offsets is not None:
                acc += offsets
            out = scaled(acc, m, e)
            if zero_point:
                out += zero_point
            return np.clip(out, low, high, out=out)

        return by_rows(rows, sums, dtype) if sums.size else sums

    return finish


def conv_2d(op: Any, x: Operand, filter: Operand, bias: Operand | None, y: Operand) -> Any:
    check_conv(op, x, filter, bias, y, 0)
    weights = Weights(filter, x, lambda w: w.transpose(1, 2, 3, 0), (1, 2, 3))
    finish = finisher(op, x, filter, bias, y, *fused_bounds(op.fused_activation_function, y))

    def run(q: Any, f: Any, b: Any) -> Any:
        w = weights(f)
        image = x.centred(q, w.dtype.type)
        return finish(conv_arrays.convolve(op, image, w, windows_of(op, q.shape[1:3], f.shape[1:3])), b)

    return run


def depthwise_conv_2d(op: Any, x: Operand, filter: Operand, bias: Operand | None, y: Operand) -> Any:
    check_conv(op, x, filter, bias, y, 3)
    weights = Weights(filter, x, lambda w: w[0], (0, 1, 2))
    finish = finisher(op, x, filter, bias, y, *fused_bounds(op.fused_activation_function, y))

    def run(q: Any, f: Any, b: Any) -> Any:
        w = weights(f)
        by_channel = w.reshape(*w.shape[:2], q.shape[3], -1 if q.shape[3] else op.depth_multiplier)
        image = x.centred(q, w.dtype.type)
        return finish(conv_arrays.depthwise(image, by_channel, windows_of(op, q.shape[1:3], f.shape[1:3])), b)

    return run


def transpose_conv(op: Any, output_shape: Operand, filter: Operand, x: Operand, bias: Operand | None, y: Operand
                   ) -> Any:  # fmt: skip
    check_conv(op, x, filter, bias, y, 0)
    weights = Weights(filter, x, lambda w: w.transpose(1, 2, 0, 3), (1, 2, 3))
    finish = finisher(op, x, filter, bias, y, *fused_bounds(op.fused_activation_function, y))

    def run(shape: Any, f: Any, q: Any, b: Any) -> Any:
        w, sizes = weights(f), [int(s) for s in shape]
        image = x.centred(q, w.dtype.type)
        return finish(conv_arrays.by_input(image, w, sizes, windows_of(op, sizes[1:3], f.shape[1:3])), b)

    return run
