"""Tiles of int8 products: what becomes of their sums.

Lives here: `Sink`, `Rounded`, `is_light`, `Ending`, `write_tile` from memory and `write_registers`.
Not here: how sums are computed (gemm_int8.py), the epilogue's expression (epilogue.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import language as kl
from ..language import f32, i32, i64, u8
from .epilogue import TABLE, Epilogue

if TYPE_CHECKING:
    from ...core.dtypes import DType
    from ..language import Pointer, Target, Value

LIGHT = 16
"""Weight of an epilogue whose code may be there for each row of a tile."""


class Ending(NamedTuple):
    """An epilogue in a kernel. finish: of sums; light: whether that is little code; dtype: what it gives. table: where
    all that a tile has written is looked up afterwards, if it is.

    By shuffles (AVX2) a look-up is some sixty instructions, each waiting for the one before. After a whole tile there
    are others to run meanwhile, and no vector is a part of one.
    """

    finish: Callable[..., Value]
    light: bool
    dtype: DType
    table: Pointer | None

    def look_up(self, out: Pointer, pitch: Any, rows: Any, count: Any, lanes: int) -> None:
        """Replace `rows` rows of `count` bytes by what the table has for them."""
        if self.table is None:
            return
        if count == pitch:
            _look_up(self.table, out.cast(self.table.dtype), rows * count, lanes)
        else:
            for r in range(rows):
                _look_up(self.table, out.cast(self.table.dtype) + r * pitch, count, lanes)


def _look_up(table: Pointer, place: Pointer, count: Any, lanes: int) -> None:
    whole = count - count % lanes
    for i in range(0, whole, lanes):
        place.store(kl.lookup(table, kl.bitcast(place.load(i, lanes), u8)), i)
    for i in range(whole, count):
        place[i] = table[kl.bitcast(place[i], u8).to(i64)]


def ending_of(epilogue: Epilogue, more: Sequence[Value], target: Target) -> Ending:
    """The epilogue as a kernel for the target has it."""
    apart = epilogue.before_table() if target.is_x86 and target.has("avx2") and not target.has("avx512vbmi") else None
    if apart is None:
        return Ending(epilogue.bind(more), is_light(epilogue, target), epilogue.expr.dtype, None)
    first, word = apart
    table = kl.pointer(more[word], epilogue.expr.dtype)
    return Ending(first.bind(more), first.weight <= LIGHT, first.expr.dtype, table)


def is_light(epilogue: Epilogue, target: Target) -> bool:
    """Whether the code of an epilogue may be there for each row of a tile. On x86 a table takes many instructions, of
    all but the processors that have them for tables of bytes."""
    tables = any(kind == TABLE for kind, _ in epilogue.kinds) and target.is_x86 and not target.has("avx512vbmi")
    return epilogue.weight <= LIGHT and not tables


class Rounded(NamedTuple):
    """Rows that were floats: row r of the output is of scales[r // each] and zeros[r // each]."""

    scales: Pointer
    zeros: Pointer
    each: Any


class Sink(NamedTuple):
    """Where a tile is written: out[row * pitch + column], `rest` channels from `column` on.

    rounded: what makes floats of the sums, if the input was rounded; panel: of the filter. count: how many rows are
    written, if not all. light: whether the epilogue is few instructions.
    """

    out: Pointer
    pitch: Value
    row: Any
    column: Any
    rest: Any
    finish: Callable[..., Value]
    masked: bool
    rounded: Any = None
    panel: Any = None
    count: Any = None
    light: bool = False

    def value(self, sums: Value, r: Any, c: Any) -> Value:
        """What the epilogue is given for sums of row r and of the panel's channels from c on.

        A panel starts with -128 times the sums of the weights where there is no bias, and no zero point but the rows'.
        """
        if self.rounded is None:
            return sums
        at = (self.row + r) // self.rounded.each
        if sums.dtype is f32:
            return sums * self.rounded.scales[at]
        weights = self.panel.load(c, sums.count) >> 7
        return (sums + weights * self.rounded.zeros[at]).to(f32) * self.rounded.scales[at]


def together(sink: Sink, width: int, lanes: int) -> int:
    """How many rows of a tile are finished at a time."""
    return max(1, 4 * lanes // (width * sink.out.dtype.size))


def kept_sums(found: list[Value], width: int) -> Pointer:
    """The sums of each row in memory."""
    kept = kl.stack(i32, len(found) * width)
    for r in range(len(found)):
        kept.store(found[r], r * width)
    return kept


def write_registers(sink: Sink, found: list[Value], width: int, group: int) -> None:
    """Finish and write the sums of each row, `group` rows at a time."""
    if sink.masked or kl.likely(sink.rest >= width):
        mask = kl.first(sink.rest, width) if sink.masked else None
        whole = len(found) // group * group
        for r in range(0, whole, group):
            _write(sink, kl.joined(found[r : r + group]), r, 0, width, mask, group)
        for r in range(whole, len(found)):
            _write(sink, found[r], r, 0, width, mask)
    else:
        _write_some(sink, kept_sums(found, width), len(found), width)


def write_tile(sink: Sink, kept: Pointer, rows: int, width: int, lanes: int) -> None:
    if sink.masked or kl.likely(sink.rest >= width):
        _write_rows(sink, kept, rows, width, lanes)
    else:
        _write_some(sink, kept, rows, width)


def _write_some(sink: Sink, kept: Pointer, rows: int, width: int) -> None:
    """The channels that there are, one by one."""
    for r in kl.loop(rows):
        for c in range(sink.rest):
            _write(sink, kept[r * width + c], r, c, 0)


def _write_rows(sink: Sink, kept: Pointer, rows: int, width: int, lanes: int) -> None:
    """All rows of a tile, with as many of their channels as there are."""
    alone = sink.rounded is not None or kept.dtype is not i32
    group = 1 if alone else together(sink, width, lanes)
    mask = kl.first(sink.rest, width) if sink.masked else None
    count = rows if sink.count is None else sink.count
    for r in kl.loop(0, count // group * group, group):
        _write(sink, kept.load(r * width, group * width), r, 0, width, mask, group)
    for r in range(count // group * group, count):
        _write(sink, kept.load(r * width, width), r, 0, width, mask)


def _write(sink: Sink, sums: Value, r: Any, c: Any, lanes: int, mask: Value | None = None, rows: int = 1) -> None:
    found = sink.finish(sink.value(sums, r, c), sink.row + r, sink.column + c, lanes, mask, rows)
    for i in range(rows):
        one = found if rows == 1 else kl.part(found, i * lanes, lanes)
        (sink.out + (sink.row + r + i) * sink.pitch + sink.column).store(one, c, mask)
