"""Rules of float activations with integer weights: CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, FULLY_CONNECTED,
BATCH_MATMUL, EMBEDDING_LOOKUP.

Lives here: these rules, for scales by tensor, by channel and by block (int4 or int2 weights of language models).
Not here: integer activations (images.py, matmul.py), the scales of blocks in files (runtime/tensor.py).

Activations are quantized to int8 while the model runs, a row (FULLY_CONNECTED, BATCH_MATMUL) or an image (convolutions)
at a time; sums are exact integers; the result is a float, to which bias and activation are applied.

.. math:: y = act(s_x s_w \\sum q_w (q_x - z_x) + b)

With a scale for each block of a row (float16), rows of activations have a zero point each:

.. math:: y_{ij} = act(s_i \\sum_b s_{jb} \\sum_{k \\in b} w_{jk} (q_{ik} - z_i) + b_j)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ....scalar import numpy_namespace
from ....scalar.fixed_point import ASYMMETRIC, SYMMETRIC, asymmetric_steps, symmetric_steps
from ....scalar.fixed_point import array_round_away as round_away
from ..matmul import products, without_columns
from ..tiling import Part, broadcast_slice, fuse
from .fixed_point import Image, Weights, convolved, convolved_by_channel, exact_float, multiplied, transposed
from .operand import Operand, check_axis, check_symmetric, check_types

_f = np.float32


class ScaledRows(NamedTuple):
    """Quantized rows: integers less their zero points, as floats, and a scale each, [rows, 1...]."""

    values: Any
    scale: Any


class RowQuantization(NamedTuple):
    """Quantization of rows: by a factor and an offset each, [rows, 1...], within limits. scale: of the integers."""

    factor: Any
    offset: Any
    limits: tuple[int, int]
    scale: Any

    def of(self, x: np.ndarray, where: tuple[slice, ...] = (slice(None),)) -> np.ndarray:
        """Quantize the part `where` of x: integers less their zero points, as floats."""
        factor, offset = _seen(self.factor, where), _seen(self.offset, where)
        values = round_away(x[where] * factor)
        values += offset
        values = np.clip(values, *self.limits, out=values)
        values -= offset
        return values

    def rows(self, x: Any) -> ScaledRows:
        """Quantize all rows."""
        return ScaledRows(self.of(x), self.scale)

    def scale_of(self, where: tuple[slice, ...]) -> np.ndarray:
        """Return the scales of the rows in a part."""
        return _seen(self.scale, where)


def _seen(vector: np.ndarray, where: tuple[slice, ...]) -> np.ndarray:
    """Return the slice of an array whose first dimensions `where` indexes."""
    return broadcast_slice(vector, where, vector.ndim - len(where))


def _ends(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """Return minimum and maximum over `axes`, including 0, as float32."""
    ends = x.min(axes, keepdims=True, initial=_f(0)), x.max(axes, keepdims=True, initial=_f(0))
    return ends[0].astype(_f, copy=False), ends[1].astype(_f, copy=False)


def symmetric(x: Any, axes: tuple[int, ...]) -> RowQuantization:
    """Compute symmetric quantization over `axes` to -127..127; rows of zeros have scale 1."""
    scale, factor = symmetric_steps(numpy_namespace, *_ends(x, axes))
    return RowQuantization(factor, np.zeros_like(factor), SYMMETRIC, scale)


def asymmetric(x: Any, axes: tuple[int, ...]) -> RowQuantization:
    """Compute asymmetric quantization over `axes` to -128..127; rows of zeros have scale 1."""
    scale, factor, offset = asymmetric_steps(numpy_namespace, *_ends(x, axes))
    return RowQuantization(factor, offset, ASYMMETRIC, scale)


REACH = 255
"""The greatest distance of an integer from its zero point."""

DENSE = tuple(f"{real} {weights} {real}" for real in ("FLOAT32", "FLOAT16") for weights in ("INT8", "INT4", "INT2"))
DENSE += ("FLOAT32 UINT8 FLOAT32",)


def signed(q: np.ndarray) -> np.ndarray:
    """View weights as int8: the first files quantized after training declare them UINT8."""
    return q.view(np.int8) if q.dtype == np.uint8 else q


def _check_bias(op: Any, bias: Operand | None) -> None:
    if bias is not None:
        check_types(op, ("FLOAT32", "FLOAT16"), bias)


def _weights(filter: Operand, axis: int) -> Weights:
    check_symmetric(filter)
    check_axis(filter, axis)
    filter.constant = None if filter.constant is None else signed(filter.constant)
    return Weights(filter, REACH, axis)


def _finish(op: Any, y: np.ndarray, bias: np.ndarray | None, block: slice = slice(None)) -> np.ndarray:
    if bias is not None:
        y += bias.reshape(-1)[block]
    return fuse(op, y)


def _image(steps: RowQuantization, real: Any) -> Image:
    """Return the image of quantized floats for exact sums."""
    return lambda where, dtype: steps.of(real, where).astype(dtype, copy=False)


def fully_connected(op: Any, x: Operand, weights: Operand, bias: Operand | None, y: Operand) -> Callable[..., Any]:
    check_types(op, DENSE, x, weights, y)
    _check_bias(op, bias)
    matrix = _weights(weights, 0)
    quantize = asymmetric if op.asymmetric_quantize_inputs else symmetric

    def parts(real: Any, w: Any, b: Any) -> Iterator[Part]:
        n, k = w.shape
        vectors = real if op.keep_num_dims else real.reshape(-1, k)
        vectors = vectors.astype(_f, copy=False)
        steps = quantize(vectors, (-1,))

        def finish(sums: np.ndarray, where: tuple[slice, ...], outputs: slice) -> np.ndarray:
            factor = steps.scale_of(where) * (weights.scales[outputs] if weights.per_channel else weights.scale)
            return _finish(op, sums.astype(_f, copy=False) * factor, b, outputs)

        return multiplied((*vectors.shape[:-1], n), w, matrix, _image(steps, vectors), finish)

    def run(real: np.ndarray, w: np.ndarray, b: np.ndarray | None) -> Iterator[Part] | np.ndarray:
        return parts(real, signed(w), b) if w.shape[1] else without_columns(op, real, len(w))

    return run


def batch_matmul(op: Any, x: Operand, y: Operand, z: Operand) -> Callable[..., Any]:
    check_types(op, ("FLOAT32 INT8 FLOAT32",), x, y, z)
    check_symmetric(y)
    check_axis(y, len(y.shape) - (2 if op.adj_y else 1))
    scales = y.scales if y.per_channel else y.scale
    quantize = asymmetric if op.asymmetric_quantize_inputs else symmetric

    def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        steps = quantize(a, (-1,))
        exact = exact_float(a.shape[-1] * REACH * 128)
        acc = np.matmul(steps.of(a).astype(exact, copy=False), b.astype(exact)).astype(_f)
        result: np.ndarray = acc * (steps.scale * scales)
        return result

    return lambda a, b: products(op, a, b, multiply)


def conv_2d(op: Any, x: Operand, filter: Operand, bias: Operand | None, y: Operand) -> Callable[..., Any]:
    check_types(op, [f"FLOAT32 {filters} FLOAT32" for filters in ("INT8", "INT4", "INT2", "UINT8")], x, filter, y)
    _check_bias(op, bias)
    weights = _weights(filter, 0)
    by_channel = bool(np.any(filter.scales != filter.scale))
    quantize = asymmetric if by_channel else symmetric

    def run(real: Any, f: Any, b: Any) -> Iterator[Part]:
        steps = quantize(real, (1, 2, 3))

        def finish(sums: np.ndarray, where: tuple[slice, ...], block: slice) -> np.ndarray:
            scale, reals = steps.scale_of(where), sums.astype(_f, copy=False)
            reals = reals * filter.scales[block] * scale if by_channel else reals * (scale * filter.scale)
            return _finish(op, reals, b, block)

        return convolved(op, real.shape, signed(f), weights, _image(steps, real), finish)

    return run


def depthwise_conv_2d(op: Any, x: Operand, filter: Operand, bias: Operand | None, y: Operand) -> Callable[..., Any]:
    check_types(op, ("FLOAT32 INT8 FLOAT32",), x, filter, y)
    _check_bias(op, bias)
    weights = _weights(filter, 3)
    scales = filter.scales if filter.per_channel else filter.scale

    def run(real: Any, f: Any, b: Any) -> Iterator[Part]:
        steps = asymmetric(real, (1, 2, 3))

        def finish(sums: np.ndarray, where: tuple[slice, ...], block: slice) -> np.ndarray:
            return _finish(op, sums.astype(_f, copy=False) * (scales * steps.scale_of(where)), b)

        return convolved_by_channel(op, real.shape, f, weights, _image(steps, real), finish)

    return run


def transpose_conv(
    op: Any, output_shape: Operand, filter: Operand, x: Operand, bias: Operand | None, y: Operand
) -> Callable[..., Any]:
    check_types(op, ("INT8 FLOAT32 FLOAT32",), filter, x, y)
    _check_bias(op, bias)
    weights = _weights(filter, 0)

    def run(shape: Any, f: Any, real: Any, b: Any) -> Iterator[Part]:
        steps = asymmetric(real, (1, 2, 3))

        def finish(sums: np.ndarray, where: tuple[slice, ...], block: slice) -> np.ndarray:
            factor = (filter.scales[block] if filter.per_channel else filter.scale) * steps.scale_of(where)
            return _finish(op, sums.astype(_f, copy=False) * factor, b, block)

        return transposed(op, shape, f, weights, _image(steps, real), finish)

    return run


def embedding_lookup(op: Any, lookup: Operand, value: Operand, y: Operand) -> Callable[..., Any]:
    """Look up rows of integers and dequantize them."""
    check_types(
        op, [f"{value} {y}" for value in ("INT8", "INT4", "INT2", "UINT8") for y in ("FLOAT32", "FLOAT16")], value, y
    )
    check_symmetric(value)
    check_axis(value, 0)
    rank = len(value.shape)

    def run(ids: np.ndarray, table: np.ndarray) -> Iterator[Part] | np.ndarray:
        scale = value.scales[ids].reshape((-1,) + (1,) * (rank - 1)) if value.per_channel else value.scale
        result: Iterator[Part] | np.ndarray = op.reference(ids, signed(table)).astype(_f) * scale
        return result

    return run


def block_scales(weights: Operand) -> np.ndarray:
    """Return the scales, float32 [rows, blocks]. Raises InvalidArgumentError if they do not match the weights."""
    blocks = weights.blocks
    scales, constant = Operand(blocks.scales), blocks.scales.constant
    if scales.type != "FLOAT16" or constant is None:
        raise scales.wrong("holds no scales", scales.type, "constants of type FLOAT16")
    if len(weights.shape) != 2 or blocks.size < 1 or weights.shape[1] % blocks.size:
        raise weights.wrong(
            "has blocks that do not fit it", f"{blocks.size} elements of {list(weights.shape)}", "rows of whole blocks"
        )
    rows, size = weights.shape[0], weights.shape[1] // blocks.size
    if constant.size != rows * size:
        raise scales.wrong("has another number of scales than there are blocks", constant.size, rows * size)
    result: np.ndarray = constant.reshape(rows, size).astype(_f)
    return result


def blockwise_fully_connected(
    op: Any, x: Operand, weights: Operand, bias: Operand | None, y: Operand
) -> Callable[..., Any]:
    check_types(op, ("FLOAT32 INT4 FLOAT32", "FLOAT32 INT2 FLOAT32"), x, weights, y)
    scales, size = block_scales(weights), weights.blocks.size

    def run(real: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
        n, k = w.shape
        rows = real.reshape(-1, k)
        steps = asymmetric(rows, (1,))
        values, out = steps.of(rows), np.zeros((len(rows), n), _f)
        for block in range(k // size):
            part = slice(block * size, (block + 1) * size)
            out += np.matmul(values[:, part], w[:, part].astype(_f).T) * scales[:, block]
        out *= steps.scale
        if b is not None:
            out += b.reshape(-1)
        return fuse(op, out.reshape((*real.shape[:-1], n)) if op.keep_num_dims else out)

    return run


def blockwise_embedding_lookup(op: Any, lookup: Operand, value: Operand, y: Operand) -> Callable[..., Any]:
    """Look up rows of integers and dequantize them."""
    check_types(op, ("INT4 FLOAT32", "INT4 FLOAT16", "INT2 FLOAT32", "INT2 FLOAT16"), value, y)
    scales, size = block_scales(value), value.blocks.size

    def run(ids: np.ndarray, table: np.ndarray) -> Iterator[Part] | np.ndarray:
        rows = op.reference(ids, table).astype(_f)
        result: Iterator[Part] | np.ndarray = (
            rows.reshape(len(ids), scales.shape[1], size) * scales[ids][..., None]
        ).reshape(rows.shape)
        return result

    return run
