"""Layers whose kernels are int8, as Keras's `quantize("int8")` makes them.

Lives here: `Int8Weights`, the mixin of Dense, EinsumDense and Embedding; `int8_einsum`.
Not here: the conversion of models to quantized .tflite files (lite/convert/quantize).

A kernel has a scale for each output channel, w = q / scale. Inputs are quantized in each call, by the greatest
magnitude of each row, and products of integers are summed exactly.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...eager.tape import custom_gradient
from ...ops import array, dispatch, linalg, math
from ...ops.tensor import Tensor
from .. import backend, dtype_policies
from .configurable_layer import LowRankAdaptation

LIMIT = 127
"""The greatest magnitude of an element."""


class Int8Weights(LowRankAdaptation):
    """Mixin of layers with `_kernel` that `quantize` converts."""

    _einsum: str | None = None  # of inputs and kernel; None for a table of rows

    def enable_lora(self, rank: int, *args: Any, **kwargs: Any) -> None:
        """Enable LoRA. Raises ValueError for an int8 kernel."""
        if self.quantization_mode is not None:
            raise ValueError("lora is not available for int8 kernels: train it before, with a float kernel")
        super().enable_lora(rank, *args, **kwargs)

    @property
    def quantization_mode(self) -> str | None:
        """ "int8" after `quantize`, else None."""
        layer: Any = self
        mode: str | None = layer.dtype_policy.quantization_mode
        return mode

    @property
    def _scale_name(self) -> str:
        return f"{self._lora_kernel}_scale"

    def _kernel_weight(self, name: str, shape: Sequence[int | None]) -> Any:
        """Create the kernel, or with a quantized policy that of a file, which is zero until it is read."""
        layer: Any = self
        if self.quantization_mode is None:
            return layer._weight(name, shape)
        return layer.add_weight(name=name, shape=tuple(shape), dtype="int8", initializer="zeros", trainable=False)

    def _build_scale(self) -> None:
        layer: Any = self
        if self.quantization_mode is not None:
            shape = _scale_shape(self._einsum, tuple(layer._kernel.shape))
            scale = layer.add_weight(name=self._scale_name, shape=shape, initializer="ones", trainable=False)
            setattr(layer, self._scale_name, scale)

    def quantize(self, mode: str = "int8", type_check: bool = True, config: Any = None) -> None:
        """Convert the kernel to int8 with a scale for each output channel; the layer's policy is then a quantized one.

        type_check: whether subclasses raise NotImplementedError. config: None.
        raises ValueError for other modes, LoRA and layers that are not built
        """
        layer: Any = self
        if type_check and not type(self).__module__.startswith(f"{__package__}."):
            raise NotImplementedError(f"Layer {type(self).__name__} does not have a `quantize()` method implemented.")
        if not layer.built:
            raise ValueError(f"Cannot quantize a layer that isn't yet built. Layer {layer.name!r} has no kernel")
        if self.quantization_mode is not None:
            raise ValueError(
                f"Layer {layer.name!r} is already quantized with dtype_policy={layer.dtype_policy.name!r}. "
                f"Received: mode={mode}"
            )
        if mode != "int8" or config is not None:
            raise ValueError(
                f"Invalid quantization mode. Expected 'int8', without config. Received: mode={mode!r}, "
                f"config={config!r}. ow.lite.TFLiteConverter quantizes models in other ways"
            )
        if self.lora_enabled:
            raise ValueError(f"Layer {layer.name!r} has LoRA, whose product an int8 kernel does not take")
        kernel = np.asarray(layer._kernel.read_array()).astype(np.float32)
        axes = _reduced_axes(self._einsum, kernel.ndim)
        scale = (LIMIT / (np.abs(kernel).max(axes, keepdims=True) + backend.epsilon())).astype(np.float32)
        values = np.clip(np.round(kernel * scale), -LIMIT, LIMIT).astype(np.int8)
        shape = tuple(layer._kernel.shape)
        layer._own_weights[:] = [v for v in layer._own_weights if v is not layer._kernel]
        layer._set_dtype(dtype_policies.get(f"{mode}_from_{layer.dtype_policy.name}"))
        layer._kernel = self._kernel_weight(self._lora_kernel, shape)
        layer._kernel.assign(values)
        self._build_scale()
        getattr(layer, self._scale_name).assign(_of_output(self._einsum, scale))

    def stored_weights(self) -> list[Any]:
        """Return the weights as Keras's files have them: kernel, bias, scale; or with LoRA, the kernel alone."""
        layer: Any = self
        if self.quantization_mode is None:
            return super().stored_weights()
        bias = getattr(layer, "bias", None)
        return [layer._kernel, *([] if bias is None else [bias]), getattr(layer, self._scale_name)]

    def _product(self, inputs: Tensor, plain: Callable[[Any, Any], Tensor]) -> Tensor:
        """Return the product of inputs and kernel: `plain` of floating-point ones, or of int8 ones."""
        layer: Any = self
        if self.quantization_mode is not None:
            inputs = array.cast(inputs, layer.compute_dtype)
            return int8_einsum(self._einsum or "", inputs, layer._kernel, layer.kernel_scale)
        kernel = layer._cast(layer.kernel)
        return plain(inputs if inputs.dtype is kernel.dtype else array.cast(inputs, kernel.dtype), kernel)  # integers

    def _rows(self, indices: Any) -> Tensor:
        """Return rows of the table."""
        layer: Any = self
        rows = array.gather(layer._kernel if self.quantization_mode is not None else layer.embeddings, indices)
        rows = array.cast(rows, layer.compute_dtype)
        if self.quantization_mode is None:
            return rows
        scale = array.cast(array.gather(layer.embeddings_scale, indices), layer.compute_dtype)
        return rows / array.expand_dims(scale, -1)


def _labels(einsum: str, rank: int | None = None) -> tuple[str, str, str]:
    """Return the labels of inputs, kernel and output. rank: of the inputs, for the labels of an ellipsis; without it,
    the ellipsis is one label."""
    x, w, y = einsum.replace(" ", "").replace("->", ",").split(",")
    spare = [c for c in string.ascii_letters if c not in einsum]
    count = 1 if rank is None else rank - len(x.replace("...", ""))
    elided = "".join(spare[:count])
    return x.replace("...", elided), w, y.replace("...", elided)


def _reduced_axes(einsum: str | None, rank: int) -> tuple[int, ...]:
    """Return the axes of a kernel over which one scale holds: of a table, its columns."""
    if einsum is None:
        return (rank - 1,)
    _, w, y = _labels(einsum)
    return tuple(i for i, label in enumerate(w) if label not in y)


def _scale_shape(einsum: str | None, kernel: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a scale in files: aligned with the output, of Dense and tables without axes of size 1."""
    if einsum is None:
        return (kernel[0],)
    _, w, y = _labels(einsum)
    sizes = dict(zip(w, kernel))
    shape = tuple(sizes.get(label, 1) for label in y)
    return shape[-1:] if einsum == MATMUL else shape


MATMUL = "...x,xy->...y"
"""The product of Dense."""


def _of_output(einsum: str | None, scale: np.ndarray) -> np.ndarray:
    """Return a scale with the axes of the kernel, aligned with the output."""
    if einsum is None:
        return scale[:, 0]
    _, w, y = _labels(einsum)
    order = [w.index(label) for label in y if label in w]
    kept = scale.reshape([n for i, n in enumerate(scale.shape) if w[i] in y])
    position = {axis: i for i, axis in enumerate(sorted(order))}
    transposed = kept.transpose([position[axis] for axis in order])
    return transposed.reshape(_scale_shape(einsum, scale.shape))


def int8_einsum(einsum: str, inputs: Tensor, kernel: Any, scale: Any) -> Tensor:
    """Return an einsum of floating-point inputs, which are quantized to int8, and an int8 kernel with its scale.

    The gradient is that of a product with the floating-point kernel, as Keras has it.
    """
    x, w, y = _labels(einsum, inputs.shape.rank)
    dtype = inputs.dtype
    reduced = [i for i, label in enumerate(x) if label not in y]
    aligned = [label for label in y if label in x]
    stretched = [i for i, label in enumerate(y) if label not in x]
    q = dispatch.to_tensor(kernel)
    kernel_scale = array.cast(dispatch.to_tensor(scale), dtype)

    @custom_gradient
    def product(inputs: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        greatest = math.reduce_max(math.abs(inputs), axis=reduced, keepdims=True)
        input_scale = LIMIT / (greatest + backend.epsilon())
        rounded = math.clip_by_value(math.round(inputs * input_scale), -LIMIT, LIMIT)
        sums = linalg.einsum(f"{x},{w}->{y}", array.cast(rounded, "int32"), array.cast(q, "int32"))
        kept = linalg.einsum(
            f"{''.join(c for c in x if c in y)}->{''.join(aligned)}", array.squeeze(input_scale, reduced)
        )
        for axis in stretched:
            kept = array.expand_dims(kept, axis)

        def gradient(upstream: Tensor) -> Tensor:
            return linalg.einsum(f"{y},{w}->{x}", upstream, array.cast(q, dtype) / _of_kernel(w, y, kernel_scale))

        return array.cast(sums, dtype) / (kept * kernel_scale), gradient

    result: Tensor = product(inputs)
    return result


def _of_kernel(w: str, y: str, scale: Tensor) -> Tensor:
    """Return a scale that is aligned with the output, with the axes of the kernel."""
    rank = scale.shape.rank or 0
    y = y[len(y) - rank :]
    kept = array.squeeze(scale, [i for i, label in enumerate(y) if label not in w])
    source = "".join(label for label in y if label in w)
    kept = linalg.einsum(f"{source}->{''.join(label for label in w if label in source)}", kept)
    for axis in (i for i, label in enumerate(w) if label not in source):
        kept = array.expand_dims(kept, axis)
    return kept
