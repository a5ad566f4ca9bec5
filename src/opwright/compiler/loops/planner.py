"""Planning: a loop graph becomes steps in one arena, with its constants packed in one block.

Lives here: `Builder` (what selectors are given), `plan_of`, which memory buffers share.
Not here: plans and running them (plans.py), where in the arena what lies (../memory.py), the selectors (../kernels/).

Addresses stay symbolic until all forms are made: a selector asks for the word of a buffer, and whether that is arena,
constant or memory from outside is decided at the end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from ...core.dtypes import DType, uint8
from ..kernels import NoKernel, select
from .buffers import Buffer, IndexMap, SameMemory
from .graph import LoopGraph
from .image_ops import Resize
from .numeric_ops import TabledSoftmax
from .ops import (
    Bitcast,
    Checked,
    Contract,
    Depthwise,
    LoopOp,
    Map,
    MatMul,
    Move,
    Pool,
    Reduce,
    RowPass,
    Scan,
    Store,
    TransposedContract,
    View,
    slice_copy,
)
from .plan_builder import Builder
from .plan_memory import PlanMemory, copies
from .plans import LoopPlan

WITHOUT_GUARDS = (
    Map,
    Contract,
    Depthwise,
    TransposedContract,
    MatMul,
    Pool,
    Reduce,
    Scan,
    RowPass,
    TabledSoftmax,
    Move,
    Resize,
    View,
    Bitcast,
    Checked,
)
"""Operations with one output and no guards except on the values that they write: no step where they write no
elements."""


def plan_of(graph: LoopGraph, apart: Callable[[LoopOp], Sequence[LoopOp] | None] = lambda op: None) -> LoopPlan:
    """The plan of a loop graph. Its constants are not packed yet: `LoopPlan.pack`.

    apart: of a form that fusion made, those it was made of, which run instead where no kernel does it.
    raises NoKernel with all forms that nobody makes
    """
    memory = PlanMemory(graph)
    builder = Builder()
    ops: list[LoopOp] = []
    failed: dict[LoopOp, str] = {}
    todo = list(reversed(graph.ops))
    while todo:
        op = todo.pop()
        if isinstance(op, Store):  # all that follow are
            stores = [op, *(s for s in reversed(todo) if isinstance(s, Store))]
            todo = list(reversed(copies(stores, ops, memory.touched(ops, builder), builder.shares, memory)))
            continue
        if isinstance(op, View | Bitcast) and memory.view(op):
            ops.append(op)
            continue
        if 0 in op.output.shape and isinstance(op, WITHOUT_GUARDS):
            ops.append(op)  # which takes no step
            continue
        builder.begin(len(ops), op)
        try:
            op = _of_something(op) if isinstance(op, Move) else op
            if any(0 in b.shape for b in (op.output, *op.inputs)):
                raise NoKernel("an array without elements")
            select(_copying(op) if isinstance(op, View | Bitcast) else op, builder)
        except NoKernel as why:
            parts = apart(op) or _beside(op)
            if parts is None:
                failed[op] = str(why)
            else:
                todo += reversed(parts)
            continue
        ops.append(op)
    if failed:
        no_kernel = NoKernel("; ".join(dict.fromkeys(failed.values())))
        no_kernel.ops = failed
        raise no_kernel
    return LoopPlan(graph, tuple(ops), memory.lay_out(ops, builder))


def _of_something(op: Move) -> Move:
    """Data movement less what has no elements."""
    pairs = [(b, m) for b, m in zip(op.operands, op.maps) if 0 not in b.shape]
    if len(pairs) == len(op.maps):
        return op
    return dataclasses.replace(op, operands=tuple(b for b, _ in pairs), maps=tuple(m for _, m in pairs))


def _copying(op: View | Bitcast) -> Move:
    """A view whose two buffers both have memory: a copy, of bytes where their dtypes differ."""
    dtype = op.output.dtype if op.input.dtype is op.output.dtype else uint8
    source, target = _flat(op.input, dtype), _flat(op.output, dtype)
    return Move(target, (source,), (IndexMap((0,), target.shape, 0, (1,)),), origin=op.origin)


def _flat(buffer: Buffer, dtype: DType) -> Buffer:
    if buffer.parent is not None:
        raise NoKernel("a view of a slice")
    known, size = buffer.constant, buffer.size * buffer.dtype.size // dtype.size
    if known is not None:
        known = np.ascontiguousarray(known).reshape(-1).view(dtype.np)
    return SameMemory(buffer.name, dtype, (size,), known, of=buffer)


def _beside(op: LoopOp) -> list[LoopOp] | None:
    """A form that cannot write a slice in place: the form into a buffer of its own, and a copy."""
    out = op.output
    if out.parent is None or isinstance(op, Move):
        return None
    whole = Buffer(out.name, out.dtype, out.shape)
    return [dataclasses.replace(op, output=whole), slice_copy(whole, out, op.origin)]
