"""Integer LSTM: all time steps of an int8 LSTM with int16 cells in one kernel.

Lives here: the selector of LstmInt8, its family; `Layer`: gates, peepholes, normalisation and new cell state.
Not here: the products of the inputs, computed over all steps at once; the LSTM of floats (lstm.py); the arithmetic
(opwright/scalar).

Weights and state are multiplied as float32, packed and accumulated like those of floats. Sums of up to 1024 products
are exact; longer ones lose less than 1/500 of the step that they are rounded to. All other arithmetic is on integers
and bit-exact with the official kernels, because a projection or normalisation would amplify any difference.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import int8, int16
from ...scalar.integer_layers import GATE, GateNormalization, IntegerCells
from .. import language as kl
from ..language import f32, i8, i16, i32, i64, ptr, u8
from ..loops.recurrent_ops import LstmInt8
from . import NoKernel, selector
from .fixed_point import INT16, INT32
from .lstm import layer_of
from .recurrent_cells import Cells, order_of, packed, whole

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder

FAR = 1 << 20  # beyond int16, and its sums with int16 within int32


@kl.family
def lstm_int8(
    work,
    gates_i: ptr[i32],
    gates_f: ptr[i32],
    gates_g: ptr[i32],
    gates_o: ptr[i32],
    weights: ptr[u8],
    projection: ptr[u8],
    bias: ptr[i32],
    peeps: ptr[i16],
    norms: ptr[i32],
    numbers: ptr[i64],
    h: ptr[i8],
    c: ptr[i16],
    y: ptr[i8],
    steps: i64,
    batch_pitch: i64,
    step_pitch: i64,
    cells: i64,
    outputs: i64,
    cell_clip: i32,
    output_clip: i32,
    *,
    rows: int,
    gates: int,
    projected: int,
    power: int,
    peepholes: bool,
    normed: bool,
):
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
    layer = Layer(
        gates, power, cells, cell_clip, peeps if peepholes else None, norms if normed else None, numbers + 6 + 4 * gates
    )

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
                        z = [
                            layer.seen(v, before, gate, at, mask) if gate < gates - 1 else v for gate, v in enumerate(z)
                        ]
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


@selector(LstmInt8)
def select_lstm(form: LstmInt8, build: Builder) -> None:
    """Weights are constants of int8."""
    y, gates = form.output, len(form.gates)
    if (form.h.dtype, form.c.dtype, y.dtype) != (int8, int16, int8):
        raise NoKernel(f"an LSTM to {y!r}")
    steps, batch, cells, outputs, rows, room, given, turned = layer_of(form, int8, build)
    bias: Any = 0
    if len(form.projection) > 1:
        bias = build.constant(np.asarray(form.projection[1].constant, np.int32))
    _, *pitches = order_of(steps, batch, form.time_major, False)
    missing = [0] * (4 - gates)
    code = lstm_int8.code(
        rows=rows,
        gates=gates,
        projected=len(form.projection),
        power=form.power,
        peepholes=bool(form.peepholes),
        normed=bool(form.norms),
    )
    vectors: list[Any] = [0, 0]
    for i, (buffers, dtype) in enumerate(((form.peepholes, np.int16), (form.norms, np.int32))):
        if buffers:
            vectors[i] = build.constant(np.stack([np.asarray(b.constant, dtype) for b in buffers]))
    factors = (form.hidden_factor, form.output_factor, *form.gate_factors, *form.peephole_factors, *form.norm_factors)
    table = build.constant(np.array([*form.zeros, *(n for row in factors for n in row)], np.int64))
    held = map(build.pointer, (form.h, form.c, y))
    words = [
        *missing,
        *map(build.pointer, form.gates),
        given,
        turned,
        bias,
        *vectors,
        table,
        *held,
        steps,
        *pitches,
        cells,
        outputs,
        *form.clips,
    ]
    build.step(code, words, batch // rows, scratch=(3 + gates * bool(form.norms)) * rows * room * 4, chunk=1)


NORMALIZATION = GateNormalization(kl)


class Layer:
    """The gates of one layer, for i, f, g, o, or of three for f, g, o. Sums are int32 that hold int16.

    peeps: a row of cells for each gate but g; norms: coefficients and bias, a row each, of each gate; or None. numbers:
    (m, e) of each peephole, then (m, e, least variance) of each gate's normalisation.
    """

    def __init__(self, gates: int, power: int, cells: Any, clip: Any, peeps: Any, norms: Any, numbers: Any) -> None:
        self.gates, self.first = gates, gates - 3  # where the forget gate is
        self.cells, self.clip, self.numbers = cells, clip, numbers
        self.arithmetic = IntegerCells(kl, power)
        self.peeps, self.norms = peeps, norms

    def seen(self, z: Any, state: Any, gate: int, at: Any, mask: Any) -> Any:
        """A gate's sums with what it sees of the cells from `at` on."""
        if self.peeps is None or gate == self.first + 1:
            return z
        place = gate if gate <= self.first else gate - 1
        weight = (self.peeps + place * self.cells).load(at, z.count, mask)
        more = INT32.rescale(state.to(i64) * weight.to(i64), self.numbers[2 * place], self.numbers[2 * place + 1])
        return INT16.saturated(z + kl.clamp(more, -65536, 65536).to(i32))

    def after(self, z: list[Any], before: Any) -> tuple[Any, Any]:
        """The new state of cells, and what the input gate lets in."""
        forget, made = INT16.logistic(z[self.first], GATE), INT16.tanh(z[self.first + 1], GATE)
        let_in = INT16.logistic(z[0], GATE) if self.gates == 4 else INT16.one - forget
        after = self.arithmetic.after(forget, before, let_in, made)
        return kl.clamp(after, -self.clip, self.clip), let_in

    def squashed(self, state: Any, let_in: Any) -> Any:
        """tanh of cells."""
        return self.arithmetic.squashed(state, let_in, coupled=self.gates == 3)

    def normed(self, parts: list[Any], state: Any, wide: Any, lanes: int, put: Callable[[Any, Any, Any], None]) -> None:
        """A row's new state, of sums that are normalised. parts: the gates' sums, state: the cells', `wide` numbers of
        float32 each. put(at, tanh of the cells, what the output gate lets out): takes the results."""
        last = self.gates - 1
        for gate in range(last):
            self._normalize(parts[gate], state, gate, wide, lanes)
        for at in range(0, wide, lanes):
            z = [kl.to_int(part.load(at, lanes)) for part in parts[:last]]
            after, let_in = self.after(z, kl.to_int(state.load(at, lanes)))
            parts[0].store(let_in.to(f32), at)  # nobody reads these sums any more
            mask = kl.first(kl.minimum(self.cells - at, lanes), lanes)
            state.store(kl.select(mask, after.to(f32), 0.0), at)
        self._normalize(parts[last], state, last, wide, lanes)
        for at in range(0, wide, lanes):
            let_out = INT16.logistic(kl.to_int(parts[last].load(at, lanes)), GATE)
            put(at, self.squashed(kl.to_int(state.load(at, lanes)), kl.to_int(parts[0].load(at, lanes))), let_out)

    def _normalize(self, z: Any, state: Any, gate: int, wide: Any, lanes: int) -> None:
        """Bring a gate's sums, with what it sees, to mean 0 and variance 1; then times coefficients, plus a bias."""
        total, squares, n = kl.zeros(i64, lanes), kl.zeros(i64, lanes), self.cells
        for at in range(0, wide, lanes):
            mask = kl.first(kl.minimum(n - at, lanes), lanes)
            v = self.seen(kl.to_int(z.load(at, lanes)), kl.to_int(state.load(at, lanes)), gate, at, mask)
            v = kl.select(mask, v, 0)
            z.store(v.to(f32), at)
            total, squares = total + v.to(i64), squares + v.to(i64) * v.to(i64)
        mean, variance = NORMALIZATION.moments(kl.reduce_add(total), kl.reduce_add(squares), n)
        peepholes = 0 if self.peeps is None else 2 * (self.gates - 1)
        m, e, least = (self.numbers[peepholes + 3 * gate + k] for k in range(3))
        deviation = NORMALIZATION.deviation(variance, least)
        rows = self.norms + 2 * gate * n
        for at in range(0, wide, lanes):
            mask = kl.first(kl.minimum(n - at, lanes), lanes)
            coefficient, bias = (vector.load(at, lanes, mask).to(i64) for vector in (rows, rows + n))
            sums = kl.to_int(z.load(at, lanes)).to(i64)
            z.store(NORMALIZATION.normalized(sums, mean, deviation, coefficient, bias, (m, e)).to(f32), at)
