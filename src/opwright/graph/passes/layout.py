"""Layout assignment: transposes move until they cancel, so that channels-first networks run channels-last.

Lives here: `assign_layouts`; `transposes`, the ones that remain. Not here: the equation of each operator
(layout_rules.py), the walk that applies them (layout_rewriter.py), transposes as nodes of `.tflite` files
(lite/convert/canonicalization.py).

A network for channels-first images has a transpose on each side of each convolution, because the operators of images
are channels-last. The result of the walk is used if it moves fewer elements. Elements are unchanged to the last bit,
but for floating-point reductions over several axes, which may add in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir import Graph, Node
from .layout_rewriter import LayoutRewriter, constants, identity, moves_ones
from .layout_rules import LayoutRule, elementwise_alike, is_elementwise, rule_of


def transposes(graph: Graph) -> list[Node]:
    """Return the transposes of a graph that move elements of computed tensors."""
    fixed = constants(graph)
    remaining = []
    for node in graph.nodes:
        if node.op.name == "Transpose" and node.outputs[0] not in fixed:
            (x,) = node.operands
            perm, rank = node.attrs["perm"], x.shape.rank
            if rank is not None:
                perm = identity(rank)[::-1] if perm is None else tuple(p % rank for p in perm)
                if moves_ones(list(x.shape), perm):
                    continue
            remaining.append(node)
    return remaining


def _cost(graph: Graph) -> tuple[int, int]:
    """Return the elements that transposes move, with 1 for an unknown size, and their number."""
    moving = transposes(graph)
    elements = 0
    for node in moving:
        count = 1
        for size in node.outputs[0].shape.dims or ():
            count *= size or 1
        elements += count
    return elements, len(moving)


def _unpacks(node: Node) -> LayoutRule | None:
    unpacks = node.op.name == "Unpack" or (node.op.name == "StridedSlice" and node.attrs["shrink_axis_mask"])
    return _never if unpacks else None


def _takes_apart(node: Node) -> LayoutRule | None:
    return _never if node.op.name in ("Split", "SplitV", "Slice") else None


def _alike(node: Node) -> LayoutRule | None:
    return elementwise_alike if is_elementwise(node) else None


def _never(node: Node, rewriter: LayoutRewriter) -> bool:
    return False


CHOICES = (_unpacks, _takes_apart, _alike)
"""Other rules of some nodes: a tensor that is taken apart, as queries, keys and values are, is transposed before; sums
of values in different orders have that of the source."""


def assign_layouts(graph: Graph, operators: Callable[[str], Any]) -> tuple[Graph, list[str]]:
    """Return the graph with transposes moved until they cancel, and a line for each that remains.

    operators: returns an operator of the catalogue by name. Each of the other rules (CHOICES) is tried, and taken if it
    moves fewer elements, or as many in fewer transposes. Returns the graph itself if no walk would.
    """
    if not any(node.op.name == "Transpose" for node in graph.nodes):
        return graph, []
    chosen: list[Callable[[Node], LayoutRule | None]] = []

    def walk(choices: Sequence[Callable[[Node], LayoutRule | None]]) -> Graph:
        def rule(node: Node) -> LayoutRule | None:
            return next((r for r in (choice(node) for choice in choices) if r is not None), None) or rule_of(node)

        return LayoutRewriter(graph, operators).run(rule)

    rewritten = walk(chosen)
    for choice in CHOICES:
        if any(choice(node) is not None for node in graph.nodes):
            other = walk([*chosen, choice])
            if _cost(other) < _cost(rewritten):
                rewritten = other
                chosen.append(choice)
    if _cost(rewritten) >= _cost(graph):
        return graph, []
    return rewritten, [f"  {'assign_layouts':22} {node.at or '':16} {node!r} remains" for node in transposes(rewritten)]
