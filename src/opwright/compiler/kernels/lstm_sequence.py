"""LSTM for training: all steps of a batch in one kernel, and their gradients in another.

Lives here: the selectors of LstmSequence and LstmSequenceGrad, their families.
Not here: LSTMs of files, whose weights are constants (lstm.py); the products of weights and inputs, which are matrix
products over all steps (matmul.py).

A work item is some rows of the batch through all steps. The recurrent weights are packed by vectors of cells with the
four gates of a vector adjacent, so that one pass over a vector's weights, which stay in the L1 cache, computes all rows
of the item: `rows` at a time in registers. Backwards, the products of dz and the transposed weights go by the same
passes, with four vectors of cells in place of the four gates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...core.dtypes import float32
from .. import language as kl
from ..language import f32, i64, ptr
from ..loops.buffers import Buffer, IndexMap
from ..loops.domain_ops import LstmSequence, LstmSequenceGrad
from ..loops.ops import LoopOp, Move
from ..target import host
from . import NoKernel, selector
from .moves import select_move
from .recurrent_cells import GateSums, activate, load_padded, padded_size, sigmoid, store_row
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
        full = count // rows * rows
        for row in range(count):
            load_padded(h_now + row * wide, h0 + (first + row) * cells, cells, wide, lanes)
            load_padded(state + row * wide, c0 + (first + row) * cells, cells, wide, lanes)
        for step in range(steps):
            base = step * batch + first
            w = weights
            for i in range(0, wide, lanes):
                for row in range(0, full, rows):
                    source, targets = x + (base + row) * 4 * cells, (h, c, gates)
                    memory = (h_now + row * wide, h_next + row * wide, state + row * wide)
                    _advance(source, w, memory, targets, base + row, i, cells, wide, lanes, rows)
                for row in range(full, count):
                    source, targets = x + (base + row) * 4 * cells, (h, c, gates)
                    memory = (h_now + row * wide, h_next + row * wide, state + row * wide)
                    _advance(source, w, memory, targets, base + row, i, cells, wide, lanes, 1)
                w = w + wide * GATES * lanes
            h_now, h_next = h_next, h_now
        for row in range(count):
            store_row(last_h + (first + row) * cells, h_now + row * wide, cells, lanes)
            store_row(last_c + (first + row) * cells, state + row * wide, cells, lanes)


def _advance(
    x: Pointer,
    weights: Pointer,
    memory: tuple[Pointer, Pointer, Pointer],
    targets: tuple[Pointer, Pointer, Pointer],
    index: Value,
    i: Value | int,
    cells: Value,
    wide: Value,
    lanes: int,
    rows: int,
) -> None:
    """Compute one vector of cells of some rows at a step. index: of the first row in h, c and gates."""
    h_now, h_next, state = memory
    h, c, gates = targets
    mask = kl.tail_mask(cells - i, lanes)
    sums = GateSums(rows, GATES, lanes, 1)
    for row in range(rows):
        for gate in range(GATES):
            sums.start(row, gate, (x + (row * GATES + gate) * cells).load(i, lanes, mask))
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


@selector(LstmSequence)
def select_lstm_sequence(form: LstmSequence, build: Builder) -> None:
    sizes = sequence_sizes(form, form.x, GATES)
    lanes = host().vector_bytes // 4
    wide = padded_size(sizes.cells, lanes)
    weights = pack_matrices(form.recurrent, 0, GATES, sizes.cells, wide, lanes, build)
    states = [build.pointer(b) for b in (form.h, form.c)]
    results = [build.pointer(form.output, start) for _, start in form.results]
    words = [build.pointer(form.x), weights, *states, *results, *sizes[:3], sizes.item_rows]
    code = lstm_sequence.code(rows=sizes.rows)
    build.step(code, words, sizes.items, scratch=3 * sizes.item_rows * wide * 4, chunk=1)


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
        full = count // rows * rows
        for row in range(count):
            load_padded(p + row * wide, last_h + (first + row) * cells, cells, wide, lanes)
            load_padded(q + row * wide, last_c + (first + row) * cells, cells, wide, lanes)
        for back in range(steps):
            step = steps - 1 - back
            base = step * batch + first
            for row in range(count):
                index = base + row
                before = kl.select(step > 0, (index - batch) * cells, 0)
                for i in range(0, cells, lanes):
                    mask = kl.tail_mask(cells - i, lanes)
                    of_first = (c0 + (first + row) * cells).load(i, lanes, mask)
                    previous = kl.select(step > 0, (c + before).load(i, lanes, mask), of_first)
                    memory, sources = (p + row * wide, q + row * wide), (dh, c, gates, dx)
                    _differentiate(memory, sources, previous, index, i, cells, lanes, mask)
            w = weights
            for i in range(0, wide, group):
                for row in range(0, full, rows):
                    propagate(dx + (base + row) * depth, w, p + row * wide, i, depth, wide, lanes, rows, vectors)
                for row in range(full, count):
                    propagate(dx + (base + row) * depth, w, p + row * wide, i, depth, wide, lanes, 1, vectors)
                w = w + depth * group
        for row in range(count):
            store_row(dh0 + (first + row) * cells, p + row * wide, cells, lanes)
            store_row(dc0 + (first + row) * cells, q + row * wide, cells, lanes)


def _differentiate(
    memory: tuple[Pointer, Pointer],
    sources: tuple[Pointer, Pointer, Pointer, Pointer],
    previous: Value,
    index: Value,
    i: Value | int,
    cells: Value,
    lanes: int,
    mask: Value,
) -> None:
    """Compute dz of one vector of cells of a row, and q for the step before. previous: c of the step before."""
    p, q = memory
    dh, c, gates, dx = sources
    row, gate_row = index * cells, index * GATES * cells
    input_gate, forget, candidate, output_gate = ((gates + gate_row + g * cells).load(i, lanes, mask) for g in range(4))
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


def propagate(
    dz: Pointer,
    weights: Pointer,
    p: Pointer,
    i: Value | int,
    depth: Value,
    wide: Value,
    lanes: int,
    rows: int,
    vectors: int,
) -> None:
    """Compute p = dz R^T of some rows, for one group of vectors of cells. depth: elements of a row of dz."""
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
    operands = [build.pointer(b) for b in (form.first, form.c, form.gates)]
    results = [build.pointer(form.output, start) for _, start in form.results]
    words = [*arrivals, weights, *operands, *results, *sizes[:3], sizes.item_rows]
    code = lstm_sequence_grad.code(rows=sizes.rows, vectors=vectors)
    build.step(code, words, sizes.items, scratch=2 * sizes.item_rows * wide * 4, chunk=1)


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
