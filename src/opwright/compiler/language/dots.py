"""Dot products of short integers: instructions where the target has them, right everywhere.

Lives here: `dot4`, `pair_dot`, `saturating_dot2`, `round_bytes`, `lookup`.
Not here: what needs no choice by target (functions.py).
"""

from __future__ import annotations

from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import UnimplementedError
from . import neon
from .functions import full, to_int, zeros
from .kinds import I32, constants, typed
from .places import Pointer
from .trace import current, intrinsic
from .values import Value, bitcast, clamp, concat, minimum, part, shuffle
from .vectors import after, constant_vector, opaque


def dot4(acc: Value, a: Value, c: Value) -> Value:
    """acc[i] + sum over j < 4 of a[4 i + j] c[4 i + j]: acc int32, a uint8, c int8, of 4 times as many lanes. Exact."""
    n = acc.count
    if a.count != 4 * n or c.count != 4 * n or a.dtype is not dtypes.uint8 or c.dtype is not dtypes.int8:
        raise TypeError(f"dot4 takes int32[{n}], uint8[{4 * n}] and int8[{4 * n}]; found {acc!r}, {a!r}, {c!r}")
    target = current().target
    if n in target.vnni_lanes:
        name = f"x86.avx512.vpdpbusd.{n * 32}"
        return Value(intrinsic(name, acc.x.type, acc.x, a.x, c.x), dtypes.int32)
    if n > 4 and n % 4 == 0 and target.vector_bytes < 4 * n:
        parts = [dot4(part(acc, i, 4), part(a, 4 * i, 16), part(c, 4 * i, 16)) for i in range(0, n, 4)]
        while len(parts) > 1:
            parts = [concat(parts[i], parts[i + 1]) for i in range(0, len(parts), 2)]
        return parts[0]
    if n == 4 and target.has("i8mm") and target.is_aarch64:
        return Value(intrinsic("aarch64.neon.usdot.v4i32.v16i8", acc.x.type, acc.x, a.x, c.x), dtypes.int32)
    if n == 4 and target.has("dotprod") and target.is_aarch64:
        return _dot4_by_signed(acc, a, c)
    pairs = 2 * n
    sums = pair_dot(zeros(dtypes.int32, pairs), a.to(dtypes.int16), c.to(dtypes.int16))
    return acc + (shuffle(sums, None, range(0, pairs, 2)) + shuffle(sums, None, range(1, pairs, 2)))


def _dot4_by_signed(acc: Value, a: Value, c: Value) -> Value:
    """With SDOT, whose operands both have signs: a - 128 has one, and 128 sum c makes up for it; where a is known to be
    less than 128, nothing is to be made up for, and where c is known, it is a number."""
    unsigned = constants(a.x)
    if unsigned is not None and max(unsigned) < 128:
        return neon.dot4_signed(acc, bitcast(a, dtypes.int8), c)
    found = neon.dot4_signed(acc, bitcast(a ^ 128, dtypes.int8), c)
    known = constants(c.x)
    if known is not None:
        return found + constant_vector(dtypes.int32, [128 * sum(known[i : i + 4]) for i in range(0, 16, 4)])
    return found + (neon.dot4_signed(zeros(dtypes.int32, 4), full(dtypes.int8, 16, 1), c) << 7)


def pair_dot(acc: Value, a: Value, c: Value) -> Value:
    """acc[i] + a[2 i] c[2 i] + a[2 i + 1] c[2 i + 1]: acc int32, a and c int16. Exact but for the sum, which wraps."""
    n = acc.count
    if a.count != 2 * n or c.count != 2 * n or a.dtype is not dtypes.int16 or c.dtype is not dtypes.int16:
        raise TypeError(f"pair_dot takes int32[{n}], int16[{2 * n}] and int16[{2 * n}]; found {acc!r}, {a!r}, {c!r}")
    if n in current().target.vnni_lanes:
        return Value(intrinsic(f"x86.avx512.vpdpwssd.{n * 32}", acc.x.type, acc.x, a.x, c.x), dtypes.int32)
    known = _multiply_add()
    if n in known:
        return acc + Value(intrinsic(known[n], acc.x.type, a.x, c.x), dtypes.int32)
    if known and n > max(known) and n % 2 == 0:
        half = n // 2
        low, high = (pair_dot(part(acc, k, half), part(a, 2 * k, n), part(c, 2 * k, n)) for k in (0, half))
        return concat(low, high)
    even, odd = (
        shuffle(a, None, range(k, 2 * n, 2)).to(dtypes.int32) * shuffle(c, None, range(k, 2 * n, 2)).to(dtypes.int32)
        for k in (0, 1)
    )
    return acc + (even + odd)


def saturating_dot2(a: Value, c: Value) -> Value:
    """a[2 i] c[2 i] + a[2 i + 1] c[2 i + 1] as int16, the nearest end where it is outside: a uint8, c int8.

    Of x86 with SSSE3, for 16 lanes, and 32 with AVX2. Raises UnimplementedError where there is no instruction.
    """
    target, n = current().target, a.count
    names = {16: "x86.ssse3.pmadd.ub.sw.128", **({32: "x86.avx2.pmadd.ub.sw"} if target.has("avx2") else {})}
    if not target.triple.startswith("x86_64") or n not in names or a.dtype is not dtypes.uint8:
        raise UnimplementedError(
            op="saturating_dot2",
            what=f"{target.name} has no instruction for {a!r}",
            wanted="uint8[32] with AVX2",
            do="dot4",
        )
    return Value(intrinsic(names[n], typed(dtypes.int16, n // 2), a.x, c.x), dtypes.int16)


def _multiply_add() -> dict[int, str]:
    """By lanes of int32, the intrinsic of x86 that multiplies pairs of int16 and adds each two products."""
    target = current().target
    if not target.triple.startswith("x86_64"):
        return {}
    known = {4: "x86.sse2.pmadd.wd"}
    if target.has("avx2"):
        known[8] = "x86.avx2.pmadd.wd"
    if target.has("avx512bw"):
        known[16] = "x86.avx512.pmaddw.d.512"
    return known


def round_bytes(x: Value, zero: Value, dtype: DType, number: bool = False, small: bool = False) -> Value:
    """round(x) + zero as int8 or uint8, the nearest even of two; outside it is the nearest end, for NaN the lower.

    x: float32; zero: int32, a zero point, or a vector of one for each; number: whether x is known to be no
    NaN; small: whether int32 is known to hold it.
    """
    if not zero.count:
        if current().target.has("avx512bw") and x.count in (32, 64):
            return _pack_bytes(x, zero, dtype, small)
        if current().target.is_aarch64 and x.count and x.count % 4 == 0:
            return neon.round_bytes(x, zero, dtype, number)
        narrows_at_once = current().target.has("avx512f")
        if _multiply_add() and x.count in (4, 8, 16, 32) and not narrows_at_once:
            return _pack_halves(x, zero, dtype, small)
    shift = zero.to(dtypes.float32)
    held = clamp(x, float(dtype.min) - shift, float(dtype.max) - shift)  # no float is too large for int32 now
    return (to_int(held) + zero).to(dtype)


def _held(x: Value, small: bool) -> Value:
    """x without what is above int32's range: as int32 it would be the least number, as what is below it is."""
    return x if small else minimum(2147483520.0, x)


def _pack_bytes(x: Value, zero: Value, dtype: DType, small: bool) -> Value:
    """With AVX-512: two vectors into one by saturation, twice. A float below int32's range becomes its least, and so
    does NaN; those above are held. Packing mixes the vectors' quarters, which a permutation mends."""
    quarters = [to_int(_held(part(x, i, 16), small)) for i in range(0, x.count, 16)]
    words = typed(dtypes.int16, 32)
    halves = [
        intrinsic("x86.avx512.packssdw.512", words, quarters[i].x, quarters[i + 1].x)
        for i in range(0, len(quarters), 2)
    ]
    shift = zero.to(dtypes.int16).splat(32)
    moved = [intrinsic("sadd.sat.v32i16", words, h, shift.x) for h in halves]
    name = "packuswb" if dtype.is_unsigned else "packsswb"
    packed = Value(intrinsic(f"x86.avx512.{name}.512", typed(dtype, 64), moved[0], moved[-1]), dtype)
    fours = bitcast(packed, dtypes.int32)
    order = [4 * (i % 4) + i // 4 for i in range(x.count // 4)]
    return bitcast(shuffle(fours, None, order), dtype)


def _pack_halves(x: Value, zero: Value, dtype: DType, small: bool) -> Value:
    """As `_pack_bytes`, with vectors of 32 bytes (whose halves packing mixes) for 16 lanes or more, else of 16."""
    wide = current().target.has("avx2") and x.count >= 16
    lanes = 8 if wide else 4
    if x.count > 4 * lanes:
        half = x.count // 2
        return concat(*(_pack_halves(part(x, k, half), zero, dtype, small) for k in (0, half)))
    most = current().target.vector_bytes // 4
    whole = [to_int(_held(part(x, i, most) if x.count > most else x, small)) for i in range(0, x.count, most)]
    quarters = [part(v, i, lanes) for v in whole for i in range(0, v.count, lanes)]
    family, bits = ("avx2", "") if wide else ("sse2", ".128")
    words, shift = typed(dtypes.int16, 2 * lanes), zero.to(dtypes.int16).splat(2 * lanes)
    halves = [
        intrinsic(f"x86.{family}.packssdw{bits}", words, quarters[i].x, quarters[min(i + 1, len(quarters) - 1)].x)
        for i in range(0, len(quarters), 2)
    ]
    moved = [intrinsic(f"sadd.sat.v{2 * lanes}i16", words, h, shift.x) for h in halves]
    name = f"x86.{family}.{'packuswb' if dtype.is_unsigned else 'packsswb'}{bits}"
    packed = Value(intrinsic(name, typed(dtype, 4 * lanes), moved[0], moved[-1]), dtype)
    order = [4 * (i % 2) + i // 2 if wide else i for i in range(x.count // 4)]
    return bitcast(shuffle(bitcast(packed, dtypes.int32), None, order), dtype)


def lookup(table: Pointer, indices: Value) -> Value:
    """table[i] of 256 elements of one byte, for uint8 indices (of int8 the bits are meant)."""
    b, n = current().builder, indices.count
    target = current().target
    if n == 0:
        return table[indices.to(dtypes.uint8).to(dtypes.int64)]
    if target.has("avx512vbmi") and n in (16, 32, 64):
        kind = typed(dtypes.uint8, 64)
        quarters = [table.cast(dtypes.uint8).load(64 * i, 64) for i in range(4)]
        wide = indices if n == 64 else shuffle(indices, None, [i if i < n else -1 for i in range(64)])
        low, high = (
            intrinsic("x86.avx512.vpermi2var.qi.512", kind, quarters[i].x, wide.x, quarters[i + 1].x) for i in (0, 2)
        )
        found = Value(b.select((bitcast(wide, dtypes.int8) < 0).x, high, low), dtypes.uint8)
        return bitcast(found if n == 64 else part(found, 0, n), table.dtype)
    if n in (16, 32, 64) and target.is_x86 and target.has("avx2"):
        return _lookup_by_shuffles(table, indices)
    if target.is_aarch64 and n & (n - 1) == 0:
        return neon.lookup(table, bitcast(indices, dtypes.uint8))
    found_x: ir.Value = ir.Constant(typed(table.dtype, n), ir.Undefined)
    for i in range(n):
        one = table[Value(b.extract_element(indices.x, ir.Constant(I32, i)), dtypes.uint8).to(dtypes.int64)]
        found_x = b.insert_element(found_x, one.x, ir.Constant(I32, i))
    return Value(found_x, table.dtype)


def _lookup_by_shuffles(table: Pointer, indices: Value) -> Value:
    """With AVX2: the low half of an index picks from each sixteen elements, its high bits choose among those.

    A shuffle is 0 where its index has the highest bit set. So bits 4 and 5 choose among four sixteens by indices that
    have it set in all but one, and by "or", which most ports compute; bits 6 and 7 choose by blending, which takes
    the shuffles' ports. On Zen 5 2.3 bytes a cycle, where blending alone has 1.8, and reading one by one 0.7.
    """
    target, n = current().target, indices.count
    most = 64 if target.has("avx512bw") and target.vector_bytes == 64 else 32
    if n > most:
        half = n // 2
        return concat(*(_lookup_by_shuffles(table, part(indices, k, half)) for k in (0, half)))
    name = {16: "x86.ssse3.pshuf.b.128", 32: "x86.avx2.pshuf.b", 64: "x86.avx512.pshuf.b.512"}[n]
    kind, sixty_four = typed(dtypes.uint8, n), indices & 63
    only = [(sixty_four ^ (16 * k)) + 112 for k in range(4)]  # at least 128 but for those of sixteen k
    near = after(table.cast(dtypes.uint8), indices)  # else LLVM loads it before a loop, and keeps it on the stack

    def of_four(start: int) -> Value:
        """table[start + index % 64]"""
        found = []
        for k in range(4):
            sixteen = shuffle(near.load(start + 16 * k, 16), None, [i % 16 for i in range(n)])
            found.append(Value(intrinsic(name, kind, sixteen.x, only[k].x), dtypes.uint8))
        return (found[0] | found[1]) | (found[2] | found[3])

    def chosen(bits: Value, low: Value, high: Value) -> Value:
        """`high` where the highest of the bits is set."""
        return Value(current().builder.select((bitcast(bits, dtypes.int8) < 0).x, high.x, low.x), dtypes.uint8)

    sixth = opaque(indices + indices)
    halves = [chosen(sixth, of_four(start), of_four(start + 64)) for start in (0, 128)]
    return bitcast(chosen(indices, *halves), table.dtype)
