"""Parameters of quantization: scales and zero points, their choice for a range and for the elements of a weight.

Lives here: `QuantizationParameters`, `of_range`, `of_io`, `of_weights`, `quantized`, `stored_parameters`; `grid_of` and
`weights_grid`, which find the integers that constants were made from.
Not here: the parameters of each value of a graph (plan.py).

    real = scale * (q - zero_point)

int8 activations take any zero point, so that their range is used whole; int16 activations are symmetric, as their
kernels require. Zero is always in range and exact: padding and RELU need it. Weights are symmetric in [-127, 127].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....core.specs import TensorSpec
from ...ops.specs import Quantization, with_changes

TINY = float(np.finfo(np.float32).tiny)  # scales below are denormal, which some devices read as zero
BLOCK = 1 << 18  # elements computed on at a time
# One number wider than these is scaled so that the sum of 2**k terms still fits the accumulator.
BIAS_LIMIT = {np.dtype(np.int32): 2.0**30, np.dtype(np.int64): 2.0**44}


class QuantizationParameters(NamedTuple):
    """The affine mapping from integers of a dtype to real numbers. scales: one, or one for each slice of `axis`."""

    dtype: str  # as NumPy has it: "int8"
    scales: tuple[float, ...]
    zero_point: int = 0
    axis: int = 0

    @property
    def scale(self) -> float:
        """Return the scale of a tensor that has a single one."""
        return self.scales[0]

    @property
    def low(self) -> float:
        """Return the least real number."""
        return self.scale * (limits(self.dtype)[0] - self.zero_point)

    @property
    def high(self) -> float:
        """Return the greatest real number."""
        return self.scale * (limits(self.dtype)[1] - self.zero_point)

    def covers(self, low: float, high: float) -> bool:
        """Return whether every number in a range has an integer within one step."""
        return self.low - self.scale <= low and high <= self.high + self.scale

    @property
    def quantization(self) -> Quantization:
        """Return the parameters as a part of a type."""
        return Quantization(self.scales, np.full(len(self.scales), self.zero_point), self.axis)

    def of(self, spec: TensorSpec, **changes: Any) -> TensorSpec:
        """Return a type with integers by these parameters in place of its real numbers."""
        return with_changes(spec, dtype=self.dtype, quantization=self.quantization, **changes)


def stored_parameters(value: Any) -> QuantizationParameters | None:
    """Return the parameters of integers with one scale that a program reads or returns, None for other values."""
    stored = getattr(value.spec, "quantization", None)
    if stored is None or len(stored.scale) != 1 or len(stored.zero_point) != 1:
        return None
    return QuantizationParameters(value.dtype.name, (float(stored.scale[0]),), int(stored.zero_point[0]))


def limits(dtype: str) -> tuple[int, int]:
    """Return the least and greatest integer of an activation."""
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def of_range(low: float, high: float, dtype: str) -> QuantizationParameters:
    """Return the parameters of an activation for a range of real numbers, widened to contain zero.

    int8: scale (high - low) / 255, zero point the integer nearest to -128 - low / scale. int16: scale
    max(|low|, |high|) / 32767. A range of zero alone gets scale 1 / 255 of [0, 1]: any would do.
    """
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    if high - low < TINY * 65535:
        low, high = 0.0, 1.0
    least, most = limits(dtype)
    if dtype == "int16":
        return QuantizationParameters(dtype, (float(np.float32(max(-low, high) / most)),))
    # the range may exceed float32
    scale = float(np.float32(min((high - low) / (most - least), float(np.finfo(np.float32).max))))
    point = float(np.clip(least - low / scale, least, most))
    return QuantizationParameters(dtype, (scale,), int(np.floor(point + 0.5)))


def of_io(parameters: QuantizationParameters, dtype: str, low: float, high: float) -> QuantizationParameters:
    """Return the parameters of an input or output of another integer type than the activation behind it."""
    if dtype == "uint8" and parameters.dtype == "int8":
        return QuantizationParameters("uint8", parameters.scales, parameters.zero_point + 128)
    return parameters if dtype == parameters.dtype else of_range(low, high, dtype)


def of_weights(array: np.ndarray, axis: int | None, floor: np.ndarray | float = 0.0) -> QuantizationParameters:
    """Return symmetric int8 parameters of a constant, in which 127 is the greatest magnitude, of all or of each slice.

    floor: scales are at least this; where a slice holds zeros alone and there is no floor, the scale is 1 / 127.
    """
    others = None if axis is None else tuple(i for i in range(array.ndim) if i != axis)
    most = np.abs(array).max(axis=others, initial=0.0)
    scales = np.maximum(np.atleast_1d(most).astype(np.float64) / 127.0, floor)
    scales[scales < TINY] = 1.0 / 127.0
    return QuantizationParameters("int8", tuple(map(float, scales.astype(np.float32))), 0, axis or 0)


def quantized(array: np.ndarray, parameters: QuantizationParameters, narrow: bool = False) -> np.ndarray:
    """Return the integers nearest to real numbers, halves away from zero, clipped to the dtype (narrow: without the
    least).

    In double precision, some rows at a time: large weights are not held several times over.
    """
    least, most = limits(parameters.dtype)
    scales = np.array(parameters.scales, np.float32).astype(np.float64)
    rows = array.reshape(1) if array.ndim == 0 else array
    if len(parameters.scales) > 1:
        scales = scales.reshape([-1 if i == parameters.axis else 1 for i in range(array.ndim)])
    out = np.empty(rows.shape, parameters.dtype)
    step = max(1, BLOCK // max(1, rows[:1].size))
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        real = rows[part] / (scales[part] if scales.ndim == rows.ndim and len(scales) > 1 else scales)
        rounded = np.copysign(np.floor(np.abs(real) + 0.5), real) + parameters.zero_point
        out[part] = np.clip(rounded, least + narrow, most)
    return out.reshape(array.shape)


GRID_TOLERANCE = 1e-3  # of a step: float32 products of 8 bits are 1e-5 off, scaled ones several times that
SAMPLE = 64  # elements that rule most grids out


def grid_of(array: np.ndarray, most: int, span: bool) -> float | None:
    """Return a step of which all elements are multiples; None if there is none.

    most: greatest multiple. span: it counts from the least element (or 0) to the greatest (or 0), not from 0.
    """
    values = array.reshape(-1).astype(np.float64)
    high, low = max(values.max(initial=0.0), 0.0), min(values.min(initial=0.0), 0.0)
    extent = high - low if span else max(high, -low)
    if not np.isfinite(extent):
        return None
    if extent < TINY:
        return 1.0 / most
    counts = np.arange(most, 0, -1)
    fits = _are_multiples(values[:SAMPLE] * (counts / extent)[:, None])
    return next((float(extent / n) for n in counts[fits] if _are_multiples(values * (n / extent))), None)


def _are_multiples(numbers: np.ndarray) -> np.ndarray:
    """Return, for each row, whether all numbers are integers within the tolerance."""
    errors: np.ndarray = np.abs(numbers - np.rint(numbers)).max(axis=-1) < GRID_TOLERANCE
    return errors


def weights_grid(array: np.ndarray, axis: int | None) -> QuantizationParameters | None:
    """Return the symmetric int8 parameters of weights that were stored as integers; None for other weights.

    -128 becomes -127, which integer kernels want.
    """
    rows = array.reshape(1, -1) if axis is None else np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
    extents = np.maximum(np.abs(rows).max(axis=1), np.float32(TINY)).astype(np.float64)
    steps = extents / 127.0  # of nearly all channels
    steps[extents <= TINY] = 1.0 / 127.0
    for i in np.flatnonzero(~_are_multiples(rows * (1.0 / steps).astype(np.float32)[:, None])):
        step = grid_of(rows[i], 127, span=False) or grid_of(rows[i], 128, span=False)
        if step is None:
            return None
        steps[i] = step
    return QuantizationParameters("int8", tuple(map(float, steps.astype(np.float32))), 0, axis or 0)
