"""Analysis of the lists of a function: dtype and shape of their elements, and the loops that fill them.

Lives here: `ListElements`; `ListTypes`, which joins the values that are the same list, through control flow too;
`appends_of`, the lists that grow by one element an iteration; `source`, which traces the size of a value back to one
that exists before the loop.
Not here: counters of loops (graph/passes/control_flow.py), lengths of lists and the nodes that read such sizes
(list_rewriter.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ....core.dtypes import DType, variant
from ....core.shapes import UNKNOWN, TensorShape
from ....graph import Graph, Node, Value
from ....graph.passes.control_flow import LoopCounter, control_operands
from ..errors import UnsupportedNode
from ..rewriter import scalar

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


def _stated(node: Node) -> Iterator[tuple[DType | None, TensorShape, Value | None, int]]:
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
                for dtype, shape, item, first in _stated(node):
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


def appends_of(loop: Node, counter: LoopCounter | None) -> dict[int, Node]:
    """Return, by variable, the ListPush of each list to which the body appends one element and nothing else.

    A ListSet that may grow the list and writes at the counter is one, too, if the list has as many elements at first as
    the counter has counted.
    """
    body, appends = loop.attrs["body"], {}
    uses: dict[Value, int] = {}
    for graph in (loop.attrs["cond"], body):
        for node in graph.nodes:
            for value in node.operands:
                uses[value] = uses.get(value, 0) + 1
    for value in body.outputs:
        uses[value] = uses.get(value, 0) + 1
    n = len(loop.inputs[0])  # type: ignore[arg-type]
    for i, (before, after) in enumerate(zip(body.inputs[:n], body.outputs)):
        node = after.node
        if before.dtype is not variant or node is None or not node.inputs or node.inputs[0] is not before:
            continue
        writes = counter is not None and node.op.name == "ListSet" and node.attrs["grow"]
        if node.op.name != "ListPush" and not (writes and node.inputs[1] is body.inputs[counter.place]):  # type: ignore[union-attr]
            continue
        if uses[before] == 1 == uses[after] and uses.get(loop.attrs["cond"].inputs[i], 0) == 0:
            appends[i] = node
    return appends


Dim = tuple[Value, int]
DEPTH = 200  # steps back through a program; a batch size is never further away


def source(
    value: Value, dim: int, frames: Frames, outside: Frames, available: Callable[[Value], bool]
) -> Dim | int | None:
    """Return where the size `dim` of a value of the graph at `frames` comes from.

    The result is a number, or a value of the graph at `outside` with the dimension that has this size before the loops
    between them begin; None if there is none.

    available: returns whether a value of the graph at `outside` exists already
    """
    return _source(value, dim, frames, outside, available, [DEPTH])


def _source(
    value: Value, dim: int, frames: Frames, outside: Frames, available: Any, left: list[int]
) -> Dim | int | None:
    left[0] -= 1
    if left[0] < 0:
        return None
    if value.dtype is not variant:
        rank = value.shape.rank
        if rank is None or not 0 <= dim < rank:
            return None
        if value.shape[dim] is not None:
            return int(value.shape[dim])
    if len(frames) == len(outside) and available(value):
        return value, dim
    if frames and value in (graph := frames[-1][0]).inputs:
        if len(frames) == len(outside):
            return None
        operand = control_operands(frames[-1][1])[graph.inputs.index(value)]
        return _source(operand, dim, frames[:-1], outside, available, left)
    node = value.node
    if node is None:
        return None
    rule = _SOURCES.get(node.op.name, _elementwise if getattr(node.op, "elementwise", False) else None)
    for operand, place in () if rule is None else rule(node, value, dim):
        origin = _source(operand, place, frames, outside, available, left)
        if origin is not None:
            return origin
    return None


def _elementwise(node: Node, value: Value, dim: int) -> Iterator[Dim]:
    rank = value.shape.rank or 0
    for operand in node.operands:
        place = dim - rank + (operand.shape.rank or 0)
        if place >= 0 and operand.shape.rank is not None and operand.shape[place] != 1:
            yield operand, place


def _same(node: Node, value: Value, dim: int) -> Iterator[Dim]:
    yield next(node.operands), dim


def _matmul(node: Node, value: Value, dim: int) -> Iterator[Dim]:
    a, b = tuple(node.operands)[:2]
    rank, attrs = value.shape.rank or 0, node.attrs
    operand, turned = (b, "b") if dim == rank - 1 else (a, "a")
    place = dim - rank + (operand.shape.rank or 0)
    if dim >= rank - 2 and (attrs.get(f"transpose_{turned}") or attrs.get(f"adjoint_{turned}")):
        place += 1 if dim == rank - 2 else -1
    yield operand, place


def _but_axis(node: Node, value: Value, dim: int) -> Iterator[Dim]:
    rank = value.shape.rank or 0
    for operand in node.operands:
        if dim != node.attrs["axis"] % rank and operand.shape.rank == rank:
            yield operand, dim


def _transpose(node: Node, value: Value, dim: int) -> Iterator[Dim]:
    order, rank = node.attrs["perm"], value.shape.rank or 0
    yield next(node.operands), rank - 1 - dim if order is None else order[dim] % rank


def _expand_dims(node: Node, value: Value, dim: int) -> Iterator[Dim]:
    axis = node.attrs["axis"] % (value.shape.rank or 1)
    if dim != axis:
        yield next(node.operands), dim - (dim > axis)


def _reduced(node: Node, value: Value, dim: int) -> Iterator[Dim]:
    operand = next(node.operands)
    rank = operand.shape.rank
    axes = node.attrs.get("axis")
    if rank is None or axes is None:
        return
    gone = {a % rank for a in (axes if isinstance(axes, tuple) else (axes,))}
    left = [i for i in range(rank) if node.attrs.get("keepdims") or i not in gone]
    if dim < len(left) and left[dim] not in gone:
        yield operand, left[dim]


def _element(node: Node, value: Value, dim: int) -> Iterator[Dim]:
    yield node.inputs[0], dim + 1  # type: ignore[misc]


def _rows(node: Node, value: Value, dim: int) -> Iterator[Dim]:
    yield node.inputs[0], dim  # type: ignore[misc]


def _gather(node: Node, value: Value, dim: int) -> Iterator[Dim]:
    params, indices = tuple(node.operands)[:2]
    rank, axis = indices.shape.rank, node.attrs.get("axis", 0)
    if rank is not None and axis == 0 and not node.attrs.get("batch_dims"):
        yield (indices, dim) if dim < rank else (params, dim - rank + 1)


def _first(node: Node, value: Value, dim: int) -> Iterator[Dim]:
    if dim == 0:
        yield next(node.operands), 0


def _spelled(node: Node, value: Value, dim: int) -> Iterator[Dim]:
    """Yield the sources of Fill, Reshape and BroadcastTo, whose shape operand is composed of sizes of other tensors."""
    shape = node.inputs[0] if node.op.name == "Fill" else node.inputs[1]
    maker: Any = shape.node if isinstance(shape, Value) else None
    if maker is not None and maker.op.name == "Shape":
        yield next(maker.operands), dim
        return
    parts = tuple(maker.operands) if maker is not None and maker.op.name in ("Pack", "Concat") else ()
    if dim < len(parts) and all(p.shape.num_elements() == 1 for p in parts):
        yield from _one_size(parts[dim])


def _one_size(value: Value) -> Iterator[Dim]:
    node = value.node
    while node is not None and node.op.name in ("Cast", "Reshape", "Identity", "Squeeze", "ExpandDims"):
        node = next(node.operands).node
    if node is None or node.op.name != "StridedSlice":
        return
    whole, begin = next(node.operands).node, scalar(tuple(node.operands)[1])
    if whole is not None and whole.op.name == "Shape" and begin is not None:
        x = next(whole.operands)
        if x.shape.rank is not None:
            yield x, int(begin) % x.shape.rank


def _loop(node: Node, value: Value, dim: int) -> Iterator[Dim]:
    yield node.inputs[0][value.index], dim  # type: ignore[index]


_SOURCES: dict[str, Callable[[Node, Value, int], Iterator[Dim]]] = {
    **dict.fromkeys(
        (
            "Softmax",
            "LogSoftmax",
            "BiasAdd",
            "Reverse",
            "Cumsum",
            "Identity",
            "StopGradient",
            "Cast",
            "LayerNorm",
            "Dropout",
        ),
        _same,
    ),
    **dict.fromkeys(("MatMul", "BatchMatMul"), _matmul),
    **dict.fromkeys(("Split", "SplitV", "Concat"), _but_axis),
    **dict.fromkeys(("Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "ArgMax", "ArgMin"), _reduced),
    **dict.fromkeys(("Conv2D", "MaxPool", "AvgPool", "DepthwiseConv2dNative"), _first),
    **dict.fromkeys(("Fill", "Reshape", "BroadcastTo"), _spelled),
    **dict.fromkeys(("ListGet", "ListPop"), _element),
    **dict.fromkeys(("ListSet", "ListPush", "ListUnset", "ListStack", "ListFromTensor", "ListScatter"), _rows),
    "Select": _elementwise,
    "Transpose": _transpose,
    "ExpandDims": _expand_dims,
    "Gather": _gather,
    "While": _loop,
}
