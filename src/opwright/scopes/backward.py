"""Add gradients to a graph: `append_backward` for a loss, `graph_gradients` for any targets.

Lives here: the two functions and their checks; `BackwardPass`: which nodes take part, the names and sums of gradients,
removal of unused nodes.
Not here: results, replaying the graph into a trace (gradient_graphs.py), gradient rules (the
operators'), tapes (eager/tape.py), derivatives of traced functions, which are separate programs (tracing/program.py).

The gradient of a value `v` is named `v@GRAD`. Where several nodes contribute, the parts are named
`v@GRAD@RENAME@block0@0`, `...@1` and so on, in order, and one AddN just before the first node that reads the sum
computes `v@GRAD`. Rows of a table (IndexedSlices) are `v@GRAD.values`, `v@GRAD.indices` and `v@GRAD.dense_shape`. Names
are for people: the result maps values to gradients and does not parse names.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from ..core.errors import DefinitionError, InvalidArgumentError, NotFoundError, UnimplementedError
from ..core.introspection import users_line
from ..graph import Graph, GraphBuilder, Node, Value
from ..graph.builder import verify
from ..ops import array, dispatch, math
from ..ops.autodiff import OpRecord, is_trainable
from ..ops.indexed_slices import IndexedSlices, summed
from ..tracing.symbolic import SymbolicTensor
from ..tracing.trace import TRACING
from .gradient_graphs import Backward, GraphOrigin, GraphReplay, flat_gradient, graph_gradient
from .graphs import checked_graph
from .variable import EMPTY, grad_name


class NoGradientError(UnimplementedError, LookupError):
    """A gradient was requested through an operator that defines none."""


class BackwardPass:
    """One backward pass over a graph that is replayed into a trace.

    parts: by id of tensor, the summands of its gradient in order. finished: the sums.
    """

    def __init__(self, graph: Graph, no_grad_set: Sequence[Value]) -> None:
        self.graph, self.no_grad_values = graph, no_grad_set
        self.call_line = users_line()
        self.parts: dict[int, list[Any]] = {}
        self.finished: dict[int, Any] = {}
        self.claimed: set[int] = set()  # values that are already the gradient of a tensor
        self.slots: dict[str, dict[str, Any]] = {}  # by node: for each input the position of its part, or None
        self.part_names: dict[tuple[int, int], str] = {}
        self.lines: dict[int, str | None] = {}  # the user's line, by id of node

    def run(
        self, targets: Sequence[Value], seeds: Sequence[Value | None], sources: Sequence[Value], explicit: bool
    ) -> Backward:
        """Return the graph with gradients. seeds: the initial gradients of the targets; sources: the values to
        differentiate by; explicit: the caller named all of them, so one that cannot have a gradient is an error.
        """
        with TRACING:
            before = dispatch.state.trace, dispatch.state.tapes, dispatch.state.names
            try:
                self.replay = GraphReplay(self.graph)
                self.trace, tensors = self.replay.trace, self.replay.tensors
                self.names = {id(t): name for name, t in tensors.items()}
                self.keep = list(tensors.values())  # ids stay unique while the tensors are alive
                pairs = [(v, tensors[v.name]) for v in sources if self._is_differentiable(v, tensors[v.name], explicit)]
                self._mark(pairs, [tensors[t.name] for t in targets])
                with self.trace.resumed():
                    for target, seed in zip(targets, seeds):
                        y = tensors[target.name]
                        start = array.ones_like(y) if seed is None else tensors[seed.name]
                        if id(y) in self.active:
                            self._add(y, start)
                    for record in reversed(self.replay.records):
                        self._differentiate(record)
                    for key in list(self.parts):
                        self._finish(key)
            finally:  # reset by statements: see tracing.trace.Recording
                dispatch.state.trace, dispatch.state.tapes, dispatch.state.names = before
        return self._result(targets, sources, pairs)

    def _is_differentiable(self, value: Value, tensor: Any, explicit: bool) -> bool:
        """Return whether a value can have a gradient. Raises InvalidArgumentError if one was requested explicitly."""
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

    # ---- active values ----------------------------------------------------------------------------------------------

    def _mark(self, sources: Sequence[tuple[Value, Any]], targets: Sequence[Any]) -> None:
        """Find the active values: differentiable functions of the sources that the targets depend on."""
        records = self.replay.records
        leads = {id(t) for t in targets}
        unread: set[int] = set()
        for record in reversed(records):
            if any(id(y) in leads for y in record.outputs):
                unread.update(id(y) for y in record.outputs if id(y) not in leads)
                if not _stops_gradient(record):
                    leads.update(map(id, record.inputs))
        self.no_grad = {id(self.replay.tensors[v.name]) for v in self.no_grad_values}
        for record in records:
            if _stops_gradient(record):
                self.no_grad.update(id(y) for y in record.outputs if is_trainable(y.dtype))
        self.active = {id(x) for _, x in sources} - self.no_grad
        for record in records:
            if not _stops_gradient(record) and any(id(x) in self.active for x in record.inputs):
                self.active.update(id(y) for y in record.outputs if is_trainable(y.dtype))
                self.active -= self.no_grad
        self.active &= leads | unread
        self.no_grad |= unread

    # ---- one node -------------------------------------------------------------------------------------------------

    def _differentiate(self, record: Any) -> None:
        """Apply the gradient rule of one node, if any of its outputs has a gradient."""
        if _stops_gradient(record) or not any(id(y) in self.parts for y in record.outputs):
            return
        if not any(id(x) in self.active for x in record.inputs):
            return
        node = self.replay.node_of(record)
        first_new = len(self.trace.builder.nodes)
        if type(record) is OpRecord and record.op.gradient_rule is None:
            raise self._without_gradient(record.op.name, node)
        dys = [self._incoming_gradient(record, y) for y in record.outputs]
        inputs = record.inputs  # a loop gets more of them by being asked for its gradient
        try:
            grads = list(record.backward(dys))
        except LookupError as error:
            if isinstance(error, (KeyError, IndexError)) or node is None:
                raise
            raise self._without_gradient(str(error), node) from None
        positions: list[tuple[int, int] | None] = []
        for x, dx in zip(inputs, grads):
            flows = dx is not None and id(x) in self.active
            positions.append((id(x), self._add(x, dx, node)) if flows else None)
        if node is not None:
            self.slots[node.name] = _group_by_slot(node, positions)
            for new in self.trace.builder.nodes[first_new:]:
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

    def _incoming_gradient(self, record: Any, y: Any) -> object:
        """Return the gradient of an output, summed here, before its first reader; zeros if it has none."""
        if id(y) in self.parts:
            return self._finish(id(y))
        if type(record) is not OpRecord or not is_trainable(y.dtype) or y.dtype.name == "resource":
            return None  # control flow handles None itself; state has no zeros
        zeros = self._own_value(array.zeros_like(y))
        self.finished[id(y)] = self._name(zeros, self._gradient_name(id(y)))
        return zeros

    # ---- sums -----------------------------------------------------------------------------------------------------

    def _add(self, x: Any, dx: Any, node: Node | None = None) -> int:
        """Add a summand to the gradient of x; return its index."""
        if isinstance(dx, IndexedSlices):
            shape = None if dx.dense_shape is None else self._own_value(self.trace.to_tensor(dx.dense_shape))
            part: Any = IndexedSlices(self._own_value(dx.values), self._own_value(dx.indices), shape)
        else:
            part = self._own_value(self.trace.to_tensor(dx))
            self._check_shape(part, x, node)
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

    def _check_shape(self, part: Any, x: Any, node: Node | None) -> None:
        """Set the gradient's shape to its tensor's, whatever was inferred."""
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

    def _own_value(self, tensor: Any) -> SymbolicTensor:
        """Return a value that is no other tensor's gradient and not in the forward graph: the tensor or a copy."""
        tensor = self.trace.to_tensor(tensor)
        value = tensor.value_in_graph
        if value.node is None or id(value) in self.claimed or self.replay.is_forward(value):
            tensor = array.identity(tensor)
        self.claimed.add(id(tensor.value_in_graph))
        self.keep.append(tensor)
        result: SymbolicTensor = tensor
        return result

    def _gradient_name(self, key: int) -> str:
        return self.trace.builder.unique(grad_name(self.names[key]))

    def _name(self, grad: Any, name: str) -> object:
        if isinstance(grad, IndexedSlices):
            for part, which in ((grad.values, "values"), (grad.indices, "indices"), (grad.dense_shape, "dense_shape")):
                if part is not None:
                    self._name(part, f"{name}.{which}")
            return grad
        value = grad.value_in_graph
        self.trace.builder.rename(value, name)
        self.trace.builder.reserve(name)
        return grad

    def _finish(self, key: int) -> object:
        """Return the gradient of a tensor: its only summand, or the sum."""
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
            shape = None if total.dense_shape is None else self._own_value(total.dense_shape)
            total = IndexedSlices(self._own_value(total.values), self._own_value(total.indices), shape)
        else:
            total = self._own_value(total)  # the sum may be one of the parts, which has its own name
        self.finished[key] = self._name(total, name)
        return total

    # ---- the result -----------------------------------------------------------------------------------------------

    def _result(
        self, targets: Sequence[Value], sources: Sequence[Value], pairs: Sequence[tuple[Value, Any]]
    ) -> Backward:
        builder, replay = self.trace.builder, self.replay
        if len(builder.inputs) != len(self.graph.inputs):
            raise DefinitionError(
                what=f"a gradient rule in graph {self.graph.name!r} reads a tensor from outside the graph",
                found=", ".join(v.name for v in builder.inputs[len(self.graph.inputs) :]),
            )
        gradients = {v.name: self.finished[id(x)] for v, x in pairs if id(x) in self.finished}
        outputs = [self.trace.value_of(replay.tensors[v.name]) for v in self.graph.outputs]
        flat = [t.value_in_graph for grad in gradients.values() for t in flat_gradient(grad)]
        nodes = self._connected([*outputs, *flat])
        self._set_lines(nodes)
        origin = GraphOrigin(self.trace) if replay.has_custom_gradients else None
        graph = Graph(self.graph.name, builder.inputs, nodes, [*outputs, *flat], origin)
        verify(graph, "append_backward")
        values = {id(v) for v in graph.values()}

        def present(grad: Any) -> bool:
            return all(id(t.value_in_graph) in values for t in flat_gradient(grad)[:2])

        def part_name(position: tuple[int, int] | None) -> str:
            if position is None or not present(self.parts[position[0]][position[1]]):
                return EMPTY
            return self.part_names[position]

        links = {self.names[k]: graph_gradient(g) for k, g in self.finished.items() if present(g)}
        slots = {
            name: {
                slot: list(map(part_name, e)) if isinstance(e, list) else part_name(e) for slot, e in entries.items()
            }
            for name, entries in self.slots.items()
        }
        no_grad = frozenset(self.names[k] for k in self.no_grad if k in self.names)
        return Backward(self.graph, graph, [t.name for t in targets], [v.name for v in sources], links, slots, no_grad)

    def _connected(self, outputs: Sequence[Value]) -> list[Node]:
        """Return the forward nodes, and the gradient nodes that an output or an effect depends on."""
        needed, nodes = {id(v) for v in outputs}, []
        for node in reversed(self.trace.builder.nodes):
            if (
                any(self.replay.is_forward(v) for v in node.outputs)
                or node.effect == "write"
                or any(id(v) in needed for v in node.outputs)
            ):
                nodes.append(node)
                needed.update(map(id, node.operands))
        return nodes[::-1]

    def _set_lines(self, nodes: Sequence[Node]) -> None:
        """Set the source line of each gradient node to that of its forward node."""
        for node in nodes:
            if node.at == self.call_line and not any(self.replay.is_forward(v) for v in node.outputs):
                GraphBuilder.locate(node, self.lines.get(id(node)))
            stack = [(graph, node.at) for graph in node.subgraphs]
            while stack:
                graph, line = stack.pop()
                for inner in graph.nodes:
                    if inner.at == self.call_line:
                        GraphBuilder.locate(inner, line)
                    stack += [(g, line) for g in inner.subgraphs]


def _stops_gradient(record: Any) -> bool:
    """Return whether differentiation stops at a node, by its declaration `gradient = None`."""
    return type(record) is OpRecord and record.op.gradient_rule is None and record.op.has_gradient_rule


def _group_by_slot(node: Node, flat: Sequence[tuple[int, int] | None]) -> dict[str, Any]:
    """Group flat entries by input name; a repeated input has a list with an entry for each member."""
    remaining = iter(flat)
    return {
        declared.name: [next(remaining) for _ in operand]
        if isinstance(operand, tuple)
        else None
        if operand is None
        else next(remaining)
        for declared, operand in zip(node.op.inputs, node.inputs)
    }


__all__ = ["Backward", "NoGradientError", "append_backward", "graph_gradients"]


def append_backward(
    graph: Graph, loss: Any, parameters: Iterable[Any] | None = None, no_grad_set: Iterable[Any] = ()
) -> Backward:
    """Return the graph extended with the gradients of `loss` with respect to its parameters.

    .. math:: p@GRAD = \\frac{\\partial loss}{\\partial p}

    loss: a value of the graph or its name, floating, of one element. parameters: values or names; by default all inputs
    that the loss depends on along differentiable paths; the handle of a variable stands for the variable's value.
    no_grad_set: values or names at which differentiation stops, in addition to results of `stop_gradient`. The new
    graph has the forward nodes unchanged, then those of the gradients. Its outputs are the graph's, then the gradients
    of the parameters, in the order of `.pairs`, three for rows: values, indices, dense shape. A parameter that the loss
    does not depend on has no pair.

    raises InvalidArgumentError for a loss that is not one floating number, NotFoundError for a value that is not in the
    graph, NoGradientError (a LookupError) naming operator and node where a path leads through an operator without
    gradient
    """
    value = _find(graph, loss, "loss")
    count = value.shape.num_elements()
    if not (value.dtype.is_floating or value.dtype.is_complex) or count != 1:
        unknown = "; its number of elements is not known" if count is None else ""
        raise InvalidArgumentError(
            op="append_backward",
            node=value.name,
            what=f"the loss must be one floating number{unknown}",
            found=value.spec.short(),
            wanted="f32[] or f32[1]",
            do="reduce it to a scalar with ow.reduce_mean or ow.reduce_sum; or use `graph_gradients`, for any shape",
        )
    selected = None if parameters is None else [_find(graph, p, "parameter") for p in parameters]
    backward = BackwardPass(graph, _stop_values(graph, no_grad_set))
    return backward.run([value], [None], graph.inputs if selected is None else selected, explicit=selected is not None)


def graph_gradients(
    graph: Graph, targets: Any, inputs: Any, target_gradients: Any = None, no_grad_set: Iterable[Any] = ()
) -> Backward:
    """Return the graph extended with the gradients of the sum of all `targets` with respect to each of `inputs`.

    targets, inputs: a value or name, or a list of them; any shape, anywhere in the graph. target_gradients: the initial
    gradient of each target, a value of the graph of the target's dtype and shape, or None for ones. `.gradients` has an
    entry for each input, None if the targets do not depend on it. See `append_backward`.
    """
    ys = [_find(graph, v, "target") for v in _listed(targets)]
    xs = [_find(graph, v, "input") for v in _listed(inputs)]
    starts = [None] * len(ys) if target_gradients is None else _listed(target_gradients)
    if len(starts) != len(ys):
        raise InvalidArgumentError(
            op="gradients",
            what="the number of target gradients differs from that of targets",
            found=f"{len(starts)} for {len(ys)} targets",
        )
    seeds = [None if s is None else _find(graph, s, "target gradient") for s in starts]
    for y, seed in zip(ys, seeds):
        if not is_trainable(y.dtype) or y.dtype.is_handle:
            raise InvalidArgumentError(
                op="gradients",
                node=y.name,
                what="a target of this dtype has no gradient",
                found=y.spec.short(),
                wanted="a floating or complex one",
            )
        if seed is not None and (seed.dtype is not y.dtype or not seed.shape.is_compatible_with(y.shape)):
            raise InvalidArgumentError(
                op="gradients",
                node=y.name,
                what="a target and its gradient differ in type",
                found={"target": y.spec.short(), "gradient": seed.spec.short()},
            )
    return BackwardPass(graph, _stop_values(graph, no_grad_set)).run(ys, seeds, xs, explicit=True)


def _listed(values: Any) -> list[Any]:
    return list(values) if isinstance(values, (list, tuple)) else [values]


def _find(graph: Graph, query: Any, role: str) -> Value:
    """Return a value of the graph, looked up by itself or by name. Raises NotFoundError with similar names."""
    checked_graph(graph, "append_backward")
    name = query if isinstance(query, str) else getattr(query, "name", None)
    for value in graph.values():
        if value is query or (isinstance(query, str) and value.name == name):
            return value
    near = difflib.get_close_matches(str(name), [v.name for v in graph.values()], 3)
    if isinstance(query, Value):
        query, near = f"{query!r} of another graph", near[:1]
    raise NotFoundError(
        what=f"graph {graph.name!r} has no such {role}",
        found=query,
        do=f"did you mean {', '.join(near)}?" if near else "print the graph to see them",
    )


def _stop_values(graph: Graph, no_grad_set: Iterable[Any]) -> list[Value]:
    return [_find(graph, v, "value of no_grad_set") for v in no_grad_set]
