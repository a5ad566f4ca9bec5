"""Core layers.

Lives here: Dense, EinsumDense, Embedding, Lambda, Masking, Identity.  Not here: InputLayer (../network.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...autograph.api import convert_if_enabled
from ...core import nest
from ...core.introspection import signature_of
from ...ops import array, dispatch, linalg, math
from .. import initializers, model_config
from ..function_code import SafeModeScope
from ..layer_calls import InputSpec, set_mask
from .configurable_layer import ConfigurableLayer
from .quantization_modes import MATMUL
from .quantized_weights import QuantizedWeights

if TYPE_CHECKING:
    from ...eager.variable import Variable
    from ...ops.tensor import Tensor
    from ..layer_calls import Masks


class Dense(QuantizedWeights, ConfigurableLayer):
    """Fully connected layer: activation(inputs @ kernel + bias), over the last axis.

    units: the size of the output's last axis. inputs: [batch, ..., n]; output: [batch, ..., units]. Weights: kernel
    [n, units], bias [units]. lora_rank: train only a low-rank product that is added to the kernel.
    raises ValueError for units < 1
    """

    _einsum = MATMUL

    def __init__(
        self,
        units: int,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        lora_rank: int | None = None,
        lora_alpha: float | None = None,
        quantization_config: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        if not isinstance(units, int) or units < 1:
            raise ValueError(
                f"Received an invalid value for `units`, expected a positive integer. Received: units={units}"
            )
        self._set_arguments(locals(), omit=("lora_rank", "lora_alpha", "quantization_config", "activity_regularizer"))
        self._init_lora(lora_rank, lora_alpha, quantization_config)
        self.input_spec = InputSpec(min_ndim=2)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Create kernel and bias."""
        size = input_shape[-1]
        if size is None:
            raise ValueError(
                f"The last dimension of the inputs to a Dense layer should be defined. Found {input_shape}"
            )
        self._build_kernel((size, self.units))
        self.bias = self._weight("bias", (self.units,)) if self.use_bias else None
        self.input_spec = InputSpec(min_ndim=2, axes={-1: size})
        self._build_quantized()
        self._build_lora()

    def call(self, inputs: Any, training: Any = None) -> Tensor:
        """Return activation(inputs @ kernel + bias)."""
        rank = inputs.shape.rank
        plain = linalg.matmul if rank == 2 else lambda x, kernel: linalg.tensordot(x, kernel, [[rank - 1], [0]])
        y = self._product(inputs, plain, training)
        if self.bias is not None:
            y = y + self._cast(self.bias)
        return y if self.activation is None else self.activation(y)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the input shape with the last size `units`."""
        return (*input_shape[:-1], self.units)


class EinsumDense(QuantizedWeights, ConfigurableLayer):
    """Einsum of inputs and a kernel, with bias and activation.

    equation: such as "abc,cd->abd" or "...x,xy->...y". output_shape: the output shape without the batch, None for sizes
    inferred from the input. bias_axes: the output axes of the bias, such as "d"; None: no bias.
    raises ValueError for an equation of another form, or one that does not match the shapes
    """

    kernel_initializer: Any

    def __init__(
        self,
        equation: str,
        output_shape: Any,
        activation: Any = None,
        bias_axes: str | None = None,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        lora_rank: int | None = None,
        lora_alpha: float | None = None,
        gptq_unpacked_column_size: int | None = None,
        quantization_config: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.partial_output_shape = (output_shape,) if isinstance(output_shape, int) else tuple(output_shape)
        self._set_arguments(
            locals(),
            omit=("output_shape", "lora_rank", "lora_alpha", "gptq_unpacked_column_size", "quantization_config"),
            activity_regularizer=kwargs.get("activity_regularizer"),
        )
        self._init_lora(lora_rank, lora_alpha, quantization_config)

    def build(self, input_shape: Any) -> None:
        """Create kernel and bias."""
        plan = _EinsumPlan(self.equation, self.bias_axes, input_shape, self.partial_output_shape)
        self.input_spec = InputSpec(ndim=len(input_shape))
        initializer: Any = self.kernel_initializer
        if isinstance(initializer, initializers.VarianceScaling) and None in (
            initializer.input_axes,
            initializer.output_axes,
        ):
            config = {**initializer.get_config(), "input_axes": plan.input_axes, "output_axes": plan.output_axes}
            self.kernel_initializer = type(initializer).from_config(config)
        self._einsum = self.equation
        self._build_kernel(plan.kernel)
        self.bias = None if plan.bias is None else self._weight("bias", plan.bias)
        self._build_quantized()
        self.kernel_initializer = initializer
        self._build_lora()

    def call(self, inputs: Tensor, training: Any = None) -> Tensor:
        """Return activation(einsum(equation, inputs, kernel) + bias)."""
        y = self._product(inputs, lambda x, kernel: linalg.einsum(self.equation, x, kernel), training)
        if self.bias is not None:
            y = y + self._cast(self.bias)
        return y if self.activation is None else self.activation(y)

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the output shape; unspecified sizes come from the input."""
        return tuple(_EinsumPlan(self.equation, self.bias_axes, input_shape, self.partial_output_shape).output)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""
        return {**super().get_config(), "output_shape": self.partial_output_shape}


class _EinsumPlan:
    """Shapes of an EinsumDense's kernel, bias and output, and the fan axes of the kernel."""

    FORMS = r"(\.\.\.)?([a-zA-Z]+)(\.\.\.)?,([a-zA-Z]+)->(\.\.\.)?([a-zA-Z]+)(\.\.\.)?"

    def __init__(self, equation: str, bias_axes: str | None, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        match = re.fullmatch(self.FORMS, equation.replace(" ", ""))
        left, x, right, w, out_left, y, out_right = match.groups() if match else (None,) * 7
        if x is None or w is None or y is None or left != out_left or right != out_right or (left and right):
            raise ValueError(
                f"Invalid einsum equation '{equation}'. Equations must be in the form [X],[Y]->[Z], "
                "...[X],[Y]->...[Z], or [X]...,[Y]->[Z]...."
            )
        elided = len(inputs) - len(x)
        dims = list(inputs)
        if left:
            self.output = [*dims[: max(elided, 1)], *outputs]
            of_input = dict(zip(x, dims[elided:]))
            of_output = dict(zip(y, self.output[elided:]))
        else:
            self.output = [dims[0], *outputs, *(dims[len(dims) - elided :] if elided > 0 else ())]
            of_input, of_output = dict(zip(x, dims)), dict(zip(y, self.output))
        for label in y:
            if label not in x and label not in w:
                raise ValueError(
                    f"Dimension '{label}' was specified in the output '{y}' but has no corresponding dim "
                    f"in "
                    f"the input spec '{x}' or weight spec '{w}'"
                )
        for label, size in of_input.items():
            output_size = of_output.get(label)
            if output_size is not None and size is not None and output_size != size:
                raise ValueError(
                    f"Input shape and output shape do not match at shared dimension '{label}'. Input "
                    f"shape "
                    f"is {size}, and output shape is {output_size}."
                )
        offset = max(elided, 0) if left else 0
        for i, label in enumerate(y):  # unspecified sizes are the input's
            if of_output.get(label) is None and label in of_input:
                of_output[label] = self.output[offset + i] = of_input[label]
        self.kernel: list[Any] = []
        self.input_axes: list[int] = []
        self.output_axes: list[int] = []
        for i, label in enumerate(w):
            if label not in of_output and label not in of_input:
                raise ValueError(
                    f"Weight dimension '{label}' did not have a match in either the input spec '{x}' or "
                    f"the "
                    f"output spec '{y}'. For this layer, the weight must be fully specified."
                )
            (self.output_axes if label in of_output else self.input_axes).append(i)
            self.kernel.append(of_output.get(label) if label in of_output else of_input[label])
        self.bias: list[Any] | None = None
        if bias_axes is not None:
            absent = [c for c in bias_axes if c not in y]
            if absent:
                raise ValueError(
                    f"Bias dimension '{absent[0]}' was requested, but is not part of the output spec '{y}'"
                )
            first = min(y.find(c) for c in bias_axes)
            self.bias = [of_output[c] if c in bias_axes else 1 for c in y[first:]]
            if not left:
                self.bias += [1] * max(elided, 0)


class Embedding(QuantizedWeights, ConfigurableLayer):
    """Trained table that maps integers to rows.

    input_dim: the number of rows; output_dim: the length of a row. inputs: [batch, ...]; output: [batch, ...,
    output_dim]. mask_zero: whether 0 is padding, which is masked. Weights: embeddings [input_dim, output_dim].
    """

    _lora_kernel = "embeddings"
    _quantization_modes = ("int8", "int4")

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        weights: Any = None,
        lora_rank: int | None = None,
        lora_alpha: float | None = None,
        quantization_config: Any = None,
        **kwargs: Any,
    ) -> None:
        kwargs.pop("input_length", None)  # an argument of Keras 2 without effect
        super().__init__(**kwargs)
        for key, value in (("input_dim", input_dim), ("output_dim", output_dim)):
            if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value <= 0:
                raise ValueError(
                    f"`{key}` must be a positive integer. Received: {key}={value!r} (of type {type(value).__name__})."
                )
        self._set_arguments(
            locals(),
            omit=("weights", "lora_rank", "lora_alpha", "quantization_config"),
            activity_regularizer=kwargs.get("activity_regularizer"),
        )
        self._init_lora(lora_rank, lora_alpha, quantization_config)
        self.supports_masking = mask_zero
        self.autocast = False
        if weights is not None:
            self.build()
            self.built = True
            self.set_weights(weights if isinstance(weights, list) else [weights])

    def build(self, input_shape: Any = None) -> None:
        """Create the embedding table."""
        self._build_kernel((self.input_dim, self.output_dim))
        self._build_quantized()
        self._build_lora()

    @property
    def embeddings(self) -> Tensor | Variable:
        """The table, including the low-rank product if LoRA is enabled."""
        table: Tensor | Variable = self._effective_kernel()
        return table

    def call(self, inputs: Any) -> Tensor:
        """Look up the rows."""
        inputs = dispatch.to_tensor(inputs)
        if inputs.dtype.name not in ("int32", "int64"):
            inputs = array.cast(inputs, "int32")
        return self._rows(inputs)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Tensor | None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return inputs != 0 if mask_zero, else None."""
        return math.not_equal(inputs, 0) if self.mask_zero else None

    def compute_output_shape(self, input_shape: Any) -> tuple[Any, ...]:
        """Return the input shape followed by output_dim."""
        return (*input_shape, self.output_dim)


class Lambda(ConfigurableLayer):
    """Function as a layer.

    function: of the inputs, and of `mask` and `training` if it has such parameters. output_shape: without the batch, or
    a function of the input shape; inferred by default. mask: of the output, or a function of inputs and mask.
    arguments: further keyword arguments. The layer does not track variables of the function.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        output_shape: Any = None,
        mask: Masks | Callable[[Any, Any], Masks] = None,
        arguments: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.arguments = arguments or {}
        self.function, self.mask, self._output_shape = function, mask, output_shape
        parameters = signature_of(function).parameters
        self._passes = [name for name in ("mask", "training") if name in parameters]
        self.supports_masking = mask is not None

    def call(self, inputs: Any, mask: Any = None, training: Any = None) -> Any:
        """Return the function's result."""
        extra = {"mask": mask, "training": training}
        return convert_if_enabled(self.function)(
            inputs, **self.arguments, **{name: extra[name] for name in self._passes}
        )

    def compute_mask(self, inputs: Any, mask: Any = None) -> Masks:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the mask, or the result of the mask function."""
        return self.mask(inputs, mask) if callable(self.mask) else self.mask

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Return output_shape, or the shape inferred by tracing the function."""
        if self._output_shape is None:
            return super().compute_output_shape(input_shape)
        if callable(self._output_shape):
            return self._output_shape(input_shape)
        return (nest.flatten(input_shape)[0], *self._output_shape)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments, with functions as their names or, of a lambda, its code (../function_code.py)."""
        functions = {"function": self.function, "output_shape": self._output_shape, "mask": self.mask}
        return {
            **super().get_config(),
            **{key: model_config.plain_value(value) for key, value in functions.items()},
            "arguments": model_config.plain_value(self.arguments),
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None, safe_mode: bool | None = None
    ) -> Lambda:
        """Return the layer of a configuration. Raises ValueError for code in safe mode."""
        with SafeModeScope(safe_mode):
            arguments = config.get("arguments") or {}
            config = {**config, **cls._base_arguments(config), "arguments": None}
            config = {k: model_config.deserialize(v, custom_objects) for k, v in config.items()}
            config["arguments"] = {k: model_config.deserialize(v, custom_objects) for k, v in arguments.items()}
            return cls(**config)


class Masking(ConfigurableLayer):
    """Masking of steps whose features all equal mask_value; they are set to 0.

    inputs: [batch, steps, features].
    """

    def __init__(self, mask_value: float = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._set_arguments(mask_value=mask_value)
        self.supports_masking = True
        self._build_at_init()

    def compute_mask(self, inputs: Any, mask: Any = None) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return where any feature differs from mask_value."""
        return math.reduce_any(self._differs_from_mask_value(inputs), axis=-1)

    def _differs_from_mask_value(self, inputs: Any) -> Tensor:
        inputs = dispatch.to_tensor(inputs)
        return math.not_equal(inputs, array.cast(self.mask_value, inputs.dtype))

    def call(self, inputs: Any) -> Tensor:
        """Return the inputs, with masked steps set to 0."""
        unmasked = math.reduce_any(self._differs_from_mask_value(inputs), axis=-1, keepdims=True)
        outputs = array.where(unmasked, inputs, array.zeros_like(inputs))
        set_mask(outputs, array.squeeze(unmasked, [-1]))
        return outputs

    def compute_output_shape(self, input_shape: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the input shape."""
        return input_shape


class Identity(ConfigurableLayer):
    """Layer that returns its inputs."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self._build_at_init()

    def call(self, inputs: Tensor) -> Tensor:
        """Return the inputs."""
        return inputs

    def compute_output_shape(self, input_shape: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the input shape."""
        return input_shape
