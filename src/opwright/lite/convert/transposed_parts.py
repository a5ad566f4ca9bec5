"""A tensor that is transposed whole and by parts, or padded, is transposed once.

Lives here: `transposed_once`, `shared_transposes`. Not here: parts as SPLIT (parts.py), transposes that cancel in the
catalogue (graph/passes/layout.py).
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ...core.dtypes import float32
from ...graph import Graph, Node, Value
from ...graph.builder import GraphTransform, has_subgraphs, map_subgraphs
from ...graph.passes import dead_code
from ...graph.passes.layout_rules import reshape_groups
from .canonicalization import BINARY, UNARY, order_of
from .delegated_forms import SPLIT_PARTS, TRANSPOSE_RANK, part_along, static_sizes
from .parts import cut_of, readers_of, split
from .rewriter import LiteRewriter, reshaped


class _Path(NamedTuple):
    """The nodes between a part and the result of its transpose. shape: of a reshape on the way, if there is one."""

    nodes: tuple[Node, ...]
    shape: tuple[int, ...] | None
    order: tuple[int, ...]


class _Transposed(NamedTuple):
    """Parts of a tensor along an axis, each of which is transposed.

    sizes: of each along the axis. place: of the parts among the dimensions, where a reshape takes the axis apart.
    """

    x: Value
    axis: int
    sizes: tuple[int, ...]
    cuts: tuple[Node, ...]
    paths: tuple[_Path, ...]
    order: tuple[int, ...]
    place: int | None


def transposed_once(graph: Graph) -> Graph:
    """Return the graph in which a tensor whose parts are all transposed alike is transposed itself, in subgraphs too.

    Queries, keys and values of attention are such parts. A key whose last two dimensions are exchanged besides is read
    transposed by the product. Elements are unchanged.
    """
    return GraphTransform(_transposed_once)(graph)


def _transposed_once(graph: Graph, inside: Callable[[Graph], Graph]) -> Graph:
    groups = {cut: group for group in _transposed(graph) for cut in group.cuts}
    if not groups and not any(map(has_subgraphs, graph.nodes)):
        return graph
    rewriter = LiteRewriter(graph, inside)
    dropped = {node for group in groups.values() for path in group.paths for node in path.nodes}
    results: dict[Node, Value] = {}
    emitted: set[_Transposed] = set()
    for node, old in rewriter.walk():
        rewriter.begin(node)
        group = groups.get(old)
        if old in results:
            rewriter.replace(old, results[old])
        elif group is not None and group not in emitted:
            emitted.add(group)
            results.update(zip((path.nodes[-1] for path in group.paths), _emit_transposed(rewriter, group)))
            rewriter.credit(old, "transposed_once: the same elements")
        elif group is None and old not in dropped:
            rewriter.keep(map_subgraphs(node, inside), old)
    return dead_code(rewriter.finish())[0]


def _transposed(graph: Graph) -> list[_Transposed]:
    readers = readers_of(graph)
    for value in graph.outputs:
        readers.pop(value, None)
    groups = []
    for x, nodes in readers.items():
        dims = static_sizes(x)
        if dims is None:
            continue
        slices: dict[int, dict[int, Node]] = {}
        for node in nodes:
            if node.op.name == "SPLIT":
                along = next(node.operands).constant
                if along is not None:
                    groups.append(_as_transposed(x, int(along) % len(dims), (node,), node.outputs, readers))
            elif (cut := cut_of(node, dims)) is not None:
                slices.setdefault(cut[0], {}).setdefault(cut[1], node)
        for axis, by_begin in slices.items():
            cuts = [by_begin[b] for b in sorted(by_begin)]
            parts = [cut.outputs[0] for cut in cuts]
            ends = list(itertools.accumulate(part.spec.shape[axis] or 0 for part in parts))
            if ends[-1] == dims[axis] and [0, *ends[:-1]] == sorted(by_begin) and len(parts) > 1:
                groups.append(_as_transposed(x, axis, tuple(cuts), parts, readers))
    return [group for group in groups if group is not None]


def _as_transposed(
    x: Value, axis: int, cuts: tuple[Node, ...], parts: Sequence[Value], readers: Mapping[Value, Sequence[Node]]
) -> _Transposed | None:
    paths = []
    for part in parts:
        path = _path(part, readers)
        if path is None:
            return None
        paths.append(path)
    order, _ = collections.Counter(path.order for path in paths).most_common(1)[0]
    exchanged = (*order[:-2], order[-1], order[-2])
    for path in paths:
        (result,) = path.nodes[-1].outputs
        if path.order != order and (
            path.order != exchanged or any(n.op.name != "BATCH_MATMUL" for n in readers.get(result, ()))
        ):
            return None
    sizes = tuple(part.spec.shape[axis] or 0 for part in parts)
    shape = paths[0].shape
    if any(path.shape != shape for path in paths) or (shape is not None and len(shape) >= TRANSPOSE_RANK):
        return None
    place = None
    if shape is not None:
        apart = reshape_groups(parts[0].spec.shape.dims or (), shape) or ()
        if parts[0].spec.shape[axis] == 1:  # which is not a dimension of a group
            place = next((right[0] for left, right in apart if left[0] > axis), len(shape))
        else:
            place = next((right[0] for left, right in apart if left == [axis]), None)
        if place is None or len(set(sizes)) > 1 or len(parts) not in SPLIT_PARTS:
            return None
    return _Transposed(x, axis, sizes, cuts, tuple(paths), order, place)


def _path(part: Value, readers: Mapping[Value, Sequence[Node]]) -> _Path | None:
    """Return the way of a part to a transpose, by one reshape and arithmetic with scalars; None if it has another."""
    nodes: list[Node] = []
    shape: tuple[int, ...] | None = None
    value = part
    while len(readers.get(value, ())) == 1:
        (node,) = readers[value]
        nodes.append(node)
        if node.op.name == "TRANSPOSE":
            order = order_of(node)
            return None if order is None else _Path(tuple(nodes), shape, tuple(order))
        result = node.outputs[0]
        if node.op.name == "RESHAPE" and shape is None:
            shape = static_sizes(result)
            if shape is None:
                return None
        elif not _by_scalars(node, value):
            return None
        value = result
    return None


def _by_scalars(node: Node, value: Value) -> bool:
    others = [v.constant for v in node.operands if v is not value]
    return node.op.name in (*UNARY.split(), *BINARY.split()) and all(c is not None and c.size == 1 for c in others)


def _emit_transposed(rewriter: LiteRewriter, group: _Transposed) -> Sequence[Value]:
    x, axis, count = rewriter.operand(group.x), group.axis, len(group.sizes)
    assert isinstance(x, Value)
    shape, order, place = group.paths[0].shape, group.order, group.place
    if shape is None or place is None:
        y = rewriter.emit("TRANSPOSE", x, rewriter.int32(list(order)))
        parts = _cut_apart(rewriter, y, order.index(axis), group.sizes)
    else:
        apart = reshaped(rewriter, x, [*shape[:place], count, *shape[place:]])
        y = rewriter.emit("TRANSPOSE", apart, rewriter.int32([place, *(p + (p >= place) for p in order)]))
        moved = [shape[p] for p in order]
        y = reshaped(rewriter, y, [count * moved[0], *moved[1:]])
        parts = _cut_apart(rewriter, y, 0, [moved[0]] * count)
    results = []
    for part, path in zip(parts, group.paths):
        value = part
        for node in path.nodes[:-1]:
            if node.op.name != "RESHAPE":
                operands = [value if v.constant is None else rewriter.operand(v) for v in node.operands]
                value = rewriter.recreate(node, *operands, like=value.spec)
        if path.order != order:
            rank = len(order)
            value = rewriter.emit("TRANSPOSE", value, rewriter.int32([*range(rank - 2), rank - 1, rank - 2]))
        results.append(value)
    return results


def _cut_apart(rewriter: LiteRewriter, x: Value, axis: int, sizes: Sequence[int]) -> Sequence[Value]:
    if len(set(sizes)) == 1 and len(sizes) in SPLIT_PARTS:
        return split(rewriter, x, axis, len(sizes))
    dims = static_sizes(x) or ()
    begins = [0, *itertools.accumulate(sizes)]
    return [part_along(rewriter, x, dims, axis, b, size) for b, size in zip(begins, sizes)]


def shared_transposes(graph: Graph) -> Graph:
    """Return the graph in which a padded or scaled tensor that is also read transposed is changed after that."""
    return GraphTransform(_shared_transposes)(graph)


def _shared_transposes(graph: Graph, inside: Callable[[Graph], Graph]) -> Graph:
    orders = {}
    for node in graph.nodes:
        axes = order_of(node)
        if axes is not None:
            orders[next(node.operands), tuple(axes)] = node
    rewriter, changed = LiteRewriter(graph, inside), False
    known: dict[tuple[Value, tuple[int, ...]], Value] = {}
    for node, old in rewriter.walk():
        rewriter.begin(node)
        inner = map_subgraphs(node, inside)
        node, changed = inner, changed or inner is not node
        axes = order_of(old)
        if axes is None:
            rewriter.keep(node, old)
            continue
        x, order = next(old.operands), tuple(axes)
        before = x.node if rewriter.uses.get(x, 0) == 1 else None
        source = None if before is None else _source(before, x)
        if before is not None and source is not None and (source, order) in orders:
            if (source, order) not in known:
                value = rewriter.operand(source)
                known[source, order] = rewriter.emit("TRANSPOSE", value, rewriter.int32(list(order)))
            rewriter.replace(old, _after(rewriter, before, source, known[source, order], order, old.outputs[0]))
            rewriter.credit(node, "shared_transposes: the same elements")
            changed = True
        elif (x, order) in known:
            rewriter.replace(old, known[x, order])
        else:
            rewriter.keep(node, old)
            known[x, order] = node.outputs[0]
    return dead_code(rewriter.finish())[0] if changed else graph


def _source(node: Node, value: Value) -> Value | None:
    """Return the computed operand of a pad, or of arithmetic with constants; None of other nodes."""
    if node.op.name not in ("PAD", "ADD", "SUB", "MUL", "DIV") or value.dtype is not float32:
        return None
    operands = list(node.operands)
    computed = [v for v in operands if v.constant is None]
    if len(computed) != 1 or (node.op.name == "PAD" and computed[0] is not operands[0]):
        return None
    (x,) = computed
    return x if node.op.name == "PAD" or x.spec.shape == value.spec.shape else None


def _after(rewriter: LiteRewriter, node: Node, source: Value, moved: Value, order: Sequence[int], like: Value) -> Value:
    operands: list[Value] = []
    for v in node.operands:
        constant = v.constant
        if v is source or constant is None:
            operands.append(moved)
        elif node.op.name == "PAD":
            operands.append(rewriter.constant(np.ascontiguousarray(constant[list(order)])))
        else:
            full = constant.reshape((1,) * (len(order) - constant.ndim) + constant.shape)
            operands.append(rewriter.constant(np.ascontiguousarray(full.transpose(order))))
    return rewriter.recreate(node, *operands, like=like.spec)
