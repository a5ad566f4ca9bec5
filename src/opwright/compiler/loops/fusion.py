"""Fusion: rewriting a loop graph so that fewer passes access memory. The table of passes, its driver, fusion of blocks.

Lives here: `PASSES`, `fused`; `same_move`; `into_attention`, `into_bands`, of depthwise convolutions with their
neighbors.
Not here: the other rules (map_fusion.py, constant_folding.py), simplification of expressions (expressions.py), plans
(planner.py), kernels of blocks (../kernels/attention.py, contractions_f32.py).

A pass applies a rule to each operation of a class, in order, until nothing changes. A rule inspects an operation and
rewrites the graph around it, or does nothing. The parts of a fused operation are recorded: if no kernel implements it,
its parts are executed.

A depthwise convolution does little arithmetic per element, so that its speed is that of the memory it reads. The output
of a convolution before it exceeds a core's cache if it is large; a band of a few lines does not. The same applies to a
projection after it.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...core import flags
from ...core.dtypes import float32
from ..native.host import cache_bytes
from ..tuning.choices import BANDS, choose
from .buffers import STRANDS, Buffer, Window, ring_lines, row_major
from .constant_folding import constant_map, constant_move, constant_view, filled_operand, gathered_map, short_filter
from .control_flow import BlockOp
from .expressions import Expr, arg, substitute
from .graph import LoopGraph, Rewriting, verify
from .indexing_ops import Gather
from .map_fusion import (
    into_chain,
    into_parent,
    into_producer,
    into_reduction,
    into_table,
    into_window,
    over_view,
    reading,
    same_shape,
    scalar_operands,
)
from .ops import (
    Banded,
    Contract,
    Depthwise,
    FusedAttention,
    LoopOp,
    Map,
    MatMul,
    Move,
    Reduce,
    RowPass,
    TransposedContract,
    View,
)


def into_attention(state: Rewriting, op: RowPass) -> bool:
    """Fuse softmax(f(q k^T, mask)) v if its intermediate values have no other readers."""
    if op.kind != "softmax" or op.operands or not _plain(op.expr):
        return False
    readers = state.readers(op.output)
    product = readers[0] if readers else None
    if not isinstance(product, MatMul) or not state.only_reader(op.output, product) or product.a is not op.output:
        return False
    if product.transpose_a or product.transpose_b or product.operands or not _plain(product.expr):
        return False
    between: list[LoopOp] = [op]
    scores_and_operands = _scores(state, op, op.input, op.before, between)
    if scores_and_operands is None:
        return False
    scores, operands, before = scores_and_operands
    attention = FusedAttention(
        product.output,
        scores.a,
        scores.b,
        product.b,
        operands,
        before,
        not scores.transpose_b,
        origin=scores.origin + sum((f.origin for f in between), ()) + product.origin,
    )
    for part in (scores, *between):
        state.replace(part)
    state.replace(product, attention)
    state.parts[attention] = (scores, *between, product)
    return True


def _plain(expr: Expr) -> bool:
    return expr.op == "arg" and expr.value == 0 and expr.dtype is float32


def _scores(
    state: Rewriting, reader: LoopOp, buffer: Buffer, before: Expr, between: list[LoopOp]
) -> tuple[MatMul, tuple[Buffer, ...], Expr] | None:
    """Return the product that computes the scores, the other operands and the combined expression; a map of scales and
    masks between them is prepended to `between`."""
    writer = state.writer(buffer)
    if not state.only_reader(buffer, reader) or (writer is not None and writer.output.parent is not None):
        return None
    if isinstance(writer, MatMul) and not writer.transpose_a and writer.a.dtype is float32:
        return writer, writer.operands, substitute(before, {0: writer.expr})
    if not isinstance(writer, Map) or reader is not between[-1] or len(between) > 1:
        return None
    for index, operand in enumerate(writer.operands):
        scores = state.writer(operand)
        same = operand.shape == buffer.shape and state.only_reader(operand, writer)
        if not same or not isinstance(scores, MatMul) or scores.transpose_a or scores.a.dtype is not float32:
            continue
        others = [b for i, b in enumerate(writer.operands) if i != index]
        count = len(scores.operands)
        args = {i: arg(others.index(b) + 1 + count, b.dtype) for i, b in enumerate(writer.operands) if i != index}
        mapped = substitute(writer.expr, {index: scores.expr, **args})
        between.insert(0, writer)
        return scores, (*scores.operands, *others), substitute(before, {0: mapped})
    return None


def same_move(state: Rewriting, op: Move) -> bool:
    """Read the result of an equal move before this one, where such moves are all that reads what they move.

    The heads of attention are split for the forward pass and again for the backward pass. One result occupies memory as
    long as what is moved did; next to other readers, it would be a second copy.
    """
    if len(op.operands) != 1:
        return False
    x, y = op.operands[0], op.output
    writer = state.writer(x)
    if writer is None or state.is_output(x) or state.is_output(y) or y.parent is not None:
        return False
    if isinstance(writer, View) and not (state.writer(writer.input) and state.only_reader(writer.input, writer)):
        return False
    equal = [other for other in state.readers(x) if isinstance(other, Move) and _is_equal(other, op)]
    first = min(equal, key=state.position)
    if first is op or len(equal) < len(state.readers(x)) or first.output.parent is not None:
        return False
    for reader in state.readers(y):
        state.replace(reader, reading(reader, y, first.output))
    state.replace(op)
    return True


def _is_equal(one: Move, other: Move) -> bool:
    same = len(one.operands) == 1 and one.maps == other.maps and one.fill == other.fill
    return same and one.output.shape == other.output.shape and one.output.dtype is other.output.dtype


def slice_operand(state: Rewriting, op: Move) -> bool:
    """Read a run of elements where it is, instead of a copy that only this move reads whole.

    Runs of less than half of an array are copied: the array may be freed after that.
    """
    operands, maps = list(op.operands), list(op.maps)
    for i, (x, box) in enumerate(zip(op.operands, op.maps)):
        writer = state.writer(x)
        whole = box.offset == 0 and box.extent == x.shape and box.strides == row_major(x.shape)
        is_single = state.only_reader(x, op) and op.operands.count(x) == 1 and x.parent is None
        if whole and is_single and isinstance(writer, Move):
            source, run = writer.operands[0], writer.maps[0]
            is_run = len(writer.maps) == 1 and run.extent == x.shape and run.strides == row_major(x.shape)
            if is_run and source.parent is None and 2 * x.size >= source.size:
                operands[i], maps[i] = source, dataclasses.replace(box, offset=run.offset)
                state.replace(writer)
    if operands == list(op.operands):
        return False
    state.replace(op, dataclasses.replace(op, operands=tuple(operands), maps=tuple(maps)))
    return True


LARGE_SHARE = 2
"""Inverse of the cache share from which a tensor is evicted before it is read: half, as its successor is as large."""
REPEATED_SHARE = 16
"""Inverse of the share of lines that both strands may compute for a tensor that the cache holds. 5x5 windows over
images of 14 lines repeat 4 of them: 365 us instead of 270 for EfficientNet's layers of 672 channels (Zen 4)."""
BAND_SHARE = 8
"""Inverse of the cache share of the lines between two parts; other data needs the rest."""
LINES = (16, 8, 4, 2)
"""Candidate lines of the depthwise convolution's output per band; even, as its kernel computes two lines at a time."""


def into_bands(state: Rewriting, op: Depthwise) -> bool:
    """Fuse a depthwise convolution with the convolution before it and the projection after it."""
    if not _can_be_cut(op):
        return False
    before, after = _before(state, op), _after(state, op)
    lines = _band_lines(op, before, after)
    fused: LoopOp = op
    if before is not None and lines:
        fused = Banded(op.output, (before, op), lines, origin=before.origin + op.origin)
        state.join(before, op, fused)
    if after is not None and lines:
        parts = fused.parts if isinstance(fused, Banded) else (op,)
        banded = Banded(after.output, (*parts, after), lines, origin=fused.origin + after.origin)
        state.join(fused, after, banded)
        fused = banded
    return fused is not op


def _band_lines(op: Depthwise, before: Contract | None, after: Contract | None) -> int:
    """Return the lines per band, or 0. By default, bands are used if the input from a convolution, or the output to
    one, is large."""
    parts = tuple(part for part in (before, op, after) if part is not None)
    is_large = (before is not None and _is_large(op.input, op)) or (after is not None and _is_large(op.output, op))
    default = _lines(op) if is_large else 0
    number, height, width, channels = op.output.shape
    input_channels = before.input.shape[3] if before is not None else 0
    features = after.output.shape[3] if after is not None else 0
    candidates = (0, *(n for n in LINES if n <= max(height, LINES[-1]))) if len(parts) > 1 else (0,)
    return choose(
        BANDS,
        candidates,
        default,
        parts,
        number,
        height,
        width,
        channels,
        input_channels,
        features,
        *op.window.size,
        op.window.strides[0],
        op.output.dtype.size,
    )


def _can_be_cut(op: Depthwise) -> bool:
    return (
        op.filter.constant is not None
        and op.multiplier == 1
        and not op.rounding
        and op.window.dilations == (1, 1)
        and len(op.output.shape) == 4
    )


def _before(state: Rewriting, op: Depthwise) -> Contract | None:
    x = op.input
    producer = state.writer(x)
    is_only_reader = state.only_reader(x, op) and x.parent is None and x not in op.operands
    return producer if isinstance(producer, Contract) and is_only_reader and _is_plain(producer) else None


def _after(state: Rewriting, op: Depthwise) -> Contract | None:
    y, pixel = op.output, Window((1, 1))
    reader = next(iter(state.readers(y)), None)
    if not isinstance(reader, Contract) or not state.only_reader(y, reader) or y.parent is not None:
        return None
    reads = reader.input is y and y not in reader.operands
    return reader if reads and reader.window == pixel and _is_plain(reader) else None


def _is_plain(op: Contract) -> bool:
    return op.filter.constant is not None and op.groups == 1 and not op.rounding and op.scales is None


def _is_large(b: Buffer, op: Depthwise) -> bool:
    """Return whether a tensor next to a depthwise convolution is evicted before it is read. If strands repeat many
    lines of a convolution before it, whole tensors are quicker as long as the cache holds one."""
    number, height = op.input.shape[:2]
    repeated = (STRANDS - 1) * max(0, op.window.size[0] - op.window.strides[0])
    share = 1 if repeated * REPEATED_SHARE > number * height else LARGE_SHARE
    return b.size * b.dtype.size > cache_bytes() // share


def _lines(op: Depthwise) -> int:
    _, _, width, channels = op.input.shape
    line = width * channels * op.input.dtype.size
    return next((n for n in LINES if ring_lines(op.window, n) * line <= cache_bytes() // BAND_SHARE), LINES[-1])


Rule = Callable[[Rewriting, Any], bool]


class Pass(NamedTuple):
    """name: printed by OPWRIGHT_SHOW=passes; op: the class of operations; rule: returns whether it changed the
    graph."""

    name: str
    op: type[LoopOp]
    rule: Rule
    why: str


PASSES: tuple[Pass, ...] = (
    Pass("same_shape", View, same_shape, "a view of a view, or of no other shape, is the buffer itself"),
    Pass("constant_view", View, constant_view, "a view of a constant is a constant"),
    *(
        Pass("short_filter", op, short_filter, "kernels of products convert short floats as they read or pack them")
        for op in (Contract, TransposedContract, MatMul)
    ),
    Pass("gathered_map", Gather, gathered_map, "a table that is mapped is mapped where it is gathered alone"),
    Pass("constant_map", Map, constant_map, "a map of constants is computed once"),
    Pass("constant_move", Move, constant_move, "a move of constants is done once"),
    Pass("constant_view", View, constant_view, "a view of a constant is a constant"),
    Pass("same_move", Move, same_move, "what is moved to the same places again is moved once"),
    Pass("slice_operand", Move, slice_operand, "a slice that is moved on is read where it is"),
    Pass("filled_operand", Map, filled_operand, "an array of one number is that number where maps read it"),
    Pass("scalar_operands", Map, scalar_operands, "a constant of equal elements is a number of the expression"),
    Pass("into_chain", Map, into_chain, "a map that only another map reads is part of its expression"),
    Pass("filled_operand", Map, filled_operand, "a chain may have another operand of the output's shape"),
    Pass("scalar_operands", Map, scalar_operands, "a constant of equal elements is a number of the expression"),
    Pass("into_table", Map, into_table, "a function of one byte is a table of 256"),
    Pass("over_view", Map, over_view, "a map under another shape is a map under the producer's, so that it fuses"),
    Pass("into_producer", Map, into_producer, "what follows a contraction runs on its results in registers"),
    Pass("into_reduction", Reduce, into_reduction, "what precedes a reduction runs on its elements in registers"),
    Pass("into_attention", RowPass, into_attention, "scores stay in the cache between two products"),
    Pass("into_window", Move, into_window, "padding with what a window reads outside the image is the window's"),
    Pass("into_parent", Move, into_parent, "the parts of a concatenation are written where they go"),
    Pass("into_bands", Depthwise, into_bands, "a band at a time, what lies between stays in the cache"),
)  # in this order: tables before producers, so that a chain of functions of one byte is one look-up in an epilogue


def fused(graph: LoopGraph) -> tuple[LoopGraph, Callable[[LoopOp], Sequence[LoopOp] | None]]:
    """Return the graph after all passes, and a function that returns the parts of a fused operation."""
    if "graph" in flags.show:
        print(f"before fusion: {graph}", file=sys.stderr)
    parts: dict[LoopOp, Sequence[LoopOp]] = {}
    after = _fused(graph, parts)
    if "graph" in flags.show:
        print(f"after fusion: {after}", file=sys.stderr)
    return after, parts.get


def _fused(graph: LoopGraph, parts: dict[LoopOp, Sequence[LoopOp]]) -> LoopGraph:
    """Return the graph after all passes, with the blocks of control flow first. parts: extended by those of fused
    operations."""
    if any(isinstance(op, BlockOp) for op in graph.ops):
        graph = dataclasses.replace(graph, ops=tuple([_with_fused_blocks(op, graph, parts) for op in graph.ops]))
    state = Rewriting(graph)
    for step in PASSES:
        changes = 0
        for op in state.of(step.op):
            current = state.latest(op)
            while isinstance(current, step.op) and step.rule(state, current):
                changes += 1
                current = state.latest(current)
        if changes and "passes" in flags.show:
            print(f"{step.name}: {changes} x, {step.why}", file=sys.stderr)
    after = state.graph()
    if flags.verify:
        verify(after)
    parts |= state.parts
    return after


def _with_fused_blocks(op: LoopOp, graph: LoopGraph, parts: dict[LoopOp, Sequence[LoopOp]]) -> LoopOp:
    if not isinstance(op, BlockOp):
        return op
    blocks = [LoopGraph(graph.name, op.parameters_of_blocks, block.results, block.ops) for block in op.blocks]
    return op.with_blocks([block._replace(ops=_fused(g, parts).ops) for block, g in zip(op.blocks, blocks)])
