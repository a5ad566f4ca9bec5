"""Layers whose weights are quantized, as Keras's `quantize` makes them.

Lives here: `QuantizedWeights`, the mixin of Dense, EinsumDense, Embedding and ReversibleEmbedding; MODES by name.
Not here: how a mode keeps and multiplies weights (quantization_modes.py, calibrated_modes.py), configurations
(../quantizers.py), calibration of models (../calibration.py), quantized .tflite files (lite/convert/quantize).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...ops import array
from ...ops.tensor import Tensor
from .. import dtype_policies, quantizers
from .calibrated_modes import AWQ, GPTQ, Calibrated, check_kernel
from .configurable_layer import LowRankAdaptation
from .quantization_modes import MATMUL, Float8, Int4, Int8, Table, WeightMode

MODES: dict[str, WeightMode] = {"int8": Int8(), "int4": Int4(), "float8": Float8(), "gptq": GPTQ(), "awq": AWQ()}
"""The ways of `quantize`."""


class _Merged:
    """A weight as files have it of a layer with LoRA: with the product; assignments set the parts of that to 0."""

    def __init__(self, layer: Any, weight: Any, values: np.ndarray | None) -> None:
        self._layer, self._weight, self._values = layer, weight, values
        self.dtype, self.shape, self.name = weight.dtype, weight.shape, weight.name

    def read_array(self) -> np.ndarray:
        """Return the values."""
        return np.asarray(self._weight.read_array() if self._values is None else self._values).astype(self.dtype.np)

    def assign(self, value: Any) -> None:
        """Set the weight."""
        self._weight.assign(value)
        for part in (self._layer.lora_kernel_a, self._layer.lora_kernel_b):
            part.assign(np.zeros(part.shape, part.dtype.np))


class QuantizedWeights(LowRankAdaptation):
    """Mixin of layers with `_kernel` that `quantize` converts."""

    _einsum: str | None = None  # of inputs and kernel; None for a table of rows
    _quantization_modes: tuple[str, ...] = tuple(MODES)

    quantization_mode: str | None
    _statistics: Any = None  # of inputs, during calibration

    is_gptq_calibrated = property(lambda self: self._has_codes("gptq"), doc="Whether GPTQ has chosen the weights.")
    is_awq_calibrated = property(lambda self: self._has_codes("awq"), doc="Whether AWQ has chosen the weights.")

    def _has_codes(self, mode: str) -> bool:
        way = MODES[mode]
        return self.quantization_mode == mode and isinstance(way, Calibrated) and way.has_codes(self, self._tables()[0])

    @property
    def block_size(self) -> int | None:
        """Rows of a block with one scale, of int4; None for one scale a channel."""
        layer: Any = self
        config = self.quantization_config
        size = getattr(config, "block_size", None) if config is not None else None
        if size is None:
            size = getattr(layer.dtype_policy, "block_size", None)
        return None if size in (None, -1) else size

    def activation_quantizer(self, default: Any) -> Any:
        """Return the quantizer of inputs: of the configuration, or the default without one."""
        config = self.quantization_config
        return default if config is None else config.activation_quantizer

    def _tables(self) -> list[Table]:
        return [Table(self._lora_kernel, "_kernel", self._kernel_shape, self._einsum)]

    def _build_kernel(self, shape: Sequence[int]) -> None:
        """Create the kernel, or with a quantized policy the weights of a file, which are zero until they are read."""
        layer: Any = self
        self._kernel_shape = tuple(shape)
        if self.quantization_mode is None:
            layer._kernel = layer._weight(self._lora_kernel, shape)

    def _build_quantized(self) -> None:
        """Create quantized weights, in the place of the kernel."""
        mode = self.quantization_mode
        if mode is not None:
            self._check_mode(mode)
            for table in self._tables():
                MODES[mode].build(self, table)

    def _float_kernel(self, table: Table) -> None:
        """Create the floating-point kernel, unless there is one."""
        layer: Any = self
        if "_kernel" not in vars(layer):
            layer._kernel = layer._weight(table.name, table.shape)

    def _check_mode(self, mode: str) -> None:
        if mode not in self._quantization_modes:
            raise NotImplementedError(
                f"Invalid quantization mode. Expected one of {self._quantization_modes}. Received: "
                f"quantization_mode={mode}"
            )

    def quantize(self, mode: str | None = None, type_check: bool = True, config: Any = None) -> None:
        """Convert the kernel to integers or float8; the layer's policy is then a quantized one.

        mode: of MODES, or config, of `keras.quantizers`. type_check: whether subclasses raise NotImplementedError.
        raises ValueError for other modes, layers that are not built, and layers that are quantized
        """
        layer: Any = self
        if type_check and not type(self).__module__.startswith(f"{__package__}."):
            raise NotImplementedError(f"Layer {type(self).__name__} does not have a `quantize()` method implemented.")
        config = quantizers.resolve(mode, config)
        mode = str(config.mode)
        if not layer.built:
            raise ValueError(f"Cannot quantize a layer that isn't yet built. Layer {layer.name!r} has no kernel")
        if self.quantization_mode is not None:
            raise ValueError(
                f"Layer {layer.name!r} is already quantized with dtype_policy={layer.dtype_policy.name!r}. "
                f"Received: mode={mode}"
            )
        self._check_mode(mode)
        way = MODES[mode]
        if isinstance(way, Calibrated):
            check_kernel(self._einsum or MATMUL)
        policy = dtype_policies.get(f"{way.policy(self, config)}_from_{layer.dtype_policy.name}")
        self.quantization_config = config
        values = {}
        for table in self._tables():
            weight = getattr(layer, table.attribute)
            values[table.name] = np.asarray(weight.read_array()).astype(np.float32)
            if not way.keeps_kernel:
                layer._own_weights[:] = [v for v in layer._own_weights if v is not weight]
        layer._set_policy(policy)
        for table in self._tables():
            way.build(self, table)
            for attribute, value in way.encoded(self, table, values[table.name]).items():
                getattr(layer, attribute).assign(value)

    def begin_calibration(self) -> None:
        """Collect statistics of the inputs from now on, for the codes of `end_calibration`."""
        way, table = self._calibrated()
        self._statistics = way.statistics(table.matrix()[0])

    def end_calibration(self) -> None:
        """Choose the codes of the kernel by the statistics."""
        layer: Any = self
        way, table = self._calibrated()
        statistics, self._statistics = self._statistics, None
        if statistics.is_empty:  # a layer that no input reached keeps its kernel
            return
        values = np.asarray(getattr(layer, table.attribute).read_array()).astype(np.float32)
        for attribute, value in way.encode(self, table, values, statistics).items():
            getattr(layer, attribute).assign(value)
        self.discard_kernel()

    def discard_kernel(self) -> None:
        """Remove the floating-point kernel: the codes are known."""
        layer: Any = self
        _, table = self._calibrated()
        weight = getattr(layer, table.attribute)
        layer._own_weights[:] = [v for v in layer._own_weights if v is not weight]
        delattr(layer, table.attribute)

    def _calibrated(self) -> tuple[Calibrated, Table]:
        way = MODES[str(self.quantization_mode)]
        assert isinstance(way, Calibrated)
        return way, self._tables()[0]

    def _file_variables(self) -> list[Any]:
        layer: Any = self
        return self.stored_weights() if self.quantization_mode is not None else list(layer._own_variables())

    def stored_weights(self) -> list[Any]:
        """Return the weights as Keras's files have them: kernel, bias and what the mode has; of LoRA merged."""
        layer: Any = self
        mode = self.quantization_mode
        if mode is None:
            return super().stored_weights()
        way, merged = MODES[mode], {}
        if isinstance(way, Calibrated) and not way.has_codes(self, self._tables()[0]):
            raise ValueError(
                f"Layer {layer.name!r} has no weights of mode '{mode}' yet: quantize the model that it is in by "
                f"`model.quantize('{mode}', config=...)`, before it is saved"
            )
        if self.lora_enabled and np.any(self._low_rank()):  # another rounding is lossy
            table = self._tables()[0]
            merged = way.encoded(self, table, np.asarray(self._merged(table)).astype(np.float32))
        weights: list[Any] = []
        for i, table in enumerate(self._tables()):
            for form in way.files if i == 0 else [f for f in way.files if "{" in f]:
                name = form.format(table.name)
                attribute = table.attribute if form == "{}" else name
                weight = getattr(layer, attribute, None)
                if weight is not None:
                    value = merged.get(attribute) if not i else None
                    special = self.lora_enabled and not i and form != "bias"
                    weights.append(_Merged(self, weight, value) if special else weight)
        return weights

    def _merged(self, table: Table) -> Any:
        """Return the floating-point table with the product of LoRA."""
        layer: Any = self
        return MODES[str(self.quantization_mode)].decoded(self, table) + array.cast(
            self._low_rank(), layer.compute_dtype
        )

    def _effective_kernel(self) -> Any:
        layer: Any = self
        mode = self.quantization_mode
        if not layer.built or mode is None:
            return super()._effective_kernel()
        table = self._tables()[0]
        if self.lora_enabled:
            return self._merged(table)
        way = MODES[mode]
        if isinstance(way, Calibrated) and way.has_codes(self, table):
            return way.integers(self, table)
        return array.reshape(way.integers(self, table), table.shape) if isinstance(way, Int4) else layer._kernel

    def _product(self, inputs: Tensor, plain: Callable[[Any, Any], Tensor], training: Any = None) -> Tensor:
        """Return the product of inputs and kernel: `plain` of floating-point ones, or of quantized ones."""
        layer: Any = self
        mode = self.quantization_mode
        if mode is not None:
            inputs = array.cast(inputs, layer.compute_dtype)
            result = MODES[mode].product(self, self._tables()[0], inputs, plain, training)
            if self.lora_enabled:
                result = result + plain(inputs, array.cast(self._low_rank(), inputs.dtype))
            return result
        kernel = layer._cast(layer.kernel)
        return plain(inputs if inputs.dtype is kernel.dtype else array.cast(inputs, kernel.dtype), kernel)  # integers

    def _rows(self, indices: Any) -> Tensor:
        """Return rows of the table."""
        layer: Any = self
        mode = self.quantization_mode
        if mode is None:
            return array.cast(array.gather(layer.embeddings, indices), layer.compute_dtype)
        rows = MODES[mode].rows(self, self._tables()[0], indices)
        if self.lora_enabled:
            rows = rows + array.cast(array.gather(self._low_rank(), indices), rows.dtype)
        return rows
