"""Comparisons and logic, element by element with broadcasting.

Lives here: the table of relations and connectives, ApproximateEqual, logical_xor.
Not here: choosing by a condition (array/), all and any (reduction.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import numeric, real
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from ...scalar.table import FUNCTIONS
from ..attributes import Attr
from ..definition import operator
from ..slots import Input, OperatorDefinition, Output
from .ufunc import ufunc

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor


def _compared(relation: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Return a relation of arrays with its results as bools; NumPy returns objects for strings.

    One string alone is `bytes`, which NumPy would compare without the zero bytes at its end.
    """

    def compare(x: Any, y: Any) -> np.ndarray:
        if type(x) is bytes or type(y) is bytes:
            x, y = np.asarray(x, object), np.asarray(y, object)
        return np.asarray(relation(x, y), np.bool_)[()] if x.dtype.kind == "O" else relation(x, y)

    return compare


Equal, equal = ufunc(
    "equal",
    "x y -> z",
    dtypes.ALL,
    "Whether x equals y. NaN equals nothing.",
    r"z = [x = y]",
    result=dtypes.bool,
    compute=_compared(FUNCTIONS["equal"].of_arrays),
)
NotEqual, not_equal = ufunc(
    "not_equal",
    "x y -> z",
    dtypes.ALL,
    "Whether x differs from y. NaN differs from everything.",
    r"z = [x \ne y]",
    result=dtypes.bool,
    compute=_compared(FUNCTIONS["not_equal"].of_arrays),
)
Less, less = ufunc(
    "less", "x y -> z", real, "Whether x is less than y; False where either is NaN.", r"z = [x < y]", result=dtypes.bool
)
LessEqual, less_equal = ufunc(
    "less_equal",
    "x y -> z",
    real,
    "Whether x is at most y; False where either is NaN.",
    r"z = [x \le y]",
    result=dtypes.bool,
)
Greater, greater = ufunc(
    "greater",
    "x y -> z",
    real,
    "Whether x is greater than y; False where either is NaN.",
    r"z = [x > y]",
    result=dtypes.bool,
)
GreaterEqual, greater_equal = ufunc(
    "greater_equal",
    "x y -> z",
    real,
    "Whether x is at least y; False where either is NaN.",
    r"z = [x \ge y]",
    result=dtypes.bool,
)


@operator
class ApproximateEqual(OperatorDefinition):
    """Whether x and y, of one shape, differ by less than `tolerance`.

    .. math:: z = [|x - y| < tolerance]

    raises InvalidArgumentError if the shapes differ
    """

    x = Input(numeric)
    y = Input(numeric, like="x")
    z = Output(dtype=dtypes.bool)
    tolerance = Attr(float, default=1e-5)
    gradient = None

    def infer(op) -> TensorSpec:
        x, y = op.x.spec, op.y.spec
        if not x.shape.is_compatible_with(y.shape):
            raise InvalidArgumentError(what="x and y must be of the same shape", found=f"{x.short()}, {y.short()}")
        return TensorSpec(x.shape.merge_with(y.shape), dtypes.bool)

    def compute(op, x: Any, y: Any) -> np.ndarray:
        if x.dtype.kind in "iu":  # unsigned differences wrap
            result: np.ndarray = np.subtract(np.maximum(x, y), np.minimum(x, y)) < op.tolerance
            return result
        output: np.ndarray = np.absolute(np.subtract(x, y)) < np.float32(op.tolerance)
        return output


approximate_equal: signatures.ApproximateEqual = ApproximateEqual.as_function("approximate_equal")


LogicalAnd, logical_and = ufunc(
    "logical_and", "x y -> z", dtypes.bool, "Whether both are true.", r"z = x \land y", result=dtypes.bool
)
LogicalOr, logical_or = ufunc(
    "logical_or", "x y -> z", dtypes.bool, "Whether one or both are true.", r"z = x \lor y", result=dtypes.bool
)
LogicalNot, logical_not = ufunc(
    "logical_not", "x -> y", dtypes.bool, "Whether it is false.", r"y = \lnot x", result=dtypes.bool
)


def logical_xor(x: Any, y: Any, name: str | None = "LogicalXor") -> Tensor:
    """Return whether exactly one operand is true."""
    result: Tensor = LogicalAnd(LogicalOr(x, y), LogicalNot(LogicalAnd(x, y)), name=name)
    return result
