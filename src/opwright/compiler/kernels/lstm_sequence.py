"""LSTM for training: all steps of a batch in one kernel, and their gradients in another.

Lives here: the selectors of LstmSequence and LstmSequenceGrad, their families; what those of a GRU share.
Not here: LSTMs of files, whose weights are constants (lstm.py); the products of weights and inputs, which are matrix
products over all steps (matmul.py).

A work item is some rows of the batch through all steps. The recurrent weights are packed by vectors of cells with the
four gates of a vector adjacent, so that one pass over a vector's weights, which stay in the L1 cache, computes all rows
of the item: `rows` at a time in registers. Backwards, the products of dz and the transposed weights go by the same
passes, with four vectors of cells in place of the four gates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ...core.dtypes import float32
from .. import language as kl
from ..language import f32, i64, ptr
from ..loops.buffers import Buffer, IndexMap
from ..loops.ops import LoopOp, Move
from ..loops.recurrent_ops import GruSequence, GruSequenceGrad, LstmSequence, LstmSequenceGrad
from ..target import host
from . import NoKernel, selector
from .moves import select_move
from .recurrent_cells import GateSums, activate, in_row_groups, load_states, padded_size, sigmoid, store_states
from .rnn import pack_matrices

if TYPE_CHECKING:
    from ..language import Pointer, Value, Work
    from ..loops.plan_builder import Builder
    from ..loops.plans import Address

GATES = 4
VECTORS = 4
"""Vectors of cells that a pass computes backwards."""
ITEM_ROWS = 8
"""Rows of a work item, about: each vector of weights is read from the L2 cache once for all of them."""


@kl.family
def lstm_sequence(
    work: Work,
    x: ptr[f32],
    weights: ptr[f32],
    h0: ptr[f32],
    c0: ptr[f32],
    h: ptr[f32],
    last_h: ptr[f32],
    last_c: ptr[f32],
    c: ptr[f32],
    gates: ptr[f32],
    steps: i64,
    batch: i64,
    cells: i64,
    item_rows: i64,
    *,
    rows: int,
) -> None:
    """Run an LSTM. A work item is `item_rows` rows of the batch. Scratch: the item's h, next h and c, padded."""
    lanes = work.lanes(f32)
    wide = padded_size(cells, lanes)
    h_now, h_next, state = (work.scratch(f32) + part * item_rows * wide for part in range(3))
    for item in work.items():
        first = item * item_rows
        count = kl.minimum(batch - first, item_rows)
        load_states(h_now, h0 + first * cells, count, cells, wide, lanes)
        load_states(state, c0 + first * cells, count, cells, wide, lanes)
        for step in range(steps):
            base = step * batch + first
            memory, targets = (h_now, h_next, state), (h, c, gates)
            w = weights
            for i in range(0, wide, lanes):
                in_row_groups(count, rows, _advance, x, w, memory, targets, base, i, cells, wide, batch, lanes)
                w = w + wide * GATES * lanes
            h_now, h_next = h_next, h_now
        store_states(last_h + first * cells, h_now, count, cells, wide, lanes)
        store_states(last_c + first * cells, state, count, cells, wide, lanes)


def _advance(
    rows: int,
    first: Value,
    x: Pointer,
    weights: Pointer,
    memory: tuple[Pointer, Pointer, Pointer],
    targets: tuple[Pointer, Pointer, Pointer],
    base: Value,
    i: Value | int,
    cells: Value,
    wide: Value,
    batch: Value,
    lanes: int,
) -> None:
    """Compute one vector of cells of some rows at a step. base: of the item's first row in x, h, c and gates."""
    h_now, h_next, state = (p + first * wide for p in memory)
    h, c, gates = targets
    index = base + first
    x = x + index * GATES * cells
    mask = kl.tail_mask(cells - i, lanes)
    sums = GateSums(rows, GATES, lanes, 1)
    for row in range(rows):
        for gate in range(GATES):
            sums.start(row, gate, (x + (row * GATES + gate) * cells).load(i, lanes, mask))
    prefetch_projections(x, rows, GATES, i, cells, batch, lanes)
    sums.add(h_now, wide, weights, wide)
    for row in range(rows):
        z = [sums.total(row, gate) for gate in range(GATES)]
        activated = [activate("TANH", v) if gate == 2 else sigmoid(v) for gate, v in enumerate(z)]
        input_gate, forget, candidate, output_gate = activated
        after = forget * (state + row * wide).load(i, lanes) + input_gate * candidate
        hidden = output_gate * activate("TANH", after)
        # padding stays zero: infinity times the zero padding of weights would be NaN
        (state + row * wide).store(kl.select(mask, after, 0.0), i)
        (h_next + row * wide).store(kl.select(mask, hidden, 0.0), i)
        (h + (index + row) * cells).store(hidden, i, mask)
        (c + (index + row) * cells).store(after, i, mask)
        for gate, v in enumerate(activated):
            (gates + ((index + row) * GATES + gate) * cells).store(v, i, mask)


def prefetch_projections(
    x: Pointer, rows: int, gates: int, i: Value | int, cells: Value, batch: Value, lanes: int
) -> None:
    """Prefetch what the next vector of cells of some rows adds to its sums; after the last one, that of the next step.

    x: the projections of the first row, which a product has written beyond the second-level cache. A step of 32 x 128
    cells takes 45 us instead of 50 (Zen 4).
    """
    following = kl.value(i) + lanes
    ahead = kl.select(following < cells, following, batch * gates * cells)
    for part in range(rows * gates):
        (x + part * cells).prefetch(ahead, locality=2)


@selector(LstmSequence)
def select_lstm_sequence(form: LstmSequence, build: Builder) -> None:
    sizes = sequence_sizes(form, form.x, GATES)
    lanes = host().vector_bytes // 4
    wide = padded_size(sizes.cells, lanes)
    weights = pack_matrices(form.recurrent, 0, GATES, sizes.cells, wide, lanes, build)
    operands = [build.pointer(form.x), weights, *(build.pointer(b) for b in (form.h, form.c))]
    add_sequence_step(form, build, lstm_sequence.code(rows=sizes.rows), operands, sizes, 3 * wide)


class SequenceSizes(NamedTuple):
    """Sizes of a recurrent layer. rows: of the batch in registers; item_rows: of a work item; items: work items."""

    steps: int
    batch: int
    cells: int
    rows: int
    item_rows: int
    items: int


def sequence_sizes(form: LoopOp, x: Buffer, gates: int) -> SequenceSizes:
    """Return the sizes of a layer. x: [steps, batch, gates cells]. Raises NoKernel for slices and empty layers."""
    if any(b.parent is not None or b.dtype is not float32 for b in form.inputs) or not x.size:
        raise NoKernel(f"a recurrent layer of {x!r}")
    steps, batch, width = x.shape
    most = 6 if host().registers >= 32 else 3
    rows = next((n for n in range(most, 1, -1) if batch % n == 0), min(most, batch))
    item_rows = rows * max(1, ITEM_ROWS // rows)
    return SequenceSizes(steps, batch, width // gates, rows, item_rows, -(-batch // item_rows))


def add_sequence_step(
    form: LstmSequence | LstmSequenceGrad | GruSequence | GruSequenceGrad,
    build: Builder,
    code: Any,
    operands: list[Any],
    sizes: SequenceSizes,
    scratch_cells: int,
) -> None:
    """Add the step of a layer. operands: addresses; scratch_cells: floats of scratch memory for a row of an item."""
    results = [build.pointer(form.output, start) for _, start in form.results]
    words = [*operands, *results, sizes.steps, sizes.batch, sizes.cells, sizes.item_rows]
    build.step(code, words, sizes.items, scratch=scratch_cells * sizes.item_rows * 4, chunk=1)


@kl.family
def lstm_sequence_grad(
    work: Work,
    dh: ptr[f32],
    last_h: ptr[f32],
    last_c: ptr[f32],
    weights: ptr[f32],
    c0: ptr[f32],
    c: ptr[f32],
    gates: ptr[f32],
    dx: ptr[f32],
    dh0: ptr[f32],
    dc0: ptr[f32],
    steps: i64,
    batch: i64,
    cells: i64,
    item_rows: i64,
    *,
    rows: int,
    vectors: int,
) -> None:
    """Compute the gradients of an LSTM. A work item is `item_rows` rows of the batch. Scratch: the item's gradients of
    the states after the step, p and q, padded to groups of vectors."""
    lanes = work.lanes(f32)
    group, depth = vectors * lanes, GATES * cells
    wide = (cells + (group - 1)) // group * group
    p, q = (work.scratch(f32) + part * item_rows * wide for part in range(2))
    for item in work.items():
        first = item * item_rows
        count = kl.minimum(batch - first, item_rows)
        load_states(p, last_h + first * cells, count, cells, wide, lanes)
        load_states(q, last_c + first * cells, count, cells, wide, lanes)
        for back in range(steps):
            step = steps - 1 - back
            base = step * batch + first
            for row in range(count):
                index = base + row
                for i in range(0, cells, lanes):
                    mask = kl.tail_mask(cells - i, lanes)
                    previous = previous_state(c, c0 + (first + row) * cells, step, index - batch, i, cells, lanes, mask)
                    memory, sources = (p + row * wide, q + row * wide), (dh, c, gates, dx)
                    _differentiate(memory, sources, previous, index, i, cells, batch, lanes, mask)
            propagate(dx + base * depth, weights, p, count, depth, wide, lanes, rows, vectors)
        store_states(dh0 + first * cells, p, count, cells, wide, lanes)
        store_states(dc0 + first * cells, q, count, cells, wide, lanes)


def previous_state(
    states: Pointer, initial: Pointer, step: Value, index: Value, i: Value | int, cells: Value, lanes: int, mask: Value
) -> Value:
    """Load one vector of cells of a row before a step. index: its row in `states`; initial: its state before step 0."""
    before = (states + kl.select(step > 0, index * cells, 0)).load(i, lanes, mask)
    return kl.select(step > 0, before, initial.load(i, lanes, mask))


def _differentiate(
    memory: tuple[Pointer, Pointer],
    sources: tuple[Pointer, Pointer, Pointer, Pointer],
    previous: Value,
    index: Value,
    i: Value | int,
    cells: Value,
    batch: Value,
    lanes: int,
    mask: Value,
) -> None:
    """Compute dz of one vector of cells of a row, and q for the step before. previous: c of the step before."""
    p, q = memory
    dh, c, gates, dx = sources
    row, gate_row = index * cells, index * GATES * cells
    input_gate, forget, candidate, output_gate = ((gates + gate_row + g * cells).load(i, lanes, mask) for g in range(4))
    before = row - batch * cells
    prefetch_earlier(i, gates + GATES * before, GATES, cells, dh + before, c + (before - batch * cells))
    activated = activate("TANH", (c + row).load(i, lanes, mask))
    of_hidden = (dh + row).load(i, lanes, mask) + p.load(i, lanes)
    of_cell = q.load(i, lanes) + of_hidden * output_gate * (1.0 - activated * activated)
    products = (
        of_cell * candidate * input_gate * (1.0 - input_gate),
        of_cell * previous * forget * (1.0 - forget),
        of_cell * input_gate * (1.0 - candidate * candidate),
        of_hidden * activated * output_gate * (1.0 - output_gate),
    )
    for gate, v in enumerate(products):
        (dx + gate_row + gate * cells).store(v, i, mask)
    q.store(of_cell * forget, i)


def prefetch_earlier(i: Value | int, gates: Pointer, number: int, cells: Value, *states: Pointer) -> None:
    """Prefetch a vector of cells of the gates and states of an earlier step into the second-level cache.

    Read while the products of the step in between are computed, they come from beyond it without a wait: a step of 32 x
    128 cells takes 42 us instead of 47 (Zen 4).
    """
    for p in (*[gates + gate * cells for gate in range(number)], *states):
        p.prefetch(i, locality=2)


def propagate(
    dz: Pointer,
    weights: Pointer,
    p: Pointer,
    count: Value,
    depth: Value,
    wide: Value,
    lanes: int,
    rows: int,
    vectors: int,
) -> None:
    """Compute p = dz R^T of `count` rows, `rows` at a time. depth: elements of a row of dz."""
    group = vectors * lanes
    for i in range(0, wide, group):
        in_row_groups(count, rows, _propagate, dz, weights, p, i, depth, wide, lanes, vectors)
        weights = weights + depth * group


def _propagate(
    rows: int,
    first: Value,
    dz: Pointer,
    weights: Pointer,
    p: Pointer,
    i: Value | int,
    depth: Value,
    wide: Value,
    lanes: int,
    vectors: int,
) -> None:
    """Compute some rows for one group of vectors of cells."""
    dz, p = dz + first * depth, p + first * wide
    sums = GateSums(rows, vectors, lanes, 1)
    for row in range(rows):
        for v in range(vectors):
            sums.start(row, v, kl.zeros(f32, lanes))
    sums.add(dz, depth, weights, depth)
    for row in range(rows):
        for v in range(vectors):
            (p + row * wide).store(sums.total(row, v), i + v * lanes)


@selector(LstmSequenceGrad)
def select_lstm_sequence_grad(form: LstmSequenceGrad, build: Builder) -> None:
    sizes = sequence_sizes(form, form.gates, GATES)
    lanes = host().vector_bytes // 4
    vectors, wide, weights = pack_transposed(form.recurrent, sizes.cells, GATES, lanes, build)
    arrivals = [build.pointer(b) for b in (form.dh, form.last_h, form.last_c)]
    operands = [*arrivals, weights, *(build.pointer(b) for b in (form.first, form.c, form.gates))]
    code = lstm_sequence_grad.code(rows=sizes.rows, vectors=vectors)
    add_sequence_step(form, build, code, operands, sizes, 2 * wide)


def pack_transposed(weight: Buffer, cells: int, gates: int, lanes: int, build: Builder) -> tuple[int, int, Address]:
    """Pack a matrix [cells, gates cells] as [groups of vectors of cells, gates cells, vectors, lanes], padded with
    zeros; return the vectors of a group, the padded number of cells, and the address."""
    vectors = min(VECTORS, -(-cells // lanes))
    k, group = gates * cells, vectors * lanes
    groups = -(-cells // group)
    flat = Buffer("packed", float32, (groups, k, vectors, lanes))
    boxes = []
    for vector in range(vectors):
        rest = cells - vector * lanes  # rows from this vector of the first group on
        full = max(0, (rest - lanes) // group + 1)
        for first, count, width in ((0, full, lanes), (full, 1, min(rest - full * group, lanes))):
            if count and width > 0:
                start = (vector * lanes + first * group) * k
                boxes.append(IndexMap((first, 0, vector, 0), (count, k, 1, width), start, (group * k, 1, 0, k)))
    select_move(Move(flat, (weight,) * len(boxes), tuple(boxes), 0.0), build)
    return vectors, groups * group, build.pointer(flat)
