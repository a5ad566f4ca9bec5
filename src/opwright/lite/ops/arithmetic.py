"""Arithmetic of two tensors, broadcast: ADD to ATAN2, and ADD_N of many.

Lives here: the table of binary operators and their computations.  Not here: comparison and logic (comparison.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.dtypes import (
    DType,
    bfloat16,
    complex64,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint32,
)
from ...core.specs import TensorSpec
from ...ops.definition import Input, Output
from ...scalar.table import FUNCTIONS
from .definition import LiteOperator, lite_operator
from .fusing import fuse
from .parts import Part, elements
from .same import SAME, computation
from .shapes import broadcast, fixed, refuse, text


def check_nonzero(y: Any) -> None:
    """Raises InvalidArgumentError where a divisor is 0."""
    if not np.all(y):
        raise refuse("Division by 0", wanted="divisors other than 0")


def _check_divisors(y: Any) -> None:
    if y.dtype.kind != "f":
        check_nonzero(y)


def _check_exponents(y: Any) -> None:
    if y.dtype.kind != "f" and np.any(y < 0):
        raise refuse("POW does not support negative exponent for int32", wanted="exponents of at least 0")


SECOND = {"DIV": _check_divisors, "FLOOR_DIV": check_nonzero, "FLOOR_MOD": _check_divisors, "POW": _check_exponents}
"""By operator, the check of its second operand's elements: in prepare where they are in the file, else in a run."""


def _check_second(name: str, y: Any) -> None:
    known = fixed(y) if name in SECOND else None
    if known is not None:
        SECOND[name](known)


def binary(name: str, compute: Any, formula: str, dtypes: tuple[DType, ...], options: str | None = None,
           versions: tuple[int, int] = (1, 1), out: DType | None = None, **settings: Any) -> LiteOperator:  # fmt: skip
    """Define an operator of two broadcast tensors.

    compute: a NumPy ufunc, a function of two arrays, or SAME. out: the output's dtype where it is not the inputs'.
    settings: more of the class body, such as quantized="arithmetic.add".
    """
    compute = computation(name, compute)

    def infer(op: Any) -> TensorSpec:
        _check_second(name, op.y)
        return TensorSpec(broadcast(op.x, op.y), out or op.x.spec.dtype)

    def computed(op: Any, x: Any, y: Any) -> Any:
        return compute(x, y)

    body = {
        "__doc__": f"{name}, broadcast.\n\n.. math:: z = {formula}",
        "__module__": __name__,
        "x": Input(dtypes),
        "y": Input(dtypes, like="x"),
        "z": Output(like=None if out else "x", dtype=out),
        "elementwise": True,
        "inplace": {"z": ("x", "y")},
        "infer": infer,
        "compute": compute if isinstance(compute, np.ufunc) else computed,
        **settings,
    }
    return lite_operator(name, options=options, versions=versions)(type(name, (), body))


def fused(name: str, compute: Any, formula: str, dtypes: tuple[DType, ...], options: str, versions: tuple[int, int],
          **settings: Any) -> LiteOperator:
    """As `binary`, for an operator with a fused activation."""
    compute = computation(name, compute)
    ufunc = compute if isinstance(compute, np.ufunc) else None  # does the same where no activation is fused

    def infer(op: Any) -> TensorSpec:
        _check_second(name, op.y)
        return TensorSpec(broadcast(op.x, op.y), op.x.spec.dtype)

    def computed(op: Any, x: Any, y: Any) -> Any:
        return fuse(op, compute(x, y))

    def writes(op: Any, dtype: DType) -> np.ufunc | None:
        return ufunc if op.fused_activation_function == "NONE" else None

    body = {
        "__doc__": f"{name}, broadcast, with a fused activation.\n\n.. math:: z = act({formula})",
        "__module__": __name__,
        "x": Input(dtypes),
        "y": Input(dtypes, like="x"),
        "z": Output(like="x"),
        "elementwise": True,
        "inplace": {"z": ("x", "y")},
        "infer": infer,
        "compute": computed,
        **settings,
    }
    if ufunc is not None:
        body["writes"] = writes
    return lite_operator(name, options=options, versions=versions)(type(name, (), body))


def divide(x: Any, y: Any) -> Any:
    """x / y; integers are truncated toward zero, as in C, and the one overflow gives the greatest."""
    if x.dtype.kind == "f":
        return np.divide(x, y)
    check_nonzero(y)
    quotient = np.floor_divide(x, y)
    quotient = quotient + ((quotient * y != x) & ((x < 0) != (y < 0)))
    limits = np.iinfo(x.dtype)
    return np.where((x == limits.min) & (y == -1), x.dtype.type(limits.max), quotient)


def floor_divide(x: Any, y: Any) -> Any:
    """The quotient rounded down; of floats, that of float64, so that a quotient just below an integer stays below."""
    check_nonzero(y)
    if x.dtype.kind != "f":
        return FUNCTIONS["floor_div"].of_arrays(x, y)
    return np.floor(np.divide(x, y, dtype=np.float64)).astype(x.dtype)


def floor_mod(x: Any, y: Any) -> Any:
    if x.dtype.kind != "f":
        check_nonzero(y)
    return FUNCTIONS["floor_mod"].of_arrays(x, y)


def power(x: Any, y: Any) -> Any:
    """x to the y. Integers beyond their type's range wrap where one exponent is for many, else become its least, as the
    official kernel multiplies in the first case and takes the power of doubles in the other.
    """
    if x.dtype.kind == "f":
        return np.power(x, y)
    _check_exponents(y)
    if y.size == 1 and y.shape != x.shape:
        return np.power(x, y)
    limits, wide = np.iinfo(x.dtype), np.power(x, y, dtype=np.float64)
    return np.where(np.abs(wide) <= limits.max, wide, limits.min).astype(x.dtype)


def _integers_by(ufunc: np.ufunc) -> Any:
    """The setting `writes` of an operator whose integers a ufunc alone computes."""
    return lambda op, dtype: ufunc if dtype.is_integer else None


_NUMBERS = (float32, int32, int64)
_ORDERED = (float32, float16, bfloat16, int32, int64, int16, int8, uint8)
_FLOAT_AND_RAW = (float32, float16, int32, int64, int16)
Rows = tuple[tuple[str, Any, str, tuple[DType, ...], str, tuple[int, int]], ...]

#    name   compute      formula   dtypes    options       versions
FUSED: Rows = (
    ("ADD", SAME,        "x + y",  _FLOAT_AND_RAW,                     "AddOptions", (1, 6)),
    ("SUB", SAME,        "x - y",  (*_NUMBERS, float16),               "SubOptions", (1, 5)),
    ("MUL", SAME,        "x y",    (*_FLOAT_AND_RAW, uint32, complex64), "MulOptions", (1, 8)),
    ("DIV", divide,      "x / y",  (float32, float16, int32),          "DivOptions", (1, 2)),
)  # fmt: skip

#    name                 compute          formula                 dtypes                        options, versions
BINARY = (
    ("FLOOR_DIV",          floor_divide,    r"\lfloor x / y \rfloor", (float32, int32, int16, int8),
     "FloorDivOptions", (1, 3)),
    ("FLOOR_MOD",          floor_mod,       r"x - y \lfloor x / y \rfloor", (*_NUMBERS, int16, int8),
     "FloorModOptions", (1, 2)),
    ("POW",                power,           "x^y",                  (float32, int32),             "PowOptions", (1, 1)),
    ("MAXIMUM",            SAME,         r"\max(x, y)", _ORDERED,
     "MaximumMinimumOptions", (1, 4)),
    ("MINIMUM",            SAME,         r"\min(x, y)", _ORDERED,
     "MaximumMinimumOptions", (1, 4)),
    ("SQUARED_DIFFERENCE", SAME, "(x - y)^2", (float32, float16, int32), "SquaredDifferenceOptions",
     (1, 2)),
    ("ATAN2",              SAME,      r"\operatorname{atan2}(x, y)", (float32, float16, bfloat16, float64),
     "ATan2Options", (1, 1)),
)  # fmt: skip

# On quantised tensors: a rule, or the raw integers.
SETTINGS: dict[str, dict[str, Any]] = {
    "ADD": {"quantized": "arithmetic.add"},
    "SUB": {"quantized": "arithmetic.subtract"},
    "MUL": {"quantized": "arithmetic.multiply"},
    "DIV": {"quantized": "arithmetic.divide"},
    "SQUARED_DIFFERENCE": {"quantized": "arithmetic.squared_difference"},
    "FLOOR_DIV": {"moves": True},
    "FLOOR_MOD": {"moves": True},
    "MAXIMUM": {"moves": True, "writes": _integers_by(np.maximum)},
    "MINIMUM": {"moves": True, "writes": _integers_by(np.minimum)},
}

for row in FUSED:
    fused(*row, **SETTINGS.get(row[0], {}))
for row_ in BINARY:
    binary(*row_, **SETTINGS.get(row_[0], {}))


@lite_operator("ADD_N", options="AddNOptions")
class AddN:
    """Sum of tensors of one shape.

    .. math:: y = \\sum_i x_i
    """

    xs = Input((float32, int32), repeated=True)
    y = Output(like="xs")

    def infer(op: Any) -> TensorSpec:
        if not op.xs:
            raise refuse("ADD_N has no inputs", wanted="at least one")
        shape = op.xs[0].spec.shape
        for x in op.xs[1:]:
            if not shape.is_compatible_with(x.spec.shape):
                raise refuse("inputs differ in shape", found=", ".join(text(i.spec.shape) for i in op.xs[:8]),
                             wanted="one shape")  # fmt: skip
            shape = shape.merge_with(x.spec.shape)
        return TensorSpec(shape, op.xs[0].spec.dtype)

    def parts(op: Any, xs: Any) -> Iterator[Part]:
        return elements(lambda *seen: op.reference(seen), xs, xs[0].shape)

    def compute(op: Any, xs: Any) -> Any:
        total = np.array(xs[0])
        for x in xs[1:]:
            total += x
        return total
