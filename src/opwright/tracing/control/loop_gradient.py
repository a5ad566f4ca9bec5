"""Gradients of loops: another loop, over the iterations in reverse.

Lives here: `LoopRecord`.  Not here: recording of loops (loops.py).

The backward loop differentiates the body once. Values inside an iteration that it needs are read from lists: for each
such tensor, the forward loop gains a variable, a list to which the tensor is appended in each iteration. Only needed
tensors are stored. Lists are ordinary values, so gradients of gradients pass through them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core import dtypes
from ...core.specs import TensorSpec
from ...eager.variable import Variable
from ...ops import array, dispatch
from ...ops.autodiff import OpRecord, accumulate, backpropagate, is_trainable
from ...ops.list_ops import ListGet, ListLength, ListPush, ListReserve
from ...ops.list_tensor_ops import ListConcat
from ...ops.tensor import Tensor
from ..symbolic import SymbolicTensor
from ..trace import FuncTrace
from .body import CONTROL_RECORDS, Body, emit_while, of_graph
from .branches import dense_or_zeros
from .gradient_structure import is_sparse, part_specs, parts, reachable_inputs, sparse_rows

state = dispatch.state


class LoopRecord(OpRecord):
    """A call of `While`. structure: the loop's variables, and the captures of condition and body."""

    __slots__ = ("_counter", "_lists")

    def __init__(self, op: Any, bound: Any, structure: Sequence[Any], outputs: Sequence[Any]) -> None:
        super().__init__(op, bound, structure, outputs)
        self._lists: dict[int, tuple[SymbolicTensor, SymbolicTensor]] = {}  # by id of a body tensor: it and its list
        self._counter: SymbolicTensor | None = None

    @property
    def body(self) -> Body:
        """The body, with the additions of gradients."""
        return of_graph(self.outputs[0].value_in_graph.node.attrs["body"])

    # ---- the backward loop ----------------------------------------------------------------------------------------

    def backward(self, dys: Sequence[Any]) -> Sequence[Any]:
        """Return the gradients of the variables' initial values and of the captures."""
        trace = state.trace
        assert isinstance(trace, FuncTrace)
        variables, captured = self.structure
        n = len(variables)
        body = self.body
        active, dense = self._participants(dys)
        if not active:
            return (None,) * (n + len(captured))
        outputs = self.outputs
        specs = [
            TensorSpec((), dtypes.int32, "iteration"),
            *(TensorSpec(body.inputs[j].shape, outputs[j].dtype, "d_variable") for j in active),
        ]
        sources = {i: captured[i] if isinstance(captured[i], Variable) else body.inputs[n + i] for i in dense}
        sparse = [i for i in dense if is_sparse(body, sources[i], [body.outputs[j] for j in active])]
        dense = [i for i in dense if i not in sparse]
        specs += [_spec_like(captured[i]) for i in dense] + [TensorSpec((), dtypes.variant)] * (2 * len(sparse))
        first_list = len(active) + len(dense)  # where the lists begin: two for each table that rows were looked up in
        reached: set[int] = set()

        def iteration(k: Any, *flat: Any) -> list[Any]:
            backward_trace = state.trace
            assert isinstance(backward_trace, FuncTrace)
            dvs, sums, list_variables = flat[: len(active)], flat[len(active) : first_list], flat[first_list:]
            before = k - 1
            backward_trace.foreign[body.trace] = self._values_at(before, backward_trace, body)
            targets: dict[int, Any] = {}
            for j, dv in zip(active, dvs):
                key = id(body.outputs[j])
                targets[key] = accumulate(targets[key], dv) if key in targets else dv
            keys = {id(body.inputs[j]) for j in active} | {id(s) for s in sources.values()}
            grads = backpropagate(body.trace.recorder.records, targets, keys)
            new = [dense_or_zeros(grads.get(id(body.inputs[j])), body.inputs[j]) for j in active]
            for i, total in zip(dense, sums):
                grad = grads.get(id(sources[i]))
                if grad is None:
                    new.append(total)
                else:
                    reached.add(i)
                    new.append(accumulate(total, grad))
            for position, i in enumerate(sparse):
                lists, grad = list(list_variables[2 * position : 2 * position + 2]), grads.get(id(sources[i]))
                if grad is not None:
                    reached.add(i)
                    lists = [ListPush(rows, part) for rows, part in zip(lists, parts(grad, sources[i]))]
                new += lists
            return [before, *new]

        def first() -> list[Any]:
            starts = [dense_or_zeros(dys[j], outputs[j]) for j in active]
            list_variables = [s for i in sparse for s in part_specs(sources[i])]
            lists = [ListReserve(0, element_dtype=s.dtype, element_shape=s.shape) for s in list_variables]
            return [self._num_iterations(), *starts, *(dense_or_zeros(None, captured[i]) for i in dense), *lists]

        _, *results = emit_while(trace, specs, lambda k, *_: k > 0, iteration, first, "while_grad")
        grads: list[Any] = [None] * (n + len(captured))  # of the inputs before the loop was widened
        for j, grad in zip(active, results):
            grads[j] = grad
        for i, grad in zip(dense, results[len(active) :]):
            if i in reached:
                grads[n + i] = grad
        for position, i in enumerate(sparse):
            if i in reached:
                lists = zip(results[first_list + 2 * position :], part_specs(sources[i]))
                values, indices = (ListConcat(x, element_dtype=s.dtype, element_shape=s.shape)[0] for x, s in lists)
                grads[n + i] = sparse_rows(values, indices, captured[i])
        return grads

    def _participants(self, dys: Sequence[Any]) -> tuple[list[int], list[int]]:
        """Return the indices of the variables with gradients in the loop, and of the captures with a gradient."""
        variables, captured = self.structure
        body, n = self.body, len(variables)
        operands = (*variables, *captured)
        active = {j for j, dy in enumerate(dys) if dy is not None and is_trainable(self.outputs[j].dtype)}
        while True:
            reached = reachable_inputs(body, operands, [body.outputs[j] for j in sorted(active)])
            more = {i for i in reached if i < n} | active
            if more == active:
                return sorted(active), [i - n for i in reached if i >= n]
            active = more

    def _values_at(self, iteration: Any, backward_trace: FuncTrace, body: Body) -> Callable[[SymbolicTensor], Any]:
        """Return the function from the body's tensors to their values, in the backward loop, of an iteration."""
        captured = self.structure[1]
        capture_inputs = body.inputs[len(body.inputs) - len(captured) :]
        outside: dict[int, Any] = {id(p): outer for outer, p in body.trace.captures.values()}
        outside.update((id(p), operand) for p, operand in zip(capture_inputs, captured))
        inside: dict[int, Any] = {}

        def value(tensor: SymbolicTensor) -> object:
            if id(tensor) in outside:
                return outside[id(tensor)]
            if id(tensor) not in inside:
                values_list = self._list_of(tensor)
                with backward_trace.resumed():
                    inside[id(tensor)] = ListGet(
                        values_list, iteration, element_dtype=tensor.dtype, element_shape=tensor.shape
                    )
            return inside[id(tensor)]

        return value

    def _num_iterations(self) -> Tensor:
        """Return the number of iterations of the forward loop."""
        for _, values_list in self._lists.values():
            return ListLength(values_list)
        if self._counter is None:
            self._counter = self._widen(
                TensorSpec((), dtypes.int32), lambda: array.zeros((), dtypes.int32), lambda count: count + 1
            )
        return self._counter

    # ---- additions to the forward loop ------------------------------------------------------------------------------

    def _list_of(self, tensor: SymbolicTensor) -> SymbolicTensor:
        """Return the list of a body tensor's values, one per iteration."""
        entry = self._lists.get(id(tensor))
        if entry is None:
            values_list = self._widen(
                TensorSpec((), dtypes.variant),
                lambda: ListReserve(0, element_dtype=tensor.dtype, element_shape=tensor.shape),
                lambda values_list: ListPush(values_list, tensor),
            )
            entry = self._lists[id(tensor)] = (tensor, values_list)
        return entry[1]

    def _widen(self, spec: TensorSpec, first: Callable[[], Any], step: Callable[[Any], Any]) -> SymbolicTensor:
        """Add a variable to the forward loop; return its final value."""
        trace: FuncTrace = self.outputs[0].trace
        node = self.outputs[0].value_in_graph.node
        variables, captured = self.structure
        n = len(variables)
        nodes = trace.builder.nodes
        position = nodes.index(node)
        num_nodes = len(nodes)
        with trace.resumed():
            start = trace.to_tensor(first())
        nodes[position:position] = [nodes.pop() for _ in range(len(nodes) - num_nodes)][::-1]  # before the loop
        wider = {}
        for key in ("cond", "body"):
            body = of_graph(node.attrs[key])
            placeholder = body.trace.free_placeholder(spec, "values")
            outputs: Sequence[Any] = body.outputs
            if key == "body":
                with body.trace.resumed():
                    outputs = [*outputs, body.trace.to_tensor(step(placeholder))]
            wider[key] = Body(body.trace, [*body.inputs[:n], placeholder, *body.inputs[n:]], outputs)
        inputs = (*variables, start), captured
        operands = [tuple(map(trace.value_of, part)) for part in inputs]
        node = trace.builder.widen(node, operands, {key: body.graph() for key, body in wider.items()}, [spec])
        added = SymbolicTensor(node.outputs[-1], trace)
        trace.widened(self.outputs, added)
        self.structure = inputs
        self.inputs = (*inputs[0], *inputs[1])
        self.outputs = (*self.outputs, added)
        return added


def _spec_like(operand: Any) -> TensorSpec:
    return TensorSpec(operand.shape, operand.dtype, "d_captured")


CONTROL_RECORDS["While"] = LoopRecord
