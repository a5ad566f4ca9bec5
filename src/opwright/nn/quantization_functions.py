"""Functions of quantization: integers of 8 and 4 bits with scales and zero points, floats of 8 bits.

Lives here: quantization by the greatest magnitude, of channels or of blocks with zero points; packing of two integers
of 4 bits a byte; scales of float8.  Not here: quantizers and configurations (quantizers.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import as_dtype, float32, int32
from ..ops import array, bitwise, dispatch, math, quantization

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

EPSILON = 1e-7
INT8, INT4 = (-127, 127), (-8, 7)
Axes = int | Sequence[int] | None


def _rounded(values: Any, scale: Any, value_range: Sequence[int], dtype: Any) -> np.ndarray:
    """Return an array times a scale, as integers of a range."""
    whole: np.ndarray = np.clip(np.round(values * scale), value_range[0], value_range[1]).astype(as_dtype(dtype).np)
    return whole


def abs_max_quantize(
    inputs: Any,
    axis: Any,
    value_range: Sequence[int] = INT8,
    dtype: Any = "int8",
    epsilon: float = EPSILON,
    to_numpy: bool = False,
) -> tuple[Any, Any]:
    """Return integers q and a scale, q = round(x scale), whose greatest along axes is that of the range.

    to_numpy: compute by NumPy, as for weights; the results are tensors in any case
    """
    axes = tuple(axis) if isinstance(axis, list | tuple) else axis
    if to_numpy:
        source = dispatch.to_tensor(inputs)
        values = np.asarray(source.numpy())
        scale = np.divide(value_range[1], np.abs(values).max(axes, keepdims=True) + np.asarray(epsilon, values.dtype))
        return dispatch.to_tensor(_rounded(values, scale, value_range, dtype)), array.cast(scale, source.dtype)
    x = dispatch.to_tensor(inputs)
    greatest = math.reduce_max(math.abs(x), axis=list(axes) if isinstance(axes, tuple) else axes, keepdims=True)
    factor: Any = float(value_range[1]) / (greatest + epsilon)
    whole = math.clip_by_value(math.round(x * factor), float(value_range[0]), float(value_range[1]))
    return array.cast(whole, dtype), factor


def abs_max_quantize_grouped_with_zero_point(
    inputs: Any,
    block_size: int,
    value_range: Sequence[int] = INT4,
    dtype: Any = "int8",
    epsilon: float = EPSILON,
    to_numpy: bool = False,
) -> tuple[Any, Any, Any]:
    """Return integers q [n, m] of a matrix, and scale and zero point of each block of rows: x = (q - zero) scale.

    block_size: the number of rows of a block; the last one may be smaller. returns q, scale and zero point [blocks, m]
    """
    source = dispatch.to_tensor(inputs)
    values = np.asarray(source.numpy())
    rows, columns = values.shape
    blocks = -(-rows // block_size)
    padded = np.zeros((blocks * block_size, columns), values.dtype)
    padded[:rows] = values
    low, high = value_range
    grouped = padded.reshape(blocks, block_size, columns)
    least, greatest = grouped.min(1, keepdims=True), grouped.max(1, keepdims=True)
    scale = (greatest - least + np.asarray(epsilon, values.dtype)) / np.asarray(high - low, values.dtype)
    zero = np.clip(np.round(-least / scale) + low, low, high)
    whole = np.clip(np.round(grouped / scale) + zero, low, high).astype(as_dtype(dtype).np)
    quantized = whole.reshape(blocks * block_size, columns)[:rows]
    parts = (quantized, scale[:, 0].astype(values.dtype), zero[:, 0].astype(np.int8))
    return tuple(map(dispatch.to_tensor, parts))  # type: ignore[return-value]


# ---- two integers a byte ---------------------------------------------------------------------------------------------


def _check_bytes(dtype: Any) -> None:
    if dtype not in ("int8", "uint8"):
        raise ValueError(f"Expected dtype to be 'int8' or 'uint8', but got '{dtype}'.")


def pack_int4(arr: Any, axis: int = 0, dtype: str = "int8") -> tuple[Any, tuple[int, ...], int]:
    """Return integers of 4 bits as bytes of two along an axis, the first in the low bits; their shape; the axis's size.

    raises TypeError for another dtype, ValueError for others than "int8" and "uint8"
    """
    _check_bytes(dtype)
    source = dispatch.to_tensor(arr)
    if source.dtype.name != dtype:
        raise TypeError(f"Expected {dtype} tensor for packing, got {source.dtype.name}.")
    values = np.moveaxis(np.asarray(source.numpy()), axis, 0).view(np.uint8)
    count = values.shape[0]
    if count % 2:
        values = np.concatenate([values, np.zeros_like(values[:1])])
    packed = np.moveaxis((values[::2] & 15) | (values[1::2] << 4), 0, axis).view(dtype)
    return dispatch.to_tensor(np.ascontiguousarray(packed)), packed.shape, count


def unpack_int4(packed: Any, orig_len: int, axis: int = 0, dtype: str = "int8") -> Tensor:
    """Return the integers of bytes, orig_len along the axis: signed for "int8", from 0 to 15 for "uint8"."""
    _check_bytes(dtype)
    x = dispatch.to_tensor(packed)
    if x.dtype.name not in ("int8", "uint8"):
        raise TypeError(f"Expected int8 or uint8 tensor for unpacking, got {x.dtype.name}")
    rank = len(x.shape)
    axis = axis % rank
    bits = array.cast(15, x.dtype)
    halves = [bitwise.bitwise_and(x, bits), bitwise.bitwise_and(bitwise.right_shift(x, array.cast(4, x.dtype)), bits)]
    both = array.stack(halves, axis + 1)
    sizes: list[Any] = [array.shape(x)[i] if n is None else n for i, n in enumerate(x.shape)]
    sizes[axis] = sizes[axis] * 2
    whole = array.reshape(both, sizes)[(*(slice(None) for _ in range(axis)), slice(0, orig_len))]
    if dtype == "int8":
        whole = array.cast(whole, "int8")
        sign = array.cast(8, "int8")
        whole = bitwise.bitwise_xor(whole, sign) - sign
    return array.cast(whole, dtype)


# ---- scales and zero points of groups --------------------------------------------------------------------------------


def compute_quantization_parameters(
    x: Any,
    *,
    bits: int,
    symmetric: bool = False,
    per_channel: bool = False,
    group_size: int = -1,
    compute_dtype: Any = "float32",
    epsilon: float = 0.0,
    signed: bool = False,
) -> tuple[Any, Any, Any]:
    """Return scale and zero point of the rows of weights [rows, columns], and the greatest integer, 2**bits - 1.

    per_channel: one of each row, or of each group of group_size columns in it; else one of all. signed: zero points of
    the range from -2**(bits - 1). returns [rows, groups]
    raises ValueError for None, fewer than two dimensions and no elements
    """
    if x is None:
        raise ValueError(f"Input tensor {x} cannot be None.")
    if len(x.shape) < 2:
        raise ValueError(f"Input weight tensor {x} must have a rank of at least 2, but got rank {len(x.shape)}.")
    values: Any = dispatch.to_tensor(x)
    if 0 in values.shape:
        raise ValueError("Input tensor 'x' cannot be empty.")
    rows, columns = values.shape[0], values.shape[1]
    groups = -(-columns // group_size) if per_channel and group_size > 0 else 1
    if groups > 1:
        values = array.pad(values, [[0, 0], [0, groups * group_size - columns]])
        values = array.reshape(values, [rows, groups, group_size])
    else:
        values = array.reshape(values, [rows if per_channel else 1, 1, -1])
    low, high = math.reduce_min(values, axis=2), math.reduce_max(values, axis=2)
    if symmetric:
        greatest = math.maximum(math.abs(low), high)
        low, high = array.where(low < 0, -greatest, low), greatest
    flat = math.equal(low, high)
    low, high = array.where(flat, low - 1.0, low), array.where(flat, high + 1.0, high)
    greatest_integer = array.cast(2**bits - 1, compute_dtype)
    scale = (high - low + epsilon) / array.cast(greatest_integer, low.dtype)
    scale = array.where(scale <= 0, array.cast(1e-8, scale.dtype), scale)
    offset = -(2 ** (bits - 1)) if signed else 0
    zero = (
        array.fill(array.shape(scale), array.cast(2 ** (bits - 1), scale.dtype))
        if symmetric
        else math.round(-low / scale)
    )
    zero = zero + float(offset)
    if signed:
        zero = math.clip_by_value(zero, float(offset), float(-offset - 1))
    if not per_channel:
        scale, zero = (array.tile(v, [rows, 1]) for v in (scale, zero))
    return scale, array.cast(zero, "int8" if signed else "uint8"), greatest_integer


def _of_columns(groups: Any, values: Any, axis: int) -> Any:
    return array.gather(values, array.cast(groups, int32), axis=axis)


def quantize_with_sz_map(
    weights_matrix: Any, scale: Any, zero: Any, g_idx: Any, maxq: Any, group_axis: int = -1
) -> Any:
    """Return round(w / scale + zero), from 0 to maxq. g_idx: the group of each element along group_axis."""
    factor: Any = _of_columns(g_idx, scale, group_axis)
    factor = array.where(math.equal(factor, 0.0), array.cast(1e-8, factor.dtype), factor)
    shifted = weights_matrix / factor + array.cast(_of_columns(g_idx, zero, group_axis), factor.dtype)
    return math.minimum(math.maximum(math.round(shifted), 0.0), array.cast(maxq, factor.dtype))


def dequantize_with_sz_map(weights_matrix: Any, scale: Any, zero: Any, g_idx: Any, group_axis: int = -1) -> Any:
    """Return (q - zero) scale. g_idx: the group of each element along group_axis."""
    factor: Any = _of_columns(g_idx, scale, group_axis)
    zeros = array.cast(_of_columns(g_idx, zero, group_axis), factor.dtype)
    return (array.cast(weights_matrix, factor.dtype) - zeros) * factor


# ---- float8 ----------------------------------------------------------------------------------------------------------

FLOAT8 = {"float8_e4m3fn": (3, -6, 448.0), "float8_e5m2": (2, -14, 57344.0)}
"""Bits of the mantissa, the least exponent of normal numbers, and the greatest number."""


def compute_float8_scale(amax: Any, scale: Any, dtype_max: Any, margin: int = 0) -> Tensor:
    """Return the scale for the greatest magnitude so far: amax 2**margin / dtype_max; the old one for 0 and infinity.

    source: update_fp8_metas of NVIDIA's Transformer Engine
    """
    amax, scale = dispatch.to_tensor(amax), dispatch.to_tensor(scale)
    factor = dtype_max / amax / 2**margin
    is_usable = math.logical_and(amax > 0.0, math.is_finite(amax))
    return 1.0 / array.where(is_usable, factor, 1.0 / scale)


def compute_float8_amax_history(x: Any, amax_history: Any) -> Tensor:
    """Return a history of greatest magnitudes, shifted by one, that begins with that of x."""
    history = dispatch.to_tensor(amax_history)
    latest = array.cast(math.reduce_max(math.abs(dispatch.to_tensor(x))), history.dtype)
    shifted: Tensor = array.roll(history, -1, 0)
    return array.concat([array.reshape(latest, [1]), shifted[1:]], 0)


def quantize_and_dequantize(inputs: Any, scale: Any, quantized_dtype: str, compute_dtype: Any) -> Tensor:
    """Return inputs as numbers of a float8 type times a scale, rounded to the nearest, halves to even.

    quantized_dtype: "float8_e4m3fn" or "float8_e5m2"
    """
    mantissa, least, greatest = FLOAT8[quantized_dtype]
    scale = array.cast(scale, compute_dtype)
    x = math.clip_by_value(array.cast(array.cast(inputs, compute_dtype) / scale, float32), -greatest, greatest)
    exponent = bitwise.bitwise_and(bitwise.right_shift(array.bitcast(x, int32), array.cast(23, int32)), 255) - 127
    unit = math.maximum(exponent, least) - mantissa  # the exponent of the last bit
    step = array.bitcast(bitwise.left_shift(unit + 127, array.cast(23, int32)), float32)
    result: Tensor = array.cast(math.round(x / step) * step, compute_dtype) * scale
    return result


def fake_quant_with_min_max_vars(
    inputs: Any, min_vals: Any, max_vals: Any, num_bits: int = 8, narrow_range: bool = False, axis: int | None = None
) -> Tensor:
    """Return inputs rounded to 2**num_bits numbers of a range, one of all or of each channel of an axis."""
    x = dispatch.to_tensor(inputs)
    limits = [array.cast(v, float32) for v in (min_vals, max_vals)]
    more: dict[str, Any] = {"num_bits": int(num_bits), "narrow_range": narrow_range}
    if axis is None:
        limits = [array.reshape(v, []) for v in limits]
        return array.cast(quantization.fake_quant_with_min_max_vars(array.cast(x, float32), *limits, **more), x.dtype)
    rank = len(x.shape)
    order = list(range(rank))
    order[axis % rank], order[-1] = order[-1], order[axis % rank]
    last = array.transpose(array.cast(x, float32), order)
    result = quantization.fake_quant_with_min_max_vars_per_channel(last, *limits, **more)
    return array.cast(array.transpose(result, order), x.dtype)


# ---- objects ---------------------------------------------------------------------------------------------------------
