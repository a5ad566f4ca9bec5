"""The exponential of float64, for kernels whose results depend on more digits than float32 has.

Lives here: `exp_f64`. Not here: functions of float32 (scalar/numerics/exponential.py).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .. import language as kl
from ..language import f64, i64

if TYPE_CHECKING:
    from ..language import Value

LN2 = 0.693147180369123816490, 1.90821492927058770002e-10
"""ln 2 in two parts; products of the first with integers below 2^21 are exact (Cody and Waite 1980)."""
TERMS = 14
"""Terms of the series of exp on [-ln 2 / 2, ln 2 / 2], with a remainder below 2^-57."""


def exp_f64(x: Value) -> Value:
    """Return e^x of float64, with a relative error within 1e-16; 0 below -708, NaN of NaN."""
    limited = kl.select(x < 710.0, kl.select(x > -708.0, x, -708.0), 710.0)
    n = kl.round_even(limited * (1.0 / math.log(2)))
    r = limited - n * LN2[0] - n * LN2[1]
    total = kl.full(f64, 0, 1.0 / math.factorial(TERMS - 1))
    for i in reversed(range(TERMS - 1)):
        total = kl.fma(total, r, kl.full(f64, 0, 1.0 / math.factorial(i)))
    half = kl.bitcast(((n.to(i64) - 1) + 1023) << 52, f64)  # 2^(n - 1): 2^1024 has no float64
    y = kl.select(x >= -708.0, total * half * 2.0, 0.0)
    return kl.select(x == x, y, x)
