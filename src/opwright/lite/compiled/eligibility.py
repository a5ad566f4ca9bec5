"""Eligibility of nodes for the compiled engine: the kernel that serves a node, and other writers of its tensors.

Lives here: `ineligible`, `TensorOrder`, `is_user_operator`, `served_elsewhere`, `callers_of`; kinds of builtins;
`open_nodes`, whose sizes a run decides, and the elements that these follow from (`seen_by`).
Not here: rules, lowering and plans, which a model planned before does without (partition_plans.py), plans for the sizes
of a run (specialised.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.errors import OpError
from ..customs.definition import defined as defined_customs
from ..format.subgraph_checks import called_subgraphs
from ..ops.definition import LiteOperator, defined
from ..registration import OperatorRegistration, registration_of
from ..runtime.delegate_context import has_effects
from ..runtime.dynamic_shapes import MOST_READ
from ..runtime.node import Node
from ..runtime.subgraph import Subgraph
from ..runtime.tensor import CONSTANT, DYNAMIC

STATEFUL = frozenset(
    {
        "LSTM",
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        "RNN",
        "SVDF",
        "UNIDIRECTIONAL_SEQUENCE_RNN",
        "BIDIRECTIONAL_SEQUENCE_RNN",
    }
)
"""Builtins whose rules read and write variable inputs."""

ON_RESOURCES = frozenset({"READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE", "VAR_HANDLE"})
"""Builtins on named variables, which are resolved when tensors are allocated. VAR_HANDLE has no rule: it is folded."""

BY_SUBGRAPH = frozenset({"STABLEHLO_COMPOSITE", "STABLEHLO_REDUCE_WINDOW", "STABLEHLO_SCATTER"})
"""Builtins with rules that read a subgraph: one that combines numbers has one operator, a composite's is lowered in
place of the node."""

COUNTED = frozenset({"WHERE", "UNIQUE", "RANGE"})
"""Builtins whose first output has a computed number of rows. Each is a separate plan, which serves any number."""


def is_user_operator(node: Node) -> bool:
    """Return whether a user's operator serves the node, a custom one."""
    registration = node.registration
    return (
        type(node.options) is bytes
        and isinstance(registration, OperatorRegistration)
        and not isinstance(registration.operator, LiteOperator)
    )


def served_elsewhere(node: Node) -> bool:
    """Return whether the kernel is not that of the operator's definition: a resolver or the user supplies another."""
    registration = node.registration
    if type(node.options) is bytes:
        definitions: Sequence[Any] = defined_customs.get(node.name, ())
        return not is_user_operator(node) and not any(
            getattr(registration, "operator", None) is one for one in definitions
        )
    operator = defined.get(node.name)
    if isinstance(registration, OperatorRegistration):
        return registration.operator is not operator
    return operator is None or registration is not registration_of(operator)


def ineligible(node: Node) -> str | None:
    """Return why a node is not passed to a rule, None if it is."""
    if node.delegate is not None or served_elsewhere(node):
        return "another operator serves it"
    if node.name in ON_RESOURCES:
        return None
    if not isinstance(node.registration, OperatorRegistration) and node.name not in BY_SUBGRAPH:
        return "it has a kernel of its own"
    for t in (*node.tensors_in, *node.tensors_out):
        if t is not None and ((t.is_variable and node.name not in STATEFUL) or t.is_object):
            return f"{t!r} is state"
    try:
        node.subgraph.init(node)
    except OpError as error:  # allocation reports it
        return error.message
    if node.name == "STABLEHLO_COMPOSITE":
        body = node.subgraph.family[int(node.options.decomposition_subgraph_index)]
        return next((why for why in map(_inlinable, body.nodes) if why is not None), None)
    return None


def _inlinable(node: Node) -> str | None:
    """Return why a node of a decomposition is not lowered in place of the composite, None if it may be."""
    return "its decomposition has effects" if has_effects(node) else ineligible(node)


class TensorOrder:
    """Tensors of a subgraph with several values, and nodes with effects, which rules do not support."""

    def __init__(self, subgraph: Subgraph) -> None:
        self._rewritten: set[int] = set()  # by identity: several nodes write it, or a node and the file or the caller
        self._early: set[int] = set()  # a node reads it before the one that writes it: elements of the last run, if any
        self._after_effects: dict[int, int] = {}  # by CALL_ONCE node, the first earlier node with effects
        written_ids = {id(subgraph.tensors[i]) for i in subgraph.inputs}
        effect: int | None = None
        for node in subgraph.execution_plan:
            for t in node.tensors_in:
                if t is not None and t.constant is None and not t.is_variable and id(t) not in written_ids:
                    self._early.add(id(t))
            for t in node.tensors_out:
                if id(t) in written_ids or t.kind == CONSTANT:
                    self._rewritten.add(id(t))
                written_ids.add(id(t))
            if node.name == "CALL_ONCE":
                if effect is not None:
                    self._after_effects[node.number] = effect
            elif effect is None and has_effects(node):
                effect = node.number

    def ineligible(self, node: Node) -> str | None:
        """Return why the order excludes a node, None if it does not."""
        touched = {id(t) for t in (*node.tensors_in, *node.tensors_out)}
        if touched & self._rewritten:
            return "a tensor of it is written more than once"
        if touched & self._early:
            return "a tensor of it is read before it is written"
        if node.number in self._after_effects:
            return f"node {self._after_effects[node.number]} has effects before it"
        return None


def callers_of(family: Sequence[Subgraph]) -> dict[int, set[str]]:
    """Return the names of the operators that call each subgraph of a model; none for signatures and the first."""
    model = family[0].model
    callers: dict[int, set[str]] = {s.index: set() for s in family}
    for s in family:
        for node, op in zip(s.nodes, model.subgraphs[s.index].operators) if s.calls else ():
            for _, index in called_subgraphs(op):
                callers[index].add(node.name)
    return callers | {i: set() for i in (0, *(d.subgraph_index for d in model.signature_defs))}


# ---- sizes that a run decides ----------------------------------------------------------------------------------------

Seen = Mapping[int, np.ndarray]
"""Elements of a run by tensor."""


def open_nodes(subgraph: Subgraph) -> list[Node]:
    """Return nodes whose sizes, or those of their operands, are determined at run time, or whose shape rules read
    run-time elements; none with effects, as a plan that stops must not have had any."""
    return [
        node
        for node in subgraph.execution_plan
        if node.delegate is None
        and node.name not in ON_RESOURCES | STATEFUL
        and not _has_effects(node)
        and (
            node.needs_values or any(t is not None and t.kind == DYNAMIC for t in (*node.tensors_in, *node.tensors_out))
        )
    ]


def _has_effects(node: Node) -> bool:
    """Return whether an operator has effects beyond its results: on the world, or on its persistent state."""
    operator = getattr(node.registration, "operator", None)
    return getattr(operator, "effect", None) is not None or hasattr(node.user_data, "restart")


def seen_by(nodes: Iterable[Node]) -> dict[int, np.ndarray]:
    """Return the elements of the small operands of nodes that have just run."""
    return {
        t.index: t.array.copy()
        for node in nodes
        for t in node.tensors_in
        if t is not None and t.constant is None and t.array is not None and not t.is_object and t.nbytes <= MOST_READ
    }


def has_run(node: Node) -> bool:
    """Return whether all tensors that a node reads and writes have elements, and thus sizes."""
    return all(t is None or t.kind != DYNAMIC or t.array is not None for t in (*node.tensors_in, *node.tensors_out))
