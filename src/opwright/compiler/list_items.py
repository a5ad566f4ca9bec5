"""Elements of lists that gradients of loops read: their shapes, and elements that are the same in all iterations.

Lives here: `with_list_items`.
Not here: lists of constant length (fixed_lists.py), lists of lists (list_lengths.py), lists as arrays
(lowering/tensor_lists.py).

A loop keeps what its gradient needs of each iteration in lists. Shapes that were unknown when the gradient was traced,
as of a last batch, are among it, and weights that the loop reads. Where shapes are known, these are the same each time:

    for i in range(n): shapes = push(shapes, [4, 8]); kept = push(kept, w); h = f(h, w)
    while k > 0: k = k - 1; d = g(d, get(kept, k), get(shapes, k))    -->    while k > 0: k = k - 1; d = g(d, w, [4, 8])

Other elements have the type of what is pushed.
"""

from __future__ import annotations

import itertools

from ..graph import Graph, Node, Value
from ..graph.builder import GraphRewriter, constant_node, map_subgraphs, unique_name
from ..graph.ir import loop_inputs
from ..ops import registry
from .fixed_lists import is_empty, start_of_countdown


def with_list_items(graph: Graph) -> Graph:
    """Return the graph with the elements of lists that loops have filled; the graph itself if none is known better."""
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        copy = map_subgraphs(rewriter.remap(node), with_list_items)
        if node.op.name == "While":
            copy = _with_items(node, copy, rewriter)
        rewriter.nodes.append(copy)
        if copy is not node:
            rewriter.replace(node, list(copy.outputs))
    return graph if all(a is b for a, b in zip(rewriter.nodes, graph.nodes, strict=True)) else rewriter.finish()


def kept_item(value: Value) -> tuple[Node, Value] | None:
    """Return the loop that pushes an element to this list, empty before it, in each iteration; and the element, a value
    of the loop's body."""
    loop = value.node
    if not value.dtype.is_handle or loop is None or loop.op.name != "While":
        return None
    place = loop.outputs.index(value)
    body: Graph = loop.attrs["body"]
    push = body.outputs[place].node
    if push is None or push.op.name != "ListPush" or push.inputs[0] is not body.inputs[place]:
        return None
    item = push.inputs[1]
    assert isinstance(item, Value)
    return (loop, item) if is_empty(loop_inputs(loop)[0][place]) else None


def _with_items(node: Node, copy: Node, outer: GraphRewriter) -> Node:
    """Return a loop that gets no element which is the same in all iterations, and others by their types.

    copy: the node in the new graph, which `outer` builds; its body has the nodes of the old one that read its lists.
    """
    variables, captured = loop_inputs(node)
    body: Graph = copy.attrs["body"]
    rewriter = GraphRewriter(body)
    added: dict[Value, Value] = {}  # by value outside, the new input of the body
    replaced: dict[Node, Node | None] = {}
    for value, parameter in zip(captured, body.inputs[len(variables) :], strict=True):
        kept = kept_item(value)
        if kept is None or kept[1].dtype.is_handle:
            continue
        writer, item = kept
        for get in body.nodes:
            if get.op.name != "ListGet" or get.inputs[0] is not parameter:
                continue
            outside = _outside(writer, item) if _reads_each(node, body, get, writer) else None
            if outside is not None and outside.constant is not None:
                (y,) = get.outputs
                spec = y.spec.with_shape(outside.shape)
                replaced[get] = constant_node(registry.get("Const"), outside.constant, spec, get.name, get.at)
            elif outside is not None:
                outside = outer.mapping.get(outside, outside)
                if outside not in added:
                    names = {v.name for v in (*itertools.chain(*(g.values() for g in copy.subgraphs)), *added.values())}
                    added[outside] = Value(unique_name(outside.name, names), outside.spec)
                rewriter.replace(get, [added[outside]])
                replaced[get] = None
            elif item.shape.is_fully_defined() and not get.outputs[0].shape.is_fully_defined():
                attrs = {**get.attrs, "element_shape": item.shape}
                replaced[get] = get.replaced(attrs=attrs, specs=[get.outputs[0].spec.with_shape(item.shape)])
    if not replaced:
        return copy
    rewriter.inputs += added.values()
    for part in body.nodes:
        fresh = rewriter.remap(replaced.get(part) or part)
        if replaced.get(part, part) is not None:
            rewriter.nodes.append(fresh)
            rewriter.replace(part, list(fresh.outputs))
    cond: Graph = copy.attrs["cond"]
    inputs = (loop_inputs(copy)[0], (*loop_inputs(copy)[1], *added))
    test = Graph(cond.name, [*cond.inputs, *added.values()], cond.nodes, cond.outputs)
    return copy.replaced(inputs=inputs, attrs={**copy.attrs, "cond": test, "body": rewriter.finish()})


def _outside(loop: Node, item: Value) -> Value | None:
    """Return the value that a value of a loop's body is in all iterations: a constant, or one from outside of the loop;
    None if there is none."""
    variables, captured = loop_inputs(loop)
    inputs = loop.attrs["body"].inputs
    if item.constant is not None:
        return item
    return captured[inputs.index(item) - len(variables)] if item in inputs[len(variables) :] else None


def _reads_each(reader: Node, body: Graph, get: Node, writer: Node) -> bool:
    """Return whether a loop counts down from the length of a list that another has filled, and reads the element at the
    counter: an index that is never out of range."""
    start = start_of_countdown(reader)
    length = None if start is None else start.node
    if length is None or length.op.name != "ListLength" or get.inputs[1] is not body.outputs[0]:
        return False
    (counted,) = length.operands
    kept = kept_item(counted)
    return kept is not None and kept[0] is writer
