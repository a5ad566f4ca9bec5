"""Universal functions: element-wise operators, each with its public function; comparisons and logic.

Lives here: `ufunc`, which defines one by a row of a table, and `in_float64`; the table of relations and connectives,
ApproximateEqual, logical_xor.
Not here: the other tables (elementary.py, rounding.py, special.py, bessel.py, ../bitwise.py), the functions of one
element (scalar/table.py), choosing by a condition (array/), all and any (reduction.py).

A gradient rule `(op, dy)` takes the conjugate of the derivative, which is the derivative itself for real numbers
(complex_numbers.py).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType, numeric, real
from ...core.errors import InvalidArgumentError
from ...core.specs import TensorSpec
from ...scalar.table import FUNCTIONS, OF_OPERATOR
from .. import like_device
from ..attributes import Attr
from ..definition import Operator, operator
from ..slots import Input, OperatorDefinition, Output

if TYPE_CHECKING:
    from .. import signatures
    from ..tensor import Tensor, TensorValue


class Unary(Protocol):
    """The public function of a ufunc "x -> y"."""

    def __call__(self, x: TensorValue, name: str | None = None) -> Tensor: ...


class Binary(Protocol):
    """The public function of a ufunc "x y -> z"."""

    def __call__(self, x: TensorValue, y: TensorValue, name: str | None = None) -> Tensor: ...


@overload
def ufunc(name: str, signature: Literal["x -> y"], *rest: Any, **options: Any) -> tuple[Operator, Unary]: ...
@overload
def ufunc(name: str, signature: Literal["x y -> z"], *rest: Any, **options: Any) -> tuple[Operator, Binary]: ...
@overload
def ufunc(name: str, signature: str, *rest: Any, **options: Any) -> tuple[Operator, Callable[..., Tensor]]: ...
def ufunc(
    name: str,
    signature: str,
    dtypes: DType | Sequence[DType],
    words: str,
    formula: str,
    gradient: Callable[..., Any] | None = None,
    *,
    operator_name: str = "",
    compute: Callable[..., Any] | None = None,
    result: DType | None = None,
    inplace: bool | None = None,
    no_need_buffer: tuple[str, ...] = (),
) -> tuple[Operator, Any]:
    """Define an element-wise operator; return it with its public function.

    name: of the public function. signature: the inputs and the output, as in "x y -> z". dtypes: of the first input;
    the others have the same.
    words, formula: of the docstring; after an empty line of the words stands what follows the formula.
    gradient: the rule; None for an operator without a gradient.
    operator_name: by default BesselI0 for bessel_i0.
    compute: on arrays, with a parameter `out` where it writes into a given array; by default the function of the
    operator's row in scalar/table.py.
    result: the output's dtype; by default the inputs' dtype.
    inplace: whether the output may take the first input's memory; by default where the dtypes agree and `compute` has
    an `out`.
    """
    operator_name = operator_name or "".join(word.capitalize() for word in name.split("_"))
    if compute is None:
        compute = OF_OPERATOR[operator_name].of_arrays
    writes_out = isinstance(compute, np.ufunc) or "out" in inspect.signature(compute).parameters
    *inputs, _, output = signature.split()
    first, *others = inputs
    like = None if isinstance(dtypes, DType) else first
    summary, _, notes = words.partition("\n\n")
    body: dict[str, Any] = {
        "__module__": sys._getframe(1).f_globals["__name__"],
        "__doc__": f"{summary}\n\n.. math:: {formula}\n" + (notes and f"\n{notes}\n"),
        first: Input(dtypes),
        **{other: Input(dtypes, like=like) for other in others},
        output: Output(like=first) if result is None else Output(dtype=result),
        "elementwise": True,
        "compute": compute if isinstance(compute, np.ufunc) else _rule(compute, writes_out),
        "gradient": gradient,
        "no_need_buffer": no_need_buffer,
    }
    if inplace if inplace is not None else writes_out and result in (None, dtypes):
        body["inplace"] = {output: first}
    define: Callable[[type], Operator] = operator(name=operator_name)
    defined = define(type(operator_name, (), body))
    return defined, defined.as_function(name)


def _rule(function: Callable[..., Any], writes_out: bool) -> Callable[..., Any]:
    """Return a function of arrays as an operator's `compute`."""
    if writes_out:
        return lambda op, *arrays, out=None: function(*arrays, out)
    return lambda op, *arrays: function(*arrays)


def in_float64(function: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    """Apply a function on float64 arrays to arrays of any floating dtype; round to the dtype of the first."""
    exact = [np.asarray(a, np.float64) if like_device.on_host(a) else a.astype(np.float64) for a in arrays]
    return function(*exact).astype(arrays[0].dtype, copy=False)


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
