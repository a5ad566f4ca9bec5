"""The delegate that runs what has kernels as machine code: the interpreter's default engine.

Lives here: `CompiledDelegate`: which nodes it takes.
Not here: what forms nodes become (rules/), their loop graphs (graphs.py), fusion and plans (compiler/loops/), running a
plan as a node (kernel.py, specialised.py).

Nodes are taken by rule; the partitions of those that have one become loop graphs, which are fused and planned. What no
kernel does is left to the interpreter, and the rest is looked at again. Shapes are those of the file where they follow
from the inputs' by the rules; where a node stays with the interpreter, or an input has another shape than the file
says, the interpreter works out all shapes first. Either way each node's operator has prepared it before it is taken: so
what an operator refuses is refused whichever engine would have run it.

Nodes whose sizes are known only as the model runs are left open. After a run they are taken by plans for the sizes
that they had then (assuming.py, specialised.py).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...compiler import plan_cache, tuning
from ...compiler.background import Job, compiling
from ...compiler.kernels import Unmade
from ...compiler.loops.forms import Form
from ...compiler.loops.fusion import fused
from ...compiler.loops.graph import LoopGraph
from ...compiler.loops.planning import plan_of
from ...compiler.loops.plans import Plan
from ...compiler.lowering.context import Buffers, LoweringContext, NoLowering
from ...compiler.lowering.registry import lower
from ...compiler.native.image import runs_images
from ...compiler.native.store import NotCached, compiling_beside, only_cached, pack
from ...compiler.tuning.loading import tune
from ...core import flags
from ...core.errors import OpError
from ..delegate import Delegate, DelegateFlags, DelegateParams
from ..registration import Registration
from ..runtime.node import Node
from ..runtime.settling import is_settled
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import DYNAMIC
from .assuming import Seen, assumed_outside, has_run, open_nodes, seen_by
from .graphs import Cold, Taken, compile_all, graph_of, numbers, packed_as, uses_of
from .keeping import Made, constants_of, note_of, replace_as_kept
from .kernel import PlanRegistration
from .nodes import InterpreterNode, operand_of
from .rules import COUNTED
from .rules.written import Codes, codes_of
from .serving import check, only_initialises, read_early, rewritten, served_elsewhere
from .specialised import Specialised, SpecialisedRegistration

if TYPE_CHECKING:
    from ..runtime.delegate_context import DelegateContext
    from .rules.row_updates import RowUpdate


MOST_IDLE = 3
"""Runs of the model after which a subgraph that has not run is not waited for any more."""


class CompiledDelegate(Delegate):
    """Takes every node that rules and kernels know. One serves one interpreter.

    key: text that stands for the model; identity: text that stands for its bytes, None for one whose plans are not
    kept; background: whether a thread compiles. late: whether nodes are to be taken by `take` alone. After prepare:
    made, what is to be kept for later processes; whole, the key of a kept plan that runs all nodes of the main
    subgraph; refused, by subgraph and node, why a node stays with the interpreter; cold, what is to be compiled first
    (nothing is taken meanwhile); failure, why nothing can be compiled. seen: by subgraph, what its open nodes read at a
    run, before plans for its sizes are made; settled: the subgraphs that this has been tried for.
    """

    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS | DelegateFlags.PER_OPERATOR_PROFILING
    anew = gathers = True

    def __init__(self, key: str = "", identity: str | None = None, background: bool = False) -> None:
        self._key, self._identity, self._background = key, identity, background
        self.late = False
        self._untried: set[int] = set()  # subgraphs whose kept plans have not been looked for
        self._codes: dict[int, Codes] = {}  # by subgraph, what its plans hang on beside the file
        self._measured: dict[int, bool] = {}  # by subgraph, whether all choices of its plans were measured
        self.made: list[Made] = []
        self.whole: str | None = None
        self.refused: dict[tuple[int, int], str] = {}
        self.cold: list[Cold] = []
        self.failure: Exception | None = None
        self.seen: dict[int, Seen] = {}
        self.settled: set[int] = set()
        self._idle: dict[int, int] = {}

    @property
    def name(self) -> str:
        return "Opwright"

    def prepare(self, context: DelegateContext) -> None:
        """Take a graph whose every node has a rule. Else the nodes that have one are taken once shapes are known."""
        subgraph = context.subgraph
        self.seen.pop(subgraph.index, None)
        self.settled.discard(subgraph.index)
        if only_initialises(subgraph):
            self.settled.add(subgraph.index)
            return
        if self.late:
            self._untried.add(subgraph.index)
            return
        if self._thaw(context):
            return
        updates = _row_updates(subgraph)
        whole, buffers = self._prepared(subgraph, updates), Buffers(operand_of)
        taken = self._taken(subgraph.execution_plan, buffers, None, updates) if whole else {}
        whole = whole and len(taken) == len(subgraph.execution_plan)
        if not (whole and self._guarded(context, taken, buffers, True)):
            subgraph.delegation.late = None if self.cold else self

    def _prepared(self, subgraph: Subgraph, updates: Sequence[RowUpdate]) -> bool:
        """Prepare every node by its operator, except nodes that update rows of lists; return whether all succeed.

        A result whose shape is known only at run time has the file's shape here; the rule checks that shape.
        """
        replacing = {node.number for u in updates for node in (*u.parts, u.whole)}
        nodes = [node for node in subgraph.execution_plan if node.number not in replacing]

        def prepare(node: Node) -> None:
            check(node)
            kinds = [(t, t.kind) for t in node.tensors_out]
            subgraph.prepare(node)
            for t, kind in kinds:
                if t.kind == DYNAMIC:
                    t.set_kind(kind)

        try:
            return not subgraph.prepare_all(nodes, prepare)
        except (NoLowering, OpError):  # the allocation says so
            return False

    def take(self, context: DelegateContext) -> None:
        """Take the nodes that have rules and kernels, now that the interpreter has prepared them all; or, where open
        nodes have been seen to run, those by plans for the sizes that they had."""
        subgraph = context.subgraph
        if subgraph.index in self._untried:
            self._untried.discard(subgraph.index)
            if self._thaw(context):
                return
        seen = self.seen.get(subgraph.index)
        if seen is None:
            buffers = Buffers(operand_of)
            taken = self._taken(subgraph.execution_plan, buffers, lambda t: t.kind != DYNAMIC, ())
            self._guarded(context, taken, buffers, False)
            return
        nodes = [node for node in open_nodes(subgraph) if has_run(node)]
        others = [node for node in nodes if node.name not in COUNTED]
        for group in (*([node] for node in nodes if node.name in COUNTED), others):
            buffers = Buffers(operand_of, seen)
            self._guarded(context, self._taken(group, buffers, lambda t: True, ()), buffers, False)
        if not self.cold:
            del self.seen[subgraph.index]
            self.settled.add(subgraph.index)

    # ---- plans for sizes that were seen -----------------------------------------------------------------------------

    def is_open(self, subgraph: Subgraph) -> bool:
        """Whether plans for sizes that nodes have only as they run are still to be made."""
        return not (subgraph.index in self.settled or self.cold or self.failure) and runs_images() \
            and bool(open_nodes(subgraph))  # fmt: skip

    def look(self, subgraph: Subgraph) -> None:
        """After a run, remember what sizes may follow from."""
        nodes = [node for node in open_nodes(subgraph) if has_run(node)]
        if nodes:
            self.seen[subgraph.index] = seen_by(nodes)
            return
        idle = self._idle[subgraph.index] = self._idle.get(subgraph.index, 0) + 1
        if idle >= MOST_IDLE:  # a branch, say, that nobody takes
            self.settled.add(subgraph.index)

    def _again(self, params: DelegateParams, node: Node, seen: Seen) -> Specialised | Job | None:
        """A plan for a partition and the sizes that its nodes have just had; the job where kernels are to be compiled
        first, None where there is none."""
        subgraph, buffers = node.subgraph, Buffers(operand_of, seen)
        taken = self._taken(node.replaced, buffers, lambda t: True, ())
        if len(taken) != len(node.replaced):
            return None
        plan = self._plan(subgraph, params, taken, buffers)
        cold, self.cold = self.cold, []
        if cold:
            return compiling.submit(functools.partial(compile_all, self._key, cold))
        return None if plan is None else self._specialised(subgraph, plan, params, buffers)

    def _specialised(self, subgraph: Subgraph, plan: Plan, params: DelegateParams, buffers: Buffers) -> Specialised:
        return Specialised(plan, assumed_outside(subgraph, params, buffers), [*buffers.counts])

    def _guarded(self, context: DelegateContext, taken: dict[int, Taken], buffers: Buffers, all_or_none: bool) -> bool:
        try:
            return self._claim(context, taken, buffers, all_or_none)
        except Exception as error:
            if flags.verify:
                raise
            self.failure = error
            return False

    def _claim(self, context: DelegateContext, taken: dict[int, Taken], buffers: Buffers, all_or_none: bool) -> bool:
        """Replace the nodes that have kernels, too; whether there were any, and kernels in the cache."""
        count = sum(not is_settled(node) for node in context.subgraph.execution_plan)
        while taken:
            params = context.preview_delegate_partitioning(taken)
            torn = {i for p in params for n in p.nodes_to_replace for i in taken[n].together
                    if not set(taken[n].together) <= set(p.nodes_to_replace)}  # fmt: skip
            if torn:
                taken = {number: t for number, t in taken.items() if number not in torn}
                continue
            self._measured[context.subgraph.index] = tuning.is_on()
            plans = [self._plan(context.subgraph, p, taken, buffers) for p in params]
            if self.cold:
                return False
            if all(plan is not None for plan in plans):
                found = [plan for plan in plans if plan is not None]
                made = [self._registration(context.subgraph, plan, p, buffers) for plan, p in zip(found, params)][::-1]
                context.replace_node_subsets_with_delegate_kernels(made.pop, params)
                if buffers.seen is None:
                    self._note(context.subgraph, params, found, buffers, len(taken) == count)
                return True
            if all_or_none:
                return False
        return False

    def _registration(self, subgraph: Subgraph, plan: Plan, params: DelegateParams, buffers: Buffers) -> Registration:
        if buffers.seen is None:
            return PlanRegistration(plan, uses_of(plan, buffers))
        first = self._specialised(subgraph, plan, params, buffers)
        return SpecialisedRegistration(first, functools.partial(self._again, params))

    # ---- plans of earlier processes ---------------------------------------------------------------------------------

    def _plan_key(self, subgraph: Subgraph) -> str | None:
        """What plans of a subgraph are kept under; None where none are to be."""
        codes = self._codes.get(subgraph.index)
        if self._identity is None or codes is None:
            return None
        shapes = [subgraph.tensors[i].shape for i in subgraph.inputs]
        others = [node.number for node in subgraph.execution_plan if node.delegate is None and served_elsewhere(node)]
        return f"{self._identity} {subgraph.index} {shapes} {sorted(subgraph.changing)} {others} "\
            f"{sorted((i, repr(resource)) for i, resource in subgraph.handles.items())} {codes.text}"

    def _note(self, subgraph: Subgraph, params: list[DelegateParams], plans: list[Plan], buffers: Buffers, whole: bool
              ) -> None:  # fmt: skip
        """Have a subgraph's plans kept. Nodes of other delegates, and users' code that is in a plan and was not seen
        when the key was made, forbid it."""
        key, taken = self._plan_key(subgraph), {i for p in params for i in p.nodes_to_replace}
        if key is None or self._codes[subgraph.index].unseen & taken \
                or any(node.delegate not in (None, self) for node in subgraph.execution_plan):  # fmt: skip
            return
        note = note_of(subgraph, params, [uses_of(plan, buffers) for plan in plans])
        whole = whole and len(plans) == 1 and subgraph.index == 0
        key = plan_cache.key_with_modes(key, self._measured.get(subgraph.index, False))
        self.made.append(Made(key, plans, note, constants_of(subgraph), whole))

    def _thaw(self, context: DelegateContext) -> bool:
        """Take nodes by the plans that an earlier process has kept; whether there were any."""
        subgraph = context.subgraph
        codes = codes_of(subgraph)
        if codes is None:
            self._codes.pop(subgraph.index, None)
        else:
            self._codes[subgraph.index] = codes
        base = self._plan_key(subgraph)
        kept = ((key, plan_cache.find(key)) for key in (() if base is None else plan_cache.keys_of(base)))
        key, found = next((pair for pair in kept if pair[1] is not None), ("", None))
        if found is None or [n.number for n in subgraph.execution_plan] != found.note["nodes"]:
            return False
        parts = found.note["parts"]
        try:
            for number in {i for part in parts for i in part["nodes"]}:
                check(subgraph.nodes[number])
        except NoLowering:
            return False  # other kernels serve it this time
        replace_as_kept(context, self, found, key)
        if subgraph.index == 0 and found.note["order"] == [[0]]:
            self.whole = key
        return True

    # ---- which nodes ------------------------------------------------------------------------------------------------

    def _taken(self, asked: Sequence[Node], buffers: Buffers, known: Callable[[Any], bool] | None,
               rows: Sequence[RowUpdate]) -> dict[int, Taken]:  # fmt: skip
        """By number, the nodes of those asked, all of one subgraph, whose rule has forms for them. known: whether a
        tensor's shape is what it has; by default those of inputs, constants and outputs of nodes that are taken. rows:
        nodes that replace rows of lists, which are taken together."""
        taken: dict[int, Taken] = {}
        if not asked:
            return taken
        subgraph = asked[0].subgraph
        for node in asked:
            self.refused.pop((subgraph.index, node.number), None)
        safe = {id(subgraph.tensors[i]) for i in subgraph.inputs} | {id(t) for t in subgraph.tensors if t.is_variable}
        again, early = rewritten(subgraph), read_early(subgraph)
        updates = {u.whole.number: u for u in rows}
        parts = {part.number for u in updates.values() for part in u.parts}
        for node in asked:
            if is_settled(node) or node.number in parts:
                continue
            update = updates.get(node.number)
            nodes = [*(update.parts if update else ()), node]
            try:
                for one in nodes:
                    check(one)
                    if again and any(id(t) in again for t in (*one.tensors_in, *one.tensors_out)):
                        raise NoLowering("a tensor of it is written more than once")
                    if any(id(t) in early for t in (*one.tensors_in, *one.tensors_out)):
                        raise NoLowering("a tensor of it is read before it is written")
                for t in update.reads if update else node.tensors_in:
                    if t is not None and t.constant is None and not (known(t) if known else id(t) in safe):
                        raise NoLowering(f"the shape of {t!r} is not known before it runs")
                if known is not None and not all(map(known, node.tensors_out)):
                    raise NoLowering("its results' shapes are not known before it runs")
                ctx = LoweringContext(InterpreterNode(node), buffers)
                forms = update.forms(ctx) if update else lower(ctx)
            except NoLowering as why:
                self.refused |= {(subgraph.index, one.number): str(why) for one in nodes}
                continue
            except Exception as error:  # what a rule did not think of: the interpreter's kernel says what is wrong
                if flags.verify:
                    raise
                self.refused |= {(subgraph.index, one.number): f"{type(error).__name__}: {error}" for one in nodes}
                continue
            taken |= {one.number: Taken(one, (), tuple(n.number for n in nodes)) for one in nodes}
            taken[node.number] = taken[node.number]._replace(forms=forms)
            safe.update(map(id, node.tensors_out))
        return taken

    # ---- loop graphs ------------------------------------------------------------------------------------------------

    def _plan_when_compiled(self, graph: LoopGraph, apart: Callable[[Form], Sequence[Form] | None]) -> Plan:
        """The plan of a graph. Raises NotCached where kernels are missing and are to be compiled in the background."""
        try:
            with only_cached():
                return plan_of(graph, apart=apart)
        except NotCached:
            if self._background:
                raise
        with compiling_beside():
            plan_of(graph, apart=apart)
        return plan_of(graph, apart=apart)

    def _plan(self, subgraph: Subgraph, params: DelegateParams, taken: dict[int, Taken], buffers: Buffers
              ) -> Plan | None:  # fmt: skip
        """The plan of a partition. None where nodes of it turned out to have no kernel: they are taken no more; or
        where kernels are to be compiled: the graph is among `cold`."""
        graph = graph_of(subgraph, params, taken, buffers)
        if tuning.is_on() and buffers.seen is None and not tune(graph):  # between runs nobody waits
            self._measured[subgraph.index] = False
        after, apart = fused(graph)
        try:
            with pack(packed_as(self._key, after)):
                plan = self._plan_when_compiled(after, apart)
        except NotCached:
            self.cold.append(Cold(after, apart))
            return None
        except Unmade as why:
            for form, reason in why.forms.items():
                for number in numbers(form):
                    if taken.pop(number, None) is not None:
                        self.refused[subgraph.index, number] = f"no kernel: {reason}"
            return None
        if "plan" in flags.show:
            print(plan, file=sys.stderr)
        return plan


def _row_updates(subgraph: Subgraph) -> list[RowUpdate]:
    """Rows of lists that are replaced, where there can be any."""
    if not any(node.name == "SLICE" for node in subgraph.execution_plan):
        return []
    from .rules.row_updates import row_updates  # and with it rules that other models do without

    return row_updates(subgraph)
