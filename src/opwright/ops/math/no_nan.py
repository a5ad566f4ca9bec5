"""Products and quotients in which a 0 overrides infinity and NaN.

Lives here: DivNoNan, MulNoNan, Xlogy, Xlog1py, Xdivy, reciprocal_no_nan.
Not here: IEEE 754 arithmetic (arithmetic.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import floating_or_complex
from ...scalar.table import FUNCTIONS
from .. import array, dispatch
from ..definition import operator
from ..public_functions import documented_by
from ..slots import Input, OperatorDefinition, Output
from .arithmetic import floating_pair
from .complex_numbers import conj

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor


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
