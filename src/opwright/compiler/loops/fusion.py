"""Fusion: rewriting a loop graph so that fewer passes access memory. The table of passes and its driver.

Lives here: `PASSES`, `fused`.
Not here: the rules (*_fusion.py, constant_folding.py), simplification of expressions (expressions.py), plans
(planner.py).

A pass applies a rule to each operation of a class, in order, until nothing changes. A rule inspects an operation and
rewrites the graph around it, or does nothing. The parts of a fused operation are recorded: if no kernel implements it,
its parts are executed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...core import flags
from .block_fusion import into_attention, into_bands
from .constant_folding import constant_map, constant_move, constant_view, gathered_map, short_filter
from .graph import LoopGraph, Rewriting, verify
from .indexing_ops import Gather
from .map_fusion import into_chain, into_producer, into_table, over_view, scalar_operands
from .move_fusion import into_parent, into_window, same_shape
from .ops import Contract, Depthwise, LoopOp, Map, MatMul, Move, RowPass, TransposedContract, View

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
    Pass("scalar_operands", Map, scalar_operands, "a constant of one element is a number of the expression"),
    Pass("into_chain", Map, into_chain, "a map that only another map reads is part of its expression"),
    Pass("into_table", Map, into_table, "a function of one byte is a table of 256"),
    Pass("over_view", Map, over_view, "a map under another shape is a map under the producer's, so that it fuses"),
    Pass("into_producer", Map, into_producer, "what follows a contraction runs on its results in registers"),
    Pass("into_attention", RowPass, into_attention, "scores stay in the cache between two products"),
    Pass("into_window", Move, into_window, "padding with what a window reads outside the image is the window's"),
    Pass("into_parent", Move, into_parent, "the parts of a concatenation are written where they go"),
    Pass("into_bands", Depthwise, into_bands, "a band at a time, what lies between stays in the cache"),
)  # in this order: tables before producers, so that a chain of functions of one byte is one look-up in an epilogue


def fused(graph: LoopGraph) -> tuple[LoopGraph, Callable[[LoopOp], Sequence[LoopOp] | None]]:
    """Return the graph after all passes, and a function that returns the parts of a fused operation."""
    if "graph" in flags.show:
        print(f"before fusion: {graph}", file=sys.stderr)
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
    if "graph" in flags.show:
        print(f"after fusion: {after}", file=sys.stderr)
    return after, state.parts.get
