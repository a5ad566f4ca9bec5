"""The table of scalar functions: NumPy implementation, vector code, C function, cost and error bounds of each.

Lives here: `ScalarFunction`, the rows, `FUNCTIONS` (by name), `OF_OPERATOR` and `OF_BUILTIN` (by operator).
Not here: formulas (formulas.py), vector code (numerics/), NumPy implementations (arrays.py), readers of the rows:
operators' computations, loop expressions, kernels on scalars, C, constant folding, lowering rules.

The names are those of operations in loop expressions and of functions in the kernel language.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtypes import DType
from ..core.named_tuples import NamedTuple
from . import arrays, formulas, numpy_namespace

if TYPE_CHECKING:
    from .namespace import Namespace, Values

FORMULA = "formula"

PROPAGATES = "NaN where an operand is NaN"
SECOND = "the second operand where one is NaN"
FALSE = "false where an operand is NaN"
TRUE = "true where an operand is NaN"
TESTED = "what is asked is whether an operand is NaN, infinite or finite"
CHOSEN = "NaN where what is chosen is NaN"


class ScalarFunction(NamedTuple):
    """One function of elements.

    dtypes: kinds of operands: f floats, i integers, b bools. is_test: whether the result is a bool.
    formula: `(m, *operands)` over an array namespace; None if there is only `exact` code.
    numpy: the implementation on arrays of all of these dtypes; by default the formula. ufunc: the ufunc that computes
    the function of floats, if `numpy` is another function.
    exact: "module.function" of numerics/, of float32, within `exact_ulps` units in the last place over the whole range.
    fast: the same, with a relative error of at most `fast_error[0]` for |x| <= 6 and `fast_error[1]` elsewhere;
    FORMULA for the formula; by default `exact`. argument_error: the error that it may have as well, divided by |x|.
    relaxed: the same for kernels under `fast_math`, within `relaxed_ulps`; by default `exact`.
    double: code of float64 (numerics/double.py). libm: the name in the C library, for float64 without such code.
    cost: the approximate number of instructions of the fast code for one vector.
    nan: the NaN policy. calls: the rows that the formula calls by name on the namespace.
    operators: operators of the catalogue that apply this function to their inputs, followed by `attributes`.
    builtin: the builtin of `.tflite` files. variant: an attribute, and the row to use if it is true.
    """

    name: str
    arity: int
    dtypes: str
    formula: Callable[..., Any] | None = None
    numpy: Any = None
    ufunc: np.ufunc | None = None
    exact: str = ""
    exact_ulps: float = 1.0
    fast: str = ""
    fast_error: tuple[float, float] = (0.0, 0.0)
    argument_error: float = 0.0
    relaxed: str = ""
    relaxed_ulps: float = 0.0
    double: str = ""
    libm: str = ""
    is_test: bool = False
    cost: int = 1
    nan: str = PROPAGATES
    calls: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    builtin: str = ""
    variant: tuple[str, str] | None = None

    @property
    def of_arrays(self) -> Callable[..., Any]:
        """The function on NumPy arrays."""
        return self.numpy or functools.partial(_needed(self), ARRAYS)

    @property
    def takes_float64(self) -> bool:
        """Whether the exact code also supports float64."""
        return self.exact.startswith("division.")

    @property
    def only_float32(self) -> bool:
        """Whether the fast code of floats supports float32 only."""
        if self.fast == FORMULA or self.takes_float64:
            return False
        return bool(self.fast or self.exact) or any(FUNCTIONS[name].only_float32 for name in self.calls)

    def takes(self, dtype: DType) -> bool:
        """Return whether operands may have this dtype; vector code may support fewer."""
        return ("f" if dtype.is_floating else "b" if dtype.is_bool else "i" if dtype.is_integer else "?") in self.dtypes

    def numerics(self, accuracy: str) -> Callable[..., Any] | None:
        """Return the code of floats in numerics/, `(m, *operands)`; None if it is the formula.

        accuracy: "exact", "fast" or "relaxed"; "double" for the code of float64
        """
        if accuracy == "double" and not self.takes_float64:
            return _numerics(self.double) if self.double else None
        path = {"fast": self.fast, "relaxed": self.relaxed}.get(accuracy) or self.exact
        return _numerics(path) if path and path != FORMULA else None

    def code(self, m: Namespace[Values], *operands: Any) -> Values:
        """Evaluate the formula over a namespace."""
        result: Values = _needed(self)(m, *operands)
        return result

    def __repr__(self) -> str:
        return f"<scalar function {self.name}>"


class ArrayNamespace:
    """The array namespace of NumPy arrays, extended by the functions of the table."""

    def __getattr__(self, name: str) -> Any:
        function = getattr(numpy_namespace, name, None)
        return function if function is not None else FUNCTIONS[name].of_arrays


ARRAYS = ArrayNamespace()


@functools.cache
def _numerics(path: str) -> Callable[..., Any]:
    module, name = path.split(".")
    function: Callable[..., Any] = getattr(importlib.import_module(f".numerics.{module}", __package__), name)
    return function


def _needed(row: ScalarFunction) -> Callable[..., Any]:
    if row.formula is None:
        raise TypeError(f"{row.name} has code of floats only, and no formula")
    return row.formula


Row = ScalarFunction

ARITHMETIC = (
    Row("add", 2, "fi", lambda m, x, y: x + y, np.add, operators=("Add",), builtin="ADD"),
    Row("sub", 2, "fi", lambda m, x, y: x - y, np.subtract, operators=("Sub",), builtin="SUB"),
    Row("mul", 2, "fi", lambda m, x, y: x * y, np.multiply, operators=("Mul",), builtin="MUL"),
    Row("div", 2, "fi", formulas.divide, arrays.divide, np.true_divide, cost=2, operators=("RealDiv",), builtin="DIV"),
    Row("fma", 3, "fi", lambda m, x, y, z: m.fma(x, y, z), arrays.fma),
    Row("neg", 1, "fi", lambda m, x: -x, np.negative, operators=("Neg",), builtin="NEG"),
    Row("abs", 1, "fi", lambda m, x: m.abs(x), np.absolute, operators=("Abs",), builtin="ABS"),
    Row("sign", 1, "fi", formulas.sign, np.sign, operators=("Sign",), builtin="SIGN"),
    Row("square", 1, "fi", lambda m, x: x * x, np.square, operators=("Square",), builtin="SQUARE"),
    Row(
        "squared_difference",
        2,
        "fi",
        formulas.squared_difference,
        arrays.squared_difference,
        operators=("SquaredDifference",),
        builtin="SQUARED_DIFFERENCE",
    ),
    Row("reciprocal", 1, "f", lambda m, x: 1.0 / x, arrays.reciprocal, operators=("Reciprocal",)),
    Row("minimum", 2, "fi", lambda m, x, y: m.minimum(x, y), arrays.minimum, nan=SECOND, builtin="MINIMUM"),
    Row("maximum", 2, "fi", lambda m, x, y: m.maximum(x, y), arrays.maximum, nan=SECOND, builtin="MAXIMUM"),
    Row("ieee_minimum", 2, "fi", formulas.ieee_minimum, np.minimum, operators=("Minimum",)),
    Row("ieee_maximum", 2, "fi", formulas.ieee_maximum, np.maximum, operators=("Maximum",)),
    Row("clamp", 3, "fi", formulas.bounded, np.clip, cost=1, nan=PROPAGATES),
    Row("clip", 3, "fi", formulas.clip, arrays.clip, cost=4, operators=("ClipByValue",)),
    Row(
        "divide_no_nan",
        2,
        "f",
        formulas.divide_no_nan,
        arrays.divide_no_nan,
        cost=3,
        operators=("DivNoNan",),
        nan="NaN where an operand is NaN, but 0 / 0 and NaN / 0 are 0",
    ),
    Row(
        "zero_or_quotient",
        2,
        "f",
        formulas.zero_or_quotient,
        arrays.zero_or_quotient,
        cost=3,
        operators=("Xdivy",),
        nan="NaN where an operand is NaN, but 0 / NaN is 0",
    ),
    Row("select", 3, "fib", lambda m, c, x, y: m.select(c, x, y), np.where, operators=("Select",), nan=CHOSEN),
)

DIVISION = (
    Row(
        "floor_div",
        2,
        "fi",
        formulas.floor_quotient,
        np.floor_divide,
        exact="division.floor_quotient",
        cost=12,
        operators=("FloorDiv",),
        builtin="FLOOR_DIV",
    ),
    Row(
        "floor_mod",
        2,
        "fi",
        formulas.floor_remainder,
        np.mod,
        exact="division.floor_remainder",
        cost=20,
        operators=("FloorMod",),
        builtin="FLOOR_MOD",
    ),
    Row(
        "truncate_div",
        2,
        "fi",
        formulas.quotient,
        arrays.truncate_div,
        exact="division.truncated_quotient",
        cost=12,
        operators=("TruncateDiv",),
    ),
    Row(
        "truncate_mod",
        2,
        "fi",
        formulas.remainder,
        np.fmod,
        exact="division.remainder",
        cost=20,
        operators=("TruncateMod",),
    ),
    Row(
        "pow",
        2,
        "fi",
        formulas.integer_power,
        arrays.power,
        np.power,
        exact="exponential.pow",
        libm="pow",
        cost=40,
        operators=("Pow",),
        builtin="POW",
        nan="NaN where an operand is NaN, but x^0 and 1^y are 1",
    ),
    Row("pow_or_least", 2, "i", formulas.power_or_least, cost=90),
)

ROUNDING = (
    Row("floor", 1, "f", lambda m, x: m.floor(x), np.floor, operators=("Floor",), builtin="FLOOR"),
    Row("ceil", 1, "f", lambda m, x: m.ceil(x), np.ceil, operators=("Ceil",), builtin="CEIL"),
    Row("trunc", 1, "f", lambda m, x: m.trunc(x), np.trunc),
    Row(
        "round_even",
        1,
        "fi",
        formulas.round_even,
        arrays.round_even,
        np.rint,
        operators=("Round", "Rint"),
        builtin="ROUND",
    ),
    Row("round_away", 1, "f", formulas.round_away),
)

TESTS = (
    Row(
        "equal",
        2,
        "fib",
        lambda m, x, y: x == y,
        np.equal,
        is_test=True,
        nan=FALSE,
        operators=("Equal",),
        builtin="EQUAL",
    ),
    Row(
        "not_equal",
        2,
        "fib",
        lambda m, x, y: x != y,
        np.not_equal,
        is_test=True,
        nan=TRUE,
        operators=("NotEqual",),
        builtin="NOT_EQUAL",
    ),
    Row("less", 2, "fi", lambda m, x, y: x < y, np.less, is_test=True, nan=FALSE, operators=("Less",), builtin="LESS"),
    Row(
        "less_equal",
        2,
        "fi",
        lambda m, x, y: x <= y,
        np.less_equal,
        is_test=True,
        nan=FALSE,
        operators=("LessEqual",),
        builtin="LESS_EQUAL",
    ),
    Row(
        "greater",
        2,
        "fi",
        lambda m, x, y: x > y,
        np.greater,
        is_test=True,
        nan=FALSE,
        operators=("Greater",),
        builtin="GREATER",
    ),
    Row(
        "greater_equal",
        2,
        "fi",
        lambda m, x, y: x >= y,
        np.greater_equal,
        is_test=True,
        nan=FALSE,
        operators=("GreaterEqual",),
        builtin="GREATER_EQUAL",
    ),
    Row("is_nan", 1, "f", formulas.is_nan, np.isnan, is_test=True, nan=TESTED, operators=("IsNan",)),
    Row(
        "is_inf",
        1,
        "f",
        lambda m, x: m.abs(x) == float("inf"),
        np.isinf,
        is_test=True,
        cost=2,
        nan=TESTED,
        operators=("IsInf",),
    ),
    Row(
        "is_finite",
        1,
        "f",
        lambda m, x: m.abs(x) < float("inf"),
        np.isfinite,
        is_test=True,
        cost=2,
        nan=TESTED,
        operators=("IsFinite",),
    ),
)

BITS = (
    Row("logical_and", 2, "b", lambda m, x, y: x & y, np.logical_and, operators=("LogicalAnd",), builtin="LOGICAL_AND"),
    Row("logical_or", 2, "b", lambda m, x, y: x | y, np.logical_or, operators=("LogicalOr",), builtin="LOGICAL_OR"),
    Row("logical_not", 1, "b", lambda m, x: ~x, np.logical_not, operators=("LogicalNot",), builtin="LOGICAL_NOT"),
    Row("bitwise_and", 2, "i", lambda m, x, y: x & y, np.bitwise_and, operators=("BitwiseAnd",)),
    Row("bitwise_or", 2, "i", lambda m, x, y: x | y, np.bitwise_or, operators=("BitwiseOr",)),
    Row("bitwise_xor", 2, "i", lambda m, x, y: x ^ y, np.bitwise_xor, operators=("BitwiseXor",), builtin="BITWISE_XOR"),
    Row("bitwise_not", 1, "i", lambda m, x: ~x, np.invert, operators=("Invert",)),
    Row("shift_left", 2, "i", formulas.shift_left, arrays.shift_left, operators=("LeftShift",)),
    Row("shift_left_or_zero", 2, "i", formulas.shift_left_or_zero, cost=4),
    Row(
        "shift_right",
        2,
        "i",
        formulas.shift_right,
        arrays.shift_right,
        operators=("RightShift",),
        builtin="RIGHT_SHIFT",
    ),
)

ANALYSIS = (
    Row("sqrt", 1, "f", lambda m, x: m.sqrt(x), np.sqrt, cost=2, operators=("Sqrt",), builtin="SQRT"),
    Row(
        "rsqrt",
        1,
        "f",
        lambda m, x: 1.0 / m.sqrt(x),
        arrays.rsqrt,
        exact="exponential.rsqrt",
        fast=FORMULA,
        operators=("Rsqrt",),
        builtin="RSQRT",
    ),
    Row(
        "exp",
        1,
        "f",
        None,
        np.exp,
        exact="exponential.exp",
        fast="single.exp",
        fast_error=(3e-7, 3e-7),
        relaxed="single.relaxed_exp",
        relaxed_ulps=2.0,
        double="double.exp",
        libm="exp",
        cost=12,
        operators=("Exp",),
        builtin="EXP",
    ),
    Row(
        "expm1",
        1,
        "f",
        None,
        np.expm1,
        exact="exponential.expm1",
        double="double.expm1",
        libm="expm1",
        cost=14,
        operators=("Expm1",),
    ),
    Row(
        "log",
        1,
        "f",
        None,
        np.log,
        exact="exponential.log",
        fast="single.relaxed_log",
        fast_error=(3e-7, 3e-7),
        relaxed="single.relaxed_log",
        relaxed_ulps=2.0,
        double="double.log",
        libm="log",
        cost=14,
        operators=("Log",),
        builtin="LOG",
    ),
    Row(
        "log1p",
        1,
        "f",
        None,
        np.log1p,
        exact="exponential.log1p",
        double="double.log1p",
        libm="log1p",
        cost=16,
        operators=("Log1p",),
    ),
    Row(
        "sin",
        1,
        "f",
        None,
        np.sin,
        exact="trigonometric.sin",
        fast="single.sin",
        fast_error=(3e-7, 3e-7),
        libm="sin",
        cost=24,
        operators=("Sin",),
        builtin="SIN",
    ),
    Row(
        "cos",
        1,
        "f",
        None,
        np.cos,
        exact="trigonometric.cos",
        fast="single.cos",
        fast_error=(3e-7, 3e-7),
        libm="cos",
        cost=24,
        operators=("Cos",),
        builtin="COS",
    ),
    Row("tan", 1, "f", None, np.tan, exact="trigonometric.tan", libm="tan", cost=99, operators=("Tan",)),
    Row("asin", 1, "f", None, np.arcsin, exact="trigonometric.asin", libm="asin", cost=30, operators=("Asin",)),
    Row("acos", 1, "f", None, np.arccos, exact="trigonometric.acos", libm="acos", cost=30, operators=("Acos",)),
    Row("atan", 1, "f", None, np.arctan, exact="trigonometric.atan", libm="atan", cost=30, operators=("Atan",)),
    Row(
        "atan2",
        2,
        "f",
        None,
        np.arctan2,
        exact="trigonometric.atan2",
        libm="atan2",
        cost=50,
        operators=("Atan2",),
        builtin="ATAN2",
    ),
    Row("sinh", 1, "f", None, np.sinh, exact="exponential.sinh", libm="sinh", cost=30, operators=("Sinh",)),
    Row("cosh", 1, "f", None, np.cosh, exact="exponential.cosh", libm="cosh", cost=30, operators=("Cosh",)),
    Row(
        "tanh",
        1,
        "f",
        None,
        np.tanh,
        exact="exponential.tanh",
        fast="single.tanh",
        fast_error=(3e-7, 3e-7),
        relaxed="single.relaxed_tanh",
        relaxed_ulps=2.0,
        double="double.tanh",
        libm="tanh",
        cost=14,
        operators=("Tanh",),
        builtin="TANH",
    ),
    Row("asinh", 1, "f", None, np.arcsinh, exact="exponential.asinh", libm="asinh", cost=40, operators=("Asinh",)),
    Row("acosh", 1, "f", None, np.arccosh, exact="exponential.acosh", libm="acosh", cost=40, operators=("Acosh",)),
    Row("atanh", 1, "f", None, np.arctanh, exact="exponential.atanh", libm="atanh", cost=40, operators=("Atanh",)),
    Row(
        "erf",
        1,
        "f",
        None,
        arrays.erf,
        exact="exponential.erf",
        fast="single.erf",
        fast_error=(3e-7, 3e-7),
        double="double.erf",
        libm="erf",
        cost=20,
        operators=("Erf",),
    ),
    Row(
        "erfc",
        1,
        "f",
        None,
        arrays.erfc,
        exact="exponential.erfc",
        fast="single.erfc",
        fast_error=(1e-6, 6e-6),
        double="double.erfc",
        libm="erfc",
        cost=30,
        operators=("Erfc",),
    ),
)

ACTIVATIONS = (
    Row("relu", 1, "fi", formulas.relu, arrays.relu, operators=("Relu",), builtin="RELU"),
    Row("relu6", 1, "fi", formulas.relu6, arrays.relu6, operators=("Relu6",), builtin="RELU6"),
    Row(
        "leaky_relu",
        2,
        "fi",
        formulas.leaky_relu,
        arrays.leaky_relu,
        nan=CHOSEN,
        operators=("LeakyRelu",),
        attributes=("alpha",),
        builtin="LEAKY_RELU",
    ),
    Row("hard_swish", 1, "f", formulas.hard_swish, cost=4, builtin="HARD_SWISH"),
    Row(
        "sigmoid",
        1,
        "f",
        formulas.sigmoid,
        arrays.sigmoid,
        exact="exponential.sigmoid",
        fast="single.sigmoid",
        fast_error=(7e-7, 6e-6),
        relaxed="single.relaxed_sigmoid",
        relaxed_ulps=4.0,
        calls=("exp",),
        cost=14,
        operators=("Sigmoid",),
        builtin="LOGISTIC",
    ),
    Row("silu", 1, "f", formulas.silu, fast="single.silu", fast_error=(7e-7, 6e-6), calls=("sigmoid",), cost=14),
    Row(
        "softplus",
        1,
        "f",
        formulas.softplus,
        arrays.softplus,
        exact="exponential.softplus",
        calls=("exp", "log1p"),
        cost=30,
        operators=("Softplus",),
    ),
    Row("softsign", 1, "f", formulas.softsign, arrays.softsign, cost=4, operators=("Softsign",)),
    Row(
        "elu",
        1,
        "f",
        formulas.elu,
        arrays.elu,
        fast="single.elu",
        fast_error=(3e-7, 3e-7),
        calls=("expm1",),
        cost=15,
        operators=("Elu",),
        builtin="ELU",
    ),
    Row("selu", 1, "f", formulas.selu, arrays.selu, calls=("expm1",), cost=18, operators=("Selu",)),
    Row(
        "gelu",
        1,
        "f",
        formulas.gelu,
        arrays.gelu,
        exact="exponential.gelu",
        fast="single.gelu",
        argument_error=2.4e-7,
        calls=("erfc",),
        cost=19,
        operators=("Gelu",),
        builtin="GELU",
        variant=("approximate", "gelu_tanh"),
    ),
    Row(
        "gelu_tanh",
        1,
        "f",
        formulas.gelu_tanh,
        arrays.gelu_tanh,
        fast="single.gelu_tanh",
        argument_error=2.4e-7,
        calls=("sigmoid",),
        cost=19,
    ),
)

ROWS = (*ARITHMETIC, *DIVISION, *ROUNDING, *TESTS, *BITS, *ANALYSIS, *ACTIVATIONS)

FUNCTIONS: dict[str, ScalarFunction] = {row.name: row for row in ROWS}
"""By name."""

OF_OPERATOR: dict[str, ScalarFunction] = {name: row for row in ROWS for name in row.operators}
"""By the catalogue's name of an operator."""

OF_BUILTIN: dict[str, ScalarFunction] = {row.builtin: row for row in ROWS if row.builtin}
"""By the name of a builtin operator of `.tflite` files."""


def chosen(row: ScalarFunction, attribute: Callable[[str], Any]) -> ScalarFunction:
    """Return the row, or its variant if an attribute of the operator selects it. attribute: returns an attribute by
    name.
    """
    if row.variant is not None and attribute(row.variant[0]):
        return FUNCTIONS[row.variant[1]]
    return row
