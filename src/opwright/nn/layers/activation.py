"""Activation layers.

Lives here: Activation, ReLU, LeakyReLU, PReLU, ELU, Softmax.  Not here: the functions (../activations.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes

from ...autograph.api import convert_if_enabled
from ...ops import array
from .. import activations
from ..layer import Layer
from ..layer_calls import InputSpec
from .configurable_layer import ConfigurableLayer

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


class _Elementwise(ConfigurableLayer):
    """Layer whose output has the shape of its input."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def compute_output_shape(self, input_shape: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the input shape."""
        return input_shape


class Activation(_Elementwise):
    """Activation by name, or any function of a tensor."""

    def __init__(self, activation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._set_arguments(activation=activation)
        self._build_at_init()

    def call(self, inputs: Tensor) -> Tensor:
        """Return activation(inputs)."""
        outputs: Tensor = convert_if_enabled(self.activation)(inputs)
        return outputs

    def compute_output_shape(self, input_shape: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the input shape for element-wise functions, else the inferred shape."""
        functions = activations.REGISTRY.members.values()
        if self.activation in functions and self.activation is not activations.glu:
            return input_shape
        output_shape: tuple[Any, ...] = Layer.compute_output_shape(self, input_shape)
        return output_shape


def _at_least_0(layer: str, **values: Any) -> None:
    for name, value in values.items():
        if value is None or value < 0:
            raise ValueError(f"{name} of a {layer} layer cannot be None or a negative value. Received: {name}={value}")


class ReLU(_Elementwise):
    """Layer of min(x, max_value) where x >= threshold, else negative_slope (x - threshold).

    raises ValueError for arguments below zero
    """

    def __init__(
        self, max_value: float | None = None, negative_slope: float = 0.0, threshold: float = 0.0, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if max_value is not None and max_value < 0:
            raise ValueError(f"max_value of a ReLU layer cannot be a negative value. Received: max_value={max_value}")
        _at_least_0("ReLU", negative_slope=negative_slope, threshold=threshold)
        self._set_arguments(max_value=max_value, negative_slope=negative_slope, threshold=threshold)
        self._build_at_init()

    def call(self, inputs: Tensor) -> Tensor:
        """Apply the activation."""
        return activations.relu(inputs, self.negative_slope, self.max_value, self.threshold)


class LeakyReLU(_Elementwise):
    """Layer of x where x > 0, else negative_slope x. Raises ValueError for a negative slope."""

    def __init__(self, negative_slope: float = 0.3, **kwargs: Any) -> None:
        negative_slope = kwargs.pop("alpha", negative_slope)  # the name in Keras 2
        super().__init__(**kwargs)
        _at_least_0("Leaky ReLU", negative_slope=negative_slope)
        self._set_arguments(negative_slope=negative_slope)
        self._build_at_init()

    def call(self, inputs: Tensor) -> Tensor:
        """Apply the activation."""
        return activations.leaky_relu(inputs, self.negative_slope)


class ELU(_Elementwise):
    """Layer of x where x > 0, else alpha (exp(x) - 1)."""

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._set_arguments(alpha=alpha)
        self._build_at_init()

    def call(self, inputs: Any) -> Tensor:
        """Apply the activation."""
        return activations.elu(inputs, self.alpha)


class PReLU(_Elementwise):
    """Layer of x where x > 0, else alpha x, with a trained alpha per position (He et al. 2015).

    shared_axes: axes that share one alpha. Weights: alpha, of the input's shape without the batch.
    """

    def __init__(
        self,
        alpha_initializer: Any = "Zeros",
        alpha_regularizer: Any = None,
        alpha_constraint: Any = None,
        shared_axes: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if shared_axes is not None:
            shared_axes = list(shared_axes) if isinstance(shared_axes, (list, tuple)) else [shared_axes]
        self._set_arguments(locals())

    def build(self, input_shape: Any) -> None:
        """Create alpha."""
        shared = self.shared_axes or ()
        self.alpha = self._weight("alpha", [1 if i in shared else d for i, d in enumerate(input_shape)][1:])
        axes = {i: d for i, d in enumerate(input_shape) if i and i not in shared} if shared else {}
        self.input_spec = InputSpec(ndim=len(input_shape), axes=axes)

    def call(self, inputs: Tensor) -> Tensor:
        """Apply the activation."""
        return activations.relu(inputs) - self._cast(self.alpha) * activations.relu(-inputs)


class Softmax(_Elementwise):
    """Layer of exp(x) divided by its sum along one axis or several; 0 at masked positions."""

    def __init__(self, axis: Any = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._set_arguments(axis=axis)
        self._build_at_init()

    def call(self, inputs: Any, mask: Any = None) -> Tensor:
        """Apply softmax. mask: bool, or > 0.5 for true; it broadcasts to the inputs."""
        if mask is None:
            return activations.softmax(inputs, self.axis)
        if not _broadcasts_to(mask.shape, inputs.shape):
            raise ValueError(
                "The `mask` must be broadcastable to `inputs` and must not have more dimensions. "
                "Received: "
                f"inputs.shape={inputs.shape}, mask.shape={mask.shape}"
            )
        if mask.dtype.name != "bool":
            mask = mask > 0.5
        low = array.cast(large_negative(inputs.dtype), inputs.dtype)
        y = activations.softmax(array.where(mask, inputs, low), self.axis)
        return array.where(mask, y, array.zeros_like(y))


def _broadcasts_to(mask: Any, shape: Any) -> bool:
    """Return whether a mask of a shape may broadcast to another shape, as far as both are known."""
    if mask.rank is None or shape.rank is None:
        return True
    pairs = zip(mask.dims[::-1], shape.dims[::-1])
    return mask.rank <= shape.rank and all(m in (1, None) or s in (m, None) for m, s in pairs)


def large_negative(dtype: Any) -> float:
    """Return a number whose exponential is 0, with headroom for additions."""
    return -3e4 if dtype.name == "float16" else max(-1e9, float(ml_dtypes.finfo(dtype.np).min))
