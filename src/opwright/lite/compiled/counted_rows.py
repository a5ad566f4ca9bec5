"""Rows that operators count during a run, in loop graphs of whole subgraphs: for any number, or for an assumed one.

Lives here: `CountingBuffers`, `RunNumber`, `empty_results`. Not here: the graphs (whole_graphs.py), the choice of
the assumed number (aot/), plans of the interpreter for sizes of a run (specialised.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ...compiler.loops.buffers import Buffer
from ...compiler.loops.indexing_ops import ExpectedCount
from ...compiler.loops.ops import LoopOp, Part, View
from ...compiler.lowering.context import LoweringContext, NoLowering, RuleOperand
from ...compiler.lowering.stateful import Assignment, Reading
from ...core.dtypes import int64, uint8
from ...graph import Value
from ..runtime.node import Node
from ..runtime.subgraph import Subgraph
from .nodes import NodeGraph
from .partition_plans import TensorBuffers


class RunNumber(NamedTuple):
    """A number that a run decides: of rows, of a way through branches, of iterations.

    number: the one that a graph is for, or None for any number, of rows that no node reads; most: that there can be;
    offset, memory: of a part of a way through branches, the number at which it begins, and memory for that of a run
    """

    number: int | None
    most: int
    offset: int = 0
    memory: Buffer | None = None


RunNumbers = Mapping[int, RunNumber]
"""By tensor: the first result of unknown shape of the node that decides."""
NO_NUMBERS: RunNumbers = MappingProxyType({})


class CountingBuffers(TensorBuffers):
    """Operands of nodes, some of which decide numbers. numbers: as of `whole_graph`; whole: by tensor, memory for the
    most rows, where operations read fewer."""

    def __init__(self, graph: NodeGraph, subgraph: Subgraph, numbers: RunNumbers) -> None:
        super().__init__(graph, subgraph)
        self._numbers = numbers
        self.whole: dict[int, Buffer] = {}

    def counted(self, value: Value, rows_of: Callable[[int], int]) -> tuple[RuleOperand, Buffer]:
        number = self.graph.number(value)
        if number not in self._numbers:
            raise NoLowering("its number of rows is unknown before a run")
        rows, most = self._numbers[number].number, self._numbers[number].most
        if not most:
            raise NoLowering("there are no elements to count")
        assumed = self.of(value) if rows is not None else None
        self._operands.pop(value, None)
        operand, count = self.with_most_rows(value, lambda size: most)
        if assumed is not None:
            self.whole[number] = operand.buffer
            fewer = Buffer(f"{operand.buffer.name}.rows", operand.dtype, assumed.shape)
            self._operands[value] = operand.with_buffer(fewer)
        return operand, count

    def decided(self, node: Node) -> tuple[RunNumber, Buffer] | None:
        """Return the number of a way or of iterations that the graph is for, and memory for that of a run; None of
        nodes whose results have known shapes."""
        for t in node.tensors_out:
            number = self._numbers.get(t.index)
            if number is not None and number.memory is not None:
                return number, number.memory
            if number is not None and number.number is not None:
                count = self.counts[t.index] = Buffer(f"t{t.index}.count", int64, (2,))
                return number, count
        return None

    def after(self, node: Node) -> list[LoopOp]:
        """Return the operations after those of a node: its rows, if there are as many as assumed."""
        origin = (f"{node.name} {node.number}",)
        ops: list[LoopOp] = []
        for t in node.tensors_out:
            if t.index in self.whole:
                count = self.counts[t.index]
                y = self.at(t.index).buffer
                if y.size:
                    ops.append(Part(y, self.whole[t.index], 0, origin=origin))
                else:
                    ops.append(View(y, Buffer(f"{y.name}.none", y.dtype, y.shape, np.zeros(y.shape, y.dtype.np))))
                guard = Buffer(f"{count.name}.guard", uint8, (1,))
                ops.append(ExpectedCount(guard, count, (self.whole[t.index],), origin=origin))
        return ops


def empty_results(ctx: LoweringContext, ops: Sequence[LoopOp] | None) -> list[LoopOp] | None:
    """Return the operations of a node with empty results, or that reads no elements but constants, as where no rows
    were counted: its results are constants. None for other nodes, and where the operator rejects them.

    ops: of the node, if it is lowered; they compute results that are not empty, and effects
    """
    if any(isinstance(op, Reading | Assignment) for op in ops or ()):
        return None
    try:
        outputs = [ctx.output(index=i) for i in range(len(ctx.node.outputs))]
        values = [np.zeros(y.shape, y.dtype.np) for y in outputs]
        is_empty = bool(outputs) and not any(y.size for y in outputs)
        if not is_empty and (ops is not None or not _compute(ctx, outputs, values)):
            return None
    except NoLowering:
        return None
    for y, value in zip(outputs, values, strict=True):
        ctx.add(View, y.buffer, Buffer(f"{y.buffer.name}.value", y.dtype, y.shape, value))
    return ctx.ops


def _compute(ctx: LoweringContext, outputs: Sequence[RuleOperand], values: list[np.ndarray]) -> bool:
    """Compute the results of a node that reads no elements but constants; return whether it does. Raises NoLowering."""
    operands = ctx.operands
    if all(x.size for x in operands) or any(x.size and not x.is_constant for x in operands):
        return False
    arrays = [np.zeros(x.shape, x.dtype.np) if x.constant is None else np.asarray(x.constant) for x in operands]
    if any(x.quantization is not None for x in (*operands, *outputs)):
        ctx.node.integer_kernel()(arrays, values)
        return True
    values[:] = map(np.asarray, ctx.node.evaluate(operands, arrays))
    return all(value.shape == y.shape and value.dtype == y.dtype.np for y, value in zip(outputs, values, strict=True))
