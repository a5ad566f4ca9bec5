"""One walk back over a graph, which adds its gradients.

Lives here: `Walk`: which nodes have a part in it, the names and sums of gradients, what is left out in the end.
Not here: what is asked for (backward.py), recording the graph again (rerecording.py), the gradient rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import DefinitionError, InvalidArgumentError, UnimplementedError
from ..graph import Graph, GraphBuilder, Node, Value
from ..graph.verify import verify
from ..ops import array, dispatch, math
from ..ops.autodiff import OpRecord, is_trainable
from ..ops.indexed_slices import IndexedSlices, summed
from ..tracing.symbolic import SymbolicTensor
from ..tracing.trace import TRACING, user_line
from .gradient_map import Backward, flat_gradient, graph_gradient
from .rerecording import Origin, Recording
from .variable import EMPTY, grad_name


class NoGradientError(UnimplementedError, LookupError):
    """A gradient was asked for through an operator that defines none."""


class Walk:
    """One pass backwards over a graph that is recorded again meanwhile.

    parts: by id of tensor, what its gradient is the sum of, in the order in which it came. finished: the sums.
    """

    def __init__(self, graph: Graph, no_grad_set: Sequence[Value]) -> None:
        self.graph, self.given = graph, no_grad_set
        self.here = user_line()
        self.parts: dict[int, list[Any]] = {}
        self.finished: dict[int, Any] = {}
        self.claimed: set[int] = set()  # values that are somebody's gradient already
        self.slots: dict[str, dict[str, Any]] = {}  # of a node: for each input the place of its part, or None
        self.part_names: dict[tuple[int, int], str] = {}
        self.lines: dict[int, str | None] = {}  # the user's line, by id of node

    def run(
        self, targets: Sequence[Value], seeds: Sequence[Value | None], wanted: Sequence[Value], explicit: bool
    ) -> Backward:
        """The graph with gradients. seeds: what those of the targets start from; explicit: whether all of `wanted` was
        asked for by name, so that it is an error if one can have none."""
        with TRACING:
            before = dispatch.state.trace, dispatch.state.tapes, dispatch.state.names
            try:
                self.recording = Recording(self.graph)
                self.trace, tensors = self.recording.trace, self.recording.tensors
                self.names = {id(t): name for name, t in tensors.items()}
                self.keep = list(tensors.values())  # ids are theirs as long as they live
                sources = [(v, tensors[v.name]) for v in wanted if self._may_have(v, tensors[v.name], explicit)]
                self._mark(sources, [tensors[t.name] for t in targets])
                with self.trace.resumed():
                    for target, seed in zip(targets, seeds):
                        y = tensors[target.name]
                        start = array.ones_like(y) if seed is None else tensors[seed.name]
                        if id(y) in self.reaches:
                            self._add(y, start)
                    for record in reversed(self.recording.records):
                        self._pass(record)
                    for key in list(self.parts):
                        self._finish(key)
            finally:  # reset by statements: see tracing.trace.Recording
                dispatch.state.trace, dispatch.state.tapes, dispatch.state.names = before
        return self._result(targets, wanted, sources)

    def _may_have(self, value: Value, tensor: Any, explicit: bool) -> bool:
        """Whether a value can have a gradient. Raises InvalidArgumentError where one was asked for that cannot."""
        dtype = tensor.dtype
        flows = dtype.is_floating or dtype.is_complex or dtype.name == "variant"
        if not flows and explicit:
            raise InvalidArgumentError(
                node=value.name,
                what="a value of this dtype has no gradient",
                found=value.spec.short(),
                wanted="a floating or complex one",
            )
        return bool(flows)

    # ---- where gradients go ---------------------------------------------------------------------------------------

    def _mark(self, sources: Sequence[tuple[Value, Any]], targets: Sequence[Any]) -> None:
        """What gradients flow into: what depends on the sources by real gradients and leads to the targets."""
        records = self.recording.records
        leads = {id(t) for t in targets}
        unread: set[int] = set()
        for record in reversed(records):
            if any(id(y) in leads for y in record.outputs):
                unread.update(id(y) for y in record.outputs if id(y) not in leads)
                if not _ends_here(record):
                    leads.update(map(id, record.inputs))
        self.no_grad = {id(self.recording.tensors[v.name]) for v in self.given}
        for record in records:
            if _ends_here(record):
                self.no_grad.update(id(y) for y in record.outputs if is_trainable(y.dtype))
        self.reaches = {id(x) for _, x in sources} - self.no_grad
        for record in records:
            if not _ends_here(record) and any(id(x) in self.reaches for x in record.inputs):
                self.reaches.update(id(y) for y in record.outputs if is_trainable(y.dtype))
                self.reaches -= self.no_grad
        self.reaches &= leads | unread
        self.no_grad |= unread

    # ---- one node -------------------------------------------------------------------------------------------------

    def _pass(self, record: Any) -> None:
        """Ask the rule of one node for the gradients of its inputs, where one has come for an output."""
        if _ends_here(record) or not any(id(y) in self.parts for y in record.outputs):
            return
        if not any(id(x) in self.reaches for x in record.inputs):
            return
        node = self.recording.node_of(record)
        made = len(self.trace.builder.nodes)
        if type(record) is OpRecord and record.op.gradient_rule is None:
            raise self._without_gradient(record.op.name, node)
        dys = [self._arriving(record, y) for y in record.outputs]
        inputs = record.inputs  # a loop gets more of them by being asked for its gradient
        try:
            grads = list(record.backward(dys))
        except LookupError as error:
            if isinstance(error, (KeyError, IndexError)) or node is None:
                raise
            raise self._without_gradient(str(error), node) from None
        places: list[tuple[int, int] | None] = []
        for x, dx in zip(inputs, grads):
            flows = dx is not None and id(x) in self.reaches
            places.append((id(x), self._add(x, dx, node)) if flows else None)
        if node is not None:
            self.slots[node.name] = _by_slot(node, places)
            for new in self.trace.builder.nodes[made:]:
                self.lines.setdefault(id(new), node.at)

    def _without_gradient(self, op: str, node: Node | None) -> NoGradientError:
        inside = node is not None and op != node.op.name
        within = f"inside it {op.partition(':')[0]} has" if inside else "the operator has"
        return NoGradientError(
            op=node.op.name if node else op,
            node=node.name if node else None,
            at=node.at if node else None,
            what=f"{within} no gradient, and one was asked for through it",
            do="define gradient(op, dy) in it, or put ow.stop_gradient around its result",
            explain="OW501",
        )

    def _arriving(self, record: Any, y: Any) -> Any:
        """The gradient of an output, summed up here, before its first reader; zeros where none came."""
        if id(y) in self.parts:
            return self._finish(id(y))
        if type(record) is not OpRecord or not is_trainable(y.dtype) or y.dtype.name == "resource":
            return None  # control flow knows which of its results take part; of state there are no zeros
        zeros = self._own(array.zeros_like(y))
        self.finished[id(y)] = self._name(zeros, self._gradient_name(id(y)))
        return zeros

    # ---- sums -----------------------------------------------------------------------------------------------------

    def _add(self, x: Any, dx: Any, node: Node | None = None) -> int:
        """One more part of the gradient of x; gives its number."""
        if isinstance(dx, IndexedSlices):
            shape = None if dx.dense_shape is None else self._own(self.trace.to_tensor(dx.dense_shape))
            part: Any = IndexedSlices(self._own(dx.values), self._own(dx.indices), shape)
        else:
            part = self._own(self.trace.to_tensor(dx))
            self._typed_like(part, x, node)
        if part.dtype is not x.dtype:
            raise DefinitionError(
                op=node.op.name if node else None,
                node=node.name if node else None,
                what="the gradient rule gave another dtype than the input has",
                found=part.dtype.name,
                wanted=x.dtype.name,
            )
        parts = self.parts.setdefault(id(x), [])
        parts.append(part)
        return len(parts) - 1

    def _typed_like(self, part: Any, x: Any, node: Node | None) -> None:
        """A gradient has the shape of what it is the gradient of, whatever was inferred."""
        try:
            part.set_shape(x.shape)
        except ValueError:
            raise DefinitionError(
                op=node.op.name if node else None,
                node=node.name if node else None,
                what="the gradient rule gave another shape than the input has",
                found=part.spec.short(),
                wanted=str(x.shape),
            ) from None

    def _own(self, tensor: Any) -> SymbolicTensor:
        """A value that is nothing else's gradient and no value of the forward graph: itself, or a copy of it."""
        tensor = self.trace.to_tensor(tensor)
        value = tensor.value_in_graph
        if value.node is None or id(value) in self.claimed or self.recording.is_forward(value):
            tensor = array.identity(tensor)
        self.claimed.add(id(tensor.value_in_graph))
        self.keep.append(tensor)
        return tensor

    def _gradient_name(self, key: int) -> str:
        return self.trace.builder.unique(grad_name(self.names[key]))

    def _name(self, grad: Any, name: str) -> Any:
        if isinstance(grad, IndexedSlices):
            for part, which in ((grad.values, "values"), (grad.indices, "indices"), (grad.dense_shape, "dense_shape")):
                if part is not None:
                    self._name(part, f"{name}.{which}")
            return grad
        value = grad.value_in_graph
        self.trace.builder.rename(value, name)
        self.trace.builder.reserve(name)
        return grad

    def _finish(self, key: int) -> Any:
        """The gradient of a tensor: what came for it, or one sum of it all."""
        if key in self.finished:
            return self.finished[key]
        parts, name = self.parts[key], self._gradient_name(key)
        if len(parts) == 1:
            self.part_names[key, 0] = name
            self.finished[key] = self._name(parts[0], name)
            return parts[0]
        for i, part in enumerate(parts):
            self.part_names[key, i] = self.trace.builder.unique(f"{name}@RENAME@block0@{i}")
            self._name(part, self.part_names[key, i])
        total = summed(parts) if any(isinstance(p, IndexedSlices) for p in parts) else math.add_n(parts)
        if isinstance(total, IndexedSlices):
            shape = None if total.dense_shape is None else self._own(total.dense_shape)
            total = IndexedSlices(self._own(total.values), self._own(total.indices), shape)
        else:
            total = self._own(total)  # a rule may hand it on as it is: that part then has a name of its own
        self.finished[key] = self._name(total, name)
        return total

    # ---- the result -----------------------------------------------------------------------------------------------

    def _result(
        self, targets: Sequence[Value], wanted: Sequence[Value], sources: Sequence[tuple[Value, Any]]
    ) -> Backward:
        builder, recording = self.trace.builder, self.recording
        if len(builder.inputs) != len(self.graph.inputs):
            raise DefinitionError(
                what=f"a gradient rule in graph {self.graph.name!r} reads what is outside the graph",
                found=", ".join(v.name for v in builder.inputs[len(self.graph.inputs) :]),
            )
        found = {v.name: self.finished[id(x)] for v, x in sources if id(x) in self.finished}
        outputs = [self.trace.value_of(recording.tensors[v.name]) for v in self.graph.outputs]
        flat = [t.value_in_graph for grad in found.values() for t in flat_gradient(grad)]
        nodes = self._connected([*outputs, *flat])
        self._say_where(nodes)
        origin = Origin(self.trace) if recording.arranged else None
        graph = Graph(self.graph.name, builder.inputs, nodes, [*outputs, *flat], origin)
        verify(graph, "append_backward")
        there = {id(v) for v in graph.values()}

        def present(grad: Any) -> bool:
            return all(id(t.value_in_graph) in there for t in flat_gradient(grad)[:2])

        def shown(place: tuple[int, int] | None) -> str:
            return EMPTY if place is None or not present(self.parts[place[0]][place[1]]) else self.part_names[place]

        links = {self.names[k]: graph_gradient(g) for k, g in self.finished.items() if present(g)}
        slots = {
            name: {slot: list(map(shown, e)) if isinstance(e, list) else shown(e) for slot, e in entries.items()}
            for name, entries in self.slots.items()
        }
        no_grad = frozenset(self.names[k] for k in self.no_grad if k in self.names)
        return Backward(self.graph, graph, [t.name for t in targets], [v.name for v in wanted], links, slots, no_grad)

    def _connected(self, outputs: Sequence[Value]) -> list[Node]:
        """All nodes of the forward graph, and of the others those that an output or an effect needs."""
        needed, nodes = {id(v) for v in outputs}, []
        for node in reversed(self.trace.builder.nodes):
            if (
                any(self.recording.is_forward(v) for v in node.outputs)
                or node.effect == "write"
                or any(id(v) in needed for v in node.outputs)
            ):
                nodes.append(node)
                needed.update(map(id, node.operands))
        return nodes[::-1]

    def _say_where(self, nodes: Sequence[Node]) -> None:
        """A node of the gradient comes from the user's line of the node that it is the gradient of."""
        for node in nodes:
            if node.at == self.here and not any(self.recording.is_forward(v) for v in node.outputs):
                GraphBuilder.locate(node, self.lines.get(id(node)))
            stack = [(graph, node.at) for graph in node.subgraphs]
            while stack:
                graph, at = stack.pop()
                for inner in graph.nodes:
                    if inner.at == self.here:
                        GraphBuilder.locate(inner, at)
                    stack += [(g, at) for g in inner.subgraphs]


def _ends_here(record: Any) -> bool:
    """Whether differentiation ends at a node, by its declaration `gradient = None`."""
    return type(record) is OpRecord and record.op.gradient_rule is None and record.op.has_gradient_rule


def _by_slot(node: Node, flat: Sequence[tuple[int, int] | None]) -> dict[str, Any]:
    """Flat entries by the inputs' names; a list, in which no place is left out, for a repeated one."""
    left = iter(flat)
    return {
        declared.name: [next(left) for _ in operand]
        if isinstance(operand, tuple)
        else None
        if operand is None
        else next(left)
        for declared, operand in zip(node.op.inputs, node.inputs)
    }
