"""Bessel functions of order 0 and 1: I and K, plain and scaled, J and Y.

Lives here: the operators and their derivatives.  Not here: numerics (bessel_arrays.py).

float16, bfloat16 and float32 are computed in float64 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dtypes import floating
from .. import array, math
from ..definition import Input, Output, operator
from . import bessel_arrays
from .special_arrays import in_float64


def _bessel(name: str, function: str, order: int, words: str, formula: str, derivative: Callable[[Any, Any], Any]
            ) -> Any:  # fmt: skip
    """One operator. derivative: of x and the function's value there, in operators."""
    compute_array = getattr(bessel_arrays, function)

    class Bessel:
        x = Input(floating)
        y = Output(like="x")
        elementwise = True
        no_need_buffer = ("y",) if order == 0 and "scaled" not in function else ()  # the next order says it all

        def compute(op, x) -> Any:
            return in_float64(lambda v: compute_array(order, v), x)

        def gradient(op, dy) -> Any:
            return dy * derivative(op.x, op.y)

    Bessel.__doc__ = f"""{words} of order {order}.

    .. math:: {formula}
    """
    return operator(name=name)(Bessel)


def _over(y: Any, x: Any, at_zero: float) -> Any:
    """y / x, with its limit at 0."""
    safe = array.where(x == 0, array.ones_like(x), x)
    return array.where(x == 0, array.ones_like(x) * at_zero, y / safe)


def _sign(x: Any) -> Any:
    return math.sign(x)


_I = "Modified Bessel function of the first kind"
_K = "Modified Bessel function of the second kind"

BesselI0 = _bessel("BesselI0", "i_plain", 0, _I, "y = I_0(x)", lambda x, y: BesselI1(x))
BesselI1 = _bessel("BesselI1", "i_plain", 1, _I, "y = I_1(x)", lambda x, y: BesselI0(x) - _over(y, x, 0.5))
BesselI0e = _bessel("BesselI0e", "i_scaled", 0, f"{_I}, scaled,", "y = e^{-|x|} I_0(x)",
                    lambda x, y: BesselI1e(x) - _sign(x) * y)  # fmt: skip
BesselI1e = _bessel("BesselI1e", "i_scaled", 1, f"{_I}, scaled,", "y = e^{-|x|} I_1(x)",
                    lambda x, y: BesselI0e(x) - _over(y, x, 0.5) - _sign(x) * y)  # fmt: skip
BesselK0 = _bessel("BesselK0", "k_plain", 0, _K, "y = K_0(x)", lambda x, y: -BesselK1(x))
BesselK1 = _bessel("BesselK1", "k_plain", 1, _K, "y = K_1(x)", lambda x, y: -BesselK0(x) - y / x)
BesselK0e = _bessel("BesselK0e", "k_scaled", 0, f"{_K}, scaled,", "y = e^x K_0(x)", lambda x, y: y - BesselK1e(x))
BesselK1e = _bessel("BesselK1e", "k_scaled", 1, f"{_K}, scaled,", "y = e^x K_1(x)",
                    lambda x, y: y * (1.0 - 1.0 / x) - BesselK0e(x))  # fmt: skip
BesselJ0 = _bessel("BesselJ0", "j", 0, "Bessel function of the first kind", "y = J_0(x)", lambda x, y: -BesselJ1(x))
BesselJ1 = _bessel("BesselJ1", "j", 1, "Bessel function of the first kind", "y = J_1(x)",
                   lambda x, y: BesselJ0(x) - _over(y, x, 0.5))  # fmt: skip
BesselY0 = _bessel("BesselY0", "y", 0, "Bessel function of the second kind", "y = Y_0(x)", lambda x, y: -BesselY1(x))
BesselY1 = _bessel("BesselY1", "y", 1, "Bessel function of the second kind", "y = Y_1(x)",
                   lambda x, y: BesselY0(x) - y / x)  # fmt: skip

bessel_i0 = BesselI0.as_function("bessel_i0")
bessel_i0e = BesselI0e.as_function("bessel_i0e")
bessel_i1 = BesselI1.as_function("bessel_i1")
bessel_i1e = BesselI1e.as_function("bessel_i1e")
bessel_j0 = BesselJ0.as_function("bessel_j0")
bessel_j1 = BesselJ1.as_function("bessel_j1")
bessel_k0 = BesselK0.as_function("bessel_k0")
bessel_k0e = BesselK0e.as_function("bessel_k0e")
bessel_k1 = BesselK1.as_function("bessel_k1")
bessel_k1e = BesselK1e.as_function("bessel_k1e")
bessel_y0 = BesselY0.as_function("bessel_y0")
bessel_y1 = BesselY1.as_function("bessel_y1")
