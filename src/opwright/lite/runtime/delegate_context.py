"""What a delegate sees of a subgraph while it prepares, and what it can ask for.

Lives here: `DelegateContext`, `NodeView`, `RegistrationView`, claims turned into partitions.
Not here: replacing nodes (delegation.py), which nodes become one (compiler/partitions.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...compiler.partitions import Dependencies, NodeAccess, dependencies_of, partition, schedule
from ...core.dtypes import DType
from ...core.errors import FailedPreconditionError, InvalidArgumentError
from ..delegate import Delegate, DelegateFlags, DelegateParams
from ..format import schema
from .node import Node
from .shape_constant_folding import is_folded
from .tensor import FOLDED, Tensor, TensorView

if TYPE_CHECKING:
    from .subgraph import Subgraph

FORBIDDEN = "The function is forbidden if not calling in delegate."
CALLERS = frozenset({"CALL", "CALL_ONCE", "IF", "WHILE", "STABLEHLO_WHILE", "STABLEHLO_CASE", "STABLEHLO_COMPOSITE"})
HANDLES = frozenset({"RESOURCE", "VARIANT"})


class RegistrationView(NamedTuple):
    """The operator of a node. builtin_code: a BuiltinOperator; custom_name: of a custom operator or of the delegate
    whose node it is, else None; version: as the file has it; is_resolved: whether the interpreter has a kernel."""

    builtin_code: Any
    custom_name: str | None
    version: int
    is_resolved: bool

    @property
    def name(self) -> str:
        """The builtin's name, or the custom operator's."""
        return self.builtin_code.name if self.custom_name is None else self.custom_name


class NodeView(NamedTuple):
    """A node, its tensors as indices, -1 for one left out. number: its index; builtin_data: the builtin's options
    object, None where the file has none; custom_initial_data: a custom operator's bytes; delegate: the one whose node
    it is, or None."""

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
        """builtin_data or custom_initial_data, as a kernel's init gets them."""
        return self.builtin_data if self.custom_initial_data is None else self.custom_initial_data


class DelegateContext:
    """A subgraph, as a delegate's prepare and the init of its kernels see it; refuses service after that.

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
        """The subgraph itself: for delegates of this package."""
        return self._live()

    @property
    def execution_plan(self) -> list[int]:
        """Indices of the nodes that run, in order."""
        return [node.number for node in self._live().execution_plan]

    def get_execution_plan(self) -> list[int]:
        """As `execution_plan`, under the field's name."""
        return self.execution_plan

    def get_node_and_registration(self, node_index: int) -> tuple[NodeView, RegistrationView]:
        """A node and its operator. Raises InvalidArgumentError for an index that is none."""
        return view_of(self._node(node_index))

    @property
    def tensors(self) -> Sequence[TensorView]:
        """All tensors of the subgraph: type, shape, quantization; data of constants; is_dynamic."""
        tensors = self._live().tensors
        if len(self._views) != len(tensors):
            self._views = [TensorView(t, False) for t in tensors]
        return self._views

    def get_model_metadata(self, name: str) -> bytes | None:
        """The bytes of an entry of the model's metadata; None where there is none."""
        self._live()
        return self._metadata(name)

    def report_error(self, message: str, *values: Any) -> None:
        """Say what is wrong; it becomes part of the error if the delegate fails."""
        text = str(message % values if values else message)
        self._live().context.report_error("%s", text)  # of a kernel's init, if that is what runs
        self.reported.append(text)

    # ---- to change --------------------------------------------------------------------------------------------------

    def preview_delegate_partitioning(self, nodes: Iterable[int]) -> list[DelegateParams]:
        """The partitions that these nodes would become. Raises InvalidArgumentError as replacing does."""
        return partitions_of(self._live(), self._delegate, self._claimed(nodes))

    def replace_node_subsets_with_delegate_kernels(self, kernel: Any, nodes: Iterable[Any]) -> list[DelegateParams]:
        """Replace each partition of these nodes by one node that runs a kernel; the partitions.

        kernel: a `DelegateKernel` class, a function that makes one, or a `Registration` (its init gets DelegateParams).
        nodes: indices of nodes in the execution plan, or partitions that `preview_delegate_partitioning` gave.
        raises InvalidArgumentError for a node that is none, is not in the plan or is a delegate's; TypeError for
        another kernel; what the kernel's init raises
        """
        subgraph, given = self._live(), list(nodes)
        if given and all(isinstance(p, DelegateParams) for p in given):
            self._claimed(i for p in given for i in p.nodes_to_replace)
            found = given
        else:
            found = partitions_of(subgraph, self._delegate, self._claimed(given))
        self._replace(kernel, found)
        return found

    def replace_in_order(self, kernel: Any, params: Sequence[DelegateParams], order: Sequence[Any]) -> None:
        """As above, for partitions whose place in the new execution plan is known: for delegates of this package.

        order: the numbers of nodes that stay, and [k] for the k-th partition; nodes in neither do not run
        """
        subgraph = self._live()

        def arrange(made: Sequence[Node]) -> list[Node]:
            return [made[entry[0]] if isinstance(entry, list) else subgraph.nodes[entry] for entry in order]

        self._replace(kernel, list(params), arrange)

    def add_tensor(
        self, dtype: Any | DType, shape: Iterable[int] = (), name: str = "", persistent: bool = False
    ) -> TensorView:
        """In a kernel's init, a new tensor that lives as long as the kernel; as Context.add_tensor."""
        return self._live().context.add_tensor(dtype, shape, name, persistent)

    def mark_subgraph_as_delegation_skippable(self, subgraph_index: int) -> None:
        """Say that a kernel runs another subgraph itself, so that the delegate need not be asked about it."""
        self._live()
        self._skip(subgraph_index)

    def acquire_subgraph_context(self, subgraph_index: int) -> DelegateContext:
        """Another subgraph, one that a node calls, to be read. Raises InvalidArgumentError where there is none."""
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
                what=FORBIDDEN, do="ask in the delegate's prepare or the kernel's init, and keep what was answered"
            )
        return self._subgraph

    def close(self) -> None:
        """From here on it refuses service."""
        self._open = False

    def _node(self, index: Any) -> Node:
        nodes = self._live().nodes
        place = index.__index__()
        if not 0 <= place < len(nodes):
            raise InvalidArgumentError(what=f"no node {place}", wanted=f"0 to {len(nodes) - 1}")
        return nodes[place]

    def _claimed(self, indices: Iterable[int]) -> set[int]:
        """Places in the plan. Raises InvalidArgumentError for what cannot be claimed."""
        places = {node.number: place for place, node in enumerate(self._live().execution_plan)}
        claimed: set[int] = set()
        for index in indices:
            node = self._node(index)
            place = places.get(node.number)
            if place is None or place in claimed or node.delegate is not None:
                what = (
                    "was replaced before"
                    if place is None
                    else "is claimed twice"
                    if place in claimed
                    else "is a delegate's"
                )
                raise InvalidArgumentError(
                    what=f"node {node.number} ({node.name}) {what}",
                    found=f"claimed by {self._delegate.name}",
                    wanted="nodes of context.execution_plan that are free",
                )
            claimed.add(place)
        return claimed


def view_of(node: Node) -> tuple[NodeView, RegistrationView]:
    """The node and its operator as delegates see them."""

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
    """The tensors that each node of a plan waits for, where a delegate claims the nodes at these places.

    A folded node waits for none, if it stays, and so do the nodes that it was computed from, and the shapes that it
    was computed from hold as long as the plan does: the delegate's nodes are taken back when an input gets another, or
    shapes are worked out without them.
    """
    flags = DelegateFlags(delegate.flags)
    hold = (
        delegate.anew
        or not flags & DelegateFlags.ALLOW_DYNAMIC_TENSORS
        or flags & DelegateFlags.REQUIRE_PROPAGATED_SHAPES
    )
    free: set[int] = set()  # tensors that such nodes made
    found = []
    for place, node in enumerate(plan):
        read = [t for t in node.tensors_in if t is not None]
        if hold and place not in claimed and is_folded(node) and all(t.kind != FOLDED or t.index in free for t in read):
            free.update(t.index for t in node.tensors_out)
            read = []
        found.append([t.index for t in read])
    return found


def has_effects(node: Node) -> bool:
    """Whether a node does more than write its outputs: it keeps its place among all such nodes."""
    if not node.tensors_in and all(getattr(t.type, "name", "") in HANDLES for t in node.tensors_out):
        return not node.tensors_out  # a handle says which variable or table, and leaves it as it is
    touched: list[Tensor | None] = [*node.tensors_in, *node.tensors_out]
    return (
        not node.tensors_out
        or node.name in CALLERS
        or any(t is not None and (t.is_variable or getattr(t.type, "name", "") in HANDLES) for t in touched)
        or any(has_effects(n) for n in node.replaced)
    )


def partitions_of(subgraph: Subgraph, delegate: Delegate, claimed: set[int]) -> list[DelegateParams]:
    """The partitions of claimed places of the plan, in the order of their first nodes."""
    plan = subgraph.execution_plan
    reads = reads_in(plan, claimed, delegate)
    found = partition(dependencies_in(reads, plan), claimed, not delegate.gathers)
    readers: dict[int, set[int]] = {}
    for place, read in enumerate(reads):
        for i in read:
            readers.setdefault(i, set()).add(place)
    given = set(subgraph.outputs)
    made = []
    for group in found:
        inside, written, inputs = set(group), set[int](), set[int]()
        for place in group:
            inputs |= {t.index for t in plan[place].tensors_in if t is not None} - written
            written |= {t.index for t in plan[place].tensors_out}
        outputs = {i for i in written if i in given or readers.get(i, set()) - inside}
        made.append(
            DelegateParams(
                delegate, tuple(plan[place].number for place in group), tuple(sorted(inputs)), tuple(sorted(outputs))
            )
        )
    return made


def new_plan(plan: Sequence[Node], params: Sequence[DelegateParams], made: Sequence[Node]) -> list[Node]:
    """The plan with each partition's nodes replaced by the node made for it.

    raises InvalidArgumentError for partitions of nodes that depend on each other
    """
    places = {node.number: place for place, node in enumerate(plan)}
    groups = [[places[i] for i in p.nodes_to_replace] for p in params]
    try:
        order = schedule(dependencies_in(reads_in(plan, set().union(*groups), params[0].delegate), plan), groups)
    except ValueError:
        raise InvalidArgumentError(
            what="the partitions depend on each other in a circle",
            found=[p.nodes_to_replace for p in params],
            do="give the nodes, or what the preview returned",
        ) from None
    return [plan[place] if group is None else made[group] for group, place in order]
