"""Lowering of lists to tensors, in a graph and its subgraphs.

Lives here: `lower_lists`, `ListRewriter`.  Not here: single operators (operators.py).

A reserved list becomes zeros at its first use, when the sizes of its elements are known. A loop that counts its
iterations and appends one element in each fills a tensor of the final length; other lists grow by concatenation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....core.dtypes import DType, int32, variant
from ....core.dtypes import bool as bool_
from ....core.specs import TensorSpec
from ....graph import Graph, GraphRewriter, Node, Value
from ....graph.builder import constant_node, unique_name
from ....graph.ir import Operand, output_names
from ....graph.passes.control_flow import counter_of
from ....ops import registry
from ....ops.control import merged_spec
from ... import ops as dialect
from ...format import versions
from ..errors import UnsupportedNode
from .list_analysis import Frames, ListTypes, UnlowerableList, appends_of, holds_lists, source
from .operators import OPERATORS, Size, part

UPDATES_SINCE = versions.min_runtime("DYNAMIC_UPDATE_SLICE", 1)
AHEAD_BYTES = 1 << 20  # greatest preallocation for a loop that may end before its counter reaches the limit


def lower_lists(graph: Graph, unsupported: list[UnsupportedNode], runtime: str | None = None) -> Graph:
    """Replace the lists of a graph by tensors. Obstacles are appended to `unsupported`, and the graph stays as it is.

    runtime: the oldest run time that must read the file; None for the newest
    """
    if not holds_lists(graph):
        return graph
    updates = runtime is None or not versions.is_newer(UPDATES_SINCE, runtime)
    try:
        return ListRewriter(graph, (), ListTypes(graph, updates)).run()
    except UnlowerableList as error:
        unsupported.append(error.unsupported)
        return graph


class _ReservedList:
    """A list whose tensor does not exist yet. count: the number of elements, all unset."""

    def __init__(self, node: Node, count: Size) -> None:
        self.node, self.count = node, count


class ListRewriter(GraphRewriter):
    """The rewriter of one graph.

    frames: its nesting; specs: types of the tensors that replace lists among its inputs; more: additional inputs, after
    its own; appends: by ListPush, the counter and the offset from it to the element's index.
    """

    def __init__(
        self,
        graph: Graph,
        frames: Frames,
        kinds: ListTypes,
        specs: Mapping[Value, TensorSpec] | None = None,
        more: Sequence[Value] = (),
        appends: Mapping[Node, tuple[Value, Size]] | None = None,
    ) -> None:
        super().__init__(graph)
        self.frames, self.kinds = frames, kinds
        self.appends = appends or {}
        self.mapping: dict[Value, Value | _ReservedList] = {
            v: v if specs is None or v not in specs else Value(v.name, specs[v]) for v in graph.inputs
        }
        self.inputs = [*map(self.value, graph.inputs), *more]

    # ---- for operators --------------------------------------------------------------------------------------------

    def make(self, op_name: str, *inputs: Operand, like: TensorSpec | None = None, **attrs: Any) -> Value:
        """Append a node with one output, of the catalogue or, if the name is in capitals, of the lite dialect."""
        op: Any = dialect.get(op_name) if op_name.isupper() else registry.get(op_name)
        (value,) = self.create(op, inputs, attrs, (like,)).outputs
        return value

    def constant(self, value: Any, dtype: DType | None = None) -> Value:
        """Append a constant; of int32 if it is a number and no dtype is given."""
        array: Any = np.asarray(
            value, int32.np if dtype is None and not isinstance(value, bool) else None if dtype is None else dtype.np
        )
        spec = TensorSpec(array.shape, dtype or (int32 if array.dtype == np.int32 else bool_))
        name = self.unique(f"{self.prefix}/const")
        return self.insert(constant_node(registry.get("Const"), array, spec, name, self.at)).outputs[0]

    def value_of(self, size: Size) -> Value:
        """Return a size as a scalar of int32."""
        return self.constant(size) if isinstance(size, int) else size

    def add(self, size: Size, more: Size) -> Size:
        """Return the sum of two sizes."""
        if isinstance(size, Value) and size.constant is not None:
            size = int(size.constant)
        if isinstance(size, int) and isinstance(more, int):
            return size + more
        if more == 0 and isinstance(more, int):
            return size
        return self.make("Add", self.value_of(size), self.value_of(more))

    def vector(self, sizes: Sequence[Size]) -> Value:
        """Return sizes as a vector of int32."""
        if all(isinstance(s, int) for s in sizes):
            return self.constant(list(sizes))
        return self.make("Pack", tuple(map(self.value_of, sizes)))

    def dim(self, value: Value, axis: int) -> Size:
        """Return one size of a tensor."""
        size = value.shape[axis]
        if size is not None:
            return int(size)
        shape = self.make("Shape", value)
        return self.make(
            "StridedSlice",
            shape,
            self.constant([axis]),
            self.constant([axis + 1]),
            self.constant([1]),
            shrink_axis_mask=1,
        )

    def length(self, rows: Value) -> Size:
        """Return the number of rows."""
        return self.dim(rows, 0)

    def zeros(self, sizes: Sequence[Size], dtype: DType) -> Value:
        """Append zeros of these sizes; empty strings for strings."""
        zero = np.array(b"" if dtype.np.kind == "O" else 0, dtype.np)
        spec = TensorSpec([s if isinstance(s, int) else None for s in sizes], dtype)
        return self.make("Fill", self.vector(sizes), self.constant(zero, dtype), like=spec)

    def value(self, old: Any) -> Value:
        """Return the replacement of a value that is not a list."""
        replacement = self.mapping[old]
        assert isinstance(replacement, Value)
        return replacement

    def reserved(self, node: Node, count: Size) -> _ReservedList:
        """Return a list of `count` elements, to be created at its first use."""
        return _ReservedList(node, count)

    def is_empty(self, old: Any) -> bool:
        """Return whether a list is known to have no elements, and has no tensor yet."""
        replacement = self.mapping[old]
        return isinstance(replacement, _ReservedList) and replacement.count == 0 and isinstance(replacement.count, int)

    def length_of(self, old: Value) -> Size:
        """Return the number of elements of a list."""
        replacement = self.mapping[old]
        return replacement.count if isinstance(replacement, _ReservedList) else self.length(replacement)

    def rows(self, old: Any) -> Value:
        """Return the tensor that replaces a list."""
        replacement = self.mapping[old]
        if isinstance(replacement, _ReservedList):
            sizes = [replacement.count, *self.sizes(old, replacement.node)]
            replacement = self.mapping[old] = self.zeros(sizes, self.dtype(old, replacement.node))
        return replacement

    def dtype(self, old: Value, node: Node) -> DType:
        """Return the dtype of a list's elements."""
        element = self.kinds.of(old).dtype
        if element is None:
            raise UnlowerableList(node, "nothing tells what its elements are")
        return element

    def sizes(self, old: Value, node: Node) -> list[Size]:
        """Return the sizes of an element at this point. Raises UnlowerableList if one is unknown before the list is
        filled."""
        elements = self.kinds.of(old)
        dims = elements.shape.dims
        if dims is None:
            raise UnlowerableList(node, "the shape of its elements is not known")
        return [int(d) if d is not None else self._unknown(elements, axis, node) for axis, d in enumerate(dims)]

    def _unknown(self, elements: Any, axis: int, node: Node) -> Size:
        for item in elements.items:
            if item.frames[: len(self.frames)] == self.frames:
                origin = source(item.value, item.first + axis, item.frames, self.frames, self._there)
                if isinstance(origin, int):
                    return origin
                if origin is not None:
                    value, place = origin
                    return self.dim(self.mapping[value], place)  # type: ignore[arg-type]
        raise UnlowerableList(node, f"size {axis} of its elements is not known before they are written")

    def _there(self, value: Value) -> bool:
        return isinstance(self.mapping.get(value), Value)

    # ---- the walk ---------------------------------------------------------------------------------------------------

    def run(self) -> Graph:
        """Return the new graph."""
        for node in self.source.nodes:
            self.begin(node)
            lists = any(v.dtype is variant for v in (*node.operands, *node.outputs))
            if node.op.name in ("If", "Case", "While") and (lists or any(map(holds_lists, node.subgraphs))):
                values: Sequence[Any] = self._while(node) if node.op.name == "While" else self._branches(node)
            elif lists:
                values = OPERATORS[node.op.name](self, node)
                self.credit(node, "lower_lists: a list of equal tensors is a tensor with one more dimension")
            else:
                values = self.insert(self.remap(node)).outputs
            self.mapping.update(zip(node.outputs, values))
        return self.build(self._handed(self.source.outputs))

    def _handed(self, values: Any) -> list[Value]:
        """Return the replacements of operands, lists as tensors."""
        return [self.rows(v) if v.dtype is variant else self.value(v) for v in values]

    def _inside(
        self, node: Node, graph: Graph, specs: Sequence[TensorSpec], more: Sequence[Value] = (), appends: Any = None
    ) -> Graph:
        tensors = {v: s for v, s in zip(graph.inputs, specs) if v.dtype is variant}
        return ListRewriter(graph, (*self.frames, (graph, node)), self.kinds, tensors, more, appends).run()

    def _branches(self, node: Node) -> Sequence[Value]:
        operands = self._handed(node.inputs[1])
        specs = [v.spec for v in operands]
        graphs = {name: self._inside(node, held, specs) for name, held in node.attrs.items() if isinstance(held, Graph)}
        attrs: dict[str, Any] = dict(graphs)
        if "branches" in node.attrs:
            attrs["branches"] = tuple(self._inside(node, held, specs) for held in node.attrs["branches"])
        every = [*graphs.values(), *attrs.get("branches", ())]
        outs = [
            old.spec if old.dtype is not variant else merged_spec(new)
            for old, new in zip(node.outputs, zip(*(g.outputs for g in every)))
        ]
        chooser = self.value(node.inputs[0])
        return self._emit(node, (chooser, tuple(operands)), attrs, outs)

    def _emit(self, old: Node, inputs: Any, attrs: Any, specs: Sequence[TensorSpec]) -> Sequence[Value]:
        names = [before.name for before in old.outputs]
        names += output_names(old.name, len(specs))[len(names) :]
        node = Node(old.op, inputs, {**old.attrs, **attrs}, specs, old.name, old.at, names[: len(specs)])
        return self.insert(node).outputs

    def _while(self, node: Node) -> Sequence[Value]:
        variables: Any = node.inputs[0]
        cond, body = node.attrs["cond"], node.attrs["body"]
        ahead = self._set_aside(node)
        first = [ahead[i][0] if i in ahead else self._handed([v])[0] for i, v in enumerate(variables)]
        captured = self._handed(node.inputs[1])
        counter = counter_of(node)
        pushes = appends_of(node, counter)
        offsets = [(i, o) for i, (_, o, _) in ahead.items() if isinstance(o, Value)]

        def graph_of(held: Graph, specs: Sequence[TensorSpec]) -> Graph:
            names = {v.name for v in held.values()}
            more = [Value(unique_name("offset", names), TensorSpec((), int32)) for _ in offsets]
            place: dict[Node, tuple[Value, Size]] = {}
            if held is body and counter is not None:
                inside = {i: value for (i, _), value in zip(offsets, more)}
                for i, (_, offset, _) in ahead.items():
                    place[pushes[i]] = (body.inputs[counter.place], inside.get(i, offset))
            return self._inside(node, held, specs, more, place)

        specs = [v.spec for v in (*first, *captured)]
        while True:
            new_body = graph_of(body, specs)
            returned = [v.spec for v in new_body.outputs]
            wider = [
                s if old.dtype is not variant else s.with_shape(s.shape.most_specific_common_supertype([f.shape]))
                for old, s, f in zip(variables, specs, returned)
            ]
            if all(a.shape == b.shape for a, b in zip(wider, specs)):
                break
            specs = [*wider, *specs[len(wider) :]]
        outs = [s if old.dtype is variant else old.spec for old, s in zip(node.outputs, specs)]
        inputs = (tuple(first), (*captured, *(o for _, o in offsets)))
        results = list(self._emit(node, inputs, {"cond": graph_of(cond, specs), "body": new_body}, outs))
        for i, (_, offset, exact) in ahead.items():
            if not exact and counter is not None:
                results[i] = part(self, results[i], 0, self.add(results[counter.place], offset))
        return results

    def _set_aside(self, node: Node) -> dict[int, tuple[Value, Size, bool]]:
        """Return, by variable, the preallocated tensor of each list that a counting loop appends to.

        With it the offset from the counter to the element's index, and whether the loop fills the tensor.
        """
        counter = counter_of(node)
        if counter is None:
            return {}
        variables: Any = node.inputs[0]
        begin = self.value(variables[counter.place])
        start: Size = begin if begin.constant is None else int(begin.constant)
        limit: Size = counter.limit if isinstance(counter.limit, int) else self.value(counter.limit)
        preallocated: dict[int, tuple[Value, Size, bool]] = {}
        for i, push in appends_of(node, counter).items():
            old = variables[i]
            if push.op.name == "ListSet" and not (isinstance(start, int) and self.length_of(old) == start):
                continue
            sizes = self._sizes_if_known(old, push)
            if sizes is None:
                continue
            static = isinstance(start, int) and isinstance(limit, int)
            turns: Size = max(limit - start, 0) if static else 0  # type: ignore[operator]
            if not counter.exact:
                dtype, room = self.dtype(old, push), [turns, *sizes]
                if not static or any(isinstance(s, Value) for s in room):
                    continue
                if math.prod(room) * (dtype.size or 8) > AHEAD_BYTES:  # type: ignore[arg-type]
                    continue
            if not static:
                difference = (
                    limit
                    if start == 0 and isinstance(start, int)
                    else self.make("Sub", self.value_of(limit), self.value_of(start))
                )
                turns = self.make("Maximum", self.value_of(difference), self.constant(0))
            length = self.length_of(old)
            rows = self.zeros([turns, *sizes], self.dtype(old, push))
            if not self.is_empty(old):
                rows = self.make("Concat", (self.rows(old), rows), axis=0)
            minus: Size = -start if isinstance(start, int) else self.make("Neg", start)
            preallocated[i] = rows, self.add(length, minus), counter.exact
        return preallocated

    def _sizes_if_known(self, old: Value, node: Node) -> list[Size] | None:
        try:
            return self.sizes(old, node)
        except UnlowerableList:
            return None
