"""LSTM: all time steps in one kernel.

Lives here: the selector of Lstm, its family; packed LSTM weights.
Not here: the products of the inputs, computed over all steps at once; what recurrent kernels share
(recurrent_cells.py).

A work item is a few rows of the batch, carried through all steps: their state stays in the first-level cache, and
weights are read once a step. Weights are packed by vectors of cells, the gates of a vector adjacent, so that one pass
over them computes all that the new cells need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import DType, float32, int8
from .. import language as kl
from ..language import f32, i64, ptr, u8
from ..loops.buffers import Buffer
from ..loops.recurrent_ops import Lstm, LstmInt8
from ..target import host
from . import NoKernel, selector
from .dynamic_quantization import rounded_floats
from .recurrent_cells import (
    CHAINS,
    Cells,
    activated,
    check_activation,
    clipped,
    copied,
    normalized,
    order_of,
    packed,
    rows_together,
    sigmoid,
    stays_narrow,
    whole,
    written,
)

if TYPE_CHECKING:
    from ..loops.plan_builder import Builder


@kl.family
def lstm(
    work,
    gates_i: ptr[f32],
    gates_f: ptr[f32],
    gates_g: ptr[f32],
    gates_o: ptr[f32],
    weights: ptr[u8],
    peep_i: ptr[f32],
    peep_f: ptr[f32],
    peep_o: ptr[f32],
    projection: ptr[u8],
    bias: ptr[f32],
    norms: ptr[f32],
    scales: ptr[f32],
    h: ptr[f32],
    c: ptr[f32],
    y: ptr[f32],
    steps: i64,
    batch_pitch: i64,
    step_pitch: i64,
    cells: i64,
    outputs: i64,
    cell_clip: f32,
    output_clip: f32,
    *,
    rows: int,
    gates: int,
    peepholes: bool,
    projected: int,
    activation: str,
    normed: bool,
    rounding: str,
    diagonal: bool,
):
    """An item is `rows` rows of the batch. batch_pitch, step_pitch: in rows of gates and of y, from one to the next.
    diagonal: weights has a vector of cells for each gate.
    norms: coefficients and bias of each gate; scales: what one of the weights stands for, of each gate and then of the
    projection.

    Scratch: rows of h, of c and of what is to be h, each a whole number of vectors and of chains long; rounded rows; of
    each gate what is to be normalised.
    """
    lanes = work.lanes(f32)
    wide, depth = whole(cells, lanes), whole(outputs, lanes)
    room = kl.maximum(wide, depth)
    now, state, new, rounded, kept = (work.scratch(f32) + part * rows * room for part in range(5))
    sources = ((gates_i,) if gates == 4 else ()) + (gates_f, gates_g, gates_o)
    peeps = ((peep_i,) if gates == 4 else ()) + (peep_f, peep_o)
    first_gate = gates - 3  # where the forget gate is
    matrices, projection = (packed(work.target, p, bool(rounding)) for p in (weights, projection))
    for item in work.items():
        for row in range(rows):
            copied(now + row * room, h + (item * rows + row) * outputs, outputs, depth, lanes)
            copied(state + row * room, c + (item * rows + row) * cells, cells, wide, lanes)
        for step in range(steps):
            w = matrices
            unit = _rounded(now, rounded, rows, room, depth, lanes, "" if diagonal else rounding)
            for at in range(0, wide, lanes):
                mask = kl.first(kl.minimum(cells - at, lanes), lanes)
                sums = Cells(rows, gates, lanes)
                for row in range(rows):
                    place = ((item * rows + row) * batch_pitch + step * step_pitch) * cells + at
                    for gate in range(gates):
                        outside = sources[gate].load(place, lanes, mask)
                        if diagonal:
                            vector = (weights.cast(f32, 4) + gate * cells).load(at, lanes, mask)
                            outside = kl.fma((now + row * room).load(at, lanes), vector, outside)
                        sums.start(row, gate, kl.zeros(f32, lanes) if rounding and not diagonal else outside)
                if not diagonal:
                    w = sums.add(rounded if rounding else now, room, w, depth)
                for row in range(rows):
                    z = [sums.total(row, gate) for gate in range(gates)]
                    if rounding and not diagonal:
                        place = ((item * rows + row) * batch_pitch + step * step_pitch) * cells + at
                        z = [
                            kl.fma(
                                z[gate],
                                kl.splat(unit[row] * scales[gate], lanes),
                                sources[gate].load(place, lanes, mask),
                            )
                            for gate in range(gates)
                        ]
                    if normed:
                        for gate in range(gates):
                            (kept + (row * gates + gate) * room).store(kl.select(mask, z[gate], 0.0), at)
                    else:
                        before = (state + row * room).load(at, lanes)
                        seen = [p.load(at, lanes, mask) for p in peeps] if peepholes else []
                        z_forget = kl.fma(before, seen[first_gate], z[first_gate]) if peepholes else z[first_gate]
                        forget = sigmoid(z_forget)
                        let_in = 1.0 - forget
                        if gates == 4:
                            let_in = sigmoid(kl.fma(before, seen[0], z[0]) if peepholes else z[0])
                        after = forget * before + let_in * activated(activation, z[first_gate + 1])
                        after = clipped(after, cell_clip)
                        z_out = kl.fma(after, seen[first_gate + 1], z[gates - 1]) if peepholes else z[gates - 1]
                        there = sigmoid(z_out) * activated(activation, after)
                        # behind the last cell stay zeros: an infinity times the zeros of the weights there is NaN
                        (state + row * room).store(kl.select(mask, after, 0.0), at)
                        (new + row * room).store(kl.select(mask, there, 0.0), at)
            if normed:
                for row in range(rows):
                    parts = [kept + (row * gates + gate) * room for gate in range(gates)]
                    _normed_cells(
                        parts,
                        peeps if peepholes else (),
                        norms,
                        state + row * room,
                        new + row * room,
                        cells,
                        wide,
                        lanes,
                        activation,
                        cell_clip,
                    )
            if projected:
                p = projection
                unit = _rounded(new, rounded, rows, room, wide, lanes, rounding)
                for at in range(0, depth, lanes):
                    mask = kl.first(kl.minimum(outputs - at, lanes), lanes)
                    sums = Cells(rows, 1, lanes)
                    for row in range(rows):
                        added = bias.load(at, lanes, mask) if projected == 2 else kl.zeros(f32, lanes)
                        sums.start(row, 0, kl.zeros(f32, lanes) if rounding else added)
                    p = sums.add(rounded if rounding else new, room, p, wide)
                    for row in range(rows):
                        z_projected = sums.total(row, 0)
                        if rounding:
                            added = bias.load(at, lanes, mask) if projected == 2 else kl.zeros(f32, lanes)
                            z_projected = kl.fma(z_projected, kl.splat(unit[row] * scales[gates], lanes), added)
                        (now + row * room).store(kl.select(mask, clipped(z_projected, output_clip), 0.0), at)
            else:
                now, new = new, now
            for row in range(rows):
                target = y + ((item * rows + row) * batch_pitch + step * step_pitch) * outputs
                written(target, now + row * room, outputs, lanes)
        for row in range(rows):
            written(h + (item * rows + row) * outputs, now + row * room, outputs, lanes)
            written(c + (item * rows + row) * cells, state + row * room, cells, lanes)


def _rounded(x: Any, out: Any, rows: int, room: Any, n: Any, lanes: int, rounding: str) -> list[Any]:
    """Round rows, where they are to be; their scales."""
    if not rounding:
        return []
    return [rounded_floats(x + row * room, out + row * room, n, lanes, rounding == "symmetric") for row in range(rows)]


def _normed_cells(
    parts: list[Any],
    peeps: Any,
    norms: Any,
    state: Any,
    new: Any,
    cells: Any,
    wide: Any,
    lanes: int,
    activation: str,
    clip: Any,
) -> None:
    """A row's new state, of gates that are normalised. parts: the gates' sums; norms: of each 2 cells numbers."""
    gates = len(parts)
    first = gates - 3
    for gate in range(gates - 1):
        if peeps and gate != first + 1:
            _seen(parts[gate], state, peeps[gate], cells, wide, lanes)
        normalized(parts[gate], norms + gate * 2 * cells, cells, wide, lanes)
    for at in range(0, wide, lanes):
        mask = kl.first(kl.minimum(cells - at, lanes), lanes)
        forget = sigmoid(parts[first].load(at, lanes))
        let_in = sigmoid(parts[0].load(at, lanes)) if first else 1.0 - forget
        after = forget * state.load(at, lanes) + let_in * activated(activation, parts[first + 1].load(at, lanes))
        state.store(kl.select(mask, clipped(after, clip), 0.0), at)
    if peeps:
        _seen(parts[gates - 1], state, peeps[first + 1], cells, wide, lanes)
    normalized(parts[gates - 1], norms + (gates - 1) * 2 * cells, cells, wide, lanes)
    for at in range(0, wide, lanes):
        mask = kl.first(kl.minimum(cells - at, lanes), lanes)
        there = sigmoid(parts[gates - 1].load(at, lanes)) * activated(activation, state.load(at, lanes))
        new.store(kl.select(mask, there, 0.0), at)


def _seen(z: Any, state: Any, peep: Any, cells: Any, wide: Any, lanes: int) -> None:
    """Add what a gate sees of the cells' state."""
    for at in range(0, wide, lanes):
        mask = kl.first(kl.minimum(cells - at, lanes), lanes)
        z.store(kl.fma(state.load(at, lanes), peep.load(at, lanes, mask), z.load(at, lanes)), at)


@selector(Lstm)
def select_lstm(form: Lstm, build: Builder) -> None:
    """Weights are constants of float32."""
    y, gates = form.output, len(form.gates)
    check_activation(form.activation, f"an LSTM to {y!r}")
    steps, batch, cells, outputs, rows, room, given, turned = layer_of(form, int8 if form.rounding else float32, build)
    missing = [0] * (4 - gates)
    last, *pitches = order_of(steps, batch, form.time_major, form.backward)
    code = lstm.code(
        rows=rows,
        gates=gates,
        peepholes=bool(form.peepholes),
        projected=len(form.projection),
        activation=form.activation,
        normed=bool(form.norms),
        rounding=form.rounding,
        diagonal=len(form.recurrent[0].shape) == 1,
    )
    norms = build.constant(np.stack([np.asarray(b.constant) for b in form.norms])) if form.norms else 0
    scales = build.constant(np.array(form.scales, np.float32)) if form.rounding else 0
    peeps = [*missing, *map(build.pointer, form.peepholes)] if form.peepholes else [0, 0, 0]
    bias = build.pointer(form.projection[1]) if len(form.projection) > 1 else 0
    states = map(build.pointer, (form.h, form.c))
    words = [
        *missing,
        *(build.pointer(g, last * cells) for g in form.gates),
        given,
        *peeps,
        turned,
        bias,
        norms,
        scales,
        *states,
        build.pointer(y, last * outputs),
        steps,
        *pitches,
        cells,
        outputs,
        *form.clips,
    ]
    build.step(code, words, batch // rows, scratch=(4 + gates * bool(form.norms)) * rows * room * 4, chunk=1)


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
    """The layer, with its weights, of this dtype, packed. Raises NoKernel for weights that are computed, and slices."""
    weights, y = form.recurrent, form.output
    known, dense = (*weights, *form.projection[:1]), (*form.gates, form.h, form.c, y)
    kinds = [(w, float32 if len(w.shape) == 1 else dtype) for w in known]
    if any(w.constant is None or w.dtype is not kind for w, kind in kinds) or any(b.parent is not None for b in dense):
        raise NoKernel("an LSTM whose weights are computed, or of a slice")
    if len(y.shape) != 3 or not y.size or not weights[0].size:
        raise NoKernel(f"an LSTM of nothing, or to {y!r}")
    cells, outputs = weights[0].shape if len(weights[0].shape) == 2 else weights[0].shape * 2
    steps, batch = y.shape[:2] if form.time_major else y.shape[1::-1]
    lanes = host().vector_bytes // 4
    wide, depth = whole(cells, lanes), whole(outputs, lanes)
    rows = rows_together(batch)
    if len(weights) * rows * CHAINS > 3 * host().registers // 4:
        rows = 1
    if len(weights[0].shape) == 1:
        given = build.constant(np.stack([np.asarray(w.constant) for w in weights]))
    else:
        given = packed_cells(weights, cells, outputs, wide, depth, lanes, build)
    turned = packed_cells(form.projection[:1], outputs, cells, depth, wide, lanes, build) if form.projection else 0
    return Layer(steps, batch, cells, outputs, rows, max(wide, depth), given, turned)


def packed_cells(
    matrices: tuple[Buffer, ...], n: int, k: int, n_wide: int, k_wide: int, lanes: int, build: Builder
) -> Any:
    """Matrices [n, k] of one dtype, or float32, as [vectors of n, k, matrices, lanes], with zeros behind their ends."""
    dtype = matrices[0].dtype.np if stays_narrow(host()) else np.float32

    def fill(out: np.ndarray) -> None:
        for i, m in enumerate(matrices):
            whole = np.zeros((n_wide, k_wide), dtype)
            whole[:n, :k] = m.constant
            out[:, :, i] = whole.reshape(n_wide // lanes, lanes, k_wide).transpose(0, 2, 1)

    shape = (n_wide // lanes, k_wide, len(matrices), lanes)
    return build.packed(shape, dtype, fill, key=(*matrices, "vectors of cells", lanes))
