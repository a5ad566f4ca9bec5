"""How layers keep and multiply weights as integers of 8 and 4 bits, and floats of 8.

Lives here: `Table`, a weight that is quantized; `WeightMode` and its kinds for integers and float8; `int8_einsum`.
Not here: codes chosen by calibration (calibrated_modes.py), layers (quantized_weights.py), quantizers
(../quantizers.py).

int8: q = round(w scale), a scale for each output channel; inputs are quantized in each call, by the greatest magnitude
of each row, and products of integers are summed exactly. int4: two integers a byte, with a scale for each channel, or
scales and zero points of blocks. float8: weights, inputs and gradients are rounded to float8 in each step, by scales of
their greatest magnitudes in the steps before.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...eager.tape import custom_gradient
from ...ops import array, dispatch, linalg, math
from ...ops.tensor import Tensor
from .. import quantization_functions as functions
from .. import quantizers

MATMUL = "...x,xy->...y"
"""The product of Dense."""


class Table(NamedTuple):
    """A weight that is quantized.

    name: of the weight; its scale is `name`_scale. attribute: of the layer. shape: of the floating-point weight.
    einsum: of its product with inputs; None: rows are looked up. packed: the axis of its matrix along which two
    integers of 4 bits share a byte
    """

    name: str
    attribute: str
    shape: tuple[int, ...]
    einsum: str | None
    packed: int = -1

    def matrix(self) -> tuple[int, int]:
        """Return the sizes of the weight as a matrix: summed axes by kept ones; of looked-up rows as it is."""
        if self.einsum is None:
            return self.shape[0], self.shape[1]
        summed = _reduced_axes(self.einsum, len(self.shape))
        rows = int(np.prod([n for i, n in enumerate(self.shape) if i in summed], dtype=np.int64))
        return rows, int(np.prod(self.shape, dtype=np.int64)) // rows

    @property
    def axis(self) -> int:
        """The axis of the matrix that has one scale: rows of products, columns of looked-up rows."""
        return 1 if self.einsum is None else 0


class WeightMode:
    """A way to quantize weights. Weights are attributes of the layer: the table's, `name`_scale and others of FILES."""

    files: tuple[str, ...] = ("{}", "bias", "{}_scale")
    """Names of a layer's weights in the order of Keras's files; of further tables those with {}, the table's name."""
    keeps_kernel = False
    """Whether the floating-point kernel stays."""

    def policy(self, layer: Any, config: Any) -> str:
        """Return the name of the mode in a policy."""
        return str(config.mode)

    def build(self, layer: Any, table: Table) -> None:
        """Create the weights of a table, before their values are known."""
        raise NotImplementedError(f"{type(self).__name__} must define build(layer, table)")

    def encoded(self, layer: Any, table: Table, values: np.ndarray) -> dict[str, np.ndarray]:
        """Return the values of the weights, by attribute, for those of a floating-point table."""
        raise NotImplementedError(f"{type(self).__name__} must define encoded(layer, table, values)")

    def decoded(self, layer: Any, table: Table) -> Tensor:
        """Return the floating-point table that the weights stand for, in the compute dtype."""
        raise NotImplementedError(f"{type(self).__name__} must define decoded(layer, table)")

    def product(self, layer: Any, table: Table, inputs: Tensor, plain: Callable[..., Tensor], training: Any) -> Tensor:
        """Return the product of inputs and a table; `plain` is that of floating-point ones."""
        return plain(rounded_inputs(layer, table.einsum or MATMUL, inputs), self.decoded(layer, table))

    def rows(self, layer: Any, table: Table, indices: Any) -> Tensor:
        """Return rows of a table."""
        raise NotImplementedError(f"{type(self).__name__} has no rows: only products are quantized")


class Int8(WeightMode):
    def build(self, layer: Any, table: Table) -> None:
        add_weight(layer, table.attribute, table.name, table.shape, "int8")
        scale = f"{table.name}_scale"
        add_weight(layer, scale, scale, _scale_shape(table.einsum, table.shape), None, "ones")

    def encoded(self, layer: Any, table: Table, values: np.ndarray) -> dict[str, np.ndarray]:
        axes = _reduced_axes(table.einsum, values.ndim)
        quantized, scale = _weight_quantizer(layer, functions.INT8)(values, axes, to_numpy=True)
        return {table.attribute: quantized.numpy(), f"{table.name}_scale": _of_output(table.einsum, scale.numpy())}

    def decoded(self, layer: Any, table: Table) -> Tensor:
        weight = array.cast(dispatch.to_tensor(getattr(layer, table.attribute)), layer.compute_dtype)
        scale = array.cast(dispatch.to_tensor(getattr(layer, f"{table.name}_scale")), layer.compute_dtype)
        if table.einsum is None:
            return weight / array.expand_dims(scale, -1)
        _, w, y = labels(table.einsum)
        return weight / _of_kernel(w, y, scale)

    def product(self, layer: Any, table: Table, inputs: Tensor, plain: Callable[..., Tensor], training: Any) -> Tensor:
        quantizer = layer.activation_quantizer(quantizers.AbsMaxQuantizer())
        if quantizer is None:
            return plain(inputs, self.decoded(layer, table))
        weight, scale = getattr(layer, table.attribute), getattr(layer, f"{table.name}_scale")
        return int8_einsum(table.einsum or "", inputs, weight, scale, quantizer)

    def rows(self, layer: Any, table: Table, indices: Any) -> Tensor:
        rows = array.cast(array.gather(getattr(layer, table.attribute), indices), layer.compute_dtype)
        scale = array.cast(array.gather(getattr(layer, f"{table.name}_scale"), indices), layer.compute_dtype)
        return rows / array.expand_dims(scale, -1)


class Int4(WeightMode):
    files = ("{}", "bias", "{}_scale", "{}_zero", "g_idx")

    def policy(self, layer: Any, config: Any) -> str:
        return f"{config.mode}/{config.block_size or -1}"

    def build(self, layer: Any, table: Table) -> None:
        sizes, block = list(table.matrix()), layer.block_size
        blocks = -(-sizes[table.axis] // block) if block else 0
        scales = (
            [sizes[1 - table.axis]] if not block else [n if i != table.axis else blocks for i, n in enumerate(sizes)]
        )
        count = sizes[table.axis]
        sizes[table.packed] = -(-sizes[table.packed] // 2)
        add_weight(layer, table.attribute, table.name, sizes, "int8")
        add_weight(layer, f"{table.name}_scale", f"{table.name}_scale", scales, None, "ones")
        if block:
            is_first = not table.name.startswith("reverse_")
            add_weight(layer, f"{table.name}_zero", f"{table.name}_zero", scales, "int8" if is_first else None)
            if is_first:
                add_weight(layer, "g_idx", "g_idx", [count], "float32")
                layer.g_idx.assign((np.arange(count) // block).astype(np.float32))

    def encoded(self, layer: Any, table: Table, values: np.ndarray) -> dict[str, np.ndarray]:
        matrix = values.reshape(table.matrix())
        names = [f"{table.name}_{part}" for part in ("scale", "zero")]
        if layer.block_size:
            turned = matrix.T if table.axis else matrix
            parts = functions.abs_max_quantize_grouped_with_zero_point(turned, layer.block_size)
            quantized, *others = (p.numpy().T if table.axis else p.numpy() for p in parts)
        else:
            quantizer = _weight_quantizer(layer, functions.INT4)
            whole, scale = (p.numpy() for p in quantizer(matrix, table.axis, to_numpy=True))
            quantized, others = whole, [np.squeeze(scale, table.axis)]
        packed, _, _ = functions.pack_int4(np.ascontiguousarray(quantized), table.packed)
        return {table.attribute: packed.numpy(), **dict(zip(names, others))}

    def integers(self, layer: Any, table: Table) -> Tensor:
        """Return the integers of a table, as a matrix."""
        length = table.matrix()[table.packed]
        return functions.unpack_int4(getattr(layer, table.attribute), length, table.packed)

    def decoded(self, layer: Any, table: Table) -> Tensor:
        matrix = self._scaled(layer, table, self.integers(layer, table), table.axis, lambda v: v)
        return array.reshape(matrix, table.shape)

    def rows(self, layer: Any, table: Table, indices: Any) -> Tensor:
        packed = array.gather(getattr(layer, table.attribute), indices)
        length = table.matrix()[1]
        return self._scaled(
            layer, table, functions.unpack_int4(packed, length, -1), -1, lambda v: array.gather(v, indices)
        )

    def _scaled(self, layer: Any, table: Table, whole: Tensor, axis: int, of: Callable[[Any], Any]) -> Tensor:
        """Return integers times scales; `of` selects those of rows."""
        dtype = layer.compute_dtype
        scale: Any = array.cast(of(dispatch.to_tensor(getattr(layer, f"{table.name}_scale"))), dtype)
        if layer.block_size:
            zero = of(dispatch.to_tensor(getattr(layer, f"{table.name}_zero")))
            blocks: Tensor = functions.dequantize_with_sz_map(whole, scale, zero, layer.g_idx, axis)
            return blocks
        return array.cast(whole, dtype) / array.expand_dims(scale, axis)


class Float8(WeightMode):
    """Products of weights, inputs and gradients that are rounded to float8."""

    keeps_kernel = True
    parts = ("inputs", "kernel", "outputs_grad")
    files = ("{}", "bias", *(f"{part}_{what}" for part in parts for what in ("scale", "amax_history")))

    def build(self, layer: Any, table: Table) -> None:
        layer._float_kernel(table)
        length = getattr(layer.dtype_policy, "amax_history_length", 1024)
        for part in self.parts:
            for what, shape, initializer in ("scale", (), "ones"), ("amax_history", (length,), "zeros"):
                name = f"{part}_{what}"
                weight = layer.add_weight(
                    name=name,
                    shape=shape,
                    dtype="float32",
                    initializer=initializer,
                    autocast=False,
                    overwrite_with_gradient=True,
                )
                setattr(layer, name, weight)

    def encoded(self, layer: Any, table: Table, values: np.ndarray) -> dict[str, np.ndarray]:
        return {table.attribute: values}

    def decoded(self, layer: Any, table: Table) -> Tensor:
        kernel: Tensor = layer._cast(getattr(layer, table.attribute))
        return kernel

    def product(self, layer: Any, table: Table, inputs: Tensor, plain: Callable[..., Tensor], training: Any) -> Tensor:
        if layer.lora_enabled:
            raise NotImplementedError("float8 products do not support LoRA: enable it on another mode")
        dtype = layer.compute_dtype
        operands = []
        for part, operand in ("inputs", inputs), ("kernel", self.decoded(layer, table)):
            state = [dispatch.to_tensor(getattr(layer, f"{part}_{what}")) for what in ("scale", "amax_history")]
            operands.append(_rounded_operand(operand, state[0], state[1], dtype, bool(training)))
        state = [dispatch.to_tensor(getattr(layer, f"outputs_grad_{what}")) for what in ("scale", "amax_history")]
        return _with_rounded_gradient(plain(*operands), state[0], state[1], dtype)


def _next_state(x: Any, scale: Any, history: Any, float8: str) -> tuple[Tensor, Tensor]:
    """Return the scale of the greatest magnitudes so far, and these with that of x."""
    new = functions.compute_float8_scale(math.reduce_max(history), scale, functions.FLOAT8[float8][2])
    return new, functions.compute_float8_amax_history(x, history)


def _rounded_operand(x: Tensor, scale: Tensor, history: Tensor, dtype: Any, training: bool) -> Tensor:
    """Return an operand rounded to float8; the gradients of its scale and history are their next values."""

    @custom_gradient
    def rounded(x: Tensor, scale: Tensor, history: Tensor) -> tuple[Tensor, Callable[..., Any]]:
        float8 = "float8_e4m3fn"
        state = _next_state(x, scale, history, float8) if training else (scale, history)
        return functions.quantize_and_dequantize(x, scale, float8, dtype), lambda upstream: (upstream, *state)

    result: Tensor = rounded(x, scale, history)
    return result


def _with_rounded_gradient(y: Tensor, scale: Tensor, history: Tensor, dtype: Any) -> Tensor:
    """Return an output whose gradient is rounded to float8; those of its scale and history are their next values."""

    @custom_gradient
    def passed(y: Tensor, scale: Tensor, history: Tensor) -> tuple[Tensor, Callable[..., Any]]:
        def gradient(upstream: Tensor) -> tuple[Any, ...]:
            float8 = "float8_e5m2"
            state = _next_state(upstream, scale, history, float8)
            return functions.quantize_and_dequantize(upstream, scale, float8, dtype), *state

        return array.identity(y), gradient

    result: Tensor = passed(y, scale, history)
    return result


def add_weight(layer: Any, attribute: str, name: str, shape: Any, dtype: Any, initializer: str = "zeros") -> None:
    weight = layer.add_weight(name=name, shape=tuple(shape), dtype=dtype, initializer=initializer, trainable=False)
    setattr(layer, attribute, weight)


def _weight_quantizer(layer: Any, value_range: tuple[int, int]) -> Any:
    own = getattr(layer.quantization_config, "weight_quantizer", None)
    return quantizers.AbsMaxQuantizer(value_range=value_range) if own is None else own


def rounded_inputs(layer: Any, einsum: str, inputs: Tensor) -> Tensor:
    """Return inputs rounded as the layer's quantizer does, if it has one; the gradient passes."""
    quantizer = layer.activation_quantizer(None)
    if quantizer is None:
        return inputs
    x, _, y = labels(einsum, inputs.shape.rank)
    whole, scale = quantizer(inputs, axis=tuple(i for i, label in enumerate(x) if label not in y))
    rounded = array.cast(whole, inputs.dtype) / array.cast(scale, inputs.dtype)
    return inputs + array.stop_gradient(rounded - inputs)


def labels(einsum: str, rank: int | None = None) -> tuple[str, str, str]:
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
    _, w, y = labels(einsum)
    return tuple(i for i, label in enumerate(w) if label not in y)


def _scale_shape(einsum: str | None, kernel: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of a scale in files: aligned with the output, of Dense and tables without axes of size 1."""
    if einsum is None:
        return (kernel[0],)
    _, w, y = labels(einsum)
    sizes = dict(zip(w, kernel))
    shape = tuple(sizes.get(label, 1) for label in y)
    return shape[-1:] if einsum == MATMUL else shape


def _of_output(einsum: str | None, scale: np.ndarray) -> np.ndarray:
    """Return a scale with the axes of the kernel, aligned with the output."""
    if einsum is None:
        return scale[:, 0]
    _, w, y = labels(einsum)
    order = [w.index(label) for label in y if label in w]
    kept = scale.reshape([n for i, n in enumerate(scale.shape) if w[i] in y])
    position = {axis: i for i, axis in enumerate(sorted(order))}
    transposed = kept.transpose([position[axis] for axis in order])
    return transposed.reshape(_scale_shape(einsum, scale.shape))


def int8_einsum(einsum: str, inputs: Tensor, kernel: Any, scale: Any, quantizer: Any) -> Tensor:
    """Return an einsum of floating-point inputs, which are quantized to integers, and an int8 kernel with its scale.

    The gradient is that of a product with the floating-point kernel, as Keras has it.
    """
    x, w, y = labels(einsum, inputs.shape.rank)
    dtype = inputs.dtype
    reduced = [i for i, label in enumerate(x) if label not in y]
    aligned = [label for label in y if label in x]
    stretched = [i for i, label in enumerate(y) if label not in x]
    q = dispatch.to_tensor(kernel)
    kernel_scale = array.cast(dispatch.to_tensor(scale), dtype)

    @custom_gradient
    def product(inputs: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        rounded, input_scale = quantizer(inputs, axis=tuple(reduced))
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
