"""Special functions on NumPy arrays in float64: normal quantile, log gamma and its derivatives.

Lives here: the numerics, vectorised, with their sources.
Not here: the operators (special.py), the error function (scalar/arrays.py), incomplete gamma and beta functions
(incomplete_gamma.py).

Each function takes a float64 array and returns one of the same shape. Functions of `Any` have arithmetic alone, and
compute values of kernels, too (compiler/kernels/special_functions.py).
Rational approximations are minimax fits from the papers cited; their coefficients run from the highest power down.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...scalar.arrays import piecewise, polynomial

Array = np.ndarray


# ---- normal quantile: M. J. Wichura, Algorithm AS 241, Applied Statistics 37 (1988), PPND16 -------------------------

_CENTRE_TOP = (
    2.5090809287301226727e3,
    3.3430575583588128105e4,
    6.7265770927008700853e4,
    4.5921953931549871457e4,
    1.3731693765509461125e4,
    1.9715909503065514427e3,
    1.3314166789178437745e2,
    3.3871328727963666080e0,
)
_CENTRE_BOTTOM = (
    5.2264952788528545610e3,
    2.8729085735721942674e4,
    3.9307895800092710610e4,
    2.1213794301586595867e4,
    5.3941960214247511077e3,
    6.8718700749205790830e2,
    4.2313330701600911252e1,
    1.0,
)
_SIDE_TOP = (
    7.74545014278341407640e-4,
    2.27238449892691845833e-2,
    2.41780725177450611770e-1,
    1.27045825245236838258e0,
    3.64784832476320460504e0,
    5.76949722146069140550e0,
    4.63033784615654529590e0,
    1.42343711074968357734e0,
)
_SIDE_BOTTOM = (
    1.05075007164441684324e-9,
    5.47593808499534494600e-4,
    1.51986665636164571966e-2,
    1.48103976427480074590e-1,
    6.89767334985100004550e-1,
    1.67638483018380384940e0,
    2.05319162663775882187e0,
    1.0,
)
_FAR_TOP = (
    2.01033439929228813265e-7,
    2.71155556874348757815e-5,
    1.24266094738807843860e-3,
    2.65321895265761230930e-2,
    2.96560571828504891230e-1,
    1.78482653991729133580e0,
    5.46378491116411436990e0,
    6.65790464350110377720e0,
)
_FAR_BOTTOM = (
    2.04426310338993978564e-15,
    1.42151175831644588870e-7,
    1.84631831751005468180e-5,
    7.86869131145613259100e-4,
    1.48753612908506148525e-2,
    1.36929880922735805310e-1,
    5.99832206555887937690e-1,
    1.0,
)


CENTRE, FAR, LEAST = 0.425, 5.0, 5e-324
"""Half the width of the centre around 1/2; sqrt(-log tail) from which a tail is far; the least tail."""


def quantile_centre(from_half: Any) -> Any:
    """Compute the normal quantile of 1/2 + x for x in [-CENTRE, CENTRE]."""
    near = 0.180625 - from_half * from_half
    return from_half * polynomial(near, _CENTRE_TOP) / polynomial(near, _CENTRE_BOTTOM)


def quantile_side(r: Any) -> Any:
    """Compute the absolute normal quantile of the tail e^(-r^2) for r in [0, FAR]."""
    side = r - 1.6
    return polynomial(side, _SIDE_TOP) / polynomial(side, _SIDE_BOTTOM)


def quantile_far(r: Any) -> Any:
    """Compute the absolute normal quantile of the tail e^(-r^2) for r from FAR on."""
    far = r - FAR
    return polynomial(far, _FAR_TOP) / polynomial(far, _FAR_BOTTOM)


def _quantile(from_half: Array, tail: Array) -> Array:
    """Compute the normal quantile of p, given p - 1/2 and min(p, 1 - p); NaN where the tail is negative."""
    centre = quantile_centre(np.clip(from_half, -CENTRE, CENTRE))
    r = np.sqrt(-np.log(np.maximum(tail, LEAST)))
    outer = np.where(r <= FAR, quantile_side(np.clip(r, 0.0, FAR)), quantile_far(np.maximum(r, FAR)))
    outer = np.copysign(np.where(tail == 0, np.inf, outer), from_half)
    return np.where(np.isnan(tail) | (tail < 0), np.nan, np.where(np.abs(from_half) <= CENTRE, centre, outer))


def ndtri(p: Array) -> Array:
    """Compute the x below which a standard normal number lies with probability p."""
    return _quantile(p - 0.5, np.minimum(p, 1.0 - p))


def erfinv(x: Array) -> Array:
    """Compute the y with erf(y) = x."""
    return _quantile(x * 0.5, (1.0 - np.abs(x)) * 0.5) * math.sqrt(0.5)


# ---- log gamma: W. J. Cody and K. E. Hillstrom, Chebyshev approximations for ln Gamma, Math. Comp. 21 (1967) --------

_LG1 = -5.772156649015328605195174e-1
_LG1_TOP = (
    4.945235359296727046734888e0,
    2.018112620856775083915565e2,
    2.290838373831346393026739e3,
    1.131967205903380828685045e4,
    2.855724635671635335736389e4,
    3.848496228443793359990269e4,
    2.637748787624195437963534e4,
    7.225813979700288197698961e3,
)
_LG1_BOTTOM = (
    1.0,
    6.748212550303777196073036e1,
    1.113332393857199323513008e3,
    7.738757056935398733233834e3,
    2.763987074403340708898585e4,
    5.499310206226157329794414e4,
    6.161122180066002127833352e4,
    3.635127591501940507276287e4,
    8.785536302431013170870835e3,
)
_LG2 = 4.227843350984671393993777e-1
_LG2_TOP = (
    4.974607845568932035012064e0,
    5.424138599891070494101986e2,
    1.550693864978364947665077e4,
    1.847932904445632425417223e5,
    1.088204769468828767498470e6,
    3.338152967987029735917223e6,
    5.106661678927352456275255e6,
    3.074109054850539556250927e6,
)
_LG2_BOTTOM = (
    1.0,
    1.830328399370592604055942e2,
    7.765049321445005871323047e3,
    1.331903827966074194402448e5,
    1.136705821321969608938755e6,
    5.267964117437946917577538e6,
    1.346701454311101692290052e7,
    1.782736530353274213975932e7,
    9.533095591844353613395747e6,
)
_LG4 = 1.791759469228055000094023e0
_LG4_TOP = (
    1.474502166059939948905062e4,
    2.426813369486704502836312e6,
    1.214755574045093227939592e8,
    2.663432449630976949898078e9,
    2.940378956634553899906876e10,
    1.702665737765398868392998e11,
    4.926125793377430887588120e11,
    5.606251856223951465078242e11,
)
_LG4_BOTTOM = (
    -1.0,
    2.690530175870899333379843e3,
    6.393885654300092398984238e5,
    4.135599930241388052042842e7,
    1.120872109616147941376570e9,
    1.488613728678813811542398e10,
    1.016803586272438228077304e11,
    3.417476345507377132798597e11,
    4.463158187419713286462081e11,
)
BERNOULLI = (
    1 / 6,
    -1 / 30,
    1 / 42,
    -1 / 30,
    5 / 66,
    -691 / 2730,
    7 / 6,
    -3617 / 510,
    43867 / 798,
    -174611 / 330,
    854513 / 138,
    -236364091 / 2730,
)
"""B_2, B_4, ... (Abramowitz and Stegun 23.1)"""
_STIRLING = tuple(b / (2 * k * (2 * k - 1)) for k, b in enumerate(BERNOULLI[:8], 1))[::-1]
_PSI_SERIES = tuple(b / (2 * k) for k, b in enumerate(BERNOULLI[:8], 1))[::-1]


def near_one(x: Any) -> Any:
    """Compute log Gamma(1 + x) for x in [-0.5, 0.5]."""
    return x * (_LG1 + x * (polynomial(x, _LG1_TOP) / polynomial(x, _LG1_BOTTOM)))


def near_two(x: Any) -> Any:
    """Compute log Gamma(2 + x) for x in [-0.5, 2]."""
    return x * (_LG2 + x * (polynomial(x, _LG2_TOP) / polynomial(x, _LG2_BOTTOM)))


def near_four(x: Any) -> Any:
    """Compute log Gamma(4 + x) for x in [0, 8]."""
    return _LG4 + x * (polynomial(x, _LG4_TOP) / polynomial(x, _LG4_BOTTOM))


def stirling_series(x: Any) -> Any:
    """Compute log Gamma(x) less (x - 1/2) log x - x + log(2 pi) / 2, for x > 12 (Abramowitz and Stegun 6.1.41)."""
    inverse = 1 / x
    return inverse * polynomial(inverse * inverse, _STIRLING)


def stirling(x: Any, logarithm: Any) -> Any:
    """Compute log Gamma(x) for x > 12, given log x."""
    return x * (logarithm - 1) - 0.5 * logarithm + 0.5 * math.log(2 * math.pi) + stirling_series(x)


def _sin_pi(x: Array) -> Array:
    """Compute sin(pi x), exactly 0 at integers."""
    fraction = x - 2 * np.rint(x * 0.5)  # in [-1, 1]
    folded = np.where(np.abs(fraction) > 0.5, np.copysign(1.0, fraction) - fraction, fraction)
    result: Array = np.sin(math.pi * folded)
    return result


def _cos_pi(x: Array) -> Array:
    """Compute cos(pi x), exactly 0 half way between integers."""
    return _sin_pi(np.abs(x - 2 * np.rint(x * 0.5)) + 0.5)


def _reflected(x: Array) -> Array:
    """Compute log |Gamma(x)| for x <= 0: Gamma(x) Gamma(1 - x) = pi / sin(pi x)."""
    sine = np.abs(_sin_pi(x))
    return np.where(sine == 0, np.inf, math.log(math.pi) - np.log(sine) - lgamma(1.0 - x))


def lgamma(x: Array) -> Array:
    """Compute log |Gamma(x)|; infinite at 0, -1, -2 ..."""
    return piecewise(
        x,
        [
            (np.isinf(x), np.abs),
            (x <= 0, _reflected),
            (x <= 0.5, lambda x: near_one(x) - np.log(x)),
            (x <= 0.6796875, lambda x: near_two(x - 1.0) - np.log(x)),
            (x <= 1.5, lambda x: near_one(x - 1.0)),
            (x <= 4.0, lambda x: near_two(x - 2.0)),
            (x <= 12.0, lambda x: near_four(x - 4.0)),
            (x > 12.0, lambda x: stirling(x, np.log(x))),
        ],
    )


# ---- digamma: Cody, Strecok, Thacher, Chebyshev approximations for the psi function, Math. Comp. 27 (1973) ----------

_PSI_TOP = (
    4.5104681245762934160e-3,
    5.4932855833000385356e0,
    3.7646693175929276856e2,
    7.9525490849151998065e3,
    7.1451595818951933210e4,
    3.0655976301987365674e5,
    6.3606997788964458797e5,
    5.8041312783537569993e5,
    1.6585695029761022321e5,
)
_PSI_BOTTOM = (
    1.0,
    9.6141654774222358525e1,
    2.6287715790581193330e3,
    2.9862497022250277920e4,
    1.6206566091533671639e5,
    4.3487880712768329037e5,
    5.4256384537269993733e5,
    2.4242185002017985252e5,
    6.4155223783576225996e-8,
)
_PSI_ROOT = (187 / 128, 6.9464496836234126266e-4, -1.8257096315963483e-20)  # the root 1.46163214496836234126 in parts


def psi_middle(x: Any) -> Any:
    """Compute psi(x) for x in [0.5, 3]; exact to the last digits at its root."""
    from_root = ((x - _PSI_ROOT[0]) - _PSI_ROOT[1]) - _PSI_ROOT[2]
    return from_root * polynomial(x, _PSI_TOP) / polynomial(x, _PSI_BOTTOM)


def psi_far(x: Any, logarithm: Any) -> Any:
    """Compute psi(x) for x >= 10, given log x (Abramowitz and Stegun 6.3.18)."""
    inverse = 1 / (x * x)
    return logarithm - 0.5 / x - inverse * polynomial(inverse, _PSI_SERIES)


def _psi_between(x: Array) -> Array:
    """Compute psi(x) for x in (3, 10): up to 10 by psi(x) = psi(x + 1) - 1 / x."""
    total = np.zeros_like(x)
    for _ in range(7):
        low = x < 10
        total -= np.where(low, 1 / x, 0.0)
        x = np.where(low, x + 1, x)
    result: Array = psi_far(x, np.log(x)) + total
    return result


def _psi_reflected(x: Array) -> Array:
    """Compute psi(x) for x <= 0 by psi(1 - x) - psi(x) = pi cot(pi x); NaN at whole numbers."""
    sine = _sin_pi(x)
    return np.where(sine == 0, np.nan, digamma(1.0 - x) - math.pi * _cos_pi(x) / sine)


def digamma(x: Array) -> Array:
    """Compute the derivative of log Gamma(x); NaN at 0, -1, -2 ..."""
    return piecewise(
        x,
        [
            (x == -np.inf, lambda x: x * np.nan),
            (x <= 0, _psi_reflected),
            (x < 0.5, lambda x: psi_middle(x + 1.0) - 1 / x),
            (x <= 3.0, psi_middle),
            (x < 10.0, _psi_between),
            (x >= 10.0, lambda x: psi_far(x, np.log(x))),
        ],
    )


# ---- Hurwitz zeta by Euler-Maclaurin summation, polygamma (Abramowitz and Stegun 6.4.10, 23.2) ----------------------


def _zeta(x: Array, q: Array) -> Array:
    """Compute the sum over k >= 0 of (k + q)^-x for x > 1, q > 0, by the Euler-Maclaurin formula after twelve terms."""
    total = sum((q + k) ** -x for k in range(12))
    a = q + 12
    power = a**-x
    total = total + power * a / (x - 1) + 0.5 * power
    factor = x * power / a
    for k, b in enumerate(BERNOULLI, 1):
        total = total + factor * (b / math.factorial(2 * k))
        factor = factor * ((x + 2 * k - 1) * (x + 2 * k)) / (a * a)
    result: Array = total
    return result


def zeta(x: Array, q: Array) -> Array:
    """Compute the sum over k >= 0 of (k + q)^-x; infinite at x = 1, for even x at q = 0, -1 ...; NaN if not real."""
    x, q = np.broadcast_arrays(x, q)
    below = q - np.floor(q)  # for q < 0 the terms of either sign are two sums of positive ones
    mirrored = np.where(below == 0, 1.0, below)
    sign = np.where(x % 2 == 0, 1.0, -1.0)
    positive = np.where(q > 0, q, mirrored)
    total = _zeta(x, positive)
    if (q < 0).any():
        others = _zeta(x, 1.0 - np.where(q > 0, 0.5, below)) - _zeta(x, 1.0 - np.minimum(q, 0.0))
        total = np.where(q < 0, total + sign * others, total)
    pole = (q <= 0) & (below == 0)
    real = (q > 0) | (x == np.floor(x)) & ~pole
    total = np.where(pole & (x % 2 == 0), np.inf, np.where(real, total, np.nan))
    total = np.where((q == np.inf) | (x == np.inf) & (q > 1), 0.0, total)  # limits of the terms, each a power
    total = np.where((x == np.inf) & (q > 0) & (q <= 1), np.where(q == 1, 1.0, np.inf), total)
    return np.where(x == 1, np.inf, np.where((x > 1) & ~np.isnan(q), total, np.nan))


def trigamma_far(x: Any) -> Any:
    """Compute the derivative of psi(x) for x >= 12 (Abramowitz and Stegun 6.4.12)."""
    inverse = 1 / x
    square = inverse * inverse
    return inverse + 0.5 * square + inverse * square * polynomial(square, BERNOULLI[7::-1])


_FACTORIALS = np.array([float(math.factorial(n)) for n in range(171)] + [np.inf])


def polygamma(n: Array, x: Array) -> Array:
    """Compute the n-th derivative of digamma; NaN unless n is one of 0, 1, 2 ..."""
    n, x = np.broadcast_arrays(n, x)
    order = np.where((n >= 1) & (n == np.floor(n)), n, 1.0)
    factorial = _FACTORIALS[np.minimum(order, 171).astype(np.int64)]
    sign = np.where(order % 2 == 0, -1.0, 1.0)
    derivative = sign * factorial * zeta(order + 1, x)
    return piecewise(n, [(n == 0, lambda _: digamma(x[n == 0])), (n == order, lambda _: derivative[n == order])])
