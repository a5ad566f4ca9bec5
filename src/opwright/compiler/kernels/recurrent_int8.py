"""Recurrence on integers: the steps of an LSTM of int8 with int16 cells in one kernel.

Lives here: the maker of LstmInt8, its family.
Not here: what gates get from the input, one product over all steps; the LSTM of floats (recurrent.py).

Weights and state are multiplied as float32, packed and summed as those of floats: with up to 1024 of them sums are
exact; what longer ones lose beyond 24 bits is a 500th of a step of what they are rounded to. All else are integers, and
the bits those of the official kernels: a projection or a normalisation would multiply what others differ by.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import int8, int16
from ...scalar.integer_lstm import GATE
from .. import language as kl
from ..language import f32, i8, i16, i32, i64, ptr, u8
from ..loops.recurrent_forms import LstmInt8
from . import Unmade, maker
from .cells import Cells, order_of, packed, whole
from .fixed_point import INT16, INT32
from .gates_int8 import Layer
from .recurrent import layer_of

if TYPE_CHECKING:
    from ..loops.planning import Builder

FAR = 1 << 20  # beyond int16, and its sums with int16 within int32


@kl.family
def lstm_int8(work, gates_i: ptr[i32], gates_f: ptr[i32], gates_g: ptr[i32], gates_o: ptr[i32], weights: ptr[u8],
              projection: ptr[u8], bias: ptr[i32], peeps: ptr[i16], norms: ptr[i32], numbers: ptr[i64], h: ptr[i8],
              c: ptr[i16], y: ptr[i8], steps: i64, batch_pitch: i64, step_pitch: i64, cells: i64, outputs: i64,
              cell_clip: i32, output_clip: i32,
              *, rows: int, gates: int, projected: int, power: int, peepholes: bool, normed: bool):  # fmt: skip
    """An item is `rows` rows of the batch. batch_pitch, step_pitch: in rows of gates and of y, from one to the next.
    power: cells have the scale 2^power.

    peeps: a row of cells for each gate that has one; norms: two rows for each gate. numbers: zero points of what is
    projected and of h; (m, e) of o tanh(c), of the projection, of each gate's G and of its R h; then those of a Layer.
    Scratch: rows of h less its zero point, of c, of what is to be h and, normed, of each gate's sums, each a whole
    number of vectors and of chains.
    """
    lanes = work.lanes(f32)
    wide, depth = whole(cells, lanes), whole(outputs, lanes)
    room = kl.maximum(wide, depth)
    now, state, new, kept = (work.scratch(f32) + part * rows * room for part in range(4))
    sources = ((gates_i,) if gates == 4 else ()) + (gates_f, gates_g, gates_o)
    hidden_zero, zero = numbers[0].to(i32), numbers[1].to(i32)
    layer = Layer(gates, power, cells, cell_clip, peeps if peepholes else None, norms if normed else None,
                  numbers + 6 + 4 * gates)  # fmt: skip

    def factor(place: int) -> tuple[Any, Any]:
        return numbers[2 + 2 * place], numbers[3 + 2 * place]

    def scaled(x: Any, place: int) -> Any:
        """Sums of int32 by a factor, which may be far beyond int16."""
        return kl.clamp(INT32.rescale(x.to(i64), *factor(place)), -FAR, FAR).to(i32)

    def put_hidden(row: int, at: Any, squashed: Any, let_out: Any) -> None:
        """What is to be h, or is to be projected, of the cells from `at` on."""
        out = kl.clamp(scaled(let_out * squashed, 0) + hidden_zero, -128, 127)
        (new + row * room).store((out - (hidden_zero if projected else zero)).to(f32), at)

    for item in work.items():
        for row in range(rows):
            for i in range(0, depth, lanes):
                mask = kl.first(kl.minimum(outputs - i, lanes), lanes)
                before = (h + (item * rows + row) * outputs).load(i, lanes, mask).to(i32)
                (now + row * room).store((before - zero).to(f32), i)
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
                        inside = scaled(kl.to_int(sums.total(row, gate)), 3 + 2 * gate)
                        outside = INT16.saturated(scaled(sources[gate].load(place, lanes, mask), 2 + 2 * gate))
                        z.append(INT16.saturated(outside + inside))
                    if normed:
                        for gate in range(gates):
                            (kept + (row * gates + gate) * room).store(kl.select(mask, z[gate], 0).to(f32), at)
                    else:
                        memory = state + row * room
                        before = kl.to_int(memory.load(at, lanes))
                        z = [layer.seen(v, before, gate, at, mask) if gate < gates - 1 else v
                             for gate, v in enumerate(z)]  # fmt: skip
                        after, let_in = layer.after(z, before)
                        memory.store(after.to(f32), at)
                        let_out = INT16.logistic(layer.seen(z[-1], after, gates - 1, at, mask), GATE)
                        put_hidden(row, at, layer.squashed(after, let_in), let_out)
            if normed:
                for row in range(rows):
                    parts = [kept + (row * gates + gate) * room for gate in range(gates)]
                    layer.normed(parts, state + row * room, wide, lanes, functools.partial(put_hidden, row))
            if projected:
                p = packed(work.target, projection, True)
                for at in range(0, depth, lanes):
                    mask = kl.first(kl.minimum(outputs - at, lanes), lanes)
                    sums = Cells(rows, 1, lanes)
                    for row in range(rows):
                        sums.start(row, 0, kl.zeros(f32, lanes))
                    p = sums.add(new, room, p, wide)
                    for row in range(rows):
                        found = kl.to_int(sums.total(row, 0))
                        found = scaled(found + bias.load(at, lanes, mask) if projected == 2 else found, 1)
                        found = kl.clamp(kl.clamp(found + zero, -128, 127), -output_clip, output_clip)
                        (now + row * room).store((found - zero).to(f32), at)
            else:
                now, new = new, now
            for row in range(rows):
                target = y + ((item * rows + row) * batch_pitch + step * step_pitch) * outputs
                _narrowed(target, now + row * room, zero, outputs, lanes)
        for row in range(rows):
            _narrowed(h + (item * rows + row) * outputs, now + row * room, zero, outputs, lanes)
            _narrowed(c + (item * rows + row) * cells, state + row * room, 0, cells, lanes)


def _narrowed(into: Any, source: Any, zero: Any, n: Any, lanes: int) -> None:
    """Whole numbers plus a zero point, as the integers they are."""
    for i in range(0, n, lanes):
        found = (kl.to_int(source.load(i, lanes)) + zero).to(into.dtype)
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
        bias = build.constant(np.asarray(form.projection[1].constant, np.int32))
    _, *pitches = order_of(steps, batch, form.time_major, False)
    missing = [0] * (4 - gates)
    code = lstm_int8.code(rows=rows, gates=gates, projected=len(form.projection), power=form.power,
                          peepholes=bool(form.peepholes), normed=bool(form.norms))  # fmt: skip
    vectors: list[Any] = [0, 0]
    for i, (buffers, dtype) in enumerate(((form.peepholes, np.int16), (form.norms, np.int32))):
        if buffers:
            vectors[i] = build.constant(np.stack([np.asarray(b.constant, dtype) for b in buffers]))
    factors = (form.hidden_factor, form.output_factor, *form.gate_factors, *form.peephole_factors, *form.norm_factors)
    table = build.constant(np.array([*form.zeros, *(n for row in factors for n in row)], np.int64))
    held = map(build.pointer, (form.h, form.c, y))
    words = [*missing, *map(build.pointer, form.gates), given, turned, bias, *vectors, table, *held, steps,
             *pitches, cells, outputs, *form.clips]  # fmt: skip
    build.step(code, words, batch // rows, scratch=(3 + gates * bool(form.norms)) * rows * room * 4, chunk=1)
