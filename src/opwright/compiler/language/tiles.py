"""Tiles: registers of up to 16 rows of 64 bytes, whose products are one instruction (Intel's AMX).

Lives here: `tile_config`, `tile_zero`, `tile_load`, `tile_dot`, `tile_store`, `tile_release`.
Not here: products of vectors (dots.py), what computes with tiles (../kernels/gemm_tiles.py).

A kernel says once how large each of the eight tiles is, and gives them back before it ends, so that whoever runs next
has none to keep. Tiles are named by Python's numbers. They are state of the thread: no value holds one.

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
from .bounded import BoundedPointer
from .kinds import I8
from .places import Pointer
from .trace import current, intrinsic
from .values import Value, value
from .vectors import constant_vector, stack

TILES, ROWS, ROW_BYTES = 8, 16, 64
"""How many there are, and the most rows and bytes of a row that one has."""
_ROW_BYTES_AT, _ROWS_AT = 16, 48  # bytes of the configuration: uint16 and uint8 for each tile
_DOTS = {
    (dtypes.int8, dtypes.int8): "tdpbssd",
    (dtypes.int8, dtypes.uint8): "tdpbsud",
    (dtypes.uint8, dtypes.int8): "tdpbusd",
    (dtypes.uint8, dtypes.uint8): "tdpbuud",
}


def tile_config(sizes: Sequence[tuple[Any, Any]]) -> None:
    """Begin with tiles of these (rows, bytes of a row), up to eight; all are zero then.

    rows: 1 to 16, bytes: 4 to 64 by fours. Numbers of the kernel are its own to keep within these: the processor
    raises a fault for others.
    """
    _asked("tile_config")
    if len(sizes) > TILES:
        raise ValueError(f"there are {TILES} tiles; found sizes of {len(sizes)}")
    known = [0] * 64
    known[0] = 1  # the palette
    unknown = []
    for i, (rows, row_bytes) in enumerate(sizes):
        for x, most, by, at in ((rows, ROWS, 1, _ROWS_AT + i), (row_bytes, ROW_BYTES, 4, _ROW_BYTES_AT + 2 * i)):
            if isinstance(x, Value):
                unknown.append((at, x))
            elif not 0 < x <= most or x % by:
                raise ValueError(
                    f"a tile has 1 to {ROWS} rows of 4 to {ROW_BYTES} bytes, in fours; tile {i} is asked "
                    f"for with {rows} of {row_bytes}"
                )
            else:
                known[at] = x
    staged = current()
    staged.tiles = dict(enumerate(sizes))
    for at, x in unknown:
        if staged.guards is not None:
            wide = x.to(dtypes.int64)
            fits = (wide >= 1) & (wide <= ROWS if at >= _ROWS_AT else (wide <= ROW_BYTES) & (wide & 3 == 0))
            staged.guards.check(fits, f"a tile has 1 to {ROWS} rows of 4 to {ROW_BYTES} bytes, in fours")
    place = stack(dtypes.uint8, 64)
    place.store(constant_vector(dtypes.uint8, known))
    for at, x in unknown:
        place[at] = x.to(dtypes.uint8)
    intrinsic("x86.ldtilecfg", ir.VoidType(), place.x)


def tile_release() -> None:
    """Give all tiles back."""
    _asked("tile_release")
    intrinsic("x86.tilerelease", ir.VoidType())


def tile_zero(tile: int) -> None:
    """All zeros."""
    _asked("tile_zero", tile)
    intrinsic("x86.tilezero", ir.VoidType(), _name(tile))


def tile_load(tile: int, p: Pointer, pitch: Any) -> None:
    """A tile's rows from p on, `pitch` bytes apart."""
    _asked("tile_load", tile)
    intrinsic("x86.tileloadd64", ir.VoidType(), _name(tile), _place("tile_load", tile, p, pitch), _bytes(pitch))


def tile_store(tile: int, p: Pointer, pitch: Any) -> None:
    """Write a tile's rows from p on, `pitch` bytes apart."""
    _asked("tile_store", tile)
    intrinsic("x86.tilestored64", ir.VoidType(), _name(tile), _place("tile_store", tile, p, pitch), _bytes(pitch))


def tile_dot(acc: int, a: int, b: int, a_dtype: DType, b_dtype: DType) -> None:
    """acc[i, j] += sum over k, q < 4 of a[i, 4 k + q] b[k, 4 j + q]: int32, which wraps; a and b int8 or uint8."""
    _asked("tile_dot", acc, a, b)
    name = _DOTS.get((a_dtype, b_dtype))
    if name is None:
        raise TypeError(f"tile_dot takes int8 and uint8; found {a_dtype.name} and {b_dtype.name}")
    intrinsic(f"x86.{name}", ir.VoidType(), _name(acc), _name(a), _name(b))


def _asked(op: str, *tiles: Any) -> None:
    target = current().target
    if not target.has("amx-int8"):
        raise UnimplementedError(
            op=op,
            what=f"the target {target.name} has no tiles",
            wanted="the feature amx-int8",
            do="ask target.has('amx-int8') first",
        )
    for tile in tiles:
        if not isinstance(tile, int) or not 0 <= tile < TILES:
            raise IndexError(f"{op}: tiles are named 0 to {TILES - 1} by Python's numbers; found {tile!r}")


def _name(tile: int) -> ir.Value:
    return ir.Constant(I8, tile)


def _place(op: str, tile: int, p: Any, pitch: Any) -> ir.Value:
    """The pointer for the instruction; of memory whose size is known, after a check that the tile lies inside."""
    if not isinstance(p, Pointer):
        raise TypeError(f"{op} takes a pointer, such as stack(dtype, n) gives; found {p!r}")
    if not isinstance(p, BoundedPointer):
        return p.x
    rows, row_bytes = (value(n).to(dtypes.int64) for n in current().tiles.get(tile, (ROWS, ROW_BYTES)))
    apart = value(pitch).to(dtypes.int64)
    p.guards.check((apart >= 0) & (apart < 1 << 32), f"{op}: rows are 0 to 4 GiB apart")
    return p.spanning((rows - 1) * apart + row_bytes)


def _bytes(pitch: Any) -> ir.Value:
    return value(pitch).to(dtypes.int64).x
