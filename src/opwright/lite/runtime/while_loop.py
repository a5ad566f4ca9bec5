"""WHILE: a subgraph run again and again while another one says so.

Lives here: its registration and one run of it.
Not here: the other nodes that run subgraphs (subgraph_calls.py), the life of a subgraph (subgraph.py).

The loop's state lies in the node's output arrays, which are the inputs of condition and body, too. An output of the
body that is made when nobody reads its input any more is written there in place; the others are copied there after
the turn. A variable whose shape a turn may change is an input of changing shape: only the nodes that depend on it are
prepared anew when it does, and the node's output is dynamic.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...compiler.native.image import runs_images
from ...core import dtypes
from ...core.errors import InvalidArgumentError
from ..registration import Registration
from .chains import Chain
from .native_control_flow import LoopStep
from .node import Context, Node
from .subgraph import Subgraph
from .subgraph_calls import check_interface, constant_handles, operands, set_output_shapes
from .tensor import DYNAMIC, Tensor


class WhileRegistration(Registration):
    """WHILE."""

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
        node.user_data.body.connected = None  # to arrays that the node had before
        run: Callable[[], Any] = LoopStep(node.user_data) if runs_images() else node.user_data.run
        return run

    def _invoke(self, context: Context, node: Node) -> None:
        """For a node that is prepared while the model runs: its arrays may be others than the last time."""
        node.user_data.body.connected = None
        node.user_data.run()


class LoopState:
    """What one WHILE keeps from run to run."""

    __slots__ = ("body", "changing", "cond", "copied", "inputs", "native", "node", "refused", "shuffles", "values")

    def __init__(self, node: Node, cond: Subgraph, body: Subgraph) -> None:
        self.node, self.cond, self.body = node, cond, body
        self.inputs: list[Tensor] = []
        self.refused: Exception | None = None  # an error that is no node's inside
        self.changing: list[int] = []  # variables whose shape a turn may change
        self.values: dict[int, np.ndarray] = {}  # theirs, now
        self.copied: list[tuple[np.ndarray, Tensor]] = []  # state, and the body's output to be copied there each turn
        self.native: LoopStep | None = None  # runs the turns where it can
        self.shuffles = False  # whether one variable becomes another, so that copies must not overtake each other

    def prepare(self, context: Context) -> None:
        node, cond, body = self.node, self.cond, self.body
        self.inputs = inputs = operands(node)
        for subgraph, outputs in ((cond, None), (body, inputs)):
            given = [subgraph.tensors[i] for i in subgraph.outputs] if outputs is None else outputs
            check_interface(node, subgraph, inputs, given)
        answer = [cond.tensors[i] for i in cond.outputs]
        if len(answer) != 1 or answer[0]._dtype is not dtypes.bool:
            raise InvalidArgumentError(
                op=node.name,
                what=f"the condition, subgraph {cond.index}, is no condition",
                found=[t.short() for t in answer],
                wanted="one bool",
            )
        found, wanted = [t.type for t in node.tensors_out], [t.type for t in inputs]
        if found != wanted:
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
        if answer[0].kind != DYNAMIC and np.prod(answer[0].shape) != 1:
            raise InvalidArgumentError(
                op=node.name,
                what=f"the condition, subgraph {cond.index}, is no condition",
                found=answer[0].short(),
                wanted="one bool",
            )
        set_output_shapes(context, node, [None if i in changing else t.shape for i, t in enumerate(inputs)])

    def accept(self, subgraph: Subgraph) -> None:
        """Make one of the two ready for the inputs' shapes."""
        body = self.body  # which may make another handle of one that it does not hand on
        handles = {
            place: resource
            for place, resource in constant_handles(self.inputs).items()
            if body.outputs[place] == body.inputs[place]
        }
        subgraph.accept([t.shape for t in self.inputs], self.changing, self.node.subgraph.preserve_all, handles)

    def outputs(self) -> list[Tensor]:
        """The tensors that are the body's outputs."""
        return [self.body.tensors[i] for i in self.body.outputs]

    def connect(self) -> None:
        """Let both read the state, and the body write there what can be written in place."""
        cond, body, outs = self.cond, self.body, self.node.tensors_out
        for subgraph in (body, cond):
            self.accept(subgraph)
        state = [None if i in self.changing else t.array for i, t in enumerate(outs)]
        placed = [array is not None and cond is not body and _in_place(body, i) for i, array in enumerate(state)]
        cond.connect(state, [None], self)
        body.connect(state, [array if straight else None for array, straight in zip(state, placed)], self)
        made = self.outputs()
        passed = [t.index == i for t, i in zip(made, body.inputs)]
        self.copied = [
            (array, t)
            for array, t, straight, same in zip(state, made, placed, passed)
            if array is not None and not straight and not same
        ]
        self.shuffles = any(t.index in body.inputs for _, t in self.copied)
        self.feed()

    def feed(self) -> None:
        """Hand the variables of changing shape to condition and body."""
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
        if self.native is None or not self.native.turns():
            self.go_on()
        for i, array in self.values.items():
            node.subgraph.context.resize(outs[i], array.shape)
            np.copyto(outs[i].array, array)  # type: ignore[arg-type]
        self.values = {}

    def go_on(self) -> None:
        """Turn after turn from the state as it is, until the condition ends them."""
        cond, body = self.cond, self.body
        was = cond.running, body.running
        cond.running = body.running = True
        try:
            while not self.turns():  # something inside has run one of the two itself
                self.connect()
        finally:
            cond.running, body.running = was

    def resume(self, in_body: bool, cond: Chain, body: Chain) -> None:
        """Go on where the condition's chain has stopped, or the body's."""
        if not in_body:
            self.cond.finish(cond)
            if not self.cond.tensors[self.cond.outputs[0]].array.item():  # type: ignore[union-attr]
                return
            self.body.run()
        else:
            self.body.finish(body)
        self.take_over()
        self.go_on()

    def disconnected(self) -> None:
        """The condition or the body is connected to other arrays now, or to none."""
        if self.native is not None:
            self.native.withdraw()

    def turns(self) -> bool:
        """Turn after turn, as long as both are connected; whether the loop has ended."""
        cond, body = self.cond, self.body
        ask, turn = cond.runnable(), self.turn()
        answer = cond.tensors[cond.outputs[0]]
        holds = self.answer if answer.kind == DYNAMIC else answer.array.item  # type: ignore[union-attr]
        steps, step = ask, None
        try:
            while True:
                steps = ask
                for step in ask:
                    step()
                if not holds():
                    return True
                if body.connected is not self:
                    self.connect()
                    turn = self.turn()
                steps = turn
                for step in turn:
                    step()
                if cond.connected is not self or body.connected is not self:
                    return False
        except Exception as error:
            ran = cond if steps is ask else body
            if error is self.refused or not any(s is step for s in steps[: len(ran.execution_plan)]):
                raise  # no node's inside
            ran.blame(error, steps, step)
            raise

    def turn(self) -> list[Callable[[], Any]]:
        """The steps of the body, and those that let the state be what it gave."""
        steps = self.body.runnable()
        if self.values or self.shuffles:
            return [*steps, self.take_over]
        # 0.06 us for a number; np.copyto takes 0.12
        return [*steps, *(functools.partial(to.__setitem__, ..., t.array) for to, t in self.copied)]

    def answer(self) -> bool:
        """What the condition said, where its shape was not known before."""
        found: Any = self.cond.tensors[self.cond.outputs[0]].array
        if found.size != 1:
            self.refused = InvalidArgumentError(
                op=self.node.name, what="the condition gave several answers", found=list(found.shape), wanted="one bool"
            )
            raise self.refused
        return bool(found.reshape(-1)[0])

    def take_over(self) -> None:
        """Let the state be what the body gave."""
        if self.shuffles:
            for (to, _), array in zip(self.copied, [t.array.copy() for _, t in self.copied]):  # type: ignore[union-attr]
                np.copyto(to, array)
        else:
            for to, t in self.copied:
                np.copyto(to, t.array)  # type: ignore[arg-type]
        if self.values:
            made = self.outputs()
            self.values = {i: made[i].array.copy() for i in self.values}  # type: ignore[union-attr]
            self.feed()


def _in_place(body: Subgraph, place: int) -> bool:
    """Whether an output of the body may be written where the input of the same variable is."""
    at, made = body.inputs[place], body.outputs[place]
    if not body.placeable(place) or at in body.outputs or made in body.inputs or body.inputs.count(at) > 1:
        return False
    t, out = body.tensors[at], body.tensors[made]
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
