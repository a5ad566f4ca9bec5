"""Preprocessing layers.

Lives here: Rescaling, Normalization.
Not here: other sizes of images (sized_images.py), categories (categories.py) and words (index_lookup.py), random
changes of images (image_layer.py), trained normalization (normalization.py), upsampling (reshape.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ops import array, math
from .. import backend
from .configurable_layer import ConfigurableLayer

if TYPE_CHECKING:
    from ...ops.tensor import Tensor
    from ..configuration import JsonValue


class Rescaling(ConfigurableLayer):
    """Layer of inputs * scale + offset: numbers or arrays, of channels where the default data format has them first."""

    def __init__(self, scale: Any, offset: Any = 0.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._set_arguments(scale=scale, offset=offset)
        self.supports_masking = True
        self._build_at_init()

    def call(self, inputs: Tensor) -> Tensor:
        """Return the scaled inputs."""
        scale, offset = (array.cast(np.asarray(v, np.float32), self.compute_dtype) for v in (self.scale, self.offset))
        if scale.shape.rank and backend.image_data_format() == "channels_first":
            scale = array.reshape(scale, [*scale.shape, *[1] * (3 - scale.shape.rank)])
        return array.cast(inputs, self.compute_dtype) * scale + offset

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments; arrays as lists."""
        config = super().get_config()
        for name in ("scale", "offset"):
            if isinstance(config[name], np.ndarray):
                config[name] = config[name].tolist()
        return config

    def compute_output_shape(self, input_shape: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the input shape."""
        return input_shape


class Normalization(ConfigurableLayer):
    """Normalization to mean 0 and variance 1 by statistics specified or computed by `adapt`.

    .. math:: y = (x - mean) / \\max(\\sqrt{variance}, 10^{-7}), \\quad \\text{or with invert the other way}

    axis: the axes with separate statistics; None for scalar statistics. mean, variance: numbers, or arrays that
    broadcast to the sizes along `axis`.
    raises ValueError unless both or neither of mean and variance are specified
    """

    def __init__(
        self, axis: Any = -1, mean: Any = None, variance: Any = None, invert: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if (mean is None) != (variance is None):
            raise ValueError(
                "When setting values directly, both `mean` and `variance` must be set. Received: "
                f"mean={mean} and variance={variance}"
            )
        self.axis = () if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
        self._given_axis, self.input_mean, self.input_variance, self.invert = axis, mean, variance, invert
        self._fixed_statistics: tuple[Any, Any] | None = None
        self.adapt_mean: Any = None
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Create the statistics: constants if specified, else weights that `adapt` sets."""
        rank = len(input_shape)
        axes = sorted(a % rank for a in self.axis)
        for a in axes:
            if input_shape[a] is None:
                raise ValueError(
                    "All `axis` values to be kept must have a known shape. Received axis="
                    f"{self.axis}, inputs.shape={tuple(input_shape)}"
                )
        self._reduced = tuple(i for i in range(rank) if i not in axes)
        self._broadcast_shape = tuple(input_shape[i] if i in axes else 1 for i in range(rank))
        shape = tuple(input_shape[i] for i in axes)
        if self.input_mean is not None:
            self._set(
                np.broadcast_to(np.asarray(self.input_mean, np.float32), shape),
                np.broadcast_to(np.asarray(self.input_variance, np.float32), shape),
            )
            return
        if self.adapt_mean is None:
            self.adapt_mean = self.add_weight(name="mean", shape=shape, initializer="zeros", trainable=False)
            self.adapt_variance = self.add_weight(name="variance", shape=shape, initializer="ones", trainable=False)
            self.count = self.add_weight(name="count", shape=(), dtype="int32", initializer="zeros", trainable=False)

    def _set(self, mean: Any, variance: Any) -> None:
        self._fixed_statistics = mean.reshape(self._broadcast_shape), variance.reshape(self._broadcast_shape)

    def _statistics(self) -> tuple[Any, Any]:
        if self.input_mean is not None:
            return self._fixed_statistics or (None, None)
        if self.adapt_mean is None:
            return None, None
        along = list(self._broadcast_shape)
        return array.reshape(self.adapt_mean, along), array.reshape(self.adapt_variance, along)

    @property
    def mean(self) -> Tensor | None:
        """Mean, in a shape that broadcasts to the inputs; None before the layer is built."""
        mean = self._statistics()[0]
        return mean if mean is None else array.cast(mean, "float32")

    @property
    def variance(self) -> Tensor | None:
        """Variance, in a shape that broadcasts to the inputs; None before the layer is built."""
        variance = self._statistics()[1]
        return variance if variance is None else array.cast(variance, "float32")

    def adapt(self, data: Any) -> None:
        """Compute mean and variance of an array, a tensor, a list of batches, or a Dataset of batches or (x, y).

        raises ValueError if the constructor specified them
        """
        if self.input_mean is not None:
            raise ValueError(
                "Cannot `adapt` a Normalization layer that is initialized with static `mean` and "
                "`variance`, "
                f"you passed mean={self.input_mean} and variance={self.input_variance}."
            )
        if isinstance(data, list) and data and all(hasattr(b, "shape") and np.ndim(b) > 1 for b in data):
            batches = [np.asarray(b) for b in data]
        elif isinstance(data, list) and data and all(isinstance(b, tuple) and hasattr(b[0], "shape") for b in data):
            batches = [np.asarray(b[0]) for b in data]
        elif hasattr(data, "__iter__") and not hasattr(data, "__array__") and not isinstance(data, (list, tuple)):
            batches = [np.asarray(b[0] if isinstance(b, (list, tuple)) else b) for b in data]
        else:
            batches = [np.asarray(data)] if len(data) else []
        if any(b.ndim == 0 for b in batches):
            raise TypeError("`adapt` needs batches with a `.shape` of at least one dimension; found a scalar")
        if not batches:
            raise ValueError("`adapt` needs data, and was called with an empty iterable")
        if len({b.shape[1:] for b in batches}) > 1:
            raise ValueError(f"Batches of `adapt` have incompatible shapes: {sorted({b.shape[1:] for b in batches})}")
        if len(batches) == 1 and batches[0].ndim == 1:
            batches = [batches[0][:, None]]
        if not self.built:
            self.build((None, *batches[0].shape[1:]))
        wide = np.concatenate([b.astype(np.float64) for b in batches])
        self.adapt_mean.assign(wide.mean(self._reduced).astype(np.float32))
        self.adapt_variance.assign(wide.var(self._reduced).astype(np.float32))
        self.count.assign(np.int32(wide.shape[0]))

    def call(self, inputs: Any) -> Tensor:
        """Return the normalized inputs."""
        statistics: Iterator[Tensor] = (array.cast(v, self.compute_dtype) for v in self._statistics())
        mean, variance = statistics
        x: Tensor = array.cast(inputs, self.compute_dtype)
        deviation = math.maximum(math.sqrt(variance), backend.epsilon())
        return x * deviation + mean if self.invert else (x - mean) / deviation

    def compute_output_shape(self, input_shape: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the input shape."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""

        def plain(value: Any) -> JsonValue:
            return None if value is None else np.asarray(value).tolist()

        return {
            **super().get_config(),
            "axis": self._given_axis,
            "invert": self.invert,
            "mean": plain(self.input_mean),
            "variance": plain(self.input_variance),
        }
