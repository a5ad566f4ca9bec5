"""Initializers: initial values of weights.

Lives here: constants, random distributions, variance scaling, orthogonal matrices, waves of Fourier transforms;
`get`, `serialize`, `deserialize`.
Not here: variables (module.py), SeedGenerator (random.py).

An initializer maps a shape and a dtype to a tensor. A random one returns equal values for equal seeds in every call;
without a seed, it draws one when it is created. In the formulas n is a fan: rows of the kernel (fan_in), columns
(fan_out) or their mean, times the window size for convolution kernels.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..core.dtypes import DType, as_dtype, float32
from ..ops import array, dispatch, linalg, math, random
from .configuration import AttributeConfig, ObjectRegistry
from .random import SeedGenerator, default_seed

if TYPE_CHECKING:
    from ..ops.tensor import Tensor

_TRUNCATED = 0.87962566103423978  # standard deviation of the standard normal distribution truncated at two deviations


def _dtype(dtype: Any) -> DType:
    return float32 if dtype is None else as_dtype(dtype)


def _shape(shape: Any) -> tuple[int, ...]:
    return tuple(int(d) for d in shape)


class Initializer(AttributeConfig):
    """Base class of initializers: override `__call__(shape, dtype=None)` and list the constructor's arguments."""

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        """Return a tensor of this shape and dtype."""
        raise NotImplementedError(f"{type(self).__name__} has no __call__(shape, dtype=None)")

    def clone(self) -> AttributeConfig:
        """Return a new initializer with the same configuration."""
        return self.from_config(self.get_config())


class Zeros(Initializer):
    """Initializer of zeros."""

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        """Return a tensor of zeros."""
        return array.zeros(_shape(shape), _dtype(dtype))


class Ones(Initializer):
    """Initializer of ones."""

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        """Return a tensor of ones."""
        return array.ones(_shape(shape), _dtype(dtype))


class Constant(Initializer):
    """Initializer of a constant value, or of an array that broadcasts to the shape."""

    arguments = ("value",)

    def __init__(self, value: Any = 0.0) -> None:
        self.value = value

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        """Return a tensor filled with the value."""
        return dispatch.to_tensor(np.broadcast_to(np.asarray(self.value), _shape(shape)).astype(_dtype(dtype).np))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments; arrays as lists."""
        return {"value": np.asarray(self.value).tolist()}


class Identity(Initializer):
    """Initializer of a matrix with `gain` on the diagonal. Raises ValueError unless the shape has rank 2."""

    arguments = ("gain",)

    def __init__(self, gain: float = 1.0) -> None:
        self.gain = gain

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        """Return the matrix."""
        if len(shape) != 2:
            raise ValueError(
                "Identity matrix initializer can only be used for 2D matrices. "
                f"Received: shape={shape} of rank {len(shape)}."
            )
        rows, columns = _shape(shape)
        return self.gain * array.eye(rows, columns, dtype=_dtype(dtype))


class _Random(Initializer):
    """Initializer with a seed: an integer, a SeedGenerator, or None."""

    def __init__(self, seed: Any = None) -> None:
        if isinstance(seed, dict):
            seed = SeedGenerator.from_config(seed["config"])
        if seed is not None and not isinstance(seed, (int, np.integer, SeedGenerator)):
            raise ValueError(
                "`seed` argument should be an instance of `keras.random.SeedGenerator()` or an integer. "
                f"Received: seed={seed}"
            )
        self._init_seed = seed
        self.seed = default_seed() if seed is None else seed

    def _seed(self) -> Tensor | np.ndarray:
        if isinstance(self.seed, SeedGenerator):
            return self.seed.next()
        return np.array([self.seed, 0], np.int64)

    def _uniform(self, shape: Any, low: float, high: float, dtype: Any) -> Tensor:
        return random.stateless_uniform(_shape(shape), self._seed(), low, high, _dtype(dtype))

    def _normal(self, shape: Any, mean: float, stddev: float, dtype: Any, truncated: bool = False) -> Tensor:
        draw = random.stateless_truncated_normal if truncated else random.stateless_normal
        return draw(_shape(shape), self._seed(), mean, stddev, _dtype(dtype))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, including the seed."""
        seed: Any = self._init_seed
        if isinstance(seed, SeedGenerator):
            seed = {
                "module": "keras.random",
                "class_name": "SeedGenerator",
                "config": seed.get_config(),
                "registered_name": None,
            }
        return {"seed": seed, **super().get_config()}


class RandomNormal(_Random):
    """Initializer from the normal distribution N(mean, stddev^2)."""

    arguments = ("mean", "stddev")

    def __init__(self, mean: float = 0.0, stddev: float = 0.05, seed: Any = None) -> None:
        self.mean, self.stddev = mean, stddev
        super().__init__(seed)

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        """Return a tensor of random values."""
        return self._normal(shape, self.mean, self.stddev, dtype)


class TruncatedNormal(RandomNormal):
    """Initializer from the normal distribution truncated at two standard deviations."""

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        """Return a tensor of random values."""
        return self._normal(shape, self.mean, self.stddev, dtype, truncated=True)


class RandomUniform(_Random):
    """Initializer from the uniform distribution on [minval, maxval)."""

    arguments = ("minval", "maxval")

    def __init__(self, minval: float = -0.05, maxval: float = 0.05, seed: Any = None) -> None:
        self.minval, self.maxval = minval, maxval
        super().__init__(seed)

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        """Return a tensor of random values."""
        return self._uniform(shape, self.minval, self.maxval, dtype)


def compute_fans(
    shape: Sequence[int], input_axes: Sequence[int] | None = None, output_axes: Sequence[int] | None = None
) -> tuple[int, int]:
    """Return the number of inputs and outputs of each unit of a kernel: fan_in and fan_out.

    Matrices are [in, out], convolution kernels [*window, in, out], both fans times the window size; both fans of a
    vector are its length. With both axes specified: the products of the sizes along them.
    """
    if input_axes is not None and output_axes is not None:
        return python_math.prod(shape[i] for i in input_axes), python_math.prod(shape[i] for i in output_axes)
    if len(shape) < 2:
        n = python_math.prod(shape)
        return n, n
    window = python_math.prod(shape[:-2])
    return shape[-2] * window, shape[-1] * window


class VarianceScaling(_Random):
    """Initializer with variance scale / n.

    .. math:: N(0, scale / n) \\text{ (truncated at two deviations), or } U(-l, l), \\; l = \\sqrt{3 \\, scale / n}

    mode: the fan n: "fan_in", "fan_out" or "fan_avg". distribution: "truncated_normal" (alias "normal"),
    "untruncated_normal" or "uniform". input_axes, output_axes: the fan axes of a kernel with another layout than
    matrices and convolutions.
    raises ValueError for another mode or distribution, or scale <= 0
    """

    MODES: ClassVar = ("fan_in", "fan_out", "fan_avg")
    DISTRIBUTIONS: ClassVar = ("uniform", "truncated_normal", "untruncated_normal")
    arguments: tuple[str, ...] = ("scale", "mode", "distribution", "input_axes", "output_axes")

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: Any = None,
        input_axes: Any = None,
        output_axes: Any = None,
    ) -> None:
        if scale <= 0.0:
            raise ValueError(f"Argument `scale` must be positive float. Received: scale={scale}")
        if mode not in self.MODES:
            raise ValueError(f"Invalid `mode` argument: {mode}. Please use one of {self.MODES}")
        distribution = distribution.lower()
        distribution = "truncated_normal" if distribution == "normal" else distribution
        if distribution not in self.DISTRIBUTIONS:
            raise ValueError(f"Invalid `distribution` argument: {distribution}.Please use one of {self.DISTRIBUTIONS}")
        self.scale, self.mode, self.distribution = scale, mode, distribution
        self.input_axes, self.output_axes = input_axes, output_axes
        super().__init__(seed)

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        """Return a tensor of random values."""
        fan_in, fan_out = compute_fans(_shape(shape), self.input_axes, self.output_axes)
        n = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2.0}[self.mode]
        variance = self.scale / max(1.0, n)
        if self.distribution == "uniform":
            limit = python_math.sqrt(3.0 * variance)
            return self._uniform(shape, -limit, limit, dtype)
        truncated = self.distribution == "truncated_normal"
        stddev = python_math.sqrt(variance) / (_TRUNCATED if truncated else 1.0)
        return self._normal(shape, 0.0, stddev, dtype, truncated)


class _Preset(VarianceScaling):
    """VarianceScaling with fixed scale, mode and distribution."""

    preset: ClassVar[tuple[float, str, str]]
    arguments = ("input_axes", "output_axes")

    def __init__(self, seed: Any = None, input_axes: Any = None, output_axes: Any = None) -> None:
        super().__init__(*self.preset, seed, input_axes, output_axes)


class GlorotUniform(_Preset):
    """U(-l, l) with l = sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010)."""

    preset = (1.0, "fan_avg", "uniform")


class GlorotNormal(_Preset):
    """Truncated N(0, 2 / (fan_in + fan_out)) (Glorot and Bengio 2010)."""

    preset = (1.0, "fan_avg", "truncated_normal")


class LecunNormal(_Preset):
    """Truncated N(0, 1 / fan_in) (LeCun et al. 1998)."""

    preset = (1.0, "fan_in", "truncated_normal")


class LecunUniform(_Preset):
    """U(-l, l) with l = sqrt(3 / fan_in) (LeCun et al. 1998)."""

    preset = (1.0, "fan_in", "uniform")


class HeNormal(_Preset):
    """Truncated N(0, 2 / fan_in) (He et al. 2015)."""

    preset = (2.0, "fan_in", "truncated_normal")


class HeUniform(_Preset):
    """U(-l, l) with l = sqrt(6 / fan_in) (He et al. 2015)."""

    preset = (2.0, "fan_in", "uniform")


class Orthogonal(_Random):
    """Initializer of a matrix with orthonormal rows or columns, whichever are fewer, times `gain` (Saxe et al. 2014).

    Shapes of more dimensions are matrices with the last dimension as columns. The distribution over such matrices is
    uniform: Q of the QR decomposition of a normal matrix, with the signs of R's diagonal.
    raises ValueError for a shape of fewer than two dimensions
    """

    arguments = ("gain",)

    def __init__(self, gain: float = 1.0, seed: Any = None) -> None:
        self.gain = gain
        super().__init__(seed)

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        """Return the matrix."""
        shape = _shape(shape)
        if len(shape) < 2:
            raise ValueError(
                "The tensor to initialize must be at least two-dimensional. "
                f"Received: shape={shape} of rank {len(shape)}."
            )
        rows, columns = python_math.prod(shape[:-1]), shape[-1]
        tall = (max(rows, columns), min(rows, columns))
        q, r = linalg.qr(self._normal(tall, 0.0, 1.0, dtype))
        q = q * math.sign(linalg.diag_part(r))
        if rows < columns:
            q = array.transpose(q)
        return self.gain * array.reshape(q, shape)


def _tukey(count: int) -> np.ndarray:
    """Return a window with half a cosine on each quarter, 1 between."""
    rise = np.arange(count) / max(count - 1, 1) * 4.0
    edge = np.minimum(np.minimum(rise, rise[::-1]), 1.0)
    ramp: np.ndarray = 0.5 - 0.5 * np.cos(np.pi * edge)
    return ramp


WINDOWS: dict[str, Callable[[int], np.ndarray]] = {
    "bartlett": np.bartlett,
    "blackman": np.blackman,
    "boxcar": np.ones,
    "hamming": np.hamming,
    "hann": np.hanning,
    "tukey": _tukey,
}
"""Symmetric windows by their number of points."""


class STFT(Initializer):
    """Initializer of a kernel [frame_length, 1, bins] whose convolution is a short-time Fourier transform.

    side: "real" or "imag". window: a name, as "hann", points [frame_length], or None for ones. scaling: "density"
    divides by the root of the sum of squares of the window, "spectrum" by its sum. periodic: of named windows.
    raises ValueError for others
    """

    arguments = ("side", "window", "scaling", "periodic")

    def __init__(
        self, side: str = "real", window: Any = "hann", scaling: str | None = "density", periodic: bool = False
    ) -> None:
        if side not in ("real", "imag"):
            raise ValueError(f"side should be 'real' or 'imag', not {side}")
        if isinstance(window, str) and window not in WINDOWS:
            raise ValueError(
                f"Unknown window {window!r}; named ones are {', '.join(WINDOWS)}. Pass its points as a list"
            )
        if scaling not in ("density", "spectrum", None):
            raise ValueError(f"Scaling must be None, 'density' or 'spectrum'. Received: scaling={scaling}")
        self.side, self.window, self.scaling, self.periodic = side, window, scaling, periodic

    def __call__(self, shape: Any, dtype: Any = None) -> Tensor:
        """Return the kernel."""
        length, _, bins = _shape(shape)
        points = self.window
        if isinstance(points, str):
            points = WINDOWS[points](length + 1)[:-1] if self.periodic else WINDOWS[points](length)
        points = np.ones(length) if points is None else np.asarray(points, np.float64)
        if points.shape != (length,):
            raise ValueError(
                f"The shape of `window` must be equal to [frame_length]. Received: window shape={points.shape}"
            )
        if self.window is not None and self.scaling is not None:
            points = points / (np.abs(points).sum() if self.scaling == "spectrum" else np.sqrt(np.sum(points**2)))
        angles = -2.0 * np.pi * np.arange(length)[:, None, None] * np.arange(bins) / (2 * (bins - 1))
        waves = np.cos(angles) if self.side == "real" else np.sin(angles)
        return dispatch.to_tensor((waves * points[:, None, None]).astype(_dtype(dtype).np))


REGISTRY = ObjectRegistry("initializer", "keras.initializers")
REGISTRY.add(
    (
        Zeros,
        Ones,
        Constant,
        Identity,
        RandomNormal,
        TruncatedNormal,
        RandomUniform,
        VarianceScaling,
        GlorotUniform,
        GlorotNormal,
        LecunNormal,
        LecunUniform,
        HeNormal,
        HeUniform,
        Orthogonal,
        STFT,
    ),
    zero=Zeros,
    one=Ones,
    normal=RandomNormal,
    uniform=RandomUniform,
    IdentityInitializer=Identity,
    OrthogonalInitializer=Orthogonal,
    STFTInitializer=STFT,
)
serialize, deserialize = REGISTRY.serialize, REGISTRY.deserialize


def get(identifier: Any) -> Any:
    """Return the initializer for a name, a dictionary, a class, an initializer, an array of values, or None."""
    if hasattr(identifier, "numpy") or isinstance(identifier, np.ndarray):
        return Constant(np.asarray(identifier))
    return REGISTRY.get(identifier)


IdentityInitializer, OrthogonalInitializer = Identity, Orthogonal
STFTInitializer = stft = STFT
zeros, ones, constant, identity, orthogonal = Zeros, Ones, Constant, Identity, Orthogonal
random_normal, random_uniform, truncated_normal = RandomNormal, RandomUniform, TruncatedNormal
variance_scaling = VarianceScaling
glorot_uniform, glorot_normal = GlorotUniform, GlorotNormal
lecun_uniform, lecun_normal = LecunUniform, LecunNormal
he_uniform, he_normal = HeUniform, HeNormal

# The names of TensorFlow's own module.
constant_initializer, ones_initializer, zeros_initializer = Constant, Ones, Zeros
random_normal_initializer, random_uniform_initializer = RandomNormal, RandomUniform

__all__ = [
    "STFT",
    "Constant",
    "GlorotNormal",
    "GlorotUniform",
    "HeNormal",
    "HeUniform",
    "Identity",
    "IdentityInitializer",
    "Initializer",
    "LecunNormal",
    "LecunUniform",
    "Ones",
    "Orthogonal",
    "OrthogonalInitializer",
    "RandomNormal",
    "RandomUniform",
    "STFTInitializer",
    "TruncatedNormal",
    "VarianceScaling",
    "Zeros",
    "constant",
    "deserialize",
    "get",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "identity",
    "lecun_normal",
    "lecun_uniform",
    "ones",
    "orthogonal",
    "random_normal",
    "random_uniform",
    "serialize",
    "stft",
    "truncated_normal",
    "variance_scaling",
    "zeros",
]
