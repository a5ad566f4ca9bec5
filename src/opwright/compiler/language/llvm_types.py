"""LLVM types and constants of the language's dtypes.

Lives here: `KIND`, `typed`, `suffix`, `number` (a constant), and the inverse: `constants`, `is_number`.
Not here: values (values.py).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType

I1, I8, I32, I64 = map(ir.IntType, (1, 8, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()
POINTER = ir.PointerType()

KIND: dict[DType, ir.Type] = {
    dtypes.float16: ir.IntType(16),
    dtypes.bfloat16: ir.IntType(16),
    dtypes.float32: F32,
    dtypes.float64: F64,
    dtypes.int8: I8,
    dtypes.uint8: I8,
    dtypes.int16: ir.IntType(16),
    dtypes.uint16: ir.IntType(16),
    dtypes.int32: I32,
    dtypes.uint32: I32,
    dtypes.int64: I64,
    dtypes.uint64: I64,
    dtypes.bool: I1,
}
"""The type of one lane. Short floats are represented by their bits."""

ELEMENT_DTYPES = (dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.bool)
"""The dtypes that operators of the catalogue take and return in kernels (operators.py)."""

SHORT_FLOATS = (dtypes.float16, dtypes.bfloat16)

_SUFFIX = {F32: "f32", F64: "f64", POINTER: "p0"}


@functools.cache
def typed(dtype: DType, count: int) -> ir.Type:
    """Return the LLVM type of a vector; of a scalar if count is 0."""
    return ir.VectorType(KIND[dtype], count) if count else KIND[dtype]


def suffix(kind: ir.Type) -> str:
    """Return the spelling of a type in the names of intrinsics."""
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{suffix(kind.element)}"
    return f"i{kind.width}" if isinstance(kind, ir.IntType) else _SUFFIX[kind]


_LIMITS = {dtype: (int(dtype.min), int(dtype.max)) for dtype in KIND if dtype.is_integer}


@functools.lru_cache(maxsize=4096)  # one object for each, by which a builder knows its instructions
def _integer(dtype: DType, value: int, count: int) -> ir.Constant:
    low, high = _LIMITS[dtype]
    if not low <= value <= high:
        raise TypeError(f"{dtype.name} cannot hold {value!r}")
    one = ir.Constant(KIND[dtype], value)
    return SplatConstant(typed(dtype, count), one) if count else one


def number(dtype: DType, value: Any, count: int = 0) -> ir.Constant:
    """Return a Python number as a constant, rounded to the dtype. Raises TypeError if the dtype cannot represent it."""
    if type(value) is int and dtype.is_integer:
        return _integer(dtype, value, count)
    kind, exact = KIND[dtype], value
    if dtype.is_integer:
        exact = int(value)
        if exact != value:
            raise TypeError(f"{dtype.name} cannot hold {value!r}")
        return _integer(dtype, exact, count)
    if dtype.is_bool:
        exact = int(value)
    else:
        rounded = dtype.as_numpy_dtype(value)
        exact = int(rounded.view(np.uint16)) if dtype in SHORT_FLOATS else float(rounded)
    one = ir.Constant(kind, exact)
    return SplatConstant(typed(dtype, count), one) if count else one


class SplatConstant(ir.Constant):  # type: ignore[misc]  # llvmlite has no annotations
    """A constant vector of equal lanes, which prints as LLVM abbreviates it: lanes were a third of all text."""

    def __init__(self, kind: ir.VectorType, lane: ir.Constant) -> None:
        self.type, self.constant = kind, [lane] * kind.count

    def _get_reference(self) -> str:
        return f"splat ({self.constant[0]})"


class _UndefinedVector(ir.Constant):  # type: ignore[misc]
    """A vector of lanes that no code reads, which prints as LLVM abbreviates it."""

    def __init__(self, kind: ir.VectorType) -> None:
        super().__init__(kind, ir.Undefined)

    def _get_reference(self) -> str:
        return "undef"


undefined = functools.cache(_UndefinedVector)
"""Return the undefined vector of a type."""


def constants(x: ir.Value) -> list[Any] | None:
    """Return the lanes of a constant vector or scalar as numbers; None if x is not constant."""
    constant = x.constant if isinstance(x, ir.Constant) else None
    lanes = [lane.constant for lane in constant] if isinstance(constant, list) else [constant]
    return lanes if all(isinstance(lane, int | float) for lane in lanes) else None


def is_number(x: ir.Value) -> bool:
    """Return whether x is a constant without NaN."""
    lanes = constants(x)
    return lanes is not None and all(lane == lane for lane in lanes)


def stored(dtype: DType) -> DType:
    """Return the dtype of an element in memory; a bool is stored as a byte."""
    return dtypes.uint8 if dtype.is_bool else dtype
