"""The delegate that runs nodes with kernels as machine code: the interpreter's default engine.

Lives here: `CompiledDelegate`, the driver of the pipeline: when which nodes are claimed.
Not here: its stages, in their order

    cached_partitions.py    partitions that an earlier process planned, in place of all the others
    partition_plans.py      claim eligible nodes and lower them to loop operations; fuse and plan each partition
    plan_registration.py    bind a plan to the interpreter's tensors; for run-time sizes: specialised.py

Nodes without a kernel are left to the interpreter, and the others are partitioned again. Shapes are those of the file
where they follow from the inputs' by the rules; where a node stays with the interpreter, or an input has another shape
than in the file, the interpreter infers all shapes first. Either way each node's operator has prepared it before
it is claimed, so both engines reject the same nodes.

Nodes whose sizes are determined at run time are left open. After a run they are claimed for plans for the sizes of that
run (specialised.py).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...compiler import tuning
from ...compiler.background import Job, compiling
from ...compiler.native.image import runs_images
from ...core import flags
from ...core.lazy_imports import later
from ..delegate import Delegate, DelegateFlags, DelegateParams
from ..registration import Registration
from ..runtime.dynamic_shapes import is_folded
from ..runtime.node import Node
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import DYNAMIC
from .cached_partitions import PartitionCache
from .eligibility import COUNTED, Seen, callers_of, has_run, open_nodes, seen_by
from .plan_registration import PlanRegistration

if TYPE_CHECKING:
    from ...compiler.loops.plans import LoopPlan
    from ..runtime.delegate_context import DelegateContext
    from . import partition_plans, specialised
    from .partition_plans import ClaimedNode, Refusals, TensorBuffers
else:  # a model planned before runs without
    partition_plans, specialised = later(".partition_plans", __package__), later(".specialised", __package__)

MOST_IDLE = 3
"""Runs of the model after which subgraphs that have not run are ignored."""


class CompiledDelegate(Delegate):
    """Claim all nodes with rules and kernels. One delegate serves one interpreter.

    key: text that identifies the model; identity: text that identifies its bytes, None if its plans are not cached;
    background: whether a thread compiles. late: whether nodes are claimed by `claim_after_prepare` only. After prepare:
    cache, with plans to be saved; failure, the reason why nothing can be compiled. seen: by subgraph, elements that its
    open nodes read in a run, before plans for its sizes are built; tried: subgraphs for which this was attempted.
    """

    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS | DelegateFlags.PER_OPERATOR_PROFILING
    replan_on_resize = merges_disconnected = True

    def __init__(self, key: str = "", identity: str | None = None, background: bool = False) -> None:
        self._key, self._background = key, background
        self.cache = PartitionCache(identity, lambda subgraph, numbers: self._planner.codes(subgraph, numbers))
        self.late = False
        self._untried: set[int] = set()  # subgraphs whose cached plans have not been looked for
        self.failure: Exception | None = None
        self.seen: dict[int, Seen] = {}
        self.tried: set[int] = set()
        self._idle: dict[int, int] = {}
        self._callers: dict[int, set[str]] | None = None

    @property
    def name(self) -> str:
        return "Opwright"

    @functools.cached_property
    def _planner(self) -> partition_plans.PartitionPlanner:
        return partition_plans.PartitionPlanner(self._key, self._background)

    @property
    def refused(self) -> Refusals:
        """Reasons why nodes remain with the interpreter, by subgraph and node."""
        return self._planner.refused

    @property
    def pending(self) -> list[partition_plans.PendingCompilation]:
        """Graphs to compile first; nothing is claimed meanwhile."""
        return self._planner.pending if "_planner" in vars(self) else []

    def take_pending(self) -> functools.partial[None]:
        """Return the work of compiling pending graphs."""
        return functools.partial(partition_plans.compile_pending, self._planner.key, self._planner.pending)

    def forget_pending(self) -> None:
        """Clear pending graphs, which were compiled or are being compiled."""
        if "_planner" in vars(self):
            self._planner.pending = []

    def prepare(self, context: DelegateContext) -> None:
        """Claim a graph if every node has a rule. Otherwise nodes are claimed once shapes are known.

        Kernels would not pay in subgraphs of CALL_ONCE, which run once. Decompositions are a part of their callers'
        plans: one that runs by itself is claimed when it is allocated.
        """
        subgraph = context.subgraph
        self.seen.pop(subgraph.index, None)
        self.tried.discard(subgraph.index)
        if self._callers is None:
            self._callers = callers_of(subgraph.family)
        callers = self._callers[subgraph.index]
        if callers == {"CALL_ONCE"}:
            self.tried.add(subgraph.index)
            return
        if self.late:
            self._untried.add(subgraph.index)
            return
        if callers == {"STABLEHLO_COMPOSITE"}:
            self._untried.add(subgraph.index)
            subgraph.delegation.late = self
            return
        if self.cache.replace(context, self):
            return
        prepared = self._planner.prepare_and_claim(subgraph)
        covers_plan = prepared is not None and len(prepared[0]) == len(subgraph.execution_plan)
        if prepared is None or not (covers_plan and self._replace(context, *prepared, True)):
            subgraph.delegation.late = None if self.pending else self

    def claim_after_prepare(self, context: DelegateContext) -> None:
        """Claim the prepared nodes with rules and kernels; or, if open nodes have been observed, those for plans for
        the observed sizes."""
        subgraph = context.subgraph
        if subgraph.index in self._untried:
            self._untried.discard(subgraph.index)
            if self.cache.replace(context, self):
                return
        seen = self.seen.get(subgraph.index)
        if seen is None:
            claims = self._planner.claim(subgraph, subgraph.execution_plan, lambda t: t.kind != DYNAMIC)
            if not self._replace(context, *claims, False):
                self._note_unclaimed(subgraph)
            return
        nodes = [node for node in open_nodes(subgraph) if has_run(node)]
        others = [node for node in nodes if node.name not in COUNTED]
        for group in (*([node] for node in nodes if node.name in COUNTED), others):
            self._replace(context, *self._claim_at_run(subgraph, group, seen), False)
        if not self.pending:
            del self.seen[subgraph.index]
            self.tried.add(subgraph.index)

    def _replace(
        self, context: DelegateContext, claimed: dict[int, ClaimedNode], buffers: TensorBuffers, all_or_none: bool
    ) -> bool:
        """Plan and replace claimed nodes; return whether there are any, all have kernels, and these are compiled."""
        try:
            return self._planned(context, claimed, buffers, all_or_none)
        except Exception as error:
            if flags.verify:
                raise
            self.failure = error
            return False

    def _planned(
        self, context: DelegateContext, claimed: dict[int, ClaimedNode], buffers: TensorBuffers, all_or_none: bool
    ) -> bool:
        subgraph, planner = context.subgraph, self._planner
        count = sum(not is_folded(node) for node in subgraph.execution_plan)
        while claimed:
            params = context.preview_delegate_partitioning(claimed)
            torn = {
                i
                for p in params
                for n in p.nodes_to_replace
                for i in claimed[n].together
                if not set(claimed[n].together) <= set(p.nodes_to_replace)
            }
            if torn:
                claimed = {number: c for number, c in claimed.items() if number not in torn}
                continue
            planner.measured[subgraph.index] = tuning.is_on()
            planned = [planner.plan(subgraph, p, claimed, buffers) for p in params]
            if planner.pending:
                return False
            plans = [plan for plan in planned if plan is not None]
            if len(plans) == len(params):
                self._register(context, params, plans, buffers, len(claimed) == count)
                return True
            if all_or_none:
                return False
        return False

    def _register(
        self,
        context: DelegateContext,
        params: list[DelegateParams],
        plans: list[LoopPlan],
        buffers: TensorBuffers,
        covers_plan: bool,
    ) -> None:
        subgraph = context.subgraph
        uses = [partition_plans.uses_of(plan, buffers) for plan in plans] if buffers.seen is None else []
        if buffers.seen is None:
            registrations: list[Registration] = [*map(PlanRegistration, plans, uses)]
        else:
            registrations = [self._specialised_registration(subgraph, *one, buffers) for one in zip(params, plans)]
        context.replace_node_subsets_with_delegate_kernels(registrations[::-1].pop, params)
        if buffers.seen is None:
            measured = self._planner.measured.get(subgraph.index, False)
            self.cache.note(subgraph, self, params, plans, uses, covers_plan, measured)

    def _note_unclaimed(self, subgraph: Subgraph) -> None:
        """Schedule saving that nothing of a subgraph can be compiled, so that later processes need not try. With
        variables it is not saved: whether a rule takes a node depends on their values at that time."""
        nodes = subgraph.execution_plan
        tensors = [t for node in nodes for t in (*node.tensors_in, *node.tensors_out) if t is not None]
        is_final = not self.pending and self.failure is None and all(node.delegate is None for node in nodes)
        if is_final and not any(t.is_object or t.is_variable for t in tensors):
            self.cache.note(subgraph, self, [], [], [], False, False)

    def is_open(self, subgraph: Subgraph) -> bool:
        """Return whether plans for sizes that are determined at run time are still to be built."""
        closed = subgraph.index in self.tried or self.pending or self.failure
        return not closed and runs_images() and bool(open_nodes(subgraph))

    def record_sizes(self, subgraph: Subgraph) -> None:
        """Record the elements from which sizes follow, after a run."""
        nodes = [node for node in open_nodes(subgraph) if has_run(node)]
        if nodes:
            self.seen[subgraph.index] = seen_by(nodes)
            return
        idle = self._idle[subgraph.index] = self._idle.get(subgraph.index, 0) + 1
        if idle >= MOST_IDLE:  # such as a branch that is not executed
            self.tried.add(subgraph.index)

    def _claim_at_run(
        self, subgraph: Subgraph, nodes: Sequence[Node], seen: Seen
    ) -> tuple[dict[int, ClaimedNode], TensorBuffers]:
        return self._planner.claim(subgraph, nodes, lambda t: True, seen)

    def _specialised_registration(
        self, subgraph: Subgraph, params: DelegateParams, plan: LoopPlan, buffers: TensorBuffers
    ) -> Registration:
        first = _specialised(subgraph, plan, params, buffers)
        return specialised.SpecialisedRegistration(first, functools.partial(self._specialised_again, params))

    def _specialised_again(
        self, params: DelegateParams, node: Node, seen: Seen
    ) -> specialised.Specialised | Job | None:
        """Return a plan for a partition and the sizes of its last run; the job if kernels must be compiled first, None
        if there is no plan."""
        subgraph = node.subgraph
        claimed, buffers = self._claim_at_run(subgraph, node.replaced, seen)
        if len(claimed) != len(node.replaced):
            return None
        plan = self._planner.plan(subgraph, params, claimed, buffers)
        if self.pending:
            work = self.take_pending()
            self.forget_pending()
            return compiling.submit(work)
        return None if plan is None else _specialised(subgraph, plan, params, buffers)


def _specialised(
    subgraph: Subgraph, plan: LoopPlan, params: DelegateParams, buffers: TensorBuffers
) -> specialised.Specialised:
    assumed = partition_plans.assumed_outside(subgraph, params, buffers)
    return specialised.Specialised(plan, assumed, [*buffers.counts])
