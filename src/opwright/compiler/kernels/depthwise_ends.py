"""Ends of depthwise convolutions of integers: sums of several rows and columns of outputs, finished at a time.

Lives here: `Ends`, `finish_columns`, `look_up_columns`, `columns_of`, which says of how many.
Not here: the sums (depthwise_int8.py), what becomes of them (epilogue.py).

A vector of bytes has four times the lanes of one of sums. To look up a part of one takes as long as to look up all of
it, and so does to pack a part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .. import language as kl
from ..language import u8
from ..target import Target
from .depthwise_tiles import Tile
from .epilogue import TABLE, Epilogue

if TYPE_CHECKING:
    from ..loops.forms import Buffer


class Ends(NamedTuple):
    """Sums kept as [columns, rows, lanes], of the rows of outputs from `at` on, and channels from c on.

    indices: memory for what is looked up in the table at last, in the same order, if anything is.
    """

    y: Any
    kept: Any
    finish: Any
    at: Any
    c: Any
    rows: int
    lanes: int
    across: Any
    out_width: Any
    out_pitch: Any
    indices: Any = None
    table: Any = None


def columns_of(target: Target, tile: Tile, out: Buffer, out_width: int, epilogue: Epilogue) -> int:
    """Columns of outputs whose elements are a vector; 0 where each row is better finished alone: where that takes
    several columns and nothing is looked up, and on 64-bit ARM, whose vectors are short."""
    columns = target.vector_bytes // (tile.rows * tile.lanes * out.dtype.size)
    looks = any(kind == TABLE for kind, _ in epilogue.kinds)
    return columns if target.is_x86 and (columns == 1 or (looks and 1 < columns <= out_width)) else 0


def finish_columns(ends: Ends, column: Any, place: Any, columns: int) -> None:
    """Finish so many columns of outputs from `column` on, whose sums are kept from `place` on."""
    rows, lanes = ends.rows, ends.lanes
    outputs = [ends.at + r * ends.out_width + (column + i) * ends.across for i in range(columns) for r in range(rows)]
    sums = ends.kept.load(place * rows * lanes, columns * rows * lanes)
    found = ends.finish(sums, outputs, ends.c, lanes, None, len(outputs))
    if ends.indices is not None:
        ends.indices.store(kl.bitcast(found, u8), column * rows * lanes)
        return
    for i, output in enumerate(outputs):
        (ends.y + output * ends.out_pitch).store(kl.part(found, i * lanes, lanes), ends.c)


def look_up_columns(ends: Ends, count: Any, columns: int) -> None:
    """Look `count` columns of outputs up, `columns` at a time, and write them: see `tile_writing.Ending`."""
    rows, lanes = ends.rows, ends.lanes
    for column in range(0, count, columns):
        found = kl.lookup(ends.table, ends.indices.load(column * rows * lanes, columns * rows * lanes))
        if column + columns <= count:
            for i in range(columns):
                _write_column(ends, found, column, i)
        else:
            for i in range(columns - 1):
                if column + i < count:
                    _write_column(ends, found, column, i)


def _write_column(ends: Ends, found: Any, column: Any, i: int) -> None:
    for r in range(ends.rows):
        output = ends.at + r * ends.out_width + (column + i) * ends.across
        (ends.y + output * ends.out_pitch).store(kl.part(found, (i * ends.rows + r) * ends.lanes, ends.lanes), ends.c)
