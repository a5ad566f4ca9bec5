"""The view of a subgraph that a delegate's prepare receives, and its requests.

Lives here: `DelegateContext`, `NodeView`, `RegistrationView`, partitions of claimed nodes.
Not here: replacing nodes (delegation.py), the partitioner (compiler/regions.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...compiler.regions import Dependencies, NodeAccess, dependencies_of, partition, schedule
from ...core.dtypes import DType
from ...core.errors import FailedPreconditionError, InvalidArgumentError
from ..delegate import Delegate, DelegateFlags, DelegateParams
from ..format import schema
from .dynamic_shapes import is_folded
from .node import Node
from .tensor import FOLDED, Tensor, TensorView

if TYPE_CHECKING:
    from .subgraph import Subgraph

FORBIDDEN = "The function is forbidden if not calling in delegate."
CALLERS = frozenset({"CALL", "CALL_ONCE", "IF", "WHILE", "STABLEHLO_WHILE", "STABLEHLO_CASE"})
HANDLES = frozenset({"RESOURCE", "VARIANT"})


class RegistrationView(NamedTuple):
    """The operator of a node.

    builtin_code: a BuiltinOperator. custom_name: of a custom operator, or of the delegate that owns the node, else
    None. version: in the file. is_resolved: whether the interpreter has a kernel.
    """

    builtin_code: Any
    custom_name: str | None
    version: int
    is_resolved: bool

    @property
    def name(self) -> str:
        """The builtin's or the custom operator's name."""
        return self.builtin_code.name if self.custom_name is None else self.custom_name


class NodeView(NamedTuple):
    """A node, with its tensors as indices, -1 for an omitted one.

    number: its index. builtin_data: the builtin's options object, None if the file has none. custom_initial_data: a
    custom operator's bytes. delegate: the owner of the node, or None.
    """

    number: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...]
    temporaries: tuple[int, ...]
    builtin_data: Any
    custom_initial_data: bytes | None
    delegate: Delegate | None

    @property
    def options(self) -> Any:
        """builtin_data or custom_initial_data, as passed to a kernel's init."""
        return self.builtin_data if self.custom_initial_data is None else self.custom_initial_data


class DelegateContext:
    """A subgraph as seen by a delegate's prepare and the init of its kernels; invalid afterwards.

    subgraph_index; inputs, outputs: of the subgraph, indices of tensors; recommended_num_threads.
    """

    def __init__(
        self,
        subgraph: Subgraph,
        delegate: Delegate,
        replace: Callable[..., None],
        skip: Callable[[int], None],
        metadata: Callable[[str], Any],
        within: DelegateContext | None = None,
    ) -> None:
        self._subgraph, self._delegate, self._replace = subgraph, delegate, replace
        self._skip, self._metadata = skip, metadata
        self._views: list[TensorView] = []
        self.reported: list[str] = []
        self._open, self._within = True, within
        self.recommended_num_threads = subgraph.context.recommended_num_threads
        self.subgraph_index, self.subgraph_name = subgraph.index, subgraph.name
        self.inputs, self.outputs = tuple(subgraph.inputs), tuple(subgraph.outputs)

    # ---- to read ----------------------------------------------------------------------------------------------------

    @property
    def subgraph(self) -> Subgraph:
        """The subgraph itself, for delegates of this package."""
        return self._live()

    @property
    def execution_plan(self) -> list[int]:
        """Indices of the nodes to run, in order."""
        return [node.number for node in self._live().execution_plan]

    def get_execution_plan(self) -> list[int]:
        """Return `execution_plan`, under the official name."""
        return self.execution_plan

    def get_node_and_registration(self, node_index: int) -> tuple[NodeView, RegistrationView]:
        """Return a node and its operator. Raises InvalidArgumentError for an invalid index."""
        return view_of(self._node(node_index))

    @property
    def tensors(self) -> Sequence[TensorView]:
        """All tensors of the subgraph: type, shape, quantization, data of constants, is_dynamic."""
        tensors = self._live().tensors
        if len(self._views) != len(tensors):
            self._views = [TensorView(t, False) for t in tensors]
        return self._views

    def get_model_metadata(self, name: str) -> bytes | None:
        """Return the bytes of an entry of the model's metadata, None if there is none."""
        self._live()
        result: bytes | None = self._metadata(name)
        return result

    def report_error(self, message: str, *values: Any) -> None:
        """Report a problem; it becomes part of the error if the delegate fails."""
        text = str(message % values if values else message)
        self._live().context.report_error("%s", text)  # for a kernel's init
        self.reported.append(text)

    # ---- to change --------------------------------------------------------------------------------------------------

    def preview_delegate_partitioning(self, nodes: Iterable[int]) -> list[DelegateParams]:
        """Return the partitions that these nodes would form. Raises InvalidArgumentError as replacing does."""
        return partitions_of(self._live(), self._delegate, self._claimed(nodes))

    def replace_node_subsets_with_delegate_kernels(self, kernel: Any, nodes: Iterable[Any]) -> list[DelegateParams]:
        """Replace each partition of these nodes by one node that runs a kernel; return the partitions.

        kernel: a `DelegateKernel` class, a function that returns one, or a `Registration` (its init receives
        DelegateParams). nodes: indices of nodes in the execution plan, or partitions from
        `preview_delegate_partitioning`. raises InvalidArgumentError for a node that does not exist, is not in the plan
        or belongs to a delegate; TypeError for an invalid kernel; the errors of the kernel's init
        """
        subgraph, nodes_or_partitions = self._live(), list(nodes)
        if nodes_or_partitions and all(isinstance(p, DelegateParams) for p in nodes_or_partitions):
            self._claimed(i for p in nodes_or_partitions for i in p.nodes_to_replace)
            partitions = nodes_or_partitions
        else:
            partitions = partitions_of(subgraph, self._delegate, self._claimed(nodes_or_partitions))
        self._replace(kernel, partitions)
        return partitions

    def replace_in_order(self, kernel: Any, params: Sequence[DelegateParams], order: Sequence[Any]) -> None:
        """Replace partitions whose positions in the new execution plan are known; for delegates of this package.

        order: the numbers of remaining nodes, and [k] for the k-th partition; nodes in neither do not run
        """
        subgraph = self._live()

        def arrange(new_nodes: Sequence[Node]) -> list[Node]:
            return [new_nodes[entry[0]] if isinstance(entry, list) else subgraph.nodes[entry] for entry in order]

        self._replace(kernel, list(params), arrange)

    def add_tensor(
        self, dtype: Any | DType, shape: Iterable[int] = (), name: str = "", persistent: bool = False
    ) -> TensorView:
        """Return a new tensor that lives as long as the kernel whose init calls this; see Context.add_tensor."""
        return self._live().context.add_tensor(dtype, shape, name, persistent)

    def mark_subgraph_as_delegation_skippable(self, subgraph_index: int) -> None:
        """Mark another subgraph as run by a kernel, so that the delegate is not asked about it."""
        self._live()
        self._skip(subgraph_index)

    def acquire_subgraph_context(self, subgraph_index: int) -> DelegateContext:
        """Return a read-only context of another subgraph that a node calls. Raises InvalidArgumentError if there is
        none."""
        family = self._live().family
        if not 0 <= subgraph_index < len(family):
            raise InvalidArgumentError(what=f"no subgraph {subgraph_index}", wanted=f"0 to {len(family) - 1}")

        def refuse(*_: Any) -> None:
            raise FailedPreconditionError(
                what="nodes of another subgraph cannot be replaced from this one",
                found=f"subgraph {subgraph_index}",
                do="wait for its prepare",
            )

        return DelegateContext(family[subgraph_index], self._delegate, refuse, self._skip, self._metadata, self)

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _live(self) -> Subgraph:
        if not self._open or (self._within is not None and not self._within._open):
            raise FailedPreconditionError(
                what=FORBIDDEN, do="query it in the delegate's prepare or the kernel's init, and keep the results"
            )
        return self._subgraph

    def close(self) -> None:
        """Invalidate the context."""
        self._open = False

    def _node(self, index: Any) -> Node:
        nodes = self._live().nodes
        position = index.__index__()
        if not 0 <= position < len(nodes):
            raise InvalidArgumentError(what=f"no node {position}", wanted=f"0 to {len(nodes) - 1}")
        result: Node = nodes[position]
        return result

    def _claimed(self, indices: Iterable[int]) -> set[int]:
        """Return the positions of nodes in the plan. Raises InvalidArgumentError for a node that cannot be claimed."""
        positions = {node.number: position for position, node in enumerate(self._live().execution_plan)}
        claimed: set[int] = set()
        for index in indices:
            node = self._node(index)
            position = positions.get(node.number)
            if position is None or position in claimed or node.delegate is not None:
                what = (
                    "was replaced before"
                    if position is None
                    else "is claimed twice"
                    if position in claimed
                    else "is a delegate's"
                )
                raise InvalidArgumentError(
                    what=f"node {node.number} ({node.name}) {what}",
                    found=f"claimed by {self._delegate.name}",
                    wanted="unclaimed nodes of context.execution_plan",
                )
            claimed.add(position)
        return claimed


def view_of(node: Node) -> tuple[NodeView, RegistrationView]:
    """Return the node and its operator as delegates see them."""

    def numbers(tensors: Iterable[Any]) -> tuple[int, ...]:
        return tuple(-1 if t is None else t.index for t in tensors)

    delegate = node.delegate
    is_custom = type(node.options) is bytes
    if delegate is not None:
        code = schema.BuiltinOperator["DELEGATE"]
    else:
        code = schema.BuiltinOperator["CUSTOM" if is_custom else node.name]
    seen = NodeView(
        node.number,
        numbers(node.tensors_in),
        numbers(node.tensors_out),
        numbers(node.intermediates),
        numbers(node.temporaries),
        None if is_custom else node.options,
        node.options if is_custom else None,
        delegate,
    )
    own = node.name if is_custom or delegate is not None else None
    return seen, RegistrationView(code, own, node.version, node.registration is not None)


def dependencies_in(reads: Iterable[Sequence[int]], plan: Sequence[Node]) -> Dependencies:
    """Return the dependencies of the nodes of a plan. reads: the tensors that each depends on. Nodes with effects
    besides their outputs keep their order."""
    return dependencies_of(
        NodeAccess(read, [t.index for t in node.tensors_out], has_effects(node)) for read, node in zip(reads, plan)
    )


def reads_in(plan: Sequence[Node], claimed: set[int], delegate: Delegate) -> list[list[int]]:
    """Return the tensors that each node of a plan waits for, if a delegate claims the nodes at these positions.

    A folded node that stays waits for none, nor do the folded nodes that it was computed from. The shapes that it was
    computed from are valid as long as the plan: the delegation is undone when an input gets another shape, or shapes
    are propagated without the delegate.
    """
    flags = DelegateFlags(delegate.flags)
    fixed_shapes = (
        delegate.replan_on_resize
        or not flags & DelegateFlags.ALLOW_DYNAMIC_TENSORS
        or flags & DelegateFlags.REQUIRE_PROPAGATED_SHAPES
    )
    free: set[int] = set()  # outputs of such nodes
    reads = []
    for position, node in enumerate(plan):
        read = [t for t in node.tensors_in if t is not None]
        if (
            fixed_shapes
            and position not in claimed
            and is_folded(node)
            and all(t.kind != FOLDED or t.index in free for t in read)
        ):
            free.update(t.index for t in node.tensors_out)
            read = []
        reads.append([t.index for t in read])
    return reads


def has_effects(node: Node) -> bool:
    """Return whether a node has side effects; such nodes keep their relative order."""
    if not node.tensors_in and all(getattr(t.type, "name", "") in HANDLES for t in node.tensors_out):
        return not node.tensors_out  # creating a handle does not touch its resource
    touched: list[Tensor | None] = [*node.tensors_in, *node.tensors_out]
    if node.name == "STABLEHLO_COMPOSITE" and node.options is not None:
        body = node.subgraph.family[int(node.options.decomposition_subgraph_index)]
        return any(map(has_effects, body.nodes))
    return (
        not node.tensors_out
        or node.name in CALLERS
        or getattr(getattr(node.registration, "operator", None), "effect", None) == "write"
        or any(t is not None and (t.is_variable or getattr(t.type, "name", "") in HANDLES) for t in touched)
        or any(has_effects(n) for n in node.replaced)
    )


def partitions_of(subgraph: Subgraph, delegate: Delegate, claimed: set[int]) -> list[DelegateParams]:
    """Return the partitions of claimed positions of the plan, in the order of their first nodes."""
    plan = subgraph.execution_plan
    reads = reads_in(plan, claimed, delegate)
    groups = partition(dependencies_in(reads, plan), claimed, not delegate.merges_disconnected)
    readers: dict[int, set[int]] = {}
    for position, read in enumerate(reads):
        for i in read:
            readers.setdefault(i, set()).add(position)
    results = set(subgraph.outputs)
    partitions = []
    for group in groups:
        inside, outputs_inside, inputs = set(group), set[int](), set[int]()
        for position in group:
            inputs |= {t.index for t in plan[position].tensors_in if t is not None} - outputs_inside
            outputs_inside |= {t.index for t in plan[position].tensors_out}
        outputs = {i for i in outputs_inside if i in results or readers.get(i, set()) - inside}
        partitions.append(
            DelegateParams(
                delegate,
                tuple(plan[position].number for position in group),
                tuple(sorted(inputs)),
                tuple(sorted(outputs)),
            )
        )
    return partitions


def new_plan(plan: Sequence[Node], params: Sequence[DelegateParams], new_nodes: Sequence[Node]) -> list[Node]:
    """Return the plan with the nodes of each partition replaced by its new node.

    raises InvalidArgumentError for partitions that depend on each other
    """
    positions = {node.number: position for position, node in enumerate(plan)}
    groups = [[positions[i] for i in p.nodes_to_replace] for p in params]
    try:
        order = schedule(dependencies_in(reads_in(plan, set().union(*groups), params[0].delegate), plan), groups)
    except ValueError:
        raise InvalidArgumentError(
            what="the partitions form a dependency cycle",
            found=[p.nodes_to_replace for p in params],
            do="pass the nodes, or the partitions of the preview",
        ) from None
    return [plan[position] if group is None else new_nodes[group] for group, position in order]
