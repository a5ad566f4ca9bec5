"""Normalization of batches and of each example.

Lives here: BatchNormalization, with batch renormalization and moving averages for inference; LayerNormalization,
RMSNormalization, GroupNormalization, UnitNormalization.
Not here: normalization by fixed statistics (preprocessing.py), of kernels (wrappers.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core import replicas
from ...ops import array, linalg, math
from ...ops import nn as ops_nn
from .. import backend
from ..layer_calls import InputSpec
from .configurable_layer import ConfigurableLayer, if_training

if TYPE_CHECKING:
    from ...eager.variable import Variable
    from ...ops.tensor import Tensor


class BatchNormalization(ConfigurableLayer):
    """Normalization of each channel to mean 0 and variance 1, then scale and shift (Ioffe and Szegedy 2015).

    .. math:: y = gamma \\frac{x - \\mu}{\\sqrt{\\sigma^2 + epsilon}} + beta

    In training mu and sigma^2 are the batch statistics over all axes but `axis`, and update the moving averages:
    moving = momentum * moving + (1 - momentum) * batch. Otherwise, and if `trainable` is False, they are the moving
    averages. mask: [batch, ...], of one dimension less than the inputs: positions that count in the statistics.
    renorm: correct the batch statistics toward the moving averages in training (Ioffe 2017), within renorm_clipping
    ("rmin", "rmax", "dmax"). synchronized: inside of `distribute.MultiWorker` the batch statistics are
    those of the batches of all workers.
    Weights: gamma, beta, moving_mean, moving_variance, each [channels].
    """

    def __init__(
        self,
        axis: int = -1,
        momentum: float = 0.99,
        epsilon: float = 0.001,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        moving_mean_initializer: Any = "zeros",
        moving_variance_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        renorm: bool = False,
        renorm_clipping: Any = None,
        renorm_momentum: float = 0.99,
        synchronized: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        clipping = renorm_clipping or {}
        if renorm and set(clipping) - {"rmax", "rmin", "dmax"}:
            raise ValueError(
                "Received invalid keys for `renorm_clipping` argument: "
                f"{renorm_clipping}. Supported values: ['rmax', 'rmin', 'dmax']."
            )
        if renorm and clipping.get("rmin", 0.0) > clipping.get("rmax", float("inf")):
            raise ValueError(f"rmax should be greater than rmin in `renorm_clipping`. Received: {renorm_clipping}")
        if renorm and clipping.get("dmax", 0.0) < 0:
            raise ValueError(f"dmax should be non-negative in `renorm_clipping`. Received: {renorm_clipping}")
        self._set_arguments(
            locals(),
            omit=("renorm", "renorm_clipping", "renorm_momentum"),
            axis=int(axis),
            momentum=float(momentum),
            epsilon=float(epsilon),
        )
        self.renorm, self.renorm_clipping, self.renorm_momentum = renorm, clipping, renorm_momentum
        if renorm:
            self._argument_names = (*self._argument_names, "renorm", "renorm_clipping", "renorm_momentum")
        self.gamma: Variable | None = None
        self.beta: Variable | None = None
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Create the weights."""
        size = input_shape[self.axis]
        if size is None:
            raise ValueError(f"Axis {self.axis} of the inputs of BatchNormalization must be known; found {input_shape}")
        if self.scale:
            self.gamma = self._weight("gamma", (size,))
        if self.center:
            self.beta = self._weight("beta", (size,))
        self.moving_mean = self._statistic("moving_mean", size, self.moving_mean_initializer)
        self.moving_variance = self._statistic("moving_variance", size, self.moving_variance_initializer)
        if self.renorm:

            def deviation(shape: Any, dtype: Any = None) -> Tensor:
                return math.sqrt(self.moving_variance_initializer(shape, dtype=dtype))

            self.moving_stddev = self._statistic("moving_stddev", size, deviation)
            self.renorm_mean = self._statistic("renorm_mean", size, self.moving_mean_initializer)
            self.renorm_stddev = self._statistic("renorm_stddev", size, deviation)
        self.input_spec = InputSpec(ndim=len(input_shape), axes={self.axis: size})
        axes = list(range(len(input_shape)))
        del axes[self.axis]
        self._axes = tuple(axes)

    def _statistic(self, name: str, size: int, initializer: Any) -> Variable:
        return self.add_weight(name=name, shape=(size,), initializer=initializer, trainable=False)

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Tensor:
        """Return the normalized inputs."""
        if mask is not None and mask.shape.rank != inputs.shape.rank - 1:
            raise ValueError(
                "The mask provided should be one dimension less than the inputs. Received: "
                f"mask.shape={mask.shape}, inputs.shape={inputs.shape}"
            )
        dtype = inputs.dtype
        if dtype.name in ("float16", "bfloat16"):  # their squares overflow
            inputs = array.cast(inputs, "float32")
        if not self.trainable:
            training = False
        y = if_training(
            training, lambda: self._normalize_by_batch(inputs, mask), lambda: self._normalize_by_averages(inputs)
        )
        return y if y.dtype.name == self.compute_dtype else array.cast(y, self.compute_dtype)

    def _normalize_by_averages(self, x: Tensor) -> Tensor:
        mean, variance = (array.cast(v, x.dtype) for v in (self.moving_mean, self.moving_variance))
        return self._apply(x, mean, variance, *self._affine(x.dtype))

    def _normalize_by_batch(self, x: Tensor, mask: Tensor | None) -> Tensor:
        mean, variance = self._joint_moments(x, mask) if self.synchronized else self._moments(x, mask)
        gamma, beta = self._affine(x.dtype)
        if self.renorm:
            gamma, beta = self._renormalize(mean, variance, gamma, beta)
        else:
            self._update_average(self.moving_mean, mean, self.momentum)
            self._update_average(self.moving_variance, variance, self.momentum)
        return self._apply(x, mean, variance, gamma, beta)

    def _affine(self, dtype: Any) -> tuple[Any, Any]:
        return tuple(None if v is None else array.cast(v, dtype) for v in (self.gamma, self.beta))  # type: ignore[return-value]

    def _apply(self, x: Any, mean: Any, variance: Any, gamma: Any, beta: object) -> Tensor:
        if self.axis not in (-1, x.shape.rank - 1):
            along = [1] * x.shape.rank
            along[self.axis] = -1
            mean, variance, gamma, beta = (
                v if v is None else array.reshape(v, along) for v in (mean, variance, gamma, beta)
            )
        return ops_nn.batch_normalization(x, mean, variance, beta, gamma, self.epsilon)

    def _joint_moments(self, x: Any, mask: Any) -> tuple[Any, Any]:
        """Return the moments of the batches of all workers."""
        mean, variance = self._moments(x, mask)
        replica = replicas.current()
        if replica is None:
            return mean, variance
        positions = array.size(x) // array.size(mean)
        count = array.cast(positions if mask is None else math.reduce_sum(array.cast(mask, "int32")), mean.dtype)
        return replica.batch_moments(mean, variance, count)

    def _moments(self, x: Any, mask: Any) -> tuple[Any, Any]:
        if mask is None:
            return ops_nn.moments(x, self._axes)
        weights = array.broadcast_to(array.expand_dims(array.cast(mask, x.dtype), -1), array.shape(x))
        count = math.reduce_sum(weights, axis=self._axes, keepdims=True) + backend.epsilon()
        mean = math.reduce_sum(weights * x, axis=self._axes, keepdims=True) / count
        distance = math.square(weights * x - mean)
        variance = math.reduce_sum(weights * distance, axis=self._axes, keepdims=True) / count
        return array.squeeze(mean, self._axes), array.squeeze(variance, self._axes)

    def _update_average(self, average: Any, value: Any, momentum: float) -> None:
        old = array.cast(average, value.dtype)
        average.assign(array.cast(old * momentum + value * (1.0 - momentum), average.dtype))

    def _renormalize(self, mean: Any, variance: Any, gamma: Any, beta: Any) -> tuple[Any, Any]:
        """Return scale and offset that correct the batch statistics toward the moving ones (batch renormalization)."""
        deviation = math.sqrt(variance + self.epsilon)
        expected = math.maximum(array.cast(self.renorm_stddev, mean.dtype), self.epsilon**0.5)
        r = deviation / expected
        d = (mean - array.cast(self.renorm_mean, mean.dtype)) / expected
        clip = self.renorm_clipping
        if clip.get("rmin") is not None:
            r = math.maximum(r, float(clip["rmin"]))
        if clip.get("rmax") is not None:
            r = math.minimum(r, float(clip["rmax"]))
        if clip.get("dmax") is not None:
            d = math.clip_by_value(d, -float(clip["dmax"]), float(clip["dmax"]))
        r, d = array.stop_gradient(r), array.stop_gradient(d)
        scale, offset = (r, d) if gamma is None else (r * gamma, d * gamma)
        self._update_average(self.renorm_mean, mean, self.renorm_momentum)
        self._update_average(self.renorm_stddev, deviation, self.renorm_momentum)
        self._update_average(self.moving_mean, mean, self.momentum)
        self._update_average(self.moving_stddev, deviation, self.momentum)
        moving_stddev = self.moving_stddev.value()
        self.moving_variance.assign(ops_nn.relu(moving_stddev * moving_stddev - self.epsilon))
        return scale, offset if beta is None else offset + beta

    def compute_output_shape(self, input_shape: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the input shape."""
        return input_shape


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


def _broadcast_weight(weight: Any, x: Any, axes: Sequence[int]) -> Tensor:
    """Reshape a weight so that it broadcasts along these axes of x."""
    rank = x.shape.rank
    cast: Tensor = array.cast(weight, x.dtype)
    positive = [a % rank for a in axes]
    if positive == [rank - 1]:
        return cast
    return array.reshape(cast, [cast.shape[positive.index(i)] if i in positive else 1 for i in range(rank)])


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
        self.autocast = False  # inputs may be beyond what 16 bits hold
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Create gamma and beta."""
        shape = _known_sizes(input_shape, _axes_of(self.axis), "LayerNormalization")
        self.gamma = self._weight("gamma", shape) if self.scale or self.rms_scaling else None
        self.beta = self._weight("beta", shape) if self.center and not self.rms_scaling else None

    def call(self, inputs: Tensor) -> Tensor:
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

    def call(self, inputs: Tensor) -> Tensor:
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
        if not isinstance(groups, int) or (groups != -1 and groups <= 0):
            raise ValueError(
                "Received an invalid value for argument `groups`, expected a positive integer (or `-1` "
                f"for instance normalization). Received: groups={groups}"
            )
        self._set_arguments(locals())
        self.autocast = False  # inputs may be beyond what 16 bits hold
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
        self._build_at_init()

    def call(self, inputs: Any) -> Tensor:
        """Return the normalized inputs."""
        return linalg.l2_normalize(inputs, axis=self.axis, epsilon=1e-12**2)
