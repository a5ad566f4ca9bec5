"""Scalar functions in float64 and in Python's integers, and numbers to try them on.

Lives here: `FLOATS` and `INTEGERS`, by the names of rows; `operands`.
Not here: the formulas that are tested, accuracy at every magnitude (tests/functions).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from opwright.scalar import table
from opwright.scalar.table import ScalarFunction

Function = Callable[..., Any]


def each(function: Callable[..., float]) -> Function:
    """Return a function of numbers as one of arrays."""
    return np.vectorize(function, otypes=[float])


def _without_nan(select: Function, x: Any, y: Any) -> Any:
    """Return the second operand where one is NaN, as minimum and maximum of C do."""
    return np.where(np.isnan(x) | np.isnan(y), y, select(x, y))


def _quotient(x: int, y: int) -> int:
    return 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _power(x: int, y: int) -> int:
    if y >= 0:  # modulo a power of two that no dtype reaches, as numbers of 2^31 bits take long
        return pow(x, y, 1 << 128)
    return 0 if abs(x) != 1 else x if y % 2 else 1  # 1 / x^-y rounded toward zero


SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772  # Klambauer et al. 2017
FLOATS: dict[str, Function] = {
    "div": np.true_divide,
    "fma": lambda x, y, z: x * y + z,
    "squared_difference": lambda x, y: (x - y) ** 2,
    "reciprocal": lambda x: 1 / x,
    "minimum": lambda x, y: _without_nan(np.minimum, x, y),
    "maximum": lambda x, y: _without_nan(np.maximum, x, y),
    "clip": lambda x, low, high: np.maximum(np.minimum(x, high), low),
    "divide_no_nan": lambda x, y: np.where(y == 0, 0.0, x / y),
    "zero_or_quotient": lambda x, y: np.where(x == 0, 0.0, x / y),
    "round_even": np.rint,
    "round_away": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "erf": each(math.erf),
    "erfc": each(math.erfc),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "softplus": lambda x: np.logaddexp(0, x),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "elu": lambda x: np.where(x < 0, np.expm1(x), x),
    "selu": lambda x: SCALE * np.where(x > 0, x, ALPHA * np.expm1(np.minimum(x, 0))),
    "gelu": lambda x: x / 2 * each(math.erfc)(-x / math.sqrt(2)),
    "gelu_tanh": lambda x: x / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x, alpha: np.where(x > 0, x, x * alpha),
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
"""In float64, of rows whose implementation on arrays is no ufunc of NumPy."""

INTEGERS: dict[str, Function] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": _quotient,
    "fma": lambda x, y, z: x * y + z,
    "neg": lambda x: -x,
    "abs": abs,
    "sign": lambda x: (x > 0) - (x < 0),
    "square": lambda x: x * x,
    "squared_difference": lambda x, y: (x - y) ** 2,
    **dict.fromkeys(("minimum", "ieee_minimum"), min),
    **dict.fromkeys(("maximum", "ieee_maximum"), max),
    "clip": lambda x, low, high: max(min(x, high), low),
    "floor_div": lambda x, y: x // y if y else 0,
    "floor_mod": lambda x, y: x % y if y else 0,
    "truncate_div": _quotient,
    "truncate_mod": lambda x, y: x - _quotient(x, y) * y if y else 0,
    "pow": _power,
    "pow_or_least": lambda x, y: x ** min(y, 40 - y % 2) if abs(x) ** min(y, 40) < 1 << 31 else -(1 << 31),
    "round_even": lambda x: x,
    "bitwise_and": lambda x, y: x & y,
    "bitwise_or": lambda x, y: x | y,
    "bitwise_xor": lambda x, y: x ^ y,
    "bitwise_not": lambda x: ~x,
    "relu": lambda x: max(x, 0),
    "relu6": lambda x: min(max(x, 0), 6),
    "leaky_relu": lambda x, alpha: x if x > 0 else x * alpha,
}
"""On Python's integers; results are wrapped to the dtype. Shifts depend on the dtype: `shifted`."""


def shifted(name: str, x: int, by: int, bits: int) -> int:
    """Return a shift by its documentation: `by` is clamped, or what lies outside [0, bits) makes 0."""
    if name == "shift_left_or_zero":
        return x << by if 0 <= by < bits else 0
    distance = min(max(by, 0), bits - 1)
    return x << distance if name == "shift_left" else x >> distance


NUMBERS = (0.0, -0.0, 3e-7, 0.25, 0.5, 1.0, 1.5, 2.5, 3.0, 4.25, 6.0, 6.5, 14.5, math.inf, math.nan)
DTYPES = ("int8", "uint8", "int16", "int32")


def operands(row: ScalarFunction, dtype: str) -> list[np.ndarray]:
    """Return operands of a row: all combinations of special numbers."""
    if dtype == "bool":
        values = np.array([False, True])
    elif dtype == "float64":
        some = np.random.default_rng(1).uniform(-4, 4, 40 if row.arity == 1 else 4)
        values = np.array([*NUMBERS, *(-v for v in NUMBERS), *some])
    else:
        ends, usual = np.iinfo(dtype), (-9, -8, -7, -3, -2, -1, 0, 1, 2, 3, 5, 6, 7, 8, 9, 15, 16, 31, 32, 33)
        whole = [ends.min, ends.min + 1, *usual, ends.max // 2, ends.max - 1, ends.max]
        values = np.array([v for v in whole if v >= ends.min], dtype)
    values = values[:: 1 if row.arity < 3 else 3]
    result = [np.array(column) for column in zip(*itertools.product(values, repeat=row.arity))]
    if row.name == "select":
        result[0] = result[0] > 0
    if row.name == "pow_or_least":  # y is not negative
        result = [a[result[1] >= 0] for a in result]
    if row.name == "clamp":  # low <= high
        result = [a[result[1] <= result[2]] for a in result]
    return result


def dtypes_of(row: ScalarFunction) -> Iterator[str]:
    """Yield the dtypes for which the formula is the meaning of a row, next to other code of floats."""
    if "f" in row.dtypes and not row.exact.startswith("division.") and row.name != "pow":
        yield "float64"
    if "i" in row.dtypes:
        yield from DTYPES if row.name != "pow_or_least" else ("int32",)
    if "b" in row.dtypes:
        yield "bool"


def expected(row: ScalarFunction, arrays: list[np.ndarray]) -> np.ndarray:
    """Return exact results: in float64, of integers wrapped to the dtype."""
    dtype = arrays[-1].dtype
    if dtype.kind in "iu" and not row.is_test and row.name not in ("clamp", "select"):
        bits = 8 * dtype.itemsize

        def exact(*xs: int) -> int:
            number = shifted(row.name, *xs, bits) if row.name.startswith("shift") else INTEGERS[row.name](*xs)
            return int(number) % (1 << bits)

        whole = [exact(*xs) for xs in zip(*(a.tolist() for a in arrays))]
        return np.array(whole, np.uint64).astype(f"u{dtype.itemsize}").view(dtype)
    function = FLOATS.get(row.name) or row.numpy
    assert function in (np.where, np.clip, FLOATS.get(row.name)) or isinstance(function, np.ufunc), row.name
    with np.errstate(all="ignore"):
        return np.asarray(function(*arrays))


def wrong(row: ScalarFunction, dtype: str) -> str:
    """Return the first operands for which a row's formula is not what it is, on arrays; empty if there are none."""
    arrays = operands(row, dtype)
    exact = expected(row, arrays)
    try:
        with np.errstate(all="ignore"):
            actual = np.broadcast_to(row.code(table.ARRAYS, *arrays), exact.shape)
            close = np.isclose(actual, exact, 2e-13, 1e-290, equal_nan=True)
    except (TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
        return f"{type(error).__name__}: {error}"
    if actual.dtype != exact.dtype:
        return f"dtype {actual.dtype}"
    if dtype == "float64" and not row.is_test:
        close &= np.isnan(exact) | (exact != 0) | (np.signbit(actual) == np.signbit(exact)) | (row.name in EITHER_ZERO)
    if close.all():
        return ""
    i = int(np.flatnonzero(~close)[0])
    return f"{row.name}({', '.join(str(a[i]) for a in arrays)}) = {actual[i]}, exact {exact[i]}"


EITHER_ZERO = (
    *("minimum", "maximum", "ieee_minimum", "ieee_maximum", "clip", "clamp", "relu", "relu6", "elu", "selu"),
    *("hard_swish", "divide_no_nan", "zero_or_quotient", "round_away"),
)
"""Rows of which the sign of a zero is not compared: its documentation leaves it open, or NumPy's is another."""
