"""float16 and bfloat16, which kernels store and do not compute in: conversions from and to float32.

Lives here: `widened`, `narrowed`.  Not here: other conversions (values.py).

Their values are held as 16 bits. Where a target has no instructions, the conversions are integer arithmetic, so that no
target needs a library for them. Rounding is to the nearest, of two the even one; NaN stays NaN.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType
from .kinds import F32
from .values import Value, current

_HALF = ir.HalfType()


def _alike(kind: ir.Type, count: int) -> ir.Type:
    return ir.VectorType(kind, count) if count else kind


def _has_half() -> bool:
    target = current().target
    return target.is_aarch64 or target.has("f16c")


def _bits(x: Value) -> Value:
    """float32 as its bits in int32."""
    return Value(current().builder.bitcast(x.x, _alike(ir.IntType(32), x.count)), dtypes.int32)


def _float(x: Value) -> Value:
    return Value(current().builder.bitcast(x.x, _alike(F32, x.count)), dtypes.float32)


def _choose(mask: Value, a: Any, c: Value) -> Value:
    from .functions import select

    return select(mask, a, c)


def widened(x: Value) -> Value:
    """float16 or bfloat16 as float32, exact."""
    b = current().builder
    if x.dtype is dtypes.float16 and _has_half():
        half = b.bitcast(x.x, _alike(_HALF, x.count))
        return Value(b.fpext(half, _alike(F32, x.count)), dtypes.float32)
    wide = Value(x.x, dtypes.uint16).to(dtypes.int32)
    if x.dtype is dtypes.bfloat16:
        return _float(wide << 16)
    magnitude = _float((wide & 0x7FFF) << 13) * 2.0**112  # another bias of exponents; exact for small ones
    special = _bits(magnitude) | 0x7F800000  # infinities and NaN
    found = _choose((wide & 0x7FFF) >= 0x7C00, special, _bits(magnitude))
    return _float(found | ((wide & 0x8000) << 16))


def narrowed(x: Value, dtype: DType) -> Value:
    """float32 as float16 or bfloat16."""
    b = current().builder
    short = _alike(ir.IntType(16), x.count)
    if dtype is dtypes.float16 and _has_half():
        return Value(b.bitcast(b.fptrunc(x.x, _alike(_HALF, x.count)), short), dtype)
    bits = _bits(x)
    magnitude = bits & 0x7FFFFFFF
    is_nan = magnitude > 0x7F800000
    if dtype is dtypes.bfloat16:
        odd = Value(bits.x, dtypes.uint32) >> 16 & 1
        rounded = (Value(bits.x, dtypes.uint32) + odd + 0x7FFF) >> 16
        quiet = (Value(bits.x, dtypes.uint32) >> 16) | 0x40
        return Value(b.trunc(_choose(is_nan, quiet, rounded).x, short), dtype)
    normal = (magnitude + 0xFFF + (magnitude >> 13 & 1) - (112 << 23)) >> 13
    small = _bits(_float(magnitude) + 0.5) - 0x3F000000  # 0.5's last place is the smallest float16
    found = _choose(magnitude < 0x38800000, small, normal)
    found = _choose(magnitude >= 0x47800000, 0x7C00, found)
    found = _choose(is_nan, 0x7E00 | (magnitude >> 13 & 0x1FF), found)
    return Value(b.trunc((found | (bits >> 16 & 0x8000)).x, short), dtype)
