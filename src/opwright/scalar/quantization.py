"""Quantization of real numbers: scales and zero points of ranges, factors as integer multipliers, rounding.

Lives here: `symmetric_steps`, `asymmetric_steps` (of dynamic quantization), `nudged` (of quantization-aware training);
`multiplier` and its like; `array_round_away` and `finite_round_away`, faster forms of formulas.round_away.
Not here: loops over rows (lite/ops/quantized/hybrid.py, compiler/kernels/dynamic_quantization.py), multiplication by
multipliers and rounding of integers (fixed_point.py).

A row of reals between lo <= 0 and hi >= 0 is quantized to integers q:

    symmetric   r = max(hi, -lo), scale = r / 127, q = round(x * (127 / r)), zero = 0
    asymmetric  step = (hi - lo) / 255 in float64, scale = float32(step)
                zero = round(-128 - lo / step), or round(127 - hi / step) where 128 + |lo / step| is not the smaller sum
                q = round(x * (1 / scale) + zero)

within [-127, 127] and [-128, 127], halves away from zero. Source: LiteRT,
kernels/internal/reference/portable_tensor_utils.cc.

A multiplier is a pair (m, e) that represents m 2^(e - 31), with 2^30 <= m < 2^31. Source: Jacob et al., Quantization
and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference, 2018, section 2.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.errors import InvalidArgumentError

SYMMETRIC = -127, 127
"""The quantized range of symmetric quantization, with zero point 0."""
ASYMMETRIC = -128, 127


def symmetric_steps(m: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Return scale and inverse scale of float32 between low <= 0 and high >= 0. For all zeros: 1 and 0."""
    bound, largest = m.maximum(high, -low), float(SYMMETRIC[1])
    some = low != high
    return m.select(some, bound / largest, 1.0), m.select(some, largest / m.select(some, bound, 1.0), 0.0)


def asymmetric_steps(m: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
    """Return scale, inverse scale and zero point of float32, computed in float64. For all zeros: 1, 1, 0."""
    smallest, largest = map(float, ASYMMETRIC)
    below, above = m.convert(low, m.f64), m.convert(high, m.f64)
    step = m.select(below != above, (above - below) / (largest - smallest), 1.0)
    below, above = below / step, above / step
    exact = m.clamp(m.select(-smallest - below < largest + above, smallest - below, largest - above), smallest, largest)
    scale = m.convert(step, m.f32)
    return scale, 1.0 / scale, m.convert(m.select(below != above, finite_round_away(m, exact), 0.0), m.f32)


def nudged(
    low: Any,
    high: Any,
    smallest: Any,
    largest: Any,
    clip: Callable[..., Any] = np.clip,
    floor: Callable[..., Any] = np.floor,
) -> tuple[Any, Any, Any]:
    """Return the scale of a range for integers in [smallest, largest], and its ends nudged so that 0 is exact.

    low < high: arrays, or with other functions tensors
    """
    scale = (high - low) / (largest - smallest)
    zero = floor(clip(smallest - low / scale, smallest, largest) + 0.5)
    return scale, (smallest - zero) * scale, (largest - zero) * scale


def multiplier(real: float) -> tuple[int, int]:
    """Return the (m, e) nearest to a factor of at least 0; (0, 0) below 2^-32.

    raises InvalidArgumentError for a factor that is negative or not finite
    """
    if not math.isfinite(real) or real < 0:
        raise InvalidArgumentError(what="scales that make no multiplier", found=real, wanted="positive, finite scales")
    fraction, e = math.frexp(real)
    m = math.floor(fraction * (1 << 31) + 0.5)
    if m == 1 << 31:
        m, e = m // 2, e + 1
    return (0, 0) if e < -31 or m == 0 else (m, e)


def multipliers(reals: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return `multiplier` of each element of a vector, as two vectors (scalars if it has one element)."""
    m, e = zip(*(multiplier(float(r)) for r in np.atleast_1d(reals)))
    shape = (len(m),) if len(m) > 1 else ()
    return np.array(m, np.int64).reshape(shape), np.array(e, np.int64).reshape(shape)


def short_multiplier(m: Any) -> Any:
    """Return the 31 bits of m rounded to 15, so that its product with an int32 has 47: m 2^-31 is about short 2^-15."""
    return np.minimum((m + (1 << 15)) >> 16, (1 << 15) - 1)


_BELOW_HALF = {np.dtype(t): np.nextafter(t(0.5), t(0)) for t in (np.float32, np.float64)}


def array_round_away(x: Any) -> Any:
    """Compute `round_away` of arrays of float32 or float64."""
    return np.trunc(x + np.copysign(_BELOW_HALF[x.dtype], x))


def finite_round_away(m: Any, x: Any) -> Any:
    """Compute `round_away` of a finite float, with fewer instructions."""
    truncated = m.trunc(x)
    return truncated + m.trunc((x - truncated) * 2.0)
