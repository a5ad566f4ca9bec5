"""Rules of float activations with integer weights: CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, FULLY_CONNECTED,
BATCH_MATMUL, EMBEDDING_LOOKUP.

Lives here: these rules.  Not here: integer activations (convolution.py, matmul.py).

Activations are quantised to int8 while the model runs, a row (FULLY_CONNECTED, BATCH_MATMUL) or an image (convolutions)
at a time; sums are exact integers; the result is a float, to which bias and activation are applied.

.. math:: y = act(s_x s_w \\sum q_w (q_x - z_x) + b)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....ops.nn import conv_arrays
from ..fusing import fuse
from ..matmul import without_columns
from ..sliding import windows_of
from .convolution import Weights
from .fixed_point import round_away
from .operand import Operand, check_symmetric, check_types

_f = np.float32


class Rows(NamedTuple):
    """Quantised rows: integers less their zero points, as floats, and a scale each, [rows, 1...]."""

    values: Any
    scale: Any


def symmetric(x: Any, axes: tuple[int, ...]) -> Rows:
    """Rows over `axes` as integers of -127..127 with zero point 0; a row of zeros has scale 1."""
    reach = np.abs(x).max(axes, keepdims=True, initial=_f(0))
    nothing = reach == 0
    values = np.clip(round_away(x * np.where(nothing, _f(0), _f(127) / np.where(nothing, _f(1), reach))), -127, 127)
    return Rows(values, np.where(nothing, _f(1), reach / _f(127)))


def asymmetric(x: Any, axes: tuple[int, ...]) -> Rows:
    """Rows over `axes` as integers of -128..127 less a zero point; a row of zeros has scale 1."""
    low = x.min(axes, keepdims=True, initial=_f(0)).astype(np.float64)
    high = x.max(axes, keepdims=True, initial=_f(0)).astype(np.float64)
    nothing = low == high
    step = np.where(nothing, 1.0, (high - low) / 255)
    from_low, from_high = -128 - low / step, 127 - high / step
    exact = np.where(128 + np.abs(low / step) < 127 + np.abs(high / step), from_low, from_high)
    offset = np.where(nothing, 0.0, round_away(np.clip(exact, -128, 127)))
    scale = step.astype(_f)
    offset = offset.astype(_f)
    values = np.clip(round_away(offset + x * (_f(1) / scale)), -128, 127) - offset
    return Rows(np.where(nothing, _f(0), values), scale)


class _Activations:
    """What the layout of the weights asks about activations: how far an integer can be from its zero point."""

    reach = 255


DENSE = tuple(f"{real} {weights} {real}" for real in ("FLOAT32", "FLOAT16") for weights in ("INT8", "INT4", "INT2"))
DENSE += ("FLOAT32 UINT8 FLOAT32",)


def signed(q: Any) -> Any:
    """Weights of the first files quantised after training: their type is UINT8, but their bytes are int8."""
    return q.view(np.int8) if q.dtype == np.uint8 else q


def _check_bias(op: Any, bias: Operand | None) -> None:
    check_types(op, ("FLOAT32", "FLOAT16"), bias) if bias is not None else None


def _weights(filter: Operand, layout: Any, axes: Any) -> Weights:
    check_symmetric(filter)
    filter.constant = None if filter.constant is None else signed(filter.constant)
    return Weights(filter, _Activations, layout, axes)  # type: ignore[arg-type]


def _finish(op: Any, y: Any, bias: Any) -> Any:
    if bias is not None:
        y += bias.reshape(-1)
    return fuse(op, y)


def fully_connected(op: Any, x: Operand, weights: Operand, bias: Operand | None, y: Operand) -> Any:
    check_types(op, DENSE, x, weights, y)
    _check_bias(op, bias)
    matrix = _weights(weights, lambda w: w.T, (1,))
    if weights.per_channel and weights.axis != 0:
        raise weights.wrong("has scales along another dimension than that of the outputs", weights.axis, 0)
    quantize = asymmetric if op.asymmetric_quantize_inputs else symmetric
    scales = weights.scales if weights.per_channel else weights.scale

    def run(real: Any, w: Any, b: Any) -> Any:
        n, k = w.shape
        if not k:
            return without_columns(op, real, n)
        factors = matrix(signed(w))
        rows = quantize(real.reshape(-1, k).astype(_f, copy=False), (1,))
        acc = np.matmul(rows.values.astype(factors.dtype), factors).astype(_f)
        out = _finish(op, acc * (rows.scale * scales), b)
        return out.reshape((*real.shape[:-1], n)) if op.keep_num_dims else out

    return run


def batch_matmul(op: Any, x: Operand, y: Operand, z: Operand) -> Any:
    check_types(op, ("FLOAT32 INT8 FLOAT32",), x, y, z)
    check_symmetric(y)
    columns = len(y.shape) - (2 if op.adj_y else 1)
    if y.per_channel and y.axis != columns:
        raise y.wrong("has scales along another dimension than that of the outputs", y.axis, columns)
    scales = y.scales if y.per_channel else y.scale
    quantize = asymmetric if op.asymmetric_quantize_inputs else symmetric

    def run(a: Any, b: Any) -> Any:
        a, b = a.swapaxes(-1, -2) if op.adj_x else a, b.swapaxes(-1, -2) if op.adj_y else b
        rows = quantize(a, (-1,))
        exact = np.float32 if a.shape[-1] * 255 * 128 <= 1 << 24 else np.float64
        acc = np.matmul(rows.values.astype(exact), b.astype(exact)).astype(_f)
        return acc * (rows.scale * scales)

    return run


def conv_2d(op: Any, x: Operand, filter: Operand, bias: Operand | None, y: Operand) -> Any:
    check_types(op, ("FLOAT32 INT8 FLOAT32", "FLOAT32 INT4 FLOAT32", "FLOAT32 UINT8 FLOAT32"), x, filter, y)
    _check_bias(op, bias)
    weights = _weights(filter, lambda w: w.transpose(1, 2, 3, 0), (1, 2, 3))
    by_channel = bool(np.any(filter.scales != filter.scale))
    quantize = asymmetric if by_channel else symmetric

    def run(real: Any, f: Any, b: Any) -> Any:
        w = weights(signed(f))
        images = quantize(real, (1, 2, 3))
        sums = conv_arrays.convolve(op, images.values.astype(w.dtype), w,
                                    windows_of(op, real.shape[1:3], f.shape[1:3])).astype(_f)  # fmt: skip
        if by_channel:
            return _finish(op, sums * filter.scales * images.scale, b)
        return _finish(op, sums * (images.scale * filter.scale), b)

    return run


def depthwise_conv_2d(op: Any, x: Operand, filter: Operand, bias: Operand | None, y: Operand) -> Any:
    check_types(op, ("FLOAT32 INT8 FLOAT32",), x, filter, y)
    _check_bias(op, bias)
    weights = _weights(filter, lambda w: w[0], (0, 1, 2))
    scales = filter.scales if filter.per_channel else filter.scale

    def run(real: Any, f: Any, b: Any) -> Any:
        w = weights(f)
        by_channel = w.reshape(*w.shape[:2], real.shape[3], -1 if real.shape[3] else op.depth_multiplier)
        images = asymmetric(real, (1, 2, 3))
        sums = conv_arrays.depthwise(images.values.astype(w.dtype), by_channel,
                                     windows_of(op, real.shape[1:3], f.shape[1:3])).astype(_f)  # fmt: skip
        return _finish(op, sums * (scales * images.scale), b)

    return run


def transpose_conv(op: Any, output_shape: Operand, filter: Operand, x: Operand, bias: Operand | None, y: Operand
                   ) -> Any:  # fmt: skip
    check_types(op, ("INT8 FLOAT32 FLOAT32",), filter, x, y)
    _check_bias(op, bias)
    weights = _weights(filter, lambda w: w.transpose(1, 2, 0, 3), (1, 2, 3))
    if filter.per_channel and filter.axis != 0:
        raise filter.wrong("has scales along another dimension than that of the output channels", filter.axis, 0)
    scales = filter.scales if filter.per_channel else filter.scale

    def run(shape: Any, f: Any, real: Any, b: Any) -> Any:
        w, sizes = weights(f), [int(s) for s in shape]
        images = asymmetric(real, (1, 2, 3))
        sums = conv_arrays.by_input(images.values.astype(w.dtype), w, sizes,
                                    windows_of(op, sizes[1:3], f.shape[1:3])).astype(_f)  # fmt: skip
        return _finish(op, sums * (scales * images.scale), b)

    return run


def embedding_lookup(op: Any, lookup: Operand, value: Operand, y: Operand) -> Any:
    """Rows of integers as the reals they stand for."""
    check_types(op, [f"{value} {y}" for value in ("INT8", "INT4", "INT2", "UINT8") for y in ("FLOAT32", "FLOAT16")],
                value, y)  # fmt: skip
    check_symmetric(value)
    rank = len(value.shape)

    def run(ids: Any, table: Any) -> Any:
        scale = value.scales[ids].reshape((-1,) + (1,) * (rank - 1)) if value.per_channel else value.scale
        return op.reference(ids, signed(table)).astype(_f) * scale

    return run
