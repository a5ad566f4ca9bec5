"""Instructions for products of short integers: dot products, matrix tiles; conversion to bytes and table lookup.

Lives here: `dot4`, `pair_dot`, `saturating_dot2`, `round_bytes`, `lookup`, by the best instructions of each target;
`tile_config`, `tile_zero`, `tile_load`, `tile_dot`, `tile_store`, `tile_release` of Intel AMX.
Not here: functions with one implementation for all targets (functions.py), instructions of 64-bit ARM (neon.py), GEMM
with tiles (../kernels/gemm_int8.py).

A matrix tile is a register of up to 16 rows of 64 bytes. A kernel configures the sizes of the eight tiles once and
releases them before it returns, so that context switches need not save them. Tiles are identified by Python numbers;
they are state of the thread, not values.

    kl.tile_config([(16, 64), (16, 64), (16, 64)])   # rows, bytes of a row
    kl.tile_zero(0)
    kl.tile_load(1, a, 64)                           # 16 rows of 64 int8, 64 bytes apart
    kl.tile_load(2, b, 64)                           # [k / 4][16 columns][4]
    kl.tile_dot(0, 1, 2, i8, i8)                     # int32 [16, 16] += a b
    kl.tile_store(0, c, 64)
    kl.tile_release()

Source: Intel's Architecture Instruction Set Extensions Programming Reference, chapter 3 (tile data, palette 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import UnimplementedError
from . import neon
from .bounds_checks import BoundedPointer
from .functions import full, to_int, zeros
from .llvm_types import I8, I32, constants, typed
from .pointers import Pointer
from .trace import current, intrinsic
from .values import Value, bitcast, clamp, concat, joined, minimum, part, shuffle, value
from .vectors import after, constant_vector, opaque, stack


def dot4(acc: Value, a: Value, c: Value) -> Value:
    """Return acc[i] + sum over j < 4 of a[4 i + j] c[4 i + j], exactly: acc int32; a uint8, c int8, with 4 times the
    lanes."""
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
    if target.has("dsp"):
        return joined([_dot4_by_pairs(acc, a, c, i) for i in range(n)]) if n else acc
    pairs = 2 * n
    sums = pair_dot(zeros(dtypes.int32, pairs), a.to(dtypes.int16), c.to(dtypes.int16))
    return acc + (shuffle(sums, None, range(0, pairs, 2)) + shuffle(sums, None, range(1, pairs, 2)))


def _dot4_by_pairs(acc: Value, a: Value, c: Value, lane: int) -> Value:
    """Compute a lane of dot4 on Cortex-M: UXTB16 and SXTB16 extend bytes 0 and 2 of a word, and by a rotation the
    others; SMLAD adds the products of two pairs."""
    b = current().builder
    words = [bitcast(part(x, 4 * lane, 4), dtypes.int32)[0] for x in (a, c)]
    total = acc[lane].x
    for rotation in (0, 8):
        pairs = []
        for word, name in zip(words, ("uxtb16", "sxtb16")):
            turned = word.x
            if rotation:
                turned = intrinsic("fshr.i32", I32, turned, turned, ir.Constant(I32, rotation))
            pairs.append(intrinsic(f"arm.{name}", I32, turned))
        total = intrinsic("arm.smlad", I32, *pairs, total)
    one = b.insert_element(ir.Constant(ir.VectorType(I32, 1), ir.Undefined), total, ir.Constant(I32, 0))
    return Value(one, dtypes.int32)


def _dot4_by_signed(acc: Value, a: Value, c: Value) -> Value:
    """Compute dot4 by SDOT, whose operands are signed: of a - 128, corrected by 128 sum c.

    No correction is needed if a is constant and less than 128; it is a constant if c is.
    """
    unsigned = constants(a.x)
    if unsigned is not None and max(unsigned) < 128:
        return neon.dot4_signed(acc, bitcast(a, dtypes.int8), c)
    shifted = neon.dot4_signed(acc, bitcast(a ^ 128, dtypes.int8), c)
    signed = constants(c.x)
    if signed is not None:
        return shifted + constant_vector(dtypes.int32, [128 * sum(signed[i : i + 4]) for i in range(0, 16, 4)])
    return shifted + (neon.dot4_signed(zeros(dtypes.int32, 4), full(dtypes.int8, 16, 1), c) << 7)


def pair_dot(acc: Value, a: Value, c: Value) -> Value:
    """Return acc[i] + a[2 i] c[2 i] + a[2 i + 1] c[2 i + 1]: acc int32, a and c int16. The sum wraps."""
    n = acc.count
    if a.count != 2 * n or c.count != 2 * n or a.dtype is not dtypes.int16 or c.dtype is not dtypes.int16:
        raise TypeError(f"pair_dot takes int32[{n}], int16[{2 * n}] and int16[{2 * n}]; found {acc!r}, {a!r}, {c!r}")
    if n in current().target.vnni_lanes:
        return Value(intrinsic(f"x86.avx512.vpdpwssd.{n * 32}", acc.x.type, acc.x, a.x, c.x), dtypes.int32)
    names = _multiply_add()
    if n in names:
        return acc + Value(intrinsic(names[n], acc.x.type, a.x, c.x), dtypes.int32)
    if names and n > max(names) and n % 2 == 0:
        half = n // 2
        low, high = (pair_dot(part(acc, k, half), part(a, 2 * k, n), part(c, 2 * k, n)) for k in (0, half))
        return concat(low, high)
    even, odd = (
        shuffle(a, None, range(k, 2 * n, 2)).to(dtypes.int32) * shuffle(c, None, range(k, 2 * n, 2)).to(dtypes.int32)
        for k in (0, 1)
    )
    return acc + (even + odd)


def saturating_dot2(a: Value, c: Value) -> Value:
    """Return a[2 i] c[2 i] + a[2 i + 1] c[2 i + 1] as int16 with saturation: a uint8, c int8.

    Requires SSSE3 for 16 lanes, AVX2 for 32. Raises UnimplementedError on other targets.
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
    """Return intrinsics that multiply pairs of int16 and add the two products, by lanes of int32."""
    target = current().target
    if target.is_wasm and target.has("simd128"):
        return {4: "wasm.dot"}
    if not target.triple.startswith("x86_64"):
        return {}
    names = {4: "x86.sse2.pmadd.wd"}
    if target.has("avx2"):
        names[8] = "x86.avx2.pmadd.wd"
    if target.has("avx512bw"):
        names[16] = "x86.avx512.pmaddw.d.512"
    return names


def round_bytes(x: Value, zero: Value, dtype: DType, number: bool = False, small: bool = False) -> Value:
    """Return round(x) + zero as int8 or uint8, ties to even, with saturation; NaN becomes the minimum.

    x: float32; zero: int32, the zero point, a scalar or a vector; number: whether x is never NaN; small: whether x is
    within the range of int32.
    """
    if not zero.count:
        if current().target.has("avx512bw") and x.count in (32, 64):
            return _pack_bytes(x, zero, dtype, small)
        if current().target.is_aarch64 and x.count and x.count % 4 == 0:
            return neon.round_bytes(x, zero, dtype, number)
        narrows_at_once = current().target.has("avx512f")
        if current().target.is_x86 and _multiply_add() and x.count in (4, 8, 16, 32) and not narrows_at_once:
            return _pack_halves(x, zero, dtype, small)
    shift = zero.to(dtypes.float32)
    limited = clamp(x, float(dtype.min) - shift, float(dtype.max) - shift)  # within the range of int32
    return (to_int(limited) + zero).to(dtype)


def _limited(x: Value, small: bool) -> Value:
    """Limit x to the maximum of int32: like numbers below the range, those above would become the minimum."""
    return x if small else minimum(2147483520.0, x)


def _pack_bytes(x: Value, zero: Value, dtype: DType, small: bool) -> Value:
    """Round to bytes with AVX-512 by two saturating packs.

    Conversion makes floats below the range of int32, and NaN, its minimum; floats above are limited first. A
    permutation restores the order of the 128-bit lanes, which packing interleaves.
    """
    quarters = [to_int(_limited(part(x, i, 16), small)) for i in range(0, x.count, 16)]
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
    """Round to bytes as `_pack_bytes` does, with AVX2 for 16 lanes or more (it interleaves halves), else SSE2."""
    wide = current().target.has("avx2") and x.count >= 16
    lanes = 8 if wide else 4
    if x.count > 4 * lanes:
        half = x.count // 2
        return concat(*(_pack_halves(part(x, k, half), zero, dtype, small) for k in (0, half)))
    width = current().target.vector_bytes // 4
    integers = [to_int(_limited(part(x, i, width) if x.count > width else x, small)) for i in range(0, x.count, width)]
    quarters = [part(v, i, lanes) for v in integers for i in range(0, v.count, lanes)]
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
    """Return table[i] for a table of 256 bytes and uint8 indices (or the bits of int8)."""
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
        entries = Value(b.select((bitcast(wide, dtypes.int8) < 0).x, high, low), dtypes.uint8)
        return bitcast(entries if n == 64 else part(entries, 0, n), table.dtype)
    if n in (16, 32, 64) and target.is_x86 and target.has("avx2"):
        return _lookup_by_shuffles(table, indices)
    if target.is_aarch64 and n & (n - 1) == 0:
        return neon.lookup(table, bitcast(indices, dtypes.uint8))
    result: ir.Value = ir.Constant(typed(table.dtype, n), ir.Undefined)
    for i in range(n):
        entry = table[Value(b.extract_element(indices.x, ir.Constant(I32, i)), dtypes.uint8).to(dtypes.int64)]
        result = b.insert_element(result, entry.x, ir.Constant(I32, i))
    return Value(result, table.dtype)


def _lookup_by_shuffles(table: Pointer, indices: Value) -> Value:
    """Look up indices with AVX2: shuffle each sixteen entries by the low four bits, select by the high bits.

    A shuffle returns 0 if its index has the highest bit set. Bits 4 and 5 therefore select among four shuffles by
    indices that have it set in all but one, combined by "or", which most ports execute; bits 6 and 7 select by blends,
    which share ports with shuffles. On Zen 5: 2.3 bytes per cycle; with blends only 1.8, with scalar loads 0.7.
    """
    target, n = current().target, indices.count
    width = 64 if target.has("avx512bw") and target.vector_bytes == 64 else 32
    if n > width:
        half = n // 2
        return concat(*(_lookup_by_shuffles(table, part(indices, k, half)) for k in (0, half)))
    name = {16: "x86.ssse3.pshuf.b.128", 32: "x86.avx2.pshuf.b", 64: "x86.avx512.pshuf.b.512"}[n]
    kind, sixty_four = typed(dtypes.uint8, n), indices & 63
    only = [(sixty_four ^ (16 * k)) + 112 for k in range(4)]  # at least 128 except for indices of the k-th sixteen
    near = after(table.cast(dtypes.uint8), indices)  # otherwise LLVM hoists the loads and spills the table

    def of_four(start: int) -> Value:
        """Return table[start + index % 64]."""
        entries = []
        for k in range(4):
            sixteen = shuffle(near.load(start + 16 * k, 16), None, [i % 16 for i in range(n)])
            entries.append(Value(intrinsic(name, kind, sixteen.x, only[k].x), dtypes.uint8))
        return (entries[0] | entries[1]) | (entries[2] | entries[3])

    def chosen(bits: Value, low: Value, high: Value) -> Value:
        """Return `high` where the highest bit is set, else `low`."""
        return Value(current().builder.select((bitcast(bits, dtypes.int8) < 0).x, high.x, low.x), dtypes.uint8)

    sixth = opaque(indices + indices)
    halves = [chosen(sixth, of_four(start), of_four(start + 64)) for start in (0, 128)]
    return bitcast(chosen(indices, *halves), table.dtype)


TILES, ROWS, ROW_BYTES = 8, 16, 64
"""Number of tiles; their limits of rows and of bytes per row."""
_ROW_BYTES_OFFSET, _ROWS_OFFSET = 16, 48  # in the configuration: uint16 and uint8 for each tile
_DOTS = {
    (dtypes.int8, dtypes.int8): "tdpbssd",
    (dtypes.int8, dtypes.uint8): "tdpbsud",
    (dtypes.uint8, dtypes.int8): "tdpbusd",
    (dtypes.uint8, dtypes.uint8): "tdpbuud",
}


def tile_config(sizes: Sequence[tuple[Any, Any]]) -> None:
    """Configure up to eight tiles by (rows, bytes per row) and zero them.

    rows: 1 to 16; bytes: multiples of 4 up to 64. Sizes that are values of a kernel without guards are unchecked: the
    processor faults for others.
    """
    _check_support("tile_config")
    if len(sizes) > TILES:
        raise ValueError(f"there are {TILES} tiles; found sizes of {len(sizes)}")
    configuration = [0] * 64
    configuration[0] = 1  # the palette
    run_time_sizes = []
    for i, (rows, row_bytes) in enumerate(sizes):
        for x, limit, multiple, offset in (
            (rows, ROWS, 1, _ROWS_OFFSET + i),
            (row_bytes, ROW_BYTES, 4, _ROW_BYTES_OFFSET + 2 * i),
        ):
            if isinstance(x, Value):
                run_time_sizes.append((offset, x))
            elif not 0 < x <= limit or x % multiple:
                raise ValueError(
                    f"a tile has 1 to {ROWS} rows of 4 to {ROW_BYTES} bytes, in fours; found {rows} rows of "
                    f"{row_bytes} bytes for tile {i}"
                )
            else:
                configuration[offset] = x
    staged = current()
    staged.tiles = dict(enumerate(sizes))
    for offset, x in run_time_sizes:
        if staged.guards is not None:
            wide = x.to(dtypes.int64)
            fits = (wide >= 1) & (wide <= ROWS if offset >= _ROWS_OFFSET else (wide <= ROW_BYTES) & (wide & 3 == 0))
            staged.guards.check(fits, f"a tile has 1 to {ROWS} rows of 4 to {ROW_BYTES} bytes, in fours")
    memory = stack(dtypes.uint8, 64)
    memory.store(constant_vector(dtypes.uint8, configuration))
    for offset, x in run_time_sizes:
        memory[offset] = x.to(dtypes.uint8)
    intrinsic("x86.ldtilecfg", ir.VoidType(), memory.x)


def tile_release() -> None:
    """Release all tiles."""
    _check_support("tile_release")
    intrinsic("x86.tilerelease", ir.VoidType())


def tile_zero(tile: int) -> None:
    """Zero a tile."""
    _check_support("tile_zero", tile)
    intrinsic("x86.tilezero", ir.VoidType(), _name(tile))


def tile_load(tile: int, p: Pointer, pitch: Any) -> None:
    """Load the rows of a tile from p on, `pitch` bytes apart."""
    _check_support("tile_load", tile)
    intrinsic("x86.tileloadd64", ir.VoidType(), _name(tile), _address("tile_load", tile, p, pitch), _bytes(pitch))


def tile_store(tile: int, p: Pointer, pitch: Any) -> None:
    """Store the rows of a tile from p on, `pitch` bytes apart."""
    _check_support("tile_store", tile)
    intrinsic("x86.tilestored64", ir.VoidType(), _name(tile), _address("tile_store", tile, p, pitch), _bytes(pitch))


def tile_dot(acc: int, a: int, b: int, a_dtype: DType, b_dtype: DType) -> None:
    """Compute acc[i, j] += sum over k, q < 4 of a[i, 4 k + q] b[k, 4 j + q]: wrapping int32; a and b int8 or uint8."""
    _check_support("tile_dot", acc, a, b)
    name = _DOTS.get((a_dtype, b_dtype))
    if name is None:
        raise TypeError(f"tile_dot takes int8 and uint8; found {a_dtype.name} and {b_dtype.name}")
    intrinsic(f"x86.{name}", ir.VoidType(), _name(acc), _name(a), _name(b))


def _check_support(op: str, *tiles: Any) -> None:
    target = current().target
    if not target.has("amx-int8"):
        raise UnimplementedError(
            op=op,
            what=f"the target {target.name} has no tiles",
            wanted="the feature amx-int8",
            do="check target.has('amx-int8') first",
        )
    for tile in tiles:
        if not isinstance(tile, int) or not 0 <= tile < TILES:
            raise IndexError(f"{op}: tiles are identified by Python numbers from 0 to {TILES - 1}; found {tile!r}")


def _name(tile: int) -> ir.Value:
    return ir.Constant(I8, tile)


def _address(op: str, tile: int, p: Any, pitch: Any) -> ir.Value:
    """Return the pointer operand of an instruction, after a check that the tile is inside of bounded memory."""
    if not isinstance(p, Pointer):
        raise TypeError(f"{op} takes a pointer, such as stack(dtype, n) returns; found {p!r}")
    if not isinstance(p, BoundedPointer):
        return p.x
    rows, row_bytes = (value(n).to(dtypes.int64) for n in current().tiles.get(tile, (ROWS, ROW_BYTES)))
    apart = value(pitch).to(dtypes.int64)
    p.guards.check((apart >= 0) & (apart < 1 << 32), f"{op}: rows are 0 to 4 GiB apart")
    return p.spanning((rows - 1) * apart + row_bytes)


def _bytes(pitch: Any) -> ir.Value:
    return value(pitch).to(dtypes.int64).x
