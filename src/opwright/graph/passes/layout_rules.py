"""The equation f(transpose(x, p)) = transpose(g(x), q) of each operator, by which transposes move through it.

Lives here: RULES, `rule_of`, `elementwise_alike`, `reshape_groups`. Not here: which rules are applied, and whether the
result is used (layout.py), the walk that applies them (layout_rewriter.py).

A rule takes a node of the source and the rewriter. It appends g on the stored operands and returns True, or returns
False; what it appended is erased then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir import Node, Operand, Value
from .layout_rewriter import Layout, LayoutRewriter, Perm, identity, inverse

LayoutRule = Callable[[Node, LayoutRewriter], bool]


def _size(dims: Sequence[int | None]) -> int:
    return math.prod(d or 1 for d in dims)


def _stored_as(rewriter: LayoutRewriter, layout: Layout, perm: Perm) -> Value:
    """Return y with value = transpose(y, perm), for the value of a layout."""
    back = inverse(perm)
    return rewriter.ordered(layout.stored, tuple(layout.perm[b] for b in back))


def _broadcast_as(rewriter: LayoutRewriter, value: Value, perm: Perm) -> Value | None:
    """Return an operand of a broadcast whose result is stored in the order of `perm`; None if it cannot be."""
    rank = value.shape.rank
    if rank is None or rank > len(perm):
        return None
    layout = rewriter.layout(value)
    dims = layout.shape
    extra = len(perm) - rank
    if all(d == 1 for d in dims):
        return layout.stored
    if perm == (*range(extra), *(p + extra for p in layout.perm)):
        return layout.stored
    if extra:
        if dims.count(None) > 1:
            return None
        plain = rewriter.reshaped(rewriter.ordered(layout.stored, layout.perm), [1] * extra + dims)
        layout = Layout(plain, identity(len(perm)))
    return _stored_as(rewriter, layout, perm)


def _common_perm(rewriter: LayoutRewriter, values: Sequence[Value], rank: int) -> Perm | None:
    """Return the perm of the largest operand in another order."""
    best, largest = None, -1
    for value in values:
        layout = rewriter.layouts.get(value)
        if layout is None or len(layout.perm) > rank:
            continue
        extra = rank - len(layout.perm)
        size = _size(layout.shape)
        if size > largest:
            best, largest = (*range(extra), *(p + extra for p in layout.perm)), size
    return best


def _in_order(node: Node, rewriter: LayoutRewriter) -> bool:
    """Return whether an operand of the whole size is in the order of the source."""
    size = _size(list(node.outputs[0].shape))
    return any(
        v not in rewriter.layouts and v not in rewriter.fixed and v.shape.rank and _size(list(v.shape)) == size
        for v in node.operands
    )


def elementwise_alike(node: Node, rewriter: LayoutRewriter) -> bool:
    """Match element-wise operators of which no large operand is in the order of the source."""
    return not _in_order(node, rewriter) and _elementwise(node, rewriter)


def _elementwise(node: Node, rewriter: LayoutRewriter) -> bool:
    values = list(node.operands)
    rank = node.outputs[0].shape.rank
    if rank is None or any(v.shape.rank is None for v in values) or any(o is None for o in node.inputs):
        return False
    perm = _common_perm(rewriter, values, rank)
    if perm is None or any(isinstance(o, tuple) for o in node.inputs):
        return False
    inputs = [_broadcast_as(rewriter, v, perm) for v in values]
    if any(v is None for v in inputs):
        return False
    return rewriter.emit(node, inputs, [perm] * len(node.outputs))


def _first_operand(node: Node, rewriter: LayoutRewriter) -> Layout | None:
    """Return the layout of the first operand, if it is in another order; the others are not."""
    value = node.inputs[0]
    if not isinstance(value, Value) or value not in rewriter.layouts:
        return None
    return rewriter.layouts[value]


def _rest(node: Node, rewriter: LayoutRewriter) -> list[Operand]:
    """Return the operands after the first, in the order of the source."""
    for value in list(node.operands)[1:]:
        rewriter.operand_in_order(value)
    return [rewriter.operand(o) for o in node.inputs[1:]]


def _same_order(node: Node, rewriter: LayoutRewriter) -> bool:
    layout = _first_operand(node, rewriter)
    if layout is None:
        return False
    return rewriter.emit(node, [layout.stored, *_rest(node, rewriter)], [layout.perm])


def _along_axis(node: Node, rewriter: LayoutRewriter) -> bool:
    """Match operators along one axis, or several, that keep the rank."""
    layout = _first_operand(node, rewriter)
    if layout is None:
        return False
    axis, rank = node.attrs["axis"], len(layout.perm)
    moved = layout.perm[axis % rank] if isinstance(axis, int) else [layout.perm[a % rank] for a in axis]
    return rewriter.emit(
        node, [layout.stored, *_rest(node, rewriter)], [layout.perm] * len(node.outputs), {"axis": moved}
    )


def _without(perm: Perm, axes: Sequence[int]) -> Perm:
    """Return the perm of the dimensions that remain without some, which are named as in the value."""
    left = [perm[i] for i in range(len(perm)) if i not in axes]
    order = sorted(left)
    return tuple(order.index(p) for p in left)


def _reduction(node: Node, rewriter: LayoutRewriter) -> bool:
    layout = _first_operand(node, rewriter)
    if layout is None:
        return False
    axis, rank = node.attrs["axis"], len(layout.perm)
    if axis is None:
        return False
    axes = [a % rank for a in ((axis,) if isinstance(axis, int) else axis)]
    perm = layout.perm if node.attrs.get("keepdims") else _without(layout.perm, axes)
    moved = sorted(layout.perm[a] for a in axes)
    return rewriter.emit(
        node, [layout.stored, *_rest(node, rewriter)], [perm], {"axis": moved[0] if isinstance(axis, int) else moved}
    )


def _concat(node: Node, rewriter: LayoutRewriter) -> bool:
    values = node.inputs[0]
    rank = node.outputs[0].shape.rank
    assert isinstance(values, tuple)
    if rank is None or any(v.shape.rank != rank for v in values):
        return False
    perm = _common_perm(rewriter, values, rank)
    if perm is None:
        return False
    stored = tuple(_stored_as(rewriter, rewriter.layout(v), perm) for v in values)
    return rewriter.emit(node, [stored], [perm], {"axis": perm[node.attrs["axis"] % rank]})


def _pack(node: Node, rewriter: LayoutRewriter) -> bool:
    values = node.inputs[0]
    assert isinstance(values, tuple)
    rank = node.outputs[0].shape.rank
    if rank is None or any(v.shape.rank != rank - 1 for v in values):
        return False
    perm = _common_perm(rewriter, values, rank - 1)
    if perm is None:
        return False
    axis = node.attrs["axis"] % rank
    place = perm[axis] if axis < rank - 1 else rank - 1  # before the dimension that it precedes
    moved = [p + (p >= place) for p in perm]
    moved.insert(axis, place)
    stored = tuple(_stored_as(rewriter, rewriter.layout(v), perm) for v in values)
    return rewriter.emit(node, [stored], [tuple(moved)], {"axis": place})


def _unpack(node: Node, rewriter: LayoutRewriter) -> bool:
    layout = _first_operand(node, rewriter)
    if layout is None:
        return False
    axis = node.attrs["axis"] % len(layout.perm)
    perm = _without(layout.perm, [axis])
    return rewriter.emit(node, [layout.stored], [perm] * len(node.outputs), {"axis": layout.perm[axis]})


def _permuted_vectors(*positions: int) -> LayoutRule:
    """Return the rule of operators with one element, or row, of constant operands for each dimension."""

    def rule(node: Node, rewriter: LayoutRewriter) -> bool:
        layout = _first_operand(node, rewriter)
        if layout is None:
            return False
        inputs = list(node.inputs)
        inputs[0] = layout.stored
        for position in range(1, len(inputs)):
            operand = inputs[position]
            if position in positions:
                array = operand.constant if isinstance(operand, Value) else None
                if array is None or len(array) != len(layout.perm):
                    return False
                inputs[position] = rewriter.constant(np.ascontiguousarray(array[list(inverse(layout.perm))]))
            else:
                inputs[position] = rewriter.operand(operand)
        return rewriter.emit(node, inputs, [layout.perm])

    return rule


def _strided_slice(node: Node, rewriter: LayoutRewriter) -> bool:
    layout = _first_operand(node, rewriter)
    attrs = node.attrs
    if layout is None or attrs["ellipsis_mask"] or attrs["new_axis_mask"]:
        return False
    vectors = [o.constant if isinstance(o, Value) else None for o in node.inputs[1:]]
    if any(v is None for v in vectors):
        return False
    rank, count = len(layout.perm), len(vectors[0])  # type: ignore[arg-type]
    back = inverse(layout.perm)
    full = [np.concatenate([v, np.full(rank - count, i == 2, v.dtype)]) for i, v in enumerate(vectors)]  # type: ignore[union-attr]

    def bits(mask: int, rest: bool) -> int:
        flags = [bool(mask >> i & 1) if i < count else rest for i in range(rank)]
        return sum(flags[b] << i for i, b in enumerate(back))

    masks = {
        "begin_mask": bits(attrs["begin_mask"], True),
        "end_mask": bits(attrs["end_mask"], True),
        "shrink_axis_mask": bits(attrs["shrink_axis_mask"], False),
    }
    shrunk = [i for i in range(count) if attrs["shrink_axis_mask"] >> i & 1]
    inputs = [layout.stored, *(rewriter.constant(np.ascontiguousarray(v[list(back)])) for v in full)]
    return rewriter.emit(node, inputs, [_without(layout.perm, shrunk)], masks)


def _gather(node: Node, rewriter: LayoutRewriter) -> bool:
    layout = _first_operand(node, rewriter)
    indices = node.inputs[1]
    assert isinstance(indices, Value)
    if layout is None or node.attrs["batch_dims"] or indices.shape.rank is None:
        return False
    rank = len(layout.perm)
    axis, count = node.attrs["axis"] % rank, indices.shape.rank
    place = layout.perm[axis]
    moved: list[int] = []
    for i, p in enumerate(layout.perm):
        if i == axis:
            moved += range(place, place + count)
        else:
            moved.append(p if p < place else p + count - 1)
    return rewriter.emit(node, [layout.stored, *_rest(node, rewriter)], [tuple(moved)], {"axis": place})


def _layer_norm(node: Node, rewriter: LayoutRewriter) -> bool:
    layout = _first_operand(node, rewriter)
    if layout is None:
        return False
    rank = len(layout.perm)
    axes = [layout.perm[a % rank] for a in sorted(a % rank for a in node.attrs["axis"])]
    if axes != sorted(axes):
        return False  # scale and offset would be transposed
    return rewriter.emit(node, [layout.stored, *_rest(node, rewriter)], [layout.perm], {"axis": axes})


def _matmul(node: Node, rewriter: LayoutRewriter) -> bool:
    """Match rows in another order times one matrix, and matrices that are transposed or in another order.

    The product reads a transposed matrix by itself. The order of rows, or of the matrices of both operands, is that of
    the result.
    """
    operands = list(node.operands)
    if any(v.shape.rank is None for v in operands):
        return False
    layouts = [rewriter.layout(v) for v in operands]
    orders = [layout.perm for layout in layouts]
    rank, attrs = len(orders[0]), node.attrs
    if orders[1] == (0, 1) and rank > 2 and orders[0] != identity(rank) and orders[0][-1] == rank - 1:
        plain = not (attrs["transpose_a"] or attrs["adjoint_a"])
        return plain and rewriter.emit(node, [layout.stored for layout in layouts], orders[:1])
    exchanged = [
        perm[-2:] == (len(perm) - 1, len(perm) - 2) and not attrs[f"adjoint_{name}"] for perm, name in zip(orders, "ab")
    ]
    stays = [e or perm[-2:] == (len(perm) - 2, len(perm) - 1) for perm, e in zip(orders, exchanged)]
    batch = orders[0][:-2] if all(stays) and orders[0][:-2] == orders[1][:-2] else identity(rank - 2)
    flags: dict[str, Any] = {}
    inputs: list[Operand] = []
    for i, name in enumerate("ab"):
        if not stays[i] or orders[i][:-2] not in (batch, identity(len(orders[i]) - 2)):
            inputs.append(rewriter.operand_in_order(operands[i]))
            continue
        inputs.append(layouts[i].stored)
        if exchanged[i]:
            flags[f"transpose_{name}"] = not attrs[f"transpose_{name}"]
    if not flags and batch == identity(rank - 2):
        return False
    result = identity(len(list(node.outputs[0].shape)))
    return rewriter.emit(node, inputs, [(*batch, *result[-2:]) if batch != identity(rank - 2) else result], flags)


def reshape_groups(
    before: Sequence[int | None], after: Sequence[int | None]
) -> list[tuple[list[int], list[int]]] | None:
    """Return the groups of dimensions that a reshape merges and splits, without those of size 1; None if unknown.

    Each group of axes before has the elements, in order, of the group of axes after.
    """
    old = [i for i, d in enumerate(before) if d != 1]
    new = [i for i, d in enumerate(after) if d != 1]
    if list(before).count(None) > 1 or list(before).count(None) != list(after).count(None):
        return None
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) and j < len(new):
        left, right = [old[i]], [new[j]]
        i, j = i + 1, j + 1
        a, b = before[left[0]], after[right[0]]
        if a is None or b is None:
            if a is not b:
                return None
        else:
            while a != b:
                if a < b:
                    if i == len(old) or (more := before[old[i]]) is None:
                        return None
                    a *= more
                    left.append(old[i])
                    i += 1
                else:
                    if j == len(new) or (more := after[new[j]]) is None:
                        return None
                    b *= more
                    right.append(new[j])
                    j += 1
        groups.append((left, right))
    return groups if i == len(old) and j == len(new) else None


def _reshape(node: Node, rewriter: LayoutRewriter) -> bool:
    """Match reshapes of groups of dimensions: the groups stay in the stored order, and are in order inside.

    A group that is stored together but out of order is transposed inside, and the others stay where they are.
    """
    layout = _first_operand(node, rewriter)
    after = node.outputs[0].shape.dims
    if layout is None or after is None or 0 in after:
        return False
    groups = reshape_groups(layout.shape, after)
    if groups is None:
        return False
    perm = layout.perm
    order = sorted(range(len(groups)), key=lambda g: min(perm[i] for i in groups[g][0]))
    ones = [i for i in range(len(perm)) if layout.shape[i] == 1]
    needed = [
        perm[i] for g in order for i in groups[g][0]
    ]  # the stored dimensions, in the order that the reshape reads
    stored = layout.stored
    if needed != sorted(needed):
        moving = sorted(needed)
        held = [sorted(moving.index(perm[i]) for i in left) for left, _ in groups]
        if order == list(range(len(groups))) or any(h[-1] - h[0] >= len(h) for h in held):
            return False  # nothing would stay, or others lie in between
        stored = rewriter.ordered(stored, tuple(needed + sorted(perm[i] for i in ones)))
    places = [o for g in order for o in groups[g][1]]
    for axis, size in enumerate(after):
        if size == 1:
            places.insert(places.index(axis - 1) + 1 if axis else 0, axis)
    value = rewriter.reshaped(stored, [after[p] for p in places])
    rewriter.hold(node.outputs[0], value, inverse(tuple(places)))
    return True


_ANY_AXIS = "Softmax LogSoftmax Cumsum Cumprod CumulativeLogsumexp Reverse Roll Split SplitV ShiftByOne"
_REDUCTIONS = "Sum Mean Prod Max Min All Any EuclideanNorm"
_ARG = "ArgMax ArgMin"

RULES: dict[str, LayoutRule] = {
    **dict.fromkeys(_ANY_AXIS.split(), _along_axis),
    **dict.fromkeys(_REDUCTIONS.split(), _reduction),
    **dict.fromkeys(_ARG.split(), _reduction),
    **dict.fromkeys(("Cast", "Identity", "StopGradient", "FAKE_QUANT"), _same_order),  # the last of the lite dialect
    **dict.fromkeys(("Reshape", "ExpandDims", "Squeeze"), _reshape),
    "Concat": _concat,
    "Pack": _pack,
    "Unpack": _unpack,
    "Pad": _permuted_vectors(1),
    "MirrorPad": _permuted_vectors(1),
    "Slice": _permuted_vectors(1, 2),
    "Tile": _permuted_vectors(1),
    "BroadcastTo": _permuted_vectors(1),
    "StridedSlice": _strided_slice,
    "Gather": _gather,
    "LayerNorm": _layer_norm,
    "MatMul": _matmul,
}


def rule_of(node: Node) -> LayoutRule | None:
    """Return the rule of a node's operator; None without one."""
    return _elementwise if is_elementwise(node) else RULES.get(node.op.name)


def is_elementwise(node: Node) -> bool:
    """Return whether the rule of a node is that of element-wise operators."""
    return node.op.name not in RULES and getattr(node.op, "elementwise", False)
