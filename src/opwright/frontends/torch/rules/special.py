"""Special functions: gamma functions, Bessel functions, Airy's function, orthogonal polynomials.

Lives here: rules of ATen's namespace special that the catalogue has, or that short sums of its operators are.
Not here: error functions and others of one line (elementwise.py).
"""

from __future__ import annotations

import math as scalar_math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.dtypes import float64, int64
from ....ops import array, math
from ....ops.math import bessel
from ....tracing import control
from ...importing import known
from .table import AtenCall, aten, tensor

# ---- functions of the catalogue ---------------------------------------------------------------------------------

BESSEL: dict[str, Callable[[Any], Any]] = {
    "special_bessel_j0": bessel.bessel_j0,
    "special_bessel_j1": bessel.bessel_j1,
    "special_bessel_y0": bessel.bessel_y0,
    "special_bessel_y1": bessel.bessel_y1,
    "special_modified_bessel_i0": math.bessel_i0,
    "special_modified_bessel_i1": math.bessel_i1,
    "special_modified_bessel_k0": bessel.bessel_k0,
    "special_modified_bessel_k1": bessel.bessel_k1,
    "special_scaled_modified_bessel_k0": bessel.bessel_k0e,
    "special_scaled_modified_bessel_k1": bessel.bessel_k1e,
}


def _of_one(name: str, function: Callable[[Any], Any]) -> None:
    aten(name)(lambda op, x: function(tensor(x, op.dtype)))


for _name, _function in BESSEL.items():
    _of_one(_name, _function)


@aten("polygamma", "special_polygamma")
def polygamma(op: AtenCall, n: int, x: Any) -> Any:
    x = tensor(x, op.dtype)
    return math.polygamma(tensor(float(n), op.dtype), x) if n else math.digamma(x)


@aten("mvlgamma", "special_multigammaln")
def mvlgamma(op: AtenCall, x: Any, p: int) -> Any:
    """Return p (p - 1) / 4 log(pi) + the sum of log gamma(x - j / 2) over j < p."""
    x = tensor(x, op.dtype)
    total: Any = tensor(p * (p - 1) / 4 * scalar_math.log(scalar_math.pi), op.dtype)
    for j in range(p):
        total = total + math.lgamma(x - tensor(j / 2, op.dtype))
    return total


@aten("special_entr")
def entr(op: AtenCall, x: Any) -> Any:
    """Return -x log(x): 0 at 0, -inf below."""
    x = tensor(x, op.dtype)
    zero = tensor(0, op.dtype)
    return array.where(x < zero, tensor(float("-inf"), op.dtype), array.where(math.is_nan(x), x, -math.xlogy(x, x)))


def _continued(x: Any, terms: int) -> Any:
    """Return sqrt(pi) exp(x^2) erfc(x) for large x by Laplace's continued fraction (DLMF 7.9.1)."""
    tail: Any = x
    for k in range(terms, 0, -1):
        tail = x + tensor(k / 2, x.dtype) / tail
    return math.reciprocal(tail)


@aten("special_erfcx")
def erfcx(op: AtenCall, x: Any) -> Any:
    """Return exp(x^2) erfc(x), above 2 without its factors, of which one overflows."""
    x = array.cast(tensor(x), float64)
    two = tensor(2.0, float64)
    near = math.minimum(x, two)
    product = math.exp(math.square(near)) * math.erfc(near)
    far = _continued(math.maximum(x, two), 60) * tensor(1 / scalar_math.sqrt(scalar_math.pi), float64)
    return array.cast(array.where(x > two, far, product), op.dtype)


@aten("special_log_ndtr")
def log_ndtr(op: AtenCall, x: Any) -> Any:
    """Return the logarithm of the normal distribution, below -1 by log(erfcx(-x / sqrt 2) / 2) - x^2 / 2."""
    x = tensor(x, op.dtype)
    scaled = x * tensor(scalar_math.sqrt(0.5), op.dtype)
    half = tensor(0.5, op.dtype)
    below = math.log(erfcx(op, math.maximum(-scaled, tensor(0, op.dtype))) * half) - math.square(scaled)
    return array.where(x < tensor(-1, op.dtype), below, math.log1p(-math.erfc(scaled) * half))


@aten("special_spherical_bessel_j0")
def spherical_bessel_j0(op: AtenCall, x: Any) -> Any:
    """Return sin(x) / x, 0 at infinity."""
    x = tensor(x, op.dtype)
    zero, one = tensor(0, op.dtype), tensor(1, op.dtype)
    origin = math.equal(x, zero)
    quotient = math.sin(x) / array.where(origin, one, x)
    return array.where(math.is_inf(x), zero, array.where(origin, one, quotient))


AIRY_AT_0 = 0.355028053887817239  # Ai(0) and -Ai'(0), DLMF 9.2.3 and 9.2.4
AIRY_SLOPE = 0.258819403792806798
NEAR = 5.0  # Maclaurin's series loses the digits of exp(2 zeta), the asymptotic one ends at exp(-2 zeta): 1e-6 here


def _airy_series(x: Any) -> Any:
    """Return Ai(x) by its Maclaurin series (DLMF 9.4.1)."""
    cube = x * x * x
    first, second = tensor(AIRY_AT_0, x.dtype), x * tensor(AIRY_SLOPE, x.dtype)
    total: Any = first - second
    for k in range(1, 28):
        first = first * cube * tensor(1 / ((3 * k - 1) * 3 * k), x.dtype)
        second = second * cube * tensor(1 / (3 * k * (3 * k + 1)), x.dtype)
        total = total + first - second
    return total


def _airy_terms(count: int) -> list[float]:
    """Return the coefficients u_k of the asymptotic expansions (DLMF 9.7.2)."""
    terms = [1.0]
    for k in range(1, count):
        terms.append(terms[-1] * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216 * k * (2 * k - 1)))
    return terms


def _polynomial(x: Any, coefficients: list[float]) -> Any:
    """Return the sum of coefficients[k] x^k."""
    total: Any = tensor(coefficients[-1], x.dtype)
    for c in reversed(coefficients[:-1]):
        total = total * x + tensor(c, x.dtype)
    return total


@aten("special_airy_ai")
def airy(op: AtenCall, x: Any) -> Any:
    """Return Ai(x) by a series near 0, elsewhere by the expansions DLMF 9.7.5 and 9.7.9."""
    x = array.cast(tensor(x), float64)
    limit = tensor(NEAR, float64)
    size = math.maximum(math.abs(x), limit)
    zeta = tensor(2 / 3, float64) * size * math.sqrt(size)
    root = math.sqrt(math.sqrt(size)) * tensor(scalar_math.sqrt(scalar_math.pi), float64)
    u = _airy_terms(14)
    inverse = math.reciprocal(zeta)
    right = math.exp(-zeta) / (tensor(2, float64) * root) * _polynomial(-inverse, u)
    square = -math.square(inverse)
    angle = zeta - tensor(scalar_math.pi / 4, float64)
    even, odd = _polynomial(square, u[::2]), inverse * _polynomial(square, u[1::2])
    left = (math.cos(angle) * even + math.sin(angle) * odd) / root
    near = _airy_series(math.minimum(math.maximum(x, -limit), limit))
    far = array.where(x > limit, right, array.where(math.is_inf(x), tensor(float("nan"), float64), left))
    y = array.where(math.abs(x) > limit, far, near)
    return array.cast(array.where(math.is_nan(x), x, y), op.dtype)


# ---- orthogonal polynomials -------------------------------------------------------------------------------------

Step = Callable[[Any, Any, Any, Any], Any]
"""The next polynomial from x, k, those of the orders k and k - 1. k has the dtype of x."""


def _twice(x: Any) -> Any:
    return x + x


def _chebyshev(x: Any, k: Any, last: Any, before: Any) -> Any:
    return _twice(x) * last - before


POLYNOMIALS: dict[str, tuple[Callable[[Any, Any], Any], Step]] = {  # order 1, from x and 1; steps (DLMF 18.9)
    "chebyshev_polynomial_t": (lambda x, one: x, _chebyshev),
    "chebyshev_polynomial_u": (lambda x, one: _twice(x), _chebyshev),
    "chebyshev_polynomial_v": (lambda x, one: _twice(x) - one, _chebyshev),
    "chebyshev_polynomial_w": (lambda x, one: _twice(x) + one, _chebyshev),
    "hermite_polynomial_h": (
        lambda x, one: _twice(x),
        lambda x, k, last, before: _twice(x) * last - _twice(k) * before,
    ),
    "hermite_polynomial_he": (lambda x, one: x, lambda x, k, last, before: x * last - k * before),
    "laguerre_polynomial_l": (
        lambda x, one: one - x,
        lambda x, k, last, before: (
            ((_twice(k) + tensor(1, k.dtype) - x) * last - k * before) / (k + tensor(1, k.dtype))
        ),
    ),
    "legendre_polynomial_p": (
        lambda x, one: x,
        lambda x, k, last, before: (
            ((_twice(k) + tensor(1, k.dtype)) * x * last - k * before) / (k + tensor(1, k.dtype))
        ),
    ),
}


def _orthogonal(name: str, first: Callable[[Any, Any], Any], step: Step, shifted: bool) -> None:
    def rule(op: AtenCall, x: Any, n: Any) -> Any:
        x = tensor(x, op.dtype)
        if shifted:
            x = _twice(x) - tensor(1, op.dtype)
        order = known(n)
        degree = array.cast(tensor(n) if order is None else tensor(np.trunc(order).astype(np.int64)), int64)
        shape = array.zeros_like(x) + array.zeros_like(array.cast(degree, op.dtype))
        x = x + array.zeros_like(shape)
        ones = array.ones_like(x)
        result = array.where(math.equal(degree, tensor(0, int64)), ones, array.zeros_like(x))
        result = array.where(math.equal(degree, tensor(1, int64)), first(x, ones), result)
        last, before = first(x, ones), ones
        if order is not None:
            for k in range(1, max(int(np.trunc(order).max(initial=0)), 1)):
                last, before = step(x, tensor(float(k), op.dtype), last, before), last
                result = array.where(math.equal(degree, tensor(k + 1, int64)), last, result)
            return result
        highest = math.reduce_max(degree)

        def following(k: Any, last: Any, before: Any, result: Any) -> Any:
            after = step(x, array.cast(k, op.dtype), last, before)
            chosen = math.equal(degree, k + tensor(1, int64))
            return k + tensor(1, int64), after, last, array.where(chosen, after, result)

        start = [tensor(1, int64), last, before, result]
        return control.while_loop(lambda k, *rest: k < highest, following, start)[3]

    aten(f"special_{'shifted_' if shifted else ''}{name}")(rule)


for _name, (_first, _step) in POLYNOMIALS.items():
    _orthogonal(_name, _first, _step, False)
    if _name.startswith("chebyshev"):
        _orthogonal(_name, _first, _step, True)
