"""Lists of tensors as arrays: what `TensorArray` and the gradients of loops consist of, where sizes are static.

Lives here: `ListOperand`; the rules of operators on lists; `element_shape_in`, `changes_in`, what a graph does to a
list.
Not here: lists that loops and branches pass on (control_flow.py), lists at run time (ops/tensor_list.py).

The elements of a list are the rows of one buffer, and its versions are buffers as of any value: an element is set in
place if no version before is read later. Elements that are not set are zeros, as they are read. A list that grows has
memory for as many elements as the trip count of its loop permits, and a size.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from ...core.dtypes import DType, int32, uint8
from ...core.shapes import TensorShape
from ...graph import Graph, Value
from ...graph.passes.control_flow import control_operands
from ..loops.buffers import Buffer
from ..loops.expressions import apply, arg, const
from ..loops.indexing_ops import Expected, Gather, PutEntries
from ..loops.ops import Map, View
from .context import LoweringContext, NoLowering, RuleOperand
from .registry import rule

MOST_BYTES = 1 << 28
"""Largest list that is an array."""


class ListOperand(NamedTuple):
    """A list as an operand. length: number of elements, or if there is a size, memory for them. shape: of an element,
    if it is known; rows: the elements, None if all are unset; size: int32 [], the number of elements.

    single: index and item, int32 [] and an element, of a list in which only this element is set and which has no rows
    bounded: whether the memory is for the elements that the loop is known to add; otherwise most of it may be unused
    """

    dtype: DType
    length: int
    shape: tuple[int, ...] | None
    rows: Buffer | None = None
    size: Buffer | None = None
    single: tuple[Buffer, Buffer] | None = None
    bounded: bool = True

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """Rows, and the size if there is one."""
        assert self.rows is not None
        return (self.rows,) if self.size is None else (self.rows, self.size)

    def with_buffers(self, rows: Buffer, size: Buffer | None = None) -> ListOperand:
        """Return the list with its elements in another buffer."""
        return self._replace(rows=rows, size=size, single=None)


def list_of(ctx: LoweringContext, index: int = 0) -> ListOperand:
    """Return an input that is a list. Raises NoLowering for a list from outside of the graph."""
    value = ctx.node.inputs[index]
    assert isinstance(value, Value)
    operand: ListOperand | None = ctx.buffers.lists.get(value)
    if operand is None:
        raise NoLowering("a list that is not an array")
    return operand


def with_rows(ctx: LoweringContext, x: ListOperand) -> ListOperand:
    """Return the list with its elements in a buffer. Raises NoLowering for elements of unknown shape."""
    if x.rows is not None:
        return x
    if x.shape is None:
        raise NoLowering("a list whose elements have an unknown shape")
    if x.length * math.prod(x.shape) * x.dtype.size > MOST_BYTES:
        raise NoLowering(f"a list of {x.length} elements of the shape {list(x.shape)}")
    zeros = ctx.new(x.dtype, (x.length, *x.shape), f".{len(ctx.ops)}")
    ctx.add(Map, zeros, (), const(0, x.dtype))
    unset = x.with_buffers(zeros)
    return unset if x.single is None else _with_element(ctx, unset, *x.single)


def _with_element(ctx: LoweringContext, x: ListOperand, index: Buffer, item: Buffer) -> ListOperand:
    """Return a list with another element."""
    assert x.rows is not None
    rows = ctx.new(x.dtype, x.rows.shape)
    ctx.add(PutEntries, rows, x.rows, ctx.viewed(item, (1, *item.shape)), ctx.viewed(index, (1,)))
    return x._replace(rows=rows)


def _yield(ctx: LoweringContext, x: ListOperand) -> None:
    ctx.buffers.lists[ctx.node.outputs[0]] = x


def _item(ctx: LoweringContext, index: int, x: ListOperand) -> tuple[Buffer, ListOperand]:
    """Return an input as an element of a list, and the list, with the element's shape. Raises NoLowering for another
    type than the list's."""
    item = ctx.operand(index)
    if item.dtype is not x.dtype or x.shape not in (None, item.shape):
        raise NoLowering(f"{item} in a list of {x.dtype.name}, {x.shape}")
    return item.buffer, x._replace(shape=item.shape)


def _place(ctx: LoweringContext, index: RuleOperand, x: ListOperand) -> Buffer:
    """Return the row of an element, -1 for one beyond the size, which fails its guard."""
    if index.dtype is not int32 or index.size != 1:
        raise NoLowering(f"an element at {index}")
    if x.size is None:
        return index.buffer
    place = ctx.new(int32, ())
    inside = apply("less", arg(0, int32), arg(1, int32))
    ctx.add(Map, place, (index.buffer, x.size), apply("select", inside, arg(0, int32), const(-1, int32)))
    return place


def _fixed(x: ListOperand) -> ListOperand:
    if x.size is not None:
        raise NoLowering("a list that grows")
    return x


def in_bounds(x: ListOperand) -> ListOperand:
    """Return a list all of whose memory may be written. Raises NoLowering for one with memory for any length."""
    if not x.bounded:
        raise NoLowering("a list that has grown in a loop of unknown length")
    return x


def _full(shape: TensorShape, x: ListOperand) -> ListOperand:
    """Return the list with the shape of its elements from an attribute, where it is not known."""
    if x.shape is None and shape.is_fully_defined():
        return x._replace(shape=tuple(shape.as_list()))  # type: ignore[arg-type]
    return x


@rule("ListReserve")
def reserve(ctx: LoweringContext) -> None:
    """Lower a list of unset elements."""
    dtype, shape = ctx.attr("element_dtype"), ctx.attr("element_shape")
    if dtype.is_handle or dtype.np.kind in "OSUVc":
        raise NoLowering(f"a list of {dtype.name}")
    length = int(ctx.constant(0).reshape(-1)[0])
    _yield(ctx, _full(shape, ListOperand(dtype, length, None)))


@rule("ListZerosLike")
def zeros_like(ctx: LoweringContext) -> None:
    x = list_of(ctx)
    if x.size is None:
        _yield(ctx, x._replace(rows=None, single=None))
        return
    zeros = with_rows(ctx, in_bounds(x)._replace(rows=None, single=None, size=None))
    _yield(ctx, zeros._replace(size=x.size))


@rule("ListLength")
def length(ctx: LoweringContext) -> None:
    x, y = list_of(ctx), ctx.output(()).buffer
    if x.size is None:
        ctx.add(Map, y, (), const(x.length, int32))
    else:
        ctx.add(View, y, x.size)


@rule("ListSet")
def set_element(ctx: LoweringContext) -> None:
    """Lower a list with another element, in place if the list has no later readers."""
    if ctx.attr("grow"):
        raise NoLowering("the list may grow")
    item, x = _item(ctx, 2, list_of(ctx))
    place = _place(ctx, ctx.operand(1), x)
    if x.rows is None and x.single is None:
        _yield(ctx, x._replace(single=(place, item)))
    else:
        _yield(ctx, _with_element(ctx, with_rows(ctx, x), place, item))


@rule("ListUnset")
def unset(ctx: LoweringContext) -> None:
    """Lower a list without an element, which is zeros."""
    x, index = list_of(ctx), ctx.operand(1)
    if x.rows is None and x.single is None:
        _yield(ctx, x)
        return
    x = with_rows(ctx, x)
    assert x.shape is not None
    zeros = ctx.new(x.dtype, x.shape)
    ctx.add(Map, zeros, (), const(0, x.dtype))
    _yield(ctx, _with_element(ctx, x, _place(ctx, index, x), zeros))


@rule("ListPush")
def push(ctx: LoweringContext) -> None:
    """Lower a list with one element more, of a list with memory for it."""
    item, x = _item(ctx, 1, list_of(ctx))
    if x.size is None or x.rows is None:
        raise NoLowering("a list grows outside of a loop with a known trip count")
    grown, size = _with_element(ctx, x, x.size, item), ctx.new(int32, ())
    ctx.add(Map, size, (x.size,), apply("add", arg(0, int32), const(1, int32)))
    _yield(ctx, grown._replace(size=size))


@rule("ListResize")
def resize(ctx: LoweringContext) -> None:
    """Lower the first elements of a list, whose memory stays; a larger size than the list's is a failed guard."""
    x, size = list_of(ctx), ctx.operand(1)
    if size.dtype is not int32 or size.size != 1:
        raise NoLowering(f"a list of the size {size}")
    if x.size is None:
        raise NoLowering("a list is resized outside of a loop")
    larger, kept = ctx.new(int32, (1,), ".larger"), ctx.new(int32, ())
    ctx.add(Map, larger, (ctx.viewed(x.size, (1,)), ctx.viewed(size.buffer, (1,))), _IS_LARGER)
    _expect(ctx, larger, 0)
    ctx.add(View, kept, ctx.viewed(size.buffer, ()))
    _yield(ctx, x._replace(size=kept))


_IS_LARGER = apply("select", apply("less", arg(0, int32), arg(1, int32)), const(1, int32), const(0, int32))


@rule("ListPop")
def pop(ctx: LoweringContext) -> None:
    """Lower a list without its last element, whose memory stays, and that element; an empty list is a failed guard."""
    x = with_rows(ctx, _full(ctx.attr("element_shape"), list_of(ctx)))
    if x.size is None or x.shape is None:
        raise NoLowering("a list shrinks outside of a loop")
    y, size = ctx.output(x.shape, 1), ctx.new(int32, ())
    assert x.rows is not None
    if y.dtype is not x.dtype:
        raise NoLowering(f"{y} of a list of {x.dtype.name}, {x.shape}")
    ctx.add(Map, size, (x.size,), apply("sub", arg(0, int32), const(1, int32)))
    ctx.add(Gather, y.buffer, x.rows, size, 0)
    _yield(ctx, x._replace(size=size))


@rule("ListGet")
def get(ctx: LoweringContext) -> None:
    """Lower an element; an index out of range is a failed guard."""
    x, y = with_rows(ctx, _full(ctx.attr("element_shape"), list_of(ctx))), ctx.output()
    if y.dtype is not x.dtype or y.shape != x.shape:
        raise NoLowering(f"{y} of a list of {x.dtype.name}, {x.shape}")
    assert x.rows is not None
    ctx.add(Gather, y.buffer, x.rows, _place(ctx, ctx.operand(1), x), 0)


@rule("ListGather")
def gather(ctx: LoweringContext) -> None:
    """Lower elements at indices, along a new first axis."""
    x, y = with_rows(ctx, _fixed(_full(ctx.attr("element_shape"), list_of(ctx)))), ctx.output()
    if y.dtype is not x.dtype or y.shape[1:] != x.shape:
        raise NoLowering(f"{y} of a list of {x.dtype.name}, {x.shape}")
    assert x.rows is not None
    ctx.add(Gather, y.buffer, x.rows, ctx.operand(1).buffer, 0)


@rule("ListStack")
def stack(ctx: LoweringContext) -> None:
    """Lower the elements as one tensor: the rows themselves, all of which are elements, or a guard fails."""
    x, y = with_rows(ctx, _full(ctx.attr("element_shape"), list_of(ctx))), ctx.output()
    assert x.rows is not None
    if y.dtype is not x.dtype or y.shape != x.rows.shape:
        raise NoLowering(f"{y} of a list of {x.length} elements")
    if x.size is not None:
        _expect_same(ctx, x.size, Buffer(f"{y.buffer.name}.length", int32, (), np.array(x.length, np.int32)))
    ctx.add(View, y.buffer, x.rows)


@rule("ListFromTensor")
def from_tensor(ctx: LoweringContext) -> None:
    """Lower the rows of a tensor as a list: the tensor itself."""
    x = ctx.operand(0)
    rows = ctx.new(x.dtype, x.shape)
    ctx.add(View, rows, x.buffer)
    _yield(ctx, ListOperand(x.dtype, x.shape[0], x.shape[1:], rows))


def _expect_same(ctx: LoweringContext, a: Buffer, b: Buffer) -> None:
    """Add a guard that two sizes are the same number."""
    difference = ctx.new(int32, (1,), ".difference")
    operands = ctx.viewed(a, (1,)), ctx.viewed(b, (1,))
    ctx.add(Map, difference, operands, apply("sub", arg(0, int32), arg(1, int32)))
    _expect(ctx, difference, 0)


def _expect(ctx: LoweringContext, x: Buffer, number: int) -> None:
    """Add a guard that a buffer of one int32 has this number."""
    guard, elements = Buffer(f"{x.name}.guard", uint8, (1,)), np.array([number], np.int32)
    ctx.add(Expected, guard, x, Buffer(f"{x.name}.expected", int32, (1,), elements))


@rule("ListAdd")
def add(ctx: LoweringContext) -> None:
    """Lower sums of elements: of the only one that is set in one of the lists, or of all."""
    x, y = list_of(ctx), list_of(ctx, 1)
    if x.dtype is not y.dtype or x.length != y.length or (x.size is None) != (y.size is None):
        raise NoLowering(f"a sum of lists of {x.length} and {y.length} elements")
    if x.size is not None and y.size is not None and x.size is not y.size:
        _expect_same(ctx, x.size, y.size)
    if x.shape is None or y.shape is None:
        x, y = x._replace(shape=x.shape or y.shape), y._replace(shape=x.shape or y.shape)
    if x.shape != y.shape:
        raise NoLowering(f"a sum of lists of elements of the shapes {x.shape} and {y.shape}")
    for one, other in ((x, y), (y, x)):
        if one.rows is None and one.single is None:
            _yield(ctx, other)
            return
    total = apply("add", arg(0, x.dtype), arg(1, x.dtype))
    for one, other in ((x, y), (y, x)):
        if one.single is not None:
            index, item = one.single
            other = with_rows(ctx, other)
            assert other.rows is not None
            present, together = (ctx.new(x.dtype, item.shape, name) for name in (".present", ".sum"))
            ctx.add(Gather, present, other.rows, index, 0)
            ctx.add(Map, together, (present, item), total)
            _yield(ctx, _with_element(ctx, other, index, together))
            return
    assert x.rows is not None
    assert y.rows is not None
    rows = ctx.new(in_bounds(x).dtype, x.rows.shape)
    ctx.add(Map, rows, (x.rows, y.rows), total)
    _yield(ctx, x._replace(rows=rows))


_CHANGES = frozenset(
    {"ListSet", "ListPush", "ListPop", "ListUnset", "ListAdd", "ListResize", "Identity", "StopGradient"}
)
"""Operators whose result is a list of the same elements' shape as their first operand."""


def element_shape_in(graph: Graph, value: Value) -> tuple[int, ...] | None:
    """Return the shape of a list's elements as the nodes of a graph use it, None if they do not tell."""
    versions = {value}
    for node in graph.nodes:
        operands = list(node.operands)
        if versions.isdisjoint(operands):
            continue
        inner = list(node.subgraphs)
        if inner:
            passed = control_operands(node)
            pairs = [(g, v) for g in inner for v, x in zip(g.inputs, passed) if x in versions]
            shape = next((s for s in (element_shape_in(g, v) for g, v in pairs) if s is not None), None)
            if shape is not None:
                return shape
            if node.op.name == "While":
                versions.update(y for y, x in zip(node.outputs, passed) if x in versions)
            continue
        item = operands[-1] if node.op.name in ("ListSet", "ListPush") else None
        known = node.attrs.get("element_shape") if item is None else item.shape
        if known is not None and known.is_fully_defined():
            dims: Any = known.dims
            return tuple(dims)
        if node.op.name in _CHANGES:
            versions.add(node.outputs[0])
    return None


def changes_in(graph: Graph, index: int) -> Counter[str]:
    """Return the operators by which a body changes the list that is its variable `index`, and how often."""
    changes, value = Counter[str](), graph.outputs[index]
    while value.node is not None and value.node.op.name in _CHANGES:
        changes[value.node.op.name] += 1
        value = next(value.node.operands)
    return changes
