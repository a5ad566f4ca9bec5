"""Activations and other compositions of elementary functions, each as its formula over an array namespace `m`.

Lives here: these formulas.
Not here: elementary functions, which `m` has under the names of table.py (exp, expm1, log1p, erfc), quicker code for a
few of these (numerics/), the constants (core/constants.py).

No formula cancels: 1 + erf(-a) is written as erfc(a), log(1 + e^x) with its larger term taken out.
"""

from __future__ import annotations

import math
from typing import Any

from ..core.constants import CLAMPS, GELU_CUBIC, GELU_SLOPE, SELU_ALPHA, SELU_SCALE
from .arithmetic import bounded


def relu(m: Any, x: Any) -> Any:
    """Return max(x, 0); NaN and -0.0 stay."""
    return m.maximum(0, x)


def relu6(m: Any, x: Any) -> Any:
    """Return min(max(x, 0), 6); NaN and -0.0 stay."""
    return bounded(m, x, *CLAMPS["RELU6"])


def leaky_relu(m: Any, x: Any, alpha: Any) -> Any:
    """Return x where it is positive, else alpha x; alpha: a number, or elements."""
    return m.select(x > 0, x, x * alpha)


def hard_swish(m: Any, x: Any) -> Any:
    """Return x (min(max(x + 3, 0), 6) / 6). source: A. Howard et al., Searching for MobileNetV3, 2019, section 5.2"""
    return x * (bounded(m, x + 3.0, 0.0, 6.0) * (1.0 / 6.0))


def sigmoid(m: Any, x: Any) -> Any:
    """Return 1 / (1 + exp(-x)), by e = exp(-|x|), which never overflows."""
    e = m.exp(-m.abs(x))
    return m.select(x < 0.0, e, 1.0) / (e + 1.0)


def silu(m: Any, x: Any) -> Any:
    """Return x sigmoid(x). source: P. Ramachandran et al., Searching for activation functions, 2017"""
    return x * m.sigmoid(x)


def softplus(m: Any, x: Any) -> Any:
    """Return log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|))."""
    return m.log1p(m.exp(-m.abs(x))) + m.select(x > 0.0, x, 0.0)


def softsign(m: Any, x: Any) -> Any:
    """Return x / (1 + |x|)."""
    return x / (m.abs(x) + 1.0)


def elu(m: Any, x: Any) -> Any:
    """Return x, below 0 exp(x) - 1. source: D. Clevert et al., ELUs, 2015"""
    return m.select(x < 0.0, m.expm1(x), x)


def selu(m: Any, x: Any) -> Any:
    """Return scale max(x, 0) + scale alpha (exp(min(x, 0)) - 1). source: that of its constants"""
    below = m.expm1(m.minimum(x, 0.0))  # 0 where x is NaN, which the other term keeps
    return m.fma(below, SELU_SCALE * SELU_ALPHA, relu(m, x) * SELU_SCALE)


def gelu(m: Any, x: Any) -> Any:
    """Return x erfc(-x / sqrt 2) / 2. source: that of its constants"""
    return x * 0.5 * m.erfc(x * -math.sqrt(0.5))


def gelu_tanh(m: Any, x: Any) -> Any:
    """Return x (1 + tanh(t)) / 2 = x sigmoid(2 t), t = slope (x + cubic x^3). source: that of its constants"""
    return x * m.sigmoid((x * x * x * GELU_CUBIC + x) * (2.0 * GELU_SLOPE))
