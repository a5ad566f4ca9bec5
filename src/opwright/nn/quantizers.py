"""`keras.quantizers`: weights and activations as integers and floats of 8 and 4 bits.

Lives here: quantizers, and configurations that `quantize` takes.
Not here: functions (quantization_functions.py), GPTQ and AWQ (calibration.py), layers with quantized weights
(layers/quantized_weights.py), .tflite (lite/convert/quantize).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .configuration import AttributeConfig, ObjectRegistry
from .dtype_policies import GPTQ_BITS
from .quantization_functions import (
    EPSILON,
    INT4,
    INT8,
    Axes,
    abs_max_quantize,
    abs_max_quantize_grouped_with_zero_point,
    compute_float8_amax_history,
    compute_float8_scale,
    compute_quantization_parameters,
    dequantize_with_sz_map,
    fake_quant_with_min_max_vars,
    pack_int4,
    quantize_and_dequantize,
    quantize_with_sz_map,
    unpack_int4,
)

__all__ = [
    "AWQConfig",
    "AbsMaxQuantizer",
    "Float8QuantizationConfig",
    "GPTQConfig",
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


class CalibratedConfig(QuantizationConfig):
    """Configuration of a mode that chooses weights by data, of which files have all but the data and the structure."""

    arguments: ClassVar[tuple[str, ...]]

    def __init__(self, names: Sequence[str], **values: Any) -> None:
        super().__init__()
        for name in "num_samples", "sequence_length":
            if values[name] <= 0:
                raise ValueError(f"{name} must be a positive integer. Received: {values[name]}")
        if values["group_size"] < -1 or values["group_size"] == 0:
            raise ValueError(
                "Invalid group_size. Supported values are -1 (one group) or a positive integer, but got "
                f"{values['group_size']}."
            )
        for name in names:
            setattr(self, name, values[name])

    def dtype_policy_string(self) -> str:
        """Return mode, bits and the size of groups, as in the name of a policy."""
        values: Any = self
        return f"{self.mode}/{values.weight_bits}/{values.group_size}"

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor, without data."""
        absent = dict.fromkeys(("dataset", "tokenizer", "quantization_layer_structure"))
        return {**{name: getattr(self, name) for name in self.arguments}, **absent}


class GPTQConfig(CalibratedConfig):
    """Weights of 2, 3, 4 or 8 bits, which are rounded so that outputs for a dataset change least (arXiv:2210.17323).

    dataset: texts, or arrays of tokens; tokenizer: with `tokenize(text)`. num_samples of sequence_length tokens are
    seen. per_channel: a scale of each output, else one of all. hessian_damping: part of the mean second moment that is
    added to each. group_size: inputs with one scale and zero point; -1: all. activation_order: begin with inputs of
    great moments. quantization_layer_structure: "pre_block_layers" and "sequential_blocks" of the model
    raises ValueError for values out of range
    """

    mode: ClassVar[str] = "gptq"
    arguments = (
        *("dataset", "tokenizer", "weight_bits", "num_samples", "per_channel", "sequence_length", "hessian_damping"),
        *("group_size", "symmetric", "activation_order", "quantization_layer_structure"),
    )

    def __init__(
        self,
        dataset: Any,
        tokenizer: Any,
        *,
        weight_bits: int = 4,
        num_samples: int = 128,
        per_channel: bool = True,
        sequence_length: int = 512,
        hessian_damping: float = 0.01,
        group_size: int = 128,
        symmetric: bool = False,
        activation_order: bool = False,
        quantization_layer_structure: Any = None,
    ) -> None:
        if weight_bits not in GPTQ_BITS:
            raise ValueError(f"Unsupported weight_bits {weight_bits}. Supported values are 2, 3, 4, and 8.")
        if not 0 <= hessian_damping <= 1:
            raise ValueError(f"hessian_damping must be between 0 and 1. Received: {hessian_damping}")
        values = locals()
        super().__init__(self.arguments, **{name: values[name] for name in self.arguments})


class AWQConfig(CalibratedConfig):
    """Weights of 4 bits, which are scaled by the magnitudes of their inputs before they are rounded (arXiv:2306.00978).

    num_grid_points: powers of the magnitudes that are tried, besides 0. For the other arguments, see `GPTQConfig`.
    raises ValueError for values out of range
    """

    mode: ClassVar[str] = "awq"
    arguments = (
        *("dataset", "tokenizer", "weight_bits", "num_samples", "sequence_length", "group_size", "num_grid_points"),
        "quantization_layer_structure",
    )

    def __init__(
        self,
        dataset: Any,
        tokenizer: Any,
        *,
        weight_bits: int = 4,
        num_samples: int = 128,
        sequence_length: int = 512,
        group_size: int = 128,
        num_grid_points: int = 20,
        quantization_layer_structure: Any = None,
    ) -> None:
        if weight_bits != 4:
            raise ValueError(f"AWQ only supports 4-bit quantization. Received weight_bits={weight_bits}.")
        if num_grid_points <= 0:
            raise ValueError(f"num_grid_points must be a positive integer. Received: {num_grid_points}")
        values = locals()
        super().__init__(self.arguments, **{name: values[name] for name in self.arguments})


CONFIGS: dict[str, type[QuantizationConfig]] = {
    str(cls.mode): cls
    for cls in (Int8QuantizationConfig, Int4QuantizationConfig, Float8QuantizationConfig, GPTQConfig, AWQConfig)
}
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
        if issubclass(CONFIGS[mode], CalibratedConfig):
            name = CONFIGS[mode].__name__
            raise ValueError(
                f"For {mode.upper()}, you must pass `{name}(dataset, tokenizer)` in the `config` argument."
            )
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
