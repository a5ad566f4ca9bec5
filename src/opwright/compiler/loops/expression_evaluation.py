"""Evaluation of expressions on NumPy arrays.

Lives here: `evaluate_arrays`.
Not here: machine code of expressions (../kernels/expression.py), functions (scalar/table.py).

Floats are computed in float64 and rounded by conversions and results only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import DType, float32, float64
from ...core.errors import InternalError
from ...scalar.table import FUNCTIONS
from .expressions import Expr


def evaluate_arrays(expr: Expr, args: Sequence[np.ndarray]) -> np.ndarray:
    """Evaluate an expression on arrays that broadcast; args[i] is the value of arg i, or a look-up table.

    raises KeyError for an operation that the table does not have, InternalError for an array of another dtype than the
    expression reads
    """
    results: dict[int, Any] = {}

    def walk(e: Expr) -> np.ndarray:
        value = results.get(id(e))
        if value is None:
            value = results[id(e)] = _one(e, walk, args)
        return value

    with np.errstate(all="ignore"):  # integers that are divided by 0 are 0
        result: np.ndarray = np.asarray(walk(expr)).astype(expr.dtype.np, copy=False)
    return result


def _one(e: Expr, walk: Callable[[Expr], np.ndarray], args: Sequence[np.ndarray]) -> np.ndarray:
    if e.op == "arg":
        return _wide(_read(e, args), e.dtype)
    if e.op in ("const", "scalar"):
        return _wide(np.asarray(e.value, e.dtype.np), e.dtype)
    if e.op == "lookup":
        index, table = e.args[0], _read(e.args[1], args)
        if table.shape != (1 << 8 * index.dtype.size,):
            raise InternalError(op="loop graph", what=f"a table for {index.dtype.name}", found=list(table.shape))
        entries: np.ndarray = table[np.asarray(walk(index)).astype(np.int64) & (table.size - 1)]
        return entries
    if e.op == "call":
        return _wide(e.value.of_arrays(*map(walk, e.args)), e.dtype)
    operation, operands = STRUCTURAL.get(e.op), map(walk, e.args)
    value = FUNCTIONS[e.op].of_arrays(*operands) if operation is None else operation(e.dtype, *operands)
    return value if e.dtype is float32 or e.dtype is float64 else np.asarray(value).astype(e.dtype.np, copy=False)


def _read(e: Expr, args: Sequence[np.ndarray]) -> np.ndarray:
    array: np.ndarray = args[e.value]
    if array.dtype != e.dtype.np:
        raise InternalError(op="loop graph", what=f"operand {e.value} is read as {e.dtype.name}", found=array.dtype)
    return array


def _wide(x: np.ndarray, dtype: DType) -> np.ndarray:
    return x.astype(np.float64) if dtype.is_floating else x


def _is_float(x: Any) -> bool:
    return np.asarray(x).dtype.kind == "f"


def _quantize(dtype: DType, x: Any, zero: Any, low: Any = None, high: Any = None) -> np.ndarray:
    type_min, type_max = dtype.limits
    low, high = type_min if low is None else low, type_max if high is None else high
    rounded: np.ndarray = np.clip(np.where(np.isnan(x), -np.inf, np.rint(x)) + zero, float(low), float(high))
    return rounded


def _convert(dtype: DType, x: Any) -> np.ndarray:
    if dtype.is_floating:
        return np.asarray(x).astype(dtype.np).astype(np.float64)
    if not _is_float(x) or dtype.is_bool:
        return np.asarray(x).astype(dtype.np)
    low, high = dtype.limits
    truncated = np.trunc(np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf))
    inside = (truncated >= float(low)) & (truncated < float(high))
    converted = np.where(inside, truncated, 0.0).astype(dtype.np)
    return np.where(inside, converted, np.where(truncated < 0, np.array(low, dtype.np), np.array(high, dtype.np)))


STRUCTURAL: dict[str, Callable[..., Any]] = {
    "quantize": _quantize,
    "convert": _convert,
    "bitcast": lambda dtype, x: np.asarray(x).view(dtype.np),
}
"""Conversions by name, as functions of a dtype and arrays."""
