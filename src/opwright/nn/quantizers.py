"""`keras.quantizers`: weights and activations as integers and floats of 8 and 4 bits.

Lives here: quantizers by the greatest magnitude, of channels or of blocks with zero points; packing of two integers of
4 bits a byte; scales of float8; configurations that `quantize` takes.
Not here: layers with quantized weights (layers/quantized_weights.py), .tflite (lite/convert/quantize).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..core.dtypes import as_dtype, float32, int32
from ..ops import array, bitwise, dispatch, math, quantization
from .configuration import AttributeConfig, ObjectRegistry

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

__all__ = [
    "AbsMaxQuantizer",
    "Float8QuantizationConfig",
    "Int4QuantizationConfig",
    "Int8QuantizationConfig",
    "QuantizationConfig",
    "Quantizer",
    "abs_max_quantize",
    "abs_max_quantize_grouped_with_zero_point",
    "compute_float8_amax_history",
    "compute_float8_scale",
    "compute_quantization_parameters",
    "dequantize_with_sz_map",
    "deserialize",
    "fake_quant_with_min_max_vars",
    "get",
    "pack_int4",
    "quantize_and_dequantize",
    "quantize_with_sz_map",
    "serialize",
    "unpack_int4",
]

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


class Quantizer(AttributeConfig):
    """Base of quantizers: called with a tensor, they return integers and a scale."""

    def __init__(self, output_dtype: str = "int8") -> None:
        self.output_dtype = output_dtype

    def __call__(self, x: Any) -> Any:
        """Return the tensor."""
        return x

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments. Raises NotImplementedError of classes without `arguments`."""
        if not self.arguments:
            raise NotImplementedError(f"{self} does not implement get_config()")
        return super().get_config()


class AbsMaxQuantizer(Quantizer):
    """Quantizer by the greatest magnitude along axes, in the call or here; by default the last.

    raises ValueError for a range that int8 does not hold
    """

    arguments = ("value_range", "epsilon", "output_dtype")

    def __init__(
        self, axis: Axes = None, value_range: Sequence[int] = INT8, epsilon: float = EPSILON, output_dtype: str = "int8"
    ) -> None:
        super().__init__(output_dtype)
        self.axis = None if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
        self.value_range, self.epsilon = tuple(value_range), epsilon
        if output_dtype == "int8" and (value_range[0] < -128 or value_range[1] > 127):
            raise ValueError(
                "Quantizer with output_dtype='int8' requires value_range to be within the interval [-128, 127]. "
                f"Received: value_range={value_range}"
            )

    def __call__(self, x: Any, axis: Any = None, to_numpy: bool = False) -> tuple[Any, Any]:
        """Return integers and scale."""
        axis = (self.axis if self.axis is not None else -1) if axis is None else axis
        return abs_max_quantize(x, axis, self.value_range, self.output_dtype, self.epsilon, to_numpy)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {**super().get_config(), **({} if self.axis is None else {"axis": self.axis})}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> AbsMaxQuantizer:
        """Return the quantizer of a configuration, in which files have tuples as dictionaries."""
        arguments: dict[str, Any] = {k: tuple(v["items"]) if isinstance(v, dict) else v for k, v in config.items()}
        return cls(**arguments)


class QuantizationConfig:
    """Configuration of `quantize`: quantizers of weights and activations; None: a layer's own, or no quantization."""

    @property
    def mode(self) -> str:
        """The mode of `quantize`. Raises NotImplementedError of the base class."""
        raise NotImplementedError("Subclasses must implement `mode`. Do not instantiate QuantizationConfig directly.")

    def __init__(self, weight_quantizer: Any = None, activation_quantizer: Any = None) -> None:
        self.weight_quantizer, self.activation_quantizer = weight_quantizer, activation_quantizer

    def get_config(self) -> dict[str, Any]:
        """Return the quantizers as plain values."""
        return {
            "weight_quantizer": serialize(self.weight_quantizer),
            "activation_quantizer": serialize(self.activation_quantizer),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> QuantizationConfig:
        """Return the object of a configuration."""
        return cls(**{k: get(v) if k.endswith("_quantizer") else v for k, v in config.items()})


class Int8QuantizationConfig(QuantizationConfig):
    """Weights of int8, and by default activations, in each call; activation_quantizer=None: weights alone."""

    mode: ClassVar[str] = "int8"

    def __init__(self, weight_quantizer: Any = None, activation_quantizer: Any = "default") -> None:
        default = activation_quantizer == "default"
        super().__init__(weight_quantizer, AbsMaxQuantizer() if default else activation_quantizer)
        if weight_quantizer is not None and weight_quantizer.output_dtype != "int8":
            raise ValueError(
                "Int8QuantizationConfig requires a weight_quantizer with output_dtype='int8'. Received: "
                f"output_dtype={weight_quantizer.output_dtype}"
            )


class Int4QuantizationConfig(QuantizationConfig):
    """Weights of 4 bits, two a byte. block_size: rows with one scale and zero point; None or -1: one scale a channel.

    raises ValueError for other sizes, and for quantizers with blocks
    """

    mode: ClassVar[str] = "int4"

    def __init__(
        self, weight_quantizer: Any = None, activation_quantizer: Any = "default", block_size: int | None = 128
    ) -> None:
        super().__init__(weight_quantizer, None if activation_quantizer == "default" else activation_quantizer)
        if block_size is not None and block_size != -1 and block_size <= 0:
            raise ValueError(f"block_size must be None, -1, or a positive integer. Received: block_size={block_size}")
        self.block_size = block_size
        if block_size not in (None, -1) and (self.weight_quantizer or self.activation_quantizer):
            raise ValueError(
                "Int4 sub-channel quantization (block_size > 0) does not support custom quantizers. Either set "
                "block_size to None or -1 for per-channel quantization, or remove the custom quantizer arguments. "
                f"Received: block_size={block_size}"
            )
        if weight_quantizer is not None and tuple(weight_quantizer.value_range) != INT4:
            raise ValueError(
                "Int4QuantizationConfig requires a weight_quantizer with value_range=(-8, 7). Received: "
                f"value_range={weight_quantizer.value_range}"
            )
        if weight_quantizer is not None and weight_quantizer.output_dtype != "int8":
            raise ValueError(
                "Int4QuantizationConfig requires a weight_quantizer with output_dtype='int8'. Received: "
                f"output_dtype={weight_quantizer.output_dtype}"
            )

    def get_config(self) -> dict[str, Any]:
        """Return the quantizers and the size of blocks."""
        return {**super().get_config(), "block_size": self.block_size}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> QuantizationConfig:
        """Return the object of a configuration; without block_size, as older files are, of one scale a channel."""
        return super().from_config({"block_size": None, **config})


class Float8QuantizationConfig(QuantizationConfig):
    """Products of float8, whose scales follow what they met in training."""

    mode: ClassVar[str] = "float8"

    def __init__(self) -> None:
        super().__init__()

    def get_config(self) -> dict[str, Any]:
        """Return no arguments."""
        return {}


CONFIGS = {cls.mode: cls for cls in (Int8QuantizationConfig, Int4QuantizationConfig, Float8QuantizationConfig)}
"""By mode."""


def resolve(mode: Any, config: Any) -> QuantizationConfig:
    """Return the configuration that `quantize(mode, config)` means.

    raises ValueError for unknown modes, others than configurations, neither of both, and contradictions
    """
    if isinstance(config, str):
        mode, config = config, None
    if mode is not None and mode not in CONFIGS:
        raise ValueError(
            f"Invalid quantization mode. Expected one of {tuple(CONFIGS)}. Received: mode={mode}. "
            "ow.lite.TFLiteConverter quantizes models in other ways"
        )
    if config is None:
        if mode is None:
            raise ValueError("You must provide either `mode` or `config` to `quantize`.")
        made: QuantizationConfig = CONFIGS[mode]()
        return made
    if not isinstance(config, QuantizationConfig):
        raise ValueError(
            f"Argument `config` must be an instance of `QuantizationConfig`. Received: config={config} (of type "
            f"{type(config)})"
        )
    if mode is not None and config.mode != mode:
        raise ValueError(f"Contradictory arguments: mode='{mode}' but config.mode='{config.mode}'")
    return config


_REGISTRY = ObjectRegistry("quantizer", "keras.quantizers")
_REGISTRY.add([Quantizer, AbsMaxQuantizer, QuantizationConfig, *CONFIGS.values()])


def serialize(initializer: Any) -> Any:
    """Return a quantizer or configuration as plain values."""
    return _REGISTRY.serialize(initializer)


def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """Return the object of a serialized configuration."""
    return _REGISTRY.deserialize(config, custom_objects)


def get(identifier: Any, **kwargs: Any) -> Any:
    """Return the object for a name, a dictionary, an object (unchanged) or None (None)."""
    if identifier is None or isinstance(identifier, QuantizationConfig):
        return identifier
    if isinstance(identifier, dict):
        return deserialize(identifier)
    if isinstance(identifier, str):
        member: Any = _REGISTRY.members.get(identifier)
        identifier = member if member is None else member(**kwargs)
    if not callable(identifier):
        raise ValueError(f"Could not interpret quantizer identifier: {identifier}")
    return identifier
