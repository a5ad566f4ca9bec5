"""Quick forms of rounding halves away from zero.

Lives here: these, which start-up and kernels take; tests hold them to the formula.
Not here: the formula, of any float (arithmetic.round_away), roundings of integers (fixed_point.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

_BELOW_HALF = {np.dtype(t): np.nextafter(t(0.5), t(0)) for t in (np.float32, np.float64)}


def array_round_away(x: Any) -> Any:
    """`round_away` of arrays of float32 or float64."""
    return np.trunc(x + np.copysign(_BELOW_HALF[x.dtype], x))


def finite_round_away(m: Any, x: Any) -> Any:
    """Return `round_away` of a finite float, with fewer instructions."""
    whole = m.trunc(x)
    return whole + m.trunc((x - whole) * 2.0)
