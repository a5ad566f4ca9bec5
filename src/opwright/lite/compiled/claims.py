"""Claim eligible nodes for the compiled engine and lower them to loop operations.

Lives here: `claim`, `ClaimedNode`; `prepare_nodes`, before which no node is claimed; what makes a node eligible: whose
kernels serve it, who else writes its tensors or runs its subgraph.
Not here: the rules (rules/, compiler/lowering/), partitions of claimed nodes and their plans (partition_plans.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...compiler.loops.forms import Form
from ...compiler.lowering.context import Buffers, LoweringContext, NoLowering
from ...compiler.lowering.registry import lower
from ...core import flags
from ...core.errors import OpError
from ..customs.definition import defined as defined_customs
from ..format.subgraph_checks import called_subgraphs
from ..ops.families import defined
from ..registration import OperatorRegistration, registration_of
from ..runtime.node import Node
from ..runtime.shape_constant_folding import is_folded
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import CONSTANT, DYNAMIC
from .nodes import InterpreterNode, is_user_operator
from .rules import BY_SUBGRAPH, ON_RESOURCES, STATEFUL

if TYPE_CHECKING:
    from .rules.row_updates import RowUpdate

Refusals = dict[tuple[int, int], str]
"""By subgraph and node, why a node stays with the interpreter."""


class ClaimedNode(NamedTuple):
    """A node that has forms. together: the nodes, itself included, that these stand for as one; without the others'
    forms they mean nothing."""

    node: Node
    forms: Sequence[Form]
    together: tuple[int, ...]


def claim(
    nodes: Sequence[Node],
    buffers: Buffers,
    known: Callable[[Any], bool] | None,
    updates: Iterable[RowUpdate],
    refused: Refusals,
) -> dict[int, ClaimedNode]:
    """Return by number the nodes, all of one subgraph, that a rule lowers; add to `refused` why others are not.

    known: whether a tensor's shape is what it has; by default those of inputs, constants and outputs of claimed nodes.
    updates: nodes that replace rows of lists, which are claimed together
    """
    claimed: dict[int, ClaimedNode] = {}
    if not nodes:
        return claimed
    subgraph = nodes[0].subgraph
    for node in nodes:
        refused.pop((subgraph.index, node.number), None)
    safe = {id(subgraph.tensors[i]) for i in subgraph.inputs} | {id(t) for t in subgraph.tensors if t.is_variable}
    unordered = _Unordered(_written_twice(subgraph), _read_early(subgraph))
    by_whole = {u.whole.number: u for u in updates}
    parts = {part.number for u in by_whole.values() for part in u.parts}
    for node in nodes:
        if is_folded(node) or node.number in parts:
            continue
        update = by_whole.get(node.number)
        group = [*(update.parts if update else ()), node]
        try:
            for one in group:
                check_eligible(one)
                unordered.check(one)
            for t in update.reads if update else node.tensors_in:
                if t is not None and t.constant is None and not (known(t) if known else id(t) in safe):
                    raise NoLowering(f"the shape of {t!r} is not known before it runs")
            if known is not None and not all(map(known, node.tensors_out)):
                raise NoLowering("its results' shapes are not known before it runs")
            context = LoweringContext(InterpreterNode(node), buffers)
            forms = update.forms(context) if update else lower(context)
        except NoLowering as why:
            refused |= {(subgraph.index, one.number): str(why) for one in group}
            continue
        except Exception as error:  # what a rule did not think of: the interpreter's kernel says what is wrong
            if flags.verify:
                raise
            refused |= {(subgraph.index, one.number): f"{type(error).__name__}: {error}" for one in group}
            continue
        claimed |= {one.number: ClaimedNode(one, (), tuple(n.number for n in group)) for one in group}
        claimed[node.number] = claimed[node.number]._replace(forms=forms)
        safe.update(map(id, node.tensors_out))
    return claimed


def prepare_nodes(subgraph: Subgraph, updates: Sequence[RowUpdate]) -> bool:
    """Prepare every node by its operator, except nodes that update rows of lists; return whether all succeed.

    A result whose shape is known only at run time has the file's shape here; the rule checks that shape.
    """
    replaced = {node.number for u in updates for node in (*u.parts, u.whole)}
    nodes = [node for node in subgraph.execution_plan if node.number not in replaced]

    def prepare(node: Node) -> None:
        check_eligible(node)
        kinds = [(t, t.kind) for t in node.tensors_out]
        subgraph.prepare(node)
        for t, kind in kinds:
            if t.kind == DYNAMIC:
                t.set_kind(kind)

    try:
        return not subgraph.prepare_all(nodes, prepare)
    except (NoLowering, OpError):  # the allocation says so
        return False


def row_updates_of(subgraph: Subgraph) -> list[RowUpdate]:
    """Return the updates of rows of lists, where there can be any."""
    if not any(node.name == "SLICE" for node in subgraph.execution_plan):
        return []
    from .rules.row_updates import row_updates  # and with it rules that other models do without

    return row_updates(subgraph)


# ---- what makes a node eligible --------------------------------------------------------------------------------------


class _Unordered(NamedTuple):
    """Return the identities of tensors written more than once, and of tensors read before they are written."""

    rewritten: set[int]
    early: set[int]

    def check(self, node: Node) -> None:
        """Raises NoLowering for a node of such tensors."""
        touched = {id(t) for t in (*node.tensors_in, *node.tensors_out)}
        if touched & self.rewritten:
            raise NoLowering("a tensor of it is written more than once")
        if touched & self.early:
            raise NoLowering("a tensor of it is read before it is written")


def served_elsewhere(node: Node) -> bool:
    """Whether the kernel is not that of the operator's own definition: a resolver has another, or the user."""
    registration = node.registration
    if type(node.options) is bytes:
        known: Sequence[Any] = defined_customs.get(node.name, ())
        return not is_user_operator(node) and not any(getattr(registration, "operator", None) is one for one in known)
    operator = defined.get(node.name)
    if isinstance(registration, OperatorRegistration):
        return registration.operator is not operator
    return operator is None or registration is not registration_of(operator)


def check_eligible(node: Node) -> None:
    """Raises NoLowering for what no rule is asked about."""
    if node.delegate is not None or served_elsewhere(node):
        raise NoLowering("another operator serves it")
    if node.name in ON_RESOURCES:
        return
    if not isinstance(node.registration, OperatorRegistration) and node.name not in BY_SUBGRAPH:
        raise NoLowering("it has a kernel of its own")
    for t in (*node.tensors_in, *node.tensors_out):
        if t is not None and ((t.is_variable and node.name not in STATEFUL) or t.is_object):
            raise NoLowering(f"{t!r} is state")
    try:
        node.subgraph.init(node)
    except OpError as error:  # the allocation says so
        raise NoLowering(error.message) from None


def _written_twice(subgraph: Subgraph) -> set[int]:
    """By identity, the tensors that several nodes write, or a node besides the file or who runs the subgraph."""
    written = {id(subgraph.tensors[i]) for i in subgraph.inputs}
    found = set()
    for node in subgraph.execution_plan:
        for t in node.tensors_out:
            if id(t) in written or t.kind == CONSTANT:
                found.add(id(t))
            written.add(id(t))
    return found


def _read_early(subgraph: Subgraph) -> set[int]:
    """By identity, the tensors that a node reads before the one that writes them: elements of the last run, if any."""
    written = {id(subgraph.tensors[i]) for i in subgraph.inputs}
    found = set()
    for node in subgraph.execution_plan:
        found |= {
            id(t)
            for t in node.tensors_in
            if t is not None and t.constant is None and not t.is_variable and id(t) not in written
        }
        written.update(map(id, node.tensors_out))
    return found


def only_initialises(subgraph: Subgraph) -> bool:
    """Whether nothing but CALL_ONCE runs a subgraph: it runs once, so kernels for it would not pay."""
    model = subgraph.model
    if subgraph.index == 0 or any(d.subgraph_index == subgraph.index for d in model.signature_defs):
        return False
    callers = {
        node.name
        for s in subgraph.family
        if subgraph.index in s.calls
        for node, op in zip(s.nodes, model.subgraphs[s.index].operators)
        if any(i == subgraph.index for _, i in called_subgraphs(op))
    }
    return callers == {"CALL_ONCE"}
