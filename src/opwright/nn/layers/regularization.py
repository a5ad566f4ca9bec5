"""Layers that perturb their inputs in training, or add a penalty on them.

Lives here: Dropout, SpatialDropout1D ... 3D, GaussianNoise, GaussianDropout, AlphaDropout, ActivityRegularization.
Not here: penalties on weights (../regularizers.py).

Every run draws new numbers, including in functions. seed: for a reproducible sequence.
"""

from __future__ import annotations

import math as python_math
from typing import TYPE_CHECKING, Any

from ...ops import array
from ...scalar.formulas import SELU_ALPHA, SELU_SCALE
from .. import regularizers
from ..layer_calls import InputSpec
from ..random import SeedGenerator
from .configurable_layer import ConfigurableLayer, data_format_name, if_training
from .core import Identity

if TYPE_CHECKING:
    from ...ops.tensor import Tensor


class _TrainingNoise(ConfigurableLayer):
    """Layer that is the identity outside of training."""

    def _init_noise(self, name: str, value: Any, maximum: float, seed: Any, **others: Any) -> None:
        if not 0 <= value <= maximum:
            condition = "between 0 and 1" if maximum == 1 else "that is >= 0"
            raise ValueError(
                f"Invalid value received for argument `{name}`. Expected a float value {condition}. "
                f"Received: {name}={value}"
            )
        self._set_arguments(**{name: value}, seed=seed, **others)
        if value:  # layers without noise have no state
            self.seed_generator = SeedGenerator(seed)
        self._level = value
        self.supports_masking = True
        self._build_at_init()

    def call(self, inputs: Tensor, training: Any = False) -> Tensor:
        """Return the inputs, perturbed in training."""
        if not self._level:
            return inputs
        return if_training(
            training,
            lambda: self._perturb(inputs),
            lambda: array.identity(inputs) if hasattr(training, "dtype") else inputs,
        )

    def _perturb(self, inputs: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no _changed(inputs)")

    def compute_output_shape(self, input_shape: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the input shape."""
        return input_shape


def _resolve_shape(inputs: Any, noise_shape: Any) -> Tensor | list[Any]:
    """Return a shape with None replaced by the inputs' sizes."""
    if noise_shape is None:
        return array.shape(inputs)
    runtime_shape = array.shape(inputs)
    return [runtime_shape[i] if d is None else d for i, d in enumerate(noise_shape)]


def apply_dropout(inputs: Any, rate: float, noise_shape: Any, seeds: SeedGenerator) -> Tensor:
    """Set elements to 0 with probability `rate` and scale the others by 1 / (1 - rate)."""
    if rate >= 1:
        return array.zeros_like(inputs)
    draw_dtype = "float64" if inputs.dtype.name == "float64" else "float32"  # 16 bits are too coarse for probabilities
    keep = seeds.uniform(_resolve_shape(inputs, noise_shape), dtype=draw_dtype) >= rate
    return array.where(keep, inputs * (1.0 / (1.0 - rate)), array.zeros_like(inputs))


class Dropout(_TrainingNoise):
    """Dropout: in training, elements are 0 with probability `rate`, others scaled by 1 / (1 - rate).

    See Srivastava et al. 2014. noise_shape: the shape of the mask, which broadcasts to the inputs; None for a size of
    the inputs.
    raises ValueError for a rate outside [0, 1]
    """

    def __init__(self, rate: float, noise_shape: Any = None, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if noise_shape is not None:
            bad = isinstance(noise_shape, str) or not hasattr(noise_shape, "__iter__")
            noise_shape = noise_shape if bad else tuple(noise_shape)
            if bad or not all(d is None or (isinstance(d, int) and d > 0) for d in noise_shape):
                raise ValueError(
                    "Invalid value received for argument `noise_shape`. Expected a tuple or list of "
                    "positive "
                    f"integers or None. Received: noise_shape={noise_shape}"
                )
        self._init_noise("rate", rate, 1, seed, noise_shape=noise_shape)

    def _perturb(self, inputs: Tensor) -> Tensor:
        return apply_dropout(inputs, self.rate, self._noise_shape(inputs), self.seed_generator)

    noise_shape: tuple[int | None, ...] | None

    def _noise_shape(self, inputs: Any) -> tuple[int | None, ...] | None:
        return self.noise_shape


class _SpatialDropout(Dropout):
    """Dropout of whole channels (Tompson et al. 2014)."""

    rank: int

    def __init__(
        self,
        rate: float,
        data_format: Any = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(rate, seed=seed, name=name, dtype=dtype, **kwargs)
        self._argument_names = ("rate", "seed")
        self._set_arguments(data_format=data_format_name(data_format))
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def _noise_shape(self, inputs: Any) -> tuple[Any, ...]:
        ones = (1,) * self.rank
        return (None, *ones, None) if self.data_format == "channels_last" else (None, None, *ones)


class SpatialDropout1D(_SpatialDropout):
    __doc__ = _SpatialDropout.__doc__
    rank = 1

    def __init__(
        self, rate: float, seed: int | None = None, name: str | None = None, dtype: Any = None, **kwargs: Any
    ) -> None:
        super().__init__(rate, "channels_last", seed, name, dtype, **kwargs)
        self._argument_names = ("rate", "seed")


class SpatialDropout2D(_SpatialDropout):
    __doc__ = _SpatialDropout.__doc__
    rank = 2


class SpatialDropout3D(_SpatialDropout):
    __doc__ = _SpatialDropout.__doc__
    rank = 3


class GaussianNoise(_TrainingNoise):
    """Additive noise N(0, stddev^2) in training."""

    def __init__(self, stddev: float, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._init_noise("stddev", stddev, 1, seed)

    def _perturb(self, inputs: Tensor) -> Tensor:
        return inputs + self.seed_generator.normal(array.shape(inputs), 0.0, self.stddev, inputs.dtype)


class GaussianDropout(_TrainingNoise):
    """Multiplicative noise of mean 1 and variance rate / (1 - rate) in training."""

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._init_noise("rate", rate, 1, seed)

    def _perturb(self, inputs: Tensor) -> Tensor:
        stddev = python_math.sqrt(self.rate / (1.0 - self.rate))
        return inputs * self.seed_generator.normal(array.shape(inputs), 1.0, stddev, inputs.dtype)


class AlphaDropout(_TrainingNoise):
    """Dropout to SELU's minimum, scaled to preserve mean and variance (Klambauer et al. 2017)."""

    LOWEST = -SELU_ALPHA * SELU_SCALE  # the limit of SELU at minus infinity

    def __init__(self, rate: float, noise_shape: Any = None, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._init_noise("rate", rate, 1, seed, noise_shape=noise_shape)

    def _perturb(self, inputs: Tensor) -> Tensor:
        rate: float = self.rate
        keep = array.cast(self.seed_generator.uniform(_resolve_shape(inputs, self.noise_shape)) >= rate, inputs.dtype)
        a: float = ((1 - rate) * (1 + rate * self.LOWEST**2)) ** -0.5
        b = -a * self.LOWEST * rate
        return a * (inputs * keep + self.LOWEST * (1.0 - keep)) + b


class ActivityRegularization(Identity):
    """Identity that adds l1 sum |x| + l2 sum x^2 to the loss."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0, **kwargs: Any) -> None:
        super().__init__(activity_regularizer=regularizers.L1L2(l1, l2), **kwargs)
        self._set_arguments(l1=l1, l2=l2)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values."""
        return {k: v for k, v in super().get_config().items() if k != "activity_regularizer"}
