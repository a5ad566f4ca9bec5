"""Elementary functions: powers, exponentials, logarithms, roots, trigonometric and hyperbolic functions, sigmoids;
products and quotients in which a 0 overrides infinity and NaN.

Lives here: the table of their operators; polyval and log_sigmoid; DivNoNan, MulNoNan, Xlogy, Xlog1py, Xdivy,
reciprocal_no_nan.
Not here: erf and gamma (special.py), activations (ops/nn/activation.py), the angle of a complex number
(complex_numbers.py), IEEE 754 arithmetic (arithmetic.py).

Angles are in radians. How a row is read: ufunc.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import floating, floating_or_complex, numeric
from ...scalar.table import FUNCTIONS
from .. import array, dispatch
from ..definition import operator
from ..registry import documented_by
from ..slots import Input, OperatorDefinition, Output
from .arithmetic import floating_pair, negative
from .complex_numbers import abs as abs_
from .complex_numbers import conj
from .ufunc import Unary, ufunc

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor

# ---- powers, exponentials and logarithms ----------------------------------------------------------------------------

Exp, exp = ufunc("exp", "x -> y", floating_or_complex, "Power of e.", r"y = e^x", lambda op, dy: dy * conj(op.y))
Expm1, expm1 = ufunc(
    "expm1",
    "x -> y",
    floating_or_complex,
    "Power of e, less 1, exact to the last digits near 0.",
    r"y = e^x - 1",
    lambda op, dy: dy * (conj(op.y) + 1),
)
Log, log = ufunc(
    "log",
    "x -> y",
    floating_or_complex,
    "Natural logarithm: -infinity at 0, NaN for negative real numbers.",
    r"y = \ln x",
    lambda op, dy: dy / conj(op.x),
)
Log1p, log1p = ufunc(
    "log1p",
    "x -> y",
    floating_or_complex,
    "Natural logarithm of 1 + x, exact to the last digits near 0.",
    r"y = \ln(1 + x)",
    lambda op, dy: dy / (conj(op.x) + 1),
)
Sqrt, sqrt = ufunc(
    "sqrt",
    "x -> y",
    floating_or_complex,
    "Square root: NaN for negative real numbers.",
    r"y = \sqrt x",
    lambda op, dy: dy * 0.5 / conj(op.y),
)
Rsqrt, rsqrt = ufunc(
    "rsqrt",
    "x -> y",
    floating_or_complex,
    "Reciprocal of the square root.",
    r"y = 1 / \sqrt x",
    lambda op, dy: dy * -0.5 * ((y := conj(op.y)) * y * y),
)
Square, square = ufunc("square", "x -> y", numeric, "Second power.", r"y = x^2", lambda op, dy: dy * (conj(op.x) * 2))
Reciprocal, reciprocal = ufunc(
    "reciprocal",
    "x -> y",
    floating_or_complex,
    "One divided by it.",
    r"y = 1 / x",
    lambda op, dy: -dy * (y := conj(op.y)) * y,
)

# ---- trigonometric functions and their inverses ---------------------------------------------------------------------

cos: Unary
cosh: Unary

Sin, sin = ufunc("sin", "x -> y", floating_or_complex, "Sine.", r"y = \sin x", lambda op, dy: dy * cos(conj(op.x)))
Cos, cos = ufunc("cos", "x -> y", floating_or_complex, "Cosine.", r"y = \cos x", lambda op, dy: -dy * sin(conj(op.x)))
Tan, tan = ufunc(
    "tan", "x -> y", floating_or_complex, "Tangent.", r"y = \tan x", lambda op, dy: dy * (1 + (y := conj(op.y)) * y)
)
Asin, asin = ufunc(
    "asin",
    "x -> y",
    floating_or_complex,
    "Inverse sine, in [-pi/2, pi/2]; NaN for real numbers outside [-1, 1].",
    r"y = \arcsin x",
    lambda op, dy: dy / sqrt((1 - (x := conj(op.x))) * (1 + x)),
)
Acos, acos = ufunc(
    "acos",
    "x -> y",
    floating_or_complex,
    "Inverse cosine, in [0, pi]; NaN for real numbers outside [-1, 1].",
    r"y = \arccos x",
    lambda op, dy: -dy / sqrt((1 - (x := conj(op.x))) * (1 + x)),
)
Atan, atan = ufunc(
    "atan",
    "x -> y",
    floating_or_complex,
    "Inverse tangent, in [-pi/2, pi/2].",
    r"y = \arctan x",
    lambda op, dy: dy / (1 + (x := conj(op.x)) * x),
)
Atan2, atan2 = ufunc(
    "atan2",
    "y x -> z",
    floating,
    "The angle of the point (x, y), in [-pi, pi].",
    r"z = \arctan(y / x) \text{ in the quadrant of } (x, y)",
    lambda op, dz: (op.x * (scale := dz / (op.x * op.x + op.y * op.y)), -op.y * scale),
    inplace=False,
)

# ---- hyperbolic functions and their inverses ------------------------------------------------------------------------

Sinh, sinh = ufunc(
    "sinh",
    "x -> y",
    floating_or_complex,
    "Hyperbolic sine.",
    r"y = (e^x - e^{-x}) / 2",
    lambda op, dy: dy * cosh(conj(op.x)),
)
Cosh, cosh = ufunc(
    "cosh",
    "x -> y",
    floating_or_complex,
    "Hyperbolic cosine.",
    r"y = (e^x + e^{-x}) / 2",
    lambda op, dy: dy * sinh(conj(op.x)),
)
Tanh, tanh = ufunc(
    "tanh",
    "x -> y",
    floating_or_complex,
    "Hyperbolic tangent.",
    r"y = (e^x - e^{-x}) / (e^x + e^{-x})",
    lambda op, dy: dy * (1 - (y := conj(op.y)) * y),
)
Asinh, asinh = ufunc(
    "asinh",
    "x -> y",
    floating_or_complex,
    "Inverse hyperbolic sine.",
    r"y = \ln(x + \sqrt{x^2 + 1})",
    lambda op, dy: dy / cosh(conj(op.y)),
)
Acosh, acosh = ufunc(
    "acosh",
    "x -> y",
    floating_or_complex,
    "Inverse hyperbolic cosine; NaN for real numbers below 1.",
    r"y = \ln(x + \sqrt{x^2 - 1})",
    lambda op, dy: dy / sinh(conj(op.y)),
)
Atanh, atanh = ufunc(
    "atanh",
    "x -> y",
    floating_or_complex,
    "Inverse hyperbolic tangent; NaN for real numbers outside [-1, 1].",
    r"y = \frac{1}{2} \ln \frac{1 + x}{1 - x}",
    lambda op, dy: dy / ((1 - (x := conj(op.x))) * (1 + x)),
)

# ---- the logistic function and its kin ------------------------------------------------------------------------------

Sigmoid, sigmoid = ufunc(
    "sigmoid",
    "x -> y",
    floating_or_complex,
    "Logistic function.",
    r"y = 1 / (1 + e^{-x})",
    lambda op, dy: dy * (y := conj(op.y)) * (1 - y),
)
Softplus, softplus = ufunc(
    "softplus",
    "features -> activations",
    floating,
    "A smooth positive part, without overflow for large numbers.",
    r"activations = \ln(1 + e^{features})",
    lambda op, dactivations: dactivations * Sigmoid(op.features),
)
Softsign, softsign = ufunc(
    "softsign",
    "features -> activations",
    floating,
    "A bend from -1 to 1 with slow tails.",
    r"activations = features / (1 + |features|)",
    lambda op, dactivations: dactivations / ((scale := 1 + abs_(op.features)) * scale),
)


@documented_by(Softplus)
def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """Return the logarithm of the logistic function: -softplus(-x)."""
    return negative(softplus(negative(x)), name=name)


def polyval(coeffs: Any, x: Any, name: str | None = None) -> Tensor:
    """Evaluate a polynomial at x by Horner's rule; coeffs: a list, the highest power first; empty for 0.

    .. math:: p(x) = coeffs_0 x^{n-1} + ... + coeffs_{n-1}
    """
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type. Received type {type(coeffs)}.")
    x = dispatch.to_tensor(x)
    if not coeffs:
        return array.zeros_like(x, name=name)
    coeffs = [dispatch.to_tensor(c, None if hasattr(c, "spec") else x.dtype) for c in coeffs]
    total = coeffs[0]
    for coeff in coeffs[1:]:
        total = coeff + total * x
    result: Tensor = total
    return result


@operator
class DivNoNan(OperatorDefinition):
    """Quotient, with 0 where the divisor is 0.

    .. math:: z = x / y \\text{ if } y \\ne 0 \\text{ else } 0
    """

    x = Input(floating_or_complex)
    y = Input(floating_or_complex, like="x")
    z = Output(like="x")
    elementwise = True

    def compute(op, x: Any, y: Any) -> np.ndarray:
        result: np.ndarray = FUNCTIONS["divide_no_nan"].numpy(x, y)
        return result

    def gradient(op, dz: Any) -> tuple[Tensor, Tensor]:
        y = conj(op.y)
        return DivNoNan(dz, y), DivNoNan(-dz * conj(op.z), y)


@documented_by(DivNoNan)
def divide_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return x / y, and 0 where y is 0. Integers are converted as by `divide`."""
    return DivNoNan(*floating_pair(x, y), name=name)


@documented_by(DivNoNan)
def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """Return 1 / x, and 0 where x is 0."""
    x = dispatch.to_tensor(x)
    return divide_no_nan(array.ones_like(x), x, name=name)


@operator
class MulNoNan(OperatorDefinition):
    """Product, with 0 where y is 0 even if x is infinite or NaN.

    .. math:: z = x y \\text{ if } y \\ne 0 \\text{ else } 0
    """

    x = Input(floating_or_complex)
    y = Input(floating_or_complex, like="x")
    z = Output(like="x")
    elementwise = True

    def compute(op, x: Any, y: Any) -> np.ndarray:
        result: np.ndarray = np.where(y == 0, x.dtype.type(0), np.multiply(x, y))
        return result

    def gradient(op, dz: Any) -> tuple[Tensor, Tensor]:
        x, y = conj(op.x), conj(op.y)
        return MulNoNan(dz, y), MulNoNan(x, dz)


multiply_no_nan: signatures.MulNoNan = MulNoNan.as_function("multiply_no_nan")


def _not_zero(x: Any) -> Tensor:
    """1 where x is not 0, else 0."""
    result: Tensor = array.cast(x != 0, x.dtype)
    return result


@operator
class Xlogy(OperatorDefinition):
    """x times the logarithm of y, and 0 where x is 0 whatever y is.

    .. math:: z = x \\ln y \\text{ if } x \\ne 0 \\text{ else } 0
    """

    x = Input(floating_or_complex)
    y = Input(floating_or_complex, like="x")
    z = Output(like="x")
    elementwise = True

    def compute(op, x: Any, y: Any) -> np.ndarray:
        result: np.ndarray = np.where(x == 0, x.dtype.type(0), x * np.log(y))
        return result

    def gradient(op, dz: Any) -> tuple[Any, Any]:
        x, y = conj(op.x), conj(op.y)
        return dz * Xlogy(_not_zero(x), y), dz * Xdivy(x, y)


xlogy: signatures.Xlogy = Xlogy.as_function("xlogy")


@operator
class Xlog1py(OperatorDefinition):
    """x times the logarithm of 1 + y, and 0 where x is 0 whatever y is.

    .. math:: z = x \\ln(1 + y) \\text{ if } x \\ne 0 \\text{ else } 0
    """

    x = Input(floating_or_complex)
    y = Input(floating_or_complex, like="x")
    z = Output(like="x")
    elementwise = True

    def compute(op, x: Any, y: Any) -> np.ndarray:
        result: np.ndarray = np.where(x == 0, x.dtype.type(0), x * np.log1p(y))
        return result

    def gradient(op, dz: Any) -> tuple[Any, Any]:
        x, y = conj(op.x), conj(op.y)
        return dz * Xlog1py(_not_zero(x), y), dz * Xdivy(x, y + 1)


xlog1py: signatures.Xlog1py = Xlog1py.as_function("xlog1py")


@operator
class Xdivy(OperatorDefinition):
    """x divided by y, and 0 where x is 0 whatever y is.

    .. math:: z = x / y \\text{ if } x \\ne 0 \\text{ else } 0
    """

    x = Input(floating_or_complex)
    y = Input(floating_or_complex, like="x")
    z = Output(like="x")
    elementwise = True

    def compute(op, x: Any, y: Any) -> np.ndarray:
        result: np.ndarray = FUNCTIONS["zero_or_quotient"].numpy(x, y)
        return result

    def gradient(op, dz: Any) -> tuple[Any, Any]:
        x, y = conj(op.x), conj(op.y)
        return dz * Xdivy(_not_zero(x), y), dz * Xdivy(-x, y * y)


xdivy: signatures.Xdivy = Xdivy.as_function("xdivy")
