"""Nodes that run other subgraphs: IF, STABLEHLO_CASE, CALL, STABLEHLO_COMPOSITE.

Lives here: their registration, and a subgraph as a node runs it.
Not here: WHILE (while_loop.py), the declarations (ops/control.py), the life of a subgraph (subgraph.py).

A subgraph is made ready for the shapes of the node's inputs once, and reads the node's arrays where they are: nothing
is copied in. Where its outputs have a known shape it writes them into the node's, too. Two nodes may run one subgraph:
each connects it again when the other has had it.
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
    """A subgraph as one node runs it, on some of the node's inputs."""

    __slots__ = ("copied", "inputs", "node", "subgraph", "withdraw")

    def __init__(self, node: Node, subgraph: Subgraph, inputs: list[Tensor]) -> None:
        self.node, self.subgraph, self.inputs = node, subgraph, inputs
        self.withdraw: Callable[[Callee], None] | None = None  # told when the subgraph is not connected any more
        self.copied: list[int] = []  # outputs that it does not write straight into the node's

    def accept(self) -> None:
        """Make it ready for the inputs' shapes. Raises the OpError of the node inside that failed."""
        handles = constant_handles(self.inputs)
        self.subgraph.accept([t.shape for t in self.inputs], (), self.node.subgraph.preserve_all, handles)

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors that are its outputs."""
        return [self.subgraph.tensors[i] for i in self.subgraph.outputs]

    def connect(self) -> None:
        """Let it read and write the node's arrays as they are now."""
        subgraph, outs = self.subgraph, self.node.tensors_out
        given = [subgraph.placeable(i) and t.kind != DYNAMIC for i, t in enumerate(outs)]
        self.copied = [i for i, straight in enumerate(given) if not straight]
        arrays = [t.array if straight else None for t, straight in zip(outs, given)]
        subgraph.connect([t.array for t in self.inputs], arrays, self)

    def run(self) -> None:
        """Run it. The node's outputs get their shapes where those are not known before."""
        subgraph = self.subgraph
        if subgraph.connected is not self:
            self.accept()
            self.connect()
        subgraph.run()
        self.hand_over()

    def hand_over(self) -> None:
        """Copy what it does not write straight into the node's outputs."""
        subgraph, node = self.subgraph, self.node
        for i in self.copied:
            source: Any = subgraph.tensors[subgraph.outputs[i]].array
            to: Any = node.tensors_out[i]
            if to.kind == DYNAMIC:
                node.subgraph.context.resize(to, source.shape)
            np.copyto(to.array, source)

    def disconnected(self) -> None:
        """The subgraph is connected to other arrays now, or to none."""
        if self.withdraw is not None:
            self.withdraw(self)


def constant_handles(inputs: Sequence[Tensor]) -> dict[int, Any]:
    """By place, the resources that handles among these are known to hold."""
    return {
        place: t.constant.reshape(-1)[0]
        for place, t in enumerate(inputs)
        if t._dtype is dtypes.resource and t.constant is not None and t.constant.size == 1
    }


def operands(node: Node, first: int = 0) -> list[Tensor]:
    """The inputs from `first` on. Raises InvalidArgumentError for one left out."""
    found: list[Tensor] = []
    for i, t in enumerate(node.tensors_in[first:], first):
        if t is None:
            raise InvalidArgumentError(op=node.name, what=f"input {i} is left out", wanted="an input for each")
        found.append(t)
    return found


def check_interface(node: Node, subgraph: Subgraph, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
    """Raises InvalidArgumentError where a subgraph does not take these inputs or give these outputs."""
    for side, mine, others in (("inputs", inputs, subgraph.inputs), ("outputs", outputs, subgraph.outputs)):
        found = [t.type for t in mine]
        wanted = [subgraph.tensors[i].type for i in others]
        if found != wanted:
            raise InvalidArgumentError(
                op=node.name,
                what=f"subgraph {subgraph.index} {subgraph.name!r} has other {side} than the node",
                found=[t.short() for t in mine],
                wanted=[subgraph.tensors[i].short() for i in others],
            )


def callees(context: Context, node: Node, indices: Sequence[int], first: int) -> list[Callee]:
    """The subgraphs of these indices, checked, each with the node's inputs from `first` on."""
    inputs = operands(node, first)
    found = []
    for index in indices:
        subgraph = context.subgraph(int(index))
        check_interface(node, subgraph, inputs, node.tensors_out)
        found.append(Callee(node, subgraph, inputs))
    return found


def set_output_shapes(context: Context, node: Node, shapes: Sequence[tuple[int, ...] | None]) -> None:
    """The shape of each output, None where it is known only when the node has run."""
    for i, (t, shape) in enumerate(zip(node.tensors_out, shapes)):
        if shape is None:
            context.set_tensor_to_dynamic(node.outputs[i])
        else:
            context.resize(t, shape)


class BranchRegistration(Registration):
    """One of several subgraphs: which, a scalar says; where there is one alone, that.

    fields: of the options, each the index of a subgraph or a vector of them.
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
            which = node.tensors_in[0] if node.tensors_in else None
            if which is None or np.prod(which.shape) != 1 or which._dtype is not SELECTOR_DTYPES[self.name]:
                wanted = f"one {SELECTOR_DTYPES[self.name].name}"
                raise InvalidArgumentError(
                    op=node.name, what="the first input says which branch runs", found=repr(which), wanted=wanted
                )
        branches = callees(context, node, indices, 1 if self.name in SELECTOR_DTYPES else 0)
        known: list[tuple[int, ...] | None] = []
        for n, branch in enumerate(branches):
            branch.accept()
            shapes = [None if t.kind == DYNAMIC else t.shape for t in branch.outputs]
            known = shapes if n == 0 else [a if a == b else None for a, b in zip(known, shapes)]
        set_output_shapes(context, node, known)
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
            return branches[0].run
        return functools.partial(_one_of_two if self.name == "IF" else _by_number, which, branches)

    def _invoke(self, context: Context, node: Node) -> None:
        """For a node that is prepared while the model runs: its arrays may be others than the last time."""
        _disconnect(node.user_data)
        which: Any = node.tensors_in[0].array if node.tensors_in[0] is not None else None
        if self.name not in SELECTOR_DTYPES:
            node.user_data[0].run()
        else:
            (_one_of_two if self.name == "IF" else _by_number)(which.reshape(-1), node.user_data)


def _disconnect(branches: Sequence[Callee]) -> None:
    """The node's arrays are others than they were: let each branch be connected anew before it runs."""
    for branch in branches:
        if branch.subgraph.connected is branch:
            branch.subgraph.connected = None


def _one_of_two(which: np.ndarray, branches: Sequence[Callee]) -> None:
    branches[0 if which[0] else 1].run()


def _by_number(which: np.ndarray, branches: Sequence[Callee]) -> None:
    index = int(which[0])
    branches[index if 0 <= index < len(branches) else -1].run()
