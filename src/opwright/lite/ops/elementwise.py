"""Element-wise builtin operators of one operand: ABS to ZEROS_LIKE, activations without options, CAST.

Lives here: `define`, which builds an element-wise operator from a row, the rows of one operand, and official arithmetic
that differs from scalar/table.py.
Not here: the rows of two operands (arithmetic.py), activations with options or over rows (activation.py).

A row specifies the formula in words, the types, and the rule for quantized tensors. The computation is the function of
scalar/table.py that names the builtin operator; a row with another one explains why.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.constants import CLAMPS
from ...core.dtypes import DType, bfloat16, float16, float32, float64, int8, int16, int32, int64
from ...core.dtypes import bool as bool_
from ...core.specs import TensorSpec
from ...ops.slots import Input, Output
from ...scalar.table import FUNCTIONS, OF_BUILTIN
from ..format import schema
from . import types
from .definition import LiteDefinition, LiteOperator, facts, lite_operator
from .parts import fuse, in_elements
from .shapes import broadcast, fixed, refuse


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

    def computed(*arrays: Any) -> Any:
        dtype = arrays[0].dtype
        if dtype.itemsize > 2:
            return compute(*arrays)
        return compute(*(a.astype(np.float32) for a in arrays)).astype(dtype)

    return computed


def clamp(name: str) -> Callable[[Any], Any]:
    """Return the function of a clamping activation that has two bounds."""
    low, high = CLAMPS[name]
    return lambda x: np.clip(x, x.dtype.type(low), x.dtype.type(high))


# These three are the official kernels' arithmetic, which differs in the last bits from the table's.


@in_float32
def logistic(x: Any) -> Any:
    """Compute 1 / (1 + e^-x), and e^x below -9, where the sum would lose precision."""
    one = x.dtype.type(1)
    y = one / (one + np.exp(-x))
    below = np.less(x, -9)
    return np.where(below, np.exp(x), y) if below.any() else y


@in_float32
def elu(x: np.ndarray) -> np.ndarray:
    """Return x, and e^x - 1 below 0."""
    return np.where(x < 0, np.expm1(np.minimum(x, x.dtype.type(0))), x)


@in_float32
def hard_swish(x: Any) -> Any:
    """Compute x (min(max(x + 3, 0), 6) / 6): x times 6 could overflow."""
    three, six = x.dtype.type(3), x.dtype.type(6)
    return x * (np.clip(x + three, x.dtype.type(0), six) / six)


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
class Cast(LiteDefinition):
    """Every element converted to another type: fractions are cut off, integers wrap, truth is "not 0".

    .. math:: y = (\\text{out\\_data\\_type}) x

    Floats beyond the range of an integer type become its least or greatest number, NaN the greatest; complex numbers
    lose their imaginary part.

    The types are the tensors'; what the file's options say of them is ignored, as converters leave them out.
    """

    x = Input(tuple(d for d in types.BY_NAME.values() if d.size))
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
            x = x.real
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
