"""Element-wise builtin operators: ABS to ZEROS_LIKE, activations without options, CAST; ADD to RIGHT_SHIFT, EQUAL to
LOGICAL_OR, broadcast; ADD_N.

Lives here: `define`, which builds an element-wise operator from a row; the rows of one operand and of two; official
arithmetic that differs from scalar/table.py.
Not here: activations with options or over rows (activation.py), selection by a condition (selection.py).

A row specifies the formula in words, the types, and the rule for quantized tensors. The computation is the function of
scalar/table.py that names the builtin operator; a row with another one explains why.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
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
    string,
    uint8,
    uint16,
    uint32,
)
from ...core.dtypes import bool as bool_
from ...core.specs import TensorSpec
from ...ops.slots import Input, Output
from ...scalar.formulas import CLAMPS
from ...scalar.table import FUNCTIONS, OF_BUILTIN
from ..format import schema
from . import types
from .definition import LiteDefinition, LiteOperator, facts, lite_operator
from .shapes import broadcast, fixed, refuse, text
from .tiling import Part, elements, fuse, in_elements


def computation(name: str) -> Callable[..., Any]:
    """Return the function of the scalar table that a builtin operator is."""
    row = OF_BUILTIN[name]
    return row.ufunc or row.of_arrays


def define(
    module: str,
    name: str,
    formula: str,
    dtypes: Sequence[DType],
    compute: Callable[..., Any] | None = None,
    *,
    operands: int = 1,
    out: DType | None = None,
    check: Callable[[Any], None] | None = None,
    **settings: Any,
) -> LiteOperator:
    """Define an element-wise operator of a module; two operands broadcast.

    compute: a NumPy ufunc or a function of arrays; by default the function of the scalar table. out: the dtype of the
    result where it is not that of the operands. check: of the elements of the second operand, raises
    InvalidArgumentError; called in prepare where they are constants of the file, otherwise by `compute`. settings: more
    of the class body, such as quantized="arithmetic.exp". An operator whose options have a fused activation applies it.
    """
    of_arrays = compute or computation(name)
    ufunc = of_arrays if isinstance(of_arrays, np.ufunc) else None
    options = facts(name)["options"]
    fused = options is not None and any(f.name == FUSED_ACTIVATION for f in schema.table(options).fields)

    def infer(op: Any) -> TensorSpec:
        elements = fixed(op.y) if check is not None else None
        if check is not None and elements is not None:
            check(elements)
        return TensorSpec(broadcast(op.x, op.y), out or op.x.spec.dtype)

    def computed(op: Any, *arrays: Any) -> np.ndarray:
        return fuse(op, of_arrays(*arrays)) if fused else of_arrays(*arrays)

    def writes(op: Any, dtype: DType) -> np.ufunc | None:
        return ufunc if op.fused_activation_function == "NONE" else None

    names = ("x", "y")[:operands]
    result = "y" if operands == 1 else "z"
    body = {
        "__doc__": f"{name}, {_manner(operands, fused)}.\n\n.. math:: {result} = "
        + (f"act({formula})" if fused else formula),
        "__module__": module,
        "x": Input(tuple(dtypes)),
        **({"y": Input(tuple(dtypes), like="x")} if operands == 2 else {}),
        result: Output(like=None if out else "x", dtype=out),
        "elementwise": True,
        "inplace": {result: names if operands == 2 else "x"},
        "compute": ufunc if ufunc is not None and not fused else computed,
        **({"infer": infer} if operands == 2 else {}),
        **({"writes": writes} if fused and ufunc is not None else {}),
        **settings,
    }
    return lite_operator(name)(type(name, (), body))


FUSED_ACTIVATION = "fused_activation_function"
"""The option of operators that apply an activation to their result."""


def _manner(operands: int, fused: bool) -> str:
    return "element by element" if operands == 1 else "broadcast, with a fused activation" if fused else "broadcast"


def in_float32(compute: Any) -> Callable[..., Any]:
    """Return a function of float arrays that computes on 16-bit floats in float32 and rounds once."""

    def computed(*arrays: np.ndarray) -> np.ndarray:
        dtype = arrays[0].dtype
        result: np.ndarray
        if dtype.itemsize > 2:
            result = compute(*arrays)
        else:
            result = compute(*(a.astype(np.float32) for a in arrays)).astype(dtype)
        return result

    return computed


def clamp(name: str) -> Callable[[Any], Any]:
    """Return the function of a clamping activation that has two bounds."""
    low, high = CLAMPS[name]
    return lambda x: np.clip(x, x.dtype.type(low), x.dtype.type(high))


# These three are the official kernels' arithmetic, which differs in the last bits from the table's.


@in_float32
def logistic(x: np.ndarray) -> np.ndarray:
    """Compute 1 / (1 + e^-x), and e^x below -9, where the sum would lose precision."""
    one = x.dtype.type(1)
    y = one / (one + np.exp(-x))
    below = np.less(x, -9)
    result: np.ndarray = np.where(below, np.exp(x), y) if below.any() else y
    return result


@in_float32
def elu(x: np.ndarray) -> np.ndarray:
    """Return x, and e^x - 1 below 0."""
    return np.where(x < 0, np.expm1(np.minimum(x, x.dtype.type(0))), x)


@in_float32
def hard_swish(x: np.ndarray) -> np.ndarray:
    """Compute x (min(max(x + 3, 0), 6) / 6): x times 6 could overflow."""
    three, six = x.dtype.type(3), x.dtype.type(6)
    result: np.ndarray = x * (np.clip(x + three, x.dtype.type(0), six) / six)
    return result


rsqrt = in_float32(FUNCTIONS["rsqrt"].of_arrays)

unary = functools.partial(define, __name__)

_REALS = (float32, float16)
_FLOATS = (float32, float16, bfloat16)

unary("ABS", "|x|", (*_REALS, int32, int16), quantized="arithmetic.absolute")
# The official converter calls the negation of an int16 input float32: hence `retypes`.
unary("NEG", "-x", (*_FLOATS, int8, int16, int32, int64), moves=True, retypes=True)
unary("EXP", "e^x", _REALS, quantized="arithmetic.exp")
unary("LOG", r"\ln x", _REALS, quantized="arithmetic.log")
unary("SQRT", r"\sqrt{x}", _REALS, quantized="arithmetic.sqrt")
unary("RSQRT", r"1 / \sqrt{x}", _REALS, rsqrt, quantized="arithmetic.rsqrt")
unary("SQUARE", "x^2", _REALS)
unary("SIN", r"\sin x", _REALS)
unary("COS", r"\cos x", _REALS)
unary("FLOOR", r"\lfloor x \rfloor", _FLOATS)
unary("CEIL", r"\lceil x \rceil", _REALS)
unary("ROUND", "x to the nearest integer, halves to even", _FLOATS)
unary("SIGN", r"\operatorname{sgn} x", (float32, float64, int32))
unary("LOGICAL_NOT", r"\neg x", (bool_,))
unary("ZEROS_LIKE", "0", (float32, int32, int64), np.zeros_like)
unary("RELU", r"\max(x, 0)", _REALS, quantized="activation.relu")
unary("RELU6", r"\min(\max(x, 0), 6)", _REALS, quantized="activation.relu6")
unary("RELU_N1_TO_1", r"\min(\max(x, -1), 1)", _REALS, clamp("RELU_N1_TO_1"), quantized="activation.relu_n1_to_1")
unary("RELU_0_TO_1", r"\min(\max(x, 0), 1)", (float32,), clamp("RELU_0_TO_1"), quantized="activation.relu_0_to_1")
unary("ELU", r"x \ge 0: x,\ \text{else}\ e^x - 1", _REALS, elu, quantized="activation.elu")
unary("HARD_SWISH", r"x \min(\max(x + 3, 0), 6) / 6", _REALS, hard_swish, quantized="activation.hard_swish")
unary("TANH", r"\tanh x", _FLOATS, quantized="activation.tanh")
unary("LOGISTIC", "1 / (1 + e^{-x})", _FLOATS, logistic, quantized="activation.logistic")


@lite_operator("CAST", typed_by="out_data_type")
class CastOp(LiteDefinition):
    """Every element converted to another type: fractions are cut off, integers wrap, truth is "not 0".

    .. math:: y = (\\text{out\\_data\\_type}) x

    Floats beyond the range of an integer type become its least or greatest number, NaN the greatest; complex numbers
    lose their imaginary part.

    The types are those of the tensors; types in the file's options are ignored, as converters omit them.
    """

    x = Input(tuple(d for d in types.BY_NAME.values() if d.is_numpy_compatible and d is not string))
    y = Output(like="x")
    moves = True

    def infer(op: Any) -> TensorSpec:
        dtype = types.dtype_of(op.out_data_type)
        if not dtype.size:
            raise refuse(
                "no number can be cast to this type", found=op.out_data_type, wanted="a type of numbers, or BOOL"
            )
        return TensorSpec(op.x.spec.shape, dtype)

    def compute(op: Any, x: np.ndarray) -> np.ndarray:
        dtype = types.dtype_of(op.out_data_type)
        if x.dtype.kind == "c" and not dtype.is_complex:
            x = np.real(x)
        if x.dtype.kind == "V" and x.dtype != bfloat16.np:  # integers below a byte, which are not cast to each other
            x = x.astype(np.int16)
        y = x.astype(dtype.np)
        if dtype.is_integer and (x.dtype.kind == "f" or x.dtype == bfloat16.np):
            x = x.astype(np.float32) if x.dtype.itemsize == 2 else x  # 16 bits do not hold the limits
            low, high = int(dtype.min), int(dtype.max)
            np.copyto(y, dtype.max, where=~(x < high + 1))
            np.copyto(y, dtype.min, where=x < low)
        return y

    parts = in_elements


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


def divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Divide; integers are truncated toward zero, as in C, and the one overflow saturates."""
    if x.dtype.kind == "f":
        ratio: np.ndarray = np.divide(x, y)
        return ratio
    check_nonzero(y)
    quotient: np.ndarray = np.floor_divide(x, y)
    quotient = quotient + ((quotient * y != x) & ((x < 0) != (y < 0)))
    limits = np.iinfo(x.dtype)
    return np.where((x == limits.min) & (y == -1), x.dtype.type(limits.max), quotient)


def floor_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the quotient rounded down; floats are divided in float64, so that it stays below integers."""
    check_nonzero(y)
    result: np.ndarray
    if x.dtype.kind != "f":
        result = FUNCTIONS["floor_div"].of_arrays(x, y)
    else:
        result = np.floor(np.divide(x, y, dtype=np.float64)).astype(x.dtype)
    return result


def floor_mod(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if x.dtype.kind != "f":
        check_nonzero(y)
    result: np.ndarray = FUNCTIONS["floor_mod"].of_arrays(x, y)
    return result


def power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Raise x to the power y. With one exponent for many bases, integers beyond their type's range wrap; otherwise they
    become its minimum: the official kernel multiplies in the first case and takes the power of doubles in the other.
    """
    _check_exponents(y)
    result: np.ndarray
    if x.dtype.kind == "f":
        result = FUNCTIONS["pow"].of_arrays(x, y)
    elif y.size == 1 and y.shape != x.shape:
        result = np.power(x, y)
    else:
        limits, wide = np.iinfo(x.dtype), np.power(x, y, dtype=np.float64)
        result = np.where(np.abs(wide) <= limits.max, wide, limits.min).astype(x.dtype)
    return result


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
class AddNOp(LiteDefinition):
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
