"""Bessel functions of order 0 and 1: I and K, plain and scaled, J and Y.

Lives here: the table of their operators, and the numerics on float64 arrays; float16, bfloat16 and float32 are computed
in float64 and rounded once.
Sources: bessel_pieces.py (I and K), DLMF 10.17 (large arguments), 10.12.4 (the sum
that makes Miller's backward recurrence absolute), 10.23.15 (Neumann's series for Y).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import floating
from .. import array, like_device
from ..definition import Operator
from .bessel_pieces import I_LARGE, K_LARGE, K_MIDDLE, i_large, i_small, k_large, k_middle, k_small
from .complex_numbers import sign
from .ufunc import Unary, in_float64, ufunc

if TYPE_CHECKING:
    from ..tensor import Tensor

_LARGE = 25.0  # from here on asymptotic expansions reach 1e-16: their smallest term is about exp(-2 x)


def _piecewise(
    x: np.ndarray, below: float, small: Callable[[np.ndarray], np.ndarray], large: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Evaluate `small` where x < below, else `large`; NaN stays."""
    flat = x.reshape(-1)
    result = like_device.full(x, flat.shape, np.nan, np.float64)
    with np.errstate(all="ignore"):
        for selected, function in ((flat < below, small), (flat >= below, large)):
            if selected.any():
                result[selected] = function(flat[selected])
    return result.reshape(x.shape)


def _hankel(order: int, x: np.ndarray, terms: int = 26) -> list[np.ndarray]:
    """Return the terms a_k(order) / x^k of Hankel's expansions for large arguments."""
    terms_ = [np.ones_like(x)]
    for k in range(1, terms):
        terms_.append(terms_[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k * x))
    return terms_


# ---- I and K --------------------------------------------------------------------------------------------------------


def i_scaled_array(order: int, x: np.ndarray) -> np.ndarray:
    """Compute exp(-|x|) I_order(x)."""
    result = _piecewise(
        np.abs(x), I_LARGE, lambda v: np.exp(-v) * i_small(order, v), lambda v: i_large(order, v) / np.sqrt(v)
    )
    return np.where(x < 0, -result, result) if order else result


def i_plain_array(order: int, x: np.ndarray) -> np.ndarray:
    """Compute I_order(x)."""

    def large(v: np.ndarray) -> np.ndarray:
        half = np.exp(v * 0.5)  # in two steps, as exp(|x|) overflows before the product does
        return np.where(np.isinf(v), v, i_large(order, v) / np.sqrt(v) * half * half)

    result = _piecewise(np.abs(x), I_LARGE, lambda v: i_small(order, v), large)
    return np.where(x < 0, -result, result) if order else result


def _k_array(order: int, x: np.ndarray, *, scaled: bool) -> np.ndarray:
    """Compute K_order(x), or exp(x) K_order(x); infinite at 0, NaN below."""

    def small(v: np.ndarray) -> np.ndarray:
        value = k_small(order, v, np.log(v * 0.5))
        value = value * np.exp(v) if scaled else value
        return np.where(v > 0, value, np.where(v == 0, np.inf, np.nan))

    def large(v: np.ndarray) -> np.ndarray:
        value: np.ndarray = _piecewise(v, K_LARGE, lambda u: k_middle(order, u), lambda u: k_large(order, u))
        value = value / np.sqrt(v)
        return value if scaled else value * np.exp(-v)

    return _piecewise(x, K_MIDDLE, small, large)


k_scaled_array, k_plain_array = partial(_k_array, scaled=True), partial(_k_array, scaled=False)


# ---- J and Y --------------------------------------------------------------------------------------------------------


def _miller(x: np.ndarray) -> list[np.ndarray]:
    """Compute J_0 to J_89 for 0 < x < 25 by Miller's backward recurrence, with J_0 + 2 J_2 + 2 J_4 + ... = 1."""
    values = [np.zeros_like(x)] * 90
    after, current = np.zeros_like(x), np.full_like(x, 1e-280)
    for n in range(89, -1, -1):
        values[n] = current
        after, current = current, 2 * n / x * current - after
        big = np.abs(current) > 1e200
        if big.any():  # small arguments grow fast: scale all that was found
            scale = np.where(big, 1e-250, 1.0)
            current, after = current * scale, after * scale
            values[n:] = [f * scale for f in values[n:]]
    total = values[0] + 2 * sum(values[2::2])
    return [f / total for f in values]


def _j_large(order: int, x: np.ndarray, shift: float) -> np.ndarray:
    """Compute Hankel's expansion of J (shift 0) and Y (shift pi/2) for large x."""
    terms = _hankel(order, x)
    p = sum(t * (-1) ** (k // 2) for k, t in reversed(list(enumerate(terms))) if k % 2 == 0)
    q = sum(t * (-1) ** (k // 2) for k, t in reversed(list(enumerate(terms))) if k % 2)
    # cos(x - phase) with the phase taken apart, so that large x keep their digits
    phase = (order / 2 + 0.25) * np.pi + shift
    cos = np.cos(x) * np.cos(phase) + np.sin(x) * np.sin(phase)
    sin = np.sin(x) * np.cos(phase) - np.cos(x) * np.sin(phase)
    value = np.sqrt(2 / (np.pi * x)) * (p * cos - q * sin)
    return np.where(np.isinf(x), 0.0, value)


def j_array(order: int, x: np.ndarray) -> np.ndarray:
    """Compute J_order(x)."""

    def small(v: np.ndarray) -> np.ndarray:
        tiny = v < 1e-3
        value = _miller(np.where(tiny, 1.0, v))[order]
        series = 1 - v * v / 4 if order == 0 else v / 2 * (1 - v * v / 8)
        return np.where(tiny, series, value)

    value = _piecewise(np.abs(x), _LARGE, small, lambda v: _j_large(order, v, 0.0))
    return np.where(x < 0, -value, value) if order else value


def y_array(order: int, x: np.ndarray) -> np.ndarray:
    """Compute Y_order(x); minus infinity at 0, NaN below."""

    def small(v: np.ndarray) -> np.ndarray:
        tiny = v < 1e-3
        safe = np.where(v > 0, v, 1.0)
        js = _miller(np.where(tiny, 1.0, safe))
        log = np.log(safe / 2) + np.euler_gamma
        if order == 0:
            series = sum((-1) ** k * js[2 * k] / k for k in range(1, 44))
            value = 2 / np.pi * log * js[0] - 4 / np.pi * series
            near = 2 / np.pi * (log * (1 - safe * safe / 4) + safe * safe / 4)
        else:
            series = sum((-1) ** k * (2 * k + 1) / (k * (k + 1)) * js[2 * k + 1] for k in range(1, 44))
            value = -2 / (np.pi * safe) * js[0] + 2 / np.pi * (log - 1) * js[1] - 2 / np.pi * series
            near = -2 / (np.pi * safe) + safe / np.pi * (log - 0.5)
        value = np.where(tiny, near, value)
        return np.where(v > 0, value, np.where(v == 0, -np.inf, np.nan))

    return _piecewise(x, _LARGE, small, lambda v: _j_large(order, v, np.pi / 2))


# ---- the operators --------------------------------------------------------------------------------------------------


def _bessel(
    name: str, function: Callable[..., Any], order: int, words: str, formula: str, gradient: Callable[..., Any]
) -> tuple[Operator, Unary]:
    """Define the operator of one order of a function on float64 arrays."""
    only_next_order = order == 0 and not name.endswith("e")  # is the derivative, which needs no y
    return ufunc(
        name,
        "x -> y",
        floating,
        f"{words} of order {order}.",
        formula,
        gradient,
        compute=partial(in_float64, partial(function, order)),
        no_need_buffer=("y",) if only_next_order else (),
    )


def _over(y: Any, x: Any, at_zero: float) -> Tensor:
    """Compute y / x, with its limit at 0."""
    safe = array.where(x == 0, array.ones_like(x), x)
    return array.where(x == 0, array.ones_like(x) * at_zero, y / safe)


_I, _I_SCALED = (f"Modified Bessel function of the first kind{scaled}" for scaled in ("", ", scaled,"))
_K, _K_SCALED = (f"Modified Bessel function of the second kind{scaled}" for scaled in ("", ", scaled,"))
_J, _Y = (f"Bessel function of the {kind} kind" for kind in ("first", "second"))

BesselI1: Operator
BesselI1e: Operator
BesselK1: Operator
BesselK1e: Operator
BesselJ1: Operator
BesselY1: Operator

BesselI0, bessel_i0 = _bessel("bessel_i0", i_plain_array, 0, _I, "y = I_0(x)", lambda op, dy: dy * BesselI1(op.x))
BesselI1, bessel_i1 = _bessel(
    "bessel_i1", i_plain_array, 1, _I, "y = I_1(x)", lambda op, dy: dy * (BesselI0(op.x) - _over(op.y, op.x, 0.5))
)
BesselI0e, bessel_i0e = _bessel(
    "bessel_i0e",
    i_scaled_array,
    0,
    _I_SCALED,
    "y = e^{-|x|} I_0(x)",
    lambda op, dy: dy * (BesselI1e(op.x) - sign(op.x) * op.y),
)
BesselI1e, bessel_i1e = _bessel(
    "bessel_i1e",
    i_scaled_array,
    1,
    _I_SCALED,
    "y = e^{-|x|} I_1(x)",
    lambda op, dy: dy * (BesselI0e(op.x) - _over(op.y, op.x, 0.5) - sign(op.x) * op.y),
)
BesselK0, bessel_k0 = _bessel("bessel_k0", k_plain_array, 0, _K, "y = K_0(x)", lambda op, dy: dy * -BesselK1(op.x))
BesselK1, bessel_k1 = _bessel(
    "bessel_k1", k_plain_array, 1, _K, "y = K_1(x)", lambda op, dy: dy * (-BesselK0(op.x) - op.y / op.x)
)
BesselK0e, bessel_k0e = _bessel(
    "bessel_k0e", k_scaled_array, 0, _K_SCALED, "y = e^x K_0(x)", lambda op, dy: dy * (op.y - BesselK1e(op.x))
)
BesselK1e, bessel_k1e = _bessel(
    "bessel_k1e",
    k_scaled_array,
    1,
    _K_SCALED,
    "y = e^x K_1(x)",
    lambda op, dy: dy * (op.y * (1.0 - 1.0 / op.x) - BesselK0e(op.x)),
)
BesselJ0, bessel_j0 = _bessel("bessel_j0", j_array, 0, _J, "y = J_0(x)", lambda op, dy: dy * -BesselJ1(op.x))
BesselJ1, bessel_j1 = _bessel(
    "bessel_j1", j_array, 1, _J, "y = J_1(x)", lambda op, dy: dy * (BesselJ0(op.x) - _over(op.y, op.x, 0.5))
)
BesselY0, bessel_y0 = _bessel("bessel_y0", y_array, 0, _Y, "y = Y_0(x)", lambda op, dy: dy * -BesselY1(op.x))
BesselY1, bessel_y1 = _bessel(
    "bessel_y1", y_array, 1, _Y, "y = Y_1(x)", lambda op, dy: dy * (BesselY0(op.x) - op.y / op.x)
)
