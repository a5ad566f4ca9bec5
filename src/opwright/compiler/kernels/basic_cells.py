"""One step of an LSTM with one matrix for all gates, of floats and of integers.

Lives here: the maker of BasicLstm, its two families.  Not here: the product that gives the gates (the rule).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.dtypes import float32, int16, int32, uint8
from ...scalar.integer_lstm import IntegerCells
from .. import language as kl
from ..language import f32, i16, i32, i64, ptr, u8
from ..loops.recurrent_forms import BasicLstm
from . import Unmade, maker
from .cells import activated, sigmoid
from .fixed_point import INT16, INT32
from .grains import grain

if TYPE_CHECKING:
    from ..loops.planning import Builder


@kl.family
def basic_cells(work, gates: ptr[f32], h: ptr[f32], c: ptr[f32], y: ptr[f32], state: ptr[f32], cells: i64):
    """An item is a row of the batch."""
    lanes = work.lanes(f32)
    for item in work.items():
        row, first = gates + item * 4 * cells, item * cells
        for at in range(0, cells, lanes):
            mask = kl.first(kl.minimum(cells - at, lanes), lanes)
            let_in, made, forget, let_out = ((row + g * cells).load(at, lanes, mask) for g in range(4))
            before = (c + first).load(at, lanes, mask)
            after = sigmoid(let_in) * activated("TANH", made) + sigmoid(forget) * before
            out = sigmoid(let_out) * activated("TANH", after)
            for values, targets in ((after, (c, state)), (out, (h, y))):
                for target in targets:
                    (target + first).store(values, at, mask)


@kl.family
def basic_cells_int(work, gates: ptr[i32], h: ptr[u8], c: ptr[i16], y: ptr[u8], state: ptr[i16], sums: ptr[i16],
                    cells: i64, m: i64, e: i64, *, power: int):  # fmt: skip
    """An item is a row of the batch. sums: the gates as int16."""
    lanes = work.lanes(f32)
    arithmetic = IntegerCells(kl, power)
    for item in work.items():
        row, first = item * 4 * cells, item * cells
        for at in range(0, cells, lanes):
            mask = kl.first(kl.minimum(cells - at, lanes), lanes)
            found = []
            for g in range(4):
                place = row + g * cells
                gate = INT32.rescale_halves_up((gates + place).load(at, lanes, mask).to(i64), m, e)
                found.append(INT16.saturated(gate).to(i32))
                (sums + place).store(found[g].to(i16), at, mask)
            after, out = arithmetic.basic(found, (c + first).load(at, lanes, mask).to(i32))
            for values, targets in ((after.to(i16), (c, state)), (out.to(u8), (h, y))):
                for target in targets:
                    (target + first).store(values, at, mask)


@maker(BasicLstm)
def make_basic(form: BasicLstm, build: Builder) -> None:
    gates, h, c = form.gates, form.h, form.c
    batch = gates.shape[0]
    cells = gates.size // batch // 4
    results = [build.pointer(form.output, start) for _, start in form.results]
    kinds = [gates.dtype, h.dtype, c.dtype, *(b.dtype for b, _ in form.results)]
    if any(b.parent is not None for b in (gates, h, c, form.output)) or h.size != batch * cells or c.size != h.size:
        raise Unmade(f"a step of an LSTM of {gates!r}")
    words = [*map(build.pointer, (gates, h, c)), *results, cells]
    if kinds == [float32] * 5:
        code: Any = basic_cells.code()
    elif kinds == [int32, uint8, int16, uint8, int16, int16]:
        code, words = basic_cells_int.code(power=form.power), [*words, *form.factor]
    else:
        raise Unmade(f"a step of an LSTM of {gates!r} with {h!r}, {c!r}")
    build.step(code, words, batch, chunk=grain(256 * cells, batch))
