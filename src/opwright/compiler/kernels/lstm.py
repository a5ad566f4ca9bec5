"""LSTM: all time steps in one kernel.

Lives here: the selector of Lstm, its family; packed LSTM weights.
Not here: the products of the inputs, computed over all steps at once; common parts of recurrent kernels
(recurrent_cells.py).

A work item is a few rows of the batch through all steps: their state stays in the L1 cache, and weights are read once
per step. Weights are packed by vectors of cells with the gates of a vector adjacent; one pass computes all gates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.dtypes import DType, float32, int8
from .. import language as kl
from ..language import f32, i64, ptr, u8
from ..loops.buffers import Buffer
from ..loops.recurrent_ops import Lstm, LstmInt8
from ..target import host
from . import NoKernel, selector
from .quantization import rounded_floats
from .recurrent_cells import (
    CHAINS,
    GateSums,
    activate,
    check_activation,
    clip,
    keeps_int8,
    layer_normalize,
    load_padded,
    packed_weights,
    padded_size,
    rows_per_item,
    sigmoid,
    step_order,
    step_row,
    store_row,
)

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder
    from ..loops.plans import Address


@kl.family
def lstm(
    work: Work,
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
) -> None:
    """Run an LSTM layer. A work item is `rows` rows of the batch.

    batch_pitch, step_pitch: in rows of gates and of y. diagonal: the recurrent weights of each gate are a vector.
    norms: coefficients and bias of each gate; scales: of the quantized weights of each gate, then of the projection.
    Scratch: rows of h, c and the next h, padded to vectors and chains; rounded rows; sums of gates to normalize.
    """
    lanes = work.lanes(f32)
    wide, depth = padded_size(cells, lanes), padded_size(outputs, lanes)
    room = kl.maximum(wide, depth)
    h_now, state, h_next, rounded, sums_memory = (work.scratch(f32) + part * rows * room for part in range(5))
    sources = ((gates_i,) if gates == 4 else ()) + (gates_f, gates_g, gates_o)
    peeps = ((peep_i,) if gates == 4 else ()) + (peep_f, peep_o)
    first_gate = gates - 3  # the index of the forget gate
    matrices, projection_matrix = (packed_weights(work.target, p, bool(rounding)) for p in (weights, projection))
    for item in work.items():
        for row in range(rows):
            load_padded(h_now + row * room, h + (item * rows + row) * outputs, outputs, depth, lanes)
            load_padded(state + row * room, c + (item * rows + row) * cells, cells, wide, lanes)
        for step in range(steps):
            w = matrices
            row_scales = _quantize_rows(h_now, rounded, rows, room, depth, lanes, "" if diagonal else rounding)
            for i in range(0, wide, lanes):
                mask = kl.tail_mask(cells - i, lanes)
                sums = GateSums(rows, gates, lanes)
                for row in range(rows):
                    offset = step_row(item, row, rows, step, batch_pitch, step_pitch) * cells + i
                    for gate in range(gates):
                        input_sum = sources[gate].load(offset, lanes, mask)
                        if diagonal:
                            vector = (weights.cast(f32, 4) + gate * cells).load(i, lanes, mask)
                            input_sum = kl.fma((h_now + row * room).load(i, lanes), vector, input_sum)
                        sums.start(row, gate, kl.zeros(f32, lanes) if rounding and not diagonal else input_sum)
                if not diagonal:
                    w = sums.add(rounded if rounding else h_now, room, w, depth)
                for row in range(rows):
                    z = [sums.total(row, gate) for gate in range(gates)]
                    if rounding and not diagonal:
                        offset = step_row(item, row, rows, step, batch_pitch, step_pitch) * cells + i
                        z = [
                            kl.fma(
                                z[gate],
                                kl.splat(row_scales[row] * scales[gate], lanes),
                                sources[gate].load(offset, lanes, mask),
                            )
                            for gate in range(gates)
                        ]
                    if normed:
                        for gate in range(gates):
                            (sums_memory + (row * gates + gate) * room).store(kl.select(mask, z[gate], 0.0), i)
                    else:
                        before = (state + row * room).load(i, lanes)
                        peep = [p.load(i, lanes, mask) for p in peeps] if peepholes else []
                        z_forget = kl.fma(before, peep[first_gate], z[first_gate]) if peepholes else z[first_gate]
                        forget = sigmoid(z_forget)
                        input_gate = 1.0 - forget
                        if gates == 4:
                            input_gate = sigmoid(kl.fma(before, peep[0], z[0]) if peepholes else z[0])
                        after = forget * before + input_gate * activate(activation, z[first_gate + 1])
                        after = clip(after, cell_clip)
                        z_out = kl.fma(after, peep[first_gate + 1], z[gates - 1]) if peepholes else z[gates - 1]
                        hidden_vector = sigmoid(z_out) * activate(activation, after)
                        # padding stays zero: infinity times the zero padding of weights would be NaN
                        (state + row * room).store(kl.select(mask, after, 0.0), i)
                        (h_next + row * room).store(kl.select(mask, hidden_vector, 0.0), i)
            if normed:
                for row in range(rows):
                    parts = [sums_memory + (row * gates + gate) * room for gate in range(gates)]
                    _normed_cells(
                        parts,
                        peeps if peepholes else (),
                        norms,
                        state + row * room,
                        h_next + row * room,
                        cells,
                        wide,
                        lanes,
                        activation,
                        cell_clip,
                    )
            if projected:
                p = projection_matrix
                row_scales = _quantize_rows(h_next, rounded, rows, room, wide, lanes, rounding)
                for i in range(0, depth, lanes):
                    mask = kl.tail_mask(outputs - i, lanes)
                    sums = GateSums(rows, 1, lanes)
                    for row in range(rows):
                        added = bias.load(i, lanes, mask) if projected == 2 else kl.zeros(f32, lanes)
                        sums.start(row, 0, kl.zeros(f32, lanes) if rounding else added)
                    p = sums.add(rounded if rounding else h_next, room, p, wide)
                    for row in range(rows):
                        z_projected = sums.total(row, 0)
                        if rounding:
                            added = bias.load(i, lanes, mask) if projected == 2 else kl.zeros(f32, lanes)
                            z_projected = kl.fma(z_projected, kl.splat(row_scales[row] * scales[gates], lanes), added)
                        (h_now + row * room).store(kl.select(mask, clip(z_projected, output_clip), 0.0), i)
            else:
                h_now, h_next = h_next, h_now
            for row in range(rows):
                target = y + step_row(item, row, rows, step, batch_pitch, step_pitch) * outputs
                store_row(target, h_now + row * room, outputs, lanes)
        for row in range(rows):
            store_row(h + (item * rows + row) * outputs, h_now + row * room, outputs, lanes)
            store_row(c + (item * rows + row) * cells, state + row * room, cells, lanes)


def _quantize_rows(
    x: Pointer, out: Pointer, rows: int, room: Value, n: Value, lanes: int, rounding: str
) -> list[Value]:
    """Quantize rows and return their scales; do nothing if `rounding` is empty."""
    if not rounding:
        return []
    return [rounded_floats(x + row * room, out + row * room, n, lanes, rounding == "symmetric") for row in range(rows)]


def _normed_cells(
    parts: list[Pointer],
    peeps: Sequence[Pointer],
    norms: Pointer,
    state: Pointer,
    next_hidden: Pointer,
    cells: Value,
    wide: Value,
    lanes: int,
    activation: str,
    limit: Value,
) -> None:
    """Compute the next state of a row with layer normalization.

    parts: the sums of each gate; norms: coefficients and bias of each gate; limit: of the cells' state.
    """
    gates = len(parts)
    first = gates - 3
    for gate in range(gates - 1):
        if peeps and gate != first + 1:
            _add_peephole(parts[gate], state, peeps[gate], cells, wide, lanes)
        layer_normalize(parts[gate], norms + gate * 2 * cells, cells, wide, lanes)
    for i in range(0, wide, lanes):
        mask = kl.tail_mask(cells - i, lanes)
        forget = sigmoid(parts[first].load(i, lanes))
        input_gate = sigmoid(parts[0].load(i, lanes)) if first else 1.0 - forget
        after = forget * state.load(i, lanes) + input_gate * activate(activation, parts[first + 1].load(i, lanes))
        state.store(kl.select(mask, clip(after, limit), 0.0), i)
    if peeps:
        _add_peephole(parts[gates - 1], state, peeps[first + 1], cells, wide, lanes)
    layer_normalize(parts[gates - 1], norms + (gates - 1) * 2 * cells, cells, wide, lanes)
    for i in range(0, wide, lanes):
        mask = kl.tail_mask(cells - i, lanes)
        hidden = sigmoid(parts[gates - 1].load(i, lanes)) * activate(activation, state.load(i, lanes))
        next_hidden.store(kl.select(mask, hidden, 0.0), i)


def _add_peephole(z: Pointer, state: Pointer, peep: Pointer, cells: Value, wide: Value, lanes: int) -> None:
    """Add the peephole connections of a gate to its sums."""
    for i in range(0, wide, lanes):
        mask = kl.tail_mask(cells - i, lanes)
        z.store(kl.fma(state.load(i, lanes), peep.load(i, lanes, mask), z.load(i, lanes)), i)


@selector(Lstm)
def select_lstm(form: Lstm, build: Builder) -> None:
    """Select for constant weights of float32, or of int8 with quantized rows."""
    y, gates = form.output, len(form.gates)
    check_activation(form.activation, f"an LSTM to {y!r}")
    dtype = int8 if form.rounding else float32
    steps, batch, cells, outputs, rows, room, weights, projection = layer_of(form, dtype, build)
    no_gates = [0] * (4 - gates)
    last, *pitches = step_order(steps, batch, form.time_major, form.backward)
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
    peeps = [*no_gates, *map(build.pointer, form.peepholes)] if form.peepholes else [0, 0, 0]
    bias = build.pointer(form.projection[1]) if len(form.projection) > 1 else 0
    states = map(build.pointer, (form.h, form.c))
    words = [
        *no_gates,
        *(build.pointer(g, last * cells) for g in form.gates),
        weights,
        *peeps,
        projection,
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


class LstmLayer(NamedTuple):
    """Sizes and packed weights of an LSTM layer.

    rows: of the batch per work item; room: elements of a padded row of the state; weights, projection: packed, or 0.
    """

    steps: int
    batch: int
    cells: int
    outputs: int
    rows: int
    room: int
    weights: Any
    projection: Any


def layer_of(form: Lstm | LstmInt8, dtype: DType, build: Builder) -> LstmLayer:
    """Return a layer with packed weights of this dtype. Raises NoKernel for computed weights and for slices."""
    weights, y = form.recurrent, form.output
    constants, dense = (*weights, *form.projection[:1]), (*form.gates, form.h, form.c, y)
    kinds = [(w, float32 if len(w.shape) == 1 else dtype) for w in constants]
    if any(w.constant is None or w.dtype is not kind for w, kind in kinds) or any(b.parent is not None for b in dense):
        raise NoKernel("an LSTM with computed weights, or of a slice")
    if len(y.shape) != 3 or not y.size or not weights[0].size:
        raise NoKernel(f"an empty LSTM, or one to {y!r}")
    cells, outputs = weights[0].shape if len(weights[0].shape) == 2 else weights[0].shape * 2
    steps, batch = y.shape[:2] if form.time_major else y.shape[1::-1]
    lanes = host().vector_bytes // 4
    wide, depth = padded_size(cells, lanes), padded_size(outputs, lanes)
    rows = rows_per_item(batch)
    if len(weights) * rows * CHAINS > 3 * host().registers // 4:
        rows = 1
    if len(weights[0].shape) == 1:
        packed = build.constant(np.stack([np.asarray(w.constant) for w in weights]))
    else:
        packed = pack_cells(weights, cells, outputs, wide, depth, lanes, build)
    projection = pack_cells(form.projection[:1], outputs, cells, depth, wide, lanes, build) if form.projection else 0
    return LstmLayer(steps, batch, cells, outputs, rows, max(wide, depth), packed, projection)


def pack_cells(
    matrices: tuple[Buffer, ...], n: int, k: int, n_wide: int, k_wide: int, lanes: int, build: Builder
) -> Address:
    """Pack matrices [n, k] as [vectors of n, k, matrices, lanes], padded with zeros, in their dtype or float32."""
    dtype = matrices[0].dtype.np if keeps_int8(host()) else np.float32

    def fill(out: np.ndarray) -> None:
        for i, m in enumerate(matrices):
            padded = np.zeros((n_wide, k_wide), dtype)
            padded[:n, :k] = m.constant
            out[:, :, i] = padded.reshape(n_wide // lanes, lanes, k_wide).transpose(0, 2, 1)

    shape = (n_wide // lanes, k_wide, len(matrices), lanes)
    return build.packed(shape, dtype, fill, key=(*matrices, "vectors of cells", lanes))
