"""The delegate that runs what has kernels as machine code: the interpreter's default engine.

Lives here: `CompiledDelegate`: which nodes it takes, and their loop graphs.
Not here: what forms nodes become (rules/), fusion and plans (compiler/loops/), running a plan as a node (kernel.py).

Nodes are taken by rule; the partitions of those that have one become loop graphs, which are fused and planned. What no
kernel does is left to the interpreter, and the rest is looked at again. Shapes are those of the file where they follow
from the inputs' by the rules; where a node stays with the interpreter, or an input has another shape than the file
says, the interpreter works out all shapes first. Either way each node's operator has prepared it before it is taken: so
what an operator refuses is refused whichever engine would have run it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...compiler.kernels import Unmade
from ...compiler.loops import frozen
from ...compiler.loops.forms import Buffer, Form
from ...compiler.loops.fusion import fused
from ...compiler.loops.graph import LoopGraph
from ...compiler.loops.planning import plan_of
from ...compiler.loops.plans import Plan
from ...compiler.native.store import NotCached, compiling_beside, only_cached, pack
from ...core import flags
from ...core.errors import OpError
from ..customs.definition import defined as defined_customs
from ..delegate import Delegate, DelegateFlags, DelegateParams
from ..format.calls import called_subgraphs
from ..ops.definition import defined
from ..registration import OperatorRegistration, registration_of
from ..runtime.node import Node
from ..runtime.settling import is_settled
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import CONSTANT, DYNAMIC
from .keeping import Made, constants_of, note_of
from .kernel import FrozenRegistration, PlanRegistration
from .nodes import At, Buffers, Refused
from .rules import ON_RESOURCES, STATEFUL, forms_of
from .rules.written import codes_of, is_written
from .variables import Use, carried_out

if TYPE_CHECKING:
    from ..runtime.delegate_context import DelegateContext
    from .rules.row_updates import RowUpdate


class Taken(NamedTuple):
    """A node that has forms. together: the nodes, itself included, that these stand for as one; without the others'
    forms they mean nothing."""

    node: Node
    forms: Sequence[Form]
    together: tuple[int, ...]


class Cold(NamedTuple):
    """A graph for which kernels are not compiled yet; apart: as of `fused`."""

    graph: LoopGraph
    apart: Callable[[Form], Sequence[Form] | None]


class CompiledDelegate(Delegate):
    """Takes every node that rules and kernels know. One serves one interpreter.

    key: text that stands for the model; identity: text that stands for its bytes, None for one whose plans are not
    kept. After prepare: made, what is to be kept for later processes; whole, the key of a kept plan that runs all
    nodes; refused, by subgraph and node, why a node stays with the interpreter; cold, what is to be compiled first
    (nothing is taken meanwhile); failure, why nothing can be compiled.
    """

    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS | DelegateFlags.PER_OPERATOR_PROFILING
    anew = gathers = True

    def __init__(self, key: str = "", identity: str | None = None) -> None:
        self._key, self._identity = key, identity
        self._codes: str | None = ""  # what plans of the main subgraph hang on beside the file; None: not to be kept
        self.made: Made | None = None
        self.whole: str | None = None
        self.refused: dict[tuple[int, int], str] = {}
        self.cold: list[Cold] = []
        self.failure: Exception | None = None

    @property
    def name(self) -> str:
        return "Opwright"

    def prepare(self, context: DelegateContext) -> None:
        """Take a graph whose every node has a rule. Else the nodes that have one are taken once shapes are known."""
        subgraph = context.subgraph
        if _only_initialises(subgraph) or self._thaw(context):
            return
        updates = _row_updates(subgraph)
        whole, buffers = self._prepared(subgraph, updates), Buffers()
        taken = self._taken(subgraph, buffers, None, updates) if whole else {}
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
            self._check(node)
            kinds = [(t, t.kind) for t in node.tensors_out]
            subgraph.prepare(node)
            for t, kind in kinds:
                if t.kind == DYNAMIC:
                    t.set_kind(kind)

        try:
            return not subgraph.prepare_all(nodes, prepare)
        except (Refused, OpError):  # the allocation says so
            return False

    def take(self, context: DelegateContext) -> None:
        """Take the nodes that have rules and kernels, now that the interpreter has prepared them all."""
        buffers = Buffers()
        taken = self._taken(context.subgraph, buffers, lambda t: t.kind != DYNAMIC, ())
        self._guarded(context, taken, buffers, False)

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
            plans = [self._plan(context.subgraph, p, taken, buffers) for p in params]
            if self.cold:
                return False
            if all(plan is not None for plan in plans):
                made = [PlanRegistration(plan, uses_of(plan, buffers)) for plan in reversed(plans) if plan is not None]
                context.replace_node_subsets_with_delegate_kernels(made.pop, params)
                if len(params) == 1 and len(taken) == len(params[0].nodes_to_replace) == count:
                    self._note(context.subgraph, params[0], plans[0], buffers)
                return True
            if all_or_none:
                return False
        return False

    # ---- plans of earlier processes ---------------------------------------------------------------------------------

    def _frozen_key(self, subgraph: Subgraph) -> str | None:
        """What a plan of all nodes of the main subgraph is kept under; None where none is to be."""
        if self._identity is None or self._codes is None or subgraph.index != 0:
            return None
        return f"{self._identity} {[subgraph.tensors[i].shape for i in subgraph.inputs]} {self._codes}"

    def _note(self, subgraph: Subgraph, params: DelegateParams, plan: Plan | None, buffers: Buffers) -> None:
        """Have a plan of all nodes kept."""
        key = self._frozen_key(subgraph)
        if key is not None and plan is not None:
            note = note_of(subgraph, params, uses_of(plan, buffers))
            self.made = Made(key, [plan], note, constants_of(subgraph))

    def _thaw(self, context: DelegateContext) -> bool:
        """Take all nodes by the plan that an earlier process has kept; whether there was one."""
        subgraph = context.subgraph
        if subgraph.index == 0:
            self._codes = codes_of(subgraph)
        key = self._frozen_key(subgraph)
        found = None if key is None else frozen.find(key)
        if found is None:
            return False
        note, nodes = found.note, [node.number for node in subgraph.execution_plan]
        try:
            for node in subgraph.execution_plan:
                self._check(node)
        except Refused:
            return False  # other kernels serve it this time
        if nodes != note["nodes"]:
            return False
        params = DelegateParams(self, tuple(nodes), tuple(note["inputs"]), tuple(note["outputs"]))
        shapes = {int(i): tuple(shape) for i, shape in note["shapes"].items()}
        uses = [Use.of_note(row) for row in note["variables"]]
        context.replace_node_subsets_with_delegate_kernels(FrozenRegistration(found.plans[0], shapes, uses), [params])
        self.whole = key
        return True

    # ---- which nodes ------------------------------------------------------------------------------------------------

    def _taken(self, subgraph: Subgraph, buffers: Buffers, known: Callable[[Any], bool] | None,
               rows: Sequence[RowUpdate]) -> dict[int, Taken]:  # fmt: skip
        """By number, the nodes whose rule has forms for them. known: whether a tensor's shape is what it has; by
        default those of inputs, constants and outputs of nodes that are taken. rows: nodes that replace rows of lists,
        which are taken together."""
        taken: dict[int, Taken] = {}
        self.refused = {key: why for key, why in self.refused.items() if key[0] != subgraph.index}
        safe = {id(subgraph.tensors[i]) for i in subgraph.inputs} | {id(t) for t in subgraph.tensors if t.is_variable}
        again = rewritten(subgraph)
        updates = {u.whole.number: u for u in rows}
        parts = {part.number for u in updates.values() for part in u.parts}
        for node in subgraph.execution_plan:
            if is_settled(node) or node.number in parts:
                continue
            update = updates.get(node.number)
            nodes = [*(update.parts if update else ()), node]
            try:
                for one in nodes:
                    self._check(one)
                    if again and any(id(t) in again for t in (*one.tensors_in, *one.tensors_out)):
                        raise Refused("a tensor of it is written more than once")
                for t in update.reads if update else node.tensors_in:
                    if t is not None and t.constant is None and not (known(t) if known else id(t) in safe):
                        raise Refused(f"the shape of {t!r} is not known before it runs")
                if known is not None and not all(map(known, node.tensors_out)):
                    raise Refused("its results' shapes are not known before it runs")
                at = At(node, buffers)
                forms = update.forms(at) if update else forms_of(at)
            except Refused as why:
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

    def _check(self, node: Node) -> None:
        """Raises Refused for what no rule is asked about."""
        registration, on_resources = node.registration, node.name in ON_RESOURCES
        if on_resources and registration is registration_of(defined[node.name]):
            return
        if node.delegate is not None or not isinstance(registration, OperatorRegistration):
            raise Refused("it has a kernel of its own")
        known: Sequence[Any] = defined_customs.get(node.name, ()) if type(node.options) is bytes else (
            defined.get(node.name),)  # fmt: skip
        if not is_written(node) and not any(registration.operator is one for one in known):
            raise Refused("another operator serves it")
        for t in (*node.tensors_in, *node.tensors_out):
            if t is not None and ((t.is_variable and node.name not in STATEFUL) or t.is_object):
                raise Refused(f"{t!r} is state")
        try:
            node.subgraph.init(node)
        except OpError as error:  # the allocation says so
            raise Refused(error.message) from None

    # ---- loop graphs ------------------------------------------------------------------------------------------------

    def _plan_when_compiled(self, graph: LoopGraph, apart: Callable[[Form], Sequence[Form] | None]) -> Plan:
        """The plan of a graph. Raises NotCached where kernels are missing and are to be compiled in the background."""
        try:
            with only_cached():
                return plan_of(graph, apart=apart)
        except NotCached:
            if flags.background:
                raise
        with compiling_beside():
            plan_of(graph, apart=apart)
        return plan_of(graph, apart=apart)

    def _plan(self, subgraph: Subgraph, params: DelegateParams, taken: dict[int, Taken], buffers: Buffers
              ) -> Plan | None:  # fmt: skip
        """The plan of a partition. None where nodes of it turned out to have no kernel: they are taken no more; or
        where kernels are to be compiled: the graph is among `cold`."""
        after, apart = fused(graph_of(subgraph, params, taken, buffers))
        try:
            with pack(f"{self._key} {after.name}"):
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


def rewritten(subgraph: Subgraph) -> set[int]:
    """By identity, the tensors that several nodes write, or a node besides the file or who runs the subgraph."""
    written = {id(subgraph.tensors[i]) for i in subgraph.inputs}
    found = set()
    for node in subgraph.execution_plan:
        for t in node.tensors_out:
            if id(t) in written or t.kind == CONSTANT:
                found.add(id(t))
            written.add(id(t))
    return found


def graph_of(subgraph: Subgraph, params: DelegateParams, taken: dict[int, Taken], buffers: Buffers) -> LoopGraph:
    """The loop graph of a partition."""
    def of(indices: Sequence[int]) -> tuple[Buffer, ...]:
        return tuple(buffers.of(t).buffer for t in map(subgraph.tensors.__getitem__, indices) if t.constant is None)

    forms, variables, after = carried_out([form for i in params.nodes_to_replace for form in taken[i].forms])
    name = subgraph.name or f"subgraph{subgraph.index}"
    inputs, outputs = (*of(params.input_tensors), *variables), (*of(params.output_tensors), *after)
    return LoopGraph(name, inputs, outputs, tuple(forms))


def uses_of(plan: Plan, buffers: Buffers) -> list[Use]:
    """The variables that a plan reads or writes."""
    inputs = {id(b) for b in plan.graph.inputs}
    return [Use(int(b.name.removeprefix("t")), v.container, v.shared_name, b.dtype.name, shape, b.size)
            for v, (b, shape) in buffers.variables.items() if id(b) in inputs]  # fmt: skip


def _only_initialises(subgraph: Subgraph) -> bool:
    """Whether nothing but CALL_ONCE runs a subgraph: it runs once, so kernels for it would not pay."""
    model = subgraph.model
    if subgraph.index == 0 or any(d.subgraph_index == subgraph.index for d in model.signature_defs):
        return False
    callers = {node.name for s in subgraph.family if subgraph.index in s.calls
               for node, op in zip(s.nodes, model.subgraphs[s.index].operators)
               if any(i == subgraph.index for _, i in called_subgraphs(op))}  # fmt: skip
    return callers == {"CALL_ONCE"}


def numbers(form: Form) -> list[int]:
    """The nodes that a form came from."""
    return [int(name.rpartition(" ")[2]) for name in form.origin]
