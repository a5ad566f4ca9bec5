"""Floats as integers, whatever they are.

Lives here: `to_integer`.  Not here: conversions of numbers that are known to be in range (values.py, functions.py).
"""

from __future__ import annotations

from ...core.dtypes import DType
from .kinds import suffix, typed
from .values import Value, intrinsic


def to_integer(x: Value, dtype: DType) -> Value:
    """Toward zero; what lies outside of the dtype becomes its nearest end, NaN 0."""
    kind = typed(dtype, x.count)
    name = "fptoui" if dtype.is_unsigned else "fptosi"
    return Value(intrinsic(f"{name}.sat.{suffix(kind)}.{suffix(x.x.type)}", kind, x.x), dtype)
