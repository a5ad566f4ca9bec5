"""Nodes and the context: the arguments of a kernel's methods.

Lives here: `Node`, `Context`, `check_status`.  Not here: when methods are called (node_preparation.py, subgraph.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.dtypes import as_dtype
from ...core.errors import FailedPreconditionError, InvalidArgumentError
from ..format import schema
from ..ops import types
from .tensor import ARENA, CONSTANT, DYNAMIC, OWN, Tensor, TensorView

LARGEST = 2**31 - 1
"""The largest size of a dimension."""

if TYPE_CHECKING:
    from ..delegate import Delegate
    from ..registration import Registration
    from .dynamic_shapes import ReusableStep
    from .subgraph import Subgraph


class Node:
    """One operator of a subgraph.

    inputs: TensorViews, None for an omitted one. outputs. temporaries: scratch tensors, which prepare sets from
    `context.add_tensor`. user_data: the result of `init`. options: a builtin's options object, or a custom operator's
    bytes. name: of the operator. version: in the file. number: in execution order. delegate: the owner of the kernel
    that replaces the nodes `replaced`; None for a node of the file. has_options: False for a custom node without
    options in the file, as opposed to empty ones.
    """

    __slots__ = (
        "added",
        "has_options",
        "initialized",
        "inputs",
        "intermediates",
        "kernel",
        "name",
        "needs_values",
        "number",
        "options",
        "outputs",
        "prepared_for",
        "registration",
        "repeat",
        "subgraph",
        "temporaries",
        "tensors_in",
        "tensors_out",
        "user_data",
        "version",
    )

    delegate: Delegate | None = None
    replaced: Sequence[Node] = ()

    def __init__(
        self,
        subgraph: Subgraph,
        number: int,
        name: str,
        version: int,
        options: Any,
        registration: Registration | None,
        tensors_in: Sequence[Tensor | None],
        tensors_out: Sequence[Tensor],
        intermediates: Sequence[Tensor | None],
    ) -> None:
        self.subgraph, self.number, self.name, self.version = subgraph, number, name, version
        self.options, self.registration = options, registration
        self.tensors_in, self.tensors_out = list(tensors_in), list(tensors_out)
        self.inputs = [None if t is None else TensorView(t, t.is_variable) for t in tensors_in]
        self.outputs = [TensorView(t, True) for t in tensors_out]
        self.intermediates = [None if t is None else TensorView(t, True) for t in intermediates]
        self.temporaries: Sequence[TensorView] = []
        self.user_data: Any = None
        self.kernel: Any = None  # on raw integers, set by prepare if tensors are quantized
        self.needs_values = False  # whether shape rules read values that are computed during a run
        self.has_options = True
        self.initialized = False
        self.added: list[Tensor] = []  # by the last prepare
        self.prepared_for: Any = None  # the inputs' shapes at the last prepare
        self.repeat: ReusableStep | None = None  # the last run's step, if its outputs are dynamic

    def __repr__(self) -> str:
        return f"<node {self.number} {self.name}>"


class Context:
    """The run time as seen by a kernel's methods; one for each subgraph."""

    __slots__ = ("_node", "_reported", "_subgraph", "calls", "events", "recommended_num_threads")

    def __init__(self, subgraph: Subgraph, num_threads: int) -> None:
        self._subgraph = subgraph
        self._node: Node | None = None
        self._reported: list[str] = []
        self.events: dict[int, float] | None = None  # seconds by node, while profiling
        self.calls: list[Any] | None = None  # of kernels of plans, while a timeline is recorded (timeline.py)
        self.recommended_num_threads = num_threads

    def subgraph(self, index: int) -> Subgraph:
        """Return another subgraph of the model. Raises InvalidArgumentError for an invalid index."""
        family = self._subgraph.family
        if not 0 <= index < len(family):
            raise InvalidArgumentError(what="no such subgraph", found=index, wanted=f"below {len(family)}")
        return family[index]

    @property
    def node(self) -> Node:
        """The node whose method is running."""
        if self._node is None:
            raise FailedPreconditionError(what="no method of a node runs")
        return self._node

    @property
    def tensors(self) -> list[TensorView]:
        """All tensors of the subgraph."""
        return [TensorView(t, False) for t in self._subgraph.tensors]

    def report_error(self, message: str, *values: Any) -> None:
        """Report a problem; it becomes part of the error that is raised if the method fails."""
        self._reported.append(str(message % values if values else message))

    def resize_tensor(self, tensor: TensorView, shape: Iterable[Any]) -> None:
        """Set the shape of an output or a temporary: in prepare, or in invoke for a dynamic one.

        raises InvalidArgumentError for an invalid shape or a tensor that cannot be resized, ResourceExhaustedError
        above the flag max_activation_bytes
        """
        if not tensor.writable and tensor.tensor.kind != CONSTANT:
            raise InvalidArgumentError(
                what=f"tensor {tensor.name!r} is an input, whose shape is fixed",
                found=repr(tensor.tensor),
                wanted="an output or a temporary",
            )
        self.resize(tensor.tensor, shape)

    def resize(self, t: Tensor, shape: Iterable[Any]) -> None:
        """Set the shape of a `Tensor`; see resize_tensor."""
        sizes = _sizes(shape, t)
        if t.kind == CONSTANT:
            raise InvalidArgumentError(
                what="Attempting to resize a fixed-size tensor.",
                found=repr(t),
                wanted="an output that is not a constant",
            )
        if sizes == t.shape and (t.array is not None or t.kind == ARENA):
            return
        if t.kind == ARENA and self._subgraph.running:
            raise FailedPreconditionError(
                what=f"tensor {t.name!r} got another shape while the model runs",
                found=list(sizes),
                wanted=list(t.shape),
                do="call context.set_tensor_to_dynamic(tensor) in prepare",
            )
        self._subgraph.bounded(t, sizes)
        t.set_shape(sizes)
        if t.kind in (DYNAMIC, OWN):
            self._subgraph.allocate_own(t)

    def set_tensor_to_dynamic(self, tensor: TensorView) -> None:
        """Declare in prepare that an output gets its shape in invoke."""
        self._subgraph.make_dynamic(tensor.tensor)

    def add_tensor(self, dtype: Any, shape: Iterable[int] = (), name: str = "", persistent: bool = False) -> TensorView:
        """Return a new tensor, which is scratch memory while the node runs if it is listed in `node.temporaries`.

        persistent: keeps its elements between runs. Tensors added in prepare are dropped before the next prepare.
        """
        kind = schema.TensorType[types.name_of(as_dtype(dtype))]
        tensor = Tensor(len(self._subgraph.tensors), name, kind, (), OWN if persistent else ARENA)
        if tensor.is_object:
            tensor.kind = OWN
        tensor.shape = sizes = _sizes(shape, tensor)
        self._subgraph.bounded(tensor, sizes)
        if tensor.kind == OWN:
            self._subgraph.allocate_own(tensor)
        self._subgraph.tensors.append(tensor)
        if self._node is not None and self._node.initialized:
            self._node.added.append(tensor)
        return TensorView(tensor, True)

    @property
    def is_profiling(self) -> bool:
        """Whether add_profiling_event has an effect."""
        return self.events is not None

    def add_profiling_event(self, node_index: int, seconds: float) -> None:
        """Record the time that a delegate's kernel spent on one of the nodes it replaces (DelegateFlags)."""
        if self.events is not None:
            self.events[int(node_index)] = self.events.get(int(node_index), 0.0) + float(seconds)

    def begin(self, node: Node) -> None:
        """Reset the context before a method of `node` is called."""
        self._node = node
        self._reported.clear()

    @property
    def reported(self) -> list[str]:
        """The messages reported since the method began."""
        return list(self._reported)


def check_status(status: Any, op: str, method: str) -> None:
    """Raise FailedPreconditionError for an int other than 0; any other return value means success."""
    if type(status) is int and status != 0:
        raise FailedPreconditionError(op=op, what=f"{method} returned status {status}")


def check_return_value(returned: Any, node: Node) -> None:
    """Raise InvalidArgumentError if invoke returns results instead of writing them; `out=` may return outputs."""
    outputs = [t.array for t in node.tensors_out if t.array is not None]
    for one in returned if isinstance(returned, list | tuple) else (returned,):
        if isinstance(one, np.ndarray) and not any(np.may_share_memory(one, out) for out in outputs):
            raise InvalidArgumentError(
                op=node.name,
                what="invoke returned a result, which is ignored",
                found=f"{one.dtype} {list(one.shape)}",
                wanted="None, or a status",
                do="write it: node.outputs[0].data[...] = result",
            )


def check_dynamic_outputs(tensors: Sequence[Tensor], op: str) -> None:
    """Raise FailedPreconditionError for a dynamic output without elements after invoke."""
    for t in tensors:
        if t.array is None:
            raise FailedPreconditionError(
                op=op,
                what=f"invoke set no shape for its dynamic output {t.name!r}",
                do="context.resize_tensor(node.outputs[i], shape) in invoke",
            )


def check_temporaries(node: Node, tensors: Sequence[Tensor]) -> None:
    """Raise InvalidArgumentError for a temporary that is not a tensor of the subgraph."""
    for view in node.temporaries:
        t = getattr(view, "tensor", None)
        if not isinstance(t, Tensor) or t.index >= len(tensors) or tensors[t.index] is not t:
            raise InvalidArgumentError(
                op=node.name,
                what="node.temporaries contains an object that is not a tensor of this subgraph",
                found=repr(view)[:80],
                wanted="tensors from context.add_tensor",
            )


def _sizes(shape: Iterable[Any], t: Tensor) -> tuple[int, ...]:
    try:
        sizes = tuple(s.__index__() for s in shape)
    except (TypeError, AttributeError):
        raise InvalidArgumentError(
            what=f"the shape for tensor {t.name!r} is not a list of integers", found=repr(shape)[:80], wanted="sizes"
        ) from None
    if any(s < 0 for s in sizes):
        raise InvalidArgumentError(
            what=f"the shape for tensor {t.name!r} has a negative size", found=list(sizes), wanted="sizes of at least 0"
        )
    if any(s > LARGEST for s in sizes):
        raise InvalidArgumentError(
            what=f"the shape for tensor {t.name!r} has a size that the file format cannot store",
            found=list(sizes),
            wanted=f"sizes of at most {LARGEST}, an int32",
        )
    return sizes
