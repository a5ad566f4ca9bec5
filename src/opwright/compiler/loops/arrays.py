"""Expressions in NumPy: what a tree is of arrays.

Lives here: `evaluate_arrays`, the table of operations.  Not here: machine code for them (../kernels/expression.py).

Floats are computed in float64 and rounded at the end and where the tree converts; integers wrap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.constants import GELU_CUBIC, GELU_SLOPE
from ...core.dtypes import DType, float32, float64
from ...core.errors import InternalError
from .expressions import Expr

_erf = np.frompyfunc(math.erf, 1, 1)
_erfc = np.frompyfunc(math.erfc, 1, 1)


def evaluate_arrays(expr: Expr, args: Sequence[np.ndarray]) -> np.ndarray:
    """The expression of these arrays, which broadcast; args[i] stands for arg i, a table of a look-up for its arg.

    raises KeyError for an operation that the table does not have, InternalError for an array of another dtype than the
    expression reads
    """
    known: dict[int, Any] = {}

    def walk(e: Expr) -> Any:
        found = known.get(id(e))
        if found is None:
            found = known[id(e)] = _one(e, walk, args)
        return found

    result: np.ndarray = np.asarray(walk(expr)).astype(expr.dtype.np, copy=False)
    return result


def _one(e: Expr, walk: Callable[[Expr], Any], args: Sequence[np.ndarray]) -> Any:
    if e.op == "arg":
        return _wide(_read(e, args), e.dtype)
    if e.op in ("const", "scalar"):
        return _wide(np.asarray(e.value, e.dtype.np), e.dtype)
    if e.op == "lookup":
        index, table = e.args[0], _read(e.args[1], args)
        if table.shape != (1 << 8 * index.dtype.size,):
            raise InternalError(op="loop graph", what=f"a table for {index.dtype.name}", found=list(table.shape))
        return table[np.asarray(walk(index)).astype(np.int64) & (table.size - 1)]
    if e.op == "call":
        return _wide(e.value.of_arrays(*map(walk, e.args)), e.dtype)
    found = OPERATIONS[e.op](e.dtype, *map(walk, e.args))
    return found if e.dtype is float32 or e.dtype is float64 else np.asarray(found).astype(e.dtype.np, copy=False)


def _read(e: Expr, args: Sequence[np.ndarray]) -> np.ndarray:
    found = args[e.value]
    if found.dtype != e.dtype.np:
        raise InternalError(op="loop graph", what=f"operand {e.value} is read as {e.dtype.name}", found=found.dtype)
    return found


def _wide(x: np.ndarray, dtype: DType) -> np.ndarray:
    return x.astype(np.float64) if dtype.is_floating else x


def _is_float(x: Any) -> bool:
    return np.asarray(x).dtype.kind == "f"


def _quantize(dtype: DType, x: Any, zero: Any, low: Any = None, high: Any = None) -> Any:
    least, most = dtype.limits
    low, high = least if low is None else low, most if high is None else high
    return np.clip(np.where(np.isnan(x), -np.inf, np.rint(x)) + zero, float(low), float(high))


def _convert(dtype: DType, x: Any) -> Any:
    if dtype.is_floating:
        return np.asarray(x).astype(dtype.np).astype(np.float64)
    if not _is_float(x) or dtype.is_bool:
        return np.asarray(x).astype(dtype.np)
    low, high = dtype.limits
    whole = np.trunc(np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf))
    inside = (whole >= float(low)) & (whole < float(high))
    kept = np.where(inside, whole, 0.0).astype(dtype.np)
    return np.where(inside, kept, np.where(whole < 0, np.array(low, dtype.np), np.array(high, dtype.np)))


# ---- integers: 0 where they are divided by 0 -----------------------------------------------------------------------


def _div(x: Any, y: Any) -> Any:
    """Of integers toward zero."""
    if _is_float(x):
        return np.divide(x, y)
    minus = y == -1 if np.asarray(y).dtype.kind == "i" else np.zeros(np.shape(y), bool)
    held = np.where(minus | (y == 0), 1, y).astype(x.dtype)
    rest = np.fmod(x, held)
    return np.where(y == 0, 0, np.where(minus, np.negative(x), (x - rest) // held))


def _floor_div(x: Any, y: Any) -> Any:
    if _is_float(x):
        return np.floor_divide(x, y)
    minus = y == -1 if np.asarray(y).dtype.kind == "i" else np.zeros(np.shape(y), bool)
    held = np.where(minus | (y == 0), 1, y).astype(x.dtype)
    return np.where(y == 0, 0, np.where(minus, np.negative(x), x // held))


def _floor_mod(x: Any, y: Any) -> Any:
    """With the sign of y."""
    if _is_float(x):
        return np.mod(x, y)
    minus = (y == -1) if np.asarray(y).dtype.kind == "i" else np.zeros(np.shape(y), bool)
    held = np.where(minus | (y == 0), 1, y).astype(x.dtype)
    return np.where(y == 0, 0, np.mod(x, held))


def _power(x: Any, y: Any) -> Any:
    if _is_float(x):
        return np.power(x, y)
    raised = np.power(x, np.maximum(y, 0))
    return np.where(y < 0, np.where(x == 1, 1, np.where(x == -1, 1 - 2 * (y & 1), 0)), raised)


def _power_or_least(x: Any, y: Any) -> Any:
    found = np.power(np.asarray(x, np.float64), y)
    return np.where(np.abs(found) < 1 << 31, found, -(1 << 31))


def _shift_left(x: Any, y: Any) -> Any:
    bits = x.dtype.itemsize * 8
    inside = (y >= 0) & (y < bits)
    return np.where(inside, np.left_shift(x, np.where(inside, y, 0)), 0)


def _shift_right(x: Any, y: Any) -> Any:
    return np.right_shift(x, np.clip(y, 0, x.dtype.itemsize * 8 - 1))


# ---- functions -----------------------------------------------------------------------------------------------------


def _minimum(a: Any, b: Any) -> Any:
    return np.where(a < b, a, b)


def _maximum(a: Any, b: Any) -> Any:
    return np.where(a > b, a, b)


def _round_away(x: Any) -> Any:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _sigmoid(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1.0) / (1.0 + e)


def _gelu(x: Any) -> Any:
    return 0.5 * x * np.asarray(_erfc(x * -math.sqrt(0.5))).astype(np.float64)


def _gelu_tanh(x: Any) -> Any:
    return x * _sigmoid(2.0 * GELU_SLOPE * (x + GELU_CUBIC * x**3))


def _leaky_relu(x: Any, alpha: Any) -> Any:
    return np.where(x < 0, x * alpha, x)


OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: (lambda dtype, *args, f=f: f(*args)) for name, f in {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": _div, "floor_div": _floor_div,
        "floor_mod": _floor_mod, "pow": _power, "pow_or_least": _power_or_least,
        "fma": lambda a, b, c: a * b + c, "minimum": _minimum,
        "maximum": _maximum, "squared_difference": lambda a, b: np.square(a - b), "neg": np.negative, "abs": np.abs,
        "sign": np.sign, "square": np.square, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
        "reciprocal": lambda x: 1 / x, "floor": np.floor, "ceil": np.ceil, "round_even": np.rint,
        "round_away": _round_away, "trunc": np.trunc, "exp": np.exp, "expm1": np.expm1, "log": np.log,
        "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
        "atan": np.arctan, "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
        "acosh": np.arccosh, "atanh": np.arctanh, "erf": lambda x: np.asarray(_erf(x)).astype(np.float64),
        "erfc": lambda x: np.asarray(_erfc(x)).astype(np.float64), "sigmoid": _sigmoid,
        "softplus": lambda x: np.logaddexp(0.0, x), "gelu": _gelu, "gelu_tanh": _gelu_tanh,
        "elu": lambda x, alpha=1.0: np.where(x < 0, np.expm1(x) * alpha, x),
        "relu": lambda x: np.maximum(x, 0), "relu6": lambda x: np.clip(x, 0, 6), "clamp": np.clip,
        "leaky_relu": _leaky_relu,
        "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6, "equal": np.equal, "not_equal": np.not_equal,
        "less": np.less, "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
        "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
        "logical_not": np.logical_not, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
        "bitwise_xor": np.bitwise_xor, "bitwise_not": np.invert,
        "shift_left": _shift_left, "shift_right": _shift_right, "select": np.where,
    }.items()},
    "quantize": _quantize,
    "convert": _convert,
    "bitcast": lambda dtype, x: np.asarray(x).view(dtype.np),
}  # fmt: skip
"""By name of an operation, what it is of a dtype and arrays; floats come as float64."""
