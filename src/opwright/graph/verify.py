"""Verification of graphs: the table of invariants, and the check.

Lives here: invariants of all graphs.  Not here: rules of single operators (their `infer`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..core.errors import InternalError
from .ir import Graph


def _names(graph: Graph) -> Iterator[str]:
    seen: set[str] = set()
    for name in (*(v.name for v in graph.values()), *(n.name for n in graph.nodes if not n.outputs)):
        if name in seen:
            yield f"two values or nodes are named {name!r}"
        seen.add(name)
    for node in graph.nodes:
        if node.outputs and node.outputs[0].name != node.name:  # in text a node has no other name
            yield f"node {node.name!r} has the first output {node.outputs[0].name!r}"


def _order(graph: Graph) -> Iterator[str]:
    available = set(graph.inputs)
    for node in graph.nodes:
        for value in node.operands:
            if value not in available:
                yield f"node {node.name!r} ({node.op.name}) reads {value.name!r} before it is computed"
        available.update(node.outputs)
    for value in graph.outputs:
        if value not in available:
            yield f"output {value.name!r} is not computed in the graph"


def _arity(graph: Graph) -> Iterator[str]:
    for node in graph.nodes:
        expected = len(getattr(node.op, "inputs", node.inputs))
        if len(node.inputs) != expected:
            yield f"node {node.name!r} ({node.op.name}) has {len(node.inputs)} inputs, wanted {expected}"


VALID: tuple[tuple[str, Callable[[Graph], Iterator[str]]], ...] = (
    # name               rule: yields a sentence for each violation
    ("unique names", _names),
    ("defined before use", _order),
    ("one operand per input", _arity),
)


def verify(graph: Graph, after: str = "") -> None:
    """Raise InternalError with the rule, the violation and the preceding pass; subgraphs are checked too."""
    for name, rule in VALID:
        for violation in rule(graph):
            raise InternalError(
                what=f"graph {graph.name!r} is not valid{f' after {after}' if after else ''}: {name}: {violation}",
                found=str(graph)[:2000],
            )
    for node in graph.nodes:
        for inner in node.subgraphs:
            verify(inner, after)
