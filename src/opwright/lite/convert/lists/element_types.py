"""Types of list elements: dtype and shape of each list of a function.

Lives here: `ListElements`; `ListTypes`, which joins the values that are the same list, through control flow too.
Not here: lengths of lists (lowering.py), sizes that are known only when the model runs (loop_analysis.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ....core.dtypes import DType, variant
from ....core.shapes import UNKNOWN, TensorShape
from ....graph import Graph, Node, Value
from ....graph.passes.control_flow import control_operands
from ..errors import UnsupportedNode

Frames = tuple[tuple[Graph, Node], ...]
"""The nesting of a graph: from the outermost on, each subgraph and the node that holds it."""


class UnlowerableList(Exception):
    """An error for a list that cannot become a tensor. unsupported: the node to report."""

    def __init__(self, node: Node, why: str) -> None:
        super().__init__(why)
        self.unsupported = UnsupportedNode(node, (why,), custom=False)


class ListItem(NamedTuple):
    """A value written to a list: its shape from dimension `first` on is an element's."""

    value: Value
    first: int
    frames: Frames


class ListElements:
    """Known facts about the elements of one list, for all names of the list."""

    __slots__ = ("dtype", "items", "shape")

    def __init__(self) -> None:
        self.dtype: DType | None = None
        self.shape = UNKNOWN
        self.items: list[ListItem] = []


def holds_lists(graph: Graph) -> bool:
    """Return whether a graph or its subgraphs have lists."""
    return any(v.dtype is variant for v in graph.values()) or any(
        holds_lists(inner) for node in graph.nodes for inner in node.subgraphs
    )


def _said(node: Node) -> Iterator[tuple[DType | None, TensorShape, Value | None, int]]:
    """Yield the facts that a List operator states of elements: dtype, shape, and a value with that shape from a
    dimension on."""
    attrs, name = node.attrs, node.op.name
    operands: list[Any] = list(node.inputs)
    if "element_dtype" in attrs:
        shape = attrs["element_shape"]
        if name == "ListConcat" and shape.rank is None and (whole := node.outputs[0].shape).rank is not None:
            shape = TensorShape([None, *whole[1:]])
        yield attrs["element_dtype"], shape, None, 0
    if name in ("ListPush", "ListSet"):
        item = operands[-1]
        yield item.dtype, item.shape, item, 0
    elif name in ("ListFromTensor", "ListScatter", "ListScatterAdd"):
        rows = operands[0] if name == "ListFromTensor" else operands[-1]
        yield rows.dtype, UNKNOWN if rows.shape.rank is None else rows.shape[1:], rows, 1
    elif name in ("ListGet", "ListPop"):
        yield None, node.outputs[-1].shape, None, 0
    elif name in ("ListStack", "ListGather"):
        stacked = node.outputs[0].shape
        yield None, UNKNOWN if stacked.rank is None else stacked[1:], None, 0
    elif name == "ListSplit":
        pieces, lengths = operands
        distinct = set() if lengths.constant is None else set(lengths.constant.tolist())
        if len(distinct) != 1:
            raise UnlowerableList(node, "its pieces have lengths that differ, or that are not known")
        rest = [None] if pieces.shape.rank is None else pieces.shape[1:].dims
        yield pieces.dtype, TensorShape([distinct.pop(), *rest]) if pieces.shape.rank else UNKNOWN, None, 0


class ListTypes:
    """The lists of a function: `of` returns the ListElements of a value of dtype variant.

    raises UnlowerableList for a list whose elements differ in type or shape
    """

    def __init__(self, graph: Graph, updates: bool = True) -> None:
        self.updates = updates  # whether the run time has an operator that writes one element
        self._parent: dict[Value, Value] = {}
        self._elements: dict[Value, ListElements] = {}
        for value in (*graph.inputs, *graph.outputs):
            if value.dtype is variant:
                side = "takes" if value in graph.inputs else "gives"
                node = value.node or Node(_ReportedOperator("TensorArray"), (), {}, [value.spec], value.name)
                raise UnlowerableList(node, f"the function {side} a list, which files have no type for")
        self._walk(graph, ())

    def of(self, value: Value) -> ListElements:
        return self._elements.setdefault(self._root(value), ListElements())

    def _root(self, value: Value) -> Value:
        parent = self._parent
        while parent.get(value, value) is not value:
            parent[value] = parent.get(parent[value], parent[value])
            value = parent[value]
        return value

    def _join(self, node: Node, values: Sequence[Value]) -> None:
        lists = [v for v in values if v.dtype is variant]
        for other in lists[1:]:
            a, b = self._root(lists[0]), self._root(other)
            if a is b:
                continue
            self._parent[b] = a
            gone = self._elements.pop(b, None)
            if gone is not None:
                self._learn(node, a, gone.dtype, gone.shape)
                self._elements[a].items += gone.items

    def _learn(self, node: Node, value: Value, dtype: DType | None, shape: TensorShape) -> None:
        elements = self.of(value)
        if dtype is variant:
            raise UnlowerableList(node, "a list of lists has no lite form")
        if dtype is not None and elements.dtype is not None and dtype is not elements.dtype:
            raise UnlowerableList(
                node, f"elements of one list have different types, {elements.dtype.name} and {dtype.name}"
            )
        elements.dtype = elements.dtype or dtype
        try:
            elements.shape = elements.shape.merge_with(shape)
        except ValueError:
            raise UnlowerableList(
                node, f"elements of one list have different shapes, {elements.shape} and {shape}"
            ) from None

    def _walk(self, graph: Graph, frames: Frames) -> None:
        for node in graph.nodes:
            lists = [v for v in (*node.operands, *node.outputs) if v.dtype is variant]
            if node.op.name in ("If", "Case", "While"):
                self._through(node, frames)
            elif node.op.name.startswith("List") and lists:
                self._join(node, lists)
                for dtype, shape, item, first in _said(node):
                    self._learn(node, lists[0], dtype, shape)
                    if item is not None:
                        self.of(lists[0]).items.append(ListItem(item, first, frames))
            elif lists and node.op.name != "Undefined":
                raise UnlowerableList(node, f"{node.op.name} takes or gives a list")

    def _through(self, node: Node, frames: Frames) -> None:
        operands = control_operands(node)
        for graph in node.subgraphs:
            for pair in zip(operands, graph.inputs):
                self._join(node, pair)
            if not (node.op.name == "While" and graph is node.attrs["cond"]):
                for pair in zip(node.outputs, graph.outputs):
                    self._join(node, pair)
            self._walk(graph, (*frames, (graph, node)))
        if node.op.name == "While":
            for pair in zip(node.attrs["body"].inputs, node.outputs):
                self._join(node, pair)


class _ReportedOperator(NamedTuple):
    """A placeholder for an operator in a report."""

    name: str
    effect: Any = None
