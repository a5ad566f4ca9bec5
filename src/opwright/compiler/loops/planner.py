"""Planning: a loop graph becomes steps in one arena, with packed constants in one block.

Lives here: `plan_of`.
Not here: plans (plans.py), their builder and memory (plan_builder.py, plan_memory.py), selectors of kernels
(../kernels/).
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


def plan_of(graph: LoopGraph, parts_of: Callable[[LoopOp], Sequence[LoopOp] | None] = lambda op: None) -> LoopPlan:
    """Return the plan of a loop graph; `LoopPlan.pack` packs its constants later.

    parts_of: returns the parts of a fused operation, which are executed if no kernel implements it.
    raises NoKernel with all operations without a kernel
    """
    memory = PlanMemory(graph)
    builder = Builder()
    ops: list[LoopOp] = []
    failed: dict[LoopOp, str] = {}
    stack = list(reversed(graph.ops))
    while stack:
        op = stack.pop()
        if isinstance(op, Store):  # Stores are at the end
            stores = [op, *(s for s in reversed(stack) if isinstance(s, Store))]
            stack = list(reversed(copies(stores, ops, memory.touched(ops, builder), builder.shares, memory)))
            continue
        if isinstance(op, View | Bitcast) and memory.view(op):
            ops.append(op)
            continue
        if 0 in op.output.shape and isinstance(op, WITHOUT_GUARDS):
            ops.append(op)  # without a step
            continue
        builder.begin(len(ops), op)
        try:
            op = _without_empty(op) if isinstance(op, Move) else op
            if any(0 in b.shape for b in (op.output, *op.inputs)):
                raise NoKernel("an array without elements")
            select(_copying(op) if isinstance(op, View | Bitcast) else op, builder)
        except NoKernel as why:
            parts = parts_of(op) or _via_copy(op)
            if parts is None:
                failed[op] = str(why)
            else:
                stack += reversed(parts)
            continue
        ops.append(op)
    if failed:
        no_kernel = NoKernel("; ".join(dict.fromkeys(failed.values())))
        no_kernel.ops = failed
        raise no_kernel
    return LoopPlan(graph, tuple(ops), memory.lay_out(ops, builder))


def _without_empty(op: Move) -> Move:
    """Remove empty operands of a move."""
    pairs = [(b, m) for b, m in zip(op.operands, op.maps) if 0 not in b.shape]
    if len(pairs) == len(op.maps):
        return op
    return dataclasses.replace(op, operands=tuple(b for b, _ in pairs), maps=tuple(m for _, m in pairs))


def _copying(op: View | Bitcast) -> Move:
    """Return the copy of a view whose buffers both have memory; of bytes if their dtypes differ."""
    dtype = op.output.dtype if op.input.dtype is op.output.dtype else uint8
    source, target = _flat(op.input, dtype), _flat(op.output, dtype)
    return Move(target, (source,), (IndexMap((0,), target.shape, 0, (1,)),), origin=op.origin)


def _flat(buffer: Buffer, dtype: DType) -> Buffer:
    if buffer.parent is not None:
        raise NoKernel("a view of a slice")
    constant, size = buffer.constant, buffer.size * buffer.dtype.size // dtype.size
    if constant is not None:
        constant = np.ascontiguousarray(constant).reshape(-1).view(dtype.np)
    return SameMemory(buffer.name, dtype, (size,), constant, of=buffer)


def _via_copy(op: LoopOp) -> list[LoopOp] | None:
    """Return an operation that cannot write a slice in place as the operation into its own buffer and a copy."""
    out = op.output
    if out.parent is None or isinstance(op, Move):
        return None
    buffer = Buffer(out.name, out.dtype, out.shape)
    return [dataclasses.replace(op, output=buffer), slice_copy(buffer, out, op.origin)]
