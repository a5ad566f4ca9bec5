"""The life of a subgraph's nodes: init, prepare, preparation again during a run, free; tensors of dynamic shape.

Lives here: `NodePreparation`, this part of a Subgraph.
Not here: running nodes, planning memory (subgraph.py), delegates (delegation.py).

A node with an input of unknown shape is deferred: it is prepared during a run, once the input has its shape, and again
only when a later run changes that shape. All other nodes are prepared once per allocation, and allocations happen only
after a resize.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from ...core.lazy_imports import later
from ..ops.definition import defined
from .errors import node_error
from .memory import MemoryUsage
from .node import Context, Node, check_status, check_temporaries
from .tensor import ARENA, CONSTANT, DYNAMIC, FOLDED, OUTSIDE, OWN, Tensor

if TYPE_CHECKING:
    from . import bound_arrays
else:  # not needed by the first answer of a model
    bound_arrays = later(".bound_arrays", __package__)


class NodePreparation:
    """Part of `Subgraph`: its nodes from init to free."""

    nodes: list[Node]
    tensors: list[Tensor]
    file_tensors: int
    inputs: list[int]
    context: Context
    running: bool
    closed: bool
    memory_usage: MemoryUsage
    bound: dict[int, np.ndarray]
    handles: dict[int, Any]
    changing: frozenset[int]
    _dynamic: set[int]  # indices of tensors declared dynamic by a prepare
    _touched: dict[int, Node]  # by id of a tensor: the last prepared node that uses it
    _outside: bool

    def init_early(self) -> None:
        """Call init of nodes whose kernels are initialized when the interpreter is created."""
        for node in self.nodes:
            if node.registration is not None and node.registration.init_at_creation:
                self.init(node)

    def init(self, node: Node) -> None:
        """Call init of a node once."""
        registration = node.registration
        if node.initialized or registration is None:
            return
        if self.closed and registration.init_at_creation:
            raise node_error(
                FailedPreconditionError(op=node.name, what="the interpreter is closed", do="create another one"),
                node,
                "init",
                [],
            )
        if registration.init is not None:
            self.context.begin(node)
            try:
                definition = defined.get(node.name)  # of a builtin operator, imported by its registration
                if definition is not None and not isinstance(node.options, bytes):
                    definition.check_options(node.options)
                node.user_data = registration.init(self.context, node.options)
            except Exception as error:
                raise node_error(error, node, "init", self.context.reported) from error
        node.initialized = True

    def prepare_all(self, nodes: Iterable[Node], prepare: Callable[[Node], None]) -> set[int]:
        """Prepare nodes in order except those with an input of unknown shape; return the numbers of these."""
        self._dynamic.clear()
        self._touched.clear()
        for index, array in self.bound.items():
            bound_arrays.attach(self.tensors[index], array)
        for t in self.tensors:
            if t.kind in (DYNAMIC, OUTSIDE, FOLDED):
                self.memory_usage.forget((t,))
                t.set_kind(OWN if t.is_object else ARENA)
        if self._outside:
            for i in self.inputs:
                self.tensors[i].set_kind(DYNAMIC if i in self.changing else OUTSIDE)
            for i, resource in self.handles.items():
                self._fold_handle(self.tensors[i], resource)
        deferred = set()
        for node in nodes:
            if any(t is not None and t.kind == DYNAMIC for t in node.tensors_in):
                deferred.add(node.number)
                node.prepared_for = None
                for t in node.tensors_out:
                    self._refuse_output(node, t)
                    t.set_kind(DYNAMIC)
            else:
                prepare(node)
        return deferred

    def _fold_handle(self, t: Tensor, resource: Any) -> None:
        """Set the resource of an input for all runs."""
        t.set_kind(FOLDED)
        self.allocate_own(t)
        t.array.fill(resource)  # type: ignore[union-attr]

    def prepare(self, node: Node) -> None:
        """Call prepare, after dropping temporaries of the last prepare."""
        registration: Any = node.registration
        for t in node.tensors_out:
            self._refuse_output(node, t)
        if node.added:
            self.drop_tensors(node.added)
            node.added, node.temporaries = [], []
        node.prepared_for, node.repeat = tuple(None if t is None else t.shape for t in node.tensors_in), None
        shapes = [t.shape for t in node.tensors_out]
        if not self.running:
            self._touched.update((id(t), node) for t in node.tensors_in if t is not None)
        context = self.context
        context.begin(node)
        try:
            if registration.invoke is None:
                raise UnimplementedError(
                    op=node.name, what="its registration has no invoke", do="Registration(invoke=...)"
                )
            for view in (*node.inputs, *node.outputs):
                if view is not None:
                    view.tracker = None
            if registration.prepare is not None:
                check_status(registration.prepare(context, node), node.name, "prepare")
            check_temporaries(node, self.tensors)
            self._check_shared(node, shapes)
        except Exception as error:
            node.prepared_for = None
            raise node_error(error, node, "prepare", context.reported) from error

    def _refuse_output(self, node: Node, t: Tensor) -> None:
        """Raise InvalidArgumentError for an output that must not be written; custom operators may write an input."""
        builtin = node.delegate is None and not isinstance(node.options, bytes)
        what = (
            "a constant"
            if t.kind == CONSTANT
            else "a variable"
            if t.is_variable
            else "an input of the subgraph"
            if t.kind == OUTSIDE or t.index in self.changing
            else "also an input of the node"
            if t in node.tensors_in and builtin
            else ""
        )
        if what:
            raise node_error(
                InvalidArgumentError(
                    op=node.name,
                    what=f"output {t.name!r} is {what}",
                    found=repr(t),
                    wanted="a tensor that this node may write",
                ),
                node,
                "prepare",
                [],
            )

    def _check_shared(self, node: Node, shapes: list[tuple[int, ...]]) -> None:
        """Raise InvalidArgumentError if prepare resized an output that this node or an earlier one also uses.

        given: the shapes of the outputs before.
        """
        touched = {id(t): node for t in node.tensors_in if t is not None} if self.running else self._touched
        for t, shape in zip(node.tensors_out, shapes):
            other = touched.get(id(t))
            if other is not None and t.shape != shape:
                whose, found = "this node" if other is node else f"node {other.number}", list(t.shape)
                t.set_shape(shape)  # else a second allocation would take the result's shape for the input's
                raise InvalidArgumentError(
                    op=node.name,
                    what=f"output {t.name!r} is also a tensor of {whose}, and would get another shape",
                    found=found,
                    wanted=list(shape),
                )
        touched.update((id(t), node) for t in node.tensors_out)

    def _run_deferred(self, node: Node, planned: Mapping[int, np.ndarray] | None = None) -> None:
        """Prepare the node if its inputs have other shapes than at its last prepare; then run it.

        planned: memory of outputs by tensor, which those of its shape are written to; others get memory of their own.
        """
        context = self.context
        if node.prepared_for != tuple(None if t is None else t.shape for t in node.tensors_in):
            for t in node.tensors_out:
                self._dynamic.discard(t.index)
                t.bind(None)
            self.prepare(node)
            for t in (*node.tensors_out, *(view.tensor for view in node.temporaries)):
                if t.array is None and t.index not in self._dynamic:
                    array = None if planned is None else planned.get(t.index)
                    t.set_kind(DYNAMIC)
                    if array is not None and (array.shape, array.dtype) == (t.shape, t.dtype.np):
                        t.bind(array)
                    else:
                        self.allocate_own(t)
        context.begin(node)
        registration: Any = node.registration
        check_status(registration.invoke(context, node), node.name, "invoke")

    def drop_tensors(self, removed: Sequence[Tensor]) -> None:
        """Remove tensors that are not the file's; the remaining ones may get another index."""
        self.memory_usage.forget(removed)
        dropped = {id(t) for t in removed}
        n = self.file_tensors
        self.tensors = self.tensors[:n] + [t for t in self.tensors[n:] if id(t) not in dropped]
        for index, t in enumerate(self.tensors[n:], n):
            t.index = index

    def make_dynamic(self, t: Tensor) -> None:
        """Declare a tensor dynamic: its shape is determined when it is computed."""
        shared = id(t) in self._touched and not self.running
        if t.kind == CONSTANT or t.is_variable or t.index in self.inputs or shared:
            raise InvalidArgumentError(
                what=f"tensor {t.name!r} cannot be dynamic", found=repr(t), wanted="an output that no earlier node uses"
            )
        self._dynamic.add(t.index)
        if self.running and t.kind != DYNAMIC:
            raise FailedPreconditionError(
                what=f"tensor {t.name!r} was declared dynamic while the model runs",
                do="call context.set_tensor_to_dynamic(tensor) in prepare",
            )
        t.set_kind(DYNAMIC)
        t.bind(None)

    def bounded(self, t: Tensor, sizes: tuple[int, ...]) -> None:
        """Raise ResourceExhaustedError if a tensor of these sizes would exceed the limit."""
        self.memory_usage.check(t, sizes, self.running)

    def allocate_own(self, t: Tensor) -> None:
        """Allocate memory of its own for a tensor, within the limit."""
        self.memory_usage.allocate(t, self.running)

    def free(self, nodes: Iterable[Node]) -> list[Exception]:
        """Call free of initialized nodes; return the errors."""
        errors: list[Exception] = []
        for node in nodes:
            registration = node.registration
            if not node.initialized or registration is None:
                continue
            node.initialized = False
            if registration.free is not None:
                self.context.begin(node)
                try:
                    registration.free(self.context, node.user_data)
                except Exception as error:
                    wrong = node_error(error, node, "free", self.context.reported)
                    wrong.__cause__ = error
                    errors.append(wrong)
            node.user_data = None
        return errors
