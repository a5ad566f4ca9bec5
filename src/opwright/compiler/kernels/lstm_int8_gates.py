"""LSTM of int8 whose gates are int8: a step in one kernel.

Lives here: the selector of LstmInt8Gates, its family.
Not here: the products of inputs and state, which are contractions; gates of int16 (lstm_int8.py); the tables and
fixed-point arithmetic (opwright/scalar).

A layer normalizes its gates in float32 and sums one cell after the other, as the official kernel does: any other order
has other bits. So cells are computed one by one; their functions are lookups in tables of all int16.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import int8, int16
from ...scalar.fixed_point_layers import NARROW_SCALE, IntegerCells
from ...scalar.formulas import round_away
from .. import language as kl
from ..language import f32, f64, i8, i16, i32, i64, ptr
from ..loops.recurrent_ops import LstmInt8Gates
from . import NoKernel, selector
from .quantization import INT16, INT32
from .recurrent_cells import VARIANCE_EPSILON

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

GATES = 3
FORGET, CELL, OUTPUT = range(GATES)
PART = 5
"""Numbers of a gate's product: the factor to int8, its zero point, the factor to the sum."""
LOWEST, HIGHEST = -(1 << 15), (1 << 15) - 1
CELLS = IntegerCells(kl, -15)


@kl.family
def lstm_int8_gates(
    work: Work,
    outside_f: ptr[i32],
    outside_g: ptr[i32],
    outside_o: ptr[i32],
    inside_f: ptr[i32],
    inside_g: ptr[i32],
    inside_o: ptr[i32],
    norms: ptr[f32],
    scales: ptr[f32],
    sigmoid: ptr[i16],
    tanh: ptr[i16],
    cell_tanh: ptr[i16],
    projection: ptr[i8],
    bias: ptr[i32],
    numbers: ptr[i64],
    h: ptr[i8],
    c: ptr[i16],
    y: ptr[i8],
    cells: i64,
    outputs: i64,
    cell_clip: i32,
    output_clip: i32,
    *,
    biased: bool,
) -> None:
    """Run a step. A work item is a row of the batch.

    numbers: of each gate the PART numbers of its product with x, then with h; (m, e) of the projection; the zero point
    of h. Scratch: rows of cells: of each gate, then o tanh(c).
    """
    lanes = work.lanes(i32)
    pairs = (outside_f, inside_f), (outside_g, inside_g), (outside_o, inside_o)
    tables = sigmoid, tanh, sigmoid
    last = numbers + 2 * GATES * PART
    hidden = work.scratch(i32) + GATES * cells
    for item in work.items():
        state = c + item * cells
        for gate in range(GATES):
            row = work.scratch(f32) + gate * cells
            outside, inside = (sums + item * cells for sums in pairs[gate])
            _add_parts(row, outside, inside, numbers + 2 * gate * PART, cells)
            _normalize(row, norms + 2 * gate * cells, scales[gate], cells)
        rows = [work.scratch(f32) + gate * cells for gate in range(GATES)]
        for i in range(cells):
            forget, new, output = (_looked_up(tables[gate], rows[gate][i].to(i32)) for gate in range(GATES))
            after = CELLS.after(forget, state[i].to(i32), INT16.one - forget, new)
            after = kl.clamp(after, -cell_clip, cell_clip)
            state[i] = after.to(i16)
            hidden[i] = INT32.shifted_right(output * _looked_up(cell_tanh, after), 15)
        for k in range(outputs):
            weights, total = projection + k * cells, kl.zeros(i64, lanes)
            for i in range(0, cells, lanes):
                mask = kl.tail_mask(cells - i, lanes)
                total = total + (hidden.load(i, lanes, mask) * weights.load(i, lanes, mask).to(i32)).to(i64)
            projected = kl.reduce_add(total)
            if biased:
                projected = projected + bias[k].to(i64)
            out = kl.clamp(INT32.rescale(projected, last[0], last[1]) + last[2], -128, 127).to(i32)
            out = kl.clamp(out, -output_clip, output_clip).to(i8)
            (h + item * outputs)[k] = out
            (y + item * outputs)[k] = out


def _add_parts(row: Pointer, outside: Pointer, inside: Pointer, numbers: Pointer, cells: Value) -> None:
    """Round the products of a gate to int8, and add them: int16 in float32."""
    for i in range(cells):
        total = _part(outside[i], numbers) + _part(inside[i], numbers + PART)
        row[i] = INT16.saturated(total).to(i32).to(f32)


def _part(sums: Value, numbers: Pointer) -> Value:
    zero = numbers[2]
    narrow = kl.clamp(INT32.rescale(sums.to(i64), numbers[0], numbers[1]) + zero, -128, 127)
    result: Value = INT32.rescale(narrow - zero, numbers[3], numbers[4])
    return result


def _normalize(row: Pointer, norms: Pointer, scale: Value, cells: Value) -> None:
    """Normalize a gate's sums over its cells, apply coefficients and a bias; round to int16 in float32."""
    total, squares, count = kl.zeros(f32), kl.zeros(f32), cells.to(f32)
    for i in range(cells):
        total, squares = total + row[i], squares + row[i] * row[i]
    mean = total / count
    variance = squares / count - mean * mean
    inverse = 1.0 / kl.sqrt(kl.select(variance == 0.0, VARIANCE_EPSILON, variance))
    for i in range(cells):
        real = (row[i] - mean) * inverse * norms[i] * scale + (norms + cells)[i]
        rounded = round_away(kl, real.to(f64) * (1 / NARROW_SCALE))
        defined = kl.select(rounded == rounded, rounded, float(LOWEST))  # a variance below 0 gives NaN
        row[i] = kl.clamp(defined, float(LOWEST), float(HIGHEST)).to(f32)


def _looked_up(table: Pointer, x: Value) -> Value:
    """Look up a value of int16 in a table of all of them."""
    result: Value = table[x.to(i64) - LOWEST].to(i32)
    return result


@selector(LstmInt8Gates)
def select_step(form: LstmInt8Gates, build: Builder) -> None:
    """Select for constant weights."""
    y, weights = form.output, form.projection[0].constant
    if (form.h.dtype, form.c.dtype, y.dtype) != (int8, int16, int8) or weights is None:
        raise NoKernel(f"an LSTM to {y!r}")
    outputs, cells = weights.shape
    batch = y.size // outputs
    biased = len(form.projection) > 1
    bias: Any = build.constant(np.asarray(form.projection[1].constant, np.int32)) if biased else 0
    numbers = [*(n for part in form.parts for n in part), *form.output_factor, form.zero]
    words = [
        *map(build.pointer, (*form.outside, *form.inside)),
        *(build.constant(np.asarray(b.constant)) for b in (*form.norms, *form.tables)),
        build.constant(np.asarray(weights, np.int8)),
        bias,
        build.constant(np.array(numbers, np.int64)),
        *map(build.pointer, (form.h, form.c, y)),
        cells,
        outputs,
        *form.clips,
    ]
    build.step(lstm_int8_gates.code(biased=biased), words, batch, scratch=(GATES + 1) * 4 * cells, chunk=1)
