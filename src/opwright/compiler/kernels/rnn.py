"""Recurrent cells in one kernel over all time steps: simple RNN and GRU; one step of the basic LSTM cell.

Lives here: the selectors of Rnn, Gru and BasicLstm, their families.
Not here: the products of the inputs, computed over all steps at once by a contraction; common parts of recurrent
kernels (recurrent_cells.py); LSTM layers (lstm.py, lstm_int8.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import float32, int8, int16, int32, uint8
from ...scalar.fixed_point_layers import IntegerCells
from .. import language as kl
from ..language import f32, i16, i32, i64, ptr, u8
from ..loops.buffers import Buffer, IndexMap
from ..loops.ops import Move
from ..loops.recurrent_ops import BasicLstm, Gru, Rnn
from ..target import host
from . import NoKernel, selector
from .lstm import pack_cells
from .moves import select_move
from .quantization import INT16, INT32, rounded_floats
from .recurrent_cells import (
    GateSums,
    activate,
    check_activation,
    load_padded,
    packed_weights,
    padded_size,
    rows_per_item,
    sigmoid,
    step_order,
    step_row,
    store_row,
)
from .tiling import grain

if TYPE_CHECKING:
    from ..language import Work
    from ..loops.plan_builder import Builder
    from ..loops.plans import Address


@kl.family
def simple_recurrence(
    work: Work,
    x: ptr[f32],
    weights: ptr[u8],
    h: ptr[f32],
    y: ptr[f32],
    steps: i64,
    batch_pitch: i64,
    step_pitch: i64,
    units: i64,
    scale: f32,
    *,
    rows: int,
    activation: str,
    rounding: str,
) -> None:
    """Run a simple RNN. A work item is `rows` rows of the batch.

    batch_pitch, step_pitch: in rows of x and of y. scale: of quantized weights, if rows are quantized.
    Scratch: rows of h, of the next h and quantized rows, padded to vectors and chains.
    """
    lanes = work.lanes(f32)
    wide = padded_size(units, lanes)
    h_now, h_next, rounded = (work.scratch(f32) + part * rows * wide for part in range(3))
    for item in work.items():
        for row in range(rows):
            load_padded(h_now + row * wide, h + (item * rows + row) * units, units, wide, lanes)
        for step in range(steps):
            row_scales = [
                rounded_floats(h_now + row * wide, rounded + row * wide, wide, lanes, rounding == "symmetric") * scale
                for row in range(rows if rounding else 0)
            ]
            w = packed_weights(work.target, weights, bool(rounding))
            for i in range(0, wide, lanes):
                mask = kl.tail_mask(units - i, lanes)
                sums = GateSums(rows, 1, lanes)
                for row in range(rows):
                    sums.start(row, 0, kl.zeros(f32, lanes))
                w = sums.add(rounded if rounding else h_now, wide, w, wide)
                for row in range(rows):
                    inputs = x + step_row(item, row, rows, step, batch_pitch, step_pitch) * units
                    input_sum, total = inputs.load(i, lanes, mask), sums.total(row, 0)
                    z = kl.fma(total, kl.splat(row_scales[row], lanes), input_sum) if rounding else total + input_sum
                    (h_next + row * wide).store(kl.select(mask, activate(activation, z), 0.0), i)
            h_now, h_next = h_next, h_now
            for row in range(rows):
                target = y + step_row(item, row, rows, step, batch_pitch, step_pitch) * units
                store_row(target, h_now + row * wide, units, lanes)
        for row in range(rows):
            store_row(h + (item * rows + row) * units, h_now + row * wide, units, lanes)


@selector(Rnn)
def select_rnn(form: Rnn, build: Builder) -> None:
    """Select for constant weights."""
    x, y, weights = form.x, form.output, form.recurrent
    if any(b.parent is not None or b.dtype is not float32 for b in (x, y, form.h)) or len(y.shape) != 3 or not y.size:
        raise NoKernel(f"simple recurrence of {x!r} to {y!r}")
    if weights.constant is None or weights.dtype is not (int8 if form.rounding else float32):
        raise NoKernel(f"simple recurrence by {weights!r}")
    check_activation(form.activation, "simple recurrence")
    steps, batch = y.shape[:2] if form.time_major else y.shape[1::-1]
    units, lanes = y.shape[2], host().vector_bytes // 4
    if weights.shape != (units, units) or x.size != y.size or form.h.size != batch * units:
        raise NoKernel(f"simple recurrence of {x!r} by {weights!r} to {y!r}")
    wide, rows = padded_size(units, lanes), rows_per_item(batch)
    packed = pack_cells((weights,), units, units, wide, wide, lanes, build)
    last, *pitches = step_order(steps, batch, form.time_major, form.backward)
    code = simple_recurrence.code(rows=rows, activation=form.activation, rounding=form.rounding)
    words = [
        build.pointer(x, last * units),
        packed,
        build.pointer(form.h),
        build.pointer(y, last * units),
        steps,
        *pitches,
        units,
        float(np.float32(form.scale)),
    ]
    build.step(code, words, batch // rows, scratch=3 * rows * wide * 4, chunk=1)


@kl.family
def gru(
    work: Work,
    x: ptr[f32],
    gates: ptr[f32],
    candidate: ptr[f32],
    h: ptr[f32],
    y: ptr[f32],
    steps: i64,
    step: i64,
    cells: i64,
    *,
    rows: int,
    start: bool,
    activation: str,
    keeps: bool,
) -> None:
    """Run a GRU. A work item is `rows` sequences. x and y point to the first step in execution order; step: in rows.

    Scratch: rows of h, u and r h, padded to vectors and chains.
    """
    lanes = work.lanes(f32)
    wide = padded_size(cells, lanes)
    hidden, update, reset = (work.scratch(f32) + part * rows * wide for part in range(3))
    for item in work.items():
        for row in range(rows):
            if start:
                load_padded(hidden + row * wide, h + (item * rows + row) * cells, cells, wide, lanes)
            else:
                for i in range(0, wide, lanes):
                    (hidden + row * wide).store(kl.zeros(f32, lanes), i)
        for t in range(steps):
            inputs = [x + ((item * rows + row) * steps + t * step) * (3 * cells) for row in range(rows)]
            w = packed_weights(work.target, gates, False)
            for at in range(0, wide, lanes):
                mask = kl.tail_mask(cells - at, lanes)
                sums = GateSums(rows, 2, lanes)
                for row in range(rows):
                    for gate in range(2):
                        sums.start(row, gate, (inputs[row] + gate * cells).load(at, lanes, mask))
                w = sums.add(hidden, wide, w, wide)
                for row in range(rows):
                    (update + row * wide).store(sigmoid(sums.total(row, 0)), at)
                    before = (hidden + row * wide).load(at, lanes)
                    # padding stays zero: infinity times the zero padding of weights would be NaN
                    (reset + row * wide).store(kl.select(mask, sigmoid(sums.total(row, 1)) * before, 0.0), at)
            w = packed_weights(work.target, candidate, False)
            for at in range(0, wide, lanes):
                mask = kl.tail_mask(cells - at, lanes)
                sums = GateSums(rows, 1, lanes)
                for row in range(rows):
                    sums.start(row, 0, (inputs[row] + 2 * cells).load(at, lanes, mask))
                w = sums.add(reset, wide, w, wide)
                for row in range(rows):
                    c = activate(activation, sums.total(row, 0))
                    before, u = (hidden + row * wide).load(at, lanes), (update + row * wide).load(at, lanes)
                    first, second = (c, before) if keeps else (before, c)
                    (hidden + row * wide).store(kl.select(mask, kl.fma(u, second - first, first), 0.0), at)
            for row in range(rows):
                store_row(y + ((item * rows + row) * steps + t * step) * cells, hidden + row * wide, cells, lanes)


@selector(Gru)
def select_gru(form: Gru, build: Builder) -> None:
    """Select for constant or computed weights, which are packed in each run."""
    x, y, weight = form.x, form.output, form.weight
    if any(b.parent is not None or b.dtype is not float32 for b in (x, y, weight, *form.h)) or len(y.shape) != 3:
        raise NoKernel(f"recurrent units of {x!r}")
    batch, steps, cells = y.shape
    if x.shape != (batch, steps, 3 * cells) or weight.size != 3 * cells * cells or not y.size:
        raise NoKernel(f"recurrent units of {x!r}")
    check_activation(form.activation, "recurrent units")
    lanes = host().vector_bytes // 4
    wide, rows = padded_size(cells, lanes), rows_per_item(batch)
    gates = pack_matrices(weight, 0, 2, cells, wide, lanes, build)
    candidate = pack_matrices(weight, 2 * cells * cells, 1, cells, wide, lanes, build)
    last = steps - 1 if form.backward else 0
    code = gru.code(rows=rows, start=bool(form.h), activation=form.activation, keeps=form.keeps)
    h: Any = build.pointer(form.h[0]) if form.h else 0
    words = [
        build.pointer(x, last * 3 * cells),
        gates,
        candidate,
        h,
        build.pointer(y, last * cells),
        steps,
        -1 if form.backward else 1,
        cells,
    ]
    build.step(code, words, batch // rows, scratch=3 * rows * wide * 4, chunk=1)


def pack_matrices(weight: Buffer, start: int, count: int, n: int, wide: int, lanes: int, build: Builder) -> Address:
    """Pack adjacent matrices [n, n], from element `start` of the weight on, as [vectors of columns, rows, matrices,
    lanes], padded with zeros."""
    flat = Buffer("packed", float32, (wide // lanes, wide, count, lanes))
    boxes = []
    for matrix in range(count):
        for first, panels, width in ((0, n // lanes, lanes), (n // lanes, 1, n % lanes)):
            if panels and width:
                offset = start + matrix * n + first * lanes
                boxes.append(IndexMap((first, 0, matrix, 0), (panels, n, 1, width), offset, (lanes, count * n, 0, 1)))
    select_move(Move(flat, (weight,) * len(boxes), tuple(boxes), 0.0), build)
    return build.pointer(flat)


@kl.family
def basic_cells(
    work: Work, gates: ptr[f32], h: ptr[f32], c: ptr[f32], y: ptr[f32], state: ptr[f32], cells: i64
) -> None:
    """Run one step of the basic LSTM cell. A work item is a row of the batch."""
    lanes = work.lanes(f32)
    for item in work.items():
        row, first = gates + item * 4 * cells, item * cells
        for i in range(0, cells, lanes):
            mask = kl.tail_mask(cells - i, lanes)
            input_gate, candidate, forget, output_gate = ((row + g * cells).load(i, lanes, mask) for g in range(4))
            before = (c + first).load(i, lanes, mask)
            after = sigmoid(input_gate) * activate("TANH", candidate) + sigmoid(forget) * before
            out = sigmoid(output_gate) * activate("TANH", after)
            for values, targets in ((after, (c, state)), (out, (h, y))):
                for target in targets:
                    (target + first).store(values, i, mask)


@kl.family
def basic_cells_int(
    work: Work,
    gates: ptr[i32],
    h: ptr[u8],
    c: ptr[i16],
    y: ptr[u8],
    state: ptr[i16],
    sums: ptr[i16],
    cells: i64,
    m: i64,
    e: i64,
    *,
    power: int,
) -> None:
    """Run one step of the basic integer LSTM cell. A work item is a row of the batch. sums: the gates as int16."""
    lanes = work.lanes(f32)
    arithmetic = IntegerCells(kl, power)
    for item in work.items():
        row, first = item * 4 * cells, item * cells
        for i in range(0, cells, lanes):
            mask = kl.tail_mask(cells - i, lanes)
            gate_sums = []
            for g in range(4):
                offset = row + g * cells
                gate = INT32.rescale_halves_up((gates + offset).load(i, lanes, mask).to(i64), m, e)
                gate_sums.append(INT16.saturated(gate).to(i32))
                (sums + offset).store(gate_sums[g].to(i16), i, mask)
            after, out = arithmetic.basic(gate_sums, (c + first).load(i, lanes, mask).to(i32))
            for values, targets in ((after.to(i16), (c, state)), (out.to(u8), (h, y))):
                for target in targets:
                    (target + first).store(values, i, mask)


@selector(BasicLstm)
def select_basic(form: BasicLstm, build: Builder) -> None:
    gates, h, c = form.gates, form.h, form.c
    batch = gates.shape[0]
    cells = gates.size // batch // 4
    results = [build.pointer(form.output, start) for _, start in form.results]
    kinds = [gates.dtype, h.dtype, c.dtype, *(b.dtype for b, _ in form.results)]
    if any(b.parent is not None for b in (gates, h, c, form.output)) or h.size != batch * cells or c.size != h.size:
        raise NoKernel(f"a step of an LSTM of {gates!r}")
    words = [*map(build.pointer, (gates, h, c)), *results, cells]
    if kinds == [float32] * 5:
        code: Any = basic_cells.code()
    elif kinds == [int32, uint8, int16, uint8, int16, int16]:
        code, words = basic_cells_int.code(power=form.power), [*words, *form.factor]
    else:
        raise NoKernel(f"a step of an LSTM of {gates!r} with {h!r}, {c!r}")
    build.step(code, words, batch, chunk=grain(256 * cells, batch))
