"""Simple recurrence: the steps of a layer whose output is its state.

Lives here: the maker of Rnn, its family.
Not here: what the units get from the input, one product over all steps; what other recurrences share (cells.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.dtypes import float32, int8
from .. import language as kl
from ..language import f32, i64, ptr, u8
from ..loops.recurrent_forms import Rnn
from ..target import host
from . import Unmade, maker
from .cells import Cells, activated, check_activation, copied, order_of, packed, rows_together, whole, written
from .hybrid import rounded_floats
from .recurrent import packed_cells

if TYPE_CHECKING:
    from ..loops.planning import Builder


@kl.family
def simple_recurrence(work, x: ptr[f32], weights: ptr[u8], h: ptr[f32], y: ptr[f32], steps: i64, batch_pitch: i64,
                      step_pitch: i64, units: i64, scale: f32, *, rows: int, activation: str,
                      rounding: str):  # fmt: skip
    """An item is `rows` rows of the batch. batch_pitch, step_pitch: in rows of x and of y, from one to the next. scale:
    what one of the weights stands for, where rows are rounded.

    Scratch: rows of h, of the next h and of what is rounded, each a whole number of vectors and of chains long.
    """
    lanes = work.lanes(f32)
    wide = whole(units, lanes)
    now, new, rounded = (work.scratch(f32) + part * rows * wide for part in range(3))
    for item in work.items():
        for row in range(rows):
            copied(now + row * wide, h + (item * rows + row) * units, units, wide, lanes)
        for step in range(steps):
            unit = [rounded_floats(now + row * wide, rounded + row * wide, wide, lanes, rounding == "symmetric") * scale
                    for row in range(rows if rounding else 0)]  # fmt: skip
            w = packed(work.target, weights, bool(rounding))
            for at in range(0, wide, lanes):
                mask = kl.first(kl.minimum(units - at, lanes), lanes)
                sums = Cells(rows, 1, lanes)
                for row in range(rows):
                    sums.start(row, 0, kl.zeros(f32, lanes))
                w = sums.add(rounded if rounding else now, wide, w, wide)
                for row in range(rows):
                    given = x + ((item * rows + row) * batch_pitch + step * step_pitch) * units
                    outside, total = given.load(at, lanes, mask), sums.total(row, 0)
                    z = kl.fma(total, kl.splat(unit[row], lanes), outside) if rounding else total + outside
                    (new + row * wide).store(kl.select(mask, activated(activation, z), 0.0), at)
            now, new = new, now
            for row in range(rows):
                target = y + ((item * rows + row) * batch_pitch + step * step_pitch) * units
                written(target, now + row * wide, units, lanes)
        for row in range(rows):
            written(h + (item * rows + row) * units, now + row * wide, units, lanes)


@maker(Rnn)
def make_rnn(form: Rnn, build: Builder) -> None:
    """Weights are constants."""
    x, y, weights = form.x, form.output, form.recurrent
    if any(b.parent is not None or b.dtype is not float32 for b in (x, y, form.h)) or len(y.shape) != 3 or not y.size:
        raise Unmade(f"simple recurrence of {x!r} to {y!r}")
    if weights.constant is None or weights.dtype is not (int8 if form.rounding else float32):
        raise Unmade(f"simple recurrence by {weights!r}")
    check_activation(form.activation, "simple recurrence")
    steps, batch = y.shape[:2] if form.time_major else y.shape[1::-1]
    units, lanes = y.shape[2], host().vector_bytes // 4
    if weights.shape != (units, units) or x.size != y.size or form.h.size != batch * units:
        raise Unmade(f"simple recurrence of {x!r} by {weights!r} to {y!r}")
    wide, rows = whole(units, lanes), rows_together(batch)
    given = packed_cells((weights,), units, units, wide, wide, lanes, build)
    last, *pitches = order_of(steps, batch, form.time_major, form.backward)
    code = simple_recurrence.code(rows=rows, activation=form.activation, rounding=form.rounding)
    words = [build.pointer(x, last * units), given, build.pointer(form.h), build.pointer(y, last * units), steps,
             *pitches, units, float(np.float32(form.scale))]  # fmt: skip
    build.step(code, words, batch // rows, scratch=3 * rows * wide * 4, chunk=1)
