"""Integer rules of CONV_2D, DEPTHWISE_CONV_2D and TRANSPOSE_CONV: int8 by channel, uint8, int16 with int8 weights.

Lives here: these rules.  Not here: the sums (sums.py), float activations with integer weights (hybrid.py).

.. math:: q_y = clamp(z_y + M_o (b_o + \\sum (q_w - z_w)(q_x - z_x))),   M_o = s_x s_{w,o} / s_y

The sums are exact (sums.py); each band of the result is finished before the next is begun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ....scalar.multipliers import multipliers
from ..parts import Part
from .fixed_point import by_rows, finishing, finishing_wide
from .operand import Operand, check_axis, check_scaled, check_symmetric, check_types, fused_bounds
from .sums import Finish, Image, Weights, convolved, convolved_by_channel, transposed

TYPES = (
    "INT8 INT8 INT8",
    "INT8 INT4 INT8",
    "INT8 INT2 INT8",
    "UINT8 UINT8 UINT8",
    "INT16 INT8 INT16",
    "INT16 INT4 INT16",
)
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
    check_axis(filter, axis)
    if not len(filter.scales):
        raise filter.wrong("has no scale", "0 scales", "one, or one for each output channel")


def finisher(
    op: Any, x: Operand, weights: Operand, bias: Operand | None, y: Operand, low: int, high: int
) -> Callable[[Any], Finish]:
    """From the bias to what makes integers of the output of exact sums (floats)."""
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
        known: dict[int, Callable[[Any], Any]] = {}  # by the first output of a block, as long as the kernel runs

        def finish(sums: Any, where: Any, block: slice) -> Any:
            first = block.start or 0
            if first not in known:
                known[first] = of_block(b, block)
            return by_rows(lambda part: known[first](part.astype(np.int64)), sums, dtype) if sums.size else sums

        return finish

    return with_bias


def _image(x: Operand, q: Any) -> Image:
    """Integers less their zero point."""
    return lambda where, dtype: x.centred(q[where], dtype)


def conv_2d(op: Any, x: Operand, filter: Operand, bias: Operand | None, y: Operand) -> Any:
    check_conv(op, x, filter, bias, y, 0)
    weights = Weights(filter, x.reach, 0)
    finish = finisher(op, x, filter, bias, y, *fused_bounds(op.fused_activation_function, y))

    def run(q: Any, f: Any, b: Any) -> Iterator[Part]:
        return convolved(op, q.shape, f, weights, _image(x, q), finish(b))

    return run


def depthwise_conv_2d(op: Any, x: Operand, filter: Operand, bias: Operand | None, y: Operand) -> Any:
    check_conv(op, x, filter, bias, y, 3)
    weights = Weights(filter, x.reach, 3)
    finish = finisher(op, x, filter, bias, y, *fused_bounds(op.fused_activation_function, y))

    def run(q: Any, f: Any, b: Any) -> Iterator[Part]:
        return convolved_by_channel(op, q.shape, f, weights, _image(x, q), finish(b))

    return run


def transpose_conv(
    op: Any, output_shape: Operand, filter: Operand, x: Operand, bias: Operand | None, y: Operand
) -> Any:
    check_conv(op, x, filter, bias, y, 0)
    weights = Weights(filter, x.reach, 0)
    finish = finisher(op, x, filter, bias, y, *fused_bounds(op.fused_activation_function, y))

    def run(shape: Any, f: Any, q: Any, b: Any) -> Iterator[Part]:
        return transposed(op, shape, f, weights, _image(x, q), finish(b))

    return run
