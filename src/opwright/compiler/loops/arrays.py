"""Expressions in NumPy: what a tree is of arrays.

Lives here: `evaluate_arrays`, the table of operations.  Not here: machine code for them (../kernels/expression.py).

Floats are computed in float64 and rounded at the end and where the tree converts; integers wrap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType, float32, float64
from .expressions import Expr

_erf: Any = np.frompyfunc(math.erf, 1, 1)


def evaluate_arrays(expr: Expr, args: Sequence[np.ndarray]) -> np.ndarray:
    """The expression of these arrays, which broadcast; args[i] stands for arg i, a table of a look-up for its arg.

    raises KeyError for an operation that the table does not have
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
        return _wide(args[e.value], e.dtype)
    if e.op in ("const", "scalar"):
        return _wide(np.asarray(e.value, e.dtype.np), e.dtype)
    if e.op == "lookup":
        table = args[e.args[1].value]
        return table[np.asarray(walk(e.args[0])).astype(np.int64) & 255]
    found = OPERATIONS[e.op](e.dtype, *map(walk, e.args))
    return found if e.dtype is float32 or e.dtype is float64 else np.asarray(found).astype(e.dtype.np, copy=False)


def _wide(x: np.ndarray, dtype: DType) -> np.ndarray:
    return x.astype(np.float64) if dtype.is_floating else x


def _quantize(dtype: DType, x: Any, zero: Any, low: Any = None, high: Any = None) -> Any:
    least, most = dtype.limits
    low, high = least if low is None else low, most if high is None else high
    return np.clip(np.rint(x) + zero, float(low), float(high))


def _convert(dtype: DType, x: Any) -> Any:
    if dtype.is_floating:
        return np.asarray(x).astype(dtype.np).astype(np.float64)
    return np.trunc(x).astype(np.int64).astype(dtype.np) if np.asarray(x).dtype.kind == "f" else x


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: (lambda dtype, *args, f=f: f(*args)) for name, f in {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "abs": np.abs,
        "minimum": np.minimum, "maximum": np.maximum, "fma": lambda a, b, c: a * b + c, "square": np.square,
        "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": lambda x: 1 / x,
        "squared_difference": lambda a, b: np.square(a - b), "sign": np.sign, "floor": np.floor, "ceil": np.ceil,
        "round_even": np.rint, "trunc": np.trunc, "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p,
        "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "erf": lambda x: _erf(x).astype(np.float64),
        "pow": np.power, "sigmoid": _sigmoid, "silu": lambda x: x * _sigmoid(x), "relu": lambda x: np.maximum(x, 0),
        "relu6": lambda x: np.clip(x, 0, 6), "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
        "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6, "elu": lambda x: np.where(x < 0, np.expm1(x), x),
        "gelu": lambda x: 0.5 * x * (1 + _erf(x * math.sqrt(0.5)).astype(np.float64)),
        "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        "leaky_relu": lambda x, a: np.where(x < 0, x * a, x), "clamp": np.clip, "equal": np.equal,
        "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal, "greater": np.greater,
        "greater_equal": np.greater_equal, "logical_and": np.logical_and, "logical_or": np.logical_or,
        "logical_not": np.logical_not, "select": np.where,
    }.items()},
    "quantize": _quantize,
    "convert": _convert,
    "bitcast": lambda dtype, x: np.asarray(x).view(dtype.np),
}  # fmt: skip
"""By name of an operation, what it is of a dtype and arrays; floats come as float64."""
