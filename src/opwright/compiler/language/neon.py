"""Instructions of 64-bit ARM on vectors of 16 bytes: products of bytes, rounding, narrowing.

Lives here: `dot4_signed`, `matrix_dot`, `byte_products`, `add_pairs`, `pair_sums`, `nearest`, `round_bytes`,
`load_halves`, `lookup`.
Not here: dot products for all targets (dots.py), features of targets (../target.py).

Source: Arm Architecture Reference Manual for A-profile, C7.2.
"""

from __future__ import annotations

from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType
from .llvm_types import I64, KIND, typed
from .pointers import Pointer
from .trace import current, intrinsic
from .values import Value, bitcast, concat, joined, maximum, part, shuffle

_INT32_MIN = -2147483648.0


def _neon(name: str, dtype: DType, count: int, *operands: Value) -> Value:
    return Value(intrinsic(f"aarch64.neon.{name}", typed(dtype, count), *(o.x for o in operands)), dtype)


def dot4_signed(acc: Value, a: Value, c: Value) -> Value:
    """Return acc[i] + sum over j < 4 of a[4 i + j] c[4 i + j] by SDOT, without dotprod by SMULL, SADDLP and ADDP: acc
    int32; a and c int8, with four times the lanes."""
    if acc.count < 4:
        return part(dot4_signed(_padded(acc), _padded(a), _padded(c)), 0, acc.count)
    if acc.count > 4:
        return joined(
            [dot4_signed(part(acc, i, 4), part(a, 4 * i, 16), part(c, 4 * i, 16)) for i in range(0, acc.count, 4)]
        )
    if current().target.has("dotprod"):
        return _neon("sdot.v4i32.v16i8", dtypes.int32, 4, acc, a, c)
    zero = Value(ir.Constant(typed(dtypes.int32, 4), None), dtypes.int32)
    return acc + pair_sums(*(add_pairs(zero, byte_products(a, c, half)) for half in (0, 1)))


def matrix_dot(acc: Value, a: Value, c: Value) -> Value:
    """Return acc[2 i + j] + sum over k < 8 of a[8 i + k] c[8 j + k] by SMMLA (i8mm): acc int32[4], a and c int8[16]."""
    return _neon("smmla.v4i32.v16i8", dtypes.int32, 4, acc, a, c)


def byte_products(a: Value, c: Value, half: int) -> Value:
    """Return a[i] c[i] of the lower or upper half as int16[8] by SMULL, SMULL2: a and c int8[16]."""
    return _neon("smull.v8i16", dtypes.int16, 8, part(a, 8 * half, 8), part(c, 8 * half, 8))


def add_pairs(acc: Value, a: Value) -> Value:
    """Return acc[i] + a[2 i] + a[2 i + 1] by SADALP: acc int32[4], a int16[8]."""
    return acc + _neon("saddlp.v4i32.v8i16", dtypes.int32, 4, a)


def pair_sums(a: Value, c: Value) -> Value:
    """Return a[0] + a[1], a[2] + a[3], c[0] + c[1], c[2] + c[3] by ADDP: int32[4]."""
    return _neon("addp.v4i32", dtypes.int32, 4, a, c)


def nearest(x: Value) -> Value:
    """Convert float32 to the nearest int32, ties to even, with saturation and 0 for NaN, by FCVTNS."""
    if not x.count:
        return Value(intrinsic("aarch64.neon.fcvtns.i32.f32", KIND[dtypes.int32], x.x), dtypes.int32)
    quarters = [_neon("fcvtns.v4i32.v4f32", dtypes.int32, 4, part(x, i, 4)) for i in range(0, x.count, 4)]
    return joined(quarters)


def round_bytes(x: Value, zero: Value, dtype: DType, number: bool) -> Value:
    """Return round(x) + zero as int8 or uint8, as dots.round_bytes does: x float32 of a multiple of four lanes."""
    integers = nearest(x if number else maximum(x, _INT32_MIN))  # NaN becomes the minimum
    words = [_neon("sqxtn.v4i16", dtypes.int16, 4, part(integers, i, 4)) for i in range(0, x.count, 4)]
    words += words[-1:] * (len(words) % 2)
    halves = [concat(words[i], words[i + 1]) for i in range(0, len(words), 2)]
    shift = zero.to(dtypes.int16).splat(8)
    moved = [Value(intrinsic("sadd.sat.v8i16", h.x.type, h.x, shift.x), dtypes.int16) for h in halves]
    name = "sqxtun.v8i8" if dtype.is_unsigned else "sqxtn.v8i8"
    packed = joined([_neon(name, dtype, 8, m) for m in moved])
    return packed if packed.count == x.count else part(packed, 0, x.count)


def load_halves(p: Pointer, q: Pointer) -> tuple[Value, Value]:
    """Load sixteen bytes at p and at q by LD2; return the first eight of both and the last eight of both, int8[16]."""
    half, lanes = typed(dtypes.int64, 2), [ir.Constant(I64, lane) for lane in (0, 1)]
    pair, b = ir.LiteralStructType([half, half]), current().builder
    registers = [ir.Constant(half, ir.Undefined)] * 2
    for lane, source in zip(lanes, (p, q)):
        loaded = intrinsic("aarch64.neon.ld2lane.v2i64.p0", pair, *registers, lane, source.x)
        registers = [b.extract_value(loaded, i) for i in range(2)]
    low, high = (bitcast(Value(x, dtypes.int64), dtypes.int8) for x in registers)
    return low, high


def lookup(table: Pointer, indices: Value) -> Value:
    """Look up uint8 indices in a table of 256 bytes: TBL for the first 64 entries, TBX for each further 64, which
    leaves lanes with indices out of range unchanged."""
    n = indices.count
    if n > 16:
        return joined([lookup(table, part(indices, i, 16)) for i in range(0, n, 16)])
    index = indices if n == 16 else _padded(indices)
    quarters = [[table.cast(dtypes.uint8).load(start + i, 16) for i in range(0, 64, 16)] for start in range(0, 256, 64)]
    result = _neon("tbl4.v16i8", dtypes.uint8, 16, *quarters[0], index)
    for i in range(1, 4):
        result = _neon("tbx4.v16i8", dtypes.uint8, 16, result, *quarters[i], index - 64 * i)
    return bitcast(result if n == 16 else part(result, 0, n), table.dtype)


def _padded(x: Value) -> Value:
    """Return x with undefined lanes appended up to 16 bytes."""
    return shuffle(x, None, [i if i < x.count else -1 for i in range(16 // x.dtype.size)])
