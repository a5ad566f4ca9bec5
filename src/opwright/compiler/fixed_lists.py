"""Lists that a loop fills element by element, with their final length from the start; lengths that are constant.

Lives here: `with_fixed_lists`; `filled_lists`, the lists to which each iteration of a loop adds an element;
`constant_length`.
Not here: lists as arrays (lowering/tensor_lists.py), the same analysis for files (../lite/convert/lists).

    ta = TensorArray(float32, 0, dynamic_size=True)          TensorArray(float32, 12)
    for i in range(12): ta = ta.write(i, f(i))         -->   for i in range(12): ta = ta.write(i, f(i))
    ta.stack()  # [None, ...]                                ta.stack()  # [12, ...]

`append` of a list, and so `map_fn` and `scan`, write the next element, too. The loop's only condition is its counter,
which starts at 0 and has a constant limit, or, in gradients of loops, counts down to 0: these push rows of tables that
were looked up in the loop, which are concatenated after it. No node sees the list while it grows: not its length, as
gradients of `write` do, nor an element of the loop itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.dtypes import int32, variant
from ..core.shapes import TensorShape
from ..core.specs import TensorSpec
from ..graph import Graph, Node, Value
from ..graph.builder import GraphRewriter, constant_node, map_subgraphs
from ..graph.passes.control_flow import control_operands, counter_of, exact_iterations
from ..ops import registry
from .memory import ALIASES

SAME_LENGTH = frozenset({"ListSet", "ListUnset", "ListAdd", "ListZerosLike", *ALIASES})
"""Operators whose result has the length of their first operand; ListSet where it may not grow."""
READERS = frozenset({"ListStack", "ListConcat", "ListGet", "ListGather", "ListLength", "ListUnset"})
"""Operators that may read the list after the loop."""
MOST_ELEMENTS = 1 << 20
"""Longest list with elements from the start: one that is not an array after all is a Python list."""


def with_fixed_lists(graph: Graph) -> Graph:
    """Return the graph with lists of constant length; the graph itself if no list changes."""
    fixed = _fixed_lists(graph)
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        copy = map_subgraphs(rewriter.remap(node), with_fixed_lists)
        changes = fixed.get(node)
        if changes is not None:
            copy = changes(copy, rewriter)
        rewriter.nodes.append(copy)
        if copy is not node:
            rewriter.replace(node, list(copy.outputs))
    return rewriter.finish() if any(a is not b for a, b in zip(rewriter.nodes, graph.nodes, strict=False)) else graph


def _fixed_lists(graph: Graph) -> dict[Node, Any]:
    """Return the changes of the nodes that fill and read lists of constant length."""
    readers: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        for v in node.operands:
            readers.setdefault(v, []).append(node)
    changes: dict[Node, Any] = {}
    for loop in graph.nodes:
        down = counted_down(loop) if loop.op.name == "While" else None
        length = exact_iterations(loop) if loop.op.name == "While" and down is None else down
        if length is None or not 0 < length <= MOST_ELEMENTS:
            continue
        variables: Any = loop.inputs[0]
        after = {place: readers.get(loop.outputs[place], []) for place in filled_lists(loop)}
        after = {place: nodes for place, nodes in after.items() if is_empty(variables[place])}
        changes |= {node: _length(length) for nodes in after.values() for node in nodes if node.op.name == "ListLength"}
        places = [
            place
            for place, nodes in after.items()
            if (down is not None or _counts_from_0(loop))
            and loop.outputs[place] not in graph.outputs
            and all(_reads(node, _item_of(loop, place), readers) for node in nodes)
        ]
        if places:
            changes[loop] = _FilledLoop(places, length, down is not None)
        for place in places:
            shape = _item_of(loop, place).shape
            stack, concatenation = _stack(length, shape), _concatenation(length, shape)
            changes |= {node: stack for node in after[place] if node.op.name == "ListStack"}
            changes |= {node: concatenation for node in after[place] if node.op.name == "ListConcat"}
    for node in graph.nodes:
        if node.op.name == "ListStack" and node.attrs["num"] < 0 and node not in changes:
            (number, *_) = node.operands
            count = constant_length(number)
            if count is not None and count > 0:
                changes[node] = _stack(count, node.attrs["element_shape"])
    return changes


def _reads(node: Node, item: Value, readers: Mapping[Value, list[Node]]) -> bool:
    """Return whether a node may read a list of items like this one after the loop."""
    if node.op.name != "ListConcat":
        return node.op.name in READERS
    return bool(item.shape.is_fully_defined() and item.shape.rank) and not readers.get(node.outputs[1])


def counted_down(loop: Node) -> int | None:
    """Return the number of iterations of a While that `start_of_countdown` tells from a constant; None for others."""
    start = start_of_countdown(loop)
    return None if start is None or start.constant is None else int(start.constant)


def start_of_countdown(loop: Node) -> Value | None:
    """Return the first value of the first variable of a While that decreases by 1 as long as it is positive, if this is
    the loop's only condition; None for others."""
    cond, body, variables = loop.attrs["cond"], loop.attrs["body"], loop.inputs[0]
    assert isinstance(variables, tuple)
    test, step = cond.outputs[0].node, body.outputs[0].node
    if test is None or step is None or (test.op.name, step.op.name) != ("Greater", "Sub"):
        return None
    (tested, limit), (counter, difference) = test.inputs, step.inputs
    if tested is not cond.inputs[0] or counter is not body.inputs[0] or tested.shape.rank != 0:
        return None
    numbers = [limit.constant, difference.constant]
    counts = all(x is not None for x in numbers) and [int(x) for x in numbers] == [0, 1]
    return variables[0] if counts else None


def constant_length(value: Value, known: Mapping[Value, int] | None = None) -> int | None:
    """Return the length of a list if it is the same in every run, None otherwise. known: lengths of inputs."""
    while (node := value.node) is not None and node.op.name in SAME_LENGTH and not node.attrs.get("grow"):
        value = next(iter(node.operands))
    if node is None:
        return None if known is None else known.get(value)
    if node.op.name == "ListReserve":
        (number,) = node.operands
        return None if number.constant is None else int(number.constant)
    if node.op.name == "ListFromTensor":
        (tensor,) = node.operands
        return tensor.shape[0] if tensor.shape.rank else None
    if node.op.name not in ("While", "If", "Case"):
        return None
    place, operands = node.outputs.index(value), control_operands(node)
    lists = [(i, constant_length(v, known)) for i, v in enumerate(operands) if v.dtype is variant]
    bodies = [node.attrs["body"]] if node.op.name == "While" else list(node.subgraphs)
    lengths = {constant_length(g.outputs[place], {g.inputs[i]: n for i, n in lists if n is not None}) for g in bodies}
    if node.op.name == "While":
        lengths.add(dict(lists).get(place))
    return lengths.pop() if len(lengths) == 1 else None


def _counts_from_0(loop: Node) -> bool:
    """Return whether the elements that iterations add are those at a counter."""
    counter = counter_of(loop)
    if counter is None:
        return False
    variables = loop.inputs[0]
    assert isinstance(variables, tuple)
    start = variables[counter.place].constant
    return start is not None and int(start) == 0


def filled_lists(loop: Node, *, alone: bool = True) -> list[int]:
    """Return the lists, among the variables of a loop, to which each iteration adds the element at the counter.

    alone: only lists that nothing else in the loop reads
    """
    body, cond, counter = loop.attrs["body"], loop.attrs["cond"], counter_of(loop)
    uses = Counter(v for g in (cond, body) for node in g.nodes for v in node.operands)
    uses.update(body.outputs)
    places = []
    for i, (before, after, tested) in enumerate(zip(body.inputs, body.outputs, cond.inputs)):
        node = after.node
        if before.dtype is not variant or node is None or not node.inputs or node.inputs[0] is not before:
            continue
        sets_next = (
            counter is not None
            and node.op.name == "ListSet"
            and node.attrs["grow"]
            and _counts_from_0(loop)
            and _source(node.inputs[1]) is body.inputs[counter.place]
        )
        unread = uses[before] == uses[after] == 1 and not uses[tested]
        if (sets_next or node.op.name == "ListPush") and (unread or not alone):
            places.append(i)
    return places


def _source(value: Any) -> Any:
    """Return the value of which this one is a copy."""
    while value.node is not None and value.node.op.name in ALIASES:
        (value,) = value.node.operands
    return value


def is_empty(value: Value) -> bool:
    """Return whether a list has no elements from the start."""
    node = value.node
    if node is None or node.op.name != "ListReserve":
        return False
    (number,) = node.operands
    return number.constant is not None and int(number.constant) == 0


def _item_of(loop: Node, place: int) -> Value:
    item = loop.attrs["body"].outputs[place].node.inputs[-1]
    assert isinstance(item, Value)
    return item


class _FilledLoop:
    """The change of a loop that fills the lists at these places: their elements exist from the start.

    down: whether its counter, the first variable, counts down from their length.
    """

    def __init__(self, places: list[int], length: int, down: bool) -> None:
        self.places, self.length, self.down = places, length, down

    def __call__(self, node: Node, rewriter: GraphRewriter) -> Node:
        first, *others = node.inputs
        assert isinstance(first, tuple)
        variables = list(first)
        for place in self.places:
            shape = _item_of(node, place).shape
            variables[place] = self._reserved(variables[place], shape, f"{node.name}/list{place}", rewriter)
        body: Graph = node.attrs["body"]
        writes = {body.outputs[place].node for place in self.places}
        inner = GraphRewriter(body)
        position = self._position(node, inner)
        for part in body.nodes:
            copy = inner.remap(part)
            if part in writes:
                inputs = (copy.inputs[0], position, copy.inputs[-1])
                copy = copy.replaced(op=registry.get("ListSet"), inputs=inputs, attrs={"grow": False})
            inner.nodes.append(copy)
            if copy is not part:
                inner.replace(part, list(copy.outputs))
        return node.replaced(inputs=(tuple(variables), *others), attrs={**node.attrs, "body": inner.finish()})

    def _position(self, loop: Node, inner: GraphRewriter) -> Value:
        """Return the number of the iteration in the body."""
        body: Graph = loop.attrs["body"]
        if not self.down:
            counter = counter_of(loop)
            assert counter is not None
            return body.inputs[counter.place]
        counted, subtract = body.inputs[0], body.outputs[0].node
        assert subtract is not None
        length = np.array(self.length, counted.dtype.np)
        constant = constant_node(registry.get("Const"), length, counted.spec, f"{loop.name}/length")
        inputs = (*constant.outputs, counted)
        done = Node(subtract.op, inputs, subtract.attrs, [counted.spec], f"{loop.name}/iteration", subtract.at)
        inner.nodes += [constant, done]
        (result,) = done.outputs
        return result

    def _reserved(self, empty: Value, shape: TensorShape, name: str, rewriter: GraphRewriter) -> Value:
        """Return a list of unset elements of the type of an empty one. shape: of its elements, if it is known."""
        reserve: Any = empty.node
        (number,) = reserve.operands
        constant = constant_node(number.node.op, np.array(self.length, number.dtype.np), number.spec, f"{name}/length")
        specs = [v.spec for v in reserve.outputs]
        attrs = {**reserve.attrs, "element_shape": shape} if shape.is_fully_defined() else reserve.attrs
        filled = Node(reserve.op, constant.outputs, attrs, specs, name, reserve.at)
        rewriter.nodes += [constant, filled]
        (result,) = filled.outputs
        return result


def _length(length: int) -> Any:
    def change(node: Node, rewriter: GraphRewriter) -> Node:
        (y,) = node.outputs
        return constant_node(registry.get("Const"), np.array(length, y.dtype.np), y.spec, node.name, node.at)

    return change


def _stack(length: int, item_shape: TensorShape) -> Any:
    def change(node: Node, rewriter: GraphRewriter) -> Node:
        shape = item_shape if item_shape.is_fully_defined() else node.attrs["element_shape"]
        attrs = {**node.attrs, "num": length, "element_shape": shape}
        _, specs = rewriter.infer(node.op, node.inputs, attrs)
        return node.replaced(attrs=attrs, specs=specs)

    return change


def _concatenation(length: int, item_shape: TensorShape) -> Any:
    """Return the change of the concatenation of elements of one shape: their stack, reshaped."""

    def change(node: Node, rewriter: GraphRewriter) -> Node:
        attrs = {"element_dtype": node.attrs["element_dtype"], "element_shape": item_shape, "num": length}
        stack = rewriter.create(registry.get("ListStack"), (node.inputs[0], None), attrs, name=f"{node.name}/stack")
        sizes = np.array(item_shape.as_list(), np.int32)
        sizes[0] *= length
        spec = TensorSpec(sizes.shape, int32)
        constant = constant_node(registry.get("Const"), sizes, spec, f"{node.name}/sizes", node.at)
        rewriter.nodes.append(constant)
        reshape = registry.get("Reshape")
        inputs = (*stack.outputs, *constant.outputs)
        attrs, specs = rewriter.infer(reshape, inputs, {})
        return Node(reshape, inputs, attrs, specs, node.name, node.at)

    return change
