"""Lists of lists of which only the lengths are read, as in gradients of loops that write lists.

Lives here: `without_nested_lists`.
Not here: lists of constant length (fixed_lists.py), lists as arrays (lowering/tensor_lists.py).

The gradient of a write reads the length of the list before it. A loop thus keeps the list of each iteration in another
list, which is not an array:

    for i in range(n): kept = push(kept, ta); ta = set(ta, i, f(i))    for i in range(n): ta = set(ta, i, f(i))
    while k > 0: k = k - 1; d = zeros_like(get(kept, k))       -->     while k > 0: k = k - 1; d = zeros_like(ta)

if the length is the same in all iterations. That of a list with one element more in each is the iteration's number.
"""

from __future__ import annotations

from ..core.dtypes import variant
from ..graph import Graph, Node, Value
from ..graph.builder import GraphRewriter, map_subgraphs
from ..graph.ir import loop_inputs
from ..graph.passes.rewrite_rules import prune
from .fixed_lists import SAME_LENGTH, filled_lists, is_empty
from .list_items import kept_item


def without_nested_lists(graph: Graph) -> Graph:
    """Return the graph without lists of lists of which only lengths are read; the graph itself if there are none."""
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        copy = map_subgraphs(rewriter.remap(node), without_nested_lists)
        if node.op.name == "While":
            copy = _with_lengths(node, copy)
        rewriter.nodes.append(copy)
        if copy is not node:
            rewriter.replace(node, list(copy.outputs))
    if all(a is b for a, b in zip(rewriter.nodes, graph.nodes, strict=True)):
        return graph
    return prune(rewriter.finish())[0]


def _with_lengths(node: Node, copy: Node) -> Node:
    """Return a loop that reads no lists of lists which another loop has kept for their lengths. copy: of the node, in
    the new graph."""
    variables, captured = loop_inputs(node)
    outside = list(loop_inputs(copy)[1])
    body: Graph = copy.attrs["body"]
    rewriter = GraphRewriter(body)
    skipped: set[Node] = set()
    for i, value in enumerate(captured):
        parameter = body.inputs[len(variables) + i]
        kept = _kept_list(value)
        reads = _reads_of_lengths(body, parameter)
        if kept is None or reads is None or parameter in copy.attrs["cond"].outputs:
            continue
        loop, item = kept
        place = _of_same_length(loop, item)
        if place is not None:
            made = outside[i].node  # the same loop in the new graph
            assert made is not None
            outside[i] = made.outputs[place]
            for get in reads:
                rewriter.replace(get, [parameter])
            skipped.update(reads)
        elif _is_growing(loop, item) and all(r.op.name == "ListLength" for rs in reads.values() for r in rs):
            for get, lengths in reads.items():
                for length in lengths:
                    rewriter.replace(length, [get.inputs[1]])
                skipped.update((get, *lengths))
    if not skipped:
        return copy
    for part in body.nodes:
        if part not in skipped:
            rewriter.nodes.append(rewriter.remap(part))
            rewriter.replace(part, list(rewriter.nodes[-1].outputs))
    return copy.replaced(inputs=(loop_inputs(copy)[0], tuple(outside)), attrs={**copy.attrs, "body": rewriter.finish()})


def _kept_list(value: Value) -> tuple[Node, Value] | None:
    """Return the loop that pushes a list to this list of lists in each iteration, and that list, of its body."""
    kept = kept_item(value)
    return kept if kept is not None and kept[1].dtype is variant else None


def _reads_of_lengths(body: Graph, lists: Value) -> dict[Node, list[Node]] | None:
    """Return the nodes that get a list of a list of lists, and what reads its length; None if there are other reads."""
    readers: dict[Value, list[Node]] = {}
    for node in body.nodes:
        for v in node.operands:
            readers.setdefault(v, []).append(node)
    if any(node.op.name != "ListGet" for node in readers.get(lists, [])):
        return None
    gets = {node: readers.get(node.outputs[0], []) for node in readers.get(lists, [])}
    if not gets or not {lists, *(get.outputs[0] for get in gets)}.isdisjoint(body.outputs):
        return None
    lengths = ("ListLength", "ListZerosLike")
    return gets if all(node.op.name in lengths for nodes in gets.values() for node in nodes) else None


def _of_same_length(loop: Node, item: Value) -> int | None:
    """Return the variable of a loop whose list has in all iterations the length of `item`, None if there is none."""
    body: Graph = loop.attrs["body"]
    source = _first_version(item)
    if source not in body.inputs[: len(loop.outputs)]:
        return None
    place = body.inputs.index(source)
    return place if _first_version(body.outputs[place]) is source else None


def _first_version(value: Value) -> Value:
    """Return the list of which this one is a version of the same length."""
    while value.node is not None and value.node.op.name in SAME_LENGTH and not value.node.attrs.get("grow"):
        value = next(iter(value.node.operands))
    return value


def _is_growing(loop: Node, item: Value) -> bool:
    """Return whether a list begins without elements and each iteration adds one to it after this version."""
    body: Graph = loop.attrs["body"]
    return any(
        body.inputs[place] is item and is_empty(loop_inputs(loop)[0][place])
        for place in filled_lists(loop, alone=False)
    )
