"""Arithmetic, comparison, logic and bits of two tensors, broadcast: ADD to RIGHT_SHIFT, EQUAL to LOGICAL_OR; ADD_N.

Lives here: the rows of two operands, and official arithmetic that differs from scalar/table.py.
Not here: `define` (elementwise.py), choosing by truth (selection.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...core.dtypes import (
    bfloat16,
    complex64,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
)
from ...core.dtypes import bool as bool_
from ...core.specs import TensorSpec
from ...ops.slots import Input, Output
from ...scalar.table import FUNCTIONS
from .definition import LiteDefinition, lite_operator
from .elementwise import define
from .parts import Part, elements
from .shapes import refuse, text


def check_nonzero(y: Any) -> None:
    """Raise InvalidArgumentError if a divisor is 0."""
    if not np.all(y):
        raise refuse("Division by 0", wanted="divisors other than 0")


def _check_divisors(y: Any) -> None:
    if y.dtype.kind != "f":
        check_nonzero(y)


def _check_exponents(y: Any) -> None:
    if y.dtype.kind != "f" and np.any(y < 0):
        raise refuse("POW does not support negative exponent for int32", wanted="exponents of at least 0")


def divide(x: Any, y: Any) -> Any:
    """Divide; integers are truncated toward zero, as in C, and the one overflow saturates."""
    if x.dtype.kind == "f":
        return np.divide(x, y)
    check_nonzero(y)
    quotient = np.floor_divide(x, y)
    quotient = quotient + ((quotient * y != x) & ((x < 0) != (y < 0)))
    limits = np.iinfo(x.dtype)
    return np.where((x == limits.min) & (y == -1), x.dtype.type(limits.max), quotient)


def floor_divide(x: Any, y: Any) -> Any:
    """Return the quotient rounded down; floats are divided in float64, so that it stays below integers."""
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


def _integers_by(ufunc: np.ufunc) -> Callable[..., Any]:
    """Return the setting `writes` of an operator whose integer kernels are a ufunc."""
    return lambda op, dtype: ufunc if dtype.is_integer else None


_NUMBERS = (float32, int32, int64)
_ORDERED = (float32, float16, int32, int64, int16, int8, uint8)
_BOUNDED = (float32, float16, bfloat16, int32, int64, int16, int8, uint8)
_EQUATED = (*_ORDERED, bool_, string)
_BITS = (int8, int16, int32, uint8, uint16, uint32)

binary = functools.partial(define, __name__, operands=2)
test = functools.partial(binary, out=bool_)

binary("ADD", "x + y", (float32, float16, int32, int64, int16), quantized="arithmetic.add")
binary("SUB", "x - y", (*_NUMBERS, float16), quantized="arithmetic.subtract")
binary("MUL", "x y", (float32, float16, int32, int64, int16, uint32, complex64), quantized="arithmetic.multiply")
binary("DIV", "x / y", (float32, float16, int32), divide, check=_check_divisors, quantized="arithmetic.divide")
binary(
    "FLOOR_DIV", r"\lfloor x / y \rfloor", (float32, int32, int16, int8), floor_divide, check=check_nonzero, moves=True
)
binary(
    "FLOOR_MOD", r"x - y \lfloor x / y \rfloor", (*_NUMBERS, int16, int8), floor_mod, check=_check_divisors, moves=True
)
binary("POW", "x^y", (float32, int32), power, check=_check_exponents)
binary("MAXIMUM", r"\max(x, y)", _BOUNDED, moves=True, writes=_integers_by(np.maximum))
binary("MINIMUM", r"\min(x, y)", _BOUNDED, moves=True, writes=_integers_by(np.minimum))
binary("SQUARED_DIFFERENCE", "(x - y)^2", (float32, float16, int32), quantized="arithmetic.squared_difference")
binary("ATAN2", r"\operatorname{atan2}(x, y)", (float32, float16, bfloat16, float64))
binary("BITWISE_XOR", r"x \oplus y", _BITS, moves=True)
binary("RIGHT_SHIFT", r"\lfloor x / 2^{\min(\max(y, 0), bits - 1)} \rfloor", _BITS, moves=True)
test("EQUAL", "x = y", _EQUATED, quantized="arithmetic.equal")
test("NOT_EQUAL", r"x \ne y", _EQUATED, quantized="arithmetic.not_equal")
test("LESS", "x < y", (*_ORDERED, bfloat16), quantized="arithmetic.less")
test("LESS_EQUAL", r"x \le y", _ORDERED, quantized="arithmetic.less_equal")
test("GREATER", "x > y", (*_ORDERED, bfloat16), quantized="arithmetic.greater")
test("GREATER_EQUAL", r"x \ge y", _ORDERED, quantized="arithmetic.greater_equal")
test("LOGICAL_AND", r"x \wedge y", (bool_,))
test("LOGICAL_OR", r"x \vee y", (bool_,))


@lite_operator("ADD_N")
class AddN(LiteDefinition):
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
                raise refuse(
                    "inputs differ in shape", found=", ".join(text(i.spec.shape) for i in op.xs[:8]), wanted="one shape"
                )
            shape = shape.merge_with(x.spec.shape)
        return TensorSpec(shape, op.xs[0].spec.dtype)

    def parts(op: Any, xs: Sequence[np.ndarray]) -> Iterator[Part]:
        return elements(lambda *seen: op.reference(seen), xs, xs[0].shape)

    def compute(op: Any, xs: Sequence[np.ndarray]) -> np.ndarray:
        total = np.array(xs[0])
        for x in xs[1:]:
            total += x
        return total
