"""Delegates: classes that run parts of a model in place of the interpreter's kernels, under the official names.

Lives here: `Delegate`, `DelegateKernel`, `SimpleDelegate`, `DelegateParams`, `DelegateFlags`, `DelegateWarning`.
Not here: the view of a subgraph for delegates (runtime/delegate_context.py), replacement of nodes
(runtime/delegation.py), the partitioner (compiler/regions.py).

    class Mine(lite.SimpleDelegate):
        def is_node_supported(self, registration, node, context):
            return registration.name in ("ADD", "MUL") and registration.version <= 1

        def create_delegate_kernel(self):
            return MyKernel()

    interpreter = lite.Interpreter(model_content=content, experimental_delegates=[Mine()])
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .format import schema

if TYPE_CHECKING:
    from .runtime.delegate_context import DelegateContext, NodeView, RegistrationView
    from .runtime.node import Context, Node


class DelegateFlags(enum.IntFlag):
    """Capabilities of a delegate; the values are those of TfLiteDelegateFlags.

    ALLOW_DYNAMIC_TENSORS: it supports graphs with shapes that are determined during a run; its kernels are prepared
    again after a resize. Without it such a graph is refused, and a resize of an input undoes the delegation until the
    next allocate_tensors. REQUIRE_PROPAGATED_SHAPES: used with the previous flag; all shapes and `is_dynamic` of the
    original graph are propagated before the delegate's prepare, and again before its kernels' prepare.
    PER_OPERATOR_PROFILING: its kernels report the time of each operator (`context.add_profiling_event`), which
    `Interpreter.profile` shows in place of the delegate's node.
    """

    NONE = 0
    ALLOW_DYNAMIC_TENSORS = 1
    REQUIRE_PROPAGATED_SHAPES = 2
    PER_OPERATOR_PROFILING = 4


class DelegateWarning(RuntimeWarning):
    """A delegate in `experimental_delegates` failed; the interpreter continues without it."""


class DelegateParams(NamedTuple):
    """One partition, for which a delegate's kernel is created.

    nodes_to_replace: indices of nodes, in execution order. input_tensors: tensors that they read and none of them
    writes, including constants. output_tensors: tensors that they write and other nodes read or the subgraph returns.
    Both are ascending.
    """

    delegate: Delegate
    nodes_to_replace: tuple[int, ...]
    input_tensors: tuple[int, ...]
    output_tensors: tuple[int, ...]


class DelegateKernel:
    """Runs one partition; each partition has its own. All methods except invoke are optional; methods fail by raising.

    init and the others are called as those of a `lite.Registration`, with `self` as the user data.
    """

    def init(self, context: DelegateContext, params: DelegateParams) -> Any:
        """Initialize once, during the delegate's prepare; nodes and constants can be read only here."""

    def prepare(self, context: Context, node: Node) -> Any:
        """Prepare when tensors are allocated. Outputs keep the file's shapes unless `context.resize_tensor` changes
        them.

        node.inputs and node.outputs are the tensors of params.input_tensors and params.output_tensors.
        """

    def invoke(self, context: Context, node: Node) -> Any:
        """Run: read `node.inputs[i].data`, write `node.outputs[i].data`."""
        raise TypeError(f"{type(self).__name__} must define invoke(context, node)")

    def free(self, context: Context) -> Any:
        """Free once, if init returned: when the interpreter closes or the delegation is undone."""


class Delegate:
    """Claims nodes of a model and replaces sets of them by its kernels. Subclasses define `prepare`.

    name: for errors, warnings and profiles; by default the class's. flags: DelegateFlags, by default NONE. A delegate
    may serve several interpreters; prepare is called once for each subgraph of each. replan_on_resize: whether it is
    applied again after a resize even though it supports dynamic tensors. merges_disconnected: whether one kernel may
    run nodes that no tensor connects.
    """

    flags: DelegateFlags = DelegateFlags.NONE
    replan_on_resize = merges_disconnected = False

    @property
    def name(self) -> str:
        """The name in errors, warnings and profiles."""
        return type(self).__name__

    def prepare(self, context: DelegateContext) -> Any:
        """Inspect and select nodes, and call `context.replace_node_subsets_with_delegate_kernels(kernel, nodes)`.

        Fails by raising, or by returning an int other than 0; the graph is then unchanged.
        """
        raise TypeError(f"{type(self).__name__} must define prepare(context)")

    def __repr__(self) -> str:
        return f"<delegate {self.name}>"


DYNAMIC_TENSORS = {
    "forbid": DelegateFlags.NONE,
    "split": DelegateFlags.ALLOW_DYNAMIC_TENSORS | DelegateFlags.REQUIRE_PROPAGATED_SHAPES,
    "allow": DelegateFlags.ALLOW_DYNAMIC_TENSORS,
}
"""The flags for each value of SimpleDelegate(dynamic_tensors=...)."""


class SimpleDelegate(Delegate):
    """A delegate that decides node by node; the base class does the rest.

    Subclasses define `create_delegate_kernel`, and `is_node_supported` or the table `supported`, from operators' names
    to the greatest supported version: {"ADD": 1, "DEPTHWISE_CONV_2D": 2, "MyCustomOp": 1}.

    max_delegated_partitions: maximum number, the largest first; 0 for all. min_nodes_per_partition: minimum size.
    dynamic_tensors: for nodes with tensors whose shape is determined during a run: "forbid" (the whole model is
    refused, as in the official run time), "split" (such nodes stay with the interpreter) or "allow" (the kernels
    support them). raises ValueError for invalid options
    """

    supported: Mapping[str, int] = {}
    max_delegated_partitions = min_nodes_per_partition = 0
    dynamic_tensors = "forbid"

    def __init__(
        self, *, max_delegated_partitions: int = 0, min_nodes_per_partition: int = 0, dynamic_tensors: str = "forbid"
    ) -> None:
        for name, value in (
            ("max_delegated_partitions", max_delegated_partitions),
            ("min_nodes_per_partition", min_nodes_per_partition),
        ):
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise ValueError(f"{type(self).__name__}: {name} is a count, found {value!r}")
        if dynamic_tensors not in DYNAMIC_TENSORS:
            raise ValueError(
                f"{type(self).__name__}: dynamic_tensors is one of {', '.join(DYNAMIC_TENSORS)}, "
                f"found {dynamic_tensors!r}"
            )
        self.max_delegated_partitions = max_delegated_partitions
        self.min_nodes_per_partition = min_nodes_per_partition
        self.dynamic_tensors = dynamic_tensors
        self.flags = self.flags | DYNAMIC_TENSORS[dynamic_tensors]

    def initialize(self, context: DelegateContext) -> Any:
        """Initialize before the nodes are inspected. Fails as prepare does."""

    def is_node_supported(self, registration: RegistrationView, node: NodeView, context: DelegateContext) -> bool:
        """Return whether a kernel can run this node; by default, whether `supported` has its version."""
        name = registration.name
        if registration.custom_name is not None and name in schema.BuiltinOperator.__members__:
            return False  # a custom operator with a builtin's name; the table refers to the builtin
        return registration.version <= self.supported.get(name, 0)

    def create_delegate_kernel(self) -> Any:
        """Return a new kernel for one partition: a `DelegateKernel` or an object with its methods."""
        raise TypeError(f"{type(self).__name__} must define create_delegate_kernel()")

    def prepare(self, context: DelegateContext) -> Any:
        status = self.initialize(context)
        if type(status) is int and status != 0:
            return status
        claimed = []
        for index in context.execution_plan:
            node, registration = context.get_node_and_registration(index)
            if node.delegate is not None or (self.dynamic_tensors == "split" and _is_dynamic(node, context)):
                continue
            if self.is_node_supported(registration, node, context):
                claimed.append(index)
        partitions = context.preview_delegate_partitioning(claimed)
        chosen = [p for p in partitions if len(p.nodes_to_replace) >= self.min_nodes_per_partition]
        if self.max_delegated_partitions and len(chosen) > self.max_delegated_partitions:
            largest = sorted(chosen, key=lambda p: -len(p.nodes_to_replace))[: self.max_delegated_partitions]
            chosen = [p for p in chosen if p in largest]
        context.replace_node_subsets_with_delegate_kernels(self.create_delegate_kernel, chosen)
        return None


def _is_dynamic(node: NodeView, context: DelegateContext) -> bool:
    return any(t >= 0 and context.tensors[t].is_dynamic for t in (*node.inputs, *node.outputs))
