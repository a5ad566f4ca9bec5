"""The table of List operators as operators on tensors [length, ...element].

Lives here: `OPERATORS`.  Not here: the rewriter (list_rewriter.py).

Each function receives the rewriter and the node, and returns the replacements of the node's outputs. Unset elements
are zeros. An index out of range, an error in the function, is an error of GATHER too; DYNAMIC_UPDATE_SLICE clamps it,
as in files of the official converter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.dtypes import int32, int64
from ....core.errors import InvalidArgumentError
from ....graph import Node, Value
from .list_analysis import UnlowerableList

if TYPE_CHECKING:
    from .list_rewriter import ListRewriter

Size = int | Value


def update(scope: ListRewriter, rows: Value, index: Size, item: Value) -> Value:
    """Replace one row."""
    row = scope.make("ExpandDims", item, axis=0)
    rank = rows.shape.rank or 1
    if scope.kinds.updates:
        starts = scope.vector([index, *[0] * (rank - 1)])
        try:
            return scope.make("DYNAMIC_UPDATE_SLICE", rows, row, starts, like=rows.spec)
        except InvalidArgumentError:  # not of this type
            pass
    before = part(scope, rows, 0, index)
    after = part(scope, rows, scope.add(index, 1), -1)
    return scope.make("Concat", (before, row, after), axis=0, like=rows.spec)


def part(scope: ListRewriter, rows: Value, begin: Size, count: Size) -> Value:
    """Return `count` rows from `begin` on; all that follow for -1."""
    rank = rows.shape.rank or 1
    return scope.make(
        "Slice", rows, scope.vector([begin, *[0] * (rank - 1)]), scope.vector([count, *[-1] * (rank - 1)])
    )


def _at_least(scope: ListRewriter, rows: Value, length: Value) -> Value:
    """Append rows of zeros up to a length."""
    more = scope.make("Maximum", scope.make("Sub", length, scope.value_of(scope.length(rows))), scope.constant(0))
    sizes = [scope.dim(rows, i) for i in range(1, rows.shape.rank or 1)]
    return scope.make("Concat", (rows, scope.zeros([more, *sizes], rows.dtype)), axis=0)


def _reserve(scope: ListRewriter, node: Node) -> Sequence[Any]:
    (count,) = node.operands
    constant = count.constant
    return [scope.reserved(node, int(constant) if constant is not None else scope.value(count))]


def _undefined(scope: ListRewriter, node: Node) -> Sequence[Any]:
    return [scope.reserved(node, 0)]


def _length(scope: ListRewriter, node: Node) -> Sequence[Value]:
    return [scope.value_of(scope.length_of(node.inputs[0]))]  # type: ignore[arg-type]


def _zeros_like(scope: ListRewriter, node: Node) -> Sequence[Value]:
    rows = scope.rows(node.inputs[0])
    return [scope.zeros([scope.dim(rows, i) for i in range(rows.shape.rank or 1)], rows.dtype)]


def _add(scope: ListRewriter, node: Node) -> Sequence[Value]:
    return [scope.make("Add", *map(scope.rows, node.inputs))]


def _resize(scope: ListRewriter, node: Node) -> Sequence[Value]:
    rows, size = scope.rows(node.inputs[0]), scope.value(node.inputs[1])
    length = scope.length(rows)
    if size.constant is not None and isinstance(length, int):
        target = int(size.constant)
        if target == length:
            return [rows]
        if target < length:
            return [part(scope, rows, 0, target)]
    kept = part(scope, rows, 0, scope.make("Minimum", size, scope.value_of(length)))
    return [_at_least(scope, kept, size)]


def _append(scope: ListRewriter, node: Node) -> Value:
    """Write an element at the index of the loop counter."""
    counter, offset = scope.appends[node]
    place = scope.add(scope.value(counter), offset)
    return update(scope, scope.rows(node.inputs[0]), place, scope.value(node.inputs[-1]))


def _push(scope: ListRewriter, node: Node) -> Sequence[Value]:
    if node in scope.appends:
        return [_append(scope, node)]
    item = scope.value(node.inputs[1])
    if scope.is_empty(node.inputs[0]):
        return [scope.make("ExpandDims", item, axis=0)]
    rows = scope.rows(node.inputs[0])
    return [scope.make("Concat", (rows, scope.make("ExpandDims", item, axis=0)), axis=0)]


def _pop(scope: ListRewriter, node: Node) -> Sequence[Value]:
    rows = scope.rows(node.inputs[0])
    last = scope.add(scope.length(rows), -1)
    item = scope.make("Gather", rows, scope.value_of(last), like=node.outputs[1].spec)
    return [part(scope, rows, 0, last), item]


def _get(scope: ListRewriter, node: Node) -> Sequence[Value]:
    index = scope.value(node.inputs[1])
    return [scope.make("Gather", scope.rows(node.inputs[0]), index, like=node.outputs[0].spec)]


def _set(scope: ListRewriter, node: Node) -> Sequence[Value]:
    if node in scope.appends:
        return [_append(scope, node)]
    rows, index, item = scope.rows(node.inputs[0]), scope.value(node.inputs[1]), scope.value(node.inputs[2])
    if node.attrs["grow"]:
        position, length = index.constant, scope.length(rows)
        if position is None or not isinstance(length, int) or int(position) >= length:
            if position is not None and length == int(position):
                return [scope.make("Concat", (rows, scope.make("ExpandDims", item, axis=0)), axis=0)]
            rows = _at_least(scope, rows, scope.value_of(scope.add(index, 1)))
    return [update(scope, rows, index if index.constant is None else int(index.constant), item)]


def _chosen(scope: ListRewriter, rows: Value, indices: Value) -> Value:
    """Return a mask [k, length]: whether the k-th index is that position."""
    length = scope.value_of(scope.length(rows))
    return scope.make("OneHot", indices, length, scope.constant(True), scope.constant(False))


def _where_rows(scope: ListRewriter, which: Value, yes: Value, no: Value) -> Value:
    """Select row by row."""
    ones = (no.shape.rank or 1) - 1
    flags = scope.make("Reshape", which, scope.vector([-1, *[1] * ones])) if ones else which
    return scope.make("Select", flags, yes, no, like=no.spec)


def _unset(scope: ListRewriter, node: Node) -> Sequence[Value]:
    rows = scope.rows(node.inputs[0])
    indices = scope.make("Reshape", scope.value(node.inputs[1]), scope.vector([-1]))
    gone = scope.make("Any", _chosen(scope, rows, indices), axis=[0])
    sizes = [scope.dim(rows, i) for i in range(rows.shape.rank or 1)]
    return [_where_rows(scope, gone, scope.zeros(sizes, rows.dtype), rows)]


def _stack(scope: ListRewriter, node: Node) -> Sequence[Value]:
    return [scope.make("Identity", scope.rows(node.inputs[0]), like=node.outputs[0].spec)]


def _from_tensor(scope: ListRewriter, node: Node) -> Sequence[Value]:
    return [scope.value(node.inputs[0])]


def _gather(scope: ListRewriter, node: Node) -> Sequence[Value]:
    rows, indices = scope.rows(node.inputs[0]), scope.value(node.inputs[1])
    return [scope.make("Gather", rows, indices, like=node.outputs[0].spec)]


def _scatter(scope: ListRewriter, node: Node) -> Sequence[Value]:
    """Select the last row written to each position: 1 + the greatest k whose index it is, 0 if none."""
    indices, tensor = scope.value(node.inputs[1]), scope.value(node.inputs[2])
    positions = indices.constant
    if node.attrs["grow"] and positions is None:
        greatest = scope.make("Max", scope.make("Concat", (indices, scope.constant([-1])), axis=0), axis=[0])
        rows = _at_least(scope, scope.rows(node.inputs[0]), scope.value_of(scope.add(greatest, 1)))
    elif node.attrs["grow"] and positions is not None and positions.size:
        rows = _at_least(scope, scope.rows(node.inputs[0]), scope.constant(int(positions.max()) + 1))
    else:
        rows = scope.rows(node.inputs[0])
    if (
        positions is not None
        and np.array_equal(positions, np.arange(len(positions)))
        and scope.length(rows) == len(positions)
    ):
        return [tensor]
    count = scope.value_of(scope.length(tensor))
    numbers = scope.make("Range", scope.constant(1), scope.value_of(scope.add(count, 1)), scope.constant(1))
    chosen = scope.make("Cast", _chosen(scope, rows, indices), dtype=int32)
    last = scope.make("Max", scope.make("Mul", chosen, scope.make("ExpandDims", numbers, axis=1)), axis=[0])
    sizes = [scope.dim(rows, i) for i in range(1, rows.shape.rank or 1)]
    padded = scope.make("Concat", (scope.zeros([1, *sizes], rows.dtype), tensor), axis=0)
    some = scope.make("Greater", last, scope.constant(0))
    return [_where_rows(scope, some, scope.make("Gather", padded, last), rows)]


def _scatter_add(scope: ListRewriter, node: Node) -> Sequence[Value]:
    rows, indices, tensor = scope.rows(node.inputs[0]), scope.value(node.inputs[1]), scope.value(node.inputs[2])
    shape = scope.make("Shape", rows)
    return [
        scope.make(
            "Add",
            rows,
            scope.make("ScatterNd", scope.make("ExpandDims", indices, axis=1), tensor, shape),
            like=rows.spec,
        )
    ]


def _concat(scope: ListRewriter, node: Node) -> Sequence[Value]:
    if node.inputs[1] is not None:
        raise UnlowerableList(node, "its elements may have different lengths")
    rows = scope.rows(node.inputs[0])
    rank = rows.shape.rank or 2
    sizes = [scope.dim(rows, i) for i in range(2, rank)]
    shape = scope.vector([-1, *sizes])
    lengths = scope.make(
        "Fill", scope.vector([scope.length(rows)]), scope.make("Cast", scope.value_of(scope.dim(rows, 1)), dtype=int64)
    )
    return [scope.make("Reshape", rows, shape, like=node.outputs[0].spec), lengths]


def _split(scope: ListRewriter, node: Node) -> Sequence[Value]:
    tensor, lengths = scope.value(node.inputs[0]), scope.value(node.inputs[1])
    assert lengths.constant is not None, "list_analysis.py has looked"
    n = lengths.constant
    sizes = [scope.dim(tensor, i) for i in range(1, tensor.shape.rank or 1)]
    return [scope.make("Reshape", tensor, scope.vector([len(n), int(n[0]), *sizes]))]


OPERATORS: dict[str, Callable[[ListRewriter, Node], Sequence[Any]]] = {
    "ListReserve": _reserve,
    "Undefined": _undefined,
    "ListLength": _length,
    "ListZerosLike": _zeros_like,
    "ListAdd": _add,
    "ListResize": _resize,
    "ListPush": _push,
    "ListPop": _pop,
    "ListGet": _get,
    "ListSet": _set,
    "ListUnset": _unset,
    "ListStack": _stack,
    "ListFromTensor": _from_tensor,
    "ListGather": _gather,
    "ListScatter": _scatter,
    "ListScatterAdd": _scatter_add,
    "ListConcat": _concat,
    "ListSplit": _split,
}
