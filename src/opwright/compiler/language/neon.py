"""Instructions of 64-bit ARM on vectors of 16 bytes: products of bytes, rounding, narrowing.

Lives here: `dot4_signed`, `matrix_dot`, `byte_products`, `add_pairs`, `pair_sums`, `nearest`, `round_bytes`,
`load_halves`, `lookup`.
Not here: dot products that every target has (dots.py), which instructions a target has (../target.py).

Source: Arm Architecture Reference Manual for A-profile, C7.2.
"""

from __future__ import annotations

from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType
from .kinds import I64, KIND, typed
from .places import Pointer
from .trace import current, intrinsic
from .values import Value, bitcast, concat, joined, maximum, part, shuffle

_LEAST = -2147483648.0


def _neon(name: str, dtype: DType, count: int, *operands: Value) -> Value:
    return Value(intrinsic(f"aarch64.neon.{name}", typed(dtype, count), *(o.x for o in operands)), dtype)


def dot4_signed(acc: Value, a: Value, c: Value) -> Value:
    """acc[i] + sum over j < 4 of a[4 i + j] c[4 i + j]: acc int32; a and c int8, of four times as many lanes. SDOT, of
    dotprod."""
    if acc.count < 4:
        return part(dot4_signed(_widened(acc), _widened(a), _widened(c)), 0, acc.count)
    if acc.count > 4:
        return joined(
            [dot4_signed(part(acc, i, 4), part(a, 4 * i, 16), part(c, 4 * i, 16)) for i in range(0, acc.count, 4)]
        )
    return _neon("sdot.v4i32.v16i8", dtypes.int32, 4, acc, a, c)


def matrix_dot(acc: Value, a: Value, c: Value) -> Value:
    """acc[2 i + j] + sum over k < 8 of a[8 i + k] c[8 j + k]: acc int32[4], a and c int8[16]. SMMLA, of i8mm."""
    return _neon("smmla.v4i32.v16i8", dtypes.int32, 4, acc, a, c)


def byte_products(a: Value, c: Value, half: int) -> Value:
    """a[i] c[i] of the lower or the upper half, int16[8]: a and c int8[16]. SMULL, SMULL2."""
    return _neon("smull.v8i16", dtypes.int16, 8, part(a, 8 * half, 8), part(c, 8 * half, 8))


def add_pairs(acc: Value, a: Value) -> Value:
    """acc[i] + a[2 i] + a[2 i + 1]: acc int32[4], a int16[8]. SADALP."""
    return acc + _neon("saddlp.v4i32.v8i16", dtypes.int32, 4, a)


def pair_sums(a: Value, c: Value) -> Value:
    """a[0] + a[1], a[2] + a[3], then those of c: int32[4]. ADDP."""
    return _neon("addp.v4i32", dtypes.int32, 4, a, c)


def nearest(x: Value) -> Value:
    """float32 to int32, the nearest, of two the even one; int32's nearest end, 0 for NaN. FCVTNS."""
    if not x.count:
        return Value(intrinsic("aarch64.neon.fcvtns.i32.f32", KIND[dtypes.int32], x.x), dtypes.int32)
    quarters = [_neon("fcvtns.v4i32.v4f32", dtypes.int32, 4, part(x, i, 4)) for i in range(0, x.count, 4)]
    return joined(quarters)


def round_bytes(x: Value, zero: Value, dtype: DType, number: bool) -> Value:
    """round(x) + zero as int8 or uint8, as dots.round_bytes: x float32 of a multiple of four lanes."""
    whole = nearest(x if number else maximum(x, _LEAST))  # which is what NaN becomes
    words = [_neon("sqxtn.v4i16", dtypes.int16, 4, part(whole, i, 4)) for i in range(0, x.count, 4)]
    words += words[-1:] * (len(words) % 2)
    halves = [concat(words[i], words[i + 1]) for i in range(0, len(words), 2)]
    shift = zero.to(dtypes.int16).splat(8)
    moved = [Value(intrinsic("sadd.sat.v8i16", h.x.type, h.x, shift.x), dtypes.int16) for h in halves]
    name = "sqxtun.v8i8" if dtype.is_unsigned else "sqxtn.v8i8"
    found = joined([_neon(name, dtype, 8, m) for m in moved])
    return found if found.count == x.count else part(found, 0, x.count)


def load_halves(p: Pointer, q: Pointer) -> tuple[Value, Value]:
    """The eight bytes at p and those at q, and the eight that follow both: int8[16] each. LD2 to a lane, twice."""
    half, lanes = typed(dtypes.int64, 2), [ir.Constant(I64, lane) for lane in (0, 1)]
    pair, b = ir.LiteralStructType([half, half]), current().builder
    held = [ir.Constant(half, ir.Undefined)] * 2
    for lane, place in zip(lanes, (p, q)):
        found = intrinsic("aarch64.neon.ld2lane.v2i64.p0", pair, *held, lane, place.x)
        held = [b.extract_value(found, i) for i in range(2)]
    low, high = (bitcast(Value(x, dtypes.int64), dtypes.int8) for x in held)
    return low, high


def lookup(table: Pointer, indices: Value) -> Value:
    """Look up uint8 indices in a table of 256 bytes: TBL for the first 64 entries, TBX for each further 64, which keeps
    the lanes whose index is out of range."""
    n = indices.count
    if n > 16:
        return joined([lookup(table, part(indices, i, 16)) for i in range(0, n, 16)])
    index = indices if n == 16 else _widened(indices)
    quarters = [[table.cast(dtypes.uint8).load(start + i, 16) for i in range(0, 64, 16)] for start in range(0, 256, 64)]
    found = _neon("tbl4.v16i8", dtypes.uint8, 16, *quarters[0], index)
    for i in range(1, 4):
        found = _neon("tbx4.v16i8", dtypes.uint8, 16, found, *quarters[i], index - 64 * i)
    return bitcast(found if n == 16 else part(found, 0, n), table.dtype)


def _widened(x: Value) -> Value:
    """Those lanes, and others up to 16 bytes."""
    return shuffle(x, None, [i if i < x.count else -1 for i in range(16 // x.dtype.size)])
