"""How gradients pass a loop: another loop, backwards through the turns.

Lives here: `LoopRecord`.  Not here: recording loops (loops.py).

The backward loop differentiates the body once. What it needs of a turn's inside comes from lists: for each tensor it
asks for, the forward loop gets one more variable, a list that the tensor is pushed to in each turn. Only what is asked
for is kept. The lists are ordinary values, so gradients of gradients flow through them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core import dtypes
from ...core.specs import TensorSpec
from ...eager.variable import Variable
from ...ops import array, dispatch
from ...ops.autodiff import OpRecord, accumulate, backpropagate, is_trainable
from ...ops.list_rows import ListConcat
from ...ops.lists import ListGet, ListLength, ListPush, ListReserve
from ..symbolic import SymbolicTensor
from ..trace import FuncTrace
from .body import CONTROL_RECORDS, Body, emit_while, of_graph
from .branches import dense_or_zeros
from .gradient_structure import gets_rows, part_specs, parts, reaching, together

state = dispatch.state


class LoopRecord(OpRecord):
    """A call of `While`. structure: the loop's variables, and what condition and body use beside them."""

    __slots__ = ("_counter", "_lists")

    def __init__(self, op: Any, bound: Any, structure: Sequence[Any], outputs: Sequence[Any]) -> None:
        super().__init__(op, bound, structure, outputs)
        self._lists: dict[int, tuple[SymbolicTensor, SymbolicTensor]] = {}  # by tensor of the body: it, its list
        self._counter: SymbolicTensor | None = None

    @property
    def body(self) -> Body:
        """The body, with what gradients have added to it."""
        return of_graph(self.outputs[0].value_in_graph.node.attrs["body"])

    # ---- backwards ------------------------------------------------------------------------------------------------

    def backward(self, dys: Sequence[Any]) -> Sequence[Any]:
        """Gradients of the variables' first values and of what was captured."""
        trace = state.trace
        assert isinstance(trace, FuncTrace)
        variables, captured = self.structure
        n = len(variables)
        body = self.body
        active, wanted = self._participants(dys)
        if not active:
            return (None,) * (n + len(captured))
        outputs = self.outputs
        specs = [
            TensorSpec((), dtypes.int32, "turn"),
            *(TensorSpec(body.inputs[j].shape, outputs[j].dtype, "d_variable") for j in active),
        ]
        sources = {i: captured[i] if isinstance(captured[i], Variable) else body.inputs[n + i] for i in wanted}
        rows = [i for i in wanted if gets_rows(body, sources[i], [body.outputs[j] for j in active])]
        wanted = [i for i in wanted if i not in rows]
        specs += [_spec_like(captured[i]) for i in wanted] + [TensorSpec((), dtypes.variant)] * (2 * len(rows))
        given = len(active) + len(wanted)  # where the lists begin: two for each table that rows were looked up in
        reached: set[int] = set()

        def turn(k: Any, *flat: Any) -> list[Any]:
            here = state.trace
            assert isinstance(here, FuncTrace)
            dvs, sums, kept = flat[: len(active)], flat[len(active) : given], flat[given:]
            before = k - 1
            here.foreign[body.trace] = self._values_at(before, here, body)
            targets: dict[int, Any] = {}
            for j, dv in zip(active, dvs):
                key = id(body.outputs[j])
                targets[key] = accumulate(targets[key], dv) if key in targets else dv
            keys = {id(body.inputs[j]) for j in active} | {id(s) for s in sources.values()}
            found = backpropagate(body.trace.recorder.records, targets, keys)
            new = [dense_or_zeros(found.get(id(body.inputs[j])), body.inputs[j]) for j in active]
            for i, total in zip(wanted, sums):
                grad = found.get(id(sources[i]))
                if grad is None:
                    new.append(total)
                else:
                    reached.add(i)
                    new.append(accumulate(total, grad))
            for at, i in enumerate(rows):
                lists, grad = list(kept[2 * at : 2 * at + 2]), found.get(id(sources[i]))
                if grad is not None:
                    reached.add(i)
                    lists = [ListPush(held, part) for held, part in zip(lists, parts(grad, sources[i]))]
                new += lists
            return [before, *new]

        def first() -> list[Any]:
            starts = [dense_or_zeros(dys[j], outputs[j]) for j in active]
            kept = [s for i in rows for s in part_specs(sources[i])]
            lists = [ListReserve(0, element_dtype=s.dtype, element_shape=s.shape) for s in kept]
            return [self._turns(), *starts, *(dense_or_zeros(None, captured[i]) for i in wanted), *lists]

        _, *found = emit_while(trace, specs, lambda k, *_: k > 0, turn, first, "while_grad")
        grads: list[Any] = [None] * (n + len(captured))  # of the inputs before the loop was widened
        for j, grad in zip(active, found):
            grads[j] = grad
        for i, grad in zip(wanted, found[len(active) :]):
            if i in reached:
                grads[n + i] = grad
        for at, i in enumerate(rows):
            if i in reached:
                lists = zip(found[given + 2 * at :], part_specs(sources[i]))
                values, indices = (ListConcat(x, element_dtype=s.dtype, element_shape=s.shape)[0] for x, s in lists)
                grads[n + i] = together(values, indices, captured[i])
        return grads

    def _participants(self, dys: Sequence[Any]) -> tuple[list[int], list[int]]:
        """Positions of the variables whose gradients take part in the loop, and of the captures that get one."""
        variables, captured = self.structure
        body, n = self.body, len(variables)
        operands = (*variables, *captured)
        active = {j for j, dy in enumerate(dys) if dy is not None and is_trainable(self.outputs[j].dtype)}
        while True:
            reached = reaching(body, operands, [body.outputs[j] for j in sorted(active)])
            more = {i for i in reached if i < n} | active
            if more == active:
                return sorted(active), [i - n for i in reached if i >= n]
            active = more

    def _values_at(self, turn: Any, here: FuncTrace, body: Body) -> Callable[[SymbolicTensor], Any]:
        """What stands in the backward loop for the body's tensors in the turn of that number."""
        captured = self.structure[1]
        given = body.inputs[len(body.inputs) - len(captured) :]
        outside: dict[int, Any] = {id(p): outer for outer, p in body.trace.captures.values()}
        outside.update((id(p), operand) for p, operand in zip(given, captured))
        inside: dict[int, Any] = {}

        def value(tensor: SymbolicTensor) -> Any:
            if id(tensor) in outside:
                return outside[id(tensor)]
            if id(tensor) not in inside:
                kept = self._list_of(tensor)
                with here.resumed():
                    inside[id(tensor)] = ListGet(kept, turn, element_dtype=tensor.dtype, element_shape=tensor.shape)
            return inside[id(tensor)]

        return value

    def _turns(self) -> Any:
        """How many turns the forward loop made."""
        for _, kept in self._lists.values():
            return ListLength(kept)
        if self._counter is None:
            self._counter = self._widen(
                TensorSpec((), dtypes.int32), lambda: array.zeros((), dtypes.int32), lambda count: count + 1
            )
        return self._counter

    # ---- what is added to the forward loop --------------------------------------------------------------------------

    def _list_of(self, tensor: SymbolicTensor) -> SymbolicTensor:
        """The list of the values that a tensor of the body had, turn by turn."""
        known = self._lists.get(id(tensor))
        if known is None:
            made = self._widen(
                TensorSpec((), dtypes.variant),
                lambda: ListReserve(0, element_dtype=tensor.dtype, element_shape=tensor.shape),
                lambda kept: ListPush(kept, tensor),
            )
            known = self._lists[id(tensor)] = (tensor, made)
        return known[1]

    def _widen(self, spec: TensorSpec, first: Callable[[], Any], step: Callable[[Any], Any]) -> SymbolicTensor:
        """One more variable of the forward loop; gives what it is in the end."""
        trace: FuncTrace = self.outputs[0].trace
        node = self.outputs[0].value_in_graph.node
        variables, captured = self.structure
        n = len(variables)
        nodes = trace.builder.nodes
        at = nodes.index(node)
        made = len(nodes)
        with trace.resumed():
            start = trace.to_tensor(first())
        nodes[at:at] = [nodes.pop() for _ in range(len(nodes) - made)][::-1]  # before the loop
        wider = {}
        for key in ("cond", "body"):
            body = of_graph(node.attrs[key])
            placeholder = body.trace.free_placeholder(spec, "kept")
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
