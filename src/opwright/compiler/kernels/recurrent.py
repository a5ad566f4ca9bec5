"""Recurrence: the steps of an LSTM in one kernel.

Lives here: the maker of Lstm, its family; what the LSTM of integers (recurrent_int8.py) shares with it.
Not here: what gates get from the input, one product over all steps.

An item is some rows of the batch, which go through all steps: their state stays in the first cache, weights are read
once a step. Weights are packed by vectors of cells, for each of them the gates side by side, so that one turn of
products gives all that new cells need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import DType, float32
from .. import language as kl
from ..language import f32, i64, ptr
from ..loops.forms import Buffer
from ..loops.recurrent_forms import Lstm, LstmInt8
from . import Unmade, maker
from .expression import OPERATIONS

if TYPE_CHECKING:
    from ..loops.planning import Builder

CHAINS = 2  # sums a vector of gates, so that products need not wait for each other
BOUNDS = {"RELU": (0.0, None), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}


def activated(name: str, x: Any) -> Any:
    if name == "TANH":
        return OPERATIONS["tanh"](f32, x)
    if name in BOUNDS:
        low, high = BOUNDS[name]
        x = kl.maximum(low, x)
        return x if high is None else kl.minimum(high, x)
    return x


def sigmoid(x: Any) -> Any:
    return OPERATIONS["sigmoid"](f32, x)


class Cells:
    """One vector of cells of some rows: the gates' sums."""

    def __init__(self, rows: int, gates: int, lanes: int) -> None:
        self.rows, self.gates, self.lanes = rows, gates, lanes
        self.sums = kl.registers(f32, lanes, rows, gates, CHAINS)

    def start(self, row: int, gate: int, v: Any) -> None:
        """What a gate's sum begins with."""
        self.sums[row, gate, 0] = v
        for chain in range(1, CHAINS):
            self.sums[row, gate, chain] = kl.zeros(f32, self.lanes)

    def add(self, h: Any, pitch: Any, weights: Any, depth: Any) -> Any:
        """Add the products of rows of h, `depth` numbers each, with packed weights; gives where the weights end."""
        w = weights
        for k in range(0, depth, CHAINS):
            for chain in range(CHAINS):
                values = [(h + (row * pitch + k))[chain].splat(self.lanes) for row in range(self.rows)]
                for gate in range(self.gates):
                    v = w.load((chain * self.gates + gate) * self.lanes, self.lanes)
                    for row in range(self.rows):
                        self.sums[row, gate, chain] = kl.fma(values[row], v, self.sums[row, gate, chain])
            w = w + CHAINS * self.gates * self.lanes
        return w

    def total(self, row: int, gate: int) -> Any:
        """A gate's sum."""
        found = self.sums[row, gate, 0]
        for chain in range(1, CHAINS):
            found = found + self.sums[row, gate, chain]
        return found


@kl.family
def lstm(work, gates_i: ptr[f32], gates_f: ptr[f32], gates_g: ptr[f32], gates_o: ptr[f32], weights: ptr[f32],
         peep_i: ptr[f32], peep_f: ptr[f32], peep_o: ptr[f32], projection: ptr[f32], bias: ptr[f32], h: ptr[f32],
         c: ptr[f32], y: ptr[f32], steps: i64, batch_pitch: i64, step_pitch: i64, cells: i64, outputs: i64,
         cell_clip: f32, output_clip: f32,
         *, rows: int, gates: int, peepholes: bool, projected: int, activation: str):  # fmt: skip
    """An item is `rows` rows of the batch. batch_pitch, step_pitch: in rows of gates and of y, from one to the next.

    Scratch: rows of h, of c and of what is to be h, each a whole number of vectors and of chains long.
    """
    lanes = work.lanes(f32)
    long = max(lanes, CHAINS)
    wide = (cells + (long - 1)) // long * long
    depth = (outputs + (long - 1)) // long * long
    room = kl.maximum(wide, depth)
    now, state, new = (work.scratch(f32) + part * rows * room for part in range(3))
    sources = ((gates_i,) if gates == 4 else ()) + (gates_f, gates_g, gates_o)
    peeps = ((peep_i,) if gates == 4 else ()) + (peep_f, peep_o)
    first_gate = gates - 3  # where the forget gate is
    for item in work.items():
        for row in range(rows):
            copied(now + row * room, h + (item * rows + row) * outputs, outputs, depth, lanes)
            copied(state + row * room, c + (item * rows + row) * cells, cells, wide, lanes)
        for step in range(steps):
            w = weights
            for at in range(0, wide, lanes):
                mask = kl.first(kl.minimum(cells - at, lanes), lanes)
                sums = Cells(rows, gates, lanes)
                for row in range(rows):
                    place = ((item * rows + row) * batch_pitch + step * step_pitch) * cells + at
                    for gate in range(gates):
                        sums.start(row, gate, sources[gate].load(place, lanes, mask))
                w = sums.add(now, room, w, depth)
                for row in range(rows):
                    before = (state + row * room).load(at, lanes)
                    seen = [p.load(at, lanes, mask) for p in peeps] if peepholes else []
                    z = [sums.total(row, gate) for gate in range(gates)]
                    forget = sigmoid(kl.fma(before, seen[first_gate], z[first_gate]) if peepholes else z[first_gate])
                    let_in = 1.0 - forget
                    if gates == 4:
                        let_in = sigmoid(kl.fma(before, seen[0], z[0]) if peepholes else z[0])
                    after = forget * before + let_in * activated(activation, z[first_gate + 1])
                    after = _clipped(after, cell_clip)
                    z_out = kl.fma(after, seen[first_gate + 1], z[gates - 1]) if peepholes else z[gates - 1]
                    there = sigmoid(z_out) * activated(activation, after)
                    # behind the last cell stay zeros: an infinity times the zeros of the weights there is NaN
                    (state + row * room).store(kl.select(mask, after, 0.0), at)
                    (new + row * room).store(kl.select(mask, there, 0.0), at)
            if projected:
                p = projection
                for at in range(0, depth, lanes):
                    mask = kl.first(kl.minimum(outputs - at, lanes), lanes)
                    sums = Cells(rows, 1, lanes)
                    for row in range(rows):
                        sums.start(row, 0, bias.load(at, lanes, mask) if projected == 2 else kl.zeros(f32, lanes))
                    p = sums.add(new, room, p, wide)
                    for row in range(rows):
                        (now + row * room).store(kl.select(mask, _clipped(sums.total(row, 0), output_clip), 0.0), at)
            else:
                now, new = new, now
            for row in range(rows):
                target = y + ((item * rows + row) * batch_pitch + step * step_pitch) * outputs
                written(target, now + row * room, outputs, lanes)
        for row in range(rows):
            written(h + (item * rows + row) * outputs, now + row * room, outputs, lanes)
            written(c + (item * rows + row) * cells, state + row * room, cells, lanes)


def _clipped(x: Any, most: Any) -> Any:
    """Within -most..most, where that is above 0; NaN stays."""
    return kl.select(most > 0.0, kl.minimum(most, kl.maximum(-most, x)), x)


def copied(into: Any, source: Any, n: Any, whole: Any, lanes: int) -> None:
    """n numbers, then zeros up to `whole`, a whole number of vectors."""
    for i in range(0, whole, lanes):
        into.store(source.load(i, lanes, kl.first(kl.minimum(n - i, lanes), lanes)), i)


def written(into: Any, source: Any, n: Any, lanes: int) -> None:
    for i in range(0, n, lanes):
        into.store(source.load(i, lanes), i, mask=kl.first(kl.minimum(n - i, lanes), lanes))


@maker(Lstm)
def make_lstm(form: Lstm, build: Builder) -> None:
    """Weights are constants of float32."""
    y, gates = form.output, len(form.gates)
    if form.activation not in BOUNDS and form.activation not in ("TANH", "NONE"):
        raise Unmade(f"an LSTM with {form.activation} to {y!r}")
    steps, batch, cells, outputs, rows, room, packed, turned = layer_of(form, float32, build)
    missing = [0] * (4 - gates)
    pitches = [1, batch] if form.time_major else [steps, 1]
    last = (steps - 1) * pitches[1] if form.backward else 0  # the row of the first step that is taken
    if form.backward:
        pitches[1] = -pitches[1]
    code = lstm.code(rows=rows, gates=gates, peepholes=bool(form.peepholes), projected=len(form.projection),
                     activation=form.activation)  # fmt: skip
    peeps = [*missing, *map(build.pointer, form.peepholes)] if form.peepholes else [0, 0, 0]
    bias = build.pointer(form.projection[1]) if len(form.projection) > 1 else 0
    states = map(build.pointer, (form.h, form.c))
    words = [*missing, *(build.pointer(g, last * cells) for g in form.gates), packed, *peeps, turned, bias, *states,
             build.pointer(y, last * outputs), steps, *pitches, cells, outputs, *form.clips]  # fmt: skip
    build.step(code, words, batch // rows, scratch=3 * rows * room * 4, chunk=1)


class Layer(NamedTuple):
    """An LSTM's layer as kernels take it. rows: of the batch that go together; room: numbers of a row of the state, in
    whole vectors and chains; weights, projection: packed; 0 where there is none."""

    steps: int
    batch: int
    cells: int
    outputs: int
    rows: int
    room: int
    weights: Any
    projection: Any


def layer_of(form: Lstm | LstmInt8, dtype: DType, build: Builder) -> Layer:
    """The layer, with its weights, of this dtype, packed. Raises Unmade for weights that are computed, and slices."""
    from ..target import host

    weights, y = form.recurrent, form.output
    known, dense = (*weights, *form.projection[:1]), (*form.gates, form.h, form.c, y)
    if any(w.constant is None or w.dtype is not dtype for w in known) or any(b.parent is not None for b in dense):
        raise Unmade("an LSTM whose weights are computed, or of a slice")
    if len(y.shape) != 3 or not y.size or not weights[0].size:
        raise Unmade(f"an LSTM of nothing, or to {y!r}")
    cells, outputs = weights[0].shape
    steps, batch = y.shape[:2] if form.time_major else y.shape[1::-1]
    lanes = host().vector_bytes // 4
    long = max(lanes, CHAINS)
    wide, depth = (-(-n // long) * long for n in (cells, outputs))
    rows = next(n for n in (4, 2, 1) if batch % n == 0)
    if len(weights) * rows * CHAINS > 3 * host().registers // 4:
        rows = 1
    packed = packed_cells(weights, cells, outputs, wide, depth, lanes, build)
    turned = packed_cells(form.projection[:1], outputs, cells, depth, wide, lanes, build) if form.projection else 0
    return Layer(steps, batch, cells, outputs, rows, max(wide, depth), packed, turned)


def packed_cells(
    matrices: tuple[Buffer, ...], n: int, k: int, n_wide: int, k_wide: int, lanes: int, build: Builder
) -> Any:
    """Matrices [n, k] as [vectors of n, k, matrices, lanes], with zeros behind their ends."""

    def fill(out: np.ndarray) -> None:
        for i, m in enumerate(matrices):
            whole = np.zeros((n_wide, k_wide), np.float32)
            whole[:n, :k] = m.constant
            out[:, :, i] = whole.reshape(n_wide // lanes, lanes, k_wide).transpose(0, 2, 1)

    shape = (n_wide // lanes, k_wide, len(matrices), lanes)
    return build.packed(shape, np.float32, fill, key=(*matrices, "vectors of cells", lanes))
