"""Special functions of elements: log gamma and its derivatives, normal quantile, inverse erf, Bessel functions I and K.

Lives here: the selector of SpecialFunction, its family; the pieces of each function joined.
Not here: the approximations (ops/math/special_arrays.py, bessel_pieces.py), functions of the scalar table
(expression.py).

All is computed in float64 and rounded once. Where NumPy computes each piece for the elements that need it, vectors
compute all of them, but for reflections, which no vector of positive numbers needs. Sines are the C library's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ...core.dtypes import DType, float64
from ...ops.math.bessel_pieces import I_LARGE, K_LARGE, K_MIDDLE, i_large, i_small, k_large, k_middle, k_small
from ...ops.math.special_arrays import (
    CENTRE,
    FAR,
    LEAST,
    near_four,
    near_one,
    near_two,
    psi_far,
    psi_middle,
    quantile_centre,
    quantile_far,
    quantile_side,
    stirling,
    trigamma_far,
)
from ...scalar.numerics import double
from .. import language as kl
from ..language import i64, ptr, u8
from ..loops.domain_ops import SpecialFunction
from ..loops.expressions import apply, arg
from ..target import host
from . import NoKernel, selector
from .expression import DTYPES, check, evaluate
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Value, Work
    from ..loops.plan_builder import Builder
    from ..target import Target

SIN = apply("sin", arg(0, float64))


def _log(x: Value) -> Value:
    return kl.apply(double.log, x)


def _exp(x: Value) -> Value:
    return kl.apply(double.exp, x)


def _sin_pi(x: Value) -> Value:
    """Return sin(pi x), exactly 0 at integers."""
    fraction = x - 2.0 * kl.round_even(x * 0.5)
    beyond = kl.select(fraction < 0.0, -1.0 - fraction, 1.0 - fraction)
    folded = kl.select(kl.abs(fraction) > 0.5, beyond, fraction)
    return evaluate(SIN, [folded * math.pi])


def _cos_pi(x: Value) -> Value:
    """Return cos(pi x), exactly 0 half way between integers."""
    return _sin_pi(kl.abs(x - 2.0 * kl.round_even(x * 0.5)) + 0.5)


def log_gamma(x: Value) -> Value:
    """Return log |Gamma(x)|; infinite at 0, -1, -2 ..."""
    is_reflected = x <= 0.0
    a = kl.select(is_reflected, 1.0 - x, x)
    logarithm, is_small, is_below = _log(a), a <= 0.5, a <= 0.6796875
    one = near_one(kl.select(is_small, a, a - 1.0))
    two = near_two(kl.select(is_below, a - 1.0, a - 2.0))
    four, far = near_four(a - 4.0), stirling(a, logarithm)
    large = kl.select(a <= 4.0, two, kl.select(a <= 12.0, four, far))
    result = kl.select(is_small, one, kl.select(is_below, two, kl.select(a <= 1.5, one, large)))
    result = result - kl.select(is_below, logarithm, 0.0)

    def reflected() -> Value:
        sine = kl.abs(_sin_pi(x))
        mirrored = kl.select(sine == 0.0, math.inf, math.log(math.pi) - _log(sine) - result)
        return kl.select(is_reflected, mirrored, result)

    result = kl.where_any(is_reflected, reflected, result)
    return kl.select(kl.abs(x) == math.inf, math.inf, result)


def digamma(x: Value) -> Value:
    """Return the derivative of log Gamma(x); NaN at 0, -1, -2 ..."""
    is_reflected = x <= 0.0
    a = kl.select(is_reflected, 1.0 - x, x)
    is_small = a < 0.5
    middle = psi_middle(kl.select(is_small, a + 1.0, a)) - kl.select(is_small, 1.0 / a, 0.0)
    raised, total = a, a * 0.0
    for _ in range(7):
        is_low = raised < 10.0
        total = total - kl.select(is_low, 1.0 / raised, 0.0)
        raised = kl.select(is_low, raised + 1.0, raised)
    far = psi_far(raised, _log(raised)) + kl.select(a < 10.0, total, 0.0)
    result = kl.select(a <= 3.0, middle, far)

    def reflected() -> Value:
        sine = _sin_pi(x)
        mirrored = kl.select(sine == 0.0, math.nan, result - math.pi * _cos_pi(x) / sine)
        return kl.select(is_reflected, mirrored, result)

    return kl.where_any(is_reflected, reflected, result)


def trigamma(x: Value) -> Value:
    """Return the second derivative of log Gamma(x); infinite at 0, -1, -2 ..."""
    is_reflected = x <= 0.0
    a = kl.select(is_reflected, 1.0 - x, x)
    total = trigamma_far(a + 12.0)
    for k in range(12):
        inverse = 1.0 / (a + float(11 - k))
        total = total + inverse * inverse

    def reflected() -> Value:
        sine = _sin_pi(x)
        quotient = math.pi / sine
        mirrored = kl.select(sine == 0.0, math.inf, quotient * quotient - total)
        return kl.select(is_reflected, mirrored, total)

    return kl.where_any(is_reflected, reflected, total)


def _quantile(from_half: Value, tail: Value) -> Value:
    """Return the normal quantile of p, given p - 1/2 and min(p, 1 - p); NaN where the tail is negative."""
    centre = quantile_centre(kl.clamp(from_half, -CENTRE, CENTRE))
    r = kl.sqrt(0.0 - _log(kl.maximum(tail, LEAST)))
    outer = kl.select(r <= FAR, quantile_side(kl.clamp(r, 0.0, FAR)), quantile_far(kl.maximum(r, FAR)))
    outer = kl.select(tail == 0.0, math.inf, outer)
    outer = kl.select(from_half < 0.0, 0.0 - outer, outer)
    result = kl.select(kl.abs(from_half) <= CENTRE, centre, outer)
    return kl.select(tail >= 0.0, result, math.nan)


def normal_quantile(p: Value) -> Value:
    """Return the x below which a standard normal number lies with probability p."""
    return _quantile(p - 0.5, kl.minimum(p, 1.0 - p))


def inverse_erf(x: Value) -> Value:
    """Return the y with erf(y) = x."""
    return _quantile(x * 0.5, (1.0 - kl.abs(x)) * 0.5) * math.sqrt(0.5)


def _at_least(x: Value, limit: float) -> Value:
    return kl.select(x > limit, x, limit)


def _at_most(x: Value, limit: float) -> Value:
    return kl.select(x < limit, x, limit)


def bessel_i(order: int, scaled: bool, x: Value) -> Value:
    """Return I_order(x), or exp(-|x|) I_order(x)."""
    a = kl.abs(x)
    near, far = _at_most(a, I_LARGE), _at_least(a, I_LARGE)
    small, large = i_small(order, near), i_large(order, far) / kl.sqrt(far)
    if scaled:
        small = small * _exp(0.0 - near)
    else:
        half = _exp(far * 0.5)  # in two steps, as exp(|x|) overflows before the product does
        large = kl.select(a == math.inf, math.inf, large * half * half)
    result = kl.select(a < I_LARGE, small, kl.select(x != x, x, large))
    return kl.select(x < 0.0, 0.0 - result, result) if order else result


def bessel_k(order: int, scaled: bool, x: Value) -> Value:
    """Return K_order(x), or exp(x) K_order(x); infinite at 0, NaN below."""
    near, far = _at_most(x, K_MIDDLE), _at_least(x, K_LARGE)
    middle = _at_most(_at_least(x, K_MIDDLE), K_LARGE)
    small = k_small(order, near, _log(near * 0.5))
    large = kl.select(x < K_LARGE, k_middle(order, middle), k_large(order, far)) / kl.sqrt(_at_least(x, K_MIDDLE))
    if scaled:
        small = small * _exp(near)
    else:
        large = large * _exp(0.0 - _at_least(x, K_MIDDLE))
    result = kl.select(x < K_MIDDLE, small, large)
    return kl.select(x > 0.0, result, kl.select(x == 0.0, math.inf, x * math.nan))


FUNCTIONS: dict[str, Callable[[Value], Value]] = {
    **{f.__name__: f for f in (log_gamma, digamma, trigamma, normal_quantile, inverse_erf)},
    **{
        f"bessel_{letter}{order}{'e' * scaled}": partial(function, order, scaled)
        for letter, function in (("i", bessel_i), ("k", bessel_k))
        for order in (0, 1)
        for scaled in (False, True)
    },
}
COST = 64
"""Bytes of memory traffic that take as long as an element."""
VECTORS = 2
"""Vectors of an item: the steps of a polynomial wait for each other, and two polynomials share the time."""


def _lanes(target: Target) -> int:
    return VECTORS * target.lanes(float64.size)


@kl.family
def special(work: Work, x: ptr[u8], y: ptr[u8], n: i64, *, source: DType, kind: str) -> None:
    """Compute a function of n elements. Items: elements by `_lanes`."""
    x, y = x.cast(source, source.size), y.cast(source, source.size)
    lanes = _lanes(work.target)
    for item in work.items():
        i = item * lanes
        mask = kl.tail_mask(n - i, lanes)
        y.store(FUNCTIONS[kind](x.load(i, lanes, mask).to(float64)).to(source), i, mask)


@selector(SpecialFunction)
def select_special(form: SpecialFunction, build: Builder) -> None:
    """Select for floats, where the C library has a sine of float64."""
    x, y = form.input, form.output
    if x.dtype not in DTYPES or not x.dtype.is_floating or x.dtype is not y.dtype:
        raise NoKernel(f"{form.kind} of {x!r}")
    if x.parent is not None or y.parent is not None:
        raise NoKernel(f"{form.kind} of {x!r}")
    check(SIN)
    items = -(-x.size // _lanes(host()))
    code = special.code(source=x.dtype, kind=form.kind)
    words = [build.pointer(x), build.pointer(y), x.size]
    build.step(code, words, items, chunk=grain(COST * x.size, items))
