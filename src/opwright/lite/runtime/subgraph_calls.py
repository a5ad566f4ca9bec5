"""Nodes that call other subgraphs: IF, STABLEHLO_CASE, CALL, STABLEHLO_COMPOSITE.

Lives here: their registration; `Callee`, a subgraph as a node calls it.
Not here: WHILE (while_loop.py), the declarations (ops/control.py), the life cycle of a subgraph (subgraph.py).

A subgraph is prepared once for the shapes of the node's inputs, and reads the node's arrays in place: no input is
copied. Outputs of known shape are written in place, too. Two nodes may call one subgraph: each connects it again after
the other has called it.
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
from .native_control_flow import BranchStep
from .node import Context, Node
from .subgraph import Subgraph
from .tensor import DYNAMIC, Tensor

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
