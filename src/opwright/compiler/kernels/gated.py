"""Gated recurrent units: the steps in one kernel.

Lives here: the maker of Gru, its family.  Not here: what recurrences share (cells.py), LSTMs (recurrent.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.dtypes import float32
from .. import language as kl
from ..language import f32, i64, ptr
from ..loops.forms import Buffer, IndexMap, Move
from ..loops.recurrent_forms import Gru
from ..target import host
from . import Unmade, maker
from .cells import Cells, activated, check_activation, copied, rows_together, sigmoid, whole, written
from .moves import make_move

if TYPE_CHECKING:
    from ..loops.planning import Builder


@kl.family
def gru(work, x: ptr[f32], gates: ptr[f32], candidate: ptr[f32], h: ptr[f32], y: ptr[f32], steps: i64, step: i64,
        cells: i64, *, rows: int, start: bool, activation: str, keeps: bool):  # fmt: skip
    """An item is `rows` sequences. x and y are at the first step that is taken, `step` rows from one to the next.

    Scratch: rows of h, of u and of r h, each a whole number of vectors and of chains long.
    """
    lanes = work.lanes(f32)
    wide = whole(cells, lanes)
    now, update, reset = (work.scratch(f32) + part * rows * wide for part in range(3))
    for item in work.items():
        for row in range(rows):
            if start:
                copied(now + row * wide, h + (item * rows + row) * cells, cells, wide, lanes)
            else:
                for i in range(0, wide, lanes):
                    (now + row * wide).store(kl.zeros(f32, lanes), i)
        for t in range(steps):
            given = [x + ((item * rows + row) * steps + t * step) * (3 * cells) for row in range(rows)]
            w = gates
            for at in range(0, wide, lanes):
                mask = kl.first(kl.minimum(cells - at, lanes), lanes)
                sums = Cells(rows, 2, lanes)
                for row in range(rows):
                    for gate in range(2):
                        sums.start(row, gate, (given[row] + gate * cells).load(at, lanes, mask))
                w = sums.add(now, wide, w, wide)
                for row in range(rows):
                    (update + row * wide).store(sigmoid(sums.total(row, 0)), at)
                    before = (now + row * wide).load(at, lanes)
                    # behind the last cell stay zeros: an infinity times the zeros of the weights there is NaN
                    (reset + row * wide).store(kl.select(mask, sigmoid(sums.total(row, 1)) * before, 0.0), at)
            w = candidate
            for at in range(0, wide, lanes):
                mask = kl.first(kl.minimum(cells - at, lanes), lanes)
                sums = Cells(rows, 1, lanes)
                for row in range(rows):
                    sums.start(row, 0, (given[row] + 2 * cells).load(at, lanes, mask))
                w = sums.add(reset, wide, w, wide)
                for row in range(rows):
                    c = activated(activation, sums.total(row, 0))
                    before, u = (now + row * wide).load(at, lanes), (update + row * wide).load(at, lanes)
                    first, second = (c, before) if keeps else (before, c)
                    (now + row * wide).store(kl.select(mask, kl.fma(u, second - first, first), 0.0), at)
            for row in range(rows):
                written(y + ((item * rows + row) * steps + t * step) * cells, now + row * wide, cells, lanes)


@maker(Gru)
def make_gru(form: Gru, build: Builder) -> None:
    """The weights are packed in each run: they may be computed."""
    x, y, weight = form.x, form.output, form.weight
    if any(b.parent is not None or b.dtype is not float32 for b in (x, y, weight, *form.h)) or len(y.shape) != 3:
        raise Unmade(f"recurrent units of {x!r}")
    batch, steps, cells = y.shape
    if x.shape != (batch, steps, 3 * cells) or weight.size != 3 * cells * cells or not y.size:
        raise Unmade(f"recurrent units of {x!r}")
    check_activation(form.activation, "recurrent units")
    lanes = host().vector_bytes // 4
    wide, rows = whole(cells, lanes), rows_together(batch)
    gates = _packed(weight, 0, 2, cells, wide, lanes, build)
    candidate = _packed(weight, 2 * cells * cells, 1, cells, wide, lanes, build)
    last = steps - 1 if form.backward else 0
    code = gru.code(rows=rows, start=bool(form.h), activation=form.activation, keeps=form.keeps)
    h: Any = build.pointer(form.h[0]) if form.h else 0
    words = [build.pointer(x, last * 3 * cells), gates, candidate, h, build.pointer(y, last * cells), steps,
             -1 if form.backward else 1, cells]  # fmt: skip
    build.step(code, words, batch // rows, scratch=3 * rows * wide * 4, chunk=1)


def _packed(weight: Buffer, start: int, count: int, n: int, wide: int, lanes: int, build: Builder) -> Any:
    """Matrices [n, n] side by side, from an element of the weight on, as [vectors of columns, rows, matrices, lanes],
    with zeros behind their ends."""
    flat = Buffer("packed", float32, (wide // lanes, wide, count, lanes))
    boxes = []
    for matrix in range(count):
        for first, panels, width in ((0, n // lanes, lanes), (n // lanes, 1, n % lanes)):
            if panels and width:
                offset = start + matrix * n + first * lanes
                boxes.append(IndexMap((first, 0, matrix, 0), (panels, n, 1, width), offset, (lanes, count * n, 0, 1)))
    make_move(Move(flat, (weight,) * len(boxes), tuple(boxes), 0.0), build)
    return build.pointer(flat)
