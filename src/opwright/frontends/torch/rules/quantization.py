"""Quantization of pt2e: values as integers with a scale and a zero point, by tensor or by channel.

Lives here: rules of the namespace quantized_decomposed. Not here: what the converter makes of such pairs
(lite/convert/quantize/explicit.py).
"""

from __future__ import annotations

from typing import Any

from ....core.dtypes import DType, float32, int32
from ....ops import array, math
from ...importing import known
from .table import AtenCall, aten, rank_of, tensor


def _parameter(value: Any, dtype: DType, rank: int, axis: int | None) -> Any:
    """Return a scale or zero point: a number, or a vector along an axis of a tensor of this rank."""
    array_of = known(value)
    vector = tensor(value if array_of is None else array_of.astype(dtype.np), dtype)
    if axis is None:
        return array.reshape(vector, [])
    return array.reshape(vector, [-1 if i == axis % rank else 1 for i in range(rank)])


def _quantized(x: Any, scale: Any, zero: Any, low: Any, high: Any, dtype: DType, axis: int | None = None) -> Any:
    r"""Return integers: :math:`\min(\max(\mathrm{rint}(x / s) + z, low), high)`."""
    x = tensor(x, float32)
    rank = rank_of(x)
    q = math.rint(math.realdiv(x, _parameter(scale, float32, rank, axis)))
    q = q + _parameter(zero, float32, rank, axis)
    q = math.minimum(math.maximum(q, _parameter(low, float32, rank, None)), _parameter(high, float32, rank, None))
    return array.cast(q, dtype)


def _restored(q: Any, scale: Any, zero: Any, dtype: DType, axis: int | None = None) -> Any:
    """Return real numbers: s (q - z)."""
    q = tensor(q)
    rank = rank_of(q)
    wide = array.cast(q, int32)
    if zero is not None:
        wide = wide - _parameter(zero, int32, rank, axis)
    return array.cast(array.cast(wide, float32) * _parameter(scale, float32, rank, axis), dtype)


@aten("quantized_decomposed::quantize_per_tensor")
def quantize_per_tensor(op: AtenCall, x: Any, scale: Any, zero: Any, low: Any, high: Any, *rest: Any) -> Any:
    return _quantized(x, scale, zero, low, high, op.dtype)


@aten("quantized_decomposed::dequantize_per_tensor")
def dequantize_per_tensor(op: AtenCall, q: Any, scale: Any, zero: Any, *rest: Any, **options: Any) -> Any:
    return _restored(q, scale, zero, op.dtype)


@aten("quantized_decomposed::quantize_per_channel")
def quantize_per_channel(
    op: AtenCall, x: Any, scales: Any, zeros: Any, axis: int, low: Any, high: Any, *rest: Any
) -> Any:
    return _quantized(x, scales, zeros, low, high, op.dtype, axis)


@aten("quantized_decomposed::dequantize_per_channel")
def dequantize_per_channel(op: AtenCall, q: Any, scales: Any, zeros: Any, axis: int, *rest: Any, **options: Any) -> Any:
    return _restored(q, scales, zeros, op.dtype, axis)
