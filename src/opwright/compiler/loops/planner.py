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


def plan_of(graph: LoopGraph, apart: Callable[[LoopOp], Sequence[LoopOp] | None] = lambda form: None) -> LoopPlan:
    """The plan of a loop graph. Its constants are not packed yet: `LoopPlan.pack`.

    apart: of a form that fusion made, those it was made of, which run instead where no kernel does it.
    raises NoKernel with all forms that nobody makes
    """
    memory = PlanMemory(graph)
    builder = Builder()
    forms: list[LoopOp] = []
    failed: dict[LoopOp, str] = {}
    todo = list(reversed(graph.forms))
    while todo:
        form = todo.pop()
        if isinstance(form, Store):  # all that follow are
            stores = [form, *(s for s in reversed(todo) if isinstance(s, Store))]
            todo = list(reversed(copies(stores, forms, memory.touched(forms, builder), builder.shares, memory)))
            continue
        if isinstance(form, View | Bitcast) and memory.view(form):
            forms.append(form)
            continue
        if 0 in form.output.shape and isinstance(form, WITHOUT_GUARDS):
            forms.append(form)  # which takes no step
            continue
        builder.begin(len(forms), form)
        try:
            form = _of_something(form) if isinstance(form, Move) else form
            if any(0 in b.shape for b in (form.output, *form.inputs)):
                raise NoKernel("an array without elements")
            select(_copying(form) if isinstance(form, View | Bitcast) else form, builder)
        except NoKernel as why:
            parts = apart(form) or _beside(form)
            if parts is None:
                failed[form] = str(why)
            else:
                todo += reversed(parts)
            continue
        forms.append(form)
    if failed:
        no_kernel = NoKernel("; ".join(dict.fromkeys(failed.values())))
        no_kernel.forms = failed
        raise no_kernel
    return LoopPlan(graph, tuple(forms), memory.lay_out(forms, builder))


def _of_something(form: Move) -> Move:
    """Data movement less what has no elements."""
    pairs = [(b, m) for b, m in zip(form.operands, form.maps) if 0 not in b.shape]
    if len(pairs) == len(form.maps):
        return form
    return dataclasses.replace(form, operands=tuple(b for b, _ in pairs), maps=tuple(m for _, m in pairs))


def _copying(form: View | Bitcast) -> Move:
    """A view whose two buffers both have memory: a copy, of bytes where their dtypes differ."""
    dtype = form.output.dtype if form.input.dtype is form.output.dtype else uint8
    source, target = _flat(form.input, dtype), _flat(form.output, dtype)
    return Move(target, (source,), (IndexMap((0,), target.shape, 0, (1,)),), origin=form.origin)


def _flat(buffer: Buffer, dtype: DType) -> Buffer:
    if buffer.parent is not None:
        raise NoKernel("a view of a slice")
    known, size = buffer.constant, buffer.size * buffer.dtype.size // dtype.size
    if known is not None:
        known = np.ascontiguousarray(known).reshape(-1).view(dtype.np)
    return SameMemory(buffer.name, dtype, (size,), known, of=buffer)


def _beside(form: LoopOp) -> list[LoopOp] | None:
    """A form that cannot write a slice in place: the form into a buffer of its own, and a copy."""
    out = form.output
    if out.parent is None or isinstance(form, Move):
        return None
    whole = Buffer(out.name, out.dtype, out.shape)
    return [dataclasses.replace(form, output=whole), slice_copy(whole, out, form.origin)]
