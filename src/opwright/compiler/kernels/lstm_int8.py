"""Integer LSTM: all time steps of an int8 LSTM with int16 cells in one kernel.

Lives here: the selector of LstmInt8, its family; `IntegerLstmGates`: gates, peepholes, normalization, cell update.
Not here: the products of the inputs, computed over all steps at once; the float LSTM (lstm.py); the arithmetic
(opwright/scalar).

Weights and state are multiplied as float32, packed and accumulated as in the float LSTM. Sums of up to 1024 products
are exact; longer ones err by less than 1/500 of their rounding step. All other arithmetic is on integers and bit-exact
with the official kernels, because a projection or normalization would amplify any difference.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import int8, int16
from ...scalar.fixed_point_layers import GATE, GateNormalization, IntegerCells
from .. import language as kl
from ..language import f32, i8, i16, i32, i64, ptr, u8
from ..loops.recurrent_ops import LstmInt8
from . import NoKernel, selector
from .lstm import layer_of
from .quantization import INT16, INT32
from .recurrent_cells import GateSums, packed_weights, padded_size, step_order, step_row

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

FAR = 1 << 20  # beyond int16, while sums with int16 remain within int32


@kl.family
def lstm_int8(
    work: Work,
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
) -> None:
    """Run an integer LSTM layer. A work item is `rows` rows of the batch.

    batch_pitch, step_pitch: in rows of gates and of y. power: the scale of cells is 2^power.
    peeps: a row of cells for each gate with a peephole; norms: two rows for each gate. numbers: zero points of the
    projection's input and of h; (m, e) of o tanh(c), of the projection, of each gate's G and R h; then those of
    IntegerLstmGates. Scratch: rows of h minus its zero point, of c, of the next h and, if normed, of each gate's sums,
    padded to vectors and chains.
    """
    lanes = work.lanes(f32)
    wide, depth = padded_size(cells, lanes), padded_size(outputs, lanes)
    room = kl.maximum(wide, depth)
    h_now, state, h_next, sums_memory = (work.scratch(f32) + part * rows * room for part in range(4))
    sources = ((gates_i,) if gates == 4 else ()) + (gates_f, gates_g, gates_o)
    hidden_zero, zero = numbers[0].to(i32), numbers[1].to(i32)
    layer = IntegerLstmGates(
        gates, power, cells, cell_clip, peeps if peepholes else None, norms if normed else None, numbers + 6 + 4 * gates
    )

    def factor(index: int) -> tuple[Value, Value]:
        return numbers[2 + 2 * index], numbers[3 + 2 * index]

    def scaled(x: Value, index: int) -> Value:
        """Multiply int32 sums by a factor; limit results far beyond int16."""
        return kl.clamp(INT32.rescale(x.to(i64), *factor(index)), -FAR, FAR).to(i32)

    def put_hidden(row: int, i: Any, squashed: Value, output_gate: Value) -> None:
        """Store a vector of the next h, or of the projection's input, from cell i on."""
        out = kl.clamp(scaled(output_gate * squashed, 0) + hidden_zero, -128, 127)
        (h_next + row * room).store((out - (hidden_zero if projected else zero)).to(f32), i)

    for item in work.items():
        for row in range(rows):
            for i in range(0, depth, lanes):
                mask = kl.tail_mask(outputs - i, lanes)
                before = (h + (item * rows + row) * outputs).load(i, lanes, mask).to(i32)
                (h_now + row * room).store((before - zero).to(f32), i)
            for i in range(0, wide, lanes):
                mask = kl.tail_mask(cells - i, lanes)
                (state + row * room).store((c + (item * rows + row) * cells).load(i, lanes, mask).to(f32), i)
        for step in range(steps):
            w = packed_weights(work.target, weights, True)
            for i in range(0, wide, lanes):
                mask = kl.tail_mask(cells - i, lanes)
                sums = GateSums(rows, gates, lanes)
                for row in range(rows):
                    for gate in range(gates):
                        sums.start(row, gate, kl.zeros(f32, lanes))
                w = sums.add(h_now, room, w, depth)
                for row in range(rows):
                    offset = step_row(item, row, rows, step, batch_pitch, step_pitch) * cells + i
                    z = []
                    for gate in range(gates):
                        recurrent_sum = scaled(kl.to_int(sums.total(row, gate)), 3 + 2 * gate)
                        input_sum = INT16.saturated(scaled(sources[gate].load(offset, lanes, mask), 2 + 2 * gate))
                        z.append(INT16.saturated(input_sum + recurrent_sum))
                    if normed:
                        for gate in range(gates):
                            (sums_memory + (row * gates + gate) * room).store(kl.select(mask, z[gate], 0).to(f32), i)
                    else:
                        row_state = state + row * room
                        before = kl.to_int(row_state.load(i, lanes))
                        last = gates - 1
                        z = [layer.add_peephole(z[gate], before, gate, i, mask) for gate in range(last)] + z[last:]
                        after, input_gate = layer.after(z, before)
                        row_state.store(after.to(f32), i)
                        output_gate = INT16.logistic(layer.add_peephole(z[-1], after, gates - 1, i, mask), GATE)
                        put_hidden(row, i, layer.squashed(after, input_gate), output_gate)
            if normed:
                for row in range(rows):
                    parts = [sums_memory + (row * gates + gate) * room for gate in range(gates)]
                    layer.normed(parts, state + row * room, wide, lanes, functools.partial(put_hidden, row))
            if projected:
                p = packed_weights(work.target, projection, True)
                for i in range(0, depth, lanes):
                    mask = kl.tail_mask(outputs - i, lanes)
                    sums = GateSums(rows, 1, lanes)
                    for row in range(rows):
                        sums.start(row, 0, kl.zeros(f32, lanes))
                    p = sums.add(h_next, room, p, wide)
                    for row in range(rows):
                        p_sum = kl.to_int(sums.total(row, 0))
                        p_sum = scaled(p_sum + bias.load(i, lanes, mask) if projected == 2 else p_sum, 1)
                        p_sum = kl.clamp(kl.clamp(p_sum + zero, -128, 127), -output_clip, output_clip)
                        (h_now + row * room).store((p_sum - zero).to(f32), i)
            else:
                h_now, h_next = h_next, h_now
            for row in range(rows):
                target = y + step_row(item, row, rows, step, batch_pitch, step_pitch) * outputs
                _store_integers(target, h_now + row * room, zero, outputs, lanes)
        for row in range(rows):
            _store_integers(h + (item * rows + row) * outputs, h_now + row * room, zero, outputs, lanes)
            _store_integers(c + (item * rows + row) * cells, state + row * room, 0, cells, lanes)


def _store_integers(into: Pointer, source: Pointer, zero: Any, n: Value, lanes: int) -> None:
    """Convert integers in float32 to the dtype of `into` and add a zero point."""
    for i in range(0, n, lanes):
        integers = (kl.to_int(source.load(i, lanes)) + zero).to(into.dtype)
        into.store(integers, i, mask=kl.tail_mask(n - i, lanes))


@selector(LstmInt8)
def select_lstm(form: LstmInt8, build: Builder) -> None:
    """Select for constant weights of int8."""
    y, gates = form.output, len(form.gates)
    if (form.h.dtype, form.c.dtype, y.dtype) != (int8, int16, int8):
        raise NoKernel(f"an LSTM to {y!r}")
    steps, batch, cells, outputs, rows, room, weights, projection = layer_of(form, int8, build)
    bias: Any = 0
    if len(form.projection) > 1:
        bias = build.constant(np.asarray(form.projection[1].constant, np.int32))
    _, *pitches = step_order(steps, batch, form.time_major, False)
    no_gates = [0] * (4 - gates)
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
    pointers = map(build.pointer, (form.h, form.c, y))
    words = [
        *no_gates,
        *map(build.pointer, form.gates),
        weights,
        projection,
        bias,
        *vectors,
        table,
        *pointers,
        steps,
        *pitches,
        cells,
        outputs,
        *form.clips,
    ]
    build.step(code, words, batch // rows, scratch=(3 + gates * bool(form.norms)) * rows * room * 4, chunk=1)


NORMALIZATION = GateNormalization(kl)


class IntegerLstmGates:
    """The gates of an integer LSTM layer: i, f, g, o, or f, g, o if coupled. Sums are int16 values in int32.

    peeps: a row of cells for each gate except g; norms: rows of coefficients and bias for each gate; or None. numbers:
    (m, e) of each peephole, then (m, e, variance limit) of each gate's normalization.
    """

    def __init__(self, gates: int, power: int, cells: Any, clip: Any, peeps: Any, norms: Any, numbers: Any) -> None:
        self.gates, self.first = gates, gates - 3  # the index of the forget gate
        self.cells, self.clip, self.numbers = cells, clip, numbers
        self.arithmetic = IntegerCells(kl, power)
        self.peeps, self.norms = peeps, norms

    def add_peephole(self, z: Value, state: Value, gate: int, i: Any, mask: Value) -> Value:
        """Add the peephole connections of a gate for the cells from `at` on."""
        if self.peeps is None or gate == self.first + 1:
            return z
        index = gate if gate <= self.first else gate - 1
        weight = (self.peeps + index * self.cells).load(i, z.count, mask)
        addend = INT32.rescale(state.to(i64) * weight.to(i64), self.numbers[2 * index], self.numbers[2 * index + 1])
        result: Value = INT16.saturated(z + kl.clamp(addend, -65536, 65536).to(i32))
        return result

    def after(self, z: list[Value], before: Value) -> tuple[Value, Value]:
        """Return the next state of cells and the input gate."""
        forget, candidate = INT16.logistic(z[self.first], GATE), INT16.tanh(z[self.first + 1], GATE)
        input_gate = INT16.logistic(z[0], GATE) if self.gates == 4 else INT16.one - forget
        after = self.arithmetic.after(forget, before, input_gate, candidate)
        return kl.clamp(after, -self.clip, self.clip), input_gate

    def squashed(self, state: Value, input_gate: Value) -> Value:
        """Return tanh of cells."""
        result: Value = self.arithmetic.squashed(state, input_gate, coupled=self.gates == 3)
        return result

    def normed(
        self, parts: list[Pointer], state: Pointer, wide: Value, lanes: int, put: Callable[[Any, Value, Value], None]
    ) -> None:
        """Compute the next state of a row with layer normalization.

        parts: the sums of each gate; state: of the cells; both `wide` float32. put(i, tanh of cells, output gate)
        receives the results.
        """
        last = self.gates - 1
        for gate in range(last):
            self._normalize(parts[gate], state, gate, wide, lanes)
        for i in range(0, wide, lanes):
            z = [kl.to_int(part.load(i, lanes)) for part in parts[:last]]
            after, input_gate = self.after(z, kl.to_int(state.load(i, lanes)))
            parts[0].store(input_gate.to(f32), i)  # these sums are not read again
            mask = kl.tail_mask(self.cells - i, lanes)
            state.store(kl.select(mask, after.to(f32), 0.0), i)
        self._normalize(parts[last], state, last, wide, lanes)
        for i in range(0, wide, lanes):
            output_gate = INT16.logistic(kl.to_int(parts[last].load(i, lanes)), GATE)
            put(i, self.squashed(kl.to_int(state.load(i, lanes)), kl.to_int(parts[0].load(i, lanes))), output_gate)

    def _normalize(self, z: Pointer, state: Pointer, gate: int, wide: Value, lanes: int) -> None:
        """Add a gate's peephole connections to its sums, normalize, multiply by coefficients and add a bias."""
        total, squares, n = kl.zeros(i64, lanes), kl.zeros(i64, lanes), self.cells
        for i in range(0, wide, lanes):
            mask = kl.tail_mask(n - i, lanes)
            v = self.add_peephole(kl.to_int(z.load(i, lanes)), kl.to_int(state.load(i, lanes)), gate, i, mask)
            v = kl.select(mask, v, 0)
            z.store(v.to(f32), i)
            total, squares = total + v.to(i64), squares + v.to(i64) * v.to(i64)
        mean, variance = NORMALIZATION.moments(kl.reduce_add(total), kl.reduce_add(squares), n)
        peepholes = 0 if self.peeps is None else 2 * (self.gates - 1)
        m, e, variance_limit = (self.numbers[peepholes + 3 * gate + k] for k in range(3))
        deviation = NORMALIZATION.deviation(variance, variance_limit)
        rows = self.norms + 2 * gate * n
        for i in range(0, wide, lanes):
            mask = kl.tail_mask(n - i, lanes)
            coefficient, bias = (vector.load(i, lanes, mask).to(i64) for vector in (rows, rows + n))
            sums = kl.to_int(z.load(i, lanes)).to(i64)
            z.store(NORMALIZATION.normalized(sums, mean, deviation, coefficient, bias, (m, e)).to(f32), i)
