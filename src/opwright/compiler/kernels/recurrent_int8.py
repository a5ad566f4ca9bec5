"""Recurrence on integers: the steps of an LSTM of int8 with int16 cells in one kernel.

Lives here: the maker of LstmInt8, its family.
Not here: what gates get from the input, one product over all steps; the LSTM of floats (recurrent.py).

Weights and state are multiplied as float32, packed and summed as those of floats: what a sum of products of bytes loses
beyond 24 bits is a 500th of a step of what it is rounded to. Gates and cells are integers, and their functions those of
the official kernels to the bit: a projection would multiply what others differ by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import int8, int16
from .. import language as kl
from ..language import f32, i8, i16, i32, i64, ptr, u8
from ..loops.recurrent_forms import LstmInt8
from . import Unmade, maker
from .cells import CHAINS, Cells, packed
from .fixed_int16 import HIGH, LOW, ONE, logistic, saturated, shifted, tanh
from .recurrent import layer_of

if TYPE_CHECKING:
    from ..loops.planning import Builder

GATE = 3  # integer bits of what goes into gates


@kl.family
def lstm_int8(work, gates_i: ptr[f32], gates_f: ptr[f32], gates_g: ptr[f32], gates_o: ptr[f32], weights: ptr[u8],
              projection: ptr[u8], bias: ptr[f32], h: ptr[i8], c: ptr[i16], y: ptr[i8], factors: ptr[f32],
              steps: i64, batch_pitch: i64, step_pitch: i64, cells: i64, outputs: i64, cell_clip: i32,
              output_clip: f32, *, rows: int, gates: int, projected: int, power: int):  # fmt: skip
    """An item is `rows` rows of the batch. batch_pitch, step_pitch: in rows of gates and of y, from one to the next.
    gates_*, bias: of whole numbers. power: cells have the scale 2^power.

    factors: of R h for i, f, g, o; of o * tanh(c); of the projection; then zero points: of what it multiplies, of h.
    Scratch: rows of h less its zero point, of c and of what is to be h, each a whole number of vectors and of chains.
    """
    lanes = work.lanes(f32)
    long = max(lanes, CHAINS)
    wide = (cells + (long - 1)) // long * long
    depth = (outputs + (long - 1)) // long * long
    room = kl.maximum(wide, depth)
    now, state, new = (work.scratch(f32) + part * rows * room for part in range(3))
    sources = ((gates_i,) if gates == 4 else ()) + (gates_f, gates_g, gates_o)
    of_gate = [factors[g] for g in range(4 - gates, 4)]
    to_hidden, to_output, hidden_zero, zero = (factors[4 + k] for k in range(4))
    first_gate = gates - 3  # where the forget gate is
    for item in work.items():
        for row in range(rows):
            for i in range(0, depth, lanes):
                mask = kl.first(kl.minimum(outputs - i, lanes), lanes)
                (now + row * room).store((h + (item * rows + row) * outputs).load(i, lanes, mask).to(f32) - zero, i)
            for i in range(0, wide, lanes):
                mask = kl.first(kl.minimum(cells - i, lanes), lanes)
                (state + row * room).store((c + (item * rows + row) * cells).load(i, lanes, mask).to(f32), i)
        for step in range(steps):
            w = packed(work.target, weights, True)
            for at in range(0, wide, lanes):
                mask = kl.first(kl.minimum(cells - at, lanes), lanes)
                sums = Cells(rows, gates, lanes)
                for row in range(rows):
                    for gate in range(gates):
                        sums.start(row, gate, kl.zeros(f32, lanes))
                w = sums.add(now, room, w, depth)
                for row in range(rows):
                    place = ((item * rows + row) * batch_pitch + step * step_pitch) * cells + at
                    z = []
                    for gate in range(gates):
                        inside = kl.round_even(sums.total(row, gate) * of_gate[gate])
                        outside = sources[gate].load(place, lanes, mask)
                        z.append(kl.to_int(kl.clamp(outside + inside, float(LOW), float(HIGH))))
                    before = kl.to_int((state + row * room).load(at, lanes))
                    forget, made = logistic(z[first_gate], GATE), tanh(z[first_gate + 1], GATE)
                    let_in = logistic(z[0], GATE) if gates == 4 else ONE - forget
                    after = saturated(shifted(forget * before, 15) + shifted(let_in * made, 30 + power))
                    after = kl.clamp(after, -cell_clip, cell_clip)
                    (state + row * room).store(after.to(f32), at)
                    if power >= -15:
                        squashed = tanh(after, 15 + power)
                    elif gates == 4:  # the official kernel has no tanh of such cells and takes what it finds
                        squashed = let_in
                    else:
                        squashed = tanh(shifted(after, -15 - power), 0)
                    out = (logistic(z[gates - 1], GATE) * squashed).to(f32)
                    out = kl.clamp(kl.round_even(out * to_hidden) + hidden_zero, -128.0, 127.0)
                    (new + row * room).store(out - (hidden_zero if projected else zero), at)
            if projected:
                p = packed(work.target, projection, True)
                for at in range(0, depth, lanes):
                    mask = kl.first(kl.minimum(outputs - at, lanes), lanes)
                    sums = Cells(rows, 1, lanes)
                    for row in range(rows):
                        sums.start(row, 0, bias.load(at, lanes, mask) if projected == 2 else kl.zeros(f32, lanes))
                    p = sums.add(new, room, p, wide)
                    for row in range(rows):
                        found = kl.clamp(kl.round_even(sums.total(row, 0) * to_output) + zero, -128.0, 127.0)
                        (now + row * room).store(kl.clamp(found, -output_clip, output_clip) - zero, at)
            else:
                now, new = new, now
            for row in range(rows):
                target = y + ((item * rows + row) * batch_pitch + step * step_pitch) * outputs
                _narrowed(target, now + row * room, zero, outputs, lanes)
        for row in range(rows):
            _narrowed(h + (item * rows + row) * outputs, now + row * room, zero, outputs, lanes)
            _narrowed(c + (item * rows + row) * cells, state + row * room, 0.0, cells, lanes)


def _narrowed(into: Any, source: Any, zero: Any, n: Any, lanes: int) -> None:
    """Whole numbers plus a zero point, as the integers they are."""
    for i in range(0, n, lanes):
        found = kl.to_int(source.load(i, lanes) + zero).to(into.dtype)
        into.store(found, i, mask=kl.first(kl.minimum(n - i, lanes), lanes))


@maker(LstmInt8)
def make_lstm(form: LstmInt8, build: Builder) -> None:
    """Weights are constants of int8."""
    y, gates = form.output, len(form.gates)
    if (form.h.dtype, form.c.dtype, y.dtype) != (int8, int16, int8):
        raise Unmade(f"an LSTM to {y!r}")
    steps, batch, cells, outputs, rows, room, given, turned = layer_of(form, int8, build)
    bias: Any = 0
    if len(form.projection) > 1:
        bias = build.constant(np.asarray(form.projection[1].constant, np.float32))
    pitches = [1, batch] if form.time_major else [steps, 1]
    missing = [0] * (4 - gates)
    code = lstm_int8.code(rows=rows, gates=gates, projected=len(form.projection), power=form.power)
    factors = build.constant(np.array(form.factors, np.float32))
    held = map(build.pointer, (form.h, form.c, y))
    words = [*missing, *map(build.pointer, form.gates), given, turned, bias, *held, factors, steps, *pitches, cells,
             outputs, *form.clips]  # fmt: skip
    build.step(code, words, batch // rows, scratch=3 * rows * room * 4, chunk=1)
