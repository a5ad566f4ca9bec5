"""Functions of one tensor, element by element: ABS to ZEROS_LIKE, and CAST.

Lives here: the table of unary operators.  Not here: activations (activation.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtypes import DType, bfloat16, float16, float32, float64, int8, int16, int32, int64
from ...core.dtypes import bool as bool_
from ...core.specs import TensorSpec
from ...ops.definition import Input, Output
from ...scalar.table import FUNCTIONS
from . import types
from .definition import LiteOperator, lite_operator
from .parts import in_elements
from .same import SAME, computation
from .shapes import refuse


def unary(name: str, compute: Any, formula: str, taken: tuple[DType, ...] = (float32,), options: str | None = None,
          versions: tuple[int, int] = (1, 1), **settings: Any) -> LiteOperator:  # fmt: skip
    """Define an element-wise operator.

    compute: a NumPy ufunc or a function of one array, or SAME. settings: more of the class body, such as
    quantized="tables.exp".
    """

    compute = computation(name, compute)

    def computed(op: Any, x: Any) -> Any:
        return compute(x)

    body = {
        "__doc__": f"{name}, element by element.\n\n.. math:: y = {formula}",
        "__module__": __name__,
        "x": Input(taken),
        "y": Output(like="x"),
        "elementwise": True,
        "inplace": {"y": "x"},
        "compute": compute if isinstance(compute, np.ufunc) else computed,
        **settings,
    }
    return lite_operator(name, options=options, versions=versions)(type(name, (), body))


def in_float32(compute: Any) -> Any:
    """A function of float arrays that computes on 16-bit floats in float32 and rounds once."""

    def computed(*arrays: Any) -> Any:
        dtype = arrays[0].dtype
        if dtype.itemsize > 2:
            return compute(*arrays)
        return compute(*(a.astype(np.float32) for a in arrays)).astype(dtype)

    return computed


rsqrt = in_float32(FUNCTIONS["rsqrt"].of_arrays)
_REALS = (float32, float16)

#    name          compute         formula                     dtypes                 options           versions
UNARY = (
    ("ABS",         SAME,           "|x|",                      (*_REALS, int32, int16), "AbsOptions",  (1, 5)),
    ("NEG",         SAME,           "-x",                       (float32, float16, bfloat16, int8, int16, int32, int64),
     "NegOptions", (1, 1)),
    ("EXP",         SAME,           "e^x",                      _REALS,                "ExpOptions",    (1, 2)),
    ("LOG",         SAME,           r"\ln x",                   _REALS,                None,            (1, 2)),
    ("SQRT",        SAME,           r"\sqrt{x}",                _REALS,                None,            (1, 2)),
    ("RSQRT",       rsqrt,         r"1 / \sqrt{x}",            _REALS,                None,            (1, 3)),
    ("SQUARE",      SAME,           "x^2",                      _REALS,                "SquareOptions", (1, 1)),
    ("SIN",         SAME,           r"\sin x",                  _REALS,                None,            (1, 2)),
    ("COS",         SAME,           r"\cos x",                  _REALS,                "CosOptions",    (1, 2)),
    ("FLOOR",       SAME,           r"\lfloor x \rfloor",       (float32, float16, bfloat16), None,     (1, 1)),
    ("CEIL",        SAME,           r"\lceil x \rceil",         _REALS,                None,            (1, 1)),
    ("ROUND",       SAME,           "x to the nearest integer, halves to even",
     (float32, float16, bfloat16), None, (1, 1)),
    ("SIGN",        SAME,           r"\operatorname{sgn} x",    (float32, float64, int32), "SignOptions", (1, 2)),
    ("LOGICAL_NOT", SAME,           r"\neg x",                  (bool_,),              "LogicalNotOptions", (1, 1)),
    ("ZEROS_LIKE",  np.zeros_like,  "0",                        (float32, int32, int64), "ZerosLikeOptions", (1, 1)),
)  # fmt: skip

# On quantised tensors: a rule, or the raw integers.
SETTINGS: dict[str, dict[str, Any]] = {
    "ABS": {"quantized": "elementwise.absolute"},
    "NEG": {"moves": True, "retypes": True},  # the converter calls the negation of an int16 input float32
    "EXP": {"quantized": "elementwise.exp"},
    "LOG": {"quantized": "elementwise.log"},
    "SQRT": {"quantized": "elementwise.sqrt"},
    "RSQRT": {"quantized": "elementwise.rsqrt"},
}

for row in UNARY:
    unary(*row, **SETTINGS.get(row[0], {}))


@lite_operator("CAST", options="CastOptions", versions=(1, 8), typed_by="out_data_type")
class Cast:
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
        wanted = types.dtype_of(op.out_data_type)
        if not wanted.size:
            raise refuse("no number can be cast to this type", found=op.out_data_type,
                         wanted="a type of numbers, or BOOL")  # fmt: skip
        return TensorSpec(op.x.spec.shape, wanted)

    def compute(op: Any, x: Any) -> Any:
        wanted = types.dtype_of(op.out_data_type)
        if x.dtype.kind == "c" and not wanted.is_complex:
            x = x.real
        if x.dtype.kind == "V" and x.dtype != bfloat16.np:  # integers below a byte, which are not cast to each other
            x = x.astype(np.int16)
        y = x.astype(wanted.np)
        if wanted.is_integer and (x.dtype.kind == "f" or x.dtype == bfloat16.np):
            x = x.astype(np.float32) if x.dtype.itemsize == 2 else x  # 16 bits do not hold the limits
            low, high = int(wanted.min), int(wanted.max)
            np.copyto(y, wanted.max, where=~(x < high + 1))
            np.copyto(y, wanted.min, where=x < low)
        return y

    parts = in_elements
