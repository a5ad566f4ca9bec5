"""Matrix tiles: registers of up to 16 rows of 64 bytes with a matrix product instruction (Intel AMX).

Lives here: `tile_config`, `tile_zero`, `tile_load`, `tile_dot`, `tile_store`, `tile_release`.
Not here: dot products of vectors (dots.py), GEMM with tiles (../kernels/gemm_amx.py).

A kernel configures the sizes of the eight tiles once and releases them before it returns, so that context switches need
not save them. Tiles are identified by Python numbers; they are state of the thread, not values.

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
from .bounds_checks import BoundedPointer
from .llvm_types import I8
from .pointers import Pointer
from .trace import current, intrinsic
from .values import Value, value
from .vectors import constant_vector, stack

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
