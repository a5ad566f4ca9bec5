"""Parts of tensors as SPLIT, and tensors that grow by parts.

Lives here: `split_parts`, `grown_parts`. Not here: rules of single nodes (delegated_forms.py), parts that are
transposed (transposed_parts.py).

Passes look at all readers of a tensor, or at all nodes before one. Elements are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...core.dtypes import float32, int32
from ...graph import Graph, Node, Value
from ...graph.builder import GraphTransform, has_subgraphs, map_subgraphs
from ...graph.passes import dead_code
from ...graph.passes.layout_rules import reshape_groups
from .delegated_forms import SPLIT_PARTS, static_sizes
from .rewriter import LiteRewriter, fused_activation, reshaped

MOST_JOINED = 5
"""The most parts of a CONCATENATION that XNNPACK takes."""


class _Group(NamedTuple):
    """Equal parts of a tensor along an axis, in order. dropped: whether each is without this axis, of size 1."""

    x: Value
    axis: int
    parts: tuple[Value, ...]
    dropped: bool


def split_parts(graph: Graph) -> Graph:
    """Return the graph with SPLIT for UNPACK, and for SLICE nodes that take equal parts, in subgraphs too."""
    return GraphTransform(_split_parts)(graph)


def _split_parts(graph: Graph, inside: Callable[[Graph], Graph]) -> Graph:
    groups = {part: group for group in _groups(graph) for part in group.parts}
    if not groups and not any(map(has_subgraphs, graph.nodes)):
        return graph
    rewriter = LiteRewriter(graph, inside)
    emitted: dict[_Group, dict[Value, Value]] = {}
    for node, old in rewriter.walk():
        rewriter.begin(node)
        group = groups.get(old.outputs[0]) if old.outputs else None
        if group is None:
            rewriter.keep(map_subgraphs(node, inside), old)
            continue
        if group not in emitted:
            x = rewriter.operand(group.x)
            assert isinstance(x, Value)
            emitted[group] = dict(zip(group.parts, _emit(rewriter, group, x)))
        rewriter.replace(old, [emitted[group][part] for part in old.outputs])
        rewriter.credit(node, "split_parts: the same elements")
    return dead_code(rewriter.finish())[0]


def _groups(graph: Graph) -> list[_Group]:
    readers = readers_of(graph)
    outputs = set(graph.outputs)
    groups = []
    for x, nodes in readers.items():
        dims = static_sizes(x)
        if dims is None:
            continue
        slices: dict[int, dict[int, Node]] = {}
        for node in nodes:
            if node.op.name == "UNPACK" and len(node.outputs) in SPLIT_PARTS:
                groups.append(_Group(x, node.attrs["axis"] % len(dims), tuple(node.outputs), True))
            elif (cut := cut_of(node, dims)) is not None and cut[1] not in slices.get(cut[0], {}):
                slices.setdefault(cut[0], {})[cut[1]] = node
        for axis, by_begin in slices.items():
            parts = [by_begin[b].outputs[0] for b in sorted(by_begin)]
            size = dims[axis] // len(parts)
            if len(parts) not in SPLIT_PARTS or sorted(by_begin) != [*range(0, dims[axis], size)]:
                continue
            if any(part.spec.shape[axis] != size for part in parts):
                continue
            bare = [_without(part, axis, readers) if part not in outputs else None for part in parts]
            if all(b is not None for b in bare):
                groups.append(_Group(x, axis, tuple(b for b in bare if b is not None), True))
            else:
                groups.append(_Group(x, axis, tuple(parts), False))
    return groups


def readers_of(graph: Graph) -> dict[Value, list[Node]]:
    """Return the nodes that read each value."""
    readers: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        for value in node.operands:
            readers.setdefault(value, []).append(node)
    return readers


def cut_of(node: Node, dims: Sequence[int]) -> tuple[int, int] | None:
    """Return the axis that a SLICE shortens alone, and where it begins there."""
    if node.op.name != "SLICE":
        return None
    _, begin, size = node.operands
    if begin.constant is None or size.constant is None:
        return None
    axes = [a for a, (s, d) in enumerate(zip(size.constant.tolist(), dims)) if s != d]
    return (axes[0], int(begin.constant[axes[0]])) if len(axes) == 1 and size.constant[axes[0]] > 0 else None


def _without(part: Value, axis: int, readers: Mapping[Value, Sequence[Node]]) -> Value | None:
    """Return the result of a reshape that drops the axis of a part, if it alone reads the part."""
    dims, nodes = part.spec.shape.dims or (), readers.get(part, ())
    if len(nodes) != 1 or nodes[0].op.name != "RESHAPE" or dims[axis] != 1:
        return None
    (result,) = nodes[0].outputs
    return result if result.spec.shape.dims == (*dims[:axis], *dims[axis + 1 :]) else None


def _emit(rewriter: LiteRewriter, group: _Group, x: Value) -> Sequence[Value]:
    dims, axis, count = static_sizes(x), group.axis, len(group.parts)
    assert dims is not None
    if not group.dropped:
        return split(rewriter, x, axis, count)
    if axis < len(dims) - 1 and all(d == 1 for d in dims[:axis]):
        rows = reshaped(rewriter, x, [*dims[:axis], count * dims[axis + 1], *dims[axis + 2 :]])
        return split(rewriter, rows, axis, count)
    apart = x.node
    if apart is not None and apart.op.name == "RESHAPE":
        source = next(apart.operands)
        before = static_sizes(source)
        groups = None if before is None else reshape_groups(before, dims)
        for left, right in groups or ():
            if len(left) == 1 and right[0] == axis:  # the parts of the tensor before the reshape are the same
                x, axis = source, left[0]
                break
    shape = [d for a, d in enumerate(dims) if a != group.axis]
    return [reshaped(rewriter, part, shape) for part in split(rewriter, x, axis, count)]


def split(rewriter: LiteRewriter, x: Value, axis: int, count: int) -> Sequence[Value]:
    """Return equal parts of `x` along an axis."""
    return rewriter.emit_many("SPLIT", rewriter.constant(axis, int32), x, num_splits=count, likes=[None] * count)


def grown_parts(graph: Graph) -> Graph:
    """Return the graph in which a CONCATENATION that begins with all parts of another one reads its result.

    Each layer of a dense block joins the results of all layers before it: with two parts each, nothing is copied twice,
    and the delegate takes each (it leaves those of more than five parts).
    """
    return GraphTransform(_grown_parts)(graph)


def _grown_parts(graph: Graph, inside: Callable[[Graph], Graph]) -> Graph:
    joined: dict[tuple[int, tuple[Value, ...]], Value] = {}
    rewriter, changed = LiteRewriter(graph, inside), False
    for node, old in rewriter.walk():
        rewriter.begin(node)
        inner = map_subgraphs(node, inside)
        node, changed = inner, changed or inner is not node
        if old.op.name != "CONCATENATION" or fused_activation(old) != "NONE" or old.outputs[0].dtype is not float32:
            rewriter.keep(node, old)
            continue
        parts, axis = tuple(old.operands), old.attrs["axis"] % (old.outputs[0].spec.shape.rank or 1)
        known = next((n for n in range(len(parts) - 1, 1, -1) if (axis, parts[:n]) in joined), None)
        joined.setdefault((axis, parts), old.outputs[0])
        if known is None or len(parts) <= MOST_JOINED:
            rewriter.keep(node, old)
            continue
        first = rewriter.operand(joined[axis, parts[:known]])
        assert isinstance(first, Value)
        rewriter.replace(old, rewriter.recreate(node, (first, *tuple(node.operands)[known:])))
        rewriter.credit(node, "grown_parts: the same parts in order")
        changed = True
    return rewriter.finish() if changed else graph
