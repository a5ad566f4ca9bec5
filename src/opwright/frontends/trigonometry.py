"""Inverse trigonometric functions as importers write them: by atan2.

Lives here: `acos`, `asin` and `atan` of real tensors by atan2: files have the builtin operator ATAN2, and none for the
catalogue's Acos, Asin and Atan. Not here: complex numbers, for which these are kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops import array, dispatch, math


def acos(x: Any) -> Any:
    """Return the angle in [0, pi] whose cosine is x: atan2(sqrt(1 - x^2), x)."""
    x = dispatch.to_tensor(x)
    return math.acos(x) if x.dtype.is_complex else math.atan2(_other_side(x), x)


def asin(x: Any) -> Any:
    """Return the angle in [-pi/2, pi/2] whose sine is x: atan2(x, sqrt(1 - x^2))."""
    x = dispatch.to_tensor(x)
    return math.asin(x) if x.dtype.is_complex else math.atan2(x, _other_side(x))


def atan(x: Any) -> Any:
    """Return the angle in [-pi/2, pi/2] whose tangent is x: atan2(x, 1)."""
    x = dispatch.to_tensor(x)
    return math.atan(x) if x.dtype.is_complex else math.atan2(x, array.ones_like(x))


def _other_side(x: Any) -> Any:
    """Return sqrt(1 - x^2), by factors that do not cancel near 1."""
    one = dispatch.to_tensor(np.ones((), x.dtype.np))
    return math.sqrt((one - x) * (one + x))
