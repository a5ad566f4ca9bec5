"""Ranges of reals as scales and zero points.

Lives here: `symmetric_steps`, `asymmetric_steps` (of what is rounded while it runs), `nudged` (of training).
Not here: going over rows (lite/ops/quantized/hybrid.py, compiler/kernels/dynamic_quantization.py), integers of other
scales (fixed_point_int32.py).

A row of reals between lo <= 0 and hi >= 0 becomes integers q:

    symmetric   r = max(hi, -lo), scale = r / 127, q = round(x * (127 / r)), zero = 0
    asymmetric  step = (hi - lo) / 255 in float64, scale = float32(step)
                zero = round(-128 - lo / step), or round(127 - hi / step) where 128 + |lo / step| is not the smaller sum
                q = round(x * (1 / scale) + zero)

within [-127, 127] and [-128, 127], halves away from zero. Source: LiteRT,
kernels/internal/reference/portable_tensor_utils.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .rounding import finite_round_away

SYMMETRIC = -127, 127
"""The integers that stand for a range around 0; 0 stands for itself."""
ASYMMETRIC = -128, 127


def symmetric_steps(m: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Scale and its inverse of float32 between low <= 0 and high >= 0, over a namespace. Of zeros alone: 1 and 0."""
    reach, most = m.maximum(high, -low), float(SYMMETRIC[1])
    some = low != high
    return m.select(some, reach / most, 1.0), m.select(some, most / m.select(some, reach, 1.0), 0.0)


def asymmetric_steps(m: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
    """Scale, its inverse and zero point of float32, computed in float64, over a namespace. Of zeros alone: 1, 1, 0."""
    least, most = map(float, ASYMMETRIC)
    below, above = m.convert(low, m.f64), m.convert(high, m.f64)
    step = m.select(below != above, (above - below) / (most - least), 1.0)
    below, above = below / step, above / step
    exact = m.clamp(m.select(-least - below < most + above, least - below, most - above), least, most)
    scale = m.convert(step, m.f32)
    return scale, 1.0 / scale, m.convert(m.select(below != above, finite_round_away(m, exact), 0.0), m.f32)


def nudged(
    low: Any, high: Any, least: Any, most: Any, clip: Callable[..., Any] = np.clip, floor: Callable[..., Any] = np.floor
) -> tuple[Any, Any, Any]:
    """The scale of a range that integers between least and most stand for, and its ends moved so that 0 is one's.

    low < high: arrays, or with other functions tensors
    """
    scale = (high - low) / (most - least)
    zero = floor(clip(least - low / scale, least, most) + 0.5)
    return scale, (least - zero) * scale, (most - zero) * scale
