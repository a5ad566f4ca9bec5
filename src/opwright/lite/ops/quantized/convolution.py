"""Integer rules of CONV_2D, DEPTHWISE_CONV_2D and TRANSPOSE_CONV: int8 by channel, uint8, int16 with int8 weights.

Lives here: these rules.  Not here: the sums (sums.py), float activations with integer weights (hybrid.py).

.. math:: q_y = clamp(z_y + M_o (b_o + \\sum (q_w - z_w)(q_x - z_x))),   M_o = s_x s_{w,o} / s_y

The sums are exact (sums.py); each band of the result is finished before the next is begun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..parts import Part
from .fixed_point import by_rows, multipliers, rescale, rescale_wide
from .operand import Operand, check_scaled, check_symmetric, check_types, fused_bounds
from .sums import Weights, convolved, convolved_by_channel, transposed

TYPES = ("INT8 INT8 INT8", "INT8 INT4 INT8", "INT8 INT2 INT8", "UINT8 UINT8 UINT8", "INT16 INT8 INT16",
         "INT16 INT4 INT16")  # fmt: skip
STORED = {"INT8": np.int8, "UINT8": np.uint8, "INT16": np.int16}
BIASES = {"INT8": ("", "INT32"), "UINT8": ("", "INT32"), "INT16": ("", "INT64", "INT32")}


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
             ) -> Callable[..., Any]:  # fmt: skip
    """From exact sums (floats) and the bias to integers of the output, of all channels or a block of them."""
    if x.type == "UINT8":
        m, e = multipliers(float(x.scale * weights.scale) / float(y.scale))
    else:
        m, e = multipliers(float(x.scale) * weights.scales.astype(np.float64) / float(y.scale))
    scaled = rescale_wide if x.type == "INT16" and (bias is None or bias.type == "INT64") else rescale
    zero_point = y.zero_point

    dtype = STORED[y.type]

    def finish(sums: Any, b: Any, block: slice = slice(None)) -> Any:
        offsets = None if b is None else b.reshape(-1)[block]
        factor, shift = (m, e) if np.ndim(m) == 0 else (m[block], e[block])

        def rows(part: Any) -> Any:
            acc = part.astype(np.int64)
            if offsets is not None:
                acc += offsets
            out = scaled(acc, factor, shift)
            if zero_point:
                out += zero_point
            return np.clip(out, low, high, out=out)

        return by_rows(rows, sums, dtype) if sums.size else sums

    return finish


def conv_2d(op: Any, x: Operand, filter: Operand, bias: Operand | None, y: Operand) -> Any:
    check_conv(op, x, filter, bias, y, 0)
    weights = Weights(filter, x.reach, 0)
    finish = finisher(op, x, filter, bias, y, *fused_bounds(op.fused_activation_function, y))

    def run(q: Any, f: Any, b: Any) -> Iterator[Part]:
        for where, block, sums in convolved(op, q.shape, f, weights, lambda band, t: x.centred(q[band], t)):
            yield where, finish(sums, b, block)

    return run


def depthwise_conv_2d(op: Any, x: Operand, filter: Operand, bias: Operand | None, y: Operand) -> Any:
    check_conv(op, x, filter, bias, y, 3)
    weights = Weights(filter, x.reach, 3)
    finish = finisher(op, x, filter, bias, y, *fused_bounds(op.fused_activation_function, y))

    def run(q: Any, f: Any, b: Any) -> Iterator[Part]:
        for where, sums in convolved_by_channel(op, q.shape, f, weights, lambda band, t: x.centred(q[band], t)):
            yield where, finish(sums, b)

    return run


def transpose_conv(op: Any, output_shape: Operand, filter: Operand, x: Operand, bias: Operand | None, y: Operand
                   ) -> Any:  # fmt: skip
    check_conv(op, x, filter, bias, y, 0)
    weights = Weights(filter, x.reach, 0)
    finish = finisher(op, x, filter, bias, y, *fused_bounds(op.fused_activation_function, y))

    def run(shape: Any, f: Any, q: Any, b: Any) -> Iterator[Part]:
        for where, block, sums in transposed(op, shape, f, weights, lambda band, t: x.centred(q[band], t)):
            yield where, finish(sums, b, block)

    return run
