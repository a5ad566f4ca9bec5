"""WHILE: repeated calls of a body subgraph while a condition subgraph returns true.

Lives here: its registration and `LoopState`, one loop.
Not here: other nodes that call subgraphs (subgraph_calls.py), the life cycle of a subgraph (subgraph.py).

The loop state is in the node's output arrays, which are also the inputs of condition and body. An output of the body
that is computed after the last read of its input is written there in place; other outputs are copied there after the
iteration. A variable whose shape an iteration may change is an input of changing shape: only nodes that depend on it
are prepared again when it changes, and the node's output is dynamic.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...compiler.native.image import runs_images
from ...core import dtypes
from ...core.errors import InvalidArgumentError
from ..registration import Registration
from .node import Context, Node
from .steps import Chain
from .subgraph import Subgraph
from .subgraph_calls import LoopStep, check_interface, constant_handles, operands, set_output_shapes
from .tensor import DYNAMIC, Tensor


class WhileRegistration(Registration):
    """Registration of WHILE."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__(self._init, None, self._prepare, self._invoke)
        self.name = name

    def _init(self, context: Context, options: Any) -> tuple[int, int]:
        if options is None:
            raise InvalidArgumentError(
                op=self.name, what="the node has no options", wanted="cond_subgraph_index, body_subgraph_index"
            )
        return int(options.cond_subgraph_index), int(options.body_subgraph_index)

    def _prepare(self, context: Context, node: Node) -> None:
        if isinstance(node.user_data, tuple):
            cond, body = map(context.subgraph, node.user_data)
            node.user_data = LoopState(node, cond, body)
        node.user_data.prepare(context)

    def bind(self, context: Context, node: Node) -> Callable[[], Any]:
        node.user_data.body.connected = None  # the node's arrays may have moved
        return LoopStep(node.user_data) if runs_images() else node.user_data.run

    def _invoke(self, context: Context, node: Node) -> None:
        """Run a node that is prepared during a run, whose arrays may have moved since the last one."""
        node.user_data.body.connected = None
        node.user_data.run()


class LoopState:
    """State of one WHILE node between runs."""

    __slots__ = ("body", "changing", "cond", "copied", "inputs", "native", "node", "refused", "shuffles", "values")

    def __init__(self, node: Node, cond: Subgraph, body: Subgraph) -> None:
        self.node, self.cond, self.body = node, cond, body
        self.inputs: list[Tensor] = []
        self.refused: Exception | None = None  # an error of the loop itself, not of an inner node
        self.changing: list[int] = []  # variables whose shape an iteration may change
        self.values: dict[int, np.ndarray] = {}  # their present arrays
        self.copied: list[
            tuple[np.ndarray, Tensor]
        ] = []  # state arrays, and the outputs copied there after each iteration
        self.native: LoopStep | None = None  # the native loop, if possible
        self.shuffles = False  # whether variables are permuted, so that all are read before any is written

    def prepare(self, context: Context) -> None:
        node, cond, body = self.node, self.cond, self.body
        self.inputs = inputs = operands(node)
        for subgraph, outputs in ((cond, None), (body, inputs)):
            expected_outputs = [subgraph.tensors[i] for i in subgraph.outputs] if outputs is None else outputs
            check_interface(node, subgraph, inputs, expected_outputs)
        condition = [cond.tensors[i] for i in cond.outputs]
        if len(condition) != 1 or condition[0]._dtype is not dtypes.bool:
            raise InvalidArgumentError(
                op=node.name,
                what=f"subgraph {cond.index}, the condition, does not return one bool",
                found=[t.short() for t in condition],
                wanted="one bool",
            )
        output_types, input_types = [t.type for t in node.tensors_out], [t.type for t in inputs]
        if output_types != input_types:
            raise InvalidArgumentError(
                op=node.name,
                what="the node has other outputs than inputs",
                found=[t.short() for t in node.tensors_out],
                wanted=[t.short() for t in inputs],
            )
        changing: set[int] = set()
        while True:
            self.changing = sorted(changing)
            self.accept(body)
            new = {i for i, t in enumerate(self.outputs()) if t.kind == DYNAMIC or t.shape != inputs[i].shape}
            if new <= changing:
                break
            changing |= new
        self.accept(cond)
        if condition[0].kind != DYNAMIC and np.prod(condition[0].shape) != 1:
            raise InvalidArgumentError(
                op=node.name,
                what=f"subgraph {cond.index}, the condition, does not return one bool",
                found=condition[0].short(),
                wanted="one bool",
            )
        set_output_shapes(context, node, [None if i in changing else t.shape for i, t in enumerate(inputs)])

    def accept(self, subgraph: Subgraph) -> None:
        """Prepare condition or body for the inputs' shapes."""
        self.accept_shapes(subgraph, [t.shape for t in self.inputs], self.changing)

    def accept_shapes(
        self, subgraph: Subgraph, shapes: Sequence[tuple[int, ...]], changing: Sequence[int] = ()
    ) -> None:
        """Prepare condition or body for variables of these shapes. changing: positions of those with others later."""
        body = self.body  # a handle that it does not pass through may change
        handles = {
            position: resource
            for position, resource in constant_handles(self.inputs).items()
            if body.outputs[position] == body.inputs[position]
        }
        subgraph.accept(shapes, changing, self.node.subgraph.preserve_all, handles)

    def outputs(self) -> list[Tensor]:
        """Return the body's output tensors."""
        return [self.body.tensors[i] for i in self.body.outputs]

    def connect(self) -> None:
        """Bind condition and body to the loop state; the body writes in place where possible."""
        cond, body, outs = self.cond, self.body, self.node.tensors_out
        for subgraph in (body, cond):
            self.accept(subgraph)
        state = [None if i in self.changing else t.array for i, t in enumerate(outs)]
        in_place = [array is not None and cond is not body and _in_place(body, i) for i, array in enumerate(state)]
        cond.connect(state, [None], self)
        body.connect(state, [array if writes else None for array, writes in zip(state, in_place)], self)
        outputs = self.outputs()
        unchanged = [t.index == i for t, i in zip(outputs, body.inputs)]
        self.copied = [
            (array, t)
            for array, t, writes, same in zip(state, outputs, in_place, unchanged)
            if array is not None and not writes and not same
        ]
        self.shuffles = any(t.index in body.inputs for _, t in self.copied)
        self.feed()

    def feed(self) -> None:
        """Bind variables of changing shape to the inputs of condition and body."""
        for i, array in self.values.items():
            self.cond.feed(i, array)
            self.body.feed(i, array)

    def run(self) -> None:
        node, cond, body, outs = self.node, self.cond, self.body, self.node.tensors_out
        self.values = {i: self.inputs[i].array for i in self.changing}  # type: ignore[misc]
        for i, (t, to) in enumerate(zip(self.inputs, outs)):
            if i not in self.values:
                np.copyto(to.array, t.array)  # type: ignore[arg-type]
        if body.connected is self and cond.connected is self:
            self.feed()
        else:
            self.connect()
        if self.native is None or not self.native.iterate():
            self.iterate_to_end()
        for i, array in self.values.items():
            node.subgraph.context.resize(outs[i], array.shape)
            np.copyto(outs[i].array, array)  # type: ignore[arg-type]
        self.values = {}

    def iterate_to_end(self) -> None:
        """Iterate from the current state until the condition is false."""
        cond, body = self.cond, self.body
        was = cond.running, body.running
        cond.running = body.running = True
        try:
            while not self.iterate():  # an inner node has called one of the two
                self.connect()
        finally:
            cond.running, body.running = was

    def resume(self, in_body: bool, cond: Chain, body: Chain) -> None:
        """Resume where the chain of the condition or of the body stopped."""
        if not in_body:
            self.cond.finish(cond)
            if not self.cond.tensors[self.cond.outputs[0]].array.item():  # type: ignore[union-attr]
                return
            self.body.run()
        else:
            self.body.finish(body)
        self.update_state()
        self.iterate_to_end()

    def disconnected(self) -> None:
        """Report that condition or body is connected to another caller, or to none."""
        if self.native is not None:
            self.native.withdraw()

    def iterate(self) -> bool:
        """Iterate while both subgraphs stay connected; return whether the loop has ended."""
        cond, body = self.cond, self.body
        condition_steps, body_steps = cond.runnable(), self.iteration_steps()
        condition = cond.tensors[cond.outputs[0]]
        is_true = self.condition_value if condition.kind == DYNAMIC else condition.array.item  # type: ignore[union-attr]
        steps, step = condition_steps, None
        try:
            while True:
                steps = condition_steps
                for step in condition_steps:
                    step()
                if not is_true():
                    return True
                if body.connected is not self:
                    self.connect()
                    body_steps = self.iteration_steps()
                steps = body_steps
                for step in body_steps:
                    step()
                if cond.connected is not self or body.connected is not self:
                    return False
        except Exception as error:
            ran = cond if steps is condition_steps else body
            if error is self.refused or not any(s is step for s in steps[: len(ran.execution_plan)]):
                raise  # not raised by an inner node
            ran.raise_node_error(error, steps, step)
            raise

    def iteration_steps(self) -> list[Callable[[], Any]]:
        """Return the steps of the body, followed by copies of its outputs to the loop state."""
        steps = self.body.runnable()
        if self.values or self.shuffles:
            return [*steps, self.update_state]
        # 0.06 us for a number; np.copyto takes 0.12
        return [*steps, *(functools.partial(to.__setitem__, ..., t.array) for to, t in self.copied)]

    def condition_value(self) -> bool:
        """Return the value of a condition of dynamic shape."""
        value: Any = self.cond.tensors[self.cond.outputs[0]].array
        if value.size != 1:
            self.refused = InvalidArgumentError(
                op=self.node.name,
                what="the condition returned several elements",
                found=list(value.shape),
                wanted="one bool",
            )
            raise self.refused
        return bool(value.reshape(-1)[0])

    def update_state(self) -> None:
        """Copy the body's outputs to the loop state."""
        if self.shuffles:
            for (to, _), array in zip(self.copied, [t.array.copy() for _, t in self.copied]):  # type: ignore[union-attr]
                np.copyto(to, array)
        else:
            for to, t in self.copied:
                np.copyto(to, t.array)  # type: ignore[arg-type]
        if self.values:
            outputs = self.outputs()
            self.values = {i: outputs[i].array.copy() for i in self.values}  # type: ignore[union-attr]
            self.feed()


def _in_place(body: Subgraph, position: int) -> bool:
    """Return whether an output of the body may be written to the memory of the same variable's input."""
    source, result = body.inputs[position], body.outputs[position]
    if not body.placeable(position) or source in body.outputs or result in body.inputs or body.inputs.count(source) > 1:
        return False
    t, out = body.tensors[source], body.tensors[result]
    writers = [n for n, node in enumerate(body.execution_plan) if any(x is out for x in node.tensors_out)]
    readers = [n for n, node in enumerate(body.execution_plan) if any(x is t for x in node.tensors_in)]
    if len(writers) != 1 or (readers and readers[-1] > writers[0]):
        return False
    if not readers or readers[-1] < writers[0]:
        return True
    node = body.execution_plan[writers[0]]
    operator = getattr(node.registration, "operator", None)
    if np.prod(t.shape) <= 1:
        return False  # NumPy takes 0.54 us to add to a number in place, 0.13 to add elsewhere
    if operator is None or not operator.inplace or not operator.profile.single or len(node.tensors_out) != 1:
        return False
    ins = node.tensors_in
    return sum(x is t for x in ins) == 1 and any(p < len(ins) and ins[p] is t for p in operator.profile.inplace_places)
