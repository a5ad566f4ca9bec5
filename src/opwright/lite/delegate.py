"""Delegates: what runs parts of a model in place of the interpreter's kernels, under the field's names.

Lives here: `Delegate`, `DelegateKernel`, `SimpleDelegate`, `DelegateParams`, `DelegateFlags`, `DelegateWarning`.
Not here: what a delegate sees (runtime/delegate_context.py), when it is asked and how the graph changes
(runtime/delegation.py), which nodes become one (compiler/partitions.py).

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
    """What a delegate can do; the values are those of TfLiteDelegateFlags.

    ALLOW_DYNAMIC_TENSORS: it takes graphs in which shapes are known only while the model runs; its kernels are prepared
    again after a resize. Without it such a graph is refused, and a resize of an input undoes the delegation, which is
    done again by the next allocate_tensors.
    REQUIRE_PROPAGATED_SHAPES: with the flag before; all shapes and `is_dynamic` of the graph as it was are worked out
    before the delegate's prepare, and again before its kernels' prepare.
    PER_OPERATOR_PROFILING: its kernels say how long each operator took (`context.add_profiling_event`);
    `Interpreter.profile` shows these in place of the delegate's node.
    """

    NONE = 0
    ALLOW_DYNAMIC_TENSORS = 1
    REQUIRE_PROPAGATED_SHAPES = 2
    PER_OPERATOR_PROFILING = 4


class DelegateWarning(RuntimeWarning):
    """A delegate given to `experimental_delegates` failed; the interpreter goes on without it."""


class DelegateParams(NamedTuple):
    """One partition: what a delegate's kernel is made for.

    nodes_to_replace: indices of nodes, in execution order. input_tensors: what they read that none of them makes,
    constants too; output_tensors: what they make that others read or the subgraph gives. Both ascending.
    """

    delegate: Delegate
    nodes_to_replace: tuple[int, ...]
    input_tensors: tuple[int, ...]
    output_tensors: tuple[int, ...]


class DelegateKernel:
    """What runs one partition; each has its own. Any method but invoke may be left out; methods fail by raising.

    init and the others are called as those of a `lite.Registration` are, with `self` for the user data.
    """

    def init(self, context: DelegateContext, params: DelegateParams) -> Any:
        """Once, while the delegate prepares: the nodes and constants can be read here, and not later."""

    def prepare(self, context: Context, node: Node) -> Any:
        """When tensors are allocated. Outputs keep the file's shapes unless `context.resize_tensor` says another.

        node.inputs and node.outputs are the tensors of params.input_tensors and params.output_tensors.
        """

    def invoke(self, context: Context, node: Node) -> Any:
        """Each run: read `node.inputs[i].data`, write `node.outputs[i].data`."""
        raise TypeError(f"{type(self).__name__} must define invoke(context, node)")

    def free(self, context: Context) -> Any:
        """Once, if init returned: when the interpreter closes or the delegation is undone."""


class Delegate:
    """Claims nodes of a model and replaces sets of them by its kernels. Subclasses define `prepare`.

    name: in errors, warnings and profiles; by default the class's. flags: DelegateFlags, by default NONE.
    A delegate may serve several interpreters; prepare is called once for each subgraph of each. anew: whether it is
    applied again after a resize even though it takes dynamic tensors. gathers: whether one kernel may run nodes that no
    tensor joins.
    """

    flags: DelegateFlags = DelegateFlags.NONE
    anew = gathers = False

    @property
    def name(self) -> str:
        """In errors, warnings and profiles."""
        return type(self).__name__

    def prepare(self, context: DelegateContext) -> Any:
        """Look at the nodes, choose, and call `context.replace_node_subsets_with_delegate_kernels(kernel, nodes)`.

        Fails by raising, or by returning an int other than 0; the graph is then as it was.
        """
        raise TypeError(f"{type(self).__name__} must define prepare(context)")

    def __repr__(self) -> str:
        return f"<delegate {self.name}>"


DYNAMIC_TENSORS = {
    "forbid": DelegateFlags.NONE,
    "split": DelegateFlags.ALLOW_DYNAMIC_TENSORS | DelegateFlags.REQUIRE_PROPAGATED_SHAPES,
    "allow": DelegateFlags.ALLOW_DYNAMIC_TENSORS,
}
"""Of SimpleDelegate(dynamic_tensors=...): the flags that each means."""


class SimpleDelegate(Delegate):
    """A delegate that says node by node what it supports; the rest is done for it.

    Subclasses define `create_delegate_kernel`, and `is_node_supported` or the table `supported`: from names of
    operators to the greatest version of them that is taken, {"ADD": 1, "DEPTHWISE_CONV_2D": 2, "MyCustomOp": 1}.

    max_delegated_partitions: take at most so many, the largest; 0 for all. min_nodes_per_partition: leave out those
    with fewer nodes. dynamic_tensors: for nodes with tensors whose shape is known only while the model runs:
    "forbid" (such a model is refused whole, as in the official run time), "split" (they stay with the interpreter,
    the others are taken) or "allow" (the kernels can do it).
    raises ValueError for options that are none
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
        """Before the nodes are looked at. Fails as prepare does."""

    def is_node_supported(self, registration: RegistrationView, node: NodeView, context: DelegateContext) -> bool:
        """Whether a kernel can run this node; by default, whether the table `supported` has it in this version."""
        name = registration.name
        if registration.custom_name is not None and name in schema.BuiltinOperator.__members__:
            return False  # a custom operator that bears a builtin's name; the table means the builtin
        return registration.version <= self.supported.get(name, 0)

    def create_delegate_kernel(self) -> Any:
        """A new kernel, for one partition: a `DelegateKernel` or an object with its methods."""
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
        found = context.preview_delegate_partitioning(claimed)
        chosen = [p for p in found if len(p.nodes_to_replace) >= self.min_nodes_per_partition]
        if self.max_delegated_partitions and len(chosen) > self.max_delegated_partitions:
            largest = sorted(chosen, key=lambda p: -len(p.nodes_to_replace))[: self.max_delegated_partitions]
            chosen = [p for p in chosen if p in largest]
        context.replace_node_subsets_with_delegate_kernels(self.create_delegate_kernel, chosen)
        return None


def _is_dynamic(node: NodeView, context: DelegateContext) -> bool:
    return any(t >= 0 and context.tensors[t].is_dynamic for t in (*node.inputs, *node.outputs))
