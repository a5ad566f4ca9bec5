"""`ow.dtypes`: the dtypes and their conversions, under TensorFlow's names.

Lives here: names only.
Not here: the dtypes (core/dtypes.py), casts (array/type_conversion.py), `complex` (math/complex_numbers.py).
"""

from __future__ import annotations

from ..core.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    bool,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int4,
    int8,
    int16,
    int32,
    int64,
    resource,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
    variant,
)
from .array import cast, saturate_cast
from .math import complex

__all__ = [  # noqa: RUF022  as `ow.__all__` has them
    "DType",
    "as_dtype",
    "bfloat16",
    "bool",
    "cast",
    "complex",
    "complex128",
    "complex64",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int16",
    "int32",
    "int4",
    "int64",
    "int8",
    "resource",
    "saturate_cast",
    "string",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "variant",
]

half, double = float16, float64
