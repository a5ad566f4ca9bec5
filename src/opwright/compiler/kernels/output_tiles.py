"""Tiles of matrix products: accumulators, and epilogues from registers or from memory.

Lives here: `accumulators`, `spilled`; `OutputTile`, `RowScales`, `TileEpilogue`; `float_output`,
`write_float_tile`, and for sums of integers `write_tile` from memory and `write_registers`.
Not here: how sums are computed (gemm_f32.py, gemm_int8.py), the expression of the epilogue (epilogue.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import language as kl
from ..language import f32, i32, i64, u8
from .epilogue import TABLE, Epilogue

if TYPE_CHECKING:
    from ...core.dtypes import DType
    from ..language import Pointer, Registers, Target, Value, Work
    from .tiling import TileBlock

LIGHT_FLOAT = 6
"""Weight of an epilogue of floats that is computed in registers, vector by vector; others are a loop over rows."""
LIGHT = 16
"""Weight of an epilogue whose code is repeated for each row of a tile."""


def accumulators(dtype: DType, rows: int, vectors: int, lanes: int, initial: Pointer | None) -> Registers:
    """Return registers [rows, vectors] whose rows start as the vectors at `initial`, or as zeros."""
    sums = kl.registers(dtype, lanes, rows, vectors)
    for v in range(vectors):
        start = kl.zeros(dtype, lanes) if initial is None else initial.load(v * lanes, lanes)
        for r in range(rows):
            sums[r, v] = start
    return sums


def store_registers(sums: Registers, target: Pointer) -> None:
    """Store registers [rows, vectors], row by row."""
    (rows, vectors), lanes = sums.shape, sums.count
    for r in range(rows):
        for v in range(vectors):
            target.store(sums[r, v], (r * vectors + v) * lanes)


def spilled(sums: Registers) -> Pointer:
    """Store registers [rows, vectors] on the stack, row by row."""
    (rows, vectors), lanes = sums.shape, sums.count
    memory = kl.stack(sums.dtype, rows * vectors * lanes)
    store_registers(sums, memory)
    return memory


class TileEpilogue(NamedTuple):
    """An epilogue in a kernel. finish: its function of sums; light: whether that is little code; dtype: of its results.
    table: looked up with the results of a finished tile, if not None.

    A lookup by shuffles (AVX2) is some sixty dependent instructions. Lookups of a whole tile overlap each other, and
    no vector is partly empty.
    """

    finish: Callable[..., Value]
    light: bool
    dtype: DType
    table: Pointer | None

    def output(self, work: Work, out: Pointer, pitch: Value, features: Value, rounded: RowScales | None) -> OutputTile:
        """Return an output [rows, features] as a tile, from which its tiles are made."""
        target, masked = out.cast(self.dtype, self.dtype.size), work.target.vector_bytes == 64
        return OutputTile(target, pitch, 0, 0, features, self.finish, masked, self.light, rounded)

    def look_up_block(self, tile: OutputTile, block: TileBlock, width: int, rows: Any, lanes: int) -> None:
        """Replace `rows` rows of a tile, of all panels of a block, by the elements of the table at these indices."""
        if self.table is not None:
            column, end = block.first * width, kl.minimum(tile.rest, block.last * width)
            self.look_up(tile.out + (tile.row * tile.pitch + column), tile.pitch, rows, end - column, lanes)

    def look_up(self, out: Pointer, pitch: Any, rows: Any, count: Any, lanes: int) -> None:
        """Replace `rows` rows of `count` bytes by the elements of the table at these indices."""
        if self.table is None:
            return
        if count == pitch:
            _look_up(self.table, out.cast(self.table.dtype), rows * count, lanes)
        else:
            for r in range(rows):
                _look_up(self.table, out.cast(self.table.dtype) + r * pitch, count, lanes)


def _look_up(table: Pointer, out: Pointer, count: Any, lanes: int) -> None:
    vectors_end = count - count % lanes
    for i in range(0, vectors_end, lanes):
        out.store(kl.lookup(table, kl.bitcast(out.load(i, lanes), u8)), i)
    for i in range(vectors_end, count):
        out[i] = table[kl.bitcast(out[i], u8).to(i64)]


def tile_epilogue(epilogue: Epilogue, more: Sequence[Value], target: Target) -> TileEpilogue:
    """Return an epilogue as kernels for the target compute it: with AVX2, a final lookup follows the whole tile."""
    split = epilogue.before_table() if target.is_x86 and target.has("avx2") and not target.has("avx512vbmi") else None
    if split is None:
        return TileEpilogue(epilogue.bind(more), is_light(epilogue, target), epilogue.expr.dtype, None)
    first, word = split
    table = kl.pointer(more[word], epilogue.expr.dtype)
    return TileEpilogue(first.bind(more), first.weight <= LIGHT, first.expr.dtype, table)


def is_light(epilogue: Epilogue, target: Target) -> bool:
    """Return whether the code of an epilogue may be repeated for each row of a tile.

    On x86 a lookup is many instructions, except on processors with permutations of bytes (AVX-512 VBMI).
    """
    tables = any(kind == TABLE for kind, _ in epilogue.kinds) and target.is_x86 and not target.has("avx512vbmi")
    return epilogue.weight <= LIGHT and not tables


class RowScales(NamedTuple):
    """Quantization of rows that were floats: row r of the output has scales[r // each] and zeros[r // each]."""

    scales: Pointer
    zeros: Pointer
    each: Any


class OutputTile(NamedTuple):
    """A tile of the output: out[row * pitch + column], `rest` channels from `column` on (an int if that is known when
    the kernel is compiled).

    light: whether the epilogue is few instructions. For sums of integers: rounded, the quantization of the rows if they
    were floats; panel, of the filter; count, the rows that are stored, if not all.
    """

    out: Pointer
    pitch: Value
    row: Any
    column: Any
    rest: Any
    finish: Callable[..., Value]
    masked: bool
    light: bool
    rounded: RowScales | None = None
    panel: Any = None
    count: Any = None

    def mask(self, start: int, lanes: int) -> Value | None:
        """Return which of the channels from `start` on exist; None if all do, or if it is the caller's to look."""
        if isinstance(self.rest, int):
            return None if self.rest - start >= lanes else kl.first(self.rest - start, lanes)
        return kl.first(self.rest - start, lanes) if self.masked else None

    def store(self, results: Value, r: Any, c: Any, mask: Value | None) -> None:
        """Store the results of row r from channel c on: without masks as parts of 2^n, of which all lanes exist."""
        out = self.out + (self.row + r) * self.pitch + self.column
        if self.masked or mask is None:
            out.store(results, c, mask)
            return
        done, end = 0, min(results.count, self.rest - c)
        while done < end:
            size = 1 << ((end - done).bit_length() - 1)
            out.store(kl.part(results, done, size), c + done)
            done += size

    def centred(self, sums: Value, r: Any, c: Any) -> Value:
        """Return the sums of row r less its zero point, and of the channels of the panel from c on.

        For rounded rows, a panel starts with -128 times the sums of the weights, without a bias and with no zero point
        but that of the rows.
        """
        if self.rounded is None or sums.dtype is f32:
            return sums
        weights = self.panel.load(c, sums.count) >> 7
        exact: Value = sums + weights * self.rounded.zeros[(self.row + r) // self.rounded.each]
        return exact

    def row_scale(self, r: Any) -> Value | None:
        """Return the scale of row r if the rows were floats."""
        return None if self.rounded is None else self.rounded.scales[(self.row + r) // self.rounded.each]


def float_output(
    work: Work, out: Pointer, pitch: Value, features: Value, epilogue: Epilogue, more: Sequence[Value]
) -> OutputTile:
    """Return an output of floats [rows, features] as a tile, from which its tiles are made."""
    dtype, masked = epilogue.expr.dtype, work.target.vector_bytes == 64
    light = epilogue.weight <= LIGHT_FLOAT
    return OutputTile(out.cast(dtype, dtype.size), pitch, 0, 0, features, epilogue.bind(more), masked, light)


# ---- floats ----------------------------------------------------------------------------------------------------------


def write_float_tile(sums: Registers, tile: OutputTile) -> None:
    """Apply the epilogue to the sums of a tile and store the results."""
    vectors, lanes = sums.shape[1], sums.count
    if tile.light and (tile.masked or isinstance(tile.rest, int)):
        _write_registers(sums, tile, [tile.mask(v * lanes, lanes) for v in range(vectors)])
    elif tile.light:
        if tile.rest >= vectors * lanes:
            _write_registers(sums, tile, [None] * vectors)
        else:
            _write_spilled(sums, tile, False)
    else:
        _write_spilled(sums, tile, True)


def _write_registers(sums: Registers, tile: OutputTile, masks: Sequence[Value | None]) -> None:
    """Write a tile from registers. masks: of each vector; None for whole ones."""
    (rows, vectors), lanes = sums.shape, sums.count
    columns = [tile.column + v * lanes for v in range(vectors)]
    for r in range(rows):
        for v in range(vectors):
            results = tile.finish(sums[r, v], tile.row + r, columns[v], lanes, masks[v])
            tile.store(results, r, v * lanes, masks[v])


def _write_spilled(sums: Registers, tile: OutputTile, has_full: bool) -> None:
    """Write a tile through memory, by a loop over rows: little code. has_full: some tiles have all their channels."""
    (rows, vectors), lanes = sums.shape, sums.count
    width = vectors * lanes
    memory = spilled(sums)
    if tile.masked or isinstance(tile.rest, int):
        masks = [tile.mask(v * lanes, lanes) for v in range(vectors)]
        for r in kl.loop(rows):
            for v in range(vectors):
                _write_floats(tile, memory.load(r * width + v * lanes, lanes), r, v * lanes, lanes, masks[v])
    else:
        if has_full and tile.rest >= width:
            for r in kl.loop(rows):
                for v in range(vectors):
                    _write_floats(tile, memory.load(r * width + v * lanes, lanes), r, v * lanes, lanes, None)
        else:
            for r in kl.loop(rows):
                for c in range(tile.rest):
                    _write_floats(tile, memory[r * width + c], r, c, 0, None)


def _write_floats(tile: OutputTile, sums: Value, r: Any, c: Any, lanes: int, mask: Value | None) -> None:
    results = tile.finish(sums, tile.row + r, tile.column + c, lanes, mask)
    tile.store(results, r, c, mask)


# ---- integers --------------------------------------------------------------------------------------------------------


def rows_per_vector(tile: OutputTile, width: int, lanes: int) -> int:
    """Return the number of rows of a tile whose results fill one vector."""
    return max(1, 4 * lanes // (width * tile.out.dtype.size))


def stored_rows(sums: list[Value], width: int) -> Pointer:
    """Store the sums of each row on the stack."""
    memory = kl.stack(i32, len(sums) * width)
    for r in range(len(sums)):
        memory.store(sums[r], r * width)
    return memory


def write_registers(tile: OutputTile, sums: list[Value], width: int, group: int) -> None:
    """Apply the epilogue to the sums of each row and store the results, `group` rows at a time."""
    if tile.masked or isinstance(tile.rest, int) or kl.likely(tile.rest >= width):
        mask = tile.mask(0, width)
        groups_end = len(sums) // group * group
        for r in range(0, groups_end, group):
            _write(tile, kl.joined(sums[r : r + group]), r, 0, width, mask, group)
        for r in range(groups_end, len(sums)):
            _write(tile, sums[r], r, 0, width, mask)
    else:
        _write_scalars(tile, stored_rows(sums, width), len(sums), width)


def write_tile(tile: OutputTile, sums: Pointer, rows: int, width: int, lanes: int) -> None:
    """Apply the epilogue to sums [rows, width] in memory and store the results."""
    if tile.masked or isinstance(tile.rest, int) or kl.likely(tile.rest >= width):
        _write_rows(tile, sums, rows, width, lanes)
    else:
        _write_scalars(tile, sums, rows, width)


def _write_scalars(tile: OutputTile, sums: Pointer, rows: int, width: int) -> None:
    """Write the channels of a partial panel one by one."""
    for r in kl.loop(rows):
        for c in range(tile.rest):
            _write(tile, sums[r * width + c], r, c, 0)


def _write_rows(tile: OutputTile, sums: Pointer, rows: int, width: int, lanes: int) -> None:
    """Write all rows of a tile, each with the channels that exist."""
    ungrouped = tile.rounded is not None or sums.dtype is not i32
    group = 1 if ungrouped else rows_per_vector(tile, width, lanes)
    mask = tile.mask(0, width)
    count = rows if tile.count is None else tile.count
    for r in kl.loop(0, count // group * group, group):
        _write(tile, sums.load(r * width, group * width), r, 0, width, mask, group)
    for r in range(count // group * group, count):
        _write(tile, sums.load(r * width, width), r, 0, width, mask)


def _write(tile: OutputTile, sums: Value, r: Any, c: Any, lanes: int, mask: Value | None = None, rows: int = 1) -> None:
    centred, row_scale = tile.centred(sums, r, c), tile.row_scale(r)
    results = tile.finish(centred, tile.row + r, tile.column + c, lanes, mask, rows, row_scale)
    for i in range(rows):
        tile.store(results if rows == 1 else kl.part(results, i * lanes, lanes), r + i, c, mask)
