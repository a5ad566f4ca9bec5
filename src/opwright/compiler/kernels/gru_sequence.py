"""GRU for training: all steps of a batch in one kernel, and their gradients in another.

Lives here: the selectors of GruSequence and GruSequenceGrad, their families.
Not here: GRUs of files, whose weights are constants (rnn.py); the organization of work, which is the LSTM's
(lstm_sequence.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import language as kl
from ..language import f32, i64, ptr
from ..loops.recurrent_ops import GruSequence, GruSequenceGrad
from ..target import host
from . import selector
from .lstm_sequence import (
    add_sequence_step,
    pack_transposed,
    prefetch_earlier,
    prefetch_projections,
    previous_state,
    propagate,
    sequence_sizes,
)
from .recurrent_cells import GateSums, activate, in_row_groups, load_states, padded_size, sigmoid, store_states
from .rnn import pack_matrices

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder

GATES = 3


@kl.family
def gru_sequence(
    work: Work,
    x: ptr[f32],
    weights: ptr[f32],
    bias: ptr[f32],
    h0: ptr[f32],
    h: ptr[f32],
    last_h: ptr[f32],
    gates: ptr[f32],
    inner: ptr[f32],
    steps: i64,
    batch: i64,
    cells: i64,
    item_rows: i64,
    *,
    rows: int,
) -> None:
    """Run a GRU. A work item is `item_rows` rows of the batch. Scratch: the item's h and next h, padded."""
    lanes = work.lanes(f32)
    wide = padded_size(cells, lanes)
    h_now, h_next = (work.scratch(f32) + part * item_rows * wide for part in range(2))
    for item in work.items():
        first = item * item_rows
        count = kl.minimum(batch - first, item_rows)
        load_states(h_now, h0 + first * cells, count, cells, wide, lanes)
        for step in range(steps):
            base = step * batch + first
            sources, memory, targets = (x, bias), (h_now, h_next), (h, gates, inner)
            w = weights
            for i in range(0, wide, lanes):
                in_row_groups(count, rows, _advance, sources, w, memory, targets, base, i, cells, wide, batch, lanes)
                w = w + wide * GATES * lanes
            h_now, h_next = h_next, h_now
        store_states(last_h + first * cells, h_now, count, cells, wide, lanes)


def _advance(
    rows: int,
    first: Value,
    sources: tuple[Pointer, Pointer],
    weights: Pointer,
    memory: tuple[Pointer, Pointer],
    targets: tuple[Pointer, Pointer, Pointer],
    base: Value,
    i: Value | int,
    cells: Value,
    wide: Value,
    batch: Value,
    lanes: int,
) -> None:
    """Compute one vector of cells of some rows at a step. base: of the item's first row in x, h, gates and inner."""
    x, bias = sources
    h_now, h_next = (p + first * wide for p in memory)
    h, gates, inner = targets
    index = base + first
    mask = kl.tail_mask(cells - i, lanes)
    sums = GateSums(rows, GATES, lanes, 1)
    for gate in range(GATES):
        added = (bias + gate * cells).load(i, lanes, mask)
        for row in range(rows):
            sums.start(row, gate, added)
    prefetch_projections(x + index * GATES * cells, rows, GATES, i, cells, batch, lanes)
    sums.add(h_now, wide, weights, wide)
    for row in range(rows):
        projected = x + (index + row) * GATES * cells
        x_z, x_r, x_g = ((projected + gate * cells).load(i, lanes, mask) for gate in range(GATES))
        n = sums.total(row, 2)
        update, reset = sigmoid(x_z + sums.total(row, 0)), sigmoid(x_r + sums.total(row, 1))
        candidate = activate("TANH", kl.fma(reset, n, x_g))
        hidden = kl.fma(update, (h_now + row * wide).load(i, lanes) - candidate, candidate)
        # padding stays zero: infinity times the zero padding of weights would be NaN
        (h_next + row * wide).store(kl.select(mask, hidden, 0.0), i)
        (h + (index + row) * cells).store(hidden, i, mask)
        (inner + (index + row) * cells).store(n, i, mask)
        for gate, v in enumerate((update, reset, candidate)):
            (gates + ((index + row) * GATES + gate) * cells).store(v, i, mask)


@selector(GruSequence)
def select_gru_sequence(form: GruSequence, build: Builder) -> None:
    sizes = sequence_sizes(form, form.x, GATES)
    lanes = host().vector_bytes // 4
    wide = padded_size(sizes.cells, lanes)
    weights = pack_matrices(form.recurrent, 0, GATES, sizes.cells, wide, lanes, build)
    operands = [build.pointer(form.x), weights, *(build.pointer(b) for b in (form.bias, form.h))]
    add_sequence_step(form, build, gru_sequence.code(rows=sizes.rows), operands, sizes, 2 * wide)


@kl.family
def gru_sequence_grad(
    work: Work,
    dh: ptr[f32],
    last_h: ptr[f32],
    weights: ptr[f32],
    h0: ptr[f32],
    h: ptr[f32],
    gates: ptr[f32],
    inner: ptr[f32],
    dx: ptr[f32],
    dn: ptr[f32],
    dh0: ptr[f32],
    steps: i64,
    batch: i64,
    cells: i64,
    item_rows: i64,
    *,
    rows: int,
    vectors: int,
) -> None:
    """Compute the gradients of a GRU. A work item is `item_rows` rows of the batch. Scratch: the item's gradient of the
    state after the step through n, and through the update gate, padded to groups of vectors."""
    lanes = work.lanes(f32)
    group, depth = vectors * lanes, GATES * cells
    wide = (cells + (group - 1)) // group * group
    p, kept = (work.scratch(f32) + part * item_rows * wide for part in range(2))
    for item in work.items():
        first = item * item_rows
        count = kl.minimum(batch - first, item_rows)
        load_states(p, last_h + first * cells, count, cells, wide, lanes)
        for i in range(0, count * wide, lanes):
            kept.store(kl.zeros(f32, lanes), i)
        for back in range(steps):
            step = steps - 1 - back
            base = step * batch + first
            for row in range(count):
                index = base + row
                for i in range(0, cells, lanes):
                    mask = kl.tail_mask(cells - i, lanes)
                    previous = previous_state(h, h0 + (first + row) * cells, step, index - batch, i, cells, lanes, mask)
                    memory, sources = (p + row * wide, kept + row * wide), (dh, h, gates, inner, dx, dn)
                    _differentiate(memory, sources, previous, index, i, cells, batch, lanes, mask)
            propagate(dn + base * depth, weights, p, count, depth, wide, lanes, rows, vectors)
        for row in range(count):
            for i in range(0, cells, lanes):
                mask = kl.tail_mask(cells - i, lanes)
                total = (p + row * wide).load(i, lanes) + (kept + row * wide).load(i, lanes)
                (dh0 + (first + row) * cells).store(total, i, mask)


def _differentiate(
    memory: tuple[Pointer, Pointer],
    sources: tuple[Pointer, Pointer, Pointer, Pointer, Pointer, Pointer],
    previous: Value,
    index: Value,
    i: Value | int,
    cells: Value,
    batch: Value,
    lanes: int,
    mask: Value,
) -> None:
    """Compute dx and dn of one vector of cells of a row, and the gradient that the update gate keeps. previous: h of
    the step before."""
    p, kept = memory
    dh, h, gates, inner, dx, dn = sources
    row, gate_row = index * cells, index * GATES * cells
    update, reset, candidate = ((gates + gate_row + g * cells).load(i, lanes, mask) for g in range(GATES))
    before = row - batch * cells
    states = (dh + before, inner + before, h + (before - batch * cells))
    prefetch_earlier(i, gates + GATES * before, GATES, cells, *states)
    of_hidden = (dh + row).load(i, lanes, mask) + p.load(i, lanes) + kept.load(i, lanes)
    of_candidate = of_hidden * (1.0 - update) * (1.0 - candidate * candidate)
    of_update = of_hidden * (previous - candidate) * update * (1.0 - update)
    of_reset = of_candidate * (inner + row).load(i, lanes, mask) * reset * (1.0 - reset)
    for gate, v in enumerate((of_update, of_reset, of_candidate)):
        (dx + gate_row + gate * cells).store(v, i, mask)
        (dn + gate_row + gate * cells).store(v * reset if gate == 2 else v, i, mask)
    kept.store(of_hidden * update, i)


@selector(GruSequenceGrad)
def select_gru_sequence_grad(form: GruSequenceGrad, build: Builder) -> None:
    sizes = sequence_sizes(form, form.gates, GATES)
    lanes = host().vector_bytes // 4
    vectors, wide, weights = pack_transposed(form.recurrent, sizes.cells, GATES, lanes, build)
    arrivals = [build.pointer(b) for b in (form.dh, form.last_h)]
    operands = [*arrivals, weights, *(build.pointer(b) for b in (form.first, form.h, form.gates, form.inner))]
    code = gru_sequence_grad.code(rows=sizes.rows, vectors=vectors)
    add_sequence_step(form, build, code, operands, sizes, 2 * wide)
