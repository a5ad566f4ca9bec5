"""Nodes that call other subgraphs: IF, STABLEHLO_CASE, CALL, STABLEHLO_COMPOSITE; their native steps and WHILE's.

Lives here: the registration of branches; `Callee`, a subgraph as a node calls it; `BranchStep` and `LoopStep`, a node's
kernel arguments, updated as subgraphs are connected.
Not here: WHILE in Python (while_loop.py), chains of steps (steps.py), the declarations (ops/control.py), the life cycle
of a subgraph (subgraph.py).

A subgraph is prepared once for the shapes of the node's inputs, and reads the node's arrays in place: no input is
copied. Outputs of known shape are written in place, too. Two nodes may call one subgraph: each connects it again after
the other has called it.

Where the subgraphs are plans, the executor runs them without Python in between. The kernel arguments hold the address
of a subgraph's plan while the subgraph is connected to the node, which then owns its memory. When another node connects
it, or it is planned again, the address becomes 0, which stops the executor. The node then runs in Python once, connects
the subgraph, and sets the address again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...compiler.native.executor import Executor, Step, StepError
from ...compiler.native.image import runs_images
from ...compiler.native.workers import functions, state_address
from ...core import dtypes, flags
from ...core.errors import InvalidArgumentError
from ..registration import Registration
from .node import Context, Node
from .steps import Chain, copy_rows
from .subgraph import Subgraph
from .tensor import DYNAMIC, Tensor

if TYPE_CHECKING:
    from .while_loop import LoopState

_CHOSEN, _CHOICES, _CHOICE = 3, 4, 3  # kernel arguments of `branches` and `choice` in compiler/native/executor.ll
_COND, _ANSWER, _BODY, _FIRST, _FIRSTS, _ROWS, _COUNT, _POLL, _WHERE = range(9)  # kernel arguments of `loops`


class BranchStep:
    """The step of IF, CASE and calls. which: the selector, an array of one element."""

    alone = True

    def __init__(self, which: np.ndarray, branches: Sequence[Callee]) -> None:
        self._which, self._branches = which, branches
        self._plans: dict[int, tuple[Chain, np.ndarray]] = {}
        self._off = False  # whether some branch cannot run in machine code
        threads = branches[0].node.subgraph.context.recommended_num_threads
        address = int(which.__array_interface__["data"][0])
        words = [address, which.dtype.itemsize, len(branches), 0, *(0,) * (_CHOICE * len(branches))]
        self.executor = Executor([Step(functions().branch, words, 1)], inner=threads)
        for callee in branches:
            callee.withdraw = self.withdraw

    def __call__(self) -> None:
        number = int(self._which[0])
        if self._which.dtype == bool:
            number = 1 - number
        self._run(number if 0 <= number < len(self._branches) else len(self._branches) - 1)

    def _run(self, chosen: int) -> None:
        callee = self._branches[chosen]
        callee.run()
        if chosen not in self._plans and not self._off:
            self._offer(chosen, callee)

    def _offer(self, chosen: int, callee: Callee) -> None:
        chain, outs = callee.subgraph.chain, callee.node.tensors_out
        rows = None
        if chain is not None and callee.subgraph.connected is callee and all(t.kind != DYNAMIC for t in outs):
            copied: Any = [(outs[i].array, callee.outputs[i].array) for i in callee.copied]
            rows = copy_rows(copied)
        if chain is None or rows is None:
            self._off = True
            return
        self._plans[chosen] = chain, rows
        self._words(chosen)[:] = chain.executor.address, rows.ctypes.data, len(rows)

    def _words(self, chosen: int) -> np.ndarray:
        start = _CHOICES + _CHOICE * chosen
        return self.executor.words[0][start : start + _CHOICE]

    def withdraw(self, callee: Callee) -> None:
        """Forget the plan of a branch that is no longer connected, and may be planned again."""
        self._off = False
        for chosen, one in enumerate(self._branches):
            if one is callee:
                self._plans.pop(chosen, None)
                self._words(chosen)[:] = 0

    def is_ready(self) -> bool:
        """Return whether the branches in the kernel arguments may run; any other branch stops the executor."""
        return not self._off and all(chain.is_ready() for chain, _ in self._plans.values())

    def resume(self) -> None:
        """Run the selected branch, from where it stopped."""
        chosen = int(self.executor.words[0][_CHOSEN])
        plan = self._plans.get(chosen)
        if plan is None:
            self._run(chosen)
            return
        callee = self._branches[chosen]
        callee.subgraph.finish(plan[0])
        callee.copy_outputs()


class LoopStep:
    """The step of WHILE."""

    alone = True

    def __init__(self, state: LoopState) -> None:
        self._state = state
        threads = state.node.subgraph.context.recommended_num_threads
        self._plans: tuple[Any, ...] = ()  # chains and rows referenced by the kernel arguments
        self._off = False
        self.executor = Executor([Step(functions().loop, [0] * 9, 1)], inner=threads)
        self.executor.words[0][_POLL] = state_address()
        state.native = self

    def __call__(self) -> None:
        self._state.run()

    def offer(self) -> bool:
        """Set the plans of condition and body, once both are connected; return whether they may run."""
        state = self._state
        if not self._plans and not self._off:
            cond, body, node = state.cond.chain, state.body.chain, state.node
            answer = state.cond.tensors[state.cond.outputs[0]]
            first = rows = aside = None
            if cond is not None and body is not None and not state.changing and answer.kind != DYNAMIC:
                copies: Any = [(to.array, t.array) for t, to in zip(state.inputs, node.tensors_out) if not to.is_object]
                first = copy_rows(copies)
                rows, aside = self._turn_rows()
            if cond is None or body is None or first is None or rows is None:
                self._off = True
                return False
            self._plans = cond, body, first, rows, aside
            self.executor.words[0][:_POLL] = (
                cond.executor.address,
                answer.array.__array_interface__["data"][0],  # type: ignore[union-attr]
                body.executor.address,
                first.ctypes.data,
                len(first),
                rows.ctypes.data,
                len(rows),
            )
        return self.is_ready() and bool(self._plans)

    def _turn_rows(self) -> tuple[np.ndarray | None, list[np.ndarray]]:
        """Return the copies after each iteration; permuted variables are copied through temporary arrays."""
        pairs: list[tuple[Any, Any]] = [(to, t.array) for to, t in self._state.copied if not t.is_object]
        if not self._state.shuffles:
            return copy_rows(pairs), []
        aside = [np.empty_like(array) for _, array in pairs]
        return copy_rows(
            [*((a, array) for a, (_, array) in zip(aside, pairs)), *((to, a) for a, (to, _) in zip(aside, pairs))]
        ), aside

    def withdraw(self) -> None:
        """Forget the plans when condition or body is no longer connected."""
        self._plans, self._off = (), False
        self.executor.words[0][:_POLL] = 0

    def is_ready(self) -> bool:
        """Return whether condition and body may run; without plans the executor stops at once."""
        return not self._off and all(chain.is_ready() for chain in self._plans[:2])

    def iterate(self) -> bool:
        """Run all iterations from the current state; return whether machine code could."""
        if flags.check_inputs or not self.offer():
            return False
        words = self.executor.words[0]
        words[_FIRSTS] = 0
        try:
            self.executor.run()
        except StepError:
            self.resume()
        finally:
            words[_FIRSTS] = len(self._plans[2]) if self._plans else 0
        return True

    def resume(self) -> None:
        """Continue in Python where condition or body stopped."""
        if not self._plans:
            self._state.run()
        else:
            self._state.resume(bool(self.executor.words[0][_WHERE]), *self._plans[:2])


SELECTOR_DTYPES = {"IF": dtypes.bool, "STABLEHLO_CASE": dtypes.int32}


class Callee:
    """A subgraph that one node runs, with the inputs that the node passes."""

    __slots__ = ("copied", "inputs", "node", "subgraph", "withdraw")

    def __init__(self, node: Node, subgraph: Subgraph, inputs: list[Tensor]) -> None:
        self.node, self.subgraph, self.inputs = node, subgraph, inputs
        self.withdraw: Callable[[Callee], None] | None = None  # called when the subgraph is disconnected
        self.copied: list[int] = []  # outputs that are not written in place

    def accept(self) -> None:
        """Prepare the subgraph for the inputs' shapes. Raises the OpError of the inner node that failed."""
        handles = constant_handles(self.inputs)
        self.subgraph.accept([t.shape for t in self.inputs], (), self.node.subgraph.preserve_all, handles)

    @property
    def outputs(self) -> list[Tensor]:
        """The output tensors of the subgraph."""
        return [self.subgraph.tensors[i] for i in self.subgraph.outputs]

    def connect(self) -> None:
        """Bind the subgraph to the node's present arrays."""
        subgraph, outs = self.subgraph, self.node.tensors_out
        in_place = [subgraph.placeable(i) and t.kind != DYNAMIC for i, t in enumerate(outs)]
        self.copied = [i for i, writes in enumerate(in_place) if not writes]
        arrays = [t.array if writes else None for t, writes in zip(outs, in_place)]
        subgraph.connect([t.array for t in self.inputs], arrays, self)

    def run(self) -> None:
        """Run the subgraph. Dynamic outputs of the node get their shapes."""
        subgraph = self.subgraph
        if subgraph.connected is not self:
            self.accept()
            self.connect()
        subgraph.run()
        self.copy_outputs()

    def copy_outputs(self) -> None:
        """Copy outputs that the subgraph does not write in place to the node's outputs."""
        subgraph, node = self.subgraph, self.node
        for i in self.copied:
            source: Any = subgraph.tensors[subgraph.outputs[i]].array
            to: Any = node.tensors_out[i]
            if to.kind == DYNAMIC:
                node.subgraph.context.resize(to, source.shape)
            np.copyto(to.array, source)

    def disconnected(self) -> None:
        """Report that the subgraph is connected to another caller, or to none."""
        if self.withdraw is not None:
            self.withdraw(self)


def constant_handles(inputs: Sequence[Tensor]) -> dict[int, Any]:
    """Return, by position, the resources of inputs that are constant handles."""
    return {
        position: t.constant.reshape(-1)[0]
        for position, t in enumerate(inputs)
        if t._dtype is dtypes.resource and t.constant is not None and t.constant.size == 1
    }


def operands(node: Node, first: int = 0) -> list[Tensor]:
    """Return the inputs from `first` on. Raises InvalidArgumentError for an omitted one."""
    tensors: list[Tensor] = []
    for i, t in enumerate(node.tensors_in[first:], first):
        if t is None:
            raise InvalidArgumentError(op=node.name, what=f"input {i} is left out", wanted="all inputs")
        tensors.append(t)
    return tensors


def check_interface(node: Node, subgraph: Subgraph, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
    """Raise InvalidArgumentError if a subgraph does not accept these inputs or return these outputs."""
    for side, mine, others in (("inputs", inputs, subgraph.inputs), ("outputs", outputs, subgraph.outputs)):
        types = [t.type for t in mine]
        expected_types = [subgraph.tensors[i].type for i in others]
        if types != expected_types:
            raise InvalidArgumentError(
                op=node.name,
                what=f"subgraph {subgraph.index} {subgraph.name!r} has other {side} than the node",
                found=[t.short() for t in mine],
                wanted=[subgraph.tensors[i].short() for i in others],
            )


def callees(context: Context, node: Node, indices: Sequence[int], first: int) -> list[Callee]:
    """Return the subgraphs of these indices, checked, each with the node's inputs from `first` on."""
    inputs = operands(node, first)
    result = []
    for index in indices:
        subgraph = context.subgraph(int(index))
        check_interface(node, subgraph, inputs, node.tensors_out)
        result.append(Callee(node, subgraph, inputs))
    return result


def set_output_shapes(context: Context, node: Node, shapes: Sequence[tuple[int, ...] | None]) -> None:
    """Set the shape of each output; None declares it dynamic."""
    for i, (t, shape) in enumerate(zip(node.tensors_out, shapes)):
        if shape is None:
            context.set_tensor_to_dynamic(node.outputs[i])
        else:
            context.resize(t, shape)


class BranchRegistration(Registration):
    """Registration of a node that runs one of several subgraphs, selected by a scalar, or its only subgraph.

    fields: of the options, each a subgraph index or a vector of them.
    """

    __slots__ = ("fields", "name")

    def __init__(self, name: str, fields: Sequence[str]) -> None:
        super().__init__(self._init, None, self._prepare, self._invoke)
        self.name, self.fields = name, fields

    def _init(self, context: Context, options: Any) -> list[int]:
        if options is None:
            raise InvalidArgumentError(op=self.name, what="the node has no options", wanted=", ".join(self.fields))
        return [int(i) for field in self.fields for i in np.atleast_1d(getattr(options, field))]

    def _prepare(self, context: Context, node: Node) -> None:
        indices = node.user_data if type(node.user_data) is list else [c.subgraph.index for c in node.user_data]
        if not indices:
            raise InvalidArgumentError(op=node.name, what="no branch to run", wanted="at least one subgraph")
        if self.name in SELECTOR_DTYPES:
            selector = node.tensors_in[0] if node.tensors_in else None
            if selector is None or np.prod(selector.shape) != 1 or selector._dtype is not SELECTOR_DTYPES[self.name]:
                expected = f"one {SELECTOR_DTYPES[self.name].name}"
                raise InvalidArgumentError(
                    op=node.name, what="the first input selects the branch", found=repr(selector), wanted=expected
                )
        branches = callees(context, node, indices, 1 if self.name in SELECTOR_DTYPES else 0)
        output_shapes: list[tuple[int, ...] | None] = []
        for n, branch in enumerate(branches):
            branch.accept()
            shapes = [None if t.kind == DYNAMIC else t.shape for t in branch.outputs]
            output_shapes = shapes if n == 0 else [a if a == b else None for a, b in zip(output_shapes, shapes)]
        set_output_shapes(context, node, output_shapes)
        node.user_data = tuple(branches)

    def bind(self, context: Context, node: Node) -> Callable[[], Any]:
        branches = node.user_data
        _disconnect(branches)
        if self.name in SELECTOR_DTYPES:
            which: Any = node.tensors_in[0].array  # type: ignore[union-attr]
            which = which.reshape(-1)
        else:
            which = np.zeros(1, np.int32)  # the only one
        if runs_images():
            return BranchStep(which, branches)
        if self.name not in SELECTOR_DTYPES:
            result: Callable[[], Any] = branches[0].run
            return result
        return functools.partial(_one_of_two if self.name == "IF" else _by_number, which, branches)

    def _invoke(self, context: Context, node: Node) -> None:
        """Run a node that is prepared during a run, whose arrays may have moved since the last one."""
        _disconnect(node.user_data)
        which: Any = node.tensors_in[0].array if node.tensors_in[0] is not None else None
        if self.name not in SELECTOR_DTYPES:
            node.user_data[0].run()
        else:
            (_one_of_two if self.name == "IF" else _by_number)(which.reshape(-1), node.user_data)


def _disconnect(branches: Sequence[Callee]) -> None:
    """Disconnect each branch from the node's former arrays."""
    for branch in branches:
        if branch.subgraph.connected is branch:
            branch.subgraph.connected = None


def _one_of_two(which: np.ndarray, branches: Sequence[Callee]) -> None:
    branches[0 if which[0] else 1].run()


def _by_number(which: np.ndarray, branches: Sequence[Callee]) -> None:
    index = int(which[0])
    branches[index if 0 <= index < len(branches) else -1].run()
