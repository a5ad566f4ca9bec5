"""Multipliers: real factors as integers and powers of two.

Lives here: making them.  Not here: multiplying by them (fixed_point_int32.py).

A multiplier is a pair (m, e) that stands for m 2^(e - 31), with 2^30 <= m < 2^31. Source: Jacob et al., Quantization
and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference, 2018, section 2.2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.errors import InvalidArgumentError


def multiplier(real: float) -> tuple[int, int]:
    """The (m, e) nearest to a factor of at least 0; (0, 0) below 2^-32.

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
    """`multiplier` of each element of a vector, as two vectors (scalars where the vector has one element)."""
    m, e = zip(*(multiplier(float(r)) for r in np.atleast_1d(reals)))
    shape = (len(m),) if len(m) > 1 else ()
    return np.array(m, np.int64).reshape(shape), np.array(e, np.int64).reshape(shape)


def short_multiplier(m: Any) -> Any:
    """The 31 bits of an m rounded to 15, so that its product with an int32 has 47: m 2^-31 is about this 2^-15."""
    return np.minimum((m + (1 << 15)) >> 16, (1 << 15) - 1)
