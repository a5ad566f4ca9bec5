"""Element-wise operators: each is a map of its broadcast operands.

Lives here: their expressions, in tables.  Not here: what an operation computes (../kernels/expression.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.constants import SELU_ALPHA, SELU_SCALE
from ...core.dtypes import DType, float64
from ...core.dtypes import bool as bool_
from ..loops.expressions import Expr, apply, const, convert
from ..loops.forms import Buffer, Checked, Map
from .nodes import At, Operands, Refused
from .registry import rule

SAME: dict[str, str] = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Add": "add", "Asin": "asin", "Asinh": "asinh", "Atan": "atan",
    "Atan2": "atan2", "Atanh": "atanh", "BitwiseAnd": "bitwise_and", "BitwiseOr": "bitwise_or",
    "BitwiseXor": "bitwise_xor", "Ceil": "ceil", "Cos": "cos", "Cosh": "cosh", "Elu": "elu", "Erf": "erf",
    "Erfc": "erfc", "Exp": "exp", "Expm1": "expm1", "Floor": "floor", "Invert": "bitwise_not", "Log": "log",
    "Log1p": "log1p", "LogicalAnd": "logical_and", "LogicalNot": "logical_not", "LogicalOr": "logical_or",
    "Mul": "mul", "Neg": "neg", "Pow": "pow", "RealDiv": "div", "Reciprocal": "reciprocal", "Relu": "relu",
    "Relu6": "relu6", "Rint": "round_even", "Round": "round_even", "Rsqrt": "rsqrt", "Select": "select",
    "Sigmoid": "sigmoid", "Sign": "sign", "Sin": "sin", "Sinh": "sinh", "Softplus": "softplus", "Sqrt": "sqrt",
    "Square": "square", "SquaredDifference": "squared_difference", "Sub": "sub", "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip
"""Operators that are one operation on their operands."""

COMPARING = {
    "Equal": "equal", "NotEqual": "not_equal", "Less": "less", "LessEqual": "less_equal", "Greater": "greater",
    "GreaterEqual": "greater_equal",
}  # fmt: skip

FLOATS = frozenset({
    "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atan2", "Atanh", "Ceil", "Cos", "Cosh", "Elu", "Erf", "Erfc", "Exp",
    "Expm1", "Floor", "Log", "Log1p", "Pow", "RealDiv", "Reciprocal", "Rint", "Round", "Rsqrt", "Sigmoid", "Sin",
    "Sinh", "Softplus", "Sqrt", "Tan", "Tanh",
})  # fmt: skip
"""Of integers these are something else in NumPy than here, or an error."""


@rule(*SAME)
def same(at: At) -> None:
    name = at.node.op.name
    y = at.output()
    if name in FLOATS and not y.dtype.is_floating:
        raise Refused(f"{name} of {y.dtype.name}")
    mapped(at, y, at.operands, lambda *xs: apply(SAME[name], *xs, dtype=y.dtype))


@rule(*COMPARING)
def comparing(at: At) -> None:
    mapped(at, at.output(), at.operands, lambda x, y: apply(COMPARING[at.node.op.name], x, y, dtype=bool_))


def mapped(at: At, y: Buffer, operands: list[Buffer], expr: Callable[..., Expr]) -> None:
    """Add the map of these operands. expr: of theirs, in order."""
    given = Operands()
    made = expr(*map(given.of, operands))
    at.form(Map, y, tuple(given.buffers), made)


# ---- operators of several operations --------------------------------------------------------------------------------


def _not_a_number(x: Expr) -> Expr:
    return apply("not_equal", x, x, dtype=bool_)


def _extremum(op: str) -> Callable[[Expr, Expr], Expr]:
    """NaN where one of the operands is: the operation itself gives its second where one is."""

    def expr(x: Expr, y: Expr) -> Expr:
        found = apply(op, x, y)
        if not x.dtype.is_floating or x.op == "scalar":
            return found
        if y.op == "scalar" and y.value == y.value:
            return apply(op, y, x)
        return apply("select", _not_a_number(x), x, found, dtype=x.dtype)

    return expr


maximum, minimum = _extremum("maximum"), _extremum("minimum")


def _zero(x: Expr) -> Expr:
    return const(0, x.dtype)


def _unless_zero(tested: Expr, value: Expr) -> Expr:
    """value, 0 where what is tested is 0."""
    return apply("select", apply("equal", tested, _zero(tested), dtype=bool_), _zero(value), value, dtype=value.dtype)


def _size(x: Expr, op: str) -> Expr:
    return apply(op, apply("abs", x), const(float("inf"), x.dtype), dtype=bool_)


def _selu(x: Expr) -> Expr:
    below = apply("expm1", minimum(x, _zero(x)))
    above = apply("relu", x)
    return apply("fma", below, const(SELU_SCALE * SELU_ALPHA, x.dtype), apply("mul", above, const(SELU_SCALE, x.dtype)))


SEVERAL: dict[str, Callable[..., Expr]] = {
    "Maximum": maximum,
    "Minimum": minimum,
    "ClipByValue": lambda x, low, high: maximum(minimum(x, high), low),
    "DivNoNan": lambda x, y: _unless_zero(y, apply("div", x, y)),
    "Xdivy": lambda x, y: _unless_zero(x, apply("div", x, y)),
    "Softsign": lambda x: apply("div", x, apply("add", apply("abs", x), const(1, x.dtype))),
    "Selu": _selu,
    "IsNan": _not_a_number,
    "IsInf": lambda x: _size(x, "equal"),
    "IsFinite": lambda x: _size(x, "less"),
}
"""Operators by the expression of their operands."""


@rule(*SEVERAL)
def several(at: At) -> None:
    name = at.node.op.name
    if not at.operand(0).dtype.is_floating and name not in ("Maximum", "Minimum", "ClipByValue"):
        raise Refused(f"{name} of {at.operand(0).dtype.name}")
    mapped(at, at.output(), at.operands, SEVERAL[name])


@rule("LeakyRelu")
def leaky_relu(at: At) -> None:
    alpha = float(at.attr("alpha"))
    mapped(at, at.output(), at.operands, lambda x: apply("leaky_relu", x, const(alpha, x.dtype)))


@rule("Gelu")
def gelu(at: At) -> None:
    mapped(at, at.output(), at.operands, lambda x: apply("gelu_tanh" if at.attr("approximate") else "gelu", x))


@rule("FloorDiv", "FloorMod")
def floor_division(at: At) -> None:
    """By integers that are guarded: the operator has an error for 0."""
    x, y = at.operands
    if x.dtype is float64:
        raise Refused("a remainder of float64")
    if not x.dtype.is_floating and y.constant is not None and not y.constant.all():
        raise Refused("a divisor of 0, which is an error")
    if not x.dtype.is_floating and y.constant is None:
        divisors = at.new(y.dtype, y.shape)
        at.form(Checked, divisors, y)
        y = divisors
    op = "floor_div" if at.node.op.name == "FloorDiv" else "floor_mod"
    mapped(at, at.output(), [x, y], lambda a, b: apply(op, a, b))


@rule("Cast")
def cast(at: At) -> None:
    y = at.output()
    mapped(at, y, at.operands, lambda x: _converted(x, y.dtype))


def _converted(x: Expr, dtype: DType) -> Expr:
    if dtype is bool_ and x.dtype is not bool_:
        return apply("not_equal", x, _zero(x), dtype=bool_)
    return convert(x, dtype)


@rule("AddN")
def add_n(at: At) -> None:
    def total(*xs: Expr) -> Expr:
        found = xs[0]
        for x in xs[1:]:
            found = apply("add", found, x)
        return found

    operands = at.several(0)
    if len(operands) > 32:
        raise Refused("too many operands for one kernel")
    mapped(at, at.output(), operands, total)


@rule("BiasAdd")
def bias_add(at: At) -> None:
    x, bias = at.operands
    behind: Any = 0 if at.attr("data_format").endswith("C") else len(x.shape) - 2
    mapped(at, at.output(), [x, at.viewed(bias, (*bias.shape, *[1] * behind))], lambda a, b: apply("add", a, b))
