"""Normalization of each example, and of kernels.

Lives here: LayerNormalization, RMSNormalization, GroupNormalization, UnitNormalization, SpectralNormalization.
Not here: batch normalization (batch_normalization.py), normalization by fixed statistics (preprocessing.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...ops import array, linalg, math
from ...ops import nn as ops_nn
from .. import initializers
from ..input_spec import InputSpec
from .configurable_layer import ConfigurableLayer, if_training
from .recurrent_wrappers import Wrapper

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


class _ShapePreserving(ConfigurableLayer):
    def compute_output_shape(self, input_shape: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the input shape. Raises ValueError for an axis out of range."""
        axis: Any = getattr(self, "axis", -1)
        for a in axis if isinstance(axis, (list, tuple)) else [axis]:
            if not -len(input_shape) <= a < len(input_shape):
                raise ValueError(
                    f"Axis {a} is out of bounds for input shape {tuple(input_shape)}. Received: axis={self.axis}"
                )
        return input_shape


def _widen_half(x: Tensor) -> Tensor:
    """Cast half-precision tensors to float32, whose squares do not overflow."""
    return array.cast(x, "float32") if x.dtype.name in ("float16", "bfloat16") else x


def _broadcast_weight(weight: Any, x: Any, axes: Sequence[int]) -> Any:
    """Reshape a weight so that it broadcasts along these axes of x."""
    rank = x.shape.rank
    weight = array.cast(weight, x.dtype)
    positive = [a % rank for a in axes]
    if positive == [rank - 1]:
        return weight
    return array.reshape(weight, [weight.shape[positive.index(i)] if i in positive else 1 for i in range(rank)])


def _axes_of(axis: Any) -> list[int]:
    return sorted(axis) if isinstance(axis, (list, tuple)) else [axis]


def _known_sizes(input_shape: Any, axes: Sequence[int], layer: str) -> tuple[int, ...]:
    sizes = tuple(input_shape[a] for a in axes)
    if None in sizes:
        raise ValueError(f"The sizes of axes {list(axes)} of the inputs of {layer} must be known; found {input_shape}")
    return sizes


class LayerNormalization(_ShapePreserving):
    """Normalization of each example to mean 0 and variance 1 along `axis`, then scale and shift (Ba et al. 2016).

    .. math:: y = gamma \\frac{x - \\mu}{\\sqrt{\\sigma^2 + epsilon}} + beta

    Weights: gamma and beta, of the sizes along `axis`. rms_scaling: divide by the deviation without centring, no beta.
    """

    def __init__(
        self,
        axis: Any = -1,
        epsilon: float = 0.001,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        self.rms_scaling = kwargs.pop("rms_scaling", False)
        super().__init__(**kwargs)
        if not isinstance(axis, (int, list, tuple)):
            raise TypeError(f"Expected an int or a list/tuple of ints for the argument 'axis', but received: {axis!r}")
        self._set_arguments(locals())
        if self.rms_scaling:
            self._argument_names = (*self._argument_names, "rms_scaling")
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Create gamma and beta."""
        shape = _known_sizes(input_shape, _axes_of(self.axis), "LayerNormalization")
        self.gamma = self._weight("gamma", shape) if self.scale or self.rms_scaling else None
        self.beta = self._weight("beta", shape) if self.center and not self.rms_scaling else None

    def call(self, inputs: Any) -> Any:
        """Return the normalized inputs."""
        x, axes = _widen_half(inputs), _axes_of(self.axis)
        if self.rms_scaling:
            y = x * math.rsqrt(math.reduce_variance(x, axis=axes, keepdims=True) + self.epsilon)
            return array.cast(y * _broadcast_weight(self.gamma, x, axes), self.compute_dtype)
        mean, variance = ops_nn.moments(x, axes, keepdims=True)
        gamma = None if self.gamma is None else _broadcast_weight(self.gamma, x, axes)
        beta = None if self.beta is None else _broadcast_weight(self.beta, x, axes)
        return array.cast(ops_nn.batch_normalization(x, mean, variance, beta, gamma, self.epsilon), self.compute_dtype)


class RMSNormalization(_ShapePreserving):
    """Division of each example by its root mean square along `axis`, then scaling (Zhang and Sennrich 2019).

    Weights: scale, of the sizes along `axis`.
    """

    def __init__(self, axis: Any = -1, epsilon: float = 1e-6, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._set_arguments(axis=axis, epsilon=epsilon)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Create the scale."""
        shape = _known_sizes(input_shape, _axes_of(self.axis), "RMSNormalization")
        self.scale = self.add_weight(name="scale", shape=shape, initializer="ones")

    def call(self, inputs: Any) -> Any:
        """Return the normalized inputs."""
        x, axes = _widen_half(inputs), _axes_of(self.axis)
        y = x * math.rsqrt(math.reduce_mean(math.square(x), axis=axes, keepdims=True) + self.epsilon)
        return array.cast(y * _broadcast_weight(self.scale, x, axes), self.compute_dtype)


class GroupNormalization(_ShapePreserving):
    """Normalization of groups of channels of each example to mean 0 and variance 1 (Wu and He 2018).

    groups: the number of groups; -1 for one per channel. Weights: gamma and beta, [channels].
    raises ValueError unless the channels divide evenly
    """

    groups: int

    def __init__(
        self,
        groups: int = 32,
        axis: int = -1,
        epsilon: float = 0.001,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if groups != -1 and groups <= 0:
            raise ValueError(
                "Received an invalid value for argument `groups`, expected a positive integer (or `-1` "
                f"for instance normalization). Received: groups={groups}"
            )
        self._set_arguments(locals())
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Create gamma and beta."""
        size = input_shape[self.axis]
        if size is None:
            raise ValueError(
                f"Axis {self.axis} of input tensor should have a defined dimension but the layer "
                f"received an "
                f"input with shape {input_shape}."
            )
        if self.groups == -1:
            self.groups = size
        if size < self.groups:
            raise ValueError(f"Number of groups ({self.groups}) cannot be more than the number of channels ({size}).")
        if size % self.groups:
            raise ValueError(f"Number of groups ({self.groups}) must be a multiple of the number of channels ({size}).")
        self.input_spec = InputSpec(ndim=len(input_shape), axes={self.axis: size})
        self.gamma = self._weight("gamma", (size,)) if self.scale else None
        self.beta = self._weight("beta", (size,)) if self.center else None

    def call(self, inputs: Any) -> Tensor:
        """Return the normalized inputs."""
        x = _widen_half(inputs)
        rank = len(inputs.shape)
        axis = self.axis % rank
        runtime_shape = array.shape(x)
        dims = [runtime_shape[i] if d is None else d for i, d in enumerate(x.shape)]
        inside = x.shape[axis] // self.groups
        parted = array.reshape(x, [*dims[:axis], self.groups, inside, *dims[axis + 1 :]])
        axes = [i for i in range(1, rank + 1) if i != axis]
        mean, variance = ops_nn.moments(parted, axes, keepdims=True)
        along = [1] * (rank + 1)
        along[axis : axis + 2] = [self.groups, inside]
        gamma, beta = (
            None if w is None else array.reshape(array.cast(w, x.dtype), along) for w in (self.gamma, self.beta)
        )
        y = ops_nn.batch_normalization(parted, mean, variance, beta, gamma, self.epsilon)
        return array.cast(array.reshape(y, dims), self.compute_dtype)


class UnitNormalization(_ShapePreserving):
    """Division of each example by its Euclidean length along `axis`."""

    def __init__(self, axis: Any = -1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(axis, (int, list, tuple)):
            raise TypeError(
                f"Invalid value for `axis` argument: expected an int or a list/tuple of ints. Received: axis={axis}"
            )
        self._set_arguments(axis=list(axis) if isinstance(axis, (list, tuple)) else axis)
        self.supports_masking = True
        self.built = True

    def call(self, inputs: Any) -> Tensor:
        """Return the normalized inputs."""
        return linalg.l2_normalize(inputs, axis=self.axis, epsilon=1e-12**2)


class SpectralNormalization(Wrapper):
    """Wrapper that divides the kernel by its largest singular value in training (Miyato et al. 2018).

    power_iterations: the number of power iterations per call. Weights: vector_u, then the layer's.
    raises ValueError for a layer without kernel or embeddings
    """

    def __init__(self, layer: Any, power_iterations: int = 1, **kwargs: Any) -> None:
        super().__init__(layer, **kwargs)
        if power_iterations <= 0:
            raise ValueError(
                f"`power_iterations` should be greater than zero. Received: `power_iterations={power_iterations}`"
            )
        self._set_arguments(power_iterations=power_iterations)

    def build(self, input_shape: Any = None) -> None:
        """Build the wrapped layer, and create vector_u."""
        super().build(input_shape)
        self.input_spec = InputSpec(min_ndim=1, axes={-1: input_shape[-1]})
        kernel = getattr(self.layer, "_kernel", None)
        if kernel is None:
            kernel = getattr(self.layer, "kernel", None)
        if kernel is None or not hasattr(kernel, "assign"):
            raise ValueError(f"{type(self.layer).__name__} object has no attribute 'kernel' nor 'embeddings'")
        self.kernel = kernel
        self.vector_u = self.add_weight(
            name="vector_u",
            shape=(1, kernel.shape[-1]),
            dtype=kernel.dtype,
            trainable=False,
            initializer=initializers.TruncatedNormal(stddev=0.02),
        )

    def call(self, inputs: Any, training: Any = False) -> Any:
        """Normalize the kernel in training, and call the wrapped layer."""

        def update() -> Tensor:
            u, kernel = self.normalized_weights()
            zero = math.reduce_all(math.equal(self.kernel, 0.0))
            self.vector_u.assign(array.where(zero, self.vector_u, u))
            self.kernel.assign(array.where(zero, self.kernel, kernel))
            return array.identity(True)

        if_training(training, update, lambda: array.identity(True))
        return array.cast(self.layer(inputs), inputs.dtype)

    def normalized_weights(self) -> tuple[Any, Any]:
        """Return the updated vector_u, and the kernel divided by its largest singular value (power iteration)."""
        weights = array.reshape(self.kernel, [-1, self.kernel.shape[-1]])
        u = v = array.identity(self.vector_u)
        for _ in range(self.power_iterations):
            v = _unit(linalg.matmul(u, weights, transpose_b=True))
            u = _unit(linalg.matmul(v, weights))
        u, v = array.stop_gradient(u), array.stop_gradient(v)
        sigma = linalg.matmul(linalg.matmul(v, weights), u, transpose_b=True)
        return u, array.reshape(self.kernel / sigma, self.kernel.shape.as_list())

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Return the output shape of the wrapped layer."""
        return self.layer.compute_output_shape(input_shape)


def _unit(x: Tensor) -> Tensor:
    return x * math.rsqrt(math.maximum(math.reduce_sum(math.square(x)), 1e-12))
