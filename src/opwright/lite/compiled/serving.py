"""Which nodes rules may be asked about: whose kernels serve them, who else writes their tensors or runs their subgraph.

Lives here: `check`, `served_elsewhere`, `rewritten`, `read_early`, `only_initialises`.
Not here: the rules (rules/), claiming nodes (delegate.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...compiler.lowering.context import NoLowering
from ...core.errors import OpError
from ..customs.definition import defined as defined_customs
from ..format.calls import called_subgraphs
from ..ops.families import defined
from ..registration import OperatorRegistration, registration_of
from ..runtime.node import Node
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import CONSTANT
from .nodes import is_user_operator
from .rules import BY_SUBGRAPH, ON_RESOURCES, STATEFUL


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


def check(node: Node) -> None:
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


def read_early(subgraph: Subgraph) -> set[int]:
    """By identity, the tensors that a node reads before the one that writes them: elements of the last run, if any."""
    written = {id(subgraph.tensors[i]) for i in subgraph.inputs}
    found = set()
    for node in subgraph.execution_plan:
        found |= {id(t) for t in node.tensors_in
                  if t is not None and t.constant is None and not t.is_variable and id(t) not in written}  # fmt: skip
        written.update(map(id, node.tensors_out))
    return found


def only_initialises(subgraph: Subgraph) -> bool:
    """Whether nothing but CALL_ONCE runs a subgraph: it runs once, so kernels for it would not pay."""
    model = subgraph.model
    if subgraph.index == 0 or any(d.subgraph_index == subgraph.index for d in model.signature_defs):
        return False
    callers = {node.name for s in subgraph.family if subgraph.index in s.calls
               for node, op in zip(s.nodes, model.subgraphs[s.index].operators)
               if any(i == subgraph.index for _, i in called_subgraphs(op))}  # fmt: skip
    return callers == {"CALL_ONCE"}
